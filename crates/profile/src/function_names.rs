//! Names of functions for people, from what compilers and debug information call them.
//!
//! JSON, pprof and folded stacks have the names in full.

use std::borrow::Cow;

/// Arguments of a template that are not longer stay.
const ARGUMENTS: usize = 6;

/// The name of a function without its parameters, its type, and long arguments of templates: `Cache<…>::put`.
#[must_use]
pub(crate) fn for_people(function: &str) -> String {
    let function = closures(function);
    let name = short(&function);
    if !name.contains('<') {
        return name.into_owned();
    }
    let name = without_arguments(&name);
    without_type(&name).to_owned()
}

/// Closures by their function, without a number: `worker::{closure}` of Rust's `worker::{{closure}}` and
/// `worker::{closure#0}`, `worker::{lambda}` of C++'s `worker(int)::{lambda()#1}::operator()() const`.
fn closures(function: &str) -> Cow<'_, str> {
    if !function.contains('{') {
        return Cow::Borrowed(function);
    }
    let mut name = function.replace("{{closure}}", "{closure}");
    for marker in ["{closure#", "{closure_env#"] {
        while let Some(at) = name.find(marker) {
            let Some(end) = name[at..].find('}') else { break };
            name.replace_range(at..=at + end, "{closure}");
        }
    }
    const LAMBDA: &str = "{lambda(";
    let is_outside = |at: &usize| {
        let count = |sign: char| name[..*at].matches(sign).count();
        count('<') == count('>')
    };
    let last = name.rmatch_indices(LAMBDA).map(|(at, _)| at).find(is_outside);
    if let Some(at) = last
        && let Some(end) = name[at..].find('}').map(|end| at + end + 1)
    {
        let within = closures(name[..at].trim_end_matches("::")).into_owned();
        let within = short(&within);
        let rest = name[end..].strip_prefix("::operator()").map_or(&name[end..], |rest| {
            // Its parameters, and what it is for: `() const`.
            if rest.contains("::") { rest } else { "" }
        });
        return Cow::Owned(format!("{within}::{{lambda}}{rest}"));
    }
    Cow::Owned(name)
}

/// A name of C++ or Rust with `…` for what is long between angles.
pub(crate) fn without_arguments(name: &str) -> String {
    let mut shown = String::new();
    let mut rest = name;
    while let Some(at) = rest.find('<') {
        let (before, angle) = rest.split_at(at);
        shown += before;
        rest = angle;
        // `operator<`, `operator<<`, `operator<=>`.
        if shown.ends_with("operator") {
            let sign = angle.find(|c: char| !"<=>".contains(c)).unwrap_or(angle.len());
            shown += &angle[..sign];
            rest = &angle[sign..];
            continue;
        }
        let is_operator = shown.trim_end_matches([' ', '<', '=', '>']).ends_with("operator");
        let Some(end) = closing(angle) else { break };
        let inner = &angle[1..end];
        // Rust's `<T as Trait>::method` is the type itself.
        let is_type = !is_operator && (shown.is_empty() || shown.ends_with([' ', '(', '&', '*']));
        shown += &match inner {
            inner if is_type => format!("<{}>", without_arguments(inner)),
            inner if inner.contains('<') || inner.chars().count() > ARGUMENTS => String::from("<…>"),
            inner => format!("<{inner}>"),
        };
        rest = angle.get(end + 1..).unwrap_or_default();
    }
    shown + rest
}

/// Where the angle that `text` begins with is closed.
fn closing(text: &str) -> Option<usize> {
    let mut depth = 0_usize;
    let mut before = ' ';
    for (at, character) in text.char_indices() {
        match character {
            '<' => depth += 1,
            '>' if before != '-' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return Some(at);
        }
        before = character;
    }
    None
}

/// Names of functions made of templates begin with their type: `void f<int>`.
fn without_type(name: &str) -> &str {
    let mut depth = 0_usize;
    let mut start = 0;
    for (at, character) in name.char_indices() {
        match character {
            '<' | '(' | '{' | '[' => depth += 1,
            '>' | ')' | '}' | ']' => depth = depth.saturating_sub(1),
            ' ' if depth == 0 && !name[..at].ends_with("operator") => start = at + 1,
            _ => {}
        }
        if name[..at].ends_with("operator") {
            break;
        }
    }
    name[start..].trim_start_matches(['*', '&'])
}

/// The name of a function without its parameters, what stands behind them, and the compiler's tags:
/// `a::b(int) const` is `a::b`, `f(int)::Local::g[abi:cxx11]()` is `f::Local::g`.
#[must_use]
pub(crate) fn short(function: &str) -> Cow<'_, str> {
    let mut kept: Vec<&str> = Vec::new();
    // Where the part that is kept next begins, and where it is read.
    let (mut from, mut at) = (0, 0);
    while let Some(character) = function[at..].chars().next() {
        let rest = &function[at..];
        let is_word = |before: char| before.is_alphanumeric() || before == '_';
        if rest.starts_with(OPERATOR) && !function[..at].ends_with(is_word) {
            at += OPERATOR.len();
            // The signs of `operator<<` and `operator()` are none that open or close anything.
            let signs = ["()", "[]"].into_iter().find(|signs| function[at..].starts_with(signs));
            let others = || function[at..].find(|c| !"<>=-".contains(c)).unwrap_or(function.len() - at);
            at += signs.map_or_else(others, str::len);
            continue;
        }
        let end = match character {
            '<' => after_arguments(function, at),
            '{' => after_bracket(function, at),
            '(' | '[' if at > 0 || rest.starts_with(ANONYMOUS) => after_bracket(function, at),
            _ => {
                at += character.len_utf8();
                continue;
            }
        };
        let Some(end) = end else {
            kept.push(if character == '(' { &function[from..at] } else { &function[from..] });
            return joined(kept);
        };
        let is_name = "<{".contains(character) || rest.starts_with(ANONYMOUS);
        let is_tag = rest.starts_with("[abi:") || rest.starts_with("[clone ");
        if is_name || character == '[' && !is_tag {
            at = end;
            continue;
        }
        kept.push(function[from..at].trim_end());
        // A function, class or closure within it.
        let behind = function[end..].trim_start_matches(" const").trim_start_matches([' ', '&']);
        if character == '(' && !behind.starts_with("::") {
            return joined(kept);
        }
        (from, at) = match character {
            '(' => (function.len() - behind.len(), function.len() - behind.len()),
            _ => (end, end),
        };
    }
    kept.push(&function[from..]);
    joined(kept)
}

const OPERATOR: &str = "operator";
const ANONYMOUS: &str = "(anonymous namespace)";

fn joined(mut parts: Vec<&str>) -> Cow<'_, str> {
    parts.retain(|part| !part.is_empty());
    match parts[..] {
        [] => Cow::Borrowed(""),
        [one] => Cow::Borrowed(one),
        _ => Cow::Owned(parts.concat()),
    }
}

/// Where the bracket is closed that is open at `at`, whatever stands in it.
fn after_bracket(text: &str, at: usize) -> Option<usize> {
    let mut depth = 0_usize;
    for (place, character) in text[at..].char_indices() {
        match character {
            '(' | '[' | '{' => depth += 1,
            ')' | ']' | '}' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return Some(at + place + character.len_utf8());
        }
    }
    None
}

/// Where the arguments of a template end that begin at `at`: `>` within other brackets is a sign, and so is
/// that of `->`.
fn after_arguments(text: &str, at: usize) -> Option<usize> {
    let (mut depth, mut place) = (0_usize, at);
    while let Some(character) = text[place..].chars().next() {
        match character {
            '<' => depth += 1,
            '>' if !text[..place].ends_with('-') => depth -= 1,
            '(' | '[' | '{' => {
                place = after_bracket(text, place)?;
                continue;
            }
            _ => {}
        }
        place += character.len_utf8();
        if depth == 0 {
            return Some(place);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn closures_are_named_by_their_function() {
        for (long, expected) in [
            ("shop::worker::{{closure}}", "shop::worker::{closure}"),
            ("shop::worker::{closure#0}::{closure#12}", "shop::worker::{closure}::{closure}"),
            ("worker(int)::{lambda()#1}::operator()() const", "worker::{lambda}"),
            (
                "shop::A<int>::run(int) const::{lambda(int, long)#2}::operator()(int, long) const",
                "shop::A<int>::run::{lambda}",
            ),
            (
                "a()::{lambda()#1}::operator()() const::{lambda(int)#1}::operator()(int) const",
                "a::{lambda}::{lambda}",
            ),
            (
                "std::thread::_State_impl<std::tuple<worker()::{lambda()#1}> >::_M_run()",
                "std::thread::_State_impl<…>::_M_run",
            ),
            ("core::ops::FnOnce::call_once{{vtable.shim}}", "core::ops::FnOnce::call_once{{vtable.shim}}"),
        ] {
            assert_eq!(for_people(long), expected, "{long}");
        }
    }

    #[test]
    fn templates_are_short() {
        for (long, expected) in [
            ("main", "main"),
            ("Queue<int>::push(int)", "Queue<int>::push"),
            ("a::Cache<std::string, std::vector<int> >::put(std::string const&)", "a::Cache<…>::put"),
            ("void std::invoke<f(std::vector<int>)>(int)", "std::invoke<…>"),
            ("std::vector<a::Long>* shop::find<a::Longer>(int)", "shop::find<…>"),
            ("<T as core::fmt::Debug>::fmt", "<T as core::fmt::Debug>::fmt"),
            ("<a::Cache<K, Value> as a::Store>::put", "<a::Cache<…> as a::Store>::put"),
            ("a::get::<alloc::string::String>", "a::get::<…>"),
            ("a::run<fn(u32) -> core::Result<u32>>::now", "a::run<…>::now"),
            ("std::ostream& operator<< <std::char_traits<char> >(int)", "operator<< <…>"),
            ("operator<(A const&, B const&)", "operator<"),
            ("A<std::string, int>::operator bool() const", "A<…>::operator bool"),
            ("A<std::string, int>::operator()(int) const", "A<…>::operator()"),
            ("broken<name", "broken<name"),
        ] {
            assert_eq!(for_people(long), expected, "{long}");
        }
    }

    #[test]
    fn functions_without_parameters() {
        for (long, expected) in [
            ("main", "main"),
            ("a::b(int, char const*) const", "a::b"),
            ("std::vector<void (*)(int)>::push(int)", "std::vector<void (*)(int)>::push"),
            ("(anonymous namespace)::work(int)", "(anonymous namespace)::work"),
            ("A::operator()(int) const", "A::operator()"),
            ("operator<< <A>(std::ostream&, A)", "operator<< <A>"),
            ("A<fn() -> u32>::run(int)", "A<fn() -> u32>::run"),
            ("<T as core::fmt::Debug>::fmt", "<T as core::fmt::Debug>::fmt"),
            ("store::{closure#0}", "store::{closure#0}"),
            ("app::DoWrite((anonymous namespace)::State*, bool)", "app::DoWrite"),
            (
                "app::(anonymous namespace)::Bench::DoWrite(app::(anonymous namespace)::State*, bool)",
                "app::(anonymous namespace)::Bench::DoWrite",
            ),
            ("(anonymous namespace)::run((anonymous namespace)::A (*)(int))", "(anonymous namespace)::run"),
            (
                "run<(anonymous namespace)::State>((anonymous namespace)::State*)",
                "run<(anonymous namespace)::State>",
            ),
            ("a::text[abi:cxx11](int) const", "a::text"),
            ("a::Text[abi:cxx11]::get[abi:v2]() const &", "a::Text::get"),
            ("a::store(int) [clone .isra.0]", "a::store"),
            ("a::outer(int) const::Local::method(char)", "a::outer::Local::method"),
            ("pick<(2 > 1), A>(int)", "pick<(2 > 1), A>"),
            ("A::operator[](std::vector<int>) const", "A::operator[]"),
            ("run(decltype(auto) (*)(A::operator()))", "run"),
            ("operator_table::add(int)", "operator_table::add"),
            ("broken(name", "broken"),
            ("a(int)::{lambda(int)#2}::operator()(int) const", "a::{lambda(int)#2}::operator()"),
            ("", ""),
        ] {
            assert_eq!(short(long), expected, "{long}");
        }
    }
}
