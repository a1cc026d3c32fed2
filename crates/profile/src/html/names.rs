//! What places, locks and roles are called on the page.

use crate::model::{Frame, Kind, Place, Role};

/// The file name of a path.
pub(super) fn file(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// A frame's function; where there is no symbol, where the code is.
pub(super) fn function(frame: &Frame) -> String {
    frame.function.clone().unwrap_or_else(|| format!("{}+{:#x}", frame.module, frame.offset))
}

/// The frame that a reader takes for the place: the innermost one that is not a language's library around a lock.
pub(super) fn telling(place: &Place) -> Option<&Frame> {
    let is_wrapper = |frame: &&Frame| frame.function.as_deref().is_some_and(is_wrapper);
    place.frames.iter().find(|frame| !is_wrapper(frame)).or_else(|| place.frames.first())
}

fn is_wrapper(function: &str) -> bool {
    const PARTS: [&str; 8] =
        ["std::", "<std::", "core::", "<core::", "alloc::", "__gthread", "lock_api::", "parking_lot::"];
    PARTS.iter().any(|part| function.starts_with(part))
}

/// Its function, shortened, and file and line if they are known.
pub(super) fn caption(place: &Place) -> String {
    match telling(place) {
        None => String::from("no stack"),
        Some(frame) => match &frame.source {
            Some((path, line)) => format!("{} ({}:{line})", short(&function(frame)), file(path)),
            None => short(&function(frame)),
        },
    }
}

/// Names of templates' functions can fill a screen. The stacks have all of them.
fn short(function: &str) -> String {
    const MOST: usize = 80;
    match function.char_indices().nth(MOST) {
        None => function.to_owned(),
        Some((end, _)) => format!("{}…", &function[..end]),
    }
}

/// `file.c:12`, or what is known instead.
pub(super) fn line(place: &Place) -> String {
    match telling(place) {
        None => String::from("no stack"),
        Some(frame) => match &frame.source {
            Some((path, line)) => format!("{}:{line}", file(path)),
            None => function(frame),
        },
    }
}

/// A kind in words.
pub(super) fn kind(kind: Kind) -> &'static str {
    match kind {
        Kind::Mutex => "mutex",
        Kind::Recursive => "recursive mutex",
        Kind::ErrorChecking => "error-checking mutex",
        Kind::Adaptive => "adaptive mutex",
        Kind::Special => "special mutex",
        Kind::RwLock => "rwlock",
        Kind::Condvar => "condvar",
    }
}

/// A role in words; none where a lock has only one.
pub(super) fn role(kind: Kind, role: Role) -> Option<&'static str> {
    match (kind, role) {
        (Kind::RwLock, Role::Write) => Some("writers"),
        (_, Role::Read) => Some("readers"),
        (_, Role::Signal) => Some("waiting for a signal"),
        (_, Role::Back) => Some("getting the mutex back"),
        (_, Role::Write) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wrappers_are_not_places() {
        let frame = |function: Option<&str>, source| Frame {
            function: function.map(str::to_owned),
            source,
            module: String::from("prog"),
            offset: 0x1234,
            is_inlined: false,
        };
        let place = |frames: Vec<Frame>| Place { frames, is_cut: false };
        let outer = frame(Some("store::update"), Some((String::from("/src/store.cc"), 12)));
        let inner = frame(Some("std::mutex::lock()"), None);
        assert_eq!(caption(&place(vec![inner.clone(), outer.clone()])), "store::update (store.cc:12)");
        assert_eq!(line(&place(vec![inner.clone(), outer])), "store.cc:12");
        assert_eq!(caption(&place(vec![inner])), "std::mutex::lock()");
        assert_eq!(caption(&place(vec![frame(None, None)])), "prog+0x1234");
        assert_eq!(caption(&place(Vec::new())), "no stack");
        let long = caption(&place(vec![frame(Some(&"ä".repeat(200)), None)]));
        assert_eq!(long.chars().count(), 81);
    }
}
