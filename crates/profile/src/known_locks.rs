//! Names of well-known locks, such as CPython's GIL, from a [table](known_locks.toml).

use std::sync::OnceLock;

use serde::Deserialize;

use crate::model::{CallSite, Kind, Lock};
use crate::symbols::Part;

/// The table, as it is written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Table {
    lock: Vec<Known>,
}

/// See the head of the table.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Known {
    names: Vec<String>,
    #[serde(default)]
    modules: Vec<String>,
    variable: Option<String>,
    #[serde(default)]
    functions: Vec<String>,
    #[serde(default)]
    users: Vec<String>,
    why: Option<String>,
    #[serde(default)]
    made: bool,
    #[serde(default)]
    mutexes: bool,
}

impl Known {
    /// The name of the lock that has this place among those of one variable.
    pub(crate) fn name(&self, place: usize) -> &str {
        self.names.get(place).or(self.names.last()).map_or("", String::as_str)
    }

    fn is_variable(&self, part: &Part) -> bool {
        self.variable.as_deref() == Some(&part.variable) && self.is_module(&part.module)
    }

    fn is_module(&self, module: &str) -> bool {
        self.modules.is_empty() || fits(&self.modules, module)
    }

    fn is_on(&self, patterns: &[String], stack: &CallSite) -> bool {
        stack.frames.iter().any(|frame| {
            let function = frame.function.as_deref().map(crate::function_names::short);
            function.is_some_and(|function| fits(patterns, &function)) && self.is_module(&frame.module)
        })
    }
}

fn fits(patterns: &[String], text: &str) -> bool {
    patterns.iter().any(|pattern| match pattern.strip_suffix('*') {
        Some(start) => text.starts_with(start),
        None => text == pattern,
    })
}

fn table() -> &'static [Known] {
    static TABLE: OnceLock<Vec<Known>> = OnceLock::new();
    TABLE.get_or_init(|| {
        let table: Table = toml::from_str(include_str!("known_locks.toml")).expect("a test reads it");
        table.lock
    })
}

/// What a lock is known as: by its variable, or the stack that created it or used it first.
pub(crate) fn known(lock: &Lock, part: Option<&Part>, call_sites: &[CallSite]) -> Option<&'static Known> {
    let stack = lock.creation_site.and_then(|call_site| call_sites.get(call_site));
    table().iter().find(|known| {
        part.is_some_and(|part| known.is_variable(part))
            || stack.is_some_and(|stack| {
                lock.is_created && known.is_on(&known.functions, stack)
                    || known.is_on(&known.users, stack)
                    || (known.made && lock.is_made
                        || known.mutexes && lock.is_created && lock.kind == Kind::Mutex)
                        && stack.frames.first().is_some_and(|frame| known.is_module(&frame.module))
            })
    })
}

/// Whether a condition variable hands the lock of a runtime over: by its variable, or a stack that waits.
pub(crate) fn is_handed_over(part: Option<&Part>, stack: Option<&CallSite>) -> bool {
    table().iter().filter(|known| known.why.is_some()).any(|known| {
        part.is_some_and(|part| known.is_variable(part))
            || stack.is_some_and(|stack| known.is_on(&known.users, stack))
    })
}

/// What has the lock of a runtime that the condition variable with this label hands over, if it does.
pub(crate) fn handed_over(label: &str) -> Option<&'static str> {
    let is_it = |known: &&Known| known.names.first().is_some_and(|name| name == label);
    table().iter().filter(is_it).find_map(|known| known.why.as_deref())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_can_be_read() {
        for known in table() {
            assert!(!known.names.is_empty());
            let stacks = !known.functions.is_empty() || !known.users.is_empty();
            assert!(known.variable.is_some() || stacks || known.made && !known.modules.is_empty());
        }
        let part = |variable: &str, module: &str| Part {
            variable: variable.to_owned(),
            bytes: 1000,
            offset: 0x1b8,
            member: None,
            module: module.to_owned(),
            address: 0,
            file: Default::default(),
        };
        let named = |part| table().iter().find(|known| known.is_variable(&part)).map(|known| known.name(0));
        assert_eq!(named(part("_PyRuntime", "libpython3.11.so.1.0")), Some("CPython's GIL"));
        assert_eq!(named(part("_PyRuntime", "python3.12")), Some("CPython's GIL"));
        assert_eq!(named(part("_PyRuntime", "mine")), None);
        assert_eq!(named(part("_PyRuntimes", "python3")), None);
    }

    #[test]
    fn mutexes_of_a_stripped_runtime_are_its_lock() {
        let site = |module: &str| CallSite {
            frames: vec![crate::model::Frame { module: module.to_owned(), ..Default::default() }],
            is_cut: false,
        };
        let sites = [site("libpypy3.9-c.so"), site("mine.so")];
        let lock = |kind: Kind, creation_site: usize| Lock {
            id: 0,
            label: String::new(),
            name: None,
            place: None,
            address: 0x1000,
            kind,
            type_name: None,
            is_several: false,
            is_made: false,
            creation_site: Some(creation_site),
            is_created: true,
            is_destroyed: false,
            sampled: None,
            roles: Vec::new(),
        };
        let name = |lock: Lock| known(&lock, None, &sites).map(|known| known.name(0));
        assert_eq!(name(lock(Kind::Mutex, 0)), Some("PyPy's GIL"));
        assert_eq!(name(lock(Kind::Semaphore, 0)), None);
        assert_eq!(name(lock(Kind::Mutex, 1)), None);
    }
}
