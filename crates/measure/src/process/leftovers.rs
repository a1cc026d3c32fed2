//! Processes that outlive the program that started them: daemons, and children in sessions of their own.
//!
//! As a *subreaper* we inherit them when their parent ends, and can end them too. This is for a command that
//! has no children but the measured ones; a process with other children must not call [`adopt_orphans`].

use std::fs;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitOptions};

static ADOPTING: AtomicBool = AtomicBool::new(false);

/// How long killed processes may take to disappear.
const PATIENCE: Duration = Duration::from_secs(5);

/// Makes this process the parent of every orphan below it; from now on, they end with each run.
pub fn adopt_orphans() {
    if rustix::process::set_child_subreaper(rustix::process::Pid::from_raw(1)).is_ok() {
        ADOPTING.store(true, Ordering::Relaxed);
    }
}

/// Undoes it: this process becomes another program.
pub fn leave_orphans() {
    if ADOPTING.swap(false, Ordering::Relaxed) {
        let _ = rustix::process::set_child_subreaper(None);
    }
}

/// Kills and reaps whatever is still there.
pub(super) fn sweep() {
    if !ADOPTING.load(Ordering::Relaxed) {
        return;
    }
    let deadline = Instant::now() + PATIENCE;
    loop {
        match rustix::process::wait(WaitOptions::NOHANG) {
            Err(Errno::INTR) | Ok(Some(_)) => {}
            Ok(None) if Instant::now() < deadline => {
                // Killing a process hands us its children: that is why this is a loop.
                for child in children() {
                    let _ = rustix::process::kill_process(child, Signal::KILL);
                }
                thread::sleep(Duration::from_millis(1));
            }
            Ok(None) | Err(_) => return,
        }
    }
}

/// Our children, as the kernel lists them per thread.
fn children() -> Vec<Pid> {
    let Ok(tasks) = fs::read_dir("/proc/self/task") else { return Vec::new() };
    let lists = tasks.flatten().filter_map(|task| fs::read_to_string(task.path().join("children")).ok());
    let text: String = lists.collect();
    text.split_whitespace().filter_map(|pid| Pid::from_raw(pid.parse().ok()?)).collect()
}
