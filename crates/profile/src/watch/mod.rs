//! What the command sees of a program in `/proc` while it runs.
//!
//! A recording has what threads waited for as far as it was recorded. Whether they ran meanwhile, or waited
//! for something else, and whether a process was recorded at all, only an observer can tell. It is a thread
//! of the command that samples all processes of the run from time to time, and takes at most 1 % of a CPU
//! and 3 ms by its own measurement.
//!
//! | module        | what it has                                                          |
//! |---------------|----------------------------------------------------------------------|
//! | `observer`    | sampling all processes of a run                                      |
//! | `task`        | a thread: its time, and what it is blocked in                        |
//! | `lock_waits`  | threads that sleep at a lock of glibc's own, with their stacks       |
//! | `image`       | a program: whether the recorder is in it, and if not, why            |
//! | `observation` | the result, its file, and how it becomes part of the profiles        |
//! | `glibc`       | the locks that these were, as locks of a profile                     |

mod glibc;
mod image;
mod lock_waits;
mod observation;
mod observer;
mod task;

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread::{self, JoinHandle};

use rustix::process::Pid;

use self::observer::{Observer, own_children};

pub use self::glibc::{GlibcLock, GlibcWait};
pub use self::observation::{FILE, Observation, Program, Programs};
pub(crate) use self::task::{Sched, Stat};

/// An observer that has not begun.
#[derive(Debug)]
pub struct Prepared {
    library: String,
    /// Children of this process that are not the run's.
    strangers: BTreeSet<u32>,
}

/// Makes this process the parent of the daemons that the program leaves, so that they are seen, and notes
/// which children it has already. To be called before the program is started. `library`: the recorder's file.
#[must_use]
pub fn prepare(library: &Path) -> Prepared {
    // Without it (in a sandbox), daemons are not seen; the rest is.
    let _ = rustix::process::set_child_subreaper(Pid::from_raw(1));
    let library = library.file_name().unwrap_or_default().to_string_lossy().into_owned();
    Prepared { library, strangers: own_children().into_iter().collect() }
}

impl Prepared {
    /// Begins to observe process `pid`, a child of this one, and all below it.
    #[must_use]
    pub fn start(self, pid: u32) -> Watch {
        let (stop, stopped) = mpsc::channel();
        let mut observer = Observer::new(pid, self.library, self.strangers);
        let run = move || {
            observer.sample();
            // It ends when the other end goes.
            let goes_on = |pause| stopped.recv_timeout(pause) == Err(RecvTimeoutError::Timeout);
            while observer.pause(goes_on) {
                observer.sample();
            }
            observer.finish()
        };
        let thread = thread::Builder::new().name(String::from("observer")).spawn(run).ok();
        Watch { thread, stop }
    }
}

/// An observer at work.
#[derive(Debug)]
pub struct Watch {
    /// None if no thread could be made.
    thread: Option<JoinHandle<Observation>>,
    stop: Sender<()>,
}

impl Watch {
    /// Ends it, after the program's end; none if there was no thread or no `/proc`.
    #[must_use]
    pub fn finish(self) -> Option<Observation> {
        drop(self.stop);
        // A program that ended before the first sample was observed, too: for too short a time to tell
        // anything.
        let has_proc = Path::new("/proc/self/stat").exists();
        self.thread?.join().ok().filter(|seen| has_proc || !seen.programs.kept.is_empty())
    }
}
