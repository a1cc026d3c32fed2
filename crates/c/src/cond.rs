//! `spinpark_cond_*`.

use core::mem::{MaybeUninit, align_of, size_of};

use libc::timespec;
use spinpark_linux::Linux;
use spinpark_locks::{RawCondvar, WaitResult, Waiter};
use spinpark_platform::{Deadline, Futex};

use crate::misuse::misuse;
use crate::mutex::Mutex;
use crate::time;

/// How long a destroyer sleeps between two checks of a waiter that returns at its deadline.
const LEAVING_NS: u64 = 50_000;

/// `spinpark_cond_t`.
#[repr(C)]
pub struct Cond {
    raw: RawCondvar<Linux>,
}

const _: () = assert!(size_of::<Cond>() == 16 && align_of::<Cond>() == 8, "the header's promise");

impl Cond {
    /// `false` once the deadline has passed.
    #[inline(never)] // it is about to sleep
    fn wait(&self, mutex: &Mutex, deadline: Option<Deadline>) -> bool {
        // Not whether the calling thread holds it: in a forked child a hold has the parent's token.
        if !mutex.raw.is_locked() {
            misuse!("spinpark_cond_wait", "no thread holds the mutex: lock it first");
        }
        let waiter = Waiter::with_mutex(&mutex.raw);
        if !self.raw.enqueue_alike(&waiter) {
            misuse!("spinpark_cond_wait", "another thread waits with another mutex");
        }
        mutex.raw.unlock_to_wait();
        waiter.sleep(deadline, Linux::futex_wait);
        let result = self.raw.finish(&waiter);
        waiter.reacquire(result, &mutex.raw);
        result == WaitResult::Signalled
    }
}

/// `spinpark_cond_init`.
#[unsafe(no_mangle)]
pub extern "C" fn spinpark_cond_init(cond: &mut MaybeUninit<Cond>) {
    cond.write(Cond { raw: RawCondvar::new() });
}

/// `spinpark_cond_destroy`: waits for those that are just returning at their deadline.
#[unsafe(no_mangle)]
pub extern "C" fn spinpark_cond_destroy(cond: &Cond) {
    while !cond.raw.is_idle() {
        if cond.raw.is_waited_on() {
            misuse!("spinpark_cond_destroy", "a thread waits: spinpark_cond_broadcast wakes it");
        }
        spinpark_linux::sleep_for(LEAVING_NS);
    }
}

/// `spinpark_cond_wait`.
#[unsafe(no_mangle)]
pub extern "C" fn spinpark_cond_wait(cond: &Cond, mutex: &Mutex) {
    cond.wait(mutex, None);
}

/// `spinpark_cond_wait_for`.
#[unsafe(no_mangle)]
pub extern "C" fn spinpark_cond_wait_for(cond: &Cond, mutex: &Mutex, nanoseconds: u64) -> bool {
    cond.wait(mutex, Some(time::after(nanoseconds)))
}

/// `spinpark_cond_wait_until`.
#[unsafe(no_mangle)]
pub extern "C" fn spinpark_cond_wait_until(cond: &Cond, mutex: &Mutex, deadline: &timespec) -> bool {
    cond.wait(mutex, Some(time::at(deadline)))
}

/// `spinpark_cond_signal`.
#[unsafe(no_mangle)]
pub extern "C" fn spinpark_cond_signal(cond: &Cond) {
    cond.raw.send(false);
}

/// `spinpark_cond_broadcast`.
#[unsafe(no_mangle)]
pub extern "C" fn spinpark_cond_broadcast(cond: &Cond) {
    cond.raw.send(true);
}
