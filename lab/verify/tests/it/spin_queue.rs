//! Models of the queue of spinners behind a lock, and known-bad ones, which the checker must reject.

use std::sync::Arc;

use loom::thread;
use spinpark_locks::{Entered, SpinQueue};
use spinpark_platform::Ordering::{AcqRel, Acquire, Release};
use spinpark_verify::mutants::spin_queue::{self as mutant, Error};
use spinpark_verify::platform::{Fault, Kind, Loom};
use spinpark_verify::{Guarded, Model, SpinLines, breaks, breaks_rule, rejected};

type Lines<const N: usize> = SpinLines<Loom, N>;

/// The lock that the spinners are for.
const LOCK: u32 = 7;

/// Polls for as long as it takes.
const STAYS: u32 = u32::MAX;
/// Leaves at the first poll.
const LEAVES: u32 = 1;

fn patience(mut polls: u32) -> impl FnMut() -> bool {
    move || {
        polls = polls.saturating_sub(1);
        polls > 0
    }
}

fn staying(polls: u32) -> impl FnMut(u32) -> bool {
    let mut patience = patience(polls);
    move |_| patience()
}

/// Threads that each enter, and pass the position on if they become the head.
fn all_do<const N: usize>(
    polls: &'static [u32],
    enter: impl Fn(&Lines<N>, &Guarded, u32, u32) + Copy + Send + 'static,
    at_end: impl Fn(&Lines<N>),
) {
    let shared = Arc::new((Lines::<N>::new(), Guarded::new()));
    let others: Vec<_> = (1..polls.len())
        .map(|index| {
            let shared = Arc::clone(&shared);
            thread::spawn(move || enter(&shared.0, &shared.1, index as u32, polls[index]))
        })
        .collect();
    enter(&shared.0, &shared.1, 0, polls[0]);
    for other in others {
        other.join().unwrap();
    }
    at_end(&shared.0);
}

/// Y3: the data is the head's alone, and the queue orders one head after the other.
fn enter<const N: usize>(lines: &Lines<N>, data: &Guarded, token: u32, polls: u32) {
    let queue = SpinQueue::<Loom>::new(lines.of(LOCK));
    match queue.enter(token, staying(polls)) {
        Entered::Head(_head) => {
            data.add();
        }
        Entered::Left => assert_ne!(polls, STAYS),
        Entered::Full => {}
    }
}

/// All have gone. Y3: the position was not lost: a thread that comes now has it at once.
fn is_free<const N: usize>(lines: &Lines<N>) {
    let queue = SpinQueue::<Loom>::new(lines.of(LOCK));
    assert!(!queue.is_joined() && !queue.has(1), "the queue is kept from other locks");
    assert!(!matches!(queue.enter(0, |_| false), Entered::Left), "no thread has the position");
}

fn right<const N: usize>(model: Model, polls: &'static [u32]) {
    model.check(move || all_do::<N>(polls, enter, is_free));
}

#[test]
fn two_that_stay() {
    right::<2>(Model::new().preemptions(4), &[STAYS, STAYS]);
}

#[test]
fn one_that_leaves() {
    right::<2>(Model::new().preemptions(4), &[STAYS, LEAVES]);
}

#[test]
fn one_that_leaves_in_the_middle() {
    right::<3>(Model::new().two_may_spin(), &[STAYS, LEAVES, STAYS]);
}

#[test]
fn two_neighbours_that_leave() {
    right::<3>(Model::new().two_may_spin(), &[STAYS, LEAVES, LEAVES]);
}

#[test]
fn three_that_stay() {
    right::<3>(Model::new().two_may_spin(), &[STAYS, STAYS, STAYS]);
}

#[test]
fn three_with_two_slots() {
    right::<2>(Model::new().two_may_spin(), &[STAYS, LEAVES, STAYS]);
}

/// Slots are used again, at other places.
fn twice(lines: &Lines<3>, data: &Guarded, token: u32, polls: u32) {
    enter(lines, data, token, polls);
    enter(lines, data, token, polls);
}

#[test]
fn slots_are_used_again() {
    Model::new().preemptions(3).check(|| all_do::<3>(&[STAYS, LEAVES], twice, is_free));
}

/// Of two locks that share a queue, one uses it; the spinners of the other one do not queue, or both do, and
/// nothing is lost.
#[test]
fn two_locks_that_share_a_queue() {
    let of_two_locks = |lines: &Lines<2>, data: &Guarded, token: u32, polls: u32| {
        let queue = SpinQueue::<Loom>::new(lines.of(LOCK + token));
        if let Entered::Head(_head) = queue.enter(token, staying(polls)) {
            data.add();
        }
    };
    Model::new().preemptions(3).check(move || all_do::<2>(&[STAYS, LEAVES], of_two_locks, is_free));
}

#[test]
fn spinners_are_counted() {
    Model::new().check(|| {
        let lines = Lines::<3>::new();
        let queue = SpinQueue::<Loom>::new(lines.of(LOCK));
        let Entered::Head(head) = queue.enter(0, |_| false) else { panic!("it is free") };
        assert!(queue.has(1) && !queue.has(2));
        assert!(!SpinQueue::<Loom>::new(lines.of(LOCK + 1)).has(1), "another lock's");
        let third = |_| {
            assert!(queue.has(3));
            false
        };
        let second = |_| {
            assert!(queue.has(2) && !queue.has(3));
            assert!(matches!(queue.enter(2, third), Entered::Left));
            false
        };
        assert!(matches!(queue.enter(1, second), Entered::Left));
        assert!(queue.has(1) && !queue.has(2), "they have left");
        drop(head);
        is_free(&lines);
    });
}

/// A look at the slots of spinners that come and go: it ends, and changes nothing.
#[test]
fn a_count_beside_spinners() {
    let counts = |lines: &Lines<2>, data: &Guarded, token: u32, polls: u32| {
        if token == 0 {
            SpinQueue::<Loom>::new(lines.of(LOCK)).has(2);
        }
        enter(lines, data, token, polls);
    };
    Model::new().preemptions(3).check(move || all_do::<2>(&[STAYS, LEAVES], counts, is_free));
}

fn copied(error: Error, polls: &'static [u32]) {
    Model::new().two_may_spin().check(move || {
        let enter = move |lines: &Lines<3>, data: &Guarded, token: u32, polls: u32| {
            let enter = || {
                let queue = mutant::SpinQueue::<Loom>::new(lines.of(LOCK), error);
                let section = || {
                    data.add();
                };
                queue.enter(token, patience(polls), section);
            };
            enter();
            if polls != LEAVES {
                enter();
            }
        };
        all_do::<3>(polls, enter, |_| {});
    });
}

#[test]
fn the_copy_is_right() {
    copied(Error::None, &[STAYS, LEAVES, STAYS]);
    copied(Error::None, &[STAYS, STAYS]);
}

macro_rules! mutants {
    ($($name:ident: $error:ident, $breaks:expr, $polls:expr, $how:literal;)*) => {$(
        #[test]
        fn $name() {
            rejected!(stringify!($name), $breaks, $how, || copied(Error::$error, &$polls));
        }
    )*};
}

mutants! {
    // The spinner behind waits for a slot that another one has, or no one.
    mutant_frees_what_is_watched: FreesWhatIsWatched, breaks("spin_queue.Y1"), [STAYS, LEAVES, STAYS], "exceeded maximum number of branches";
    // Two heads.
    mutant_takes_left_for_passed: TakesLeftForPassed, breaks("spin_queue.Y3"), [STAYS, LEAVES, STAYS], "Causality violation";
    mutant_forgets_those_before: ForgetsThoseBefore, breaks("spin_queue.Y3"), [STAYS, LEAVES, STAYS], "Causality violation";
    mutant_claims_any_slot: ClaimsAnySlot, breaks("spin_queue.Y1"), [STAYS, STAYS], "exceeded maximum number of branches";
    // The position is lost.
    mutant_frees_after_passing: FreesAfterPassing, breaks("spin_queue.Y2"), [STAYS, STAYS], "exceeded maximum number of branches";
}

fn faulty(fault: Fault, polls: &'static [u32]) {
    Model::new().two_may_spin().fault(fault).check(move || all_do::<3>(polls, twice, |_| {}));
}

/// What the head did is not published with the position.
#[test]
fn mutant_passes_on_without_release() {
    rejected!(
        "mutant_passes_on_without_release",
        breaks_rule("of the queue of spinners: the position is passed on by a Release"),
        "Causality violation",
        || {
            faulty(Fault::Relaxed(|op| op.is(Kind::Store, Release)), &[STAYS, STAYS]);
        }
    );
}

#[test]
fn mutant_polls_without_acquire() {
    rejected!(
        "mutant_polls_without_acquire",
        breaks_rule("of the queue of spinners: a poll acquires"),
        "Causality violation",
        || {
            faulty(Fault::Relaxed(|op| op.is(Kind::Load, Acquire)), &[STAYS, STAYS]);
        }
    );
}

/// A slot seems to be passed, from its last use.
#[test]
fn mutant_arrives_without_order() {
    rejected!(
        "mutant_arrives_without_order",
        breaks_rule("of the queue of spinners: an arrival is AcqRel"),
        "Causality violation",
        || {
            faulty(Fault::Relaxed(|op| op.order == AcqRel), &[STAYS, STAYS]);
        }
    );
}
