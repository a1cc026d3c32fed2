//! What places and roles are called on the page.

use crate::model::{Frame, Kind, Place, Role};

/// The file name of a path.
pub(super) fn file(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// A frame's function; where there is no symbol, where the code is.
pub(super) fn function(frame: &Frame) -> String {
    frame.function.clone().unwrap_or_else(|| frame.short())
}

/// A place's function and line, not too long.
pub(super) fn caption(place: &Place) -> String {
    short(&place.label())
}

/// Names of templates' functions can fill a screen. The stacks have all of them.
fn short(function: &str) -> String {
    const MOST: usize = 80;
    match function.char_indices().nth(MOST) {
        None => function.to_owned(),
        Some((end, _)) => format!("{}…", &function[..end]),
    }
}

/// A role in words; none where a lock has only one.
pub(super) fn role(kind: Kind, role: Role) -> Option<&'static str> {
    matches!(kind, Kind::RwLock | Kind::Condvar).then(|| role.word())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_names_are_cut() {
        assert_eq!(short("main"), "main");
        assert_eq!(short(&"ä".repeat(200)), format!("{}…", "ä".repeat(80)));
    }
}
