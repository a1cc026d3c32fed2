//! The programs in `posix/` under the profiler: with everything recorded, each keeps its promises as it does
//! without.

use std::time::Duration;

use spinpark_testkit::profiled::{Recording, recordings};
use spinpark_testkit::{Configuration, Run, compile_c};

const WATCHDOG: Duration = Duration::from_secs(300);

fn run(program: &str, configuration: Configuration, detail: &str) {
    let directory = tempfile::tempdir().expect("a directory");
    let argument = (program == "stress").then_some("16");
    Run::new(compile_c(format!("posix/{program}.c"), &[]))
        .args(argument)
        .configuration(configuration)
        .profiled(directory.path(), detail)
        .env("SPINPARK_STRESS_SECONDS", "1")
        .timeout(WATCHDOG)
        .succeed();
    // One that has children has their files, too.
    let files = recordings(directory.path());
    assert!(!files.is_empty());
    for file in files.iter().take(20) {
        Recording::read(file);
    }
}

macro_rules! programs {
    ($($name:ident)*) => {$(
        mod $name {
            use super::*;
            #[test] fn glibc() { run(stringify!($name), Configuration::Glibc, "full"); }
            #[test] fn spinpark() { run(stringify!($name), Configuration::Spinpark, "full"); }
            #[test] fn contended() { run(stringify!($name), Configuration::Spinpark, "contended"); }
        }
    )*};
}

programs! {
    mutex_kinds mutex_errors mutex_timed mutex_recursion mutex_robust mutex_protocols mutex_pshared
    rwlock_basic rwlock_timed rwlock_policy rwlock_dependent_readers rwlock_pshared rwlock_overflow
    cond_basic cond_timed cond_pshared cond_destroy cond_cancel cond_lost_wakeup cancel_points cancellers
    old_condvars
    c11 aliases layout fork_locks fork_atfork signals late_sandbox
    free_after_unlock many_threads million_mutexes single_threaded small_stack thread_exit stress
}
