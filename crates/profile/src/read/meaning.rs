//! What waits are for whose stacks tell: by record, and by condition variable and stack.
//! [`by_stack`](super::by_stack) fills these tables.

use std::collections::HashMap;

use spinpark_recorder::format;

use crate::model::{CallSiteId, Kind, Lock, Role};
use crate::waits::WaitTarget;

/// By record.
#[derive(Debug, Default)]
pub(super) struct Meanings(pub(super) HashMap<u32, WaitTarget>);

impl Meanings {
    /// What waits at this record are for, if it is of such a kind.
    pub(super) fn get(&self, record: u32) -> Option<&WaitTarget> {
        self.0.get(&record)
    }

    /// The role in which a record was used.
    pub(super) fn role(&self, record: u32, noted: format::Role) -> format::Role {
        match self.get(record).filter(|_| noted == format::Role::Wake).map(|wait| wait.role) {
            Some(Role::Write) => format::Role::Write,
            Some(Role::Read) => format::Role::Read,
            Some(Role::Signal) => format::Role::Signal,
            _ => noted,
        }
    }

    /// Whether it is a lock of which only the waits are seen in which a thread slept.
    pub(super) fn is_slept_for(&self, record: u32) -> bool {
        self.get(record).is_some_and(|wait| wait.role.is_lock())
    }

    /// Whether it is the end of a thread.
    pub(super) fn is_join(&self, record: u32) -> bool {
        self.get(record).is_some_and(|wait| wait.kind == Kind::Join)
    }
}

/// The object that such waits were for.
pub(super) struct Taken {
    /// A number that no record has.
    pub(super) lock: u32,
    pub(super) wait: WaitTarget,
    pub(super) call_site: Option<CallSiteId>,
    /// Where it is, if the program made it of a mutex and condition variables.
    pub(super) made_at: Option<u64>,
}

/// By condition variable and stack: the number of the object, and the role.
pub(super) type Moved = HashMap<(u32, u32), (u32, format::Role)>;

/// The role as recordings have it.
pub(super) fn noted(role: Role) -> format::Role {
    match role {
        Role::Write => format::Role::Write,
        Role::Read => format::Role::Read,
        Role::Wake => format::Role::Wake,
        _ => format::Role::Signal,
    }
}

/// The objects, as locks.
pub(super) fn taken_locks(taken: &[Taken]) -> impl Iterator<Item = Lock> {
    taken.iter().map(|taken| Lock {
        id: taken.lock,
        label: String::new(),
        name: taken.wait.name.clone().filter(|_| !taken.wait.is_placed || taken.wait.is_single),
        address: taken.made_at.unwrap_or(0),
        kind: taken.wait.kind,
        type_name: taken.wait.name.clone(),
        place: None,
        is_several: taken.made_at.is_none() && !taken.wait.is_single,
        is_made: taken.made_at.is_some(),
        sampled: None,
        creation_site: taken.call_site,
        is_created: false,
        is_destroyed: false,
        roles: Vec::new(),
    })
}
