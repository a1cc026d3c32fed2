//! The command line of `spinpark-lab documents WORKLOAD`.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use serde::de::DeserializeOwned;
use spinpark_documents::rwsem_2013::faults::Mapping;
use spinpark_documents::rwsem_2013::mmap::Touch;
use spinpark_documents::wake_op_2005::condvar::{self, Cpus};
use spinpark_documents::workloads::jobs::JOBS;
use spinpark_documents::workloads::serial::Sections;
use spinpark_documents::workloads::workers::Kind;
use spinpark_lockbench::locks::load::Signal;

use spinpark_cli::line::format::{self, TableOrJson};
use spinpark_cli::line::numbers::{THREADS, whole};
use spinpark_cli::line::units::{millis, whole_ms};

/// What every workload takes.
#[derive(Debug, Args)]
pub(crate) struct Common {
    /// Rounds over all cells; 6 or more for intervals and verdicts
    #[arg(short, long, value_name = "N", default_value_t = 10, value_parser = whole::<usize>(1..=100_000, 10))]
    pub(crate) rounds: usize,

    /// The variant that others are compared with; it runs twice per round [default: the first one]
    #[arg(long, value_name = "NAME")]
    pub(crate) baseline: Option<String>,

    /// Print what operations cost, how evenly tasks were served, and more
    #[arg(long)]
    pub(crate) details: bool,

    #[command(flatten)]
    pub(crate) out: TableOrJson,

    #[arg(long, value_name = "N", help = format::SEED, value_parser = whole::<u64>(0..=u64::MAX, 1))]
    pub(crate) seed: Option<u64>,
}

/// How long a run counts.
#[derive(Debug, Args)]
pub(crate) struct Length {
    /// Length of a measured run
    #[arg(long, value_name = "TIME", default_value = "200ms", value_parser = whole_ms("10min"))]
    pub(crate) duration: Duration,
}

impl Length {
    /// In milliseconds.
    pub(crate) fn millis(&self) -> u64 {
        millis(self.duration)
    }
}

/// Reads a word of a list that a workload defines; the error names them all.
fn named<T: DeserializeOwned>(word: &str) -> Result<T, String> {
    serde_json::from_value(word.into()).map_err(|error| error.to_string())
}

/// A number of tasks. What tasks are is another option.
fn number_of_tasks(word: &str) -> Result<usize, String> {
    match named::<Kind>(word) {
        Ok(kind) => Err(format!("it is a number of tasks; use --as {} for what tasks are", kind.name())),
        Err(_) => whole(THREADS, 16)(word),
    }
}

const LOCKS: &str = "Implementations of the mutex: names of `bench list`";

const MMAP_EXAMPLES: &str = "\
Examples:
  spinpark-lab documents mmap   the documents' tables, glibc's mutex and ours
  spinpark-lab documents mmap --touch all --threads 1,2,4 --locks glibc,std,usync,spinpark
  spinpark-lab documents mmap --serialize none,iteration,calls --touch none
  spinpark-lab documents mmap --serialize iteration --locks glibc,drop-in   a lock against another";

/// Threads that map 1 MB, write to it or not, and unmap it: plain or under a mutex
///
/// Document 002: is a mutex around the kernel's own lock faster? The columns are the documents': means,
/// standard deviations in %, and the change against the plain variant.
#[derive(Debug, Args)]
#[command(after_long_help = MMAP_EXAMPLES)]
pub(crate) struct Mmap {
    /// Numbers of threads
    #[arg(long, value_name = "N", num_args = 1.., value_delimiter = ',', default_values_t = [1, 2, 3, 4, 5, 10, 20, 40], value_parser = whole::<usize>(THREADS, 8))]
    pub(crate) threads: Vec<usize>,

    /// What is written between the calls: none, all (every 8 bytes: 256 page faults)
    #[arg(long, value_name = "WHAT", num_args = 1.., value_delimiter = ',', value_parser = named::<Touch>, default_value = "none,all")]
    pub(crate) touch: Vec<Touch>,

    /// What the mutex is held for: none (plain), iteration, calls (one section around each call)
    #[arg(long, value_name = "WHAT", num_args = 1.., value_delimiter = ',', value_parser = named::<Sections>, default_value = "none,iteration")]
    pub(crate) serialize: Vec<Sections>,

    #[arg(short, long, value_name = "NAME", num_args = 1.., value_delimiter = ',', default_value = "glibc,spinpark", help = LOCKS)]
    pub(crate) locks: Vec<String>,

    #[command(flatten)]
    pub(crate) length: Length,

    #[command(flatten)]
    pub(crate) common: Common,
}

const CREAT_EXAMPLES: &str = "\
Examples:
  spinpark-lab documents creat   processes and threads, 1 to 256 of them
  spinpark-lab documents creat --threads 256 --as processes --duration 10s   document 001: V 256 10
  spinpark-lab documents creat --unlink --as threads --locks none,glibc,spinpark";

/// Tasks that create and close a file of their own, all in one directory
///
/// Document 001's test of the kernel's mutex. A task that creates a name takes the directory's lock; --locks
/// adds one of spinpark's or of its peers' around it.
#[derive(Debug, Args)]
#[command(after_long_help = CREAT_EXAMPLES)]
pub(crate) struct Creat {
    /// Numbers of tasks
    #[arg(long, value_parser = number_of_tasks, value_name = "N", num_args = 1.., value_delimiter = ',', default_values_t = [1, 2, 16, 64, 256])]
    pub(crate) threads: Vec<usize>,

    /// What tasks are: processes, threads, or both to be compared
    #[arg(long = "as", value_name = "KIND", num_args = 1.., value_delimiter = ',', value_parser = named::<Kind>, default_value = "processes,threads")]
    pub(crate) kinds: Vec<Kind>,

    /// Remove the file again in each round
    #[arg(long)]
    pub(crate) unlink: bool,

    /// Implementations of a mutex around it, for threads: none, or names of `bench list`
    #[arg(short, long, value_name = "NAME", num_args = 1.., value_delimiter = ',', default_value = "none")]
    pub(crate) locks: Vec<String>,

    #[command(flatten)]
    pub(crate) place: Dir,

    #[command(flatten)]
    pub(crate) length: Length,

    #[command(flatten)]
    pub(crate) common: Common,
}

const FAULTS_EXAMPLES: &str = "\
Examples:
  spinpark-lab documents faults                           private memory, threads against processes
  spinpark-lab documents faults --kind private,file-private,file-shared --threads 1,2,4
  spinpark-lab documents faults --size 128 --as threads   as page_fault1 of will-it-scale";

/// Tasks that write to each page of a fresh mapping: page faults per second
#[derive(Debug, Args)]
#[command(after_long_help = FAULTS_EXAMPLES)]
pub(crate) struct Faults {
    /// Numbers of tasks
    #[arg(long, value_parser = number_of_tasks, value_name = "N", num_args = 1.., value_delimiter = ',', default_values_t = [1, 2, 4, 10, 40])]
    pub(crate) threads: Vec<usize>,

    /// What is mapped: private, shared (memory); file-private (copied on write), file-shared
    #[arg(long, value_name = "KIND", num_args = 1.., value_delimiter = ',', value_parser = named::<Mapping>, default_value = "private")]
    pub(crate) kind: Vec<Mapping>,

    /// What tasks are: processes, threads, or both to be compared
    #[arg(long = "as", value_name = "KIND", num_args = 1.., value_delimiter = ',', value_parser = named::<Kind>, default_value = "processes,threads")]
    pub(crate) kinds: Vec<Kind>,

    /// Size of each task's mapping, in MB
    #[arg(long, value_name = "MB", default_value_t = 16, value_parser = whole::<u64>(1..=65_536, 16))]
    pub(crate) size: u64,

    #[command(flatten)]
    pub(crate) place: Dir,

    #[command(flatten)]
    pub(crate) length: Length,

    #[command(flatten)]
    pub(crate) common: Common,
}

const SCAN_EXAMPLES: &str = "\
Examples:
  spinpark-lab documents scan   a thread per CPU over a tree that is made
  spinpark-lab documents scan --tree /usr/share/doc --threads 2,8   a tree of yours, only read
  spinpark-lab documents scan --serialize none,iteration,calls --locks glibc,std,spinpark";

/// Threads that open, map, search and unmap files: a virus scanner
///
/// The tree that is made has a signature in every seventh file, and a run fails if it does not find exactly
/// these.
#[derive(Debug, Args)]
#[command(after_long_help = SCAN_EXAMPLES)]
pub(crate) struct Scan {
    /// Numbers of threads [default: one per CPU]
    #[arg(long, value_name = "N", num_args = 1.., value_delimiter = ',', value_parser = whole::<usize>(THREADS, 8))]
    pub(crate) threads: Vec<usize>,

    /// Scan this tree instead of one that is made. It is only read; no other program may write to it
    /// meanwhile
    #[arg(long, value_name = "DIR")]
    pub(crate) tree: Option<PathBuf>,

    /// What the mutex is held for: none (plain), iteration (all of a file), calls (mapping, and unmapping)
    #[arg(long, value_name = "WHAT", num_args = 1.., value_delimiter = ',', value_parser = named::<Sections>, default_value = "none,calls")]
    pub(crate) serialize: Vec<Sections>,

    #[arg(short, long, value_name = "NAME", num_args = 1.., value_delimiter = ',', default_value = "glibc,spinpark", help = LOCKS)]
    pub(crate) locks: Vec<String>,

    #[command(flatten)]
    pub(crate) place: Dir,

    #[command(flatten)]
    pub(crate) length: Length,

    #[command(flatten)]
    pub(crate) common: Common,
}

const JOBS_EXAMPLES: &str = "\
Examples:
  spinpark-lab documents jobs                              the mix fserver, 1 to 16 users
  spinpark-lab documents jobs --mix alltests,shared --users 1,2,4 --details   with its times
  spinpark-lab documents jobs --mix disk --dir /var/tmp --no-sync   on a disk, without syncing
  spinpark-lab documents jobs --mix fserver --file-size 10 --pool-size 20 --users 64   sizes in MB";

/// Users that do small jobs of many kinds, in mixes with published weights: jobs per minute
///
/// The multi-user benchmark of documents 001 and 002, with operations of our own. Each user is a process that
/// does its jobs in an order of its own. Mixes: fserver, alltests, custom, disk, high_systime, shared, short.
#[derive(Debug, Args)]
#[command(after_long_help = JOBS_EXAMPLES)]
pub(crate) struct Jobs {
    /// Mixes of operations to run
    #[arg(long, value_name = "MIX", num_args = 1.., value_delimiter = ',', default_value = "fserver")]
    pub(crate) mix: Vec<String>,

    /// Numbers of users
    #[arg(long = "users", value_name = "N", num_args = 1.., value_delimiter = ',', default_values_t = [1, 2, 4, 8, 16], value_parser = whole::<usize>(THREADS, 8))]
    pub(crate) threads: Vec<usize>,

    /// Jobs of a user. Every operation of the mix is done at least once
    #[arg(long, value_name = "N", default_value_t = JOBS, value_parser = whole::<usize>(1..=100_000, 100))]
    pub(crate) jobs: usize,

    /// Size of a file, in MB, without its part of the pool [default: the mix' own, or what fits]
    #[arg(long, value_name = "MB", value_parser = whole::<u32>(0..=u32::MAX.into(), 10))]
    pub(crate) file_size: Option<u32>,

    /// What all files share, in MB: each has a part of it [default: the mix' own, or what fits]
    #[arg(long, value_name = "MB", value_parser = whole::<u32>(0..=u32::MAX.into(), 100))]
    pub(crate) pool_size: Option<u32>,

    /// Do not flush files to the disk
    #[arg(long)]
    pub(crate) no_sync: bool,

    #[command(flatten)]
    pub(crate) place: Dir,

    #[command(flatten)]
    pub(crate) common: Common,
}

const CONDVAR_EXAMPLES: &str = "\
Examples:
  spinpark-lab documents condvar                             on one CPU, as the document, and on all
  spinpark-lab documents condvar --cpus one --waiter-first   the document's order of events
  spinpark-lab documents condvar --locks classic-condvar-orig,drop-in --rounds 30
  spinpark-lab documents condvar --signal under-lock --locks glibc,parking_lot,spinpark";

/// A signaller and a waiter that alternate: what a signal of a condition variable costs
///
/// Document 003: glibc's condition variable of 2003 (classic-condvar-orig), with its waiter moved to the
/// internal lock (classic-condvar-requeue), and with the unlock in the kernel by FUTEX_WAKE_OP
/// (classic-condvar-wake-op), and those of today. The columns are the document's, real, user and system time,
/// with futex calls and context switches per signal.
#[derive(Debug, Args)]
#[command(after_long_help = CONDVAR_EXAMPLES)]
pub(crate) struct Condvar {
    /// Implementations of the condition variable: names of `bench list` [default: the document's three,
    /// glibc, std, parking_lot, spinpark, drop-in]
    #[arg(short, long, value_name = "NAME", num_args = 1.., value_delimiter = ',', default_value = condvar::DEFAULT, hide_default_value = true)]
    pub(crate) locks: Vec<String>,

    /// Where the two threads run: one (both on the same CPU), all (where the kernel puts them)
    #[arg(long, value_name = "WHERE", num_args = 1.., value_delimiter = ',', value_parser = named::<Cpus>, default_value = "one,all")]
    pub(crate) cpus: Vec<Cpus>,

    /// Signals of a run
    #[arg(long, value_name = "N", default_value_t = 100_000, value_parser = whole::<u64>(1..=1_000_000_000, 100000))]
    pub(crate) iterations: u64,

    /// Where the signal is made: after-unlock, under-lock
    #[arg(long, value_name = "WHERE", value_parser = named::<Signal>, default_value = "after-unlock")]
    pub(crate) signal: Signal,

    /// On one CPU, run the woken waiter at once, as on the document's machine
    ///
    /// The signaller is then in the class SCHED_IDLE. Without this option, the kernel decides which thread
    /// runs, and in most cases decides the same.
    #[arg(long)]
    pub(crate) waiter_first: bool,

    #[command(flatten)]
    pub(crate) common: Common,
}

/// Where files go.
#[derive(Debug, Args)]
pub(crate) struct Dir {
    /// Make the private directory for files here, and remove it afterwards [default: a tmpfs, such as
    /// /dev/shm]
    #[arg(long, value_name = "DIR")]
    pub(crate) dir: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct WorkloadWorker {
    pub(crate) request: String,
}
