//! What a thread does at a moment, and what it waits for.

use std::sync::Arc;

use super::object::Held;
use super::python;
use crate::model::{CallSite, Kind, Role};

/// What a thread does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum State {
    /// It runs, or waits for a CPU.
    Running,
    /// It waits for another thread.
    Waits(Wait),
    /// It is in a system call, with this name.
    Call(&'static str),
    /// It waits for memory that is on a disk.
    Fault,
    /// Stopped by a signal, or a debugger; in this wait, if it is in one.
    Stopped(Option<Wait>),
    /// What is not known.
    Unknown,
}

/// A wait for another thread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wait {
    /// What it waits for.
    pub kind: Kind,
    /// In which role.
    pub role: Role,
    /// Where that is; 0 if it has no address of its own.
    pub address: u64,
    /// What it is called: a variable, or a type.
    pub name: Option<String>,
    /// It ends by itself.
    pub is_timed: bool,
    /// No other process can end it.
    pub is_private: bool,
    /// Who has it.
    pub held: Held,
}

/// A thread.
#[derive(Clone, Debug)]
pub struct ThreadNow {
    /// Its number.
    pub id: u32,
    /// Its name.
    pub name: String,
    /// What it does.
    pub state: State,
    /// Where in the program; none if it runs, or that is not known.
    pub place: Option<Arc<CallSite>>,
    /// It has not run between the snapshots; or was blocked at the moment that there is one of.
    pub stays: bool,
}

impl ThreadNow {
    /// The wait for what another thread has, or for a thread's end.
    pub(super) fn wait(&self) -> Option<&Wait> {
        match &self.state {
            State::Waits(wait) | State::Stopped(Some(wait)) => Some(wait),
            _ => None,
        }
    }

    pub(super) fn wait_mut(&mut self) -> Option<&mut Wait> {
        match &mut self.state {
            State::Waits(wait) | State::Stopped(Some(wait)) => Some(wait),
            _ => None,
        }
    }

    /// The same, of which it is not known which thread has what it waits for.
    pub(super) fn without_owner(mut self) -> Self {
        self.stays = false;
        if let Some(wait) = self.wait_mut()
            && wait.is_lock()
        {
            wait.held = Held::Unknown;
        }
        self
    }

    /// Whether it had the lock of this wait a moment ago, and waits for it now: threads are read one after the other.
    pub(super) fn has_passed_on(&self, wait: &Wait) -> bool {
        let is_it = |own: &Wait| own.address == wait.address && own.address != 0 && own.kind == wait.kind;
        self.lock().is_some_and(|own| is_it(own) && own.holder() != Some(self.id))
    }

    /// The wait for a lock.
    pub(super) fn lock(&self) -> Option<&Wait> {
        self.wait().filter(|wait| wait.is_lock())
    }
}

impl Wait {
    /// Whether it is for a lock, and not for a signal or a thread's end.
    #[must_use]
    pub fn is_lock(&self) -> bool {
        self.role.is_lock() || self.role == Role::Back
    }

    /// Whether it is for a lock of Python's that does not tell its owner.
    pub(super) fn is_pythons(&self) -> bool {
        self.name.as_deref() == Some(python::LOCK) && self.kind == Kind::Mutex
    }

    /// Whether nobody will release it.
    #[must_use]
    pub fn is_lost(&self) -> bool {
        matches!(self.held, Held::Gone(_))
    }

    /// The thread that it waits for.
    #[must_use]
    pub fn holder(&self) -> Option<u32> {
        match self.held {
            Held::Thread(id) | Held::Perhaps(id) => Some(id),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn locks_that_were_passed_on() {
        let waits = |id: u32, address: u64, held: Held| {
            let (kind, role) = (Kind::Mutex, Role::Write);
            let wait = Wait { kind, role, address, name: None, is_timed: false, is_private: true, held };
            ThreadNow { id, name: String::new(), state: State::Waits(wait), place: None, stays: true }
        };
        let waiter = waits(1, 8, Held::Thread(2));
        let wait = waiter.wait().expect("it waits");
        assert!(waits(2, 8, Held::Thread(3)).has_passed_on(wait));
        // It waits for what it has itself, for another lock, or not.
        assert!(!waits(2, 8, Held::Thread(2)).has_passed_on(wait));
        assert!(!waits(2, 16, Held::Thread(3)).has_passed_on(wait));
        assert!(!ThreadNow { state: State::Running, ..waits(2, 8, Held::Free) }.has_passed_on(wait));
    }
}
