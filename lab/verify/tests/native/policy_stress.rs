//! Native stress of the protocols under each policy, and under one that answers at random.
//!
//! `SPINPARK_STRESS_SECONDS` says how long in all (default 4).

use std::cell::{Cell, UnsafeCell};
use std::thread;
use std::time::{Duration, Instant};

use spinpark_linux::Linux;
use spinpark_locks::{
    Choice, Choices, Chosen, Few, LockCore, Many, Only, Park, Policy, Preference, RawCondvar, RawMutex,
    RawRwLock, ReaderBias, WaitQueue,
};
use spinpark_platform::{Clock, Clocks as _, Deadline};
use spinpark_verify::policies::{By, Coin};

thread_local! {
    static RANDOM: Cell<u64> = const { Cell::new(0) };
}

fn random(below: u64) -> u64 {
    RANDOM.with(|state| {
        let next =
            state.get().wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        state.set(next);
        (next >> 33) % below
    })
}

enum Tossed {}

impl Coin for Tossed {
    fn toss(_: u32) -> bool {
        random(2) == 0
    }
}

/// Another choice from call to call, as where it is found out at a lock's first wait.
enum Changes {}

impl Choices for Changes {
    fn of(_: usize) -> Choice {
        Choice::ALL[random(Choice::ALL.len() as u64) as usize]
    }
}

const THREADS: u64 = 16;

/// Two copies of a number each, that only a writer makes differ.
struct World<Q: Policy<Linux>> {
    mutex: RawMutex<Linux, Q>,
    condvar: RawCondvar<Linux, Q>,
    rwlock: RawRwLock<Linux, Q>,
    of_mutex: UnsafeCell<[u64; 2]>,
    of_rwlock: UnsafeCell<[u64; 2]>,
}

// SAFETY: the numbers are touched under their locks only, which is what this checks.
unsafe impl<Q: Policy<Linux>> Sync for World<Q> {}

fn core<Q: Policy<Linux>>() -> LockCore<Linux, Q> {
    LockCore::with_policy(WaitQueue::new())
}

fn soon() -> Deadline {
    Deadline { clock: Clock::Monotonic, at: Linux::now(Clock::Monotonic) + random(200_000) }
}

fn add(pair: &UnsafeCell<[u64; 2]>) {
    // SAFETY: the caller holds the lock alone.
    let pair = unsafe { &mut *pair.get() };
    assert_eq!(pair[0], pair[1], "another thread is inside");
    pair[0] += 1;
    std::hint::black_box(&mut pair[0]);
    pair[1] += 1;
}

impl<Q: Policy<Linux>> World<Q> {
    /// One round of a thread; how many sections of the mutex and of a writer it made.
    fn round(&self) -> [u64; 2] {
        let preference = Preference::Writers; // the same in each call
        match random(8) {
            0 => {
                let acquired = self.mutex.lock_until(soon());
                if acquired {
                    add(&self.of_mutex);
                    self.mutex.unlock();
                }
                [u64::from(acquired), 0]
            }
            1 => {
                self.mutex.lock();
                add(&self.of_mutex);
                self.condvar.wait(&self.mutex, Some(soon()));
                add(&self.of_mutex);
                self.mutex.unlock();
                [2, 0]
            }
            2 => {
                self.mutex.lock();
                self.condvar.signal();
                add(&self.of_mutex);
                self.mutex.unlock_fair();
                [1, 0]
            }
            3 => {
                self.rwlock.write_until_as(preference, None);
                add(&self.of_rwlock);
                self.rwlock.unlock_write();
                [0, 1]
            }
            4 => {
                let acquired = self.rwlock.write_until_as(preference, Some(soon()));
                if acquired {
                    add(&self.of_rwlock);
                    self.rwlock.unlock_write();
                }
                [0, u64::from(acquired)]
            }
            5 | 6 => {
                self.rwlock.read(preference);
                // SAFETY: the lock is held for reading.
                let pair = unsafe { *self.of_rwlock.get() };
                assert_eq!(pair[0], pair[1], "a writer is inside");
                self.rwlock.unlock_read();
                [0, 0]
            }
            _ => {
                self.mutex.lock();
                add(&self.of_mutex);
                self.mutex.unlock();
                [1, 0]
            }
        }
    }
}

/// All threads end, no section is lost, and none overlaps another.
fn under<Q: Policy<Linux>>(span: Duration) {
    let world = World::<Q> {
        mutex: RawMutex::from_core(core()),
        condvar: RawCondvar::with_policy(WaitQueue::new()),
        rwlock: RawRwLock::from_parts(core(), ReaderBias::default()),
        of_mutex: UnsafeCell::default(),
        of_rwlock: UnsafeCell::default(),
    };
    let end = Instant::now() + span;
    let work = |number: u64| {
        RANDOM.with(|state| state.set(number + 1));
        let mut made = [0; 2];
        while Instant::now() < end {
            for _ in 0..100 {
                let [of_mutex, of_rwlock] = world.round();
                made = [made[0] + of_mutex, made[1] + of_rwlock];
            }
        }
        made
    };
    let made = thread::scope(|scope| {
        let threads: Vec<_> = (0..THREADS).map(|number| scope.spawn(move || work(number))).collect();
        threads
            .into_iter()
            .map(|thread| thread.join().unwrap())
            .fold([0, 0], |a, b| [a[0] + b[0], a[1] + b[1]])
    });
    assert_eq!(world.of_mutex.into_inner(), [made[0]; 2]);
    assert_eq!(world.of_rwlock.into_inner(), [made[1]; 2]);
    assert!(made.iter().all(|&sections| sections > 0), "{made:?}");
}

#[test]
fn no_section_is_lost_whatever_the_policy() {
    let seconds: f64 =
        std::env::var("SPINPARK_STRESS_SECONDS").ok().and_then(|text| text.parse().ok()).unwrap_or(4.0);
    let span = Duration::from_secs_f64(seconds / 9.0);
    under::<Park>(span);
    under::<Few>(span);
    under::<Many>(span);
    under::<Chosen<Only<1>>>(span);
    under::<Chosen<Only<2>>>(span);
    under::<Chosen<Only<3>>>(span);
    under::<Chosen<Only<4>>>(span);
    under::<Chosen<Changes>>(span);
    under::<By<Tossed>>(span);
}
