//! ThreadSanitizer sees the locks: it is silent about programs that are right, and reports those that are not.

use std::path::Path;

use spinpark_fixtures::Run;

use crate::library::{compiles, is_installed, linked};

const SILENT: [&str; 5] = ["mutex", "recursive", "shared", "condition", "objects"];
const REPORTED: [(&str, &str); 4] = [
    ("race", "data race"),
    ("race-of-readers", "data race"),
    ("bad-order", "lock-order-inversion"),
    ("bad-unlock", "unlock of an unlocked mutex"),
];

#[test]
fn sees_the_locks() {
    for compiler in ["g++", "clang++"] {
        let flags = ["-std=c++17", "-fsanitize=thread"];
        if !is_installed(compiler, "sees_the_locks") {
            continue;
        }
        let directory = tempfile::tempdir().unwrap();
        let nothing = directory.path().join("nothing.cpp");
        std::fs::write(&nothing, "int main() {}\n").unwrap();
        let program = directory.path().join("nothing");
        let [source, to] = [&nothing, &program].map(|path| path.to_str().unwrap());
        if let Err(error) = compiles(compiler, &[&flags[..], &[source, "-o", to]].concat()) {
            eprintln!("skipped sees_the_locks with {compiler}: no ThreadSanitizer: {error}");
            continue;
        }
        // Without random addresses if possible: with many random bits, older ThreadSanitizers do not start.
        let fixed = is_installed("setarch", "fixed addresses")
            && Run::new("setarch").arg("-R").arg(&program).outcome().success();
        let run = |program: &Path| {
            if fixed { Run::new("setarch").arg("-R").arg(program) } else { Run::new(program) }
        };
        let result = run(&program).outcome();
        if !result.success() {
            eprintln!("skipped sees_the_locks with {compiler}: it does not run here: {}", result.report());
            continue;
        }
        let program = linked(compiler, "tsan.cpp", &flags, directory.path());
        for case in SILENT {
            let result = run(&program).arg(case).succeed();
            assert_eq!(result.stderr_text(), "", "{compiler} {case}");
        }
        for (case, report) in REPORTED {
            let result = run(&program).arg(case).outcome();
            // Its exit code if it has reported anything.
            assert_eq!(result.status.code(), Some(66), "{compiler} {case}: {}", result.report());
            assert!(result.stderr_text().contains(report), "{compiler} {case}: {}", result.report());
        }
    }
}
