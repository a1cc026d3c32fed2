//! Models of code that runs once: the state, and the mutex that its user takes.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use loom::sync::atomic::AtomicU32 as Word;
use spinpark_locks::bits::once::DONE;
use spinpark_locks::{OncePoisoned, OnceState, OnceWord, RawMutex};
use spinpark_platform::AtomicU32 as _;
use spinpark_platform::Memory;
use spinpark_platform::Ordering::{Acquire, Release};
use spinpark_verify::platform::{Fault, Kind, Loom};
use spinpark_verify::{Guarded, Model, Shared, breaks, join_all, rejected};

type U = <Loom<1> as Memory>::AtomicU32;

/// As `spinpark::Once`.
struct Once {
    word: OnceWord<U>,
    mutex: RawMutex<Loom<1>>,
    /// How many closures have run to their ends; no lock guards it from those that see `Done`.
    made: Guarded,
    /// How many have begun.
    begun: Word,
}

/// What is wrong with a user of the state.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Error {
    None,
    /// The mutex is not taken (once.J1).
    NoMutex,
    /// A panic counts as an end (once.J3).
    PanicCounts,
}

impl Once {
    fn new() -> Arc<Shared<Self>> {
        Shared::new(Self {
            word: OnceWord::from_word(U::new(0)),
            mutex: RawMutex::new(),
            made: Guarded::new(),
            begun: Word::new(0),
        })
    }

    /// Makes it, unless it is made; the first closure to begin does not end well, if `panics`. (A model cannot unwind
    /// through atomics.) Whether it is made.
    fn call(&self, error: Error, panics: bool) -> bool {
        if self.word.state().done() {
            return true;
        }
        if error != Error::NoMutex {
            self.mutex.lock();
        }
        let begun = self.word.begin(true).expect("poison is accepted").is_some();
        let fails = begun && panics && self.begun.fetch_add(1, Relaxed) == 0;
        if begun {
            if !fails {
                self.made.add();
            }
            self.word.end(!fails || error == Error::PanicCounts);
        }
        if error != Error::NoMutex {
            self.mutex.unlock();
        }
        !fails
    }

    /// A thread that needs what is made.
    fn needs(&self, error: Error, panics: bool) {
        if self.call(error, panics) {
            assert_eq!(self.made.get(), 1, "it is made once");
        }
    }
}

fn threads(model: Model, number: usize, error: Error, panics: bool) {
    model.check(move || {
        let once = Once::new();
        let needs = move |shared: &Shared<Once>| shared.lock.needs(error, panics);
        let others: Vec<_> = (1..number).map(|_| once.spawn(needs)).collect();
        needs(&once);
        join_all(others);
        let made = once.lock.made.get();
        assert!(once.lock.word.state().done() == (made == 1) && made <= 1, "made {made} times");
    });
}

#[test]
fn two_threads() {
    threads(Model::new().preemptions(4), 2, Error::None, false);
}

#[test]
fn three_threads() {
    threads(Model::new().preemptions(1), 3, Error::None, false);
}

/// The first closure panics; the other thread makes it, or comes too early to be needed.
#[test]
fn a_closure_that_panics() {
    threads(Model::new(), 2, Error::None, true);
}

#[test]
fn poison_is_refused() {
    Model::new().check(|| {
        let once = Once::new();
        once.spawn(|shared| assert!(!shared.lock.call(Error::None, true))).join().unwrap();
        let Once { word, mutex, .. } = &once.lock;
        assert_eq!(word.state(), OnceState::Poisoned);
        mutex.lock();
        assert_eq!(word.begin(false), Err(OncePoisoned));
        assert_eq!(word.begin(true), Ok(Some(OnceState::Poisoned)));
        assert_eq!(word.state(), OnceState::InProgress);
        word.end(true);
        mutex.unlock();
        assert_eq!(word.state(), OnceState::Done);
    });
}

#[test]
fn mutant_without_its_mutex() {
    rejected!("mutant_without_its_mutex", breaks("once.J1"), "Causality violation", || {
        threads(Model::new(), 2, Error::NoMutex, false);
    });
}

#[test]
fn mutant_done_without_release() {
    rejected!("mutant_done_without_release", breaks("once.J2"), "Causality violation", || {
        let model = Model::new().fault(Fault::Relaxed(|op| op.is(Kind::Store, Release) && op.writes(DONE)));
        threads(model, 2, Error::None, false);
    });
}

#[test]
fn mutant_done_seen_without_acquire() {
    rejected!("mutant_done_seen_without_acquire", breaks("once.J2"), "Causality violation", || {
        let model = Model::new().fault(Fault::Relaxed(|op| op.is(Kind::Load, Acquire)));
        threads(model, 2, Error::None, false);
    });
}

#[test]
fn mutant_a_panic_counts() {
    rejected!("mutant_a_panic_counts", breaks("once.J3"), "it is made once", || {
        threads(Model::new(), 2, Error::PanicCounts, true);
    });
}
