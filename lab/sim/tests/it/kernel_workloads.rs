//! The kernel's mutex in its workloads: what the fix changes, on a small machine, by count.

use spinpark_sim::machine::Machine;
use spinpark_sim::workload::{Report, Setting};

fn run(machine: &str, lock: &str, workload: &str, threads: u32) -> Report {
    let machine = Machine::load(machine).unwrap();
    let mut setting = Setting::new(machine, lock, workload, threads);
    setting.for_ns = 2_000_000;
    let report = setting.run().unwrap();
    assert_eq!(report.outcome.failure, None);
    assert!(report.total() > 0);
    report
}

#[test]
fn workloads_of_the_kernel_make_no_futex_calls() {
    for workload in ["creat", "fserver", "select"] {
        for lock in ["classic-mutex-fixed", "classic-mtx", "spinpark"] {
            assert_eq!(run("core2-4", lock, workload, 8).outcome.counts.futex_calls, 0, "{workload} {lock}");
        }
    }
}

#[test]
fn on_one_cpu_the_fix_changes_nothing() {
    let [old, fixed] =
        ["classic-mutex-2.6.34", "classic-mutex-fixed"].map(|lock| run("up", lock, "creat", 4));
    assert_eq!(old.operations, fixed.operations);
}

#[test]
fn spinners_that_leave_move_fewer_lines() {
    let [old, fixed] =
        ["classic-mutex-2.6.34", "classic-mutex-fixed"].map(|lock| run("westmere-12", lock, "creat", 24));
    let moves = |report: &Report| report.outcome.counts.moves() as f64 / report.total() as f64;
    assert!(moves(&fixed) < moves(&old), "{} and {}", moves(&fixed), moves(&old));
}
