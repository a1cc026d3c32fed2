//! How a mutant's failure is observed.
//!
//! A model that fails inside loom may end the process (a second panic while the other threads of the
//! execution are unwound). So a mutant's model runs in a child process: the test program again, with this one
//! test.

use std::panic;
use std::process::{Command, Stdio};
use std::sync::Once;
use std::time::{Duration, Instant};

use spinpark_sim::check::Applied;

use crate::Breaks;

/// Names the one test whose model is to run, in the child.
const CHILD: &str = "SPINPARK_VERIFY_MUTANT";

/// How much CPU time that takes at most: how long it takes depends on what else runs on the machine.
const MOST_CPU_TIME: Duration = Duration::from_secs(120);
/// A child that sleeps takes none.
const TIMEOUT: Duration = Duration::from_secs(3_600);

/// What the child says of an execution that fails without a fault of the mutant.
const NOT_APPLIED: &str = "a fault of the mutant was not applied in the execution that failed";

/// Asserts that a model fails, and says why: `rejected!(test, breaks, reason, model)`, with the name of the calling
/// test as a `&str`, what the mutant [`breaks`](crate::breaks), and the model as a closure.
///
/// # Panics
///
/// If the model is accepted, if it fails for another reason, if it fails in an execution in which a fault of the
/// machine was not applied, or if it takes too much CPU time.
#[macro_export]
macro_rules! rejected {
    ($test:expr, $breaks:expr, $reason:expr, $model:expr $(,)?) => {
        $crate::assert_rejected(module_path!(), $test, $breaks, $reason, $model)
    };
}

/// What [`rejected!`](crate::rejected!) does; `module` is the path of the module that has the test.
#[doc(hidden)]
pub fn assert_rejected<R>(module: &str, test: &str, breaks: Breaks, reason: &str, model: impl FnOnce() -> R) {
    // The test program's own name comes first, and is no part of the name that the program knows the test by.
    let (_, module) = module.split_once("::").expect("a module of the test program");
    let test = format!("{module}::{test}");
    if std::env::var_os(CHILD).is_some_and(|name| name == *test) {
        say_what_was_applied();
        drop(model());
        return;
    }
    let output = run_child(&test);
    let mutant = format!("the mutant `{test}`, which breaks {breaks},");
    assert!(!output.accepted, "{mutant} was accepted:\n{}", output.text);
    assert!(output.text.contains(reason), "{mutant} failed, but not because of {reason:?}:\n{}", output.text);
    assert!(!output.text.contains(NOT_APPLIED), "{mutant} failed, but {NOT_APPLIED}:\n{}", output.text);
    let applied = output.text.lines().find_map(|line| line.strip_prefix(APPLIED)).unwrap_or_default();
    eprintln!("{mutant} was rejected: {reason}{applied}");
}

/// Begins the line in which the child says how often the faults were applied.
const APPLIED: &str = "in the execution that failed";

/// The first panic is that of the execution that fails: a fault that was not applied in it is not the reason.
fn say_what_was_applied() {
    let usual = panic::take_hook();
    panic::set_hook(Box::new(move |info| {
        static FIRST: Once = Once::new();
        FIRST.call_once(|| {
            let applied = Applied::in_run();
            eprintln!("\n{APPLIED}: {applied}");
            if !applied.is_complete() {
                eprintln!("{NOT_APPLIED}");
            }
        });
        usual(info);
    }));
}

/// The CPU time that a child has used, which has not been waited for; 0 if it has no clock any more.
fn cpu_time(child: u32) -> Duration {
    let mut clock = 0;
    let mut used = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the place is live, and nothing else is written.
    let is_known = unsafe { libc::clock_getcpuclockid(child as libc::pid_t, &raw mut clock) } == 0;
    // SAFETY: the same.
    if is_known && unsafe { libc::clock_gettime(clock, &raw mut used) } == 0 {
        Duration::new(used.tv_sec as u64, used.tv_nsec as u32)
    } else {
        Duration::ZERO
    }
}

struct Output {
    accepted: bool,
    text: String,
}

fn run_child(test: &str) -> Output {
    let program = std::env::current_exe().expect("the test program has a path");
    let log = std::env::temp_dir().join(format!("spinpark-verify-{}-{test}.log", std::process::id()));
    let file = std::fs::File::create(&log).expect("the temporary directory can be written to");
    let copy = file.try_clone().expect("a file can be shared");
    let mut child = Command::new(program)
        .args([test, "--exact", "--nocapture", "--test-threads=1"])
        .env(CHILD, test)
        .stdin(Stdio::null())
        .stdout(file)
        .stderr(copy)
        .spawn()
        .expect("the test program runs again");
    let start = Instant::now();
    let status = loop {
        if let Some(status) = child.try_wait().expect("a child can be waited for") {
            break status;
        }
        if cpu_time(child.id()) > MOST_CPU_TIME || start.elapsed() > TIMEOUT {
            child.kill().expect("a child can be killed");
            child.wait().expect("a killed child ends");
            panic!(
                "the mutant `{test}` was neither accepted nor rejected within {MOST_CPU_TIME:?} of CPU time"
            );
        }
        std::thread::sleep(Duration::from_millis(5));
    };
    let bytes = std::fs::read(&log).unwrap_or_default();
    let _ = std::fs::remove_file(&log);
    Output { accepted: status.success(), text: String::from_utf8_lossy(&bytes).into_owned() }
}
