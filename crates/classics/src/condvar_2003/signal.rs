//! Three ways to end a wait while the internal lock is held, and what each asks of the waiter.

use spinpark_platform::{Comparison, Event, Operand, Platform, WakeOp, WordOp};

use crate::mutex_2003::Mutex;

/// How a signal wakes its waiter and gives up the internal lock.
pub trait Signalling: Send + Sync + 'static {
    /// Ends the sleep of one thread on `futex`, and unlocks `lock`, which the caller holds.
    fn wake_and_unlock<P: Platform>(futex: &P::AtomicU32, lock: &Mutex<P>);

    /// Takes `lock` after a sleep on the condition variable's futex.
    fn relock<P: Platform>(lock: &Mutex<P>);
}

/// A wake, then an unlock: glibc from September 2003 to September 2005 ("nptl-orig" in document 003).
///
/// A waiter that runs at once finds the lock held, sleeps again, and has slept there, so it leaves with a
/// wake as well (mutex_2003.M2): five system calls for a signal, and the waiter is switched to twice.
#[derive(Clone, Copy, Debug)]
pub enum Orig {}

impl Signalling for Orig {
    fn wake_and_unlock<P: Platform>(futex: &P::AtomicU32, lock: &Mutex<P>) {
        P::futex_wake(futex, 1);
        lock.unlock();
    }

    fn relock<P: Platform>(lock: &Mutex<P>) {
        lock.lock();
    }
}

/// The waiter is moved to the lock, and the unlock wakes it: "nptl-requeue" in document 003.
///
/// The waiter is switched to once, but there are still four system calls: the signal's unlock always wakes,
/// and so does that of a thread that comes back from a sleep, since it takes the lock with the mark (M3 of
/// the [mutex](Mutex)). Without that mark a wake-up is lost, as the document shows.
#[derive(Clone, Copy, Debug)]
pub enum Requeue {}

impl Signalling for Requeue {
    fn wake_and_unlock<P: Platform>(futex: &P::AtomicU32, lock: &Mutex<P>) {
        match P::futex_requeue(futex, None, 0, lock.word(), 1) {
            Some(moved) => {
                if moved > 0 {
                    P::event(Event::MovedWaiter);
                }
                lock.unlock_and_wake();
            }
            None => Orig::wake_and_unlock(futex, lock),
        }
    }

    fn relock<P: Platform>(lock: &Mutex<P>) {
        lock.lock_marked();
    }
}

/// The kernel unlocks before any woken thread runs: glibc from September 2005 to 2017 ("nptl-wake_op" in
/// document 003).
///
/// Two system calls, the signaller's and the waiter's, and the waiter is switched to once.
#[derive(Clone, Copy, Debug)]
pub enum WakeByOp {}

/// T3 and T4 of the mutex, by the kernel: the word becomes 0, and one who sleeps there is woken if it was 2.
const UNLOCK: WakeOp = match WakeOp::new(WordOp::Set, Operand::Value(0), Comparison::Greater, 1) {
    Some(op) => op,
    None => panic!("small numbers fit"),
};

impl Signalling for WakeByOp {
    fn wake_and_unlock<P: Platform>(futex: &P::AtomicU32, lock: &Mutex<P>) {
        if P::futex_wake_op(futex, 1, lock.word(), UNLOCK, 1).is_none() {
            Orig::wake_and_unlock(futex, lock);
        }
    }

    fn relock<P: Platform>(lock: &Mutex<P>) {
        lock.lock();
    }
}
