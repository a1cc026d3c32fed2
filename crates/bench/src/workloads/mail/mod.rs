//! `spinpark bench mail`: document 002's exim benchmark, in a form of our own.
//!
//! Clients hand over mail, ten messages per connection, as fast as they can; a server that starts a process for each
//! connection, each delivery and each write to a mailbox puts it into one directory and delivers it to others. The load
//! is MOSBENCH's; nothing of exim is in it. See [`server`] for what the kernel has to do.

mod check;
mod client;
mod fork;
mod load;
pub mod server;
mod session;
mod spool;
mod wire;

pub use self::check::Wrong;
pub use self::client::{ClientError, MESSAGES_PER_CONNECTION};
pub use self::load::{Load, LoadError, Outcome, SERVER};
