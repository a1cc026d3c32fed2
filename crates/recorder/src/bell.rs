//! How a process hears that it is asked for something, and answers.
//!
//! A command writes a wish, then rings: it makes the bell another number. Any number of processes may share one
//! bell, forked from each other; each has a number that it has *heard*. A thread that finds the two different
//! *answers*: it fulfils the wishes of its process. No thread waits for the one that answers, and none is
//! needed for it: if it is late, or fails once, the numbers stay different, and the next call of any thread
//! answers.
//!
//! # Invariants
//!
//! - **B1, no ring is missed.** The bell is read before the wishes are, and heard is what was read then. A ring
//!   that comes meanwhile makes it another number again.
//! - **B2, one thread of a process answers at a time**, and the next one sees what it has done.
//! - **B3, a process that heard the bell sees the wish** that it was rung for.
//! - **B4, a forked child answers by itself.** The thread that answered in its parent is not in the child:
//!   there, no thread answers, and what it was about to hear was not heard.
//!
//! # Orderings
//!
//! | operation                  | order   | pairs with | because                                  |
//! |----------------------------|---------|------------|------------------------------------------|
//! | bell: change               | Release | load       | B3: by a system call (pwrite), as the wish |
//! | bell: load, to answer      | Acquire | change     | B3                                       |
//! | bell, heard: load          | Relaxed | –          | a thread that is late by a call does no harm |
//! | heard: store               | Relaxed | –          | only a thread that answers stores it (B2)  |
//! | answerer: CAS              | Acquire | store of 0 | B2                                       |
//! | answerer: store of 0       | Release | CAS        | B2                                       |

use spinpark_platform::AtomicU32;
use spinpark_platform::Ordering::{Acquire, Relaxed, Release};

/// The calling thread, `me`, has found that the bell was rung. `fulfil` does what is wished; whether that is to
/// count as heard, else a later call does it again.
pub fn answer<A: AtomicU32>(bell: &A, heard: &A, answerer: &A, me: u32, mut fulfil: impl FnMut() -> bool) {
    with_turn(answerer, me, || loop {
        let rung = bell.load(Acquire);
        if heard.load(Relaxed) == rung || !fulfil() {
            return;
        }
        heard.store(rung, Relaxed);
    });
}

/// Runs `body`, unless another thread answers, or `me` does: a signal handler has interrupted it.
pub fn with_turn<A: AtomicU32>(answerer: &A, me: u32, body: impl FnOnce()) {
    if answerer.compare_exchange(0, me, Acquire, Relaxed).is_ok() {
        body();
        answerer.store(0, Release);
    }
}

/// In a forked child, whose only thread this is.
pub fn forked<A: AtomicU32>(answerer: &A) {
    answerer.store(0, Relaxed);
}
