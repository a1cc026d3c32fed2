//! One seed is one run, whatever thread it runs on, and wherever the allocator puts things.

use std::process::Command;

use spinpark_sim::locks::locks;
use spinpark_sim::machine::Machine;
use spinpark_sim::workload::{Report, Setting};

/// A run of each kind of lock, after some allocations that shift what comes after them.
fn runs(shift: usize) -> Vec<Report> {
    let mut shifts = Vec::new();
    let mut run = |lock: &str, workload: &str| {
        shifts.push(vec![0_u8; 16 * shift]);
        let mut setting = Setting::new(Machine::plain(4), lock, workload, 6);
        setting.for_ns = 300_000;
        if workload == "condvar-ping-pong" {
            setting.threads = 2;
        }
        setting.run().unwrap()
    };
    let mut all = Vec::new();
    for lock in locks() {
        for kind in lock.kinds() {
            let workload = match kind {
                "mutex" => "random-32",
                "read-write lock" => "mixed-10",
                _ => "condvar-ping-pong",
            };
            all.push(run(lock.name, workload));
        }
    }
    all
}

#[test]
fn everywhere_the_same() {
    let first = runs(0);
    let others: Vec<_> = (1..6).map(|shift| std::thread::spawn(move || runs(shift))).collect();
    for other in others {
        for (one, another) in first.iter().zip(other.join().unwrap()) {
            assert!(*one == another, "{} × {}: {one:#?} is not {another:#?}", one.lock, one.workload);
        }
    }
}

/// In the child: it only says what it saw.
const CHILD: &str = "SPINPARK_DETERMINISTIC_CHILD";

/// Another process has its stacks, its heap and its code elsewhere.
#[test]
fn in_every_process_the_same() {
    let mine = serde_json::to_string(&runs(0)).expect("reports can be written");
    if std::env::var_os(CHILD).is_some() {
        println!("{mine}");
        return;
    }
    let tests = std::env::current_exe().expect("the test has a path");
    let mut child = Command::new(tests);
    child.args(["deterministic::in_every_process_the_same", "--exact", "--nocapture", "--test-threads=1"]);
    let output = child.env(CHILD, "1").output().expect("the test runs again");
    let theirs = String::from_utf8_lossy(&output.stdout);
    assert!(theirs.contains(&mine), "another process saw something else");
}
