//! `Owners`, `SpinPolicy`, `Adaptive`, `Events`, `Layout`: what may be guessed, but not against the guess
//! that is always safe.

use std::mem::size_of;
use std::slice;

use spinpark_locks::{Adaptive, Note, Spin, Tries};
use spinpark_platform::{Event, Events, Layout, OnCpu, Owners, SpinPolicy, Threads};

use super::machine::{Contract, Machine};

/// Addresses of two locks, for learning.
const LOCK: usize = 0x1000;
const OTHER: usize = 0x2000;

impl<M: Machine> Contract<M> {
    /// `Owners`: an owner without a name is not known to run. (An answer about any other one may be wrong.)
    pub(crate) fn an_owner_without_a_name_is_not_known() {
        let mut sample = 0;
        for _ in 0..3 {
            let _ = M::P::owner_on_cpu(M::P::thread_token(), &mut sample);
        }
        let mut sample = 0;
        for _ in 0..3 {
            assert_ne!(M::P::owner_on_cpu(0, &mut sample), OnCpu::Running, "no thread is named");
        }
    }

    /// `SpinPolicy`: no thread spins on one CPU; spins end, and are counted.
    pub(crate) fn spins_end() {
        for kind in [Spin::Lock, Spin::Woken, Spin::Signal, Spin::HandOver, Spin::Writer, Spin::Readers] {
            assert!(M::P::cpus() > 1 || !M::P::can_spin(kind), "no other thread can run meanwhile");
            M::P::notes(LOCK, Note::Spun(kind, false));
            M::P::notes(LOCK, Note::Spun(kind, true));
        }
        assert!(M::P::cpus() >= 1);
        assert!(M::P::spin_hint() >= 1);
        M::P::spin_for(0);
        M::P::spin_for(2_000);
        let _ = (M::P::need_resched(), M::P::only_cpu());
    }

    /// `Adaptive`: an acquisition is timed for its lock only, and no longer than until the thread is back.
    pub(crate) fn an_acquisition_is_of_one_lock() {
        for _ in 0..3 {
            M::P::notes(LOCK, Note::Waits);
            let _ = M::P::reads_first(); // a hint
            if M::P::wants_time(LOCK, true).is_some() {
                M::P::notes(LOCK, Note::Acquired { set_contended: true });
                assert!(!M::P::ends_contended(LOCK), "its release is to be timed");
                M::P::notes(OTHER, Note::Released);
                assert!(!M::P::ends_contended(LOCK), "another lock's was");
                M::P::notes(LOCK, Note::Released);
                M::P::notes(LOCK, Note::Returns);
                assert!(M::P::ends_contended(LOCK), "the contended bit was set only for that");
            }
        }
        let _ = (M::P::returns_soon(OTHER), M::P::waits_next(OTHER)); // guesses
        assert!(matches!(M::P::tries(), Tries::Succeed | Tries::FailSometimes | Tries::FailOften));
    }

    /// `Events`: telling changes nothing for the thread that tells.
    pub(crate) fn an_event_is_only_told() {
        let before = (M::P::thread_token(), M::P::cpus());
        for event in [Event::Parked, Event::WokeHead, Event::TimedOut, Event::SpinAcquired] {
            M::P::event(event);
        }
        assert_eq!((M::P::thread_token(), M::P::cpus()), before);
    }

    /// `Layout`: what stands between a lock's fields is zero by default, so that an object of zeroes is a
    /// free lock.
    pub(crate) fn padding_is_zero() {
        all_zero(&<M::P as Layout>::Padding::default());
        all_zero(&<M::P as Layout>::Gap::default());
    }
}

fn all_zero<T>(value: &T) {
    // SAFETY: live memory of that size; rooms are integers without padding between them.
    let bytes = unsafe { slice::from_raw_parts(std::ptr::from_ref(value).cast::<u8>(), size_of::<T>()) };
    assert!(bytes.iter().all(|&byte| byte == 0));
}
