//! One conformance test of the seam for every platform here: Loom and Linux.

use std::marker::PhantomData;
use std::sync::Arc;
use std::time::Duration;

use spinpark_linux::Linux;
use spinpark_platform::Ordering::{AcqRel, Acquire, Relaxed, Release};
use spinpark_platform::{AtomicPtr, AtomicU32, Cell, Clock, Deadline, NS_PER_SEC, Platform, SlotLeft, Wait};
use spinpark_platform::{Comparison, Operand, WakeOp, WordOp};
use spinpark_verify::platform::{Loom, advance};
use spinpark_verify::{Model, rejected};

/// How to run threads on a platform.
trait Machine: 'static {
    type P: Platform;
    type Handle;
    /// Runs `test`, once or in every order.
    fn run(test: fn());
    fn spawn(body: impl FnOnce() + Send + 'static) -> Self::Handle;
    fn join(handle: Self::Handle);
    fn yield_now();
    /// Lets at least `ns` pass.
    fn pass(ns: u64);
}

struct OnLinux;

impl Machine for OnLinux {
    type P = Linux;
    type Handle = std::thread::JoinHandle<()>;
    fn run(test: fn()) {
        for _ in 0..20 {
            test();
        }
    }
    fn spawn(body: impl FnOnce() + Send + 'static) -> Self::Handle {
        std::thread::spawn(body)
    }
    fn join(handle: Self::Handle) {
        handle.join().unwrap();
    }
    fn yield_now() {
        std::thread::yield_now();
    }
    fn pass(ns: u64) {
        std::thread::sleep(Duration::from_nanos(ns));
    }
}

struct OnLoom;

impl Machine for OnLoom {
    type P = Loom;
    type Handle = loom::thread::JoinHandle<()>;
    fn run(test: fn()) {
        Model::new().moving_clock().check(test);
    }
    fn spawn(body: impl FnOnce() + Send + 'static) -> Self::Handle {
        loom::thread::spawn(body)
    }
    fn join(handle: Self::Handle) {
        handle.join().unwrap();
    }
    fn yield_now() {
        loom::thread::yield_now();
    }
    fn pass(ns: u64) {
        advance(ns);
    }
}

/// Loom without restartable steps: what a release is where the kernel or the user does not have them.
struct OnLoomWithoutSteps;

impl Machine for OnLoomWithoutSteps {
    type P = Loom;
    type Handle = loom::thread::JoinHandle<()>;
    fn run(test: fn()) {
        Model::new().moving_clock().without_steps().check(test);
    }
    fn spawn(body: impl FnOnce() + Send + 'static) -> Self::Handle {
        OnLoom::spawn(body)
    }
    fn join(handle: Self::Handle) {
        OnLoom::join(handle);
    }
    fn yield_now() {
        OnLoom::yield_now();
    }
    fn pass(ns: u64) {
        OnLoom::pass(ns);
    }
}

const CLOCKS: [Clock; 2] = [Clock::Monotonic, Clock::Realtime];

/// The contract, item by item.
struct Contract<M>(PhantomData<M>);

type Word<M> = <<M as Machine>::P as Platform>::AtomicU32;

impl<M: Machine> Contract<M> {
    fn a_wait_on_another_value_returns_at_once() {
        let word = Word::<M>::new(1);
        assert_ne!(M::P::futex_wait(&word, 0, None), Wait::TimedOut);
        assert_eq!(word.load(Relaxed), 1, "the word is only compared");
    }

    fn a_deadline_that_has_passed_ends_a_wait_at_once() {
        for clock in CLOCKS {
            for at in [0, M::P::now(clock)] {
                let word = Word::<M>::new(0);
                while M::P::futex_wait(&word, 0, Some(Deadline { clock, at })) != Wait::TimedOut {}
            }
        }
    }

    /// No wait ends as timed out before its deadline.
    fn a_deadline_ends_a_wait_and_not_before() {
        for clock in CLOCKS {
            let deadline = Deadline { clock, at: M::P::now(clock) + 1_000 };
            let timer = M::spawn(|| M::pass(1_000));
            let word = Word::<M>::new(0);
            while M::P::futex_wait(&word, 0, Some(deadline)) != Wait::TimedOut {}
            assert!(M::P::now(clock) >= deadline.at);
            M::join(timer);
        }
    }

    /// The comparison and the start of the sleep are one step: else the waiter sleeps for ever.
    fn a_change_and_a_wake_reach_a_waiter() {
        let word = Arc::new(Word::<M>::new(0));
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
    fn wakes_are_counted() {
        let words = Arc::new([Word::<M>::new(0), Word::<M>::new(0)]);
        assert_eq!(M::P::futex_wake(&words[0], u32::MAX), 0, "nobody sleeps");
        let waiter = {
            let words = Arc::clone(&words);
            M::spawn(move || {
                while words[0].load(Acquire) == 0 {
                    M::P::futex_wait(&words[0], 0, None);
                }
            })
        };
        assert_eq!(M::P::futex_wake(&words[1], u32::MAX), 0, "nobody sleeps on this word");
        words[0].store(1, Release);
        assert!(M::P::futex_wake(&words[0], u32::MAX) <= 1);
        M::join(waiter);
        assert_eq!(M::P::futex_wake(&words[0], u32::MAX), 0, "nobody sleeps any more");
    }

    /// A key is never dereferenced.
    fn a_key_may_be_stale() {
        let word = Box::new(Word::<M>::new(0));
        let key: *const Word<M> = &*word;
        drop(word);
        M::P::futex_wake(key, 1);
    }

    /// Two words, and a thread that sleeps on the first one until that is not 0.
    fn sleeper_on_the_first() -> (Arc<[Word<M>; 2]>, M::Handle) {
        let words = Arc::new([Word::<M>::new(0), Word::<M>::new(0)]);
        let theirs = Arc::clone(&words);
        let thread = M::spawn(move || {
            while theirs[0].load(Acquire) == 0 {
                M::P::futex_wait(&theirs[0], 0, None);
            }
        });
        (words, thread)
    }

    /// Who is moved is reached through the other word, and through that only; who is not asleep yet, is not moved.
    fn a_sleeper_is_moved() {
        for expected in [None, Some(0)] {
            let (words, sleeper) = Self::sleeper_on_the_first();
            let [first, second] = &*words;
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

    fn a_move_compares() {
        let words = [Word::<M>::new(3), Word::<M>::new(0)];
        assert_eq!(M::P::futex_requeue(&words[0], Some(2), 1, &words[1], 1), None);
        assert_eq!(M::P::futex_requeue(&words[0], Some(3), 1, &words[1], 1), Some(0), "nobody sleeps");
    }

    fn an_operation_comes_with_a_wake() {
        let (words, sleeper) = Self::sleeper_on_the_first();
        let [first, second] = &*words;
        let op = WakeOp::new(WordOp::Add, Operand::Bit(3), Comparison::Equal, 0).unwrap();
        first.store(1, Release);
        let woken = M::P::futex_wake_op(first, 1, second, op, 1).expect("a machine here can do it");
        assert!(woken <= 1);
        assert_eq!(second.load(Relaxed), 8);
        M::join(sleeper);
    }

    /// The second word's sleeper is woken if the condition holds of the old value; otherwise nobody knows of it.
    fn an_operation_wakes_on_its_word_if_its_condition_holds() {
        for holds in [true, false] {
            let words = Arc::new([Word::<M>::new(0), Word::<M>::new(2)]);
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
                assert_eq!(woken, 0, "nobody sleeps on the first word");
                M::P::futex_wake(&words[1], 1);
            }
            M::join(sleeper);
        }
    }

    fn tokens_name_threads() {
        let mine = M::P::thread_token();
        assert!(mine != 0 && mine < 1 << 24);
        assert_eq!(mine, M::P::thread_token());
        let other = M::spawn(move || {
            let token = M::P::thread_token();
            assert!(token != mine && token != 0 && token < 1 << 24);
        });
        M::join(other);
        assert_eq!(M::P::generation(), 0, "nobody has forked");
    }

    /// `false` is certain; `true` is allowed when more locks are held than a platform remembers.
    fn read_locks_are_remembered() {
        let locks: Vec<usize> = (1..=20).map(|lock| lock * 64).collect();
        assert!(!M::P::may_hold_read(locks[0]));
        M::P::read_acquired(locks[0]);
        M::P::read_acquired(locks[0]);
        M::P::read_released(locks[0]);
        assert!(M::P::may_hold_read(locks[0]), "held twice, given up once");
        let other = {
            let lock = locks[0];
            M::spawn(move || assert!(!M::P::may_hold_read(lock), "another thread's"))
        };
        M::join(other);
        M::P::read_released(locks[0]);
        assert!(!M::P::may_hold_read(locks[0]));
        for order in [locks.clone(), locks.iter().rev().copied().collect()] {
            locks.iter().for_each(|&lock| M::P::read_acquired(lock));
            assert!(locks.iter().all(|&lock| M::P::may_hold_read(lock)));
            order.iter().for_each(|&lock| M::P::read_released(lock));
            assert!(!locks.iter().any(|&lock| M::P::may_hold_read(lock)));
        }
    }

    fn atomics_do_what_they_say() {
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
        let pointer = <M::P as Platform>::AtomicPtr::new(a);
        assert_eq!((pointer.swap(b, AcqRel), pointer.load(Acquire)), (a, b));
        assert_eq!(pointer.compare_exchange(a, b, AcqRel, Relaxed), Err(b));
        assert_eq!(pointer.compare_exchange(b, a, AcqRel, Relaxed), Ok(b));
        pointer.store(b, Release);
        assert_eq!(pointer.load(Relaxed), b);
    }

    /// What a release published can be read after the acquire.
    fn a_cell_goes_with_its_word() {
        struct Published<P: Platform>(P::AtomicU32, P::Cell<u32>);
        // SAFETY: the cell is written before the release of 1, and read after an acquire of it.
        unsafe impl<P: Platform> Send for Published<P> {}
        // SAFETY: as above.
        unsafe impl<P: Platform> Sync for Published<P> {}
        let published = Arc::new(Published::<M::P>(AtomicU32::new(0), Cell::new(0)));
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
        // SAFETY: the word is 0, so nobody reads yet.
        published.1.with_mut(|cell| unsafe { *cell = 7 });
        published.0.store(1, Release);
        M::join(reader);
    }

    /// It may fail at any time, but not for ever; the word is 0 afterwards, or as before.
    fn a_release_says_what_it_did() {
        let (guard, word) = (Word::<M>::new(2), Word::<M>::new(7)); // a bit that is not in the mask
        while !M::P::release_unless::<5>(&guard, &word, || 7) {
            assert_eq!(word.load(Relaxed), 7, "nothing was done");
        }
        assert_eq!((word.load(Relaxed), guard.load(Relaxed)), (0, 2));
    }

    fn a_guard_keeps_a_release_from_storing() {
        for bits in [1, 4, 5, 7] {
            let (guard, word) = (Word::<M>::new(bits), Word::<M>::new(7));
            // A compare-exchange instead would do it; only a word that is not as likely shows the difference.
            word.store(9, Relaxed);
            assert!(!M::P::release_unless::<5>(&guard, &word, || 7));
            assert_eq!((word.load(Relaxed), guard.load(Relaxed)), (9, bits));
        }
    }

    /// What the holder wrote can be read by who finds the word released.
    fn a_release_publishes() {
        let words = Arc::new([Word::<M>::new(0), Word::<M>::new(1), Word::<M>::new(0)]);
        let reader = {
            let words = Arc::clone(&words);
            M::spawn(move || {
                let [_, word, data] = &*words;
                while word.load(Acquire) != 0 {
                    M::yield_now();
                }
                assert_eq!(data.load(Relaxed), 7);
            })
        };
        let [guard, word, data] = &*words;
        data.store(7, Relaxed);
        while !M::P::release_unless::<1>(guard, word, || 1) {}
        M::join(reader);
    }

    /// Who sets a bit of the guard, writes to the word and fences is not wiped out any more.
    fn nothing_is_stored_after_a_heavy_fence() {
        let words = Arc::new([Word::<M>::new(0), Word::<M>::new(1)]);
        let other = {
            let words = Arc::clone(&words);
            M::spawn(move || {
                let [guard, word] = &*words;
                M::P::release_unless::<1>(guard, word, || 1);
            })
        };
        let [guard, word] = &*words;
        guard.fetch_or(1, AcqRel);
        word.fetch_or(2, AcqRel);
        M::P::heavy_fence();
        let seen = word.load(Relaxed);
        M::join(other);
        assert_eq!(word.load(Relaxed), seen);
    }

    /// A gate that names the caller's table, and the lock that it is the gate of. None: this machine has no slots.
    fn gate() -> Option<(Arc<Word<M>>, usize)> {
        M::P::thread_token(); // decides whether there are any
        let table = M::P::slot_table();
        assert_eq!(table, M::P::slot_table(), "its name does not change");
        let gate = Arc::new(Word::<M>::new(table));
        let lock = Arc::as_ptr(&gate) as usize;
        if table == 0 {
            assert!(!M::P::slot_enter(&gate, lock), "a gate that is shut");
            assert_eq!(M::P::slot_leave(&gate, lock), SlotLeft::Counted);
            return None;
        }
        Some((gate, lock))
    }

    /// It may fail at any time, but not for ever.
    fn enter(gate: &Word<M>, lock: usize) {
        while !M::P::slot_enter(gate, lock) {
            M::yield_now();
        }
    }

    /// Gives up a read lock whose gate is open; whether it was in a slot.
    fn leave(gate: &Word<M>, lock: usize) -> bool {
        let left = M::P::slot_leave(gate, lock);
        left == SlotLeft::Left || (left == SlotLeft::Closed && !M::P::slot_take_back(lock))
    }

    fn a_slot_names_the_lock_until_its_reader_leaves() {
        assert!(M::P::reads_before_slots() > 0);
        assert!(M::P::MOST_SLOT_READERS <= 1 << 20, "the reserve of the count");
        let Some((gate, lock)) = Self::gate() else { return };
        let table = M::P::slot_table();
        assert!(!M::P::slot_enter(&Word::<M>::new(0), lock), "shut");
        assert!(!M::P::slot_enter(&Word::<M>::new(table - 1), lock), "another table");
        assert_eq!(M::P::slots_count(table, lock), 0);
        Self::enter(&gate, lock);
        Self::enter(&gate, lock);
        assert!(M::P::may_hold_read(lock));
        assert!(Self::leave(&gate, lock));
        assert!(M::P::slots_count(table, lock) == 1 && M::P::may_hold_read(lock), "one of two");
        assert!(Self::leave(&gate, lock));
        assert!(M::P::slots_count(table, lock) == 0 && !M::P::may_hold_read(lock));
        assert!(!Self::leave(&gate, lock), "no hold, no slot");
    }

    /// A reader that was moved learns it, also if the gate has been opened again; one that was not does not.
    fn who_shuts_a_gate_moves_its_readers() {
        for (shut_for_good, moves) in [(true, true), (false, true), (true, false)] {
            let Some((gate, lock)) = Self::gate() else { return };
            let table = M::P::slot_table();
            Self::enter(&gate, lock);
            gate.store(0, Relaxed);
            M::P::heavy_fence();
            assert_eq!(M::P::slots_count(0, lock), 0, "no table, no readers");
            if moves {
                assert_eq!(M::P::slots_count(table, lock), 1);
                M::P::slots_move(table, lock);
                assert_eq!(M::P::slots_count(table, lock), 0);
            }
            if !shut_for_good {
                gate.store(table, Release);
            }
            assert_eq!(M::P::slot_leave(&gate, lock), SlotLeft::Closed);
            assert!(M::P::may_hold_read(lock));
            assert_eq!(M::P::slot_take_back(lock), moves);
            assert!(!M::P::may_hold_read(lock));
            assert_eq!(M::P::slot_leave(&gate, lock), SlotLeft::Counted);
        }
    }

    fn a_slot_is_found_behind_counted_holds() {
        let Some((gate, lock)) = Self::gate() else { return };
        Self::enter(&gate, lock);
        M::P::read_acquired(lock);
        M::P::read_acquired(64);
        assert!(Self::leave(&gate, lock), "its slot");
        assert!(!Self::leave(&gate, lock), "no other");
        M::P::read_released(lock);
        assert!(!M::P::may_hold_read(lock));
        M::P::read_released(64);
        assert!(!M::P::may_hold_read(64));
    }

    /// Who has shut the gate and fenced finds each reader that came in and has not left, and nobody comes or leaves in
    /// passing any more.
    fn no_reader_comes_or_leaves_after_a_heavy_fence() {
        let Some((gate, lock)) = Self::gate() else { return };
        let words = Arc::new([Word::<M>::new(0), Word::<M>::new(0)]);
        let reader = {
            let (gate, words) = (Arc::clone(&gate), Arc::clone(&words));
            M::spawn(move || {
                let [is_closed, moved] = &*words;
                if !M::P::slot_enter(&gate, lock) || M::P::slot_leave(&gate, lock) == SlotLeft::Left {
                    return;
                }
                while is_closed.load(Acquire) == 0 {
                    M::yield_now();
                }
                assert!(M::P::slot_take_back(lock));
                moved.store(1, Relaxed);
            })
        };
        let [is_closed, moved] = &*words;
        gate.store(0, Relaxed);
        M::P::heavy_fence();
        let count = M::P::slots_count(M::P::slot_table(), lock);
        M::P::slots_move(M::P::slot_table(), lock);
        is_closed.store(1, Release);
        M::join(reader);
        assert_eq!(count, moved.load(Relaxed));
        assert_eq!(M::P::slots_count(M::P::slot_table(), lock), 0);
    }

    /// Store, fence, look, in two threads: at least one sees the other's store.
    fn of_two_that_fence_one_sees_the_other() {
        let words = Arc::new([Word::<M>::new(0), Word::<M>::new(0)]);
        let cross = |words: &[Word<M>; 2], mine: usize| {
            words[mine].store(1, Relaxed);
            M::P::full_fence();
            words[1 - mine].load(Relaxed)
        };
        let (seen, other) = {
            let seen = Arc::new(Word::<M>::new(9));
            let (there, words) = (Arc::clone(&seen), Arc::clone(&words));
            (seen, M::spawn(move || there.store(cross(&words, 1), Relaxed)))
        };
        let mine = cross(&words, 0);
        M::join(other);
        assert!(mine + seen.load(Relaxed) > 0, "nobody saw anything");
    }

    fn time_does_not_go_back() {
        let before = M::P::now(Clock::Monotonic);
        M::pass(1_000);
        assert!(M::P::now(Clock::Monotonic) >= before + 1_000);
        assert!(M::P::TUNING.spin_ns < NS_PER_SEC);
    }
}

macro_rules! conforms {
    ($($item:ident),* $(,)?) => {
        mod linux {
            use super::*;
            $(#[test] fn $item() { OnLinux::run(Contract::<OnLinux>::$item); })*
        }
        mod loom_ {
            use super::*;
            $(#[test] fn $item() { OnLoom::run(Contract::<OnLoom>::$item); })*
        }
        mod loom_without_steps {
            use super::*;
            $(#[test] fn $item() { OnLoomWithoutSteps::run(Contract::<OnLoomWithoutSteps>::$item); })*
        }
    };
}

conforms! {
    a_wait_on_another_value_returns_at_once,
    a_deadline_that_has_passed_ends_a_wait_at_once,
    a_deadline_ends_a_wait_and_not_before,
    a_change_and_a_wake_reach_a_waiter,
    wakes_are_counted,
    a_key_may_be_stale,
    a_sleeper_is_moved,
    a_move_compares,
    an_operation_comes_with_a_wake,
    an_operation_wakes_on_its_word_if_its_condition_holds,
    tokens_name_threads,
    read_locks_are_remembered,
    atomics_do_what_they_say,
    a_cell_goes_with_its_word,
    a_release_says_what_it_did,
    a_guard_keeps_a_release_from_storing,
    a_release_publishes,
    nothing_is_stored_after_a_heavy_fence,
    a_slot_names_the_lock_until_its_reader_leaves,
    who_shuts_a_gate_moves_its_readers,
    a_slot_is_found_behind_counted_holds,
    no_reader_comes_or_leaves_after_a_heavy_fence,
    of_two_that_fence_one_sees_the_other,
    time_does_not_go_back,
}

/// Beyond the contract, Loom reports a cell whose accesses nothing orders.
#[test]
fn loom_reports_a_race() {
    rejected("loom_reports_a_race", "Causality violation", || {
        Model::new().check(|| {
            let data = Arc::new(spinpark_verify::Guarded::new());
            let other = {
                let data = Arc::clone(&data);
                loom::thread::spawn(move || {
                    data.add();
                })
            };
            data.add();
            other.join().unwrap();
        });
    });
}

/// Two stores and a read-modify-write on one word: the last one in place is read, never one that was overwritten.
#[test]
fn loom_does_not_lose_a_store_to_an_older_swap() {
    Model::new().preemptions(3).check(|| {
        let word = Arc::new(Word::<OnLoom>::new(0));
        let other = {
            let word = Arc::clone(&word);
            loom::thread::spawn(move || {
                word.swap(1, Relaxed);
            })
        };
        word.store(2, Relaxed);
        let seen = word.swap(3, Relaxed);
        other.join().unwrap();
        let last = word.swap(4, Relaxed);
        assert!(matches!((seen, last), (2, 3) | (1, 3) | (2, 1)), "{seen} {last}");
    });
}
