//! The protocols under each policy, and under some that answer each question always alike. No invariant leans
//! on an answer.

use spinpark_locks::{
    Chosen, Few, LockCore, Many, Only, Park, Policy, Preference, RawCondvar, RawMutex, RawRwLock, ReaderBias,
    TryRwLock as _, WaitQueue,
};
use spinpark_verify::platform::Loom;
use spinpark_verify::policies::{Bits, By};
use spinpark_verify::{Guarded, Model, Shared, join_all};

/// A waiter that has lost once requests the lock; a spin has two polls; slots are used at once.
type Machine = Loom<0, 1, { u64::MAX }, 0>;

fn core<Q: Policy<Machine>>() -> LockCore<Machine, Q> {
    LockCore::with_policy(WaitQueue::new())
}

/// Three threads come in once each, one with a deadline.
fn mutex<Q: Policy<Machine>>() {
    for cpus in [1, 2, 4] {
        Model::new().spinning().cpus(cpus).preemptions(1).check(|| {
            let shared = Shared::new(RawMutex::from_core(core::<Q>()));
            let others = [
                shared.spawn(Shared::<RawMutex<Machine, Q>>::section),
                shared.spawn(|it| it.timed_section(5)),
            ];
            shared.section();
            join_all(others);
            assert!((2..=3).contains(&shared.finish()));
        });
    }
}

/// A writer, one of the other kind, and a reader.
fn rwlock<Q: Policy<Machine>>(preference: Preference) {
    // What differs with one CPU is of mutexes and condition variables: wakes without a mark, and deferred ones.
    for cpus in [2, 4] {
        Model::new().spinning().cpus(cpus).preemptions(1).check(move || {
            let shared = Shared::new(RawRwLock::from_parts(core::<Q>(), ReaderBias::default()));
            let write: fn(&Shared<RawRwLock<Machine, Q>>) = match preference {
                Preference::Readers => Shared::write,
                Preference::Writers => Shared::write_first,
            };
            let others = [shared.spawn(write), shared.spawn(move |it| it.read(preference))];
            write(&shared);
            join_all(others);
            assert!(shared.lock.try_write(), "it is free");
            assert_eq!(shared.data.get(), 2);
        });
    }
}

struct Pair<Q: Policy<Machine>> {
    mutex: RawMutex<Machine, Q>,
    condvar: RawCondvar<Machine, Q>,
    tokens: Guarded,
}

/// Two threads take a token each, which the third one puts.
fn condvar<Q: Policy<Machine>>() {
    for cpus in [1, 2, 4] {
        Model::new().spinning().cpus(cpus).preemptions(1).check(|| {
            let shared = Shared::new(Pair::<Q> {
                mutex: RawMutex::from_core(core()),
                condvar: RawCondvar::with_policy(WaitQueue::new()),
                tokens: Guarded::new(),
            });
            let takers = [(); 2].map(|()| {
                shared.spawn(|it| {
                    let Pair { mutex, condvar, tokens } = &it.lock;
                    mutex.lock();
                    while tokens.get() < 2 {
                        condvar.wait(mutex, None);
                    }
                    mutex.unlock();
                })
            });
            let Pair { mutex, condvar, tokens } = &shared.lock;
            mutex.lock();
            tokens.add();
            tokens.add();
            condvar.signal();
            condvar.signal();
            mutex.unlock();
            join_all(takers);
            assert!(condvar.is_idle());
        });
    }
}

/// The answer (`returns_soon`) by which a release leaves a head asleep that keeps its own time: the clock of these
/// models stands, so its timer would not end. `timed_waiters` and `clocks` have models of that.
const TIMED_HEAD_SLEEPS_ON: u32 = 1 << 17;

macro_rules! under {
    ($($name:ident $policy:ty),* $(,)?) => {$(
        mod $name {
            use super::*;

            #[test]
            fn mutex() {
                super::mutex::<$policy>();
            }

            #[test]
            fn rwlock() {
                super::rwlock::<$policy>(Preference::Readers);
            }

            #[test]
            fn rwlock_that_prefers_writers() {
                super::rwlock::<$policy>(Preference::Writers);
            }

            #[test]
            fn condvar() {
                super::condvar::<$policy>();
            }
        }
    )*};
}

under! {
    park Park,
    few Few,
    many Many,
    chosen_eager Chosen<Only<1>>,
    chosen_back_off Chosen<Only<2>>,
    chosen_park Chosen<Only<3>>,
    chosen_in_order Chosen<Only<4>>,
    always By<Bits<{ !TIMED_HEAD_SLEEPS_ON }>>,
    every_other By<Bits<0x5555_5555>>,
    the_others By<Bits<0xaaaa_aaaa>>,
    in_pairs By<Bits<0x3333_3333>>,
    in_fours By<Bits<0x0f0f_0f0f>>,
}
