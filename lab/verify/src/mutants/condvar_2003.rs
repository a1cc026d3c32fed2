//! Ways to signal a condition variable of 2003 that lose wake-ups.

use spinpark_classics::condvar_2003::{Requeue, Signalling};
use spinpark_classics::mutex_2003::Mutex;
use spinpark_platform::{Comparison, Operand, Platform, WakeOp, WordOp};

/// What document 003 shows to lose a wake-up: the waiter is moved to the internal lock, and takes it without
/// the mark.
#[derive(Clone, Copy, Debug)]
pub enum PlainRequeue {}

impl Signalling for PlainRequeue {
    fn wake_and_unlock<P: Platform>(futex: &P::AtomicU32, lock: &Mutex<P>) {
        Requeue::wake_and_unlock(futex, lock);
    }

    fn relock<P: Platform>(lock: &Mutex<P>) {
        lock.lock();
    }
}

/// The kernel unlocks, and never wakes a sleeper on the internal lock.
#[derive(Clone, Copy, Debug)]
pub enum Forgetful {}

/// Of a word that is 0, 1 or 2, the condition does not hold.
const UNLOCK: WakeOp = match WakeOp::new(WordOp::Set, Operand::Value(0), Comparison::Greater, 2) {
    Some(op) => op,
    None => panic!("small numbers fit"),
};

impl Signalling for Forgetful {
    fn wake_and_unlock<P: Platform>(futex: &P::AtomicU32, lock: &Mutex<P>) {
        P::futex_wake_op(futex, 1, lock.word(), UNLOCK, 1);
    }

    fn relock<P: Platform>(lock: &Mutex<P>) {
        lock.lock();
    }
}
