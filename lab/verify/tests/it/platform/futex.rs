//! `Futex`: sleeping and waking, on one word, on two, until a deadline.

use std::sync::Arc;

use spinpark_platform::Ordering::{Acquire, Relaxed, Release};
use spinpark_platform::{
    AtomicU32, Clock, Clocks, Comparison, Deadline, Futex, Operand, Wait, WakeOp, WordOp,
};
use spinpark_sim::Object;

use super::machine::{Contract, Machine, Word};

/// Two words that threads share.
type Two<M> = Arc<Object<[Word<M>; 2]>>;

const CLOCKS: [Clock; 2] = [Clock::Monotonic, Clock::Realtime];

impl<M: Machine> Contract<M> {
    pub(crate) fn a_wait_on_another_value_returns_at_once() {
        let word = Word::<M>::new(1);
        assert_ne!(M::P::futex_wait(&word, 0, None), Wait::TimedOut);
        assert_eq!(word.load(Relaxed), 1, "the word is only compared");
    }

    pub(crate) fn a_deadline_that_has_passed_ends_a_wait_at_once() {
        for clock in CLOCKS {
            for at in [0, M::P::now(clock)] {
                let word = Word::<M>::new(0);
                while M::P::futex_wait(&word, 0, Some(Deadline { clock, at })) != Wait::TimedOut {}
            }
        }
    }

    /// No wait ends as timed out before its deadline.
    pub(crate) fn a_deadline_ends_a_wait_and_not_before() {
        for clock in CLOCKS {
            let deadline = Deadline { clock, at: M::P::now(clock) + 1_000 };
            let timer = M::spawn(|| M::pass(1_000));
            let word = Word::<M>::new(0);
            while M::P::futex_wait(&word, 0, Some(deadline)) != Wait::TimedOut {}
            assert!(M::P::now(clock) >= deadline.at);
            M::join(timer);
        }
    }

    /// Nor before its span is over, which may be none. Time goes on until then: a span begins when it is
    /// asked for.
    pub(crate) fn a_span_ends_a_wait_and_not_before() {
        let words = Object::arc([Word::<M>::new(0), Word::<M>::new(0)]);
        let timer = {
            let words = Arc::clone(&words);
            M::spawn(move || {
                while words[1].load(Acquire) == 0 {
                    M::pass(1_000);
                    M::yield_now();
                }
            })
        };
        let word = &words[0];
        assert_ne!(M::P::futex_wait_for(word, 1, 1_000), Wait::TimedOut, "it is only compared");
        while M::P::futex_wait_for(word, 0, 0) != Wait::TimedOut {}
        let end = M::P::now(Clock::Monotonic) + 1_000;
        while M::P::futex_wait_for(word, 0, 1_000) != Wait::TimedOut {}
        assert!(M::P::now(Clock::Monotonic) >= end);
        words[1].store(1, Release);
        M::join(timer);
    }

    /// The comparison and the start of the sleep are one step: else the waiter sleeps for ever.
    pub(crate) fn a_change_and_a_wake_reach_a_waiter() {
        let word = Object::arc(Word::<M>::new(0));
        let waiter = {
            let word = Arc::clone(&word);
            M::spawn(move || {
                while word.load(Acquire) == 0 {
                    M::P::futex_wait(&word, 0, None);
                }
            })
        };
        word.store(1, Release);
        M::P::futex_wake(Arc::as_ptr(&word).cast(), 1);
        M::join(waiter);
    }

    /// A wake of one wakes one at most, and says whether it did.
    pub(crate) fn wakes_are_counted() {
        let words = Object::arc([Word::<M>::new(0), Word::<M>::new(0)]);
        assert_eq!(M::P::futex_wake(&words[0], u32::MAX), 0, "no thread sleeps");
        let waiter = {
            let words = Arc::clone(&words);
            M::spawn(move || {
                while words[0].load(Acquire) == 0 {
                    M::P::futex_wait(&words[0], 0, None);
                }
            })
        };
        assert_eq!(M::P::futex_wake(&words[1], u32::MAX), 0, "no thread sleeps on this word");
        words[0].store(1, Release);
        assert!(M::P::futex_wake(&words[0], u32::MAX) <= 1);
        M::join(waiter);
        assert_eq!(M::P::futex_wake(&words[0], u32::MAX), 0, "no thread sleeps any more");
    }

    /// A key is never dereferenced.
    pub(crate) fn a_key_may_be_stale() {
        let word = Box::new(Word::<M>::new(0));
        let key: *const Word<M> = &*word;
        drop(word);
        M::P::futex_wake(key, 1);
    }

    /// Two words, and a thread that sleeps on the first one until that is not 0.
    fn sleeper_on_the_first() -> (Two<M>, M::Handle) {
        let words = Object::arc([Word::<M>::new(0), Word::<M>::new(0)]);
        let theirs = Arc::clone(&words);
        let thread = M::spawn(move || {
            while theirs[0].load(Acquire) == 0 {
                M::P::futex_wait(&theirs[0], 0, None);
            }
        });
        (words, thread)
    }

    /// A moved thread is reached through the other word, and through that only; one that is not asleep yet is
    /// not moved.
    pub(crate) fn a_sleeper_is_moved() {
        for expected in [None, Some(0)] {
            let (words, sleeper) = Self::sleeper_on_the_first();
            let [first, second] = &**words;
            let moved = M::P::futex_requeue(first, expected, 0, second, 1);
            let Some(moved) = moved else { panic!("the word has not changed") };
            assert!(moved <= 1);
            if moved == 1 {
                assert_eq!(M::P::futex_wake(first, 1), 0, "it is not here any more");
            }
            first.store(1, Release);
            let reached = [first, second].map(|word| M::P::futex_wake(word, 1));
            assert!(reached[0] + reached[1] <= 1);
            M::join(sleeper);
        }
    }

    pub(crate) fn a_move_compares() {
        let words = [Word::<M>::new(3), Word::<M>::new(0)];
        assert_eq!(M::P::futex_requeue(&words[0], Some(2), 1, &words[1], 1), None);
        assert_eq!(M::P::futex_requeue(&words[0], Some(3), 1, &words[1], 1), Some(0), "no thread sleeps");
    }

    pub(crate) fn an_operation_comes_with_a_wake() {
        let (words, sleeper) = Self::sleeper_on_the_first();
        let [first, second] = &**words;
        let op = WakeOp::new(WordOp::Add, Operand::Bit(3), Comparison::Equal, 0).unwrap();
        first.store(1, Release);
        let woken = M::P::futex_wake_op(first, 1, second, op, 1).expect("a machine here can do it");
        assert!(woken <= 1);
        assert_eq!(second.load(Relaxed), 8);
        M::join(sleeper);
    }

    /// The second word's sleeper is woken if the condition holds of the old value; otherwise it sleeps on.
    pub(crate) fn an_operation_wakes_on_its_word_if_its_condition_holds() {
        for holds in [true, false] {
            let words = Object::arc([Word::<M>::new(0), Word::<M>::new(2)]);
            let sleeper = {
                let words = Arc::clone(&words);
                M::spawn(move || {
                    while words[1].load(Acquire) == 2 {
                        M::P::futex_wait(&words[1], 2, None);
                    }
                })
            };
            let constant = if holds { 1 } else { 2 };
            let op = WakeOp::new(WordOp::AndNot, Operand::Value(-1), Comparison::Greater, constant).unwrap();
            let woken =
                M::P::futex_wake_op(&words[0], 1, &words[1], op, 1).expect("a machine here can do it");
            assert_eq!(words[1].load(Relaxed), 0);
            if !holds {
                assert_eq!(woken, 0, "no thread sleeps on the first word");
                M::P::futex_wake(&words[1], 1);
            }
            M::join(sleeper);
        }
    }
}
