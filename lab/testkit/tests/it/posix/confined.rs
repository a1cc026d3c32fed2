//! Runs programs under `posix/confine.c`.

use super::*;

/// `confine` could not do it: not root, or not allowed to.
const UNAVAILABLE: i32 = 77;

fn run(what: &str, names: &[&str]) {
    let confine = compile_c("posix/confine.c", &[]);
    for name in names {
        for configuration in Configuration::BOTH {
            let outcome = Run::new(&confine)
                .arg(what)
                .arg(compile_c(format!("posix/{name}.c"), &[]))
                .env("SPINPARK_STRESS_SECONDS", "1")
                .configuration(configuration)
                .timeout(WATCHDOG)
                .outcome();
            if outcome.status.code() == Some(UNAVAILABLE) {
                eprintln!("skipped: {}", outcome.stderr_text().trim_end());
                return;
            }
            outcome.assert_success();
        }
    }
}

#[test]
fn no_rseq_no_membarrier() {
    run("no-rseq", &["mutex_kinds", "rwlock_basic", "cond_basic", "free_after_unlock", "stress"]);
}

/// Sequences, but nothing to end them with.
#[test]
fn no_membarrier() {
    run("no-membarrier", &["rwlock_read_mostly", "cond_basic", "free_after_unlock", "stress"]);
}

#[test]
fn plain_futexes_only() {
    run("plain-futex", &["mutex_kinds", "rwlock_basic", "cond_basic", "cond_cancel", "stress"]);
}

#[test]
fn one_cpu() {
    run(
        "one-cpu",
        &[
            "mutex_kinds",
            "rwlock_basic",
            "cond_basic",
            "cond_lost_wakeup",
            "cond_destroy_cancelled",
            "stress",
        ],
    );
}

/// A control group whose quota is one CPU, in version 1 or 2; none where this user may not make one.
fn group_of_one_cpu() -> Option<PathBuf> {
    let name = format!("spinpark-test-{}", std::process::id());
    let versions = [
        ("/sys/fs/cgroup/cpu", "cpu.cfs_quota_us", "100000"),
        ("/sys/fs/cgroup", "cpu.max", "100000 100000"),
    ];
    versions.into_iter().find_map(|(root, file, quota)| {
        let group = PathBuf::from(root).join(&name);
        std::fs::create_dir(&group).ok()?;
        // Not created: the kernel makes the files of a group, and elsewhere there are none.
        let file = std::fs::OpenOptions::new().write(true).open(group.join(file));
        let written = file.and_then(|mut file| std::io::Write::write_all(&mut file, quota.as_bytes()));
        if written.is_err() {
            let _ = std::fs::remove_dir(&group);
        }
        written.ok().map(|()| group)
    })
}

#[test]
fn quota_of_one_cpu() {
    let cpus = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let Some(group) = group_of_one_cpu().filter(|_| cpus > 1) else {
        eprintln!("skipped: one CPU, or no control group can be made");
        return;
    };
    let outcome = Run::new(compile_c("posix/confine.c", &[]))
        .arg("quota")
        .arg(compile_c("posix/cond_basic.c", &[]))
        .env("SPINPARK_TEST_GROUP", &group)
        .env("SPINPARK_VERBOSE", "1")
        .configuration(Configuration::Spinpark)
        .timeout(WATCHDOG)
        .outcome();
    let _ = std::fs::remove_dir(&group);
    let outcome = outcome.assert_success();
    // `confine` itself starts outside.
    let counts: Vec<bool> = outcome.stderr_text().lines().map(|line| line.ends_with("CPUs 1)")).collect();
    assert_eq!(counts, [false, true], "{}", outcome.report());
}

#[test]
fn real_time_priority() {
    run("fifo", &["mutex_kinds", "rwlock_basic", "cond_basic", "cond_lost_wakeup"]);
}
