//! Programs of our read-write lock.

use std::cell::Cell;
use std::rc::Rc;

use spinpark_locks::{LockCore, Policy, Preference, RawRwLock, ReaderBias, TryRwLock as _, Usual, WaitQueue};
use spinpark_platform::{Deadline, Event};
use spinpark_sim::here::has_priorities;
use spinpark_sim::{Sim, Tuned, here};

use super::owed::Owed;
use super::subject::soon;
use crate::sim_programs::case::{tuned, with_a_policy};
use crate::sim_programs::decode;
use crate::sim_programs::guard::{stay, wander};
use crate::sim_programs::{Guard, Hold, Mortal, Program};

/// Our lock, with what it guards.
struct Guarded<T: Tuned, Q: Policy<Sim<T>> = Usual> {
    lock: Mortal<RawRwLock<Sim<T>, Q>>,
    guard: Rc<Guard>,
    owed: Rc<Owed>,
    /// Threads may see another one from some call on ([`told`]).
    preference: Rc<Cell<Preference>>,
    /// Whether writers say so, too: not from the start.
    prefers_late: bool,
    /// Of this many rounds, one is not a read.
    reads: u64,
}

impl<T: Tuned, Q: Policy<Sim<T>>> Clone for Guarded<T, Q> {
    fn clone(&self) -> Self {
        Self {
            lock: self.lock.clone(),
            guard: Rc::clone(&self.guard),
            owed: Rc::clone(&self.owed),
            preference: Rc::clone(&self.preference),
            ..*self
        }
    }
}

fn perhaps() -> Option<Deadline> {
    (here::random(3) == 0).then(soon)
}

impl<T: Tuned, Q: Policy<Sim<T>>> Guarded<T, Q> {
    fn draw(program: &mut Program) -> Self {
        let core = LockCore::with_policy(WaitQueue::new());
        let lock = Mortal::new(RawRwLock::from_parts(core, ReaderBias::default()));
        program.name_fields("lock", &lock, decode::RWLOCK);
        let preference = [Preference::Readers, Preference::Writers][program.random(2)];
        let reads = [1, 3, 20][program.random(3)];
        program.about(format!(
            "our read-write lock, {preference:?} preferred, of {reads} rounds one is no read"
        ));
        let owed = Rc::new(Owed::default());
        let told = Rc::clone(&owed);
        program.on_event(move |thread, event| match event {
            Event::RequestedHandoff => told.requested(thread),
            Event::WithdrewRequest => told.withdrawn(),
            _ => {}
        });
        let preference = Rc::new(Cell::new(preference));
        Self { lock, guard: Rc::new(Guard::new()), owed, preference, prefers_late: false, reads }
    }

    fn round(&self) {
        if here::random(self.reads) != 0 {
            return self.read();
        }
        match here::random(5) {
            0 => self.read(),
            1 | 2 => self.write(),
            _ => self.upgradable(),
        }
    }

    fn read(&self) {
        let Self { lock, guard, preference, .. } = self;
        let acquired = match here::random(4) {
            0 => self.try_read(),
            1 => lock.read_until(preference.get(), Some(soon())),
            _ => {
                lock.read(preference.get());
                true
            }
        };
        if !acquired {
            return;
        }
        guard.enter(Hold::Shared);
        stay();
        if here::random(4) == 0 {
            self.read_again();
        }
        guard.leave(Hold::Shared);
        if here::random(8) == 0 { lock.unlock_read_fair() } else { lock.unlock_read() }
    }

    /// A thread that does not read yet comes in only if no thread is owed the lock.
    fn try_read(&self) -> bool {
        let request = self.owed.latest();
        let acquired = self.lock.try_read(self.preference.get());
        // A lock that no thread held was promised, perhaps.
        if acquired
            && !self.guard.is_empty()
            && !has_priorities()
            && request.is_some_and(|request| self.owed.is_owed(request))
        {
            here::fail(
                "starvation: a new reader came in past a thread that had requested the lock".to_owned(),
            );
        }
        acquired
    }

    /// A thread that reads may read once more, whichever threads wait.
    fn read_again(&self) {
        let Self { lock, guard, preference, .. } = self;
        let acquired = match here::random(3) {
            0 => lock.try_read_recursive(),
            1 => lock.read_recursive(None),
            _ => {
                lock.read(preference.get());
                true
            }
        };
        if acquired {
            guard.visit(Hold::Shared);
            lock.unlock_read();
        }
    }

    fn write(&self) {
        let Self { lock, guard, .. } = self;
        // Calls that do not wait, or no longer, do not heed a promise: they pass whom it was made to.
        let acquired = match here::random(4) {
            0 => lock.try_write(),
            1 => lock.write_until(Some(soon())),
            _ if self.prefers_late => lock.write_until_as(self.preference.get(), None),
            _ => {
                self.owed.wait(|| lock.write());
                self.owed.came_in_alone();
                true
            }
        };
        if !acquired {
            return;
        }
        guard.visit(Hold::Alone);
        match here::random(6) {
            0 => {
                guard.enter(Hold::Shared);
                lock.downgrade();
                stay();
                guard.leave(Hold::Shared);
                lock.unlock_read();
            }
            1 => {
                guard.enter(Hold::Upgradable);
                lock.downgrade_to_upgradable();
                self.hold_upgradable();
            }
            2 => lock.unlock_write_fair(),
            _ => lock.unlock_write(),
        }
    }

    fn upgradable(&self) {
        let Self { lock, guard, .. } = self;
        let acquired = if here::random(4) == 0 { lock.try_upgradable() } else { lock.upgradable(perhaps()) };
        if acquired {
            guard.enter(Hold::Upgradable);
            self.hold_upgradable();
        }
    }

    /// Held upgradably, and to be released in some way.
    fn hold_upgradable(&self) {
        let Self { lock, guard, .. } = self;
        stay();
        if here::random(4) == 0 {
            self.read_again();
        }
        let upgraded = match here::random(5) {
            0 => lock.try_upgrade(),
            1 | 2 => match perhaps() {
                None => self.owed.wait(|| lock.upgrade(None)),
                deadline => lock.upgrade(deadline),
            },
            _ => false,
        };
        guard.leave(Hold::Upgradable);
        if upgraded {
            guard.visit(Hold::Alone);
            return lock.unlock_write();
        }
        match here::random(4) {
            0 => {
                guard.enter(Hold::Shared);
                lock.downgrade_upgradable();
                stay();
                guard.leave(Hold::Shared);
                lock.unlock_read();
            }
            1 => lock.unlock_upgradable_fair(),
            _ => lock.unlock_upgradable(),
        }
    }
}

/// Each thread uses it again and again, in any way.
pub(super) fn ours(program: &mut Program) {
    tuned!(program.case.constants, T => again_and_again::<T, Usual>(program));
}

/// The same, with any policy.
pub(super) fn policies(program: &mut Program) {
    with_a_policy!(program, Q => tuned!(program.case.constants, T => again_and_again::<T, Q>(program)));
}

fn again_and_again<T: Tuned, Q: Policy<Sim<T>>>(program: &mut Program) {
    let guarded = Guarded::<T, Q>::draw(program);
    uses(program, guarded);
}

/// The same of a lock that is used already when a thread learns what the user has chosen for it: to prefer writers, or
/// to have no bias.
pub(super) fn told(program: &mut Program) {
    fn put_together<T: Tuned>(program: &mut Program) {
        let guarded = Guarded::<T> { prefers_late: true, ..Guarded::draw(program) };
        guarded.preference.set(Preference::Readers);
        let theirs = guarded.clone();
        let (is_first, tells) = (program.random(2) == 0, 1 + program.random(3));
        program.about(format!("told {tells} times: {}", if is_first { "writers first" } else { "no bias" }));
        program.thread(move || {
            for _ in 0..tells {
                wander();
                here::sleep(here::random(20_000));
                if is_first {
                    theirs.preference.set(Preference::Writers);
                } else {
                    let _ = theirs.lock.forbid_bias();
                }
                theirs.round();
            }
        });
        uses(program, guarded);
    }
    tuned!(program.case.constants, T => put_together::<T>(program));
}

fn uses<T: Tuned, Q: Policy<Sim<T>>>(program: &mut Program, guarded: Guarded<T, Q>) {
    for _ in 0..program.threads() {
        let (guarded, rounds) = (guarded.clone(), program.rounds());
        program.thread(move || {
            for _ in 0..rounds {
                guarded.round();
                wander();
            }
        });
    }
    program.after(move || {
        let lock = &guarded.lock;
        if lock.is_locked() || !lock.try_write() {
            return Err("the lock is not free".to_owned());
        }
        // Now, and not after the release: that may be a plain store, which wipes everything out.
        match decode::flags(lock.first_word()) {
            0 => Ok(()),
            _ => Err(format!("a flag was left behind: {}", decode::word(lock.first_word()))),
        }
    });
}

/// Readers come in once, at last; then a writer that finds that they have all been there gives the memory
/// back.
pub(super) fn freed(program: &mut Program) {
    fn put_together<T: Tuned>(program: &mut Program) {
        let guarded = Guarded::<T>::draw(program);
        let readers = program.threads() - 1;
        let left = Rc::new(Cell::new(0));
        for _ in 0..readers {
            let (guarded, left) = (guarded.clone(), Rc::clone(&left));
            let rounds = program.rounds().min(4);
            program.thread(move || {
                for _ in 1..rounds {
                    guarded.round();
                }
                guarded.lock.read(guarded.preference.get());
                guarded.guard.enter(Hold::Shared);
                stay();
                guarded.guard.leave(Hold::Shared);
                left.set(left.get() + 1);
                guarded.lock.unlock_read();
            });
        }
        program.thread(move || {
            loop {
                guarded.lock.write();
                guarded.guard.visit(Hold::Alone);
                let are_all = left.get() == readers;
                guarded.lock.unlock_write();
                if are_all {
                    return guarded.lock.destroy();
                }
                here::sleep(here::random(20_000));
            }
        });
    }
    tuned!(program.case.constants, T => put_together::<T>(program));
}

/// A thread that reads waits for a helper that reads too, past writers that wait: readers' patience ends.
pub(super) fn helper(program: &mut Program) {
    fn put_together<T: Tuned>(program: &mut Program) {
        let guarded =
            Guarded { preference: Rc::new(Cell::new(Preference::Readers)), ..Guarded::<T>::draw(program) };
        for number in 0..program.threads() {
            let (guarded, rounds) = (guarded.clone(), program.rounds().min(4));
            program.thread(move || {
                for _ in 0..rounds {
                    if number % 2 == 1 {
                        guarded.write();
                        continue;
                    }
                    guarded.lock.read(Preference::Readers);
                    guarded.guard.enter(Hold::Shared);
                    let theirs = guarded.clone();
                    let helper = here::spawn(move || {
                        theirs.lock.read(Preference::Readers);
                        theirs.guard.visit(Hold::Shared);
                        theirs.lock.unlock_read();
                    });
                    here::join(helper);
                    guarded.guard.leave(Hold::Shared);
                    guarded.lock.unlock_read();
                }
            });
        }
    }
    tuned!(program.case.constants, T => put_together::<T>(program));
}
