//! What waits are for of which the recorder knows no more than an address and a stack: each stack has a record of its own, and what
//! stands for one object becomes one.

use std::collections::HashMap;
use std::sync::atomic::Ordering::Acquire;

use spinpark_observe::format::{self, View};

use super::merge::{Merge, kind};
use crate::model::{Kind, Role};
use crate::waits::Wait;

/// By record.
#[derive(Debug, Default)]
pub(super) struct Meanings(HashMap<u32, Wait>);

impl Meanings {
    /// What waits at this record are for, if it is of such a kind.
    pub(super) fn get(&self, record: u32) -> Option<&Wait> {
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

impl Merge<'_> {
    /// The meanings; in `same`, records that stand for one object have one number from now on.
    pub(super) fn meanings(&mut self, view: View<'_>, same: &mut HashMap<u32, u32>) -> Meanings {
        let mut meanings = Meanings::default();
        /// What tells one object from another.
        #[derive(PartialEq, Eq, Hash)]
        enum Which {
            At(u64, u64),
            In(String),
        }
        let mut first: HashMap<(Kind, Option<String>, Which), u32> = HashMap::new();
        for (number, record) in view.locks() {
            let noted = format::Kind::from_number(record.kind.load(Acquire));
            let Some(noted) = noted.filter(|noted| noted.is_by_stack()) else { continue };
            let stack = record.stack.load(Acquire);
            let Some(kind) = kind(noted as u32) else { continue };
            let call_site = self.call_site(stack);
            let mut wait = self.wait_of(stack).cloned().unwrap_or_else(|| Wait::of_kind(kind));
            // A job's end is waited for at a futex, and a thread's by libc.
            wait.kind = match (wait.kind, kind) {
                (_, Kind::Join) => Kind::Join,
                (Kind::Join, _) => Kind::Job,
                (kind, _) => kind,
            };
            let which = match call_site.filter(|_| wait.is_by_function) {
                Some(call_site) => Which::In(self.function_of(&wait, Some(call_site))),
                // Another one may have come to the address since.
                None => Which::At(record.address, 0),
            };
            let object = first.entry((wait.kind, wait.name.clone(), which)).or_insert(number);
            same.insert(number, *object);
            meanings.0.insert(number, wait);
        }
        meanings
    }
}
