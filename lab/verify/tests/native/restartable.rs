//! The contract of releases and fences on this machine, under stress: with restartable sequences, without
//! them, in a forked child, and with signals that interrupt.
//!
//! Each test runs in a process of its own: how a process releases is decided once.

use std::process::Command;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicBool, AtomicU32};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use spinpark_linux::Linux;
use spinpark_platform::{AsymmetricBarrier, Bias, Reader, ReaderSlots, SlotLeft, Threads};

/// Names the one test that is to run, in the child.
const CHILD: &str = "SPINPARK_VERIFY_RESTARTABLE";
/// Turns restartable sequences off.
const OFF: (&str, &str) = ("SPINPARK_RSEQ", "0");
/// glibc's way to do that.
const GLIBC_OFF: (&str, &str) = ("GLIBC_TUNABLES", "glibc.pthread.rseq=0");

const HELD: u32 = 1;
const MARK: u32 = 2;
const GUARD: u32 = 1;

/// Runs `body` in another process, whose environment has `set` as well.
fn in_a_process(test: &str, set: Option<(&str, &str)>, body: fn()) {
    if std::env::var_os(CHILD).is_some_and(|name| name == test) {
        body();
        return;
    }
    let program = std::env::current_exe().expect("the test program has a path");
    let output = Command::new(program)
        .args([&format!("restartable::{test}"), "--exact", "--nocapture", "--test-threads=1"])
        .env_remove(OFF.0)
        .env_remove(GLIBC_OFF.0)
        .envs(set)
        .env(CHILD, test)
        .output()
        .expect("the test program runs again");
    let text = [output.stdout, output.stderr].concat();
    let text = String::from_utf8_lossy(&text);
    assert!(output.status.success(), "{test}: {}\n{text}", output.status);
    print!("{text}");
}

/// A lock's word beside its guard.
#[derive(Default)]
struct Lock {
    guard: AtomicU32,
    word: AtomicU32,
    ended: AtomicBool,
}

impl Lock {
    /// Acquires and releases until the end; an acquisition needs a word without a mark.
    fn hold_again_and_again(&self) {
        while !self.ended.load(Relaxed) {
            if self.word.compare_exchange(0, HELD, Acquire, Relaxed).is_ok()
                && !Linux::release_unless::<GUARD>(&self.guard, &self.word, || HELD)
            {
                self.word.fetch_and(!HELD, Release);
            }
        }
    }

    /// Marks the lock; the mark must last from the look after the fence until it is taken away. Returns
    /// whether it had been wiped out before that look.
    fn mark(&self) -> bool {
        self.guard.fetch_or(GUARD, AcqRel);
        self.word.fetch_or(MARK, AcqRel);
        Linux::asymmetric_barrier();
        let wiped = self.word.load(Relaxed) & MARK == 0;
        if wiped {
            self.word.fetch_or(MARK, AcqRel);
        }
        for _ in 0..20 {
            assert_ne!(self.word.load(Relaxed) & MARK, 0, "something was stored after the fence");
            core::hint::spin_loop();
        }
        self.word.fetch_and(!MARK, AcqRel);
        self.guard.fetch_and(!GUARD, AcqRel);
        // Releases by a plain store need a moment in which the guard is not set.
        for _ in 0..20 {
            core::hint::spin_loop();
        }
        wiped
    }
}

/// Ends the threads that hold the lock again and again.
struct End<'a>(&'a Lock);

impl Drop for End<'_> {
    fn drop(&mut self) {
        self.0.ended.store(true, Relaxed);
    }
}

/// Two threads hold the lock in turns while this one marks it. Returns how many marks were wiped out before
/// the fence.
fn stress(marks: u32) -> u32 {
    Linux::thread_token(); // decides how this process releases
    let lock = Lock::default();
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| lock.hold_again_and_again());
        }
        let _end = End(&lock); // also if this one panics
        (0..marks).map(|_| u32::from(lock.mark())).sum()
    })
}

/// Runs `body` in a forked child and in its parent at the same time.
fn in_parent_and_child(body: fn()) {
    // SAFETY: the child uses threads and memory, which glibc puts in order in a fork, and leaves without
    // destructors.
    let child = unsafe { libc::fork() };
    assert_ne!(child, -1);
    if child == 0 {
        let passed = std::panic::catch_unwind(body).is_ok();
        // SAFETY: ends the process.
        unsafe { libc::_exit(i32::from(!passed)) };
    }
    body();
    let mut status = 0;
    // SAFETY: waits for the child of this process.
    assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
    assert_eq!(status, 0, "the child failed");
}

#[test]
fn marks_last() {
    in_a_process("marks_last", None, || {
        let wiped = stress(200_000);
        println!("{wiped} marks were wiped out before the fence");
    });
}

/// A compare-exchange wipes nothing out.
#[test]
fn marks_last_without_restartable_sequences() {
    in_a_process("marks_last_without_restartable_sequences", Some(OFF), || assert_eq!(stress(200_000), 0));
}

#[test]
fn marks_last_where_glibc_registers_no_thread() {
    in_a_process("marks_last_where_glibc_registers_no_thread", Some(GLIBC_OFF), || {
        assert_eq!(stress(200_000), 0);
    });
}

#[test]
fn marks_last_in_a_forked_child() {
    in_a_process("marks_last_in_a_forked_child", None, || {
        stress(1_000);
        in_parent_and_child(|| {
            stress(100_000);
        });
    });
}

/// Signals interrupt the steps, which then fail; their handlers release locks of their own in between.
#[test]
fn marks_last_under_signals() {
    static INNER: Lock =
        Lock { guard: AtomicU32::new(0), word: AtomicU32::new(0), ended: AtomicBool::new(false) };
    extern "C" fn handler(_: libc::c_int) {
        let lock = &INNER;
        if lock.word.compare_exchange(0, HELD, Acquire, Relaxed).is_ok()
            && !Linux::release_unless::<GUARD>(&lock.guard, &lock.word, || HELD)
        {
            lock.word.fetch_and(!HELD, Release);
        }
    }
    in_a_process("marks_last_under_signals", None, || {
        let handler: extern "C" fn(libc::c_int) = handler;
        // SAFETY: the handler only touches atomics.
        let old = unsafe { libc::signal(libc::SIGALRM, handler as libc::sighandler_t) };
        assert_ne!(old, libc::SIG_ERR);
        let often = libc::timeval { tv_sec: 0, tv_usec: 50 };
        let timer = libc::itimerval { it_interval: often, it_value: often };
        // SAFETY: a timer of this process; nothing is written.
        let set = unsafe { libc::setitimer(libc::ITIMER_REAL, &raw const timer, core::ptr::null_mut()) };
        assert_eq!(set, 0);
        stress(100_000);
        assert_eq!(INNER.word.load(Relaxed), 0, "every handler has released what it held");
    });
}

/// A read-write lock with one writer, made of a bias and a count, as simply as the contract of slots allows.
#[derive(Default)]
struct Biased {
    bias: AtomicU32,
    /// What the queue lock of a real one protects.
    count: Mutex<u32>,
    /// Written by the writer, alone: both are the same at any other time.
    data: [AtomicU32; 2],
    entered: AtomicU32,
    ended: AtomicBool,
}

impl Biased {
    fn key(&self) -> usize {
        core::ptr::from_ref(self) as usize
    }

    fn with_count<R>(&self, change: impl FnOnce(&mut u32) -> R) -> R {
        change(&mut self.count.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Reads in slots until the end.
    fn read_again_and_again(&self) {
        while !self.ended.load(Relaxed) {
            if !Linux::slot_enter(&self.bias, self.key()) {
                core::hint::spin_loop();
                continue;
            }
            self.entered.fetch_add(1, Relaxed);
            let [first, second] = &self.data;
            assert_eq!(first.load(Relaxed), second.load(Relaxed), "a reader beside the writer");
            match Linux::slot_leave(&self.bias, self.key()) {
                SlotLeft::Left => {}
                SlotLeft::Revoked => {
                    if Linux::slot_take_back(self.key(), Bias::Any) == Reader::Counted {
                        self.with_count(|count| *count = count.checked_sub(1).expect("it is counted"));
                    }
                }
                SlotLeft::Counted => unreachable!("it is in a slot"),
            }
        }
    }

    /// Shuts the bias, waits for the readers inside, writes, and enables it again. Returns how many were
    /// inside.
    fn write(&self, table: u32) -> u32 {
        let moved = self.with_count(|count| {
            self.bias.store(0, Relaxed);
            Linux::asymmetric_barrier();
            let marked = Linux::slots_mark(table, self.key());
            let moved = Linux::slots_settle(table, self.key());
            assert!(moved <= marked, "no reader enters a marked slot");
            *count += moved;
            moved
        });
        let start = Instant::now();
        while self.with_count(|count| *count > 0) {
            assert!(start.elapsed() < Duration::from_secs(60), "a reader left in passing after the fence");
            thread::yield_now();
        }
        let [first, second] = &self.data;
        first.fetch_add(1, AcqRel);
        (0..20).for_each(|_| core::hint::spin_loop());
        second.fetch_add(1, AcqRel);
        assert!(!Linux::has_slots(table, self.key()), "a reader entered after the fence");
        self.with_count(|_| self.bias.store(table, Release));
        (0..200).for_each(|_| core::hint::spin_loop()); // readers need a moment with an enabled bias
        moved
    }
}

/// Two threads read in slots while this one writes; how often readers entered, and how many were moved.
fn stress_slots(writes: u32) -> (u32, u32) {
    struct End<'a>(&'a Biased);
    impl Drop for End<'_> {
        fn drop(&mut self) {
            self.0.ended.store(true, Relaxed);
        }
    }
    Linux::thread_token(); // decides whether there are slots
    let table = Linux::slot_table();
    let lock = Biased::default();
    lock.bias.store(table, Release);
    let moved = thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| lock.read_again_and_again());
        }
        let _end = End(&lock); // also if this one panics
        (0..writes).map(|_| lock.write(table)).sum()
    });
    (lock.entered.into_inner(), moved)
}

#[test]
fn readers_in_slots_are_found() {
    in_a_process("readers_in_slots_are_found", None, || {
        let (entered, moved) = stress_slots(50_000);
        println!("{entered} times in a slot, {moved} times moved");
    });
}

#[test]
fn there_are_no_slots_without_restartable_sequences() {
    in_a_process("there_are_no_slots_without_restartable_sequences", Some(OFF), || {
        assert_eq!(stress_slots(1_000), (0, 0));
        assert_eq!(Linux::slot_table(), 0);
    });
}

#[test]
fn readers_in_slots_are_found_in_a_forked_child() {
    in_a_process("readers_in_slots_are_found_in_a_forked_child", None, || {
        stress_slots(1_000);
        in_parent_and_child(|| {
            stress_slots(20_000);
        });
    });
}

/// Single-stepped, with a mark at each trap in turn: where the word was still held, the mark lasts.
///
/// A signal to the thread itself ends its step, as a fence by another thread does. So the first trap in a
/// step ends it: this shows that a step is armed when it begins, not where it ends.
#[cfg(target_arch = "x86_64")]
#[test]
fn a_mark_at_any_trap_lasts() {
    static LOCK: Lock =
        Lock { guard: AtomicU32::new(0), word: AtomicU32::new(0), ended: AtomicBool::new(false) };
    static TRAPS: AtomicU32 = AtomicU32::new(0);
    static MARKED_AT: AtomicU32 = AtomicU32::new(0);
    static WAS_HELD: AtomicBool = AtomicBool::new(false);
    extern "C" fn handler(_: libc::c_int) {
        if TRAPS.fetch_add(1, Relaxed) + 1 == MARKED_AT.load(Relaxed) {
            LOCK.guard.fetch_or(GUARD, AcqRel);
            WAS_HELD.store(LOCK.word.fetch_or(MARK, AcqRel) == HELD, Relaxed);
        }
    }
    /// Releases, with a trap after each instruction.
    fn release() -> bool {
        // SAFETY: sets the trap flag, on a stack below the red zone's end (no `nostack`); the handler is in
        // place.
        unsafe { core::arch::asm!("pushfq", "or qword ptr [rsp], 0x100", "popfq") };
        let released = Linux::release_unless::<GUARD>(&LOCK.guard, &LOCK.word, || HELD);
        // SAFETY: clears it.
        unsafe { core::arch::asm!("pushfq", "and qword ptr [rsp], -0x101", "popfq") };
        released
    }
    fn every_instruction() {
        Linux::thread_token();
        let handler: extern "C" fn(libc::c_int) = handler;
        // SAFETY: the handler only touches atomics.
        let old = unsafe { libc::signal(libc::SIGTRAP, handler as libc::sighandler_t) };
        assert_ne!(old, libc::SIG_ERR);
        let mut held = 0;
        for at in 1.. {
            LOCK.guard.store(0, Relaxed);
            LOCK.word.store(HELD, Relaxed);
            TRAPS.store(0, Relaxed);
            MARKED_AT.store(at, Relaxed);
            WAS_HELD.store(false, Relaxed);
            let released = release();
            if TRAPS.load(Relaxed) < at {
                break; // it has no such instruction
            }
            if WAS_HELD.load(Relaxed) {
                held += 1;
                assert!(!released, "released in spite of the mark at instruction {at}");
                assert_eq!(LOCK.word.load(Relaxed), HELD | MARK, "wiped out at instruction {at}");
            }
        }
        assert!(held > 5, "the traps came while the word was held");
    }
    in_a_process("a_mark_at_any_trap_lasts", None, every_instruction);
}
