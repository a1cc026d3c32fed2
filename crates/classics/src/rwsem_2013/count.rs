//! The count of the semaphore: how many hold it or try to, and whether there are waiters.
//!
//! Numbers are signed, 32 bits wide, as on 32-bit machines before 2019.
//!
//! | count        | meaning                                                                     |
//! |--------------|-----------------------------------------------------------------------------|
//! | `0x00000000` | free                                                                        |
//! | `0x0000000n` | n readers hold it, or try to                                                |
//! | `0xffff0000` | free, with waiters: a writer may steal it                                   |
//! | `0xffff0001` | a writer holds it, no waiters; or one reader does, with waiters             |
//! | `0xffff000n` | n readers, with waiters; or one writer tries while others do                |
//! | `0xfffe0001` | a writer holds it, with waiters                                             |

/// A thread that holds the semaphore or tries to.
pub(super) const ACTIVE: i32 = 1;
/// The count of such threads.
pub(super) const ACTIVE_MASK: i32 = 0xffff;
/// There are waiters.
pub(super) const WAITING: i32 = -ACTIVE_MASK - 1;
/// A writer that holds it or tries to.
pub(super) const WRITE: i32 = WAITING + ACTIVE;

/// Whether no thread holds it or tries to.
pub(super) fn is_idle(count: i32) -> bool {
    count & ACTIVE_MASK == 0
}

/// Whether a writer holds it or tries to, with waiters in the list: readers in the list cannot be let in.
pub(super) fn is_stolen(count: i32) -> bool {
    count < WAITING
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states() {
        assert_eq!([WAITING, WRITE].map(|count| count as u32), [0xffff_0000, 0xffff_0001]);
        assert_eq!((WRITE + WAITING) as u32, 0xfffe_0001);
        assert_eq!(WRITE - WAITING, ACTIVE, "a downgrade takes the writer's part away");
        assert!(is_idle(0) && is_idle(WAITING) && !is_idle(WRITE) && !is_idle(3));
        assert!(is_stolen(WRITE + WAITING) && !is_stolen(WAITING) && !is_stolen(WAITING + 7));
    }
}
