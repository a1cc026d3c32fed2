//! The fork generation: a number that differs from the parent's in every child, however it was made.
//!
//! A fork handler is not run by `_Fork`, nor by a bare `clone`, nor before other handlers that use locks. So
//! the number is in a page that the kernel empties in a child (`MADV_WIPEONFORK`, Linux 4.14). Only slow
//! paths ask for it: they find it gone and choose the next one. Without such a page the fork handler does
//! that.
//!
//! # State
//!
//! | `word`      | meaning                                                         |
//! |-------------|-----------------------------------------------------------------|
//! | 0           | a child that no slow path has run in                            |
//! | number + 1  | this process' number                                            |
//!
//! - **N1** `LATEST` is never less than the number in `word`: it is raised first. So a child, which inherits
//!   it, chooses a number that none of its ancestors has had (until they are 2^21).
//! - **N2** Only a compare-exchange replaces 0, so all threads of a process agree, also if one of them is
//!   interrupted half-way for good. A thread that loses that race has raised `LATEST` once more, which skips
//!   a number.
//!
//! Relaxed throughout: the number carries no data, and threads that disagree about a word of 0 are
//! distinguished by N2.

use core::sync::atomic::{AtomicPtr, AtomicU32, Ordering::Relaxed};

use crate::raw;

/// The highest number chosen so far, here or by an ancestor.
static LATEST: AtomicU32 = AtomicU32::new(0);
/// The word until there is a page, or if there is none.
static KEPT: AtomicU32 = AtomicU32::new(1);
static WORD: AtomicPtr<AtomicU32> = AtomicPtr::new((&raw const KEPT).cast_mut());

const PAGE: usize = 4096;
/// 21 bits are left for the number, and 0 is the first process'.
const LAST: u32 = (1 << 21) - 1;

fn word() -> &'static AtomicU32 {
    // SAFETY: a static, or a page that is never unmapped.
    unsafe { &*WORD.load(Relaxed) }
}

/// This process' number; 0 in the first one.
#[inline(never)] // slow paths only, in many places: for the drop-in's size
pub(crate) fn generation() -> u32 {
    match word().load(Relaxed) {
        0 => choose(),
        known => known - 1,
    }
}

#[cold]
#[inline(never)]
fn choose() -> u32 {
    let count = LATEST.fetch_add(1, Relaxed); // N1
    let number = count % LAST + 1;
    match word().compare_exchange(0, number + 1, Relaxed, Relaxed) {
        Ok(_) => number,
        Err(other) => other - 1, // N2
    }
}

/// Makes the page, if this kernel can empty it. Once, from [`start`](crate::start).
pub(crate) fn start() {
    let Some(page) = raw::map_zero(PAGE) else { return };
    if !raw::wipe_on_fork(page.as_ptr(), PAGE) {
        // SAFETY: mapped just now, and nothing refers to it.
        unsafe { raw::unmap(page, PAGE) };
        return;
    }
    let page = page.as_ptr().cast::<AtomicU32>();
    // SAFETY: a page of zeros, aligned, that stays.
    unsafe { &*page }.store(KEPT.load(Relaxed), Relaxed);
    WORD.store(page, Relaxed);
}

/// The fork handler's part: chooses a number where nothing has emptied the word.
pub(crate) fn in_forked_child() {
    KEPT.store(0, Relaxed); // has no effect where there is a page
    generation();
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;

    #[test]
    fn the_threads_of_a_child_agree_on_a_new_number() {
        for _ in 0..200 {
            let before = generation();
            word().store(0, Relaxed);
            let chosen: [u32; 4] = std::thread::scope(|scope| {
                [(); 4].map(|()| scope.spawn(generation)).map(|thread| thread.join().expect("no panic"))
            });
            assert!(chosen.iter().all(|&number| number == generation() && number > before), "{chosen:?}");
            assert!(LATEST.load(Relaxed) >= generation(), "N1");
        }
        in_forked_child();
    }
}
