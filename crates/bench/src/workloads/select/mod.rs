//! `spinpark bench select`: document 004's super-smack benchmark against a real database.
//!
//! Clients ask MariaDB for rows of one table, by key, over a socket; what is compared is the locks *inside the server*.
//! The server is the one of the system's package, started for this benchmark alone: in a private directory, without a
//! port, by whoever runs the benchmark, and gone afterwards.

pub mod connection;
mod load;
mod packet;
mod server;
mod table;

pub use self::load::{Load, LoadError, Outcome, QUERIES_PER_ROUND, fill};
pub use self::packet::{Malformed, Refusal};
pub use self::server::{Server, ServerError, Start, Usage};
pub use self::table::ROWS;
