//! `spinpark profile`, `record`, `report`, `diff`, `top`.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::{Args, Parser, ValueEnum};

use crate::line::format::{self, Format};
use crate::line::numbers::{ROUNDS, whole};
use crate::line::units::{between, duration, from_start, size};

const PROFILE_EXAMPLES: &str = "\
Examples:
  spinpark profile -- ./server --port 8080          the lock that it waits for, and its holder
  spinpark profile --html report.html -- ./job      the same as a page to click through
  spinpark profile --detail full -- ./job           every acquisition counted and timed; slower
  spinpark profile --locks spinpark -- ./job        on spinpark's locks, with how each wait ended
  spinpark profile --slower-than 20ms -- ./server   each wait that is longer, one by one, too
  spinpark profile --duration 10s -- ./server       ends the server after ten seconds
  spinpark profile --overhead -- ./job              what recording costs on this very program
  spinpark profile --pid 4711 --for 30s             a process that runs: sampled, not recorded
  spinpark profile --dormant -- ./server            records only when `spinpark record` asks for it

The program keeps its terminal, input, output and exit status; the report goes to standard error. The recording is kept in a directory, even if the program is killed; `spinpark report DIR` shows it again.";

/// Find out which locks a program waits for, and which threads hold them
///
/// No rebuild and no privileges are needed: a preloaded library records waits for pthread and C11 locks and
/// condition variables, for semaphores, and for the locks of runtimes that sleep by libc's `syscall`: Rust's,
/// C++20's, GLib's, Qt's and others. Signals to this command are forwarded to the program. It ends as the
/// program does: with its exit status, or by the same signal.
#[derive(Debug, Args)]
#[command(after_long_help = PROFILE_EXAMPLES)]
pub(crate) struct Profile {
    /// The locks that the program uses
    #[arg(long, value_enum, default_value_t = LocksChoice::Glibc)]
    pub(crate) locks: LocksChoice,

    /// What the recorder counts and times
    #[arg(long, value_enum, default_value_t = DetailChoice::Contended)]
    pub(crate) detail: DetailChoice,

    /// Where the recording is kept [default: ./spinpark-profile, or -2, -3 … if that is there already]
    #[arg(short, long, value_name = "DIR")]
    pub(crate) output: Option<PathBuf>,

    /// End the program after this time (SIGTERM, and SIGKILL ten seconds later): 500ms, 10s, 2min
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub(crate) duration: Option<Duration>,

    /// Keep each wait that is longer than this, one by one: 500us, 20ms; at least 100us
    ///
    /// The longest waits of each thread are kept in any case.
    #[arg(long, value_name = "TIME", value_parser = between("100us", "1h"))]
    pub(crate) slower_than: Option<Duration>,

    /// Disk space for the recordings of all processes together: 64MiB, 1GiB
    ///
    /// What does not fit is not recorded; processes that have not waited come last.
    #[arg(long, value_name = "SIZE", default_value = "256MiB", value_parser = size)]
    pub(crate) max_size: u64,

    /// Give the program the process id of this command; the report may come after the prompt
    ///
    /// The program keeps it in any case if LISTEN_PID or WATCHDOG_PID names it, or NOTIFY_SOCKET is set: a
    /// service manager knows the program by it.
    #[arg(long, hide_short_help = true)]
    pub(crate) keep_pid: bool,

    /// Measure what recording costs: without it, and with each detail
    ///
    /// The program runs several times, in shuffled rounds.
    #[arg(long)]
    pub(crate) overhead: bool,

    /// Rounds for --overhead, six runs each; at least 6
    #[arg(long, hide_short_help = true, value_name = "N", default_value_t = 6, requires = "overhead", value_parser = whole::<usize>(ROUNDS, 10))]
    pub(crate) rounds: usize,

    #[command(flatten)]
    pub(crate) show: Showing,

    /// Sample this process instead, which runs already: it is not stopped, and nothing is loaded into it
    #[arg(long, value_name = "PID", value_parser = whole::<u32>(1..=u64::from(u32::MAX), 4711),
        conflicts_with_all = ["locks", "detail", "duration", "slower_than", "keep_pid", "overhead", "program"])]
    pub(crate) pid: Option<u32>,

    /// With --pid: for so long; Ctrl-C ends it earlier [default: 10s]
    #[arg(long = "for", hide_short_help = true, value_name = "TIME", requires = "pid", conflicts_with = "program", value_parser = duration)]
    pub(crate) time: Option<Duration>,

    /// Record nothing until `spinpark record PID` asks for it
    ///
    /// This command becomes the program: same process, terminal and signals.
    #[arg(long, conflicts_with_all = ["detail", "output", "duration", "slower_than", "keep_pid", "overhead", "pid", "view", "rows",
        "process", "html", "format", "json", "folded", "slow", "perfetto", "speedscope", "waits", "pprof"])]
    pub(crate) dormant: bool,

    /// The program and its arguments
    #[arg(required_unless_present = "pid", trailing_var_arg = true, value_name = "PROG")]
    pub(crate) program: Vec<OsString>,
}

impl Profile {
    /// What `profile` does with a program if no other option is given.
    pub(crate) fn of(program: &[OsString], output: Option<PathBuf>) -> Self {
        /// Lets clap fill in the defaults.
        #[derive(Parser)]
        struct Defaults {
            #[command(flatten)]
            profile: Profile,
        }
        let words = ["spinpark", "--"].map(OsString::from);
        let Defaults { profile } = Defaults::parse_from(words.iter().chain(program));
        Self { output, ..profile }
    }
}

const RECORD_EXAMPLES: &str = "\
Examples:
  spinpark record 4711 --for 30s                      the locks that it waits for, and their holders
  spinpark record 4711 --slower-than 20ms             until Ctrl-C; also each longer wait
  spinpark record 4711 --for 10s --html report.html   the same as a page to click through
  sudo spinpark record 4711 --for 30s                 another user's process

The process was started by `spinpark profile --dormant -- PROGRAM`, or with libspinpark_profiler.so in LD_PRELOAD and a directory in SPINPARK_PROFILE_DORMANT. It is not stopped and gets no signal. It can be recorded any number of times; in between it records nothing, and its locks cost what they cost without spinpark.";

/// Record a dormant process for a while, and report
///
/// The report and its files are those of `spinpark profile`. A process that was started without the recorder can be
/// sampled: `spinpark profile --pid PID`.
#[derive(Debug, Args)]
#[command(after_long_help = RECORD_EXAMPLES)]
pub(crate) struct Record {
    /// End the recording after this time: 500ms, 30s, 2min [default: at Ctrl-C]
    #[arg(long = "for", value_name = "TIME", value_parser = duration)]
    pub(crate) time: Option<Duration>,

    /// Keep each wait that is longer than this, one by one: 500us, 20ms; at least 100us
    ///
    /// The longest waits of each thread are kept in any case.
    #[arg(long, value_name = "TIME", value_parser = between("100us", "1h"))]
    pub(crate) slower_than: Option<Duration>,

    /// Where the recording is kept [default: ./spinpark-profile, or -2, -3 … if that is there already]
    #[arg(short, long, value_name = "DIR")]
    pub(crate) output: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) show: Showing,

    /// The dormant process to record
    #[arg(value_name = "PID", value_parser = whole::<u32>(1..=u64::from(u32::MAX), 4711))]
    pub(crate) pid: u32,
}

const REPORT_EXAMPLES: &str = "\
Examples:
  spinpark report spinpark-profile                      what `profile` printed
  spinpark report spinpark-profile --view blocking      which threads wait for which
  spinpark report spinpark-profile --html report.html   a page with a flame graph
  spinpark report spinpark-profile --view slow          the longest waits, one by one
  spinpark report spinpark-profile --from 2s --to 5s    what threads waited for then
  spinpark report spinpark-profile --whatif whatif.json    with what `spinpark whatif` has measured
  spinpark report spinpark-profile --folded | flamegraph.pl > waits.svg
  spinpark report spinpark-profile --pprof waits.pb.gz
  spinpark report web-1 web-2 web-3                     recordings of many processes, added up
  go tool pprof -http : -tagleaf lock waits.pb.gz        each lock, below its waiters";

/// Show a recorded profile again, add several up, or convert them for other tools
///
/// Of several recordings, the processes of each build of a program are added up, lock by lock.
#[derive(Debug, Args)]
#[command(after_long_help = REPORT_EXAMPLES)]
pub(crate) struct Report {
    /// What `spinpark profile` wrote: a directory, or one file of it; a result of `compare --json`; or a core dump
    ///
    /// Several are added up, as is a directory of recordings. Behind a core dump: its program, if that is not where
    /// it was.
    #[arg(value_name = "DIR", required = true)]
    pub(crate) recordings: Vec<PathBuf>,

    /// Add up the processes of one recording, too
    #[arg(long, hide_short_help = true)]
    pub(crate) merge: bool,

    /// Only what threads waited for from this time after the start on: 500ms, 2s, 1min
    #[arg(long, value_name = "TIME", value_parser = from_start)]
    pub(crate) from: Option<Duration>,

    /// Only what threads waited for until this time after the start
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub(crate) to: Option<Duration>,

    /// What `spinpark whatif --json FILE` has measured of its locks, for the list of what to do first
    ///
    /// May be given several times. Locks that were measured to cost time come first there, and those whose shorter
    /// sections bring next to nothing last.
    #[arg(long, value_name = "FILE")]
    pub(crate) whatif: Vec<PathBuf>,

    #[command(flatten)]
    pub(crate) show: Showing,
}

impl Report {
    /// The first of what is to be shown.
    pub(crate) fn first(&self) -> &Path {
        self.recordings.first().map_or(Path::new(""), PathBuf::as_path)
    }

    /// An option that is given and makes sense for a recording only.
    pub(crate) fn only_for_recordings(&self) -> Option<&'static str> {
        let Showing { html, format, json, folded, slow, perfetto, speedscope, waits, pprof, process, .. } =
            &self.show;
        let given = [
            ("--merge", self.merge),
            ("--from", self.from.is_some()),
            ("--to", self.to.is_some()),
            ("--whatif", !self.whatif.is_empty()),
            ("--process", process.is_some()),
            ("--html", html.is_some()),
            ("--format", format.is_some()),
            ("--json", json.is_some()),
            ("--folded", folded.is_some()),
            ("--slow", slow.is_some()),
            ("--perfetto", perfetto.is_some()),
            ("--speedscope", speedscope.is_some()),
            ("--waits", waits.is_some()),
            ("--pprof", pprof.is_some()),
        ];
        given.into_iter().find(|(_, given)| *given).map(|(option, _)| option)
    }
}

/// What is shown of a profile, and where it goes.
#[derive(Debug, Args)]
pub(crate) struct Showing {
    /// The tables to show
    #[arg(long, value_enum, default_value_t = ViewChoice::Summary)]
    pub(crate) view: ViewChoice,

    /// Rows in each table [default: 10, or fewer if the summary would not fit a screen]
    #[arg(short = 'n', long, value_name = "N", value_parser = whole::<usize>(1..=u64::MAX, 20))]
    pub(crate) rows: Option<usize>,

    /// Show only this process: its id, or the name of its recording [default: the one that waited most]
    #[arg(long, value_name = "PID")]
    pub(crate) process: Option<String>,

    /// Write a page for a browser
    #[arg(long, value_name = "FILE")]
    pub(crate) html: Option<PathBuf>,

    /// Format of standard output [default: table]
    #[arg(long, value_name = "FORMAT", value_parser = format::parser([Format::Table, Format::Json]))]
    pub(crate) format: Option<Format>,

    #[arg(long, value_name = "FILE", num_args = 0..=1, default_missing_value = "-", help = format::JSON_ONLY)]
    pub(crate) json: Option<PathBuf>,

    /// Write folded stacks of waiters for flame graphs; without a file: to standard output
    ///
    /// Each stack has its lock and the time waited in µs.
    #[arg(long, value_name = "FILE", num_args = 0..=1, default_missing_value = "-")]
    pub(crate) folded: Option<PathBuf>,

    /// Write the longest waits one by one, as lines of JSON; without a file: to standard output
    #[arg(long, value_name = "FILE", num_args = 0..=1, default_missing_value = "-")]
    pub(crate) slow: Option<PathBuf>,

    /// Write the longest waits as a timeline for Perfetto, by the wall clock
    #[arg(long, value_name = "FILE", hide_short_help = true)]
    pub(crate) perfetto: Option<PathBuf>,

    /// Write the longest waits as a timeline for speedscope
    #[arg(long, value_name = "FILE", hide_short_help = true)]
    pub(crate) speedscope: Option<PathBuf>,

    /// A table of functions that identify what a thread waits for, read before the built-in one
    ///
    /// For locks and queues of your own that sleep at futexes or semaphores; see the manual, "Whose wait is
    /// seen".
    #[arg(long, value_name = "FILE", hide_short_help = true)]
    pub(crate) waits: Option<PathBuf>,

    /// Write contentions and delays for `go tool pprof`, each with its lock as the label `lock`
    #[arg(long, value_name = "FILE")]
    pub(crate) pprof: Option<PathBuf>,
}

const DIFF_EXAMPLES: &str = "\
Examples:
  spinpark profile --output before -- ./job
  spinpark profile --output after -- ./job-with-two-locks
  spinpark diff before after";

/// Compare two profiles, lock by lock
#[derive(Debug, Args)]
#[command(after_long_help = DIFF_EXAMPLES)]
pub(crate) struct Diff {
    /// The recording to compare with: a directory, or one file of it
    #[arg(value_name = "BEFORE")]
    pub(crate) before: PathBuf,

    /// The recording that is compared: a directory, or one file of it
    #[arg(value_name = "AFTER")]
    pub(crate) after: PathBuf,

    /// Rows in each table
    #[arg(short = 'n', long, value_name = "N", default_value_t = 10, value_parser = whole::<usize>(1..=u64::MAX, 20))]
    pub(crate) rows: usize,

    /// Format of standard output [default: table]
    #[arg(long, value_name = "FORMAT", value_parser = format::parser([Format::Table, Format::Json]))]
    pub(crate) format: Option<Format>,

    #[arg(long, value_name = "FILE", num_args = 0..=1, default_missing_value = "-", help = format::JSON_ONLY)]
    pub(crate) json: Option<PathBuf>,
}

const TOP_EXAMPLES: &str = "\
Examples:
  spinpark top -- ./server   starts it, and shows once a second where it waits
  spinpark top 4711          a process that runs: its recording, or else samples
  spinpark top --once 4711   one update, for scripts

Ctrl-C also ends a program that `top` started.";

/// Watch where a running program waits
///
/// A process that was started by `spinpark profile`, `spinpark top`, or with the profiler in LD_PRELOAD keeps its
/// tables in a file that is mapped: watching it needs no privileges. Any other one is sampled, as by `spinpark
/// profile --pid`. Neither stops it.
#[derive(Debug, Args)]
#[command(after_long_help = TOP_EXAMPLES)]
pub(crate) struct Top {
    /// Time between two updates: 500ms, 1s
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = duration)]
    pub(crate) interval: Duration,

    /// Number of updates [default: until the program ends]
    #[arg(long, alias = "looks", value_name = "N", value_parser = whole::<u64>(1..=u64::MAX, 10))]
    pub(crate) updates: Option<u64>,

    /// One update, as plain text
    #[arg(long, conflicts_with = "updates")]
    pub(crate) once: bool,

    /// The locks of a program that `top` starts
    #[arg(long, value_enum, default_value_t = LocksChoice::Glibc)]
    pub(crate) locks: LocksChoice,

    /// What the recorder counts and times in a program that `top` starts
    #[arg(long, value_enum, default_value_t = DetailChoice::Contended)]
    pub(crate) detail: DetailChoice,

    /// Rows in the table
    #[arg(short = 'n', long, value_name = "N", default_value_t = 20, value_parser = whole::<usize>(1..=u64::MAX, 20))]
    pub(crate) rows: usize,

    /// A process id; or, after `--`, a program and its arguments
    #[arg(required = true, trailing_var_arg = true, value_name = "PID | PROG")]
    pub(crate) program: Vec<OsString>,
}

/// Which locks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum LocksChoice {
    /// The program's own locks
    Glibc,
    /// spinpark's drop-in replaces them
    Spinpark,
}

/// How much.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum DetailChoice {
    /// Nothing: the recorder is loaded and passes every call on
    Off,
    /// Waits, the threads that caused them, and how long contended locks were held
    Contended,
    /// As contended, with how often each lock is taken, and samples of how long it is held
    Sampled,
    /// Every acquisition, counted and timed by call site
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
    /// One screen: the summary, the locks, which threads block which
    Summary,
    /// The summary and every table
    All,
    /// What to do first, lock by lock
    Steps,
    /// Lock by lock
    Locks,
    /// Locks with the same creation site, added up
    Classes,
    /// What the time waited was: held by other threads, free, or not known
    Split,
    /// Which threads wait for which
    Blocking,
    /// Waits with another lock held
    HeldWaits,
    /// How waiting is spread over processes and hosts, of recordings that are added up
    Processes,
    /// Call site by call site
    Sites,
    /// Call site by call site, with the columns of FreeBSD's LOCK_PROFILING
    Freebsd,
    /// Condition variables
    Condvars,
    /// Waits for work, events and other threads, and waits of unknown purpose
    Others,
    /// The longest waits, one by one
    Slow,
    /// How waits ended
    Outcomes,
}
