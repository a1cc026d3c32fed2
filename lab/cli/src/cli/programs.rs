//! The command line of workloads that are programs with clients: `spinpark-lab documents mail` and `select`.

use std::net::{SocketAddr, ToSocketAddrs};
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use spinpark_documents::mtx_2006::select::ROWS;

use super::workloads::Common;
use spinpark_cli::line::numbers::{THREADS, whole};
use spinpark_cli::line::units::whole_ms;

const MAIL_EXAMPLES: &str = "\
Examples:
  spinpark-lab documents mail                           our server, 1 to 8 clients
  spinpark-lab documents mail --clients 1,2,4,8,16,32,48 --duration 15s   as in the original
  spinpark-lab documents mail --server localhost:2525   your mail server; fills user0@localhost …
  examples/mail-on-exim.sh --clients 4                    exim, in a directory of its own";

/// Clients that hand over mail to a server that forks for everything
///
/// Document 002: exim under MOSBENCH's load. Ten messages per connection; a process per connection, per
/// delivery and per write to a mailbox. In the end, each message must be in one mailbox, once. What it
/// stresses is the kernel: fork, exit, and directories that all share.
#[derive(Debug, Args)]
#[command(after_long_help = MAIL_EXAMPLES)]
pub(crate) struct Mail {
    /// Numbers of clients
    #[arg(short = 'c', long = "clients", value_name = "N", num_args = 1.., value_delimiter = ',', default_values_t = [1, 2, 4, 8], value_parser = whole::<usize>(THREADS, 8))]
    pub(crate) threads: Vec<usize>,

    /// Send to this server instead; deliveries are not checked then
    #[arg(long, value_name = "HOST:PORT", value_parser = address)]
    pub(crate) server: Option<SocketAddr>,

    /// Where directories for spool and mailboxes are made [default: a tmpfs]
    #[arg(long, value_name = "DIR")]
    pub(crate) dir: Option<PathBuf>,

    /// Length of a measured run; a warm-up of a quarter comes before
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = whole_ms("10min"))]
    pub(crate) duration: Duration,

    #[command(flatten)]
    pub(crate) common: Common,
}

/// The first address that a name means.
fn address(text: &str) -> Result<SocketAddr, String> {
    let mut found = text.to_socket_addrs().map_err(|error| format!("{error}; write HOST:PORT"))?;
    found.next().ok_or_else(|| String::from("this host has no address"))
}

const SELECT_EXAMPLES: &str = "\
Examples:
  spinpark-lab documents select                            glibc's locks and ours, 1 to 20 clients
  spinpark-lab documents select --clients 10 --rounds 20   more rounds, narrower intervals
  spinpark-lab documents select --update                   a select and an update per round
  spinpark-lab documents select --locks drop-in-disabled,drop-in   glibc pays for interposition, too
  spinpark-lab documents select --server-option=--innodb-buffer-pool-size=1G --table-rows 2000000";

/// Clients that ask MariaDB for rows: glibc's locks and ours inside the server
///
/// Document 004: MySQL under super-smack's select-key. Each client makes a number of rounds, each of two
/// selects by key, and checks every row. The server is the installed one (Debian's mariadb-server), started
/// for each run in a private directory, without a port, by you; it has nothing to do with a database that is
/// running on this system.
#[derive(Debug, Args)]
#[command(after_long_help = SELECT_EXAMPLES)]
pub(crate) struct Select {
    /// Numbers of clients
    #[arg(short = 'c', long = "clients", value_name = "N", num_args = 1.., value_delimiter = ',', default_values_t = [1, 4, 10, 20], value_parser = whole::<usize>(THREADS, 8))]
    pub(crate) threads: Vec<usize>,

    /// Rounds of two queries that each client makes in a run (super-smack's second number)
    #[arg(long, value_name = "N", default_value_t = 2_000, value_parser = whole::<u64>(1..=100_000_000, 2000))]
    pub(crate) per_client: u64,

    /// Rows of the database's table
    #[arg(long = "table-rows", value_name = "N", default_value_t = ROWS, value_parser = whole::<u64>(1..=100_000_000, 10000))]
    pub(crate) rows: u64,

    /// In each round a select and an update, not two selects (super-smack's update-select)
    #[arg(long)]
    pub(crate) update: bool,

    /// Implementations in the server: glibc, drop-in, drop-in-disabled; NAME+VARIABLE=VALUE sets a variable
    #[arg(short, long, value_name = "NAME", num_args = 1.., value_delimiter = ',', default_value = "glibc,drop-in")]
    pub(crate) locks: Vec<String>,

    /// An option of the server, as in --server-option=--thread-handling=pool-of-threads; may be repeated
    #[arg(long, value_name = "OPTION", allow_hyphen_values = true)]
    pub(crate) server_option: Vec<String>,

    /// Where directories for the database are made [default: a tmpfs]
    #[arg(long, value_name = "DIR")]
    pub(crate) dir: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) common: Common,
}

#[derive(Debug, Args)]
pub(crate) struct MailServer {
    pub(crate) directory: PathBuf,
    pub(crate) limit: usize,
}
