//! Queues: the queue lock, the spinners, first come first served.

use std::rc::Rc;

use spinpark_classics::RawLock as _;
use spinpark_sim::{Failure, Sim, here};
use spinpark_verify::SpinLines;
use spinpark_verify::mutants::barging::BargingLock;
use spinpark_verify::mutants::mcs_mutex::{
    ClearsLate, Error, ForgetsTheNext, McsMutex, ReleasesUnlinked, Right,
};
use spinpark_verify::mutants::osq::{self, Osq};
use spinpark_verify::mutants::queue_lock::{self, QueueLock};
use spinpark_verify::mutants::spin_queue;
use spinpark_verify::sim_programs::{Checker, Family, Guard, Hold, Line, Mortal, Program};
use spinpark_verify::{breaks, breaks_rule};

use super::harness::{accepted, hangs, is_out_of_order, lets_two_in, never_ends, rejected};

/// Threads that have sections under `lock`, each alone.
fn sections<L: 'static>(program: &mut Program, lock: L, acquire: fn(&L), release: fn(&L)) {
    let lock = Mortal::new(lock);
    program.name("lock", &lock);
    let guard = Rc::new(Guard::new());
    for _ in 0..program.threads() {
        let (lock, guard, rounds) = (lock.clone(), Rc::clone(&guard), program.rounds());
        program.thread(move || {
            for _ in 0..rounds {
                acquire(&lock);
                guard.visit(Hold::Alone);
                release(&lock);
            }
        });
    }
}

pub(crate) fn queue_lock(program: &mut Program, error: queue_lock::Error) {
    sections(program, QueueLock::<Sim>::new(error), QueueLock::lock, QueueLock::unlock);
}

macro_rules! queue_locks {
    ($($name:ident: $error:ident, $breaks:expr;)*) => {$(
        #[test]
        fn $name() {
            let build = |program: &mut Program| queue_lock(program, queue_lock::Error::$error);
            rejected($breaks, Checker::new(Family { name: stringify!($name), build }), hangs);
        }
    )*};
}

queue_locks! {
    a_woken_waiter_locks_with_the_uncontended_value: RelocksUncontended, breaks_rule("of the queue lock: a thread that has slept leaves `SLEEPERS` set");
    a_sleeper_does_not_say_so: SleepsUnmarked, breaks_rule("of the queue lock: a sleeper has set `SLEEPERS`");
    an_unlock_wakes_first: WakesBeforeUnlock, breaks_rule("of the queue lock: the wake comes after the unlock");
}

fn mcs_mutex<E: Error>(program: &mut Program) {
    sections(program, McsMutex::<Sim, E>::new(), McsMutex::lock, McsMutex::unlock);
}

#[test]
fn a_release_does_not_wait_for_a_waiter_to_link_itself() {
    let name = "a_release_does_not_wait_for_a_waiter_to_link_itself";
    rejected(
        breaks_rule("MX1 of the MCS mutex"),
        Checker::new(Family { name, build: mcs_mutex::<ReleasesUnlinked> }),
        never_ends,
    );
}

#[test]
fn a_waiter_that_leaves_the_queue_clears_a_link() {
    let name = "a_waiter_that_leaves_the_queue_clears_a_link";
    rejected(
        breaks_rule("MX1 of the MCS mutex"),
        Checker::new(Family { name, build: mcs_mutex::<ClearsLate> }),
        never_ends,
    );
}

#[test]
fn a_waiter_that_leaves_the_queue_forgets_the_next() {
    let name = "a_waiter_that_leaves_the_queue_forgets_the_next";
    rejected(
        breaks_rule("MX1 of the MCS mutex"),
        Checker::new(Family { name, build: mcs_mutex::<ForgetsTheNext> }),
        never_ends,
    );
}

fn spinners(program: &mut Program, error: osq::Error) {
    let queue = Mortal::new(Osq::<Sim>::new(error));
    program.name("osq", &queue);
    program.watch_order(&queue);
    let (guard, line) = (Rc::new(Guard::new()), Rc::new(Line::of_those_who_stay()));
    for _ in 0..program.threads() {
        let (queue, guard, line, rounds) =
            (queue.clone(), Rc::clone(&guard), Rc::clone(&line), program.rounds());
        program.thread(move || {
            for _ in 0..rounds {
                let mut polls = [0, 1, 3, u64::MAX][here::random(4) as usize];
                let stays = || {
                    polls = polls.saturating_sub(1);
                    polls > 0
                };
                queue.enter(stays, || {
                    line.serve();
                    guard.visit(Hold::Alone);
                });
            }
        });
    }
}

macro_rules! spinner_queues {
    ($($name:ident: $error:ident, $breaks:expr;)*) => {$(
        #[test]
        fn $name() {
            let build = |program: &mut Program| spinners(program, osq::Error::$error);
            rejected($breaks, Checker::new(Family { name: stringify!($name), build }), never_ends);
        }
    )*};
}

spinner_queues! {
    a_spinner_that_leaves_does_not_look_at_the_head: StepAWithoutHead, breaks("osq.O1");
    a_spinner_that_leaves_does_not_wait_for_its_successor: StepBWithoutWait, breaks("osq.O1");
    a_spinner_that_leaves_stays_in_its_predecessor: NoStepA, breaks("osq.O1");
}

fn in_slots(program: &mut Program, error: spin_queue::Error) {
    let lines = Mortal::new(SpinLines::<Sim, 4>::new());
    program.name("spin queue", &lines);
    program.watch_order(&lines);
    let (guard, line) = (Rc::new(Guard::new()), Rc::new(Line::of_those_who_stay()));
    for token in 0..program.threads() {
        let (lines, guard, line, rounds) =
            (lines.clone(), Rc::clone(&guard), Rc::clone(&line), program.rounds());
        program.thread(move || {
            let queue = spin_queue::SpinQueue::<Sim>::new(lines.of(1), error);
            for _ in 0..rounds {
                let mut polls = [0, 1, 3, u64::MAX][here::random(4) as usize];
                let stays = || {
                    polls = polls.saturating_sub(1);
                    polls > 0
                };
                queue.enter(token, stays, || {
                    line.serve();
                    guard.visit(Hold::Alone);
                });
            }
        });
    }
}

/// Two heads, one that comes too early, or none any more.
fn is_no_queue(failure: &Failure) -> bool {
    never_ends(failure) || is_out_of_order(failure) || lets_two_in(failure)
}

macro_rules! slot_queues {
    ($($name:ident: $error:ident, $breaks:expr;)*) => {$(
        #[test]
        fn $name() {
            let build = |program: &mut Program| in_slots(program, spin_queue::Error::$error);
            rejected($breaks, Checker::new(Family { name: stringify!($name), build }), is_no_queue);
        }
    )*};
}

slot_queues! {
    a_slot_is_free_that_a_spinner_watches: FreesWhatIsWatched, breaks("spin_queue.Y1");
    a_slot_that_was_left_counts_as_passed: TakesLeftForPassed, breaks("spin_queue.Y3");
    the_youngest_forgets_those_before_it: ForgetsThoseBefore, breaks("spin_queue.Y3");
    a_slot_is_free_before_it_was_read: FreesBeforeReading, breaks("spin_queue.Y3");
    a_head_frees_its_own_slot: FreesAfterPassing, breaks("spin_queue.Y2");
    a_slot_is_taken_that_is_not_free: ClaimsAnySlot, breaks("spin_queue.Y1");
}

fn in_line(program: &mut Program, barges: bool) {
    let lock = Mortal::new(BargingLock::<Sim>::new(barges));
    program.name("lock", &lock);
    program.watch_order(&lock);
    let (guard, line) = (Rc::new(Guard::new()), Rc::new(Line::of_all()));
    for _ in 0..program.threads() {
        let (lock, guard, line) = (lock.clone(), Rc::clone(&guard), Rc::clone(&line));
        let rounds = program.rounds();
        program.thread(move || {
            for _ in 0..rounds {
                lock.with(|| {
                    line.serve();
                    guard.visit(Hold::Alone);
                });
            }
        });
    }
}

#[test]
fn a_newcomer_goes_first() {
    let build = |program: &mut Program| in_line(program, true);
    rejected(
        breaks_rule("of a queue: order of arrival"),
        Checker::new(Family { name: "barging", build }),
        is_out_of_order,
    );
}

#[test]
fn the_copies_are_right() {
    accepted(Family { name: "queue_lock", build: |program| queue_lock(program, queue_lock::Error::None) });
    accepted(Family { name: "mcs", build: mcs_mutex::<Right> });
    accepted(Family { name: "spinners", build: |program| spinners(program, osq::Error::None) });
    accepted(Family { name: "in_slots", build: |program| in_slots(program, spin_queue::Error::None) });
    accepted(Family { name: "in_line", build: |program| in_line(program, false) });
}
