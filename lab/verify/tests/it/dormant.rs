//! Models of a dormant process: no recording begins while a thread is in the recorder, and no request is
//! missed.

use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use loom::sync::Mutex;
use loom::thread;
use spinpark_platform::Ordering::{Acquire, Release};
use spinpark_verify::mutants::dormant::{Error, Page as AnyPage, Process as AnyProcess, Recordings};
use spinpark_verify::platform::{Fault, Kind, Loom};
use spinpark_verify::{Model, breaks, rejected};

type Page = AnyPage<Loom>;
type Process = AnyProcess<Loom>;

/// What the executions of a model have come to.
#[derive(Default)]
struct Reached {
    begins: AtomicBool,
    not_now: AtomicBool,
    recorded: AtomicBool,
}

/// Threads that record once each, while one recording ends and another one begins. The kernel's barrier is a
/// mutex of each thread: the fence of the thread comes before the barrier, or after it, and the order of memory
/// is that.
fn recordings<const USERS: usize>(error: Error, has_table: [bool; USERS], reached: &Reached) {
    let recordings = Rc::new(Recordings::<Loom, USERS>::new(error, has_table));
    let fences: Rc<[Mutex<()>; USERS]> = Rc::new(std::array::from_fn(|_| Mutex::new(())));
    let users: Vec<_> = (0..USERS)
        .map(|user| {
            let (recordings, fences) = (Rc::clone(&recordings), Rc::clone(&fences));
            thread::spawn(move || recordings.record(user, || drop(fences[user].lock().unwrap())))
        })
        .collect();
    let barrier = || fences.iter().for_each(|fence| drop(fence.lock().unwrap()));
    recordings.fall_asleep(barrier);
    let begins = recordings.awake(barrier);
    if begins { &reached.begins } else { &reached.not_now }.store(true, Relaxed);
    for user in users {
        if user.join().unwrap() {
            reached.recorded.store(true, Relaxed);
        }
    }
}

fn check<const USERS: usize>(error: Error, has_table: [bool; USERS], preemptions: usize) {
    let reached = Arc::new(Reached::default());
    let of_model = Arc::clone(&reached);
    Model::new().preemptions(preemptions).check(move || recordings(error, has_table, &of_model));
    let all = [&reached.begins, &reached.not_now, &reached.recorded];
    assert!(all.iter().all(|event| event.load(Relaxed)), "an event is not reached");
}

#[test]
fn a_thread_with_a_table() {
    check(Error::None, [true], 4);
}

#[test]
fn a_thread_without_a_table() {
    check(Error::None, [false], 4);
}

#[test]
fn threads_with_and_without() {
    check(Error::None, [true, false], 2);
}

#[test]
fn the_copies_of_the_mutants() {
    check(Error::Copied, [true], 3);
    check(Error::Copied, [false], 3);
    check_bell(Error::Copied, 2);
}

fn rejects(error: Error, has_table: bool) {
    Model::new().preemptions(3).check(move || recordings(error, [has_table], &Reached::default()));
}

#[test]
fn mutant_no_barrier() {
    rejected!("mutant_no_barrier", breaks("presence.P1"), "Causality violation", || {
        rejects(Error::NoBarrier, true);
    });
}

#[test]
fn mutant_no_fence_without_a_table() {
    rejected!("mutant_no_fence_without_a_table", breaks("presence.P2"), "Causality violation", || {
        rejects(Error::NoFence, false);
    });
}

#[test]
fn mutant_looks_for_work_before_the_count() {
    rejected!("mutant_looks_for_work_before_the_count", breaks("presence.P3"), "Causality violation", || {
        rejects(Error::LooksFirst, false);
    });
}

#[test]
fn mutant_is_counted_out_before_it_is_at_work() {
    rejected!(
        "mutant_is_counted_out_before_it_is_at_work",
        breaks("presence.P3"),
        "Causality violation",
        || rejects(Error::WorksLate, false)
    );
}

#[test]
fn mutant_leaves_without_release() {
    rejected!("mutant_leaves_without_release", breaks("presence.P4"), "Causality violation", || {
        Model::new().preemptions(3).fault(Fault::Relaxed(|op| op.is(Kind::Store, Release))).check(|| {
            recordings(Error::None, [true], &Reached::default());
        });
    });
}

/// Two threads make calls while a command asks twice.
fn bell(error: Error) {
    let (page, process) = (Rc::new(Page::default()), Rc::new(Process::new(error, 0)));
    let callers: Vec<_> = (1..3)
        .map(|me| {
            let (page, process) = (Rc::clone(&page), Rc::clone(&process));
            thread::spawn(move || process.call(&page, me, |_| true))
        })
        .collect();
    page.ask(0);
    page.ask(0);
    callers.into_iter().for_each(|caller| caller.join().unwrap());
    page.finish(&process);
}

fn check_bell(error: Error, preemptions: usize) {
    Model::new().preemptions(preemptions).check(move || bell(error));
}

#[test]
fn no_ring_is_missed() {
    check_bell(Error::None, 3);
}

/// The first try fails: a thread is in the recorder.
fn tries_again(error: Error) {
    let (page, process) = (Rc::new(Page::default()), Rc::new(Process::new(error, 0)));
    page.ask(0);
    let caller = {
        let (page, process) = (Rc::clone(&page), Rc::clone(&process));
        thread::spawn(move || process.call(&page, 1, |_| false))
    };
    process.call(&page, 2, |_| true);
    caller.join().unwrap();
    page.finish(&process);
}

#[test]
fn a_try_that_is_made_again() {
    Model::new().preemptions(3).check(|| tries_again(Error::None));
}

/// A process forks at any moment of an answer; the child is asked.
fn fork(error: Error) {
    let (page, parent) = (Rc::new(Page::default()), Rc::new(Process::new(error, 0)));
    page.ask(0);
    let caller = {
        let (page, parent) = (Rc::clone(&page), Rc::clone(&parent));
        thread::spawn(move || parent.call(&page, 1, |_| true))
    };
    let child = parent.forked(1);
    page.ask(1);
    child.call(&page, 2, |_| true);
    caller.join().unwrap();
    page.finish(&child);
    page.finish(&parent);
}

#[test]
fn forked_meanwhile() {
    Model::new().preemptions(3).check(|| fork(Error::None));
}

#[test]
fn mutant_hears_after_the_wishes() {
    rejected!("mutant_hears_after_the_wishes", breaks("bell.B1"), "a ring was missed", || {
        check_bell(Error::HearsLate, 3);
    });
}

#[test]
fn mutant_a_failed_try_is_heard() {
    rejected!("mutant_a_failed_try_is_heard", breaks("bell.B1"), "a ring was missed", || {
        Model::new().preemptions(3).check(|| tries_again(Error::HearsAnyway));
    });
}

#[test]
fn mutant_answers_without_acquire() {
    rejected!("mutant_answers_without_acquire", breaks("bell.B2"), "Causality violation", || {
        Model::new()
            .preemptions(3)
            .fault(Fault::Relaxed(|op| op.is(Kind::CompareExchange, Acquire)))
            .check(|| bell(Error::None));
    });
}

#[test]
fn mutant_hears_without_acquire() {
    rejected!("mutant_hears_without_acquire", breaks("bell.B3"), "a ring was missed", || {
        Model::new().preemptions(3).fault(Fault::Relaxed(|op| op.is(Kind::Load, Acquire))).check(|| {
            let (page, process) = (Rc::new(Page::default()), Rc::new(Process::new(Error::None, 0)));
            let caller = {
                let (page, process) = (Rc::clone(&page), Rc::clone(&process));
                thread::spawn(move || process.call(&page, 1, |_| true))
            };
            page.ask(0);
            caller.join().unwrap();
            page.finish(&process);
        });
    });
}

#[test]
fn mutant_a_child_has_the_answering_thread() {
    rejected!("mutant_a_child_has_the_answering_thread", breaks("bell.B4"), "a ring was missed", || {
        Model::new().preemptions(3).check(|| fork(Error::ForksAnswerer));
    });
}
