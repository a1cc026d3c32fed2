//! Names of call sites and roles on the page.

use serde::Serialize;

use crate::fit::fit;
use crate::model::{CallSiteId, Frame, Kind, Role};
use crate::names::Names;

pub(super) const UNKNOWN: &str = "not known";

/// Names of templates' functions can fill a screen. The stacks have all of them.
const MOST: usize = 80;

/// The file name of a path.
pub(super) fn file(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// A frame's function; where there is no symbol, where the code is.
pub(super) fn function(frame: &Frame) -> String {
    frame.function.clone().unwrap_or_else(|| frame.short())
}

/// The name of a call site, and its tooltip.
#[derive(Clone, Serialize)]
pub(super) struct Caption {
    pub(super) text: String,
    full: String,
}

impl Caption {
    /// Where there can be no call site.
    pub(super) fn of_none(text: &str) -> Self {
        Self { text: text.to_owned(), full: String::new() }
    }
}

/// The caption of a call site; not known, if there is none.
pub(super) fn caption(names: &Names<'_>, call_site: Option<CallSiteId>) -> Caption {
    match call_site.filter(|call_site| names.call_site(*call_site).is_some()) {
        None => Caption { text: String::from(UNKNOWN), full: String::new() },
        Some(call_site) => {
            let full =
                names.call_site(call_site).and_then(|call_site| call_site.frames.first()).map(function);
            Caption { text: fit(&names.label(call_site), MOST), full: full.unwrap_or_default() }
        }
    }
}

/// A role in words; none where a lock has only one.
pub(super) fn role(kind: Kind, role: Role) -> Option<&'static str> {
    matches!(kind, Kind::RwLock | Kind::Condvar).then(|| role.word())
}
