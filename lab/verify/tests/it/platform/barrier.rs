//! `AsymmetricBarrier`: releases that are plain stores, and the fence that ends them.

use std::sync::Arc;

use spinpark_platform::Ordering::{AcqRel, Acquire, Relaxed};
use spinpark_platform::{AsymmetricBarrier, AtomicU32};
use spinpark_sim::Object;

use super::machine::{Contract, Machine, Word};

impl<M: Machine> Contract<M> {
    /// It may fail at any time, but not for ever; the word is 0 afterwards, or as before.
    pub(crate) fn a_release_says_what_it_did() {
        let (guard, word) = (Word::<M>::new(2), Word::<M>::new(7)); // a bit that is not in the mask
        while !M::P::release_unless::<5>(&guard, &word, || 7) {
            assert_eq!(word.load(Relaxed), 7, "nothing was done");
        }
        assert_eq!((word.load(Relaxed), guard.load(Relaxed)), (0, 2));
    }

    pub(crate) fn a_guard_keeps_a_release_from_storing() {
        for bits in [1, 4, 5, 7] {
            // Whether or not the word is as likely: without steps, it is released by a compare-exchange.
            for held in [7, 9] {
                let (guard, word) = (Word::<M>::new(bits), Word::<M>::new(held));
                assert!(!M::P::release_unless::<5>(&guard, &word, || 7));
                assert_eq!((word.load(Relaxed), guard.load(Relaxed)), (held, bits));
            }
        }
    }

    /// What the holder wrote can be read by a thread that finds the word released.
    pub(crate) fn a_release_publishes() {
        let words = Object::arc([Word::<M>::new(0), Word::<M>::new(1), Word::<M>::new(0)]);
        let reader = {
            let words = Arc::clone(&words);
            M::spawn(move || {
                let [_, word, data] = &**words;
                while word.load(Acquire) != 0 {
                    M::yield_now();
                }
                assert_eq!(data.load(Relaxed), 7);
            })
        };
        let [guard, word, data] = &**words;
        data.store(7, Relaxed);
        while !M::P::release_unless::<1>(guard, word, || 1) {}
        M::join(reader);
    }

    /// A thread that sets a bit of the guard, writes to the word and fences is not wiped out any more.
    pub(crate) fn nothing_is_stored_after_a_asymmetric_barrier() {
        let words = Object::arc([Word::<M>::new(0), Word::<M>::new(1)]);
        let other = {
            let words = Arc::clone(&words);
            M::spawn(move || {
                let [guard, word] = &**words;
                M::P::release_unless::<1>(guard, word, || 1);
            })
        };
        let [guard, word] = &**words;
        guard.fetch_or(1, AcqRel);
        word.fetch_or(2, AcqRel);
        M::P::asymmetric_barrier();
        let seen = word.load(Relaxed);
        M::join(other);
        assert_eq!(word.load(Relaxed), seen);
    }
}
