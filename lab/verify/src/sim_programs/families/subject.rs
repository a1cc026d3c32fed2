//! Mutexes behind one face.

use std::rc::Rc;

use spinpark_classics::designs::{self, Use};
use spinpark_classics::mtx_2006::delays::{Delays, Place};
use spinpark_classics::mtx_2006::profiling::{BackOff, Delayed};
use spinpark_classics::mtx_2006::{Alone, Profiling};
use spinpark_classics::rwsem_2013::{Patches, Rwsem};
use spinpark_classics::{RawLock, RawRwLock as ClassicRwLock, mcs, mutex_2003};
use spinpark_locks::{LockCore, Policy, RawMutex, RawRwLock, TryMutex as _, TryRwLock as _, WaitQueue};
use spinpark_platform::{Clock, Clocks, Deadline, Platform};
use spinpark_sim::check::Field;
use spinpark_sim::{Sim, here};

use crate::sim_programs::Program;
use crate::sim_programs::case::{tuned, with_a_policy};
use crate::sim_programs::decode;
use crate::sim_programs::memory::Mortal;

/// How to acquire, and release.
#[derive(Clone, Copy, Debug)]
pub(super) enum How {
    Lock,
    Try,
    Until(Deadline),
    Fair,
}

impl How {
    /// One that comes up in programs.
    pub(super) fn random() -> Self {
        match here::random(8) {
            0 => Self::Try,
            1 | 2 => Self::Until(soon()),
            3 => Self::Fair,
            _ => Self::Lock,
        }
    }
}

/// A deadline that may pass during a wait.
pub(super) fn soon() -> Deadline {
    let clock = [Clock::Monotonic, Clock::Realtime][here::random(2) as usize];
    let span = here::random([100, 5_000, 200_000][here::random(3) as usize]);
    Deadline { clock, at: <Sim as Clocks>::now(clock) + span }
}

/// A mutex.
pub(super) trait Subject {
    /// Runs `act` inside, if the lock can be had as `how` says. A lock that does not have that waits for as
    /// long as it takes.
    fn section(&self, how: How, act: &mut dyn FnMut()) -> bool;

    /// It is no longer used: whether it is free, and nothing was left behind.
    fn is_clean(&self) -> bool {
        self.section(How::Try, &mut || ())
    }
}

impl<S: Subject> Subject for Mortal<S> {
    fn section(&self, how: How, act: &mut dyn FnMut()) -> bool {
        (**self).section(how, act)
    }
    fn is_clean(&self) -> bool {
        (**self).is_clean()
    }
}

impl<P: Platform, Q: Policy<P>> Subject for RawMutex<P, Q> {
    fn section(&self, how: How, act: &mut dyn FnMut()) -> bool {
        let acquired = match how {
            How::Lock | How::Fair => {
                self.lock();
                true
            }
            How::Try => self.try_lock(),
            How::Until(deadline) => self.lock_until(deadline),
        };
        if acquired {
            act();
            if matches!(how, How::Fair) { self.unlock_fair() } else { self.unlock() }
        }
        acquired
    }

    fn is_clean(&self) -> bool {
        self.try_lock() && self.unlock_alone()
    }
}

/// For writing only.
impl<P: Platform, Q: Policy<P>> Subject for RawRwLock<P, Q> {
    fn section(&self, how: How, act: &mut dyn FnMut()) -> bool {
        let acquired = match how {
            How::Lock | How::Fair => {
                self.write();
                true
            }
            How::Try => self.try_write(),
            How::Until(deadline) => self.write_until(Some(deadline)),
        };
        if acquired {
            act();
            if matches!(how, How::Fair) { self.unlock_write_fair() } else { self.unlock_write() }
        }
        acquired
    }
}

/// A classic lock.
struct Classic<L>(L);

impl<L: RawLock> Subject for Classic<L> {
    fn section(&self, how: How, act: &mut dyn FnMut()) -> bool {
        let acquired = match how {
            How::Try => self.0.try_lock(),
            _ => {
                self.0.lock();
                true
            }
        };
        if acquired {
            act();
            self.0.unlock();
        }
        acquired
    }
}

impl<P: Platform> Subject for mutex_2003::Mutex<P> {
    fn section(&self, how: How, act: &mut dyn FnMut()) -> bool {
        let acquired = match how {
            How::Try => self.try_lock(),
            _ => {
                self.lock();
                true
            }
        };
        if acquired {
            act();
            self.unlock();
        }
        acquired
    }
}

impl<P: Platform, S: mcs::Shape> Subject for mcs::McsLock<P, S> {
    fn section(&self, how: How, act: &mut dyn FnMut()) -> bool {
        match how {
            How::Try => self.try_with(act).is_some(),
            _ => {
                self.with(act);
                true
            }
        }
    }
}

/// A mutex that was drawn.
#[derive(Clone)]
pub(super) struct Drawn {
    pub(super) lock: Rc<dyn Subject>,
    pub(super) name: &'static str,
    /// Gives its memory back.
    pub(super) destroy: Rc<dyn Fn()>,
    /// Whether it is one of ours.
    pub(super) is_ours: bool,
}

type Draw = fn(&mut Program) -> Drawn;

fn drawn<S: Subject + 'static>(
    program: &mut Program,
    name: &'static str,
    lock: S,
    fields: &'static [Field],
) -> Drawn {
    let mortal = Mortal::new(lock);
    program.name_fields("lock", &mortal, fields);
    program.about(name);
    let memory = mortal.clone();
    Drawn { lock: Rc::new(mortal), name, destroy: Rc::new(move || memory.destroy()), is_ours: false }
}

pub(super) fn ours(program: &mut Program) -> Drawn {
    tuned!(program.case.constants, T => Drawn {
        is_ours: true,
        ..drawn(program, "our mutex", RawMutex::<Sim<T>>::new(), decode::MUTEX)
    })
}

/// Our mutex, with one of the policies.
pub(super) fn of_a_policy(program: &mut Program) -> Drawn {
    with_a_policy!(program, Q => tuned!(program.case.constants, T => Drawn {
        is_ours: true,
        ..drawn(
            program,
            "our mutex",
            RawMutex::from_core(LockCore::<Sim<T>, Q>::with_policy(WaitQueue::new())),
            decode::MUTEX,
        )
    }))
}

fn ours_for_writing(program: &mut Program) -> Drawn {
    tuned!(program.case.constants, T =>
        drawn(program, "our read-write lock, for writing", RawRwLock::<Sim<T>>::new(), decode::RWLOCK))
}

/// Draws the design that it is used with.
struct OfDesign<'a> {
    program: &'a mut Program,
    name: &'static str,
}

impl Use<Sim> for OfDesign<'_> {
    type Output = Option<Drawn>;

    fn otherwise(self) -> Option<Drawn> {
        None
    }

    fn mutex<L: RawLock + 'static>(self) -> Option<Drawn> {
        Some(drawn(self.program, self.name, Classic(L::new()), decode::OPAQUE))
    }

    fn rwlock<L: RawLock + ClassicRwLock + 'static>(self) -> Option<Drawn> {
        self.mutex::<L>()
    }

    fn mutex_2003(self) -> Option<Drawn> {
        Some(drawn(self.program, self.name, mutex_2003::Mutex::<Sim>::new(), decode::THREE_STATES))
    }

    fn mtx<F: Profiling + 'static, const ENABLED: bool>(self) -> Option<Drawn> {
        self.mutex::<Alone<Sim, F>>()
    }

    fn mtx_backing_off(self) -> Option<Drawn> {
        self.mtx::<BackOff, false>()
    }

    /// With a delay at each place.
    fn mtx_delayed(self) -> Option<Drawn> {
        let delays = Place::ALL.into_iter().fold(Delays::NONE, |delays, place| delays.with(place, 100));
        let lock = Alone::<Sim, Delayed>::delayed(delays);
        Some(drawn(self.program, self.name, Classic(lock), decode::OPAQUE))
    }
}

/// The design of that name, as a mutex.
fn design(program: &mut Program, name: &'static str) -> Drawn {
    let drawn = designs::with(name, OfDesign { program, name }).flatten();
    drawn.unwrap_or_else(|| panic!("the registry has no mutex {name}"))
}

fn three_states(program: &mut Program) -> Drawn {
    design(program, "classic-mutex-2003")
}

fn corrected_mcs(program: &mut Program) -> Drawn {
    drawn(program, "MCS lock", mcs::McsLock::<Sim, mcs::Corrected>::new(), decode::OPAQUE)
}

/// Those whose memory may be given back right after the release.
pub(super) const FREED: &[Draw] =
    &[ours, ours, ours_for_writing, three_states, corrected_mcs, |program| design(program, "classic-ttas")];

/// Those that serve first come, first served.
pub(super) const IN_ORDER: &[Draw] = &[corrected_mcs, |program| {
    drawn(program, "MCS lock before the patches", mcs::McsLock::<Sim, mcs::Before>::new(), decode::OPAQUE)
}];

/// All.
pub(super) const ALL: &[Draw] = &[
    ours,
    ours,
    ours,
    ours,
    ours_for_writing,
    three_states,
    corrected_mcs,
    |program| design(program, "classic-mcs"),
    |program| design(program, "classic-mutex-2.6.34"),
    |program| design(program, "classic-mutex-fixed"),
    |program| design(program, "classic-mutex-nospin"),
    |program| design(program, "classic-tas"),
    |program| design(program, "classic-ttas"),
    |program| design(program, "classic-tas-backoff"),
    |program| design(program, "classic-mtx"),
    |program| design(program, "classic-mtx-profiled"),
    |program| design(program, "classic-mtx-backoff"),
    |program| design(program, "classic-mtx-delayed"),
    |program| design(program, "classic-rwsem-3.12"),
    |program| design(program, "classic-rwsem-nospin"),
    |program| design(program, "classic-rwsem-full"),
    |program| {
        type UpTo8 = Rwsem<Sim, Patches<true, true, true, true, true, false>>;
        drawn(program, "rwsem up to patch 8 as a mutex", Classic(<UpTo8 as RawLock>::new()), decode::OPAQUE)
    },
];

/// Draws one of `those`.
pub(super) fn draw(program: &mut Program, those: &[Draw]) -> Drawn {
    let index = program.random(those.len());
    those[index](program)
}
