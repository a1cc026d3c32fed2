//! What waits are for of which the recorder knows no more than an address and a stack: each stack has a
//! record of its own, and what stands for one object becomes one.

use std::collections::HashMap;
use std::sync::atomic::Ordering::Acquire;

use spinpark_recorder::format::{self, View};

use super::meaning::Meanings;
use super::merge::{Merge, kind};
use crate::model::Kind;
use crate::waits::Wait;

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
