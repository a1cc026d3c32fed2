//! Native stress of the condition variable of 2003: a small store of tokens, with all kinds of signals and
//! with deadlines.
//!
//! Everything that is put is taken; a lost wake-up hangs the test. `SPINPARK_STRESS_SECONDS` (default 6)
//! scales the number of tokens.

use std::cell::UnsafeCell;
use std::thread;

use spinpark_classics::condvar_2003::{Condvar, Orig, Requeue, Signalling, WaitResult, WakeByOp};
use spinpark_classics::mutex_2003::Mutex;
use spinpark_linux::Linux;
use spinpark_platform::{Clock, Clocks, Deadline};

/// Tokens that fit.
const ROOM: u64 = 3;

/// What the mutex protects: the tokens there, and all that were ever put, twice.
#[derive(Default)]
struct Tokens {
    there: u64,
    put: u64,
    again: u64,
}

struct Store<S: Signalling> {
    mutex: Mutex<Linux>,
    filled: Condvar<Linux, S>,
    drained: Condvar<Linux, S>,
    tokens: UnsafeCell<Tokens>,
}

// SAFETY: the tokens are touched under the mutex; if that does not exclude, the test fails.
unsafe impl<S: Signalling> Sync for Store<S> {}

impl<S: Signalling> Store<S> {
    fn new() -> Self {
        let (mutex, tokens) = (Mutex::new(), UnsafeCell::default());
        Self { mutex, filled: Condvar::new(), drained: Condvar::new(), tokens }
    }

    /// Waits on `condvar` until `is_ready`, changes the tokens, and signals `other` in one of three ways.
    fn act(
        &self,
        [condvar, other]: [&Condvar<Linux, S>; 2],
        number: u64,
        is_ready: impl Fn(&Tokens) -> bool,
        change: impl Fn(&mut Tokens),
    ) {
        self.mutex.lock();
        // SAFETY: this thread holds the mutex, and no reference outlives a wait.
        while !is_ready(unsafe { &*self.tokens.get() }) {
            let soon = Linux::now(Clock::Monotonic) + 50_000;
            let deadline = number.is_multiple_of(3).then_some(Deadline { clock: Clock::Monotonic, at: soon });
            let result = condvar.wait(&self.mutex, deadline);
            assert!(result == WaitResult::Signalled || Linux::now(Clock::Monotonic) >= soon, "too early");
        }
        // SAFETY: as above.
        change(unsafe { &mut *self.tokens.get() });
        match number % 8 {
            0 => other.broadcast(),
            1..4 => other.signal(),
            _ => {
                self.mutex.unlock();
                other.signal();
                return;
            }
        }
        self.mutex.unlock();
    }

    fn put(&self, number: u64) {
        let change = |tokens: &mut Tokens| {
            assert_eq!(tokens.put, tokens.again, "another thread is inside");
            tokens.put += 1;
            tokens.there += 1;
            std::hint::black_box(&mut *tokens).again += 1;
        };
        self.act([&self.drained, &self.filled], number, |tokens| tokens.there < ROOM, change);
    }

    fn take(&self, number: u64) {
        self.act(
            [&self.filled, &self.drained],
            number,
            |tokens| tokens.there > 0,
            |tokens| tokens.there -= 1,
        );
    }
}

fn stress<S: Signalling>() {
    let seconds: f64 =
        std::env::var("SPINPARK_STRESS_SECONDS").ok().and_then(|text| text.parse().ok()).unwrap_or(6.0);
    let tokens = (seconds * 15_000.0) as u64;
    for pairs in [1, 8, 32] {
        let store = Store::<S>::new();
        let each = tokens / pairs;
        thread::scope(|scope| {
            for _ in 0..pairs {
                scope.spawn(|| (0..each).for_each(|number| store.put(number)));
                scope.spawn(|| (0..each).for_each(|number| store.take(number)));
            }
        });
        let left = store.tokens.into_inner();
        assert_eq!((left.put, left.there), (each * pairs, 0));
    }
}

#[test]
fn orig() {
    stress::<Orig>();
}

#[test]
fn requeue() {
    stress::<Requeue>();
}

#[test]
fn wake_by_op() {
    stress::<WakeByOp>();
}
