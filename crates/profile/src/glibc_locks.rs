//! glibc's own locks: of `stdout`, of an arena of `malloc`, of the time zone. Calls of them stay within libc, so
//! that no recorder sees them. The observer sees threads that sleep at one, and by the functions on their
//! stacks and the word at which they sleep, it is named: from a [table](glibc_locks.toml).
//!
//! Nothing here needs libc's own symbols: the function that the program called is one that libc exports.

use std::sync::OnceLock;

use serde::Deserialize;

use crate::model::Frame;

/// The table, as it is written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Table {
    lock: Vec<Known>,
}

/// See the head of the table.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Known {
    name: String,
    functions: Vec<String>,
    place: Option<Where>,
    advice: String,
}

/// Where the word of a lock is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// It is the lock of a standard stream.
    Stream(&'static str),
    /// In libc's data.
    Libc,
    /// In the loader's data.
    Loader,
    /// In no file's.
    Elsewhere,
}

#[derive(Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Where {
    Stream,
    Libc,
    Loader,
    Elsewhere,
}

impl Place {
    fn is(&self, place: Where) -> bool {
        place
            == match self {
                Self::Stream(_) => Where::Stream,
                Self::Libc => Where::Libc,
                Self::Loader => Where::Loader,
                Self::Elsewhere => Where::Elsewhere,
            }
    }
}

/// A lock of glibc that a thread waits for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Found {
    /// What it is called: `stdout`.
    pub(crate) name: String,
    /// The function of glibc that the program called: `printf`.
    pub(crate) function: String,
    /// How many frames are glibc's, or of the libraries that pass calls on to it.
    pub(crate) own: usize,
}

/// What is recorded: waits below these are not glibc's own.
const RECORDED: [&str; 10] = [
    "pthread_mutex_*",
    "pthread_rwlock_*",
    "pthread_cond_*",
    "pthread_spin_*",
    "pthread_barrier_*",
    "pthread_once",
    "mtx_*",
    "cnd_*",
    "sem_*",
    "syscall",
];

/// Functions of languages' libraries through which a program calls glibc, by what their names begin with.
const PASSED_ON: [&str; 12] = [
    "operator new",
    "operator delete",
    "std::",
    "core::",
    "alloc::",
    "<std::",
    "<core::",
    "<alloc::",
    "__rust_",
    "__rdl_",
    "__gnu_cxx::",
    "void std::",
];
/// The files that are nothing but such libraries.
const LIBRARIES: [&str; 4] = ["libstdc++.so", "libc++.so", "libc++abi.so", "libgcc_s.so"];

/// Whether a file is glibc's own: the C library or its loader.
pub(crate) fn is_glibc(module: &str) -> bool {
    is_libc(module) || is_loader(module)
}

/// Whether a file is the C library: `libc.so.6`, `libc-2.31.so`.
pub(crate) fn is_libc(module: &str) -> bool {
    let is_version = |rest: &str| rest.starts_with(|first: char| first.is_ascii_digit());
    module.starts_with("libc.so")
        || module.strip_prefix("libc-").is_some_and(|rest| is_version(rest) && rest.ends_with(".so"))
}

/// Whether a file is the loader.
pub(crate) fn is_loader(module: &str) -> bool {
    module.starts_with("ld-linux") || module.starts_with("ld-2.") || module.starts_with("ld.so")
}

/// The lock that a thread with these frames sleeps for, the innermost first; none if it is none of glibc's.
/// `called`: what the program called, as its code has it: that may have jumped to another function.
pub(crate) fn find(frames: &[Frame], place: &Place, called: Option<&str>) -> Option<Found> {
    let glibcs = frames.iter().take_while(|frame| is_glibc(&frame.module)).count();
    // What called it, or started the thread, must be seen: the recorder calls glibc's locks, too.
    let caller = frames.get(glibcs)?;
    if caller.module.starts_with("libspinpark_") {
        return None;
    }
    let function = entry(called.or(frames[..glibcs].last()?.function.as_deref())?).to_owned();
    if RECORDED.iter().any(|pattern| fits(pattern, &function)) {
        return None;
    }
    let is_it = |known: &&Known| {
        known.place.is_none_or(|wanted| place.is(wanted))
            && known.functions.iter().any(|pattern| fits(pattern, &function))
    };
    let name = match (table().iter().find(is_it), place) {
        (Some(_), Place::Stream(stream)) => (*stream).to_owned(),
        (Some(known), _) => known.name.clone(),
        (None, _) => function.clone(),
    };
    let passes_on = |frame: &&Frame| {
        LIBRARIES.iter().any(|library| frame.module.starts_with(library))
            || frame
                .function
                .as_deref()
                .is_some_and(|name| PASSED_ON.iter().any(|start| name.starts_with(start)))
    };
    let passed = frames[glibcs..].iter().take_while(passes_on).count();
    // Where nothing else called it, the library did.
    let own = if glibcs + passed < frames.len() { glibcs + passed } else { glibcs };
    Some(Found { name, function, own })
}

/// What a program can do about a lock of this name that it waits for below `function`.
pub(crate) fn advice(name: &str, function: &str) -> Option<&'static str> {
    let is_stream = ["stdin", "stdout", "stderr"].contains(&name);
    let is_it = |known: &&Known| match known.place {
        Some(Where::Stream) => is_stream,
        _ => known.name == name && known.functions.iter().any(|pattern| fits(pattern, function)),
    };
    table().iter().find(is_it).map(|known| known.advice.as_str())
}

/// A function's name as programs know it: `printf` of `_IO_printf` and `__printf_chk`, `free` of
/// `__GI___libc_free`.
fn entry(function: &str) -> &str {
    const PREFIXES: [&str; 6] = ["IO_", "libc_", "GI_", "isoc99_", "isoc23_", "nptl_"];
    let mut name = function.trim_start_matches('_');
    // Programs' own names for them do not begin with a line.
    while name.len() < function.len()
        && let Some(rest) = PREFIXES.iter().find_map(|prefix| name.strip_prefix(prefix))
    {
        name = rest.trim_start_matches('_');
    }
    name.strip_suffix("_chk").unwrap_or(name)
}

fn fits(pattern: &str, text: &str) -> bool {
    match pattern.strip_suffix('*') {
        Some(start) => text.starts_with(start),
        None => text == pattern,
    }
}

fn table() -> &'static [Known] {
    static TABLE: OnceLock<Vec<Known>> = OnceLock::new();
    TABLE.get_or_init(|| {
        let table: Table = toml::from_str(include_str!("glibc_locks.toml")).expect("a test reads it");
        table.lock
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frames(names: &[(&str, &str)]) -> Vec<Frame> {
        let frame = |(function, module): &(&str, &str)| Frame {
            function: Some((*function).to_owned()).filter(|name| !name.is_empty()),
            module: (*module).to_owned(),
            ..Frame::default()
        };
        names.iter().map(frame).collect()
    }

    fn found(names: &[(&str, &str)], place: &Place) -> Option<(String, String, usize)> {
        find(&frames(names), place, None).map(|found| (found.name, found.function, found.own))
    }

    #[test]
    fn the_table_can_be_read() {
        for known in table() {
            assert!(!known.functions.is_empty() && known.advice.ends_with('.'));
            assert!(!known.name.is_empty() || known.place == Some(Where::Stream));
            assert!(known.functions.iter().all(|pattern| !pattern.trim_end_matches('*').contains('*')));
        }
    }

    #[test]
    fn locks_are_named_by_what_the_program_called() {
        let libc = "libc.so.6";
        // Stripped: only what is exported has a name.
        let printed = [("__lll_lock_wait_private", libc), ("", libc), ("printf", libc), ("log_line", "app")];
        let stdout = Some((String::from("stdout"), String::from("printf"), 3));
        assert_eq!(found(&printed, &Place::Stream("stdout")), stdout);
        let file = found(&printed, &Place::Elsewhere).expect("a lock");
        assert_eq!(file.0, "a FILE");
        let made = [
            ("__lll_lock_wait_private", libc),
            ("__GI___libc_malloc", libc),
            ("operator new(unsigned long)", "libstdc++.so.6"),
            ("std::vector<int>::push_back(int const&)", "app"),
            ("work", "app"),
        ];
        let arena = |name: &str| Some((name.to_owned(), String::from("malloc"), 4));
        assert_eq!(found(&made, &Place::Libc), arena("malloc's main arena"));
        assert_eq!(found(&made, &Place::Elsewhere), arena("an arena of malloc"));
        let zone = [("__lll_lock_wait_private", libc), ("", libc), ("__localtime_r", libc), ("", "app")];
        assert_eq!(found(&zone, &Place::Libc).expect("a lock").0, "the time zone");
        let jumped = [("__lll_lock_wait_private", libc), ("__tz_convert", libc), ("stamp", "app")];
        let found_by_call = find(&frames(&jumped), &Place::Libc, Some("gmtime_r")).expect("a lock");
        assert_eq!((&*found_by_call.name, &*found_by_call.function), ("the time zone", "gmtime_r"));
        let other = [("__lll_lock_wait_private", libc), ("getpwnam_r", libc), ("ask", "app")];
        assert_eq!(found(&other, &Place::Libc).expect("a lock").0, "getpwnam_r");
        for function in ["_IO_puts", "puts", "__printf_chk", "__isoc99_fscanf"] {
            let name = found(&[(function, libc), ("main", "app")], &Place::Stream("stderr"));
            assert_eq!(name.expect("a lock").0, "stderr");
            assert!(advice("a FILE", entry(function)).is_some(), "{function}");
        }
        assert!(advice("stdout", "printf").is_some() && advice("getpwnam_r", "getpwnam_r").is_none());
    }

    #[test]
    fn what_is_recorded_is_none_of_them() {
        let libc = "libc.so.6";
        let recorded =
            [("", libc), ("pthread_mutex_lock", libc), ("", "libspinpark_profiler.so"), ("f", "app")];
        let own = [("", libc), ("pthread_mutex_lock", libc), ("f", "plugin.so")];
        let by_call = [("syscall", libc), ("f", "app")];
        for stack in [&recorded[..], &own, &by_call, &[("__lll_lock_wait_private", libc)], &[]] {
            assert_eq!(found(stack, &Place::Elsewhere), None);
        }
        assert!(is_glibc("libc-2.31.so") && is_glibc("ld-linux-x86-64.so.2") && !is_glibc("libc-client.so"));
    }
}
