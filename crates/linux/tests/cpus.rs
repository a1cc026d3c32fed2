//! The number of CPUs follows what the process may use, while its threads sleep now and then. The test waits
//! for the interval between two checks, a second.

use std::sync::atomic::AtomicU32;
use std::time::{Duration, Instant};

use spinpark_linux::Linux;
use spinpark_platform::{Clock, Clocks, Deadline, Futex, SpinPolicy};

/// The CPUs of `thread`, 0 for the calling one.
fn allowed(thread: i32) -> libc::cpu_set_t {
    // SAFETY: all zero is a set.
    let mut set: libc::cpu_set_t = unsafe { std::mem::zeroed() };
    // SAFETY: the kernel writes a set of that size.
    let result = unsafe { libc::sched_getaffinity(thread, size_of_val(&set), &mut set) };
    assert_eq!(result, 0);
    set
}

/// Lets `thread` use `set` only.
fn allow(thread: i32, set: &libc::cpu_set_t) {
    // SAFETY: a set of that size.
    let result = unsafe { libc::sched_setaffinity(thread, size_of_val(set), set) };
    assert_eq!(result, 0);
}

fn count(set: &libc::cpu_set_t) -> u32 {
    // SAFETY: a set.
    unsafe { libc::CPU_COUNT(set) as u32 }
}

/// A set of the first CPU of `set`.
fn first_of(set: &libc::cpu_set_t) -> libc::cpu_set_t {
    // SAFETY: all zero is a set.
    let mut first: libc::cpu_set_t = unsafe { std::mem::zeroed() };
    // SAFETY: the CPU is one of a set.
    let found = (0..libc::CPU_SETSIZE as usize).find(|&cpu| unsafe { libc::CPU_ISSET(cpu, set) });
    // SAFETY: the same, for one to write to.
    unsafe { libc::CPU_SET(found.expect("a thread has a CPU"), &mut first) };
    first
}

/// Sleeps on a lock's behalf until there are `cpus` CPUs, or for `most`; whether there are.
fn sleep_until(cpus: u32, most: Duration) -> bool {
    let never_woken = AtomicU32::new(0);
    let begun = Instant::now();
    while begun.elapsed() < most && Linux::cpus() != cpus {
        let at = Linux::now(Clock::Monotonic) + 1_000_000;
        Linux::futex_wait(&never_woken, 0, Some(Deadline { clock: Clock::Monotonic, at }));
    }
    Linux::cpus() == cpus
}

#[test]
fn the_number_of_cpus_follows_the_affinity() {
    spinpark_linux::start(false);
    let all = allowed(0);
    let (most, one) = (count(&all), first_of(&all));
    if most == 1 {
        eprintln!("skipped: one CPU");
        return;
    }
    let before = Linux::cpus(); // fewer than `most` if there is a quota
    let process = std::process::id() as i32; // its first thread: this one is the test's

    // This thread alone: it is bound, the process is not.
    allow(0, &one);
    assert!(!sleep_until(1, Duration::from_millis(2500)));
    assert_eq!(Linux::cpus(), before);

    allow(process, &one);
    assert!(sleep_until(1, Duration::from_secs(20)));

    allow(process, &all);
    allow(0, &all);
    assert!(sleep_until(before, Duration::from_secs(20)));
}
