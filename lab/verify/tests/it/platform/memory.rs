//! `Memory`: atomics, cells, the full fence.

use std::sync::Arc;

use spinpark_platform::Ordering::{AcqRel, Acquire, Relaxed, Release};
use spinpark_platform::{AtomicPtr, AtomicU32, Cell, Memory, Platform};
use spinpark_sim::Object;

use super::machine::{Contract, Machine, Word};

impl<M: Machine> Contract<M> {
    pub(crate) fn atomics_do_what_they_say() {
        let word = Word::<M>::new(3);
        assert_eq!((word.swap(5, AcqRel), word.load(Acquire)), (3, 5));
        assert_eq!(word.compare_exchange(4, 6, AcqRel, Relaxed), Err(5));
        assert_eq!(word.compare_exchange(5, 6, AcqRel, Relaxed), Ok(5));
        while word.compare_exchange_weak(6, 7, AcqRel, Relaxed).is_err() {}
        assert_eq!((word.fetch_add(9, Relaxed), word.fetch_sub(8, Relaxed)), (7, 16));
        assert_eq!((word.fetch_or(5, Relaxed), word.fetch_and(12, Relaxed)), (8, 13));
        word.store(1, Release);
        assert_eq!(word.load(Relaxed), 1);
        let (mut a, mut b) = (1, 2);
        let (a, b): (*mut u8, *mut u8) = (&raw mut a, &raw mut b);
        let pointer = <M::P as Memory>::AtomicPtr::new(a);
        assert_eq!((pointer.swap(b, AcqRel), pointer.load(Acquire)), (a, b));
        assert_eq!(pointer.compare_exchange(a, b, AcqRel, Relaxed), Err(b));
        assert_eq!(pointer.compare_exchange(b, a, AcqRel, Relaxed), Ok(b));
        pointer.store(b, Release);
        assert_eq!(pointer.load(Relaxed), b);
    }

    /// What a release published can be read after the acquire.
    pub(crate) fn a_cell_goes_with_its_word() {
        struct Published<P: Platform>(P::AtomicU32, P::Cell<u32>);
        // SAFETY: the cell is written before the release of 1, and read after an acquire of it.
        unsafe impl<P: Platform> Send for Published<P> {}
        // SAFETY: as above.
        unsafe impl<P: Platform> Sync for Published<P> {}
        let published = Object::arc(Published::<M::P>(AtomicU32::new(0), Cell::new(0)));
        let reader = {
            let published = Arc::clone(&published);
            M::spawn(move || {
                let published = &*published;
                while published.0.load(Acquire) == 0 {
                    M::yield_now();
                }
                // SAFETY: the word is 1, so the write is over.
                assert_eq!(published.1.with(|cell| unsafe { *cell }), 7);
            })
        };
        // SAFETY: the word is 0, so no thread reads yet.
        published.1.with_mut(|cell| unsafe { *cell = 7 });
        published.0.store(1, Release);
        M::join(reader);
    }

    /// Store, fence, look, in two threads: at least one sees the other's store.
    pub(crate) fn of_two_that_fence_one_sees_the_other() {
        let words = Object::arc([Word::<M>::new(0), Word::<M>::new(0)]);
        let cross = |words: &[Word<M>; 2], mine: usize| {
            words[mine].store(1, Relaxed);
            M::P::full_fence();
            words[1 - mine].load(Relaxed)
        };
        let (seen, other) = {
            let seen = Object::arc(Word::<M>::new(9));
            let (there, words) = (Arc::clone(&seen), Arc::clone(&words));
            (seen, M::spawn(move || there.store(cross(&words, 1), Relaxed)))
        };
        let mine = cross(&words, 0);
        M::join(other);
        assert!(mine + seen.load(Relaxed) > 0, "no thread saw anything");
    }
}
