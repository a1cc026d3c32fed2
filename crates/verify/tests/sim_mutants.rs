//! Known-bad machines, locks and users, which the simulator must find: the same as those that loom must reject, as far as a
//! sequentially consistent memory shows them. See `docs/verification.md`.

use std::cell::Cell;
use std::rc::Rc;

use spinpark_classics::RawRwLock as _;
use spinpark_classics::rwsem_2013::{AsSent, Full, Patches, Rwsem, Series};
use spinpark_locks::{RawCondvar, RawMutex, Waiter};
use spinpark_platform::Ordering::{AcqRel, Acquire, Relaxed, Release};
use spinpark_platform::{Platform, Tuning, Wait};
use spinpark_sim::check::{
    Checker, Failing, Family, Fault, Guard, Hold, Kind, Limits, Line, Monitor, Mortal, Op, Program, families,
    order_of, patience_of, tokens_of_2003,
};
use spinpark_sim::{Failure, Sim, Tuned, here};
use spinpark_verify::mutants::barging::BargingLock;
use spinpark_verify::mutants::condvar_2003::{Forgetful, PlainRequeue};
use spinpark_verify::mutants::monitor;
use spinpark_verify::mutants::osq::{self, Osq};
use spinpark_verify::mutants::queue_lock::{self, QueueLock};

/// Of the lock word.
const WAITERS: u64 = 1;
const HANDOFF: u64 = 1 << 2;
const TIMED: u32 = 1 << 3;
const SLOTS: u64 = 1 << 5;
const WRITER: u64 = 1 << 6;
/// Of the queue lock.
const LOCKED: u32 = 1;
const ATTENTION: u32 = 4;
/// A waiter on a condition variable has given up.
const GIVEN_UP: u64 = 2;

/// So many runs have to suffice.
const MOST_RUNS: u64 = 100_000;

fn family(name: &str) -> Family {
    *families().iter().find(|family| family.name == name).expect("there is such a family")
}

/// The run that the environment asks for is shown, and there is nothing else to do.
fn is_shown(checker: Checker) -> bool {
    match checker.replay() {
        Some(Err(failing)) => panic!("{failing}"),
        Some(Ok(_)) => true,
        None => false,
    }
}

/// The first run that fails; none, if another one is to be shown.
fn found(checker: Checker) -> Option<Box<Failing>> {
    let checker = checker.of_test("-p spinpark-verify --test sim_mutants");
    if is_shown(checker) {
        return None;
    }
    match checker.sweep(0..MOST_RUNS) {
        Ok(swept) => panic!("the mutant was accepted: {swept}"),
        Err(failing) => {
            eprintln!("found by seed {}: {}", failing.seed, failing.failure);
            Some(failing)
        }
    }
}

/// Asserts that some run fails, in a way for which `is_right` holds.
fn rejected(checker: Checker, is_right: fn(&Failure) -> bool) {
    if let Some(failing) = found(checker) {
        assert!(is_right(&failing.failure), "found for another reason:\n{failing}");
    }
}

fn accepted(family: Family) {
    let checker = Checker::new(family).of_test("-p spinpark-verify --test sim_mutants");
    if !is_shown(checker)
        && let Err(failing) = checker.sweep(0..500)
    {
        panic!("{failing}");
    }
}

fn hangs(failure: &Failure) -> bool {
    matches!(failure, Failure::Deadlock { .. })
}

fn never_ends(failure: &Failure) -> bool {
    matches!(failure, Failure::Endless { .. } | Failure::Deadlock { .. })
}

fn corrupts_a_list(failure: &Failure) -> bool {
    !matches!(failure, Failure::Check(_))
}

fn lets_two_in(failure: &Failure) -> bool {
    matches!(failure, Failure::Exclusion { .. } | Failure::Panic { .. })
}

fn uses_what_is_gone(failure: &Failure) -> bool {
    matches!(failure, Failure::UseAfterFree { .. })
}

fn is_unfair(failure: &Failure) -> bool {
    matches!(failure, Failure::Starvation { .. })
}

fn leaves_a_flag(failure: &Failure) -> bool {
    matches!(failure, Failure::Check(words) if words.contains("a flag was left behind"))
}

fn is_out_of_order(failure: &Failure) -> bool {
    matches!(failure, Failure::Check(words) if words.starts_with("order"))
}

// Asymmetric release

/// A waiter records itself, and is what the lock's writer may wipe out.
fn is_mark(op: &Op) -> bool {
    op.kind == Kind::CompareExchangeWeak
        && matches!(op.order, Release | AcqRel)
        && op.value & (WAITERS | WRITER) == WAITERS | WRITER
}

#[test]
fn no_fence() {
    rejected(Checker::new(family("mutex_tight")).fault(Fault::NoFence), hangs);
}

/// The mark is wiped out, and nobody notices. (A thread that queues looks twice: after the fence, and for the head.)
#[test]
fn no_look_after_the_fence() {
    rejected(Checker::new(family("condvar_tight")).fault(Fault::NoLook), never_ends);
}

/// The mark is never there when its thread looks: it tries for ever, or until the lock is free, and leaves a flag behind.
#[test]
fn the_mark_never_lasts() {
    rejected(Checker::new(family("mutex_tight")).fault(Fault::NoWrite(is_mark)), |_| true);
}

#[test]
fn a_fence_before_the_queue_is_locked() {
    let locks = |op: &Op| op.is(Kind::CompareExchangeWeak, Acquire) && op.value == u64::from(LOCKED);
    rejected(Checker::new(family("mutex_tight")).fault(Fault::FenceBefore(locks)), hangs);
}

/// Not a mutant: with the queue locked, the fence may as well come before the mark, which then lasts.
#[test]
fn a_fence_between_the_queue_lock_and_the_mark() {
    let checker = Checker::new(family("mutex_tight")).fault(Fault::FenceBefore(is_mark));
    let checker = checker.of_test("-p spinpark-verify --test sim_mutants");
    if !is_shown(checker)
        && let Err(failing) = checker.sweep(0..1_000)
    {
        panic!("{failing}");
    }
}

#[test]
fn the_queue_is_unlocked_without_attention() {
    let unlocks = |op: &Op| op.is(Kind::Swap, Release) && op.value == u64::from(ATTENTION);
    rejected(Checker::new(family("mutex_tight")).fault(Fault::Clears(unlocks)), hangs);
}

#[test]
fn a_release_that_ignores_attention() {
    rejected(Checker::new(family("mutex_tight")).fault(Fault::Ignored(ATTENTION)), hangs);
}

#[test]
fn a_release_that_ignores_the_queue_lock() {
    rejected(Checker::new(family("mutex_tight")).fault(Fault::Ignored(LOCKED)), hangs);
}

/// A3: the release that ended the attention stores, where it must compare.
#[test]
fn attention_ends_without_the_compare_exchange() {
    let releases = |op: &Op| op.is(Kind::CompareExchange, Release) && op.value == 0;
    rejected(Checker::new(family("mutex_tight")).fault(Fault::Blind(releases)), hangs);
}

// Mutex

#[test]
fn wakes_are_lost() {
    for name in ["mutex", "rwlock", "rwsem", "condvar", "condvar_2003"] {
        rejected(Checker::new(family(name)).fault(Fault::NoWakes), hangs);
    }
}

#[test]
fn a_sleep_does_not_compare() {
    for name in ["mutex", "rwlock", "rwsem", "condvar", "condvar_2003"] {
        rejected(Checker::new(family(name)).fault(Fault::NoCompare), hangs);
    }
}

/// W1: a waiter queues without its mark in the word, so the release does not look.
#[test]
fn a_waiter_queues_without_its_mark() {
    let mutant = Checker::new(family("mutex")).fault(Fault::NoWrite(is_mark)).fault(Fault::NoLook);
    rejected(mutant, never_ends);
}

/// R1: a release that looks at the mutex once more, after somebody else was let in.
#[test]
fn a_release_looks_back() {
    let build = |program: &mut Program| {
        let mutex = Mortal::new(RawMutex::<Sim>::new());
        program.name("mutex", &mutex);
        let users = Rc::new(Cell::new(0));
        let threads = program.threads();
        for _ in 0..threads {
            let (mutex, users) = (mutex.clone(), Rc::clone(&users));
            program.thread(move || {
                mutex.lock();
                users.set(users.get() + 1);
                let is_last = users.get() == threads;
                mutex.unlock();
                if is_last {
                    mutex.destroy();
                } else {
                    let _ = mutex.is_locked();
                }
            });
        }
    };
    rejected(Checker::new(Family { name: "a_release_looks_back", build }), uses_what_is_gone);
}

/// Constants with which nobody ever demands the lock.
#[derive(Debug)]
enum Meek {}

impl Tuned for Meek {
    const TUNING: Tuning = Tuning { starvation_ns: u64::MAX, ..Tuning::LINUX };
}

#[test]
fn nobody_demands() {
    let build = |program: &mut Program| patience_of::<Meek>(program, &Tuning::LINUX);
    rejected(Checker::new(Family { name: "nobody_demands", build }), is_unfair);
}

// Read-write lock

/// L2: a writer that starves demands the lock, but the demand is not recorded.
#[test]
fn a_demand_is_not_recorded() {
    let demand = |op: &Op| op.is(Kind::CompareExchangeWeak, Release) && op.value & HANDOFF != 0;
    rejected(Checker::new(family("rwlock")).fault(Fault::NoWrite(demand)), never_ends);
}

#[test]
fn a_gate_is_shut_without_a_fence() {
    let fault = Fault::NoFence;
    rejected(Checker::new(family("rwlock_freed")).fault(fault), |failure| {
        lets_two_in(failure) || never_ends(failure) || uses_what_is_gone(failure)
    });
}

#[test]
fn readers_are_not_moved() {
    rejected(Checker::new(family("rwlock")).fault(Fault::NotMoved), lets_two_in);
}

#[test]
fn readers_are_moved_but_not_counted() {
    rejected(Checker::new(family("rwlock")).fault(Fault::NotCounted), lets_two_in);
}

/// G2: `SLOTS` is cleared first, and the readers are counted in then.
#[test]
fn readers_are_counted_too_late() {
    let closes =
        |op: &Op| op.is(Kind::CompareExchangeWeak, AcqRel) && op.value & SLOTS == 0 && op.value >> 8 > 0;
    rejected(Checker::new(family("rwlock")).fault(Fault::InTwo(closes)), lets_two_in);
}

/// The head of the queue goes, and its timer's flag stays: it costs nobody anything, until nobody is there any more.
#[test]
fn a_flag_is_left_behind() {
    for name in ["mutex", "mutex_tight", "rwlock"] {
        rejected(Checker::new(family(name)).fault(Fault::Kept(TIMED)), leaves_a_flag);
    }
}

// Condition variable

/// C1: a waiter that gives up does not claim its own wait, so a signal is spent on it.
#[test]
fn a_waiter_gives_up_without_a_claim() {
    let claim = |op: &Op| op.is(Kind::CompareExchange, Relaxed) && op.value == GIVEN_UP;
    rejected(Checker::new(family("condvar")).fault(Fault::NoWrite(claim)), corrupts_a_list);
}

/// C2: the wait releases the mutex before it is in line.
#[test]
fn a_waiter_queues_after_the_unlock() {
    let build = |program: &mut Program| {
        let pair = Mortal::new((RawMutex::<Sim>::new(), RawCondvar::<Sim>::new()));
        program.name("pair", &pair);
        let token = Rc::new(Cell::new(false));
        let (theirs, there) = (pair.clone(), Rc::clone(&token));
        program.thread(move || {
            let (mutex, condvar) = &*theirs;
            mutex.lock();
            while !there.get() {
                let waiter = Waiter::with_mutex(mutex);
                mutex.unlock();
                condvar.enqueue(&waiter);
                waiter.sleep(None, Sim::<spinpark_sim::LinuxTuning>::futex_wait);
                waiter.reacquire(condvar.finish(&waiter), mutex);
            }
            mutex.unlock();
        });
        program.thread(move || {
            let (mutex, condvar) = &*pair;
            mutex.lock();
            token.set(true);
            condvar.signal();
            mutex.unlock();
        });
    };
    rejected(Checker::new(Family { name: "a_waiter_queues_after_the_unlock", build }), hangs);
}

/// C3: the variable is destroyed right after the broadcast, with somebody who gave up still at work in it.
#[test]
fn destroyed_while_it_is_not_idle() {
    let build = |program: &mut Program| {
        let (mutex, condvar) = (Mortal::new(RawMutex::<Sim>::new()), Mortal::new(RawCondvar::<Sim>::new()));
        program.name("condvar", &condvar);
        program.name("mutex", &mutex);
        let is_gone = Rc::new(Cell::new(false));
        let (m, c, gone) = (mutex.clone(), condvar.clone(), Rc::clone(&is_gone));
        program.thread(move || {
            m.lock();
            if !gone.get() {
                let waiter = Waiter::with_mutex(&m);
                c.enqueue(&waiter);
                m.unlock();
                waiter.sleep(None, |_, _, _| Wait::TimedOut);
                waiter.reacquire(c.finish(&waiter), &m);
            }
            m.unlock();
        });
        program.thread(move || {
            mutex.lock();
            is_gone.set(true);
            condvar.broadcast();
            condvar.destroy();
            mutex.unlock();
        });
    };
    rejected(Checker::new(Family { name: "destroyed_while_it_is_not_idle", build }), uses_what_is_gone);
}

#[derive(Clone)]
struct Told(Mortal<monitor::Monitor<Sim>>);

impl Monitor for Told {
    fn lock(&self) {
        self.0.lock();
    }
    fn unlock(&self) {
        self.0.unlock();
    }
    fn wait(&self) {
        self.0.wait();
    }
    fn signal(&self) -> bool {
        self.0.signal()
    }
    fn broadcast(&self) -> u32 {
        self.0.broadcast()
    }
}

/// The program of the family `condvar_order`.
fn waits(program: &mut Program, error: monitor::Error) {
    let monitor = Mortal::new(monitor::Monitor::<Sim>::new(error));
    program.name("monitor", &monitor);
    order_of(program, Told(monitor));
}

#[test]
fn the_newest_wait_ends_first() {
    let build = |program: &mut Program| waits(program, monitor::Error::NewestFirst);
    rejected(Checker::new(Family { name: "newest_first", build }), is_out_of_order);
}

#[test]
fn a_signal_ends_two_waits() {
    let build = |program: &mut Program| waits(program, monitor::Error::OneTooMany);
    rejected(Checker::new(Family { name: "one_too_many", build }), is_out_of_order);
}

#[test]
fn a_broadcast_leaves_a_wait_out() {
    let build = |program: &mut Program| waits(program, monitor::Error::OneTooFew);
    rejected(
        Checker::new(Family { name: "one_too_few", build }),
        |failure| matches!(failure, Failure::Check(words) if words.contains("waits were ended")),
    );
}

/// Document 003's: who was moved to the internal lock takes it without the mark.
#[test]
fn a_moved_waiter_takes_the_lock_without_the_mark() {
    let build = |program: &mut Program| tokens_of_2003::<PlainRequeue>(program, "plain requeue");
    rejected(Checker::new(Family { name: "plain_requeue", build }), hangs);
}

#[test]
fn the_kernel_unlocks_and_forgets_sleepers() {
    let build = |program: &mut Program| tokens_of_2003::<Forgetful>(program, "forgetful");
    rejected(Checker::new(Family { name: "forgetful", build }), hangs);
}

// Rwsem of 2013

/// Patch 9 as sent: a release that sees `wakeup` set leaves the waking to somebody else.
#[test]
fn patch_9_as_sent_loses_wake_ups() {
    type Patch9 = Patches<false, false, false, false, false, true>;
    accepted(Family { name: "patch_9", build: writers_and_thieves::<Patch9> });
    accepted(Family { name: "patches_8_and_9", build: writers_and_thieves::<Full> });
    let family =
        Family { name: "patch_9_as_sent", build: writers_and_thieves::<AsSent<Patch9, false, true>> };
    rejected(Checker::new(family).limits(FEW), hangs);
    let family = Family { name: "with_patch_8", build: writers_and_thieves::<AsSent<Full, false, true>> };
    rejected(Checker::new(family).limits(FEW), hangs);
}

/// A lost wake-up is made good by the next release: so there are not many.
const FEW: Limits = Limits { threads: 4, rounds: 2 };

/// Writers in line, and some that take a lock that is free past the line.
fn writers_and_thieves<S: Series>(program: &mut Program) {
    let lock = Mortal::new(<Rwsem<Sim, S> as spinpark_classics::RawRwLock>::new());
    program.name("rwsem", &lock);
    let guard = Rc::new(Guard::new());
    for number in 0..program.threads() {
        let (lock, guard, rounds) = (lock.clone(), Rc::clone(&guard), program.rounds());
        program.thread(move || {
            for _ in 0..rounds {
                if number % 3 == 2 {
                    let steals = |_: &u32| {
                        here::compute(here::random(500));
                        lock.steal()
                    };
                    if (0..20).find(steals).is_none() {
                        continue;
                    }
                } else {
                    lock.write();
                }
                guard.enter(Hold::Alone);
                here::compute(here::random(40));
                guard.leave(Hold::Alone);
                lock.unlock_write();
            }
        });
    }
}

/// A writer that takes and releases it; then the last one gives the memory back, if `late` is whether the owner is cleared
/// after the release.
fn freed_by_the_last_writer<S: Series>(program: &mut Program) {
    let lock = Mortal::new(<Rwsem<Sim, S> as spinpark_classics::RawRwLock>::new());
    program.name("rwsem", &lock);
    let users = Rc::new(Cell::new(0));
    for _ in 0..2 {
        let (lock, users) = (lock.clone(), Rc::clone(&users));
        program.thread(move || {
            // Without a wait there is no list to be unlocked late.
            while !lock.try_write() {
                here::sleep(100);
            }
            users.set(users.get() + 1);
            let is_last = users.get() == 2;
            lock.unlock_write();
            if is_last {
                lock.destroy();
            }
        });
    }
}

/// Patch 8 as sent writes to a semaphore that is gone.
#[test]
fn patch_8_as_sent_writes_to_what_is_gone() {
    let family = Family { name: "patch_8", build: freed_by_the_last_writer::<Full> };
    accepted(family);
    let family =
        Family { name: "patch_8_as_sent", build: freed_by_the_last_writer::<AsSent<Full, true, false>> };
    rejected(Checker::new(family), uses_what_is_gone);
}

// Queues

fn queue_lock(program: &mut Program, error: queue_lock::Error) {
    let lock = Mortal::new(QueueLock::<Sim>::new(error));
    program.name("lock", &lock);
    let guard = Rc::new(Guard::new());
    for _ in 0..program.threads() {
        let (lock, guard, rounds) = (lock.clone(), Rc::clone(&guard), program.rounds());
        program.thread(move || {
            for _ in 0..rounds {
                lock.lock();
                guard.visit(Hold::Alone);
                lock.unlock();
            }
        });
    }
}

macro_rules! queue_locks {
    ($($name:ident: $error:ident,)*) => {$(
        #[test]
        fn $name() {
            let build = |program: &mut Program| queue_lock(program, queue_lock::Error::$error);
            rejected(Checker::new(Family { name: stringify!($name), build }), hangs);
        }
    )*};
}

queue_locks! {
    a_woken_waiter_locks_with_the_uncontended_value: RelocksUncontended,
    a_sleeper_does_not_say_so: SleepsUnmarked,
    an_unlock_wakes_first: WakesBeforeUnlock,
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
    ($($name:ident: $error:ident,)*) => {$(
        #[test]
        fn $name() {
            let build = |program: &mut Program| spinners(program, osq::Error::$error);
            rejected(Checker::new(Family { name: stringify!($name), build }), never_ends);
        }
    )*};
}

spinner_queues! {
    a_spinner_that_leaves_does_not_look_at_the_head: StepAWithoutHead,
    a_spinner_that_leaves_does_not_wait_for_its_successor: StepBWithoutWait,
    a_spinner_that_leaves_stays_in_its_predecessor: NoStepA,
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
    rejected(Checker::new(Family { name: "barging", build }), is_out_of_order);
}

#[test]
fn the_copies_are_right() {
    accepted(Family { name: "queue_lock", build: |program| queue_lock(program, queue_lock::Error::None) });
    accepted(Family { name: "spinners", build: |program| spinners(program, osq::Error::None) });
    accepted(Family { name: "in_line", build: |program| in_line(program, false) });
    accepted(Family { name: "waits", build: |program| waits(program, monitor::Error::None) });
}

/// Without a lock, the checker would see it.
#[test]
fn no_lock_at_all() {
    let build = |program: &mut Program| {
        let guard = Rc::new(Guard::new());
        for _ in 0..program.threads() {
            let guard = Rc::clone(&guard);
            program.thread(move || guard.visit(Hold::Alone));
        }
    };
    rejected(Checker::new(Family { name: "no_lock_at_all", build }), lets_two_in);
}

/// A run of a family that is nowhere but here can be run again by the command that it shows.
#[test]
fn what_fails_can_be_run_again() {
    let build = |program: &mut Program| queue_lock(program, queue_lock::Error::WakesBeforeUnlock);
    let checker = Checker::new(Family { name: "wakes_first", build });
    let Some(failing) = found(checker.limits(FEW)) else { return };
    let told = failing.to_string();
    let command = told.lines().last().expect("a story has lines").trim();
    let (set, arguments) = command.split_once(" cargo test ").expect("it is a command of cargo");
    assert!(arguments.starts_with("-p spinpark-verify --test sim_mutants"), "{command}");
    // What cargo would run, with what it would say.
    let tests = std::env::current_exe().expect("the test has a path");
    let mut again = std::process::Command::new(tests);
    again.args(["--exact", "what_fails_can_be_run_again"]);
    again.envs(set.split(' ').map(|set| set.split_once('=').expect("a variable and its value")));
    let output = again.output().expect("the test runs again");
    let shown = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && shown.contains(&failing.story()), "{command}\n{shown}");
}
