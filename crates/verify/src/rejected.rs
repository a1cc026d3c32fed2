//! How a mutant's failure is observed.
//!
//! A model that fails inside loom may end the process (a second panic while the other threads of the execution are
//! unwound). So a mutant's model runs in a child process: the test program again, with this one test.

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Names the one test whose model is to run, in the child.
const CHILD: &str = "SPINPARK_VERIFY_MUTANT";

const TIMEOUT: Duration = Duration::from_secs(120);

/// Asserts that `model` fails, and says `reason` when it does. `test` is the name of the calling test.
///
/// # Panics
///
/// If the model is accepted, if it fails for another reason, or if it takes too long.
pub fn rejected(test: &str, reason: &str, model: impl FnOnce()) {
    if std::env::var_os(CHILD).is_some_and(|name| name == test) {
        model();
        return;
    }
    let output = run_child(test);
    assert!(!output.accepted, "the mutant `{test}` was accepted:\n{}", output.text);
    assert!(
        output.text.contains(reason),
        "the mutant `{test}` failed, but not because of {reason:?}:\n{}",
        output.text
    );
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
        if start.elapsed() > TIMEOUT {
            child.kill().expect("a child can be killed");
            child.wait().expect("a killed child ends");
            panic!("the mutant `{test}` was neither accepted nor rejected within {TIMEOUT:?}");
        }
        std::thread::sleep(Duration::from_millis(5));
    };
    let bytes = std::fs::read(&log).unwrap_or_default();
    let _ = std::fs::remove_file(&log);
    Output { accepted: status.success(), text: String::from_utf8_lossy(&bytes).into_owned() }
}
