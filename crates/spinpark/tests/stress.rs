//! Native stress: all locks, mixed, with timeouts, and invariants that hold at every moment.
//!
//! - *Mutual exclusion*: what a lock protects is two copies of a number that only a writer makes differ.
//! - *No lost wake-up*: a thread that sleeps for ever on a mutex or read-write lock hangs the test. Waits on
//!   the condition variables have deadlines, so that no thread depends on another: tokens are counted, but a
//!   lost signal is only late.
//! - *Every thread ends*: each finishes [`ROUNDS`], and those that it begins until the time is over, however
//!   few CPUs there are. How long a thread waits at most is not asked here, where the scheduler decides it:
//!   the simulator does, on a machine with a CPU for each thread (`mutex_patience`, `rwlock_patience`).
//!
//! All of this runs with this machine's CPUs, and as if there were CPUs to spare, where spinners queue.
//!
//! `SPINPARK_STRESS_SECONDS` says for how long new rounds begin in all (default 6), for 2, 16 and 256 threads
//! of both a sixth each.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;
use std::time::Duration;

use spinpark::{Condvar, Mutex, RwLock, RwLockUpgradableReadGuard, RwLockWriteGuard};

/// Two copies of a number. A writer makes them differ for a moment.
#[derive(Default)]
struct Pair(u64, u64);

impl Pair {
    fn bump(&mut self) {
        assert_eq!(self.0, self.1, "another thread is inside");
        self.0 += 1;
        std::hint::black_box(&mut self.0);
        self.1 += 1;
    }

    fn check(&self) {
        assert_eq!(self.0, self.1, "a writer is inside");
    }
}

#[derive(Default)]
struct World {
    over: AtomicBool,
    mutex: Mutex<Pair>,
    rwlock: RwLock<Pair>,
    tokens: Mutex<u64>,
    filled: Condvar,
    drained: Condvar,
}

/// How many tokens fit.
const ROOM: u64 = 4;

/// How many rounds each thread finishes at least.
const ROUNDS: u64 = 8;

/// What one thread did.
#[derive(Default)]
struct Done {
    rounds: u64,
    mutex: u64,
    write: u64,
    put: u64,
    taken: u64,
}

/// A pseudo-random generator (xorshift), the same in each run.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % bound
    }

    fn micros(&mut self, bound: u64) -> Duration {
        Duration::from_micros(self.below(bound))
    }
}

fn use_mutex(world: &World, random: &mut Random, done: &mut Done) {
    let guard = match random.below(8) {
        0 => world.mutex.try_lock(),
        1 => world.mutex.try_lock_for(random.micros(300)),
        _ => Some(world.mutex.lock()),
    };
    if let Some(mut pair) = guard {
        pair.bump();
        done.mutex += 1;
        if random.below(64) == 0 {
            thread::sleep(random.micros(50)); // an owner that is off the CPU
        }
        if random.below(16) == 0 {
            spinpark::MutexGuard::unlock_fair(pair);
        }
    }
}

fn use_rwlock(world: &World, random: &mut Random, done: &mut Done) {
    match random.below(12) {
        0 => {
            if let Some(mut pair) = world.rwlock.try_write_for(random.micros(300)) {
                pair.bump();
                done.write += 1;
            }
        }
        1 => {
            let mut pair = world.rwlock.write();
            pair.bump();
            done.write += 1;
            RwLockWriteGuard::downgrade(pair).check();
        }
        2 => {
            let seen = world.rwlock.upgradable_read();
            seen.check();
            let before = seen.0;
            let mut pair = RwLockUpgradableReadGuard::upgrade(seen);
            assert_eq!(pair.0, before, "a writer came between");
            pair.bump();
            done.write += 1;
        }
        3 => {
            let seen = world.rwlock.upgradable_read();
            match RwLockUpgradableReadGuard::try_upgrade_for(seen, random.micros(100)) {
                Ok(mut pair) => {
                    pair.bump();
                    done.write += 1;
                }
                Err(seen) => seen.check(),
            }
        }
        4 => {
            if let Some(pair) = world.rwlock.try_read_for(random.micros(100)) {
                pair.check();
            }
        }
        5 => {
            let outer = world.rwlock.read();
            if random.below(8) == 0 {
                thread::sleep(random.micros(50));
            }
            world.rwlock.read().check(); // recursion, whichever threads wait
            outer.check();
        }
        _ => world.rwlock.read().check(),
    }
}

/// Puts a token if the thread has put no more than it has taken, else takes one; both wait, both may give up.
fn use_condvar(world: &World, random: &mut Random, done: &mut Done) {
    let patience = random.micros(2_000);
    let mut tokens = world.tokens.lock();
    if done.put <= done.taken {
        if world.drained.wait_while_for(&mut tokens, |tokens| *tokens >= ROOM, patience).timed_out() {
            return;
        }
        *tokens += 1;
        done.put += 1;
        if random.below(8) == 0 {
            world.filled.notify_all();
            return;
        }
        if random.below(2) == 0 {
            drop(tokens); // a notification outside the mutex
        }
        world.filled.notify_one();
    } else {
        if world.filled.wait_while_for(&mut tokens, |tokens| *tokens == 0, patience).timed_out() {
            return;
        }
        *tokens -= 1;
        done.taken += 1;
        world.drained.notify_one();
    }
}

fn stress(threads: usize, duration: Duration) {
    let world = World::default();
    let done: Vec<Done> = thread::scope(|scope| {
        let workers: Vec<_> = (0..threads)
            .map(|number| {
                let world = &world;
                scope.spawn(move || {
                    let mut random = Random(0x9e37_79b9_7f4a_7c15 ^ (number as u64 + 1));
                    let mut done = Done::default();
                    while done.rounds < ROUNDS || !world.over.load(Relaxed) {
                        use_mutex(world, &mut random, &mut done);
                        use_rwlock(world, &mut random, &mut done);
                        use_condvar(world, &mut random, &mut done);
                        done.rounds += 1;
                    }
                    done
                })
            })
            .collect();
        thread::sleep(duration);
        world.over.store(true, Relaxed);
        workers.into_iter().map(|worker| worker.join().expect("an invariant failed")).collect()
    });
    let sum = |count: fn(&Done) -> u64| done.iter().map(count).sum::<u64>();
    assert_eq!(world.mutex.into_inner().1, sum(|done| done.mutex));
    assert_eq!(world.rwlock.into_inner().1, sum(|done| done.write));
    assert_eq!(world.tokens.into_inner() + sum(|done| done.taken), sum(|done| done.put));
}

#[test]
fn all_locks_mixed_with_2_16_and_256_threads() {
    let seconds: f64 =
        std::env::var("SPINPARK_STRESS_SECONDS").ok().and_then(|text| text.parse().ok()).unwrap_or(6.0);
    // With `SPINPARK_PROFILE_DIR` the slow paths are watched.
    let _profile = spinpark::profile::start_from_environment().expect("a profile");
    for spare in [false, true] {
        if spare {
            spinpark_linux::pretend_cpus(4);
        }
        for threads in [2, 16, 256] {
            stress(threads, Duration::from_secs_f64(seconds / 6.0));
        }
    }
}
