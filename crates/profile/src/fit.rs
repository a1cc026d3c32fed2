//! Names in columns that are too narrow for them: the parts that distinguish names stay.
//!
//! A label is `mutex of a::b::f (file.c:12) #2, read`, or a part of that. Whatever is cut, `#2` and `read`
//! stay, and so do addresses in modules, `+0x1234`. The line goes first; where two names would be equal
//! then, it stays, and more goes of the function.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use spinpark_measure::text::one_line;

use crate::model::{Kind, Role};

/// Between a function and its caller.
const CALLED_BY: &str = " < ";
/// A name keeps this many characters, if the text after it leaves that much.
const LEAST: usize = 4;

/// `text` in at most `width` columns. What is longer loses its line, `(file.c:12)`, then the `mutex of` in
/// front, then outer namespaces; then the names of modules are cut, and then its middle, since both ends tell
/// things apart.
pub(crate) fn fit(text: &str, width: usize) -> String {
    let text = one_line(text);
    if columns(&text) <= width {
        return text;
    }
    let parts = Parts::of(&text);
    squeeze(parts.name, parts.rest, width)
}

/// Names that are shown together, each in its own width: those that differ look different, if that can be
/// done.
pub(crate) fn fit_all<'a>(names: impl Iterator<Item = (&'a str, usize)> + Clone) -> Vec<String> {
    let mut alike: BTreeMap<String, BTreeSet<(&str, usize)>> = BTreeMap::new();
    for (name, width) in names.clone() {
        alike.entry(fit(name, width)).or_default().insert((name, width));
    }
    let mut shown: HashMap<(&str, usize), String> = HashMap::new();
    for (usual, group) in &alike {
        let others: BTreeSet<&str> = group.iter().map(|(name, _)| *name).collect();
        let differently = if others.len() > 1 { differently(group, &alike) } else { None };
        let usual = || vec![usual.clone(); group.len()];
        shown.extend(group.iter().copied().zip(differently.unwrap_or_else(usual)));
    }
    names.map(|name| shown.get(&name).cloned().unwrap_or_default()).collect()
}

/// Other cuts of names that usually look alike; none if they do in any case.
fn differently(
    group: &BTreeSet<(&str, usize)>,
    others: &BTreeMap<String, BTreeSet<(&str, usize)>>,
) -> Option<Vec<String>> {
    let names: Vec<String> = group.iter().map(|(name, _)| one_line(name)).collect();
    let common = common_start(&names);
    type Way<'a> = &'a dyn Fn(&str, usize) -> String;
    let ways: [Way<'_>; 3] = [
        &|name, width| with_line(name, width, |_, line| format!(":{line}")),
        &|name, width| with_line(name, width, |file, line| format!(" ({file}:{line})")),
        &|name, width| from(name, common, width),
    ];
    ways.into_iter().find_map(|way| {
        let shown: Vec<String> =
            names.iter().zip(group).map(|(name, (_, width))| way(name, *width)).collect();
        // One name may be there twice, with another width.
        let pairs: BTreeSet<(&str, &str)> =
            group.iter().map(|(name, _)| *name).zip(shown.iter().map(String::as_str)).collect();
        let different: BTreeSet<&str> = shown.iter().map(String::as_str).collect();
        let are_told_apart = pairs.len() == different.len();
        (are_told_apart && !shown.iter().any(|name| others.contains_key(name))).then_some(shown)
    })
}

/// `f:12, read` of `f (file.c:12), read`.
fn with_line(text: &str, width: usize, shown: impl Fn(&str, &str) -> String) -> String {
    if columns(text) <= width {
        return text.to_owned();
    }
    let parts = Parts::of(text);
    let line = parts.line.map_or_else(String::new, |(file, line)| shown(file, line));
    squeeze(parts.name, &(line + parts.rest), width)
}

/// From the first difference between names on, with a little of the text before it.
fn from(text: &str, common: usize, width: usize) -> String {
    const BEFORE: usize = 2;
    if columns(text) <= width {
        return text.to_owned();
    }
    let skipped = common.saturating_sub(BEFORE);
    let start = if skipped > 1 { "…" } else { "" };
    let rest: String = text.chars().skip(if skipped > 1 { skipped } else { 0 }).collect();
    let width = width.saturating_sub(columns(start));
    if columns(&rest) <= width {
        return format!("{start}{rest}");
    }
    let rest: String = rest.chars().take(width.saturating_sub(1)).collect();
    format!("{start}{rest}…")
}

/// The length of the common prefix, in characters.
fn common_start(names: &[String]) -> usize {
    let Some((first, others)) = names.split_first() else { return 0 };
    let same = |other: &String| first.chars().zip(other.chars()).take_while(|(a, b)| a == b).count();
    others.iter().map(same).min().unwrap_or(0)
}

/// A label.
#[derive(Debug, PartialEq, Eq)]
struct Parts<'a> {
    /// `mutex of f`, `module+0x1234`.
    name: &'a str,
    /// File and number.
    line: Option<(&'a str, &'a str)>,
    /// ` #2, read`, ` (3 locks)`.
    rest: &'a str,
}

impl<'a> Parts<'a> {
    fn of(text: &'a str) -> Self {
        let mut name = text;
        while let Some(before) = without_last(name) {
            name = before;
        }
        let rest = &text[name.len()..];
        match name.strip_suffix(')').and_then(|name| name.rsplit_once(" (")) {
            Some((function, line)) => match line.rsplit_once(':') {
                Some((file, number)) if is_number(number) => {
                    Self { name: function, line: Some((file, number)), rest }
                }
                _ => Self { name, line: None, rest },
            },
            None => Self { name, line: None, rest },
        }
    }
}

/// Without what is last of ` (3 locks) #2, read`; none if there is nothing of that.
fn without_last(text: &str) -> Option<&str> {
    let roles = [Role::Write, Role::Read, Role::Signal, Role::Back, Role::Late, Role::Wake];
    if let Some((before, last)) = text.rsplit_once(", ")
        && roles.iter().any(|role| role.word() == last)
    {
        return Some(before);
    }
    if let Some((before, last)) = text.rsplit_once(" #")
        && is_number(last)
    {
        return Some(before);
    }
    let (before, last) = text.rsplit_once(" (")?;
    let is_pair = |text: &str| {
        text.split_once(", then ").is_some_and(|(one, other)| is_number(one) && is_number(other))
    };
    (last.ends_with(" locks)") || last.strip_suffix(')').is_some_and(is_pair)).then_some(before)
}

/// `mutex of f #2` of `mutex of f (a.c:12) #2`.
pub(crate) fn without_line(text: &str) -> String {
    let parts = Parts::of(text);
    format!("{}{}", parts.name, parts.rest)
}

/// `name` and `rest` in at most `width` columns.
fn squeeze(name: &str, rest: &str, width: usize) -> String {
    let whole = format!("{name}{rest}");
    if columns(&whole) <= width {
        return whole;
    }
    let left = width.saturating_sub(columns(rest));
    let mut name = without_kind(name);
    if left < LEAST {
        return middle(&format!("{name}{rest}"), width);
    }
    while columns(name) > left
        && let Some(inner) = without_namespace(name)
    {
        name = inner;
    }
    if columns(name) <= left {
        return format!("{name}{rest}");
    }
    let name = if name.contains("+0x") { addresses(name, left) } else { middle(name, left) };
    name + rest
}

/// `f` of `mutex of f`.
fn without_kind(name: &str) -> &str {
    let place = Kind::ALL.iter().find_map(|kind| name.strip_prefix(kind.noun())).unwrap_or(name);
    [" of ", " in "].iter().find_map(|word| place.strip_prefix(word)).unwrap_or(name)
}

/// `b::c` of `a::b::c`; `<…>` stays whole, and a closure keeps its function.
fn without_namespace(text: &str) -> Option<&str> {
    let (outer, inner) = text.split_once("::")?;
    (!outer.contains(['<', ' ']) && !inner.is_empty() && !inner.starts_with('{')).then_some(inner)
}

/// `module+0x1234 < function`, with names of modules cut, and addresses whole.
fn addresses(chain: &str, width: usize) -> String {
    /// The shortest cut of a module's name, with the `…`.
    const LEAST: usize = 3;
    let frames: Vec<&str> = chain.split(CALLED_BY).collect();
    let between = CALLED_BY.len() * (frames.len() - 1);
    let one = |frame: &str, width: usize| match frame.rsplit_once('+') {
        _ if columns(frame) <= width => frame.to_owned(),
        Some((module, address)) if address.starts_with("0x") && width >= address.len() + 1 + LEAST => {
            let module: String = module.chars().take(width - address.len() - 2).collect();
            format!("{module}…+{address}")
        }
        Some((_, address)) if address.starts_with("0x") => last(address, width),
        _ => middle(frame, width),
    };
    let widths =
        share(&frames.iter().map(|frame| columns(frame)).collect::<Vec<_>>(), width.saturating_sub(between));
    let shown: Vec<String> = frames.iter().zip(widths).map(|(frame, width)| one(frame, width)).collect();
    let shown = shown.join(CALLED_BY);
    if columns(&shown) <= width { shown } else { last(&shown, width) }
}

/// The end, which differs most in addresses.
fn last(text: &str, width: usize) -> String {
    let all = columns(text);
    if all <= width {
        return text.to_owned();
    }
    let end: String = text.chars().skip(all - width.saturating_sub(1)).collect();
    format!("…{end}")
}

/// Both ends.
fn middle(text: &str, width: usize) -> String {
    let all = columns(text);
    if all <= width {
        return text.to_owned();
    }
    let end = width.saturating_sub(1) / 2;
    let start = width.saturating_sub(1 + end);
    let head: String = text.chars().take(start).collect();
    let tail: String = text.chars().skip(all - end).collect();
    format!("{head}…{tail}")
}

fn columns(text: &str) -> usize {
    text.chars().count()
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// Shares `width` among columns that want these widths: no column gets more than its width, and the widest
/// ones are cut.
pub(crate) fn share(wanted: &[usize], width: usize) -> Vec<usize> {
    /// A name is not cut to less.
    const LEAST: usize = 8;
    let mut order: Vec<usize> = (0..wanted.len()).collect();
    order.sort_by_key(|column| wanted[*column]);
    let (mut left, mut shares) = (width, vec![0; wanted.len()]);
    for (done, column) in order.into_iter().enumerate() {
        let fair = left / (wanted.len() - done);
        shares[column] = wanted[column].min(fair.max(LEAST));
        left = left.saturating_sub(shares[column]);
    }
    shares
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fitting() {
        for (text, width, shown) in [
            ("short", 5, "short"),
            ("a\nb", 5, r"a\nb"),
            ("a_very_long_name", 9, "a_ve…name"),
            ("mutex of f (a.c:1) #2", 16, "mutex of f #2"),
            ("mutex of f (a.c:1), read", 13, "f, read"),
            ("adaptive mutex in f (a.c:1)", 13, "f"),
            ("mutex of a_name (a.c:1), read", 11, "a_…me, read"),
            ("mutex of f (a.c:1) (3 locks)", 14, "f (3 locks)"),
            ("mutex of f (a.c:1) (3 locks)", 8, "f (3…ks)"),
            ("mutex of init (1, then 2)", 17, "init (1, then 2)"),
            ("a::b::Table<x::y>::insert", 20, "Table<x::y>::insert"),
        ] {
            assert_eq!(fit(text, width), shown);
        }
    }

    #[test]
    fn addresses_stay_whole() {
        for (text, width, shown) in [
            ("a_library_of_theirs.so.1+0x12345", 20, "a_library_o…+0x12345"),
            ("mutex of a_library.so+0x12345 #2", 16, "a_li…+0x12345 #2"),
            ("mutex in a_library.so+0x12345", 20, "a_library.so+0x12345"),
            ("one_library.so+0x111 < another.so+0x222", 30, "one_lib…+0x111 < anothe…+0x222"),
            ("a_library_of_theirs.so.1+0x7f0123456789", 9, "…23456789"),
        ] {
            let fitted = fit(text, width);
            assert!(columns(&fitted) <= width, "{fitted}");
            assert_eq!(fitted, shown);
        }
    }

    fn shown(names: &[&str], width: usize) -> Vec<String> {
        let fitted = fit_all(names.iter().map(|name| (*name, width)));
        assert!(fitted.iter().all(|name| columns(name) <= width), "{fitted:?}");
        fitted
    }

    #[test]
    fn what_tells_apart_stays() {
        // The usual cut, if that does.
        assert_eq!(shown(&["mutex of f (a.c:1)", "mutex of g (a.c:2)"], 12), ["mutex of f", "mutex of g"]);
        // Lines.
        let lines = ["mutex of open_it (a.c:10)", "mutex of open_it (a.c:20)", "mutex of close (a.c:30)"];
        assert_eq!(shown(&lines, 20), ["mutex of open_it:10", "mutex of open_it:20", "mutex of close"]);
        assert_eq!(shown(&lines, 8), ["op…it:10", "op…it:20", "close"]);
        let roles = ["rwlock of open_it (a.c:10), read", "rwlock of open_it (a.c:20), read"];
        assert_eq!(shown(&roles, 15), ["ope…it:10, read", "ope…it:20, read"]);
        // Files.
        let files = ["mutex of open_it (a.c:10)", "mutex of open_it (b.c:10)"];
        assert_eq!(shown(&files, 20), ["open_it (a.c:10)", "open_it (b.c:10)"]);
        let long = ["rwlock of open_it (a.c:1)", "rwlock of open_it (b.c:1)"];
        assert_eq!(shown(&long, 14), ["ope…it (a.c:1)", "ope…it (b.c:1)"]);
        // Kinds, classes, and what is in the middle.
        let kinds = ["mutex of f (a.c:1)", "rwlock of f (a.c:1)"];
        assert_eq!(shown(&kinds, 12), ["mutex of f", "rwlock of f"]);
        assert_eq!(shown(&kinds, 8), ["mutex o…", "rwlock …"]);
        let classes = ["shop::Alpha::get_lock_of_item", "shop::Beta::get_lock_of_item"];
        assert_eq!(shown(&classes, 20), ["…::Alpha::get_lock_…", "…::Beta::get_lock_o…"]);
        // One name is one name, wherever it is; and what cannot be distinguished stays as it is.
        assert_eq!(shown(&["mutex of f (a.c:1)", "mutex of f (a.c:1)"], 12), ["mutex of f", "mutex of f"]);
        assert_eq!(shown(&["aaaaaaaaab", "aaaaaaaaac"], 1).len(), 2);
    }

    #[test]
    fn sharing() {
        assert_eq!(share(&[30, 10, 20], 45), [18, 10, 17]);
        assert_eq!(share(&[30, 10], 50), [30, 10]);
    }
}
