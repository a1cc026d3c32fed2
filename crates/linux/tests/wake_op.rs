//! `FUTEX_WAKE_OP` and `FUTEX_REQUEUE` as this kernel has them: the number that is left in the word, and
//! which threads woke up.
//!
//! For each of the five operations, plain and shifted, each comparison, and both outcomes of it: one thread
//! sleeps on the first word and one on the second. Nothing here waits for time to pass: a thread is known to
//! sleep because the kernel counts it, and known to have slept on because a later wake finds it.

use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::Arc;
use std::thread::{self, JoinHandle};

use spinpark_linux::Linux;
use spinpark_platform::{Comparison, Futex, Operand, Wait, WakeOp, WordOp};

/// How many threads sleep on `word`: moving all of them to where they are only returns their number.
fn sleepers(word: &AtomicU32) -> u32 {
    Linux::futex_requeue(word, None, 0, word, u32::MAX).expect("this kernel can requeue")
}

/// A thread that sleeps on `word`, which holds `value`, until it is woken.
fn sleeper(word: &Arc<AtomicU32>, value: u32) -> JoinHandle<()> {
    let theirs = Arc::clone(word);
    let before = sleepers(word);
    let thread = thread::spawn(move || assert_eq!(Linux::futex_wait(&theirs, value, None), Wait::Woken));
    while sleepers(word) == before {
        thread::yield_now();
    }
    thread
}

fn signed(number: u32) -> i32 {
    number as i32
}

/// One call with a sleeper on each word, of which the second holds `old`.
fn check(op: WakeOp, old: u32) {
    let [first, second] = [7, old].map(|value| Arc::new(AtomicU32::new(value)));
    let threads = [sleeper(&first, 7), sleeper(&second, old)];
    let woken = Linux::futex_wake_op(&*first, 1, &second, op, 1).expect("this kernel has FUTEX_WAKE_OP");
    let (left, is_met) = (expected_word(op, old), expected_answer(op, old));
    assert_eq!(second.load(Relaxed), left, "{op:?} on {old:#x}");
    assert_eq!(first.load(Relaxed), 7, "the first word is not touched");
    assert_eq!(woken, 1 + u32::from(is_met), "{op:?} on {old:#x}");
    assert_eq!(sleepers(&first), 0, "{op:?} on {old:#x}: a sleeper on the first word is woken in any case");
    let slept_on = Linux::futex_wake(&*second, 1);
    assert_eq!(slept_on, u32::from(!is_met), "{op:?} on {old:#x}: the second word's sleeper");
    threads.into_iter().for_each(|thread| thread.join().unwrap());
}

/// The manual page's table, written down once more, in wider numbers than [`WakeOp::apply`].
fn expected_word(op: WakeOp, old: u32) -> u32 {
    let operand = match op.operand() {
        Operand::Value(value) => i64::from(value),
        Operand::Bit(bit) => i64::from(signed(1 << bit)),
    };
    let old = i64::from(signed(old));
    let new = match op.op() {
        WordOp::Set => operand,
        WordOp::Add => old + operand,
        WordOp::Or => old | operand,
        WordOp::AndNot => old & !operand,
        WordOp::Xor => old ^ operand,
    };
    assert_eq!(new as u32, op.apply(old as u32), "the kernel and the platform mean the same");
    new as u32
}

fn expected_answer(op: WakeOp, old: u32) -> bool {
    let (old, constant) = (i64::from(signed(old)), i64::from(op.constant()));
    let order = old.cmp(&constant);
    let is_met = match op.comparison() {
        Comparison::Equal => order.is_eq(),
        Comparison::NotEqual => order.is_ne(),
        Comparison::Less => order.is_lt(),
        Comparison::LessOrEqual => order.is_le(),
        Comparison::Greater => order.is_gt(),
        Comparison::GreaterOrEqual => order.is_ge(),
    };
    assert_eq!(is_met, op.holds(old as u32), "the kernel and the platform mean the same");
    is_met
}

const OPERATIONS: [WordOp; 5] = [WordOp::Set, WordOp::Add, WordOp::Or, WordOp::AndNot, WordOp::Xor];

const COMPARISONS: [Comparison; 6] = [
    Comparison::Equal,
    Comparison::NotEqual,
    Comparison::Less,
    Comparison::LessOrEqual,
    Comparison::Greater,
    Comparison::GreaterOrEqual,
];

/// `op` with each comparison, where the old value is below, at and above the constant: each comparison comes
/// out both ways.
fn check_comparisons(op: WordOp, operand: Operand, constant: i32) {
    for comparison in COMPARISONS {
        let op = WakeOp::new(op, operand, comparison, constant).unwrap();
        let olds = [constant - 1, constant, constant + 1].map(|old| old as u32);
        let answers = olds.map(|old| op.holds(old));
        assert!(answers.contains(&true) && answers.contains(&false));
        olds.into_iter().for_each(|old| check(op, old));
    }
}

#[test]
fn every_operation_with_every_comparison() {
    for op in OPERATIONS {
        check_comparisons(op, Operand::Value(5), 6);
        check_comparisons(op, Operand::Value(-3), -2);
    }
}

#[test]
fn every_operation_with_a_shifted_operand() {
    for op in OPERATIONS {
        check_comparisons(op, Operand::Bit(2), 5);
        check_comparisons(op, Operand::Bit(31), -1);
    }
}

#[test]
fn the_largest_and_smallest_numbers() {
    for number in [-2048, 2047] {
        check_comparisons(WordOp::Add, Operand::Value(number), number);
    }
    let is_less = WakeOp::new(WordOp::Add, Operand::Value(1), Comparison::Less, 0).unwrap();
    check(is_less, i32::MAX as u32); // wraps, and was positive
    check(is_less, i32::MIN as u32);
}

/// Each word wakes as many as were asked for, and no more.
#[test]
fn the_counts_are_limits() {
    let met = WakeOp::new(WordOp::Set, Operand::Value(0), Comparison::Greater, 1).unwrap();
    for (wake, wake_second) in [(1, 2), (2, 1), (3, 3), (u32::MAX, u32::MAX)] {
        let [first, second] = [1, 2].map(|value| Arc::new(AtomicU32::new(value)));
        let threads: Vec<_> = (0..3).flat_map(|_| [sleeper(&first, 1), sleeper(&second, 2)]).collect();
        let woken = Linux::futex_wake_op(&*first, wake, &second, met, wake_second).unwrap();
        assert_eq!(woken, wake.min(3) + wake_second.min(3));
        assert_eq!([&first, &second].map(|word| sleepers(word)), [3 - wake.min(3), 3 - wake_second.min(3)]);
        second.store(2, Relaxed);
        assert_eq!(Linux::futex_wake_op(&*first, 3, &second, met, 3), Some(6 - woken), "the others");
        threads.into_iter().for_each(|thread| thread.join().unwrap());
    }
}

/// A moved thread sleeps on, and hears the other word.
#[test]
fn sleepers_are_moved() {
    for expected in [None, Some(1)] {
        let [from, to] = [1, 9].map(|value| Arc::new(AtomicU32::new(value)));
        let threads: Vec<_> = (0..4).map(|_| sleeper(&from, 1)).collect();
        assert_eq!(Linux::futex_requeue(&from, expected, 1, &*to, 2), Some(3));
        assert_eq!([&from, &to].map(|word| sleepers(word)), [1, 2]);
        assert_eq!(Linux::futex_wake(&*to, u32::MAX), 2);
        assert_eq!(Linux::futex_wake(&*from, u32::MAX), 1);
        threads.into_iter().for_each(|thread| thread.join().unwrap());
    }
}

#[test]
fn no_waiter_is_moved_from_a_word_that_has_changed() {
    let [from, to] = [1, 9].map(|value| Arc::new(AtomicU32::new(value)));
    let thread = sleeper(&from, 1);
    assert_eq!(Linux::futex_requeue(&from, Some(2), 1, &*to, 1), None);
    assert_eq!([&from, &to].map(|word| sleepers(word)), [1, 0]);
    assert_eq!(Linux::futex_wake(&*from, 1), 1);
    thread.join().unwrap();
}
