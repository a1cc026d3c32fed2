//! `spinpark profile`, `report`, `diff`, `top`.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};

const PROFILE_EXAMPLES: &str = "\
Examples:
  spinpark profile -- ./server --port 8080          which lock it waits for, and who holds it
  spinpark profile --html report.html -- ./job      the same as a page to click through
  spinpark profile --detail full -- ./job           every acquisition counted and timed: exact, and slower
  spinpark profile --locks spinpark -- ./job        on spinpark's locks, with what became of each wait
  spinpark profile --for 10s -- ./server            ends the server after ten seconds
  spinpark profile --overhead -- ./job              what recording costs on this very program

The program runs as it would without us: same terminal, same input. The report goes to standard error, so that the program's own output stays what it is; the exit status is the program's. What was recorded is kept in a directory, also if the program is killed; `spinpark report DIR` shows it again.";

/// Find out which locks a program waits for, and who holds them
///
/// No rebuild, no privileges: a library in front of glibc's (or spinpark's) locks counts in tables of its own. Mutexes,
/// read-write locks and condition variables of pthreads and C11.
#[derive(Debug, Args)]
#[command(after_help = PROFILE_EXAMPLES)]
pub(crate) struct Profile {
    /// Whose locks the program uses
    #[arg(long, value_enum, default_value_t = LocksChoice::Glibc)]
    pub(crate) locks: LocksChoice,

    /// How much is recorded
    #[arg(long, value_enum, default_value_t = DetailChoice::Contended)]
    pub(crate) detail: DetailChoice,

    /// Where the recording is kept; otherwise ./spinpark-profile, or -2, -3 … if that is there already
    #[arg(short, long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,

    /// End the program after this time (SIGTERM, and SIGKILL ten seconds later): 500ms, 10s, 2min
    #[arg(long = "for", value_name = "TIME", value_parser = parse_time)]
    pub(crate) time: Option<Duration>,

    /// Room on the disk for the recording, of all processes together: 64MiB, 1GiB. What does not fit is not recorded; processes
    /// that have not waited come last
    #[arg(long, value_name = "SIZE", default_value = "256MiB", value_parser = parse_size)]
    pub(crate) max_size: u64,

    /// Measure what recording costs: run the program without it, and with each detail, in shuffled rounds
    #[arg(long)]
    pub(crate) overhead: bool,

    /// Rounds for --overhead, six runs each; at least 6
    #[arg(long, value_name = "N", default_value_t = 6, requires = "overhead")]
    pub(crate) rounds: usize,

    #[command(flatten)]
    pub(crate) show: Showing,

    /// The program and its arguments
    #[arg(required = true, trailing_var_arg = true, value_name = "PROG")]
    pub(crate) program: Vec<OsString>,
}

const REPORT_EXAMPLES: &str = "\
Examples:
  spinpark report spinpark-profile                       what `profile` printed
  spinpark report spinpark-profile --view blocking       who waits for whom
  spinpark report spinpark-profile --html report.html    a page with tables, histograms and a flame graph
  spinpark report spinpark-profile --folded | flamegraph.pl > waits.svg
  spinpark report spinpark-profile --pprof waits.pb.gz
  go tool pprof -http : -tagleaf lock waits.pb.gz        which lock, below the functions that wait for it";

/// Show a recorded profile again, or turn it into something for other tools
#[derive(Debug, Args)]
#[command(after_help = REPORT_EXAMPLES)]
pub(crate) struct Report {
    /// What `spinpark profile` wrote: a directory, or one file of it
    #[arg(value_name = "DIR")]
    pub(crate) directory: PathBuf,

    #[command(flatten)]
    pub(crate) show: Showing,
}

/// What is shown of a profile, and where it goes.
#[derive(Debug, Args)]
pub(crate) struct Showing {
    /// What the table is about
    #[arg(long, value_enum, default_value_t = ViewChoice::Summary)]
    pub(crate) view: ViewChoice,

    /// Rows in each table
    #[arg(short = 'n', long, value_name = "N", default_value_t = 10)]
    pub(crate) top: usize,

    /// Only this process; otherwise the one that waited most
    #[arg(long, value_name = "PID")]
    pub(crate) process: Option<u32>,

    /// Write a page for a browser
    #[arg(long, value_name = "FILE")]
    pub(crate) html: Option<PathBuf>,

    /// Write all of it as JSON; without a file, or with `-`: to standard output, instead of tables
    #[arg(long, value_name = "FILE", num_args = 0..=1, default_missing_value = "-")]
    pub(crate) json: Option<PathBuf>,

    /// Write the stacks of waiters, folded, each with its lock and the µs waited: for flame graphs. Without a file: to standard
    /// output
    #[arg(long, value_name = "FILE", num_args = 0..=1, default_missing_value = "-")]
    pub(crate) folded: Option<PathBuf>,

    /// Write contentions and delays for `go tool pprof`, each with its lock as the label `lock`
    #[arg(long, value_name = "FILE")]
    pub(crate) pprof: Option<PathBuf>,
}

const DIFF_EXAMPLES: &str = "\
Examples:
  spinpark profile --out before -- ./job
  spinpark profile --out after -- ./job-with-two-locks
  spinpark diff before after";

/// Compare two profiles, lock by lock
#[derive(Debug, Args)]
#[command(after_help = DIFF_EXAMPLES)]
pub(crate) struct Diff {
    /// The first recording
    #[arg(value_name = "BEFORE")]
    pub(crate) before: PathBuf,

    /// The second one
    #[arg(value_name = "AFTER")]
    pub(crate) after: PathBuf,

    /// Rows in each table
    #[arg(short = 'n', long, value_name = "N", default_value_t = 10)]
    pub(crate) top: usize,

    /// Write it as JSON; without a file, or with `-`: to standard output, instead of tables
    #[arg(long, value_name = "FILE", num_args = 0..=1, default_missing_value = "-")]
    pub(crate) json: Option<PathBuf>,
}

const TOP_EXAMPLES: &str = "\
Examples:
  spinpark top -- ./server              starts it, and shows once a second where it waits
  spinpark top 4711                     a process that `spinpark profile` or `spinpark top` has started
  spinpark top --once 4711              one look, for scripts

Ctrl-C ends a program that was started so, too.";

/// Watch where a running program waits
///
/// The program keeps its tables in a file that is mapped, so watching needs no privileges and does not stop it. It must have
/// been started by `spinpark profile`, `spinpark top`, or with the profiler in LD_PRELOAD.
#[derive(Debug, Args)]
#[command(after_help = TOP_EXAMPLES)]
pub(crate) struct Top {
    /// Time between two looks: 500ms, 1s
    #[arg(short, long, value_name = "TIME", default_value = "1s", value_parser = parse_time)]
    pub(crate) interval: Duration,

    /// So many looks; otherwise until the program ends
    #[arg(long, value_name = "N")]
    pub(crate) looks: Option<u64>,

    /// One look, as plain text
    #[arg(long, conflicts_with = "looks")]
    pub(crate) once: bool,

    /// Whose locks a program that is started uses
    #[arg(long, value_enum, default_value_t = LocksChoice::Glibc)]
    pub(crate) locks: LocksChoice,

    /// How much is recorded of a program that is started
    #[arg(long, value_enum, default_value_t = DetailChoice::Contended)]
    pub(crate) detail: DetailChoice,

    /// Rows in the table
    #[arg(short = 'n', long, value_name = "N", default_value_t = 20)]
    pub(crate) rows: usize,

    /// A process id; or, after `--`, a program and its arguments
    #[arg(required = true, trailing_var_arg = true, value_name = "PID | PROG")]
    pub(crate) program: Vec<OsString>,
}

/// Whose locks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum LocksChoice {
    /// The program's own, as it is
    Glibc,
    /// spinpark's, put in front of glibc's
    Spinpark,
}

/// How much.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum DetailChoice {
    /// Nothing: the recorder is there and lets every call through
    Off,
    /// Waits, who caused them, and for how long locks were held that somebody has waited for
    Contended,
    /// Besides, how often each lock is taken, and for how long by samples
    Sampled,
    /// Every acquisition, counted and timed, at its place
    Full,
}

impl DetailChoice {
    /// As the recorder knows it.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::Contended => "contended",
            Self::Sampled => "sampled",
            Self::Full => "full",
        }
    }
}

/// What a table is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ViewChoice {
    /// The answer, the locks, who blocks whom
    Summary,
    /// Lock by lock
    Locks,
    /// Locks that were created at the same place, read as one
    Classes,
    /// Who waits for whom
    Blocking,
    /// Who waits with another lock held
    HeldWaits,
    /// Place by place
    Sites,
    /// Place by place, with the columns of FreeBSD's LOCK_PROFILING
    Freebsd,
    /// Condition variables
    Condvars,
    /// What became of those who had to wait
    Outcomes,
}

/// `500ms`, `10s`, `2min`; a number alone is seconds.
fn parse_time(text: &str) -> Result<Duration, String> {
    let digits = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let seconds = match unit.trim() {
        "ms" => 1e-3,
        "" | "s" => 1.0,
        "min" | "m" => 60.0,
        "h" => 3600.0,
        _ => return Err(format!("`{unit}` is no unit of time here; use ms, s, min or h, as in 10s")),
    };
    let number: f64 = number.parse().map_err(|_| "a number and a unit are needed, as in 10s".to_owned())?;
    Duration::try_from_secs_f64(number * seconds)
        .ok()
        .filter(|time| !time.is_zero())
        .ok_or_else(|| "the time must be longer than 0".to_owned())
}

/// The smallest bound: less has no room for one process.
const LEAST_SIZE: u64 = 1 << 20;

/// `64MiB`, `1GiB`; a number alone is bytes.
fn parse_size(text: &str) -> Result<u64, String> {
    let digits = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let unit = match unit.trim().to_ascii_lowercase().as_str() {
        "" | "b" => 1.0,
        "k" | "kb" | "kib" => 1024.0,
        "m" | "mb" | "mib" => 1024.0 * 1024.0,
        "g" | "gb" | "gib" => 1024.0 * 1024.0 * 1024.0,
        other => return Err(format!("`{other}` is no unit of size here; use KiB, MiB or GiB, as in 64MiB")),
    };
    let number: f64 = number.parse().map_err(|_| "a number and a unit are needed, as in 64MiB".to_owned())?;
    let size = number * unit;
    if size < LEAST_SIZE as f64 {
        return Err("less than 1MiB has no room for one process".to_owned());
    }
    Ok(size.min(u64::MAX as f64 / 4.0) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times() {
        assert_eq!(parse_time("500ms"), Ok(Duration::from_millis(500)));
        assert_eq!(parse_time("10s"), Ok(Duration::from_secs(10)));
        assert_eq!(parse_time("1.5"), Ok(Duration::from_millis(1500)));
        assert_eq!(parse_time("2min"), Ok(Duration::from_secs(120)));
        for bad in ["", "s", "10 parsecs", "0s", "-1s", "1e400s"] {
            assert!(parse_time(bad).is_err(), "{bad}");
        }
    }
    #[test]
    fn sizes() {
        assert_eq!(parse_size("64MiB"), Ok(64 << 20));
        assert_eq!(parse_size("1.5g"), Ok(3 << 29));
        assert_eq!(parse_size("2048 kb"), Ok(2 << 20));
        assert_eq!(parse_size("1048576"), Ok(1 << 20));
        for bad in ["", "MiB", "10 sacks", "0", "-1MiB", "1KiB"] {
            assert!(parse_size(bad).is_err(), "{bad}");
        }
    }
}
