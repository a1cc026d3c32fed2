//! A lock's label in a sentence.

use crate::fit::fit;
use crate::model::Lock;
use crate::names::LONGEST;

/// `the 16 locks of `shard``, if this is a class of several.
pub(crate) fn class(lock: &Lock) -> Option<String> {
    let (class, count) = lock.label.strip_suffix(" locks)")?.rsplit_once(" (")?;
    let named = named(&Lock { label: class.to_owned(), ..lock.clone() });
    let of = if named.starts_with('`') { "of " } else { "" };
    Some(format!("the {count} locks {of}{named}"))
}

/// `mutex `cache_lock``; the noun alone if there is no more to say.
pub(crate) fn with_noun(lock: &Lock) -> String {
    match named(lock) {
        named if named.is_empty() => lock.noun().to_owned(),
        named => format!("{} {named}", lock.noun()),
    }
}

/// The label in quotes; a label that says what kind it is without the kind. Empty if it says no more.
pub(crate) fn named(lock: &Lock) -> String {
    if lock.type_name.as_ref().is_some_and(|name| *name == lock.label) {
        return String::new();
    }
    // A variable may be called `mutex`.
    let without = lock.label.strip_prefix(lock.noun()).and_then(|rest| rest.strip_prefix(' '));
    let label = without.unwrap_or(&lock.label);
    match label.split_once(' ') {
        Some((word @ ("of" | "in"), call_site)) => {
            let word = if word == "of" { "created by" } else { "used in" };
            let (function, line) = call_site
                .split_once(" (")
                .map_or((call_site, String::new()), |(function, line)| (function, format!(" ({line}")));
            format!("{word} `{}`{line}", fit(function, LONGEST))
        }
        Some(("at", address)) => format!("at {address}"),
        _ => format!("`{}`", fit(label, LONGEST)),
    }
}
