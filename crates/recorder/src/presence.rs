//! Whether a thread is in the recorder: no recording begins while one is.
//!
//! The memory of a recording is used again by the next one. A thread that enters the recorder says so first,
//! and checks then whether the recording is still the one that it knows; a thread that ends all recordings
//! changes the epoch first, and checks then whether any thread is in the recorder:
//!
//! ```text
//!     a thread that enters          the thread that ends all
//!     at_work = 1                   epoch += 1
//!     ── fence of the other ──      ── barrier ──
//!     epoch is mine? go on          at_work of all = 0? go on
//! ```
//!
//! So one of the two sees the other. The thread that enters has only a compiler's fence: the barrier
//! (membarrier) makes one of it. A thread without a table has no `at_work`. It is counted in `entering`, and
//! the word that it reads is the state, which is not *on* from before the change of the epoch.
//!
//! # Invariants
//!
//! - **P1, no thread with a table uses a recording's memory once all are ended.** Either its `at_work` is seen
//!   after the barrier, or it sees the new epoch after its fence.
//! - **P2, no thread without a table does.** Either its count in `entering` is seen, or it sees that the state
//!   is not *on*.
//! - **P3, a thread that gets its table is seen all the time.** It is at work before it is counted out, and the
//!   ending thread reads the count before it looks for threads at work.
//! - **P4, what a thread has written in the recorder comes before what the next recording writes.**
//!
//! # Orderings
//!
//! | operation                      | order           | pairs with  | because                                |
//! |--------------------------------|-----------------|-------------|----------------------------------------|
//! | `at_work`: store of 1          | Relaxed, fence  | the barrier | P1                                     |
//! | `at_work`: store of 0          | Release         | its load    | P4                                     |
//! | `at_work`: load                | Acquire         | the store   | P4                                     |
//! | `epoch`: add, load             | Relaxed         | the barrier | P1                                     |
//! | `entering`: add                | Relaxed, full fence | the barrier | P2                                 |
//! | `entering`: subtract           | Release         | its load    | P3, P4                                 |
//! | `entering`: load               | Acquire         | subtract    | P3, P4                                 |
//! | state: load                    | Acquire         | store of *on* | the recording that it enters is complete |

use spinpark_platform::AtomicU32;
use spinpark_platform::Ordering::{Acquire, Relaxed, Release};

/// A thread with a table of the recording `own` enters the recorder: whether that is the present one, which
/// stays until [`leave`]. If not, the thread leaves all the same. `fence`: of the compiler.
#[inline(always)]
pub fn enter<A: AtomicU32>(at_work: &A, own: &A, epoch: &A, fence: impl FnOnce()) -> bool {
    at_work.store(1, Relaxed);
    fence();
    own.load(Relaxed) == epoch.load(Relaxed)
}

/// It leaves.
#[inline(always)]
pub fn leave<A: AtomicU32>(at_work: &A) {
    at_work.store(0, Release);
}

/// A thread without a table enters: whether the state is `on`, and stays so until [`got_table`], which follows
/// in any case. `fence`: a full one.
pub fn enter_first<A: AtomicU32>(entering: &A, state: &A, on: u32, fence: impl FnOnce()) -> bool {
    entering.fetch_add(1, Relaxed);
    fence();
    state.load(Acquire) == on
}

/// It has a table, with this `at_work`, or gets none.
pub fn got_table<A: AtomicU32>(entering: &A, at_work: Option<&A>) {
    if let Some(at_work) = at_work {
        at_work.store(1, Relaxed);
    }
    entering.fetch_sub(1, Release);
}

/// Ends all recordings, of a process whose state is not *on* any more. Whether no thread is in the recorder:
/// then none comes in before the state is *on* again. `barrier`: a full fence of this thread, and one of each
/// thread that is in the recorder, or an error. `are_out`: whether `is_out` holds of all that have a table.
pub fn end_all<A: AtomicU32, E>(
    epoch: &A,
    entering: &A,
    barrier: impl FnOnce() -> Result<(), E>,
    are_out: impl FnOnce() -> bool,
) -> Result<bool, E> {
    epoch.fetch_add(1, Relaxed);
    barrier()?;
    Ok(entering.load(Acquire) == 0 && are_out())
}

/// Whether a thread with a table is out of the recorder.
pub fn is_out<A: AtomicU32>(at_work: &A) -> bool {
    at_work.load(Acquire) == 0
}
