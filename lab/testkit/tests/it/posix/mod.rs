//! The C programs in `posix/`, each of which checks one topic of what POSIX and glibc promise, with and
//! without the drop-in; and some of them under tools and restrictions that take away what locks may want to
//! use.
//!
//! `<program>::glibc` says that the program is right, `<program>::spinpark` that the drop-in is, and
//! `<program>::disabled` that a switched-off drop-in passes everything through.

use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use spinpark_testkit::programs::private_dir;
use spinpark_testkit::{Configuration, Run, compile_c, dropin, find_program};

/// A machine with other work to do needs several times what a quiet one does.
const WATCHDOG: Duration = Duration::from_secs(300);

/// The program as a command.
fn program(name: &str) -> Run {
    Run::new(compile_c(format!("posix/{name}.c"), &[])).timeout(WATCHDOG)
}

/// Programs with real-time threads run one after the other: those of one would keep the CPUs from those of
/// another, whose waits are measured.
fn realtime_turn() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// One module per program with one test per configuration. A program may have arguments.
macro_rules! programs {
    ($($name:ident [$($configuration:ident)*] $(= $program:literal $($arg:literal)*)?;)*) => {$(
        mod $name {
            use super::*;
            programs!(@configurations run [$($configuration)*]);
            fn run(configuration: Configuration) {
                let name = [stringify!($name), $($program)?].into_iter().last().expect("a name");
                let run = program(name);
                $($(let run = run.arg($arg);)*)?
                // Without our locks it only shows that the program is right.
                let is_ours = matches!(configuration, Configuration::Spinpark);
                let run = if is_ours { run } else { run.env("SPINPARK_STRESS_SECONDS", "2") };
                let _turn = stringify!($name).starts_with("realtime").then(realtime_turn);
                print!("{}", run.configuration(configuration).succeed().stdout_text());
            }
        }
    )*};
    (@configurations $run:ident [$($configuration:ident)*]) => {$( programs!(@configuration $run $configuration); )*};
    (@configuration $run:ident glibc) => { #[test] fn glibc() { $run(Configuration::Glibc); } };
    (@configuration $run:ident spinpark) => { #[test] fn spinpark() { $run(Configuration::Spinpark); } };
    (@configuration $run:ident disabled) => { #[test] fn disabled() { $run(Configuration::Disabled); } };
}

programs! {
    mutex_kinds [glibc spinpark disabled];
    mutex_errors [glibc spinpark disabled];
    mutex_timed [glibc spinpark];
    mutex_recursion [glibc spinpark];
    mutex_owner [glibc spinpark disabled];
    mutex_robust [glibc spinpark disabled];
    mutex_protocols [glibc spinpark disabled];
    mutex_pshared [glibc spinpark disabled];
    mutex_destroy_waited [glibc spinpark disabled];
    // glibc loses count; see the program.
    mutex_initialised_anew [spinpark] = "mutex_destroy_waited" "anew";

    realtime_order [glibc spinpark] = "realtime" "order";
    realtime_beside [glibc spinpark] = "realtime" "beside";
    realtime_hand_over [glibc spinpark] = "realtime" "hand_over";
    realtime_deadline [glibc spinpark] = "realtime" "deadline";

    rwlock_basic [glibc spinpark disabled];
    rwlock_timed [glibc spinpark];
    // glibc's readers may spin for ever here; see the program.
    rwlock_timed_storm [spinpark] = "rwlock_timed" "storm";
    rwlock_policy [glibc spinpark];
    rwlock_policy_on_one_cpu [glibc spinpark] = "rwlock_policy" "one";
    rwlock_dependent_readers [glibc spinpark];
    rwlock_dependent_load [glibc spinpark];
    rwlock_given_back [glibc spinpark];
    rwlock_handlers [glibc spinpark];
    rwlock_pshared [glibc spinpark disabled];
    rwlock_overflow [glibc spinpark];
    rwlock_many_holds [glibc spinpark];
    rwlock_read_mostly [glibc spinpark];
    rwlock_unaligned [glibc spinpark];
    rwlock_reused [glibc spinpark];
    rwlock_promises [spinpark];

    cond_basic [glibc spinpark disabled];
    cond_timed [glibc spinpark];
    cond_pshared [glibc spinpark disabled];
    cond_pshared_then_private [glibc spinpark disabled];
    cond_destroy [glibc spinpark];
    cond_destroy_cancelled [glibc spinpark];
    // A signal may go to either waiter; see the program.
    cond_destroy_deadline [spinpark] = "cond_destroy_cancelled" "deadline";
    cond_cancel [glibc spinpark disabled];
    cond_lost_wakeup [glibc spinpark];
    old_condvars [glibc spinpark disabled];
    shared_private [glibc spinpark disabled];
    cancel_points [glibc spinpark disabled];
    cancellers [glibc spinpark disabled];

    unwind_mutex [glibc spinpark disabled] = "unwind" "mutex";
    // glibc's read-write locks wait for such a thread for ever; see the program.
    unwind_rwlock [spinpark] = "unwind" "rwlock";
    deadline_free_mutex [glibc spinpark disabled] = "deadline_free" "mutex";
    deadline_free_rwlock [glibc spinpark disabled] = "deadline_free" "rwlock";
    exit_anywhere_mutex [glibc spinpark disabled] = "exit_anywhere" "mutex";
    exit_anywhere_rwlock [spinpark] = "exit_anywhere" "rwlock";

    c11 [glibc spinpark disabled];
    aliases [glibc spinpark disabled];
    layout [glibc spinpark];
    no_allocation [glibc spinpark disabled];
    symbols [glibc spinpark disabled];

    fork_locks [glibc spinpark disabled];
    fork_atfork [glibc spinpark disabled];
    fork_bare [glibc spinpark];
    // glibc's read-write locks and condition variables cannot do this; see the program.
    fork_phantoms [spinpark];
    signals [glibc spinpark];
    // glibc's pthread_cond_signal may wait for a stopped thread; see the program.
    stopped_threads [spinpark];
    stopped_waiter_mutex [glibc spinpark] = "not_running" "waiter" "mutex";
    stopped_waiter_write [glibc spinpark] = "not_running" "waiter" "write";
    stopped_waiter_condvar [glibc spinpark] = "not_running" "waiter" "condvar";
    stopped_woken_1 [glibc spinpark] = "not_running" "woken" "1";
    stopped_woken_5 [glibc spinpark] = "not_running" "woken" "5";
    stopped_signalled [glibc spinpark] = "not_running" "signalled" "all";
    stopped_signalled_alone [glibc spinpark] = "not_running" "signalled" "alone";
    handler_of_a_waiter [glibc spinpark] = "not_running" "handler";
    handlers_that_wait [glibc spinpark] = "not_running" "handlers";
    stopped_in_queue [spinpark];
    realtime_promise [glibc spinpark] = "not_running" "realtime";
    realtime_in_a_queue [glibc spinpark] = "not_running" "inversion" "mutex";
    realtime_reader [glibc spinpark] = "not_running" "inversion" "read";
    late_sandbox [glibc spinpark];
    timer_slack [glibc spinpark];
    sandbox_single [glibc spinpark disabled] = "sandbox" "single";
    sandbox_waits [glibc spinpark disabled] = "sandbox" "waits";
    sandbox_child [glibc spinpark disabled] = "sandbox" "child";
    sandbox_forked [glibc spinpark disabled] = "sandbox" "forked";
    sandbox_refused [glibc spinpark disabled] = "sandbox" "refused";
    sandbox_threads [glibc spinpark disabled] = "sandbox" "threads";

    free_after_unlock [glibc spinpark];
    idle_mutex [glibc spinpark] = "idle_waiters" "mutex";
    idle_timed [glibc spinpark] = "idle_waiters" "timed";
    idle_cond [glibc spinpark] = "idle_waiters" "cond";
    idle_readers [glibc spinpark] = "idle_waiters" "readers";
    idle_writers [glibc spinpark] = "idle_waiters" "writers";
    idle_behind_a_reader [glibc spinpark] = "idle_waiters" "writers_behind_a_reader";
    realtime_idle [glibc spinpark] = "idle_waiters" "realtime";
    many_threads [glibc spinpark disabled];
    million_mutexes [glibc spinpark];
    trylock_storm [glibc spinpark];
    single_threaded [glibc spinpark disabled];
    small_stack [glibc spinpark disabled];
    thread_exit [glibc spinpark disabled];

    stress_2 [glibc spinpark] = "stress" "2";
    stress_16 [glibc spinpark] = "stress" "16";
    stress_256 [glibc spinpark] = "stress" "256";
    // For longer: ci/soak.sh.
    soak [spinpark] = "soak" "1" "2";
}

mod before_main {
    use super::*;
    programs!(@configurations run [glibc spinpark disabled]);
    fn run(configuration: Configuration) {
        let library = compile_c("posix/before_main_lib.c", &["-shared", "-fPIC"]);
        let library = library.to_str().expect("a path in UTF-8");
        Run::new(compile_c("posix/before_main.c", &[library]))
            .timeout(WATCHDOG)
            .configuration(configuration)
            .succeed();
    }
}

mod dlopen {
    use super::*;
    programs!(@configurations run [glibc spinpark disabled]);
    fn run(configuration: Configuration) {
        let plugin = compile_c("posix/dlopen_plugin.c", &["-shared", "-fPIC"]);
        program("dlopen").arg(plugin).configuration(configuration).succeed();
    }
}

/// A cancellation that takes long is paid by no thread that has nothing to do with it.
mod slow_cancellation {
    use super::*;
    programs!(@configurations run [glibc spinpark]);
    fn run(configuration: Configuration) {
        let library = compile_c("posix/slow_library.c", &["-shared", "-fPIC"]);
        program("not_running").arg("cancel").arg(library).configuration(configuration).succeed();
    }
}

/// Descriptor 2 is a program's data.
mod stderr_is_data {
    use super::*;
    programs!(@configurations run [glibc spinpark disabled]);
    fn run(configuration: Configuration) {
        let plugin = compile_c("posix/dlopen_plugin.c", &["-shared", "-fPIC"]);
        let directory = private_dir();
        program("stderr_is_data")
            .arg(directory.path().join("data"))
            .arg(plugin)
            .configuration(configuration)
            .succeed();
    }
}

/// Another preloaded library has a `dlsym`.
mod dlsym_wrapped {
    use super::*;
    programs!(@configurations before [glibc spinpark disabled]);
    fn run(preload: &str, configuration: Configuration) {
        let wrapper = compile_c("posix/dlsym_wrapper.c", &["-shared", "-fPIC"]);
        let program = compile_c("posix/dlsym_wrapped.c", &[]);
        Run::new("sh")
            .args(["-c", &format!("LD_PRELOAD={preload} exec \"$2\""), "sh"])
            .args([wrapper, program])
            .configuration(configuration)
            .timeout(WATCHDOG)
            .succeed();
    }
    fn before(configuration: Configuration) {
        run("\"$1:$LD_PRELOAD\"", configuration);
    }
    #[test]
    fn behind() {
        run("\"$LD_PRELOAD:$1\"", Configuration::Spinpark);
    }
}

/// Objects that are reached past the drop-in as well.
mod foreign {
    use super::*;

    const WAYS: [&str; 3] = ["deepbind", "dlsym", "dlmopen"];
    const SERVED: [&str; 4] = ["mutexes", "waits", "sleeper", "crossed-back"];
    /// `dlsym` gives the drop-in's functions: there, these work as well.
    const ENDED: [&str; 5] = ["read-write", "read-two-write", "write-read", "write-write", "signal"];
    /// `SIGABRT`.
    const ABORTED: i32 = 6;

    fn run(way: &str, case: &str, configuration: Configuration) -> Run {
        let plugin = compile_c("posix/foreign_plugin.c", &["-shared", "-fPIC"]);
        program("foreign").arg(way).arg(case).arg(plugin).configuration(configuration)
    }

    fn every_way(configuration: Configuration, cases: &[&str]) {
        for way in WAYS {
            for case in cases {
                run(way, case, configuration).succeed();
            }
        }
    }

    #[test]
    fn spinpark() {
        every_way(Configuration::Spinpark, &SERVED);
        for case in ENDED {
            run("dlsym", case, Configuration::Spinpark).succeed();
        }
    }

    #[test]
    fn glibc() {
        every_way(Configuration::Glibc, &SERVED);
        every_way(Configuration::Glibc, &ENDED);
    }

    #[test]
    fn disabled() {
        every_way(Configuration::Disabled, &SERVED);
    }

    #[test]
    fn without_sequences() {
        for way in WAYS {
            for case in SERVED {
                run(way, case, Configuration::Spinpark).env("SPINPARK_RSEQ", "0").succeed();
            }
        }
    }

    /// What cannot be served ends the process, with a sentence.
    #[test]
    fn ends() {
        for way in ["deepbind", "dlmopen"] {
            for case in ENDED {
                let outcome = run(way, case, Configuration::Spinpark).outcome();
                let says = outcome.stderr_text().contains("spinpark: A lock was overwritten");
                assert!(
                    outcome.status.signal() == Some(ABORTED) && says,
                    "{way} {case}: {}",
                    outcome.report()
                );
            }
        }
    }
}

mod cxx {
    use super::*;
    programs!(@configurations run [glibc spinpark disabled]);
    fn run(configuration: Configuration) {
        if std::env::var_os("CXX").is_some() || tool("c++").is_some() {
            Run::new(compile_c("posix/cxx.cpp", &[]))
                .timeout(WATCHDOG)
                .configuration(configuration)
                .succeed();
        }
    }
}

/// The path of a tool that a test can do without: it is named when it is skipped, and required if
/// `SPINPARK_REQUIRE_PROGRAMS=1`.
fn tool(name: &str) -> Option<PathBuf> {
    let path = find_program(name);
    if path.is_none() {
        assert!(
            std::env::var_os("SPINPARK_REQUIRE_PROGRAMS").is_none_or(|value| value != "1"),
            "{name} is not installed"
        );
        eprintln!("skipped: {name} is not installed");
    }
    path
}

/// Memcheck watches every access of the drop-in, and valgrind offers neither rseq nor parallelism.
mod under_valgrind {
    use super::*;

    macro_rules! watched {
        ($($name:ident)*) => {$( #[test] fn $name() { run(stringify!($name)); } )*};
    }
    watched! {
        mutex_errors rwlock_overflow cond_basic cond_pshared c11 aliases mutex_robust small_stack
    }

    fn run(name: &str) {
        let Some(valgrind) = tool("valgrind") else { return };
        let program = compile_c(format!("posix/{name}.c"), &[]);
        let outcome = Run::new(valgrind)
            .args(["--quiet", "--error-exitcode=9", "--fair-sched=try"])
            .arg(program)
            .configuration(Configuration::Spinpark)
            .timeout(WATCHDOG)
            .succeed();
        assert!(!outcome.stderr_text().contains("=="), "{}", outcome.report());
    }
}

#[test]
fn under_gdb() {
    let Some(gdb) = tool("gdb") else { return };
    for name in ["cond_basic", "mutex_kinds", "cond_cancel"] {
        let program = compile_c(format!("posix/{name}.c"), &[]);
        let outcome = Run::new(&gdb)
            .args(["-nx", "-batch", "-ex", "set startup-with-shell off", "-ex", "run", "--args"])
            .arg(program)
            .configuration(Configuration::Spinpark)
            .timeout(WATCHDOG)
            .succeed();
        assert!(outcome.stdout_text().contains("exited normally"), "{}", outcome.report());
    }
}

/// gdb with the drop-in's script, on a program that holds locks: runs to `look_now`, prints these objects,
/// goes on.
fn shown_by_gdb(gdb: PathBuf, configuration: Configuration, names: &[&str]) -> String {
    let program = compile_c("posix/gdb_shows.c", &["-g"]);
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../../crates/pthread/libspinpark_preload.so-gdb.py");
    let prints = names.iter().flat_map(|name| ["-ex".to_owned(), format!("print {name}")]);
    let outcome = Run::new(gdb)
        .args(["-nx", "-batch", "-ex", "set startup-with-shell off", "-ex"])
        .arg(format!("source {script}"))
        .args(["-ex", "break look_now", "-ex", "run"])
        .args(prints)
        .args(["-ex", "continue", "--args"])
        .arg(program)
        .configuration(configuration)
        .timeout(WATCHDOG)
        .succeed();
    let shown = outcome.stdout_text();
    assert!(shown.contains("exited normally"), "{}", outcome.report());
    shown.to_string()
}

#[test]
fn gdb_shows_owners_and_waiters() {
    let Some(gdb) = tool("gdb") else { return };
    let shown = shown_by_gdb(
        gdb,
        Configuration::Spinpark,
        &["held", "recursive", "idle", "gone", "robust", "table", "cond", "shared", "shared_monotonic"],
    );
    for part in [
        "$1 = {spinpark mutex, held by ",
        " (thread 1), 2 waiting: ",
        " (thread 2), ",
        "$2 = {spinpark recursive mutex (depth 2), held by ",
        "$3 = {spinpark mutex, free}",
        "$4 = {spinpark mutex, destroyed}",
        "$5 = {__data = ",
        "$6 = {spinpark read-write lock, held by 1 reader",
        " (thread 4) to write}",
        "$7 = {spinpark condition variable, 1 waiting: ",
        "$8 = {__data = ",
        "$9 = {__data = ",
    ] {
        assert!(shown.contains(part), "no {part:?}: {shown}");
    }
}

/// Objects that are glibc's are left to gdb.
#[test]
fn gdb_is_silent_where_disabled() {
    let Some(gdb) = tool("gdb") else { return };
    let shown = shown_by_gdb(gdb, Configuration::Disabled, &["held"]);
    assert!(shown.contains("$1 = {__data = "), "{shown}");
}

#[test]
fn without_rseq() {
    let programs = [
        "mutex_kinds",
        "rwlock_basic",
        "rwlock_read_mostly",
        "cond_basic",
        "free_after_unlock",
        "cond_lost_wakeup",
        "fork_locks",
        "stress",
    ];
    for (variable, value) in [("GLIBC_TUNABLES", "glibc.pthread.rseq=0"), ("SPINPARK_RSEQ", "0")] {
        for name in programs {
            program(name)
                .env(variable, value)
                .env("SPINPARK_STRESS_SECONDS", "1")
                .configuration(Configuration::Spinpark)
                .succeed();
        }
    }
}

mod confined;

/// `SPINPARK_VERBOSE=1` is how a user sees that the drop-in is there; without it, nothing is printed.
#[test]
fn says_that_it_is_active() {
    let stderr = |configuration, verbose| {
        let run = program("symbols").configuration(configuration).env_remove("SPINPARK_VERBOSE");
        let run = if verbose { run.env("SPINPARK_VERBOSE", "1") } else { run };
        run.succeed().stderr_text()
    };
    assert!(dropin().is_absolute());
    for configuration in [Configuration::Spinpark, Configuration::Disabled] {
        assert_eq!(stderr(configuration, false), "");
        assert!(stderr(configuration, true).contains("spinpark"));
    }
    assert_ne!(stderr(Configuration::Spinpark, true), stderr(Configuration::Disabled, true));
}
