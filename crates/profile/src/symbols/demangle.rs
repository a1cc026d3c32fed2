//! Names as the source has them.

use crate::model::Frame;

/// What compilers append to the names of parts and copies of functions.
const SUFFIXES: [&str; 8] =
    [".constprop.", ".isra.", ".part.", ".cold", ".lto_priv.", ".llvm.", ".clone.", ".localalias"];

/// A function's name for people: demangled if it is mangled, without what the compiler appended.
pub(super) fn shown(name: &str) -> String {
    let end = SUFFIXES.iter().filter_map(|suffix| name.find(suffix)).filter(|end| *end > 0).min();
    let name = end.map_or(name, |end| &name[..end]);
    demangled(name).unwrap_or_else(|| name.to_owned())
}

/// The name of a function or variable, demangled. Only names that begin as mangled ones do: C's `i`, `f` and
/// `rd` are C++'s `int`, `float` and a reference to `double`.
pub(super) fn demangled(name: &str) -> Option<String> {
    // Mach-O has one more `_`; so do tools that came from there.
    let name = name.strip_prefix('_').filter(|name| name.starts_with("_Z")).unwrap_or(name);
    let is_rust = name.starts_with("_R") || name.starts_with("_ZN") && name.contains("17h");
    if is_rust && let Ok(found) = rustc_demangle::try_demangle(name) {
        return Some(as_in_debug_info(&format!("{found:#}")));
    }
    name.starts_with("_Z").then(|| cpp_demangle::Symbol::new(name).ok()?.demangle().ok()).flatten()
}

/// `queue::Mutex<T>::with<F>` for `<queue::Mutex<T>>::with::<F>`, as the newer mangling of Rust has it.
fn as_in_debug_info(name: &str) -> String {
    let name = name.replace("::<", "<");
    let Some(inside) = name.strip_prefix('<') else { return name };
    let mut depth = 1;
    for (at, (before, byte)) in (1..).zip(inside.bytes().zip(inside.bytes().skip(1))) {
        match (before, byte) {
            (b'-', b'>') => {}
            (_, b'<') => depth += 1,
            (_, b'>') => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            let (of, method) = (&inside[..at], &inside[at + 1..]);
            return if of.contains(" as ") { name } else { format!("{of}{method}") };
        }
    }
    name
}

/// Whether it is a mangled name of C++ or Rust.
pub(super) fn is_mangled(name: &str) -> bool {
    name.starts_with("_Z") || name.starts_with("_R") || name.starts_with("__Z")
}

/// Whether a name was made unreadable by its vendor: `libcudart_static_` and a hash.
pub(super) fn is_scrambled(name: &str) -> bool {
    let hash = name.strip_prefix("libcudart_static_").unwrap_or_default();
    hash.len() >= 32 && hash.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// Names the lambdas of C++ among `frames`, the innermost first. Debug information calls one that was inlined
/// `operator()`, without the function that it is in; that stands in the type of what called it:
/// `__invoke_impl<void, main()::<lambda()> >`.
pub(super) fn name_lambdas(frames: &mut [Frame]) {
    for at in 1..frames.len() {
        let (inner, outer) = frames.split_at_mut(at);
        let inner = &mut inner[at - 1];
        if inner.function.as_deref() == Some("operator()")
            && let Some(function) = outer[0].function.as_deref().and_then(function_of_lambda)
        {
            inner.function = Some(format!("{function}::{{lambda()}}::operator()"));
        }
    }
}

/// `main()` of `__invoke_impl<void, main()::<lambda()> >`, and of `Handler<void (),
/// main()::{lambda()#1}>::_M_invoke(…)`: only of what is an argument of the template itself.
fn function_of_lambda(caller: &str) -> Option<&str> {
    let at = ["::<lambda(", "::{lambda("].iter().filter_map(|mark| caller.find(mark)).min()?;
    let (mut start, mut depth, mut angles) = (None, 0_usize, 0_usize);
    for (here, character) in caller[..at].char_indices() {
        match character {
            '(' | '[' | '{' => depth += 1,
            ')' | ']' | '}' => depth = depth.saturating_sub(1),
            '<' if depth == 0 => {
                angles += 1;
                start = Some(here + 1);
            }
            '>' if depth == 0 => angles = angles.saturating_sub(1),
            ',' if depth == 0 && angles == 1 => start = Some(here + 1),
            _ => {}
        }
    }
    let function = caller[start.filter(|_| angles == 1)?..at].trim();
    (!function.is_empty()).then_some(function)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lambdas_have_the_name_of_their_function() {
        for (caller, expected) in [
            ("__invoke_impl<void, main()::<lambda()> >", Some("main()")),
            ("__invoke<Shop::serve(int, char)::<lambda(int)> >", Some("Shop::serve(int, char)")),
            (
                "std::_Function_handler<void (int), c12()::{lambda()#2}>::_M_invoke(std::_Any_data const&)",
                Some("c12()"),
            ),
            (
                "std::thread::_State_impl<std::thread::_Invoker<std::tuple<main::{lambda()#2}> > >::_M_run()",
                None,
            ),
            ("main::{lambda()#3}::operator()() const", None),
            ("run(Job)", None),
        ] {
            assert_eq!(function_of_lambda(caller), expected, "{caller}");
        }
    }

    #[test]
    fn names_of_c_stay() {
        for name in ["i", "f", "rd", "PKc", "Pv", "Sa", "St6vector", "_Reset", "__R", "_Z", "_ZNot", "main"] {
            assert_eq!(demangled(name), None, "{name}");
        }
        for (mangled, expected) in [
            ("_ZN4shop5Store8price_ofEi", "shop::Store::price_of(int)"),
            ("__ZN4shop5Store8price_ofEi", "shop::Store::price_of(int)"),
            ("_ZN4shop5stock17h0123456789abcdefE", "shop::stock"),
            ("_RNvC4shop5stock", "shop::stock"),
        ] {
            assert_eq!(demangled(mangled).as_deref(), Some(expected));
        }
        for (newer, expected) in [
            (
                "<queue::Mutex<fn(u32) -> u8>>::with::<queue::Job, _>",
                "queue::Mutex<fn(u32) -> u8>::with<queue::Job, _>",
            ),
            ("<queue::Mutex>::new", "queue::Mutex::new"),
            (
                "core::ptr::drop_in_place::<lock_api::Guard<u8>>",
                "core::ptr::drop_in_place<lock_api::Guard<u8>>",
            ),
            ("<queue::Guard<'_> as core::ops::Drop>::drop", "<queue::Guard<'_> as core::ops::Drop>::drop"),
            ("queue::main::{closure#0}", "queue::main::{closure#0}"),
        ] {
            assert_eq!(as_in_debug_info(newer), expected);
        }
    }

    #[test]
    fn scrambled_names_are_none() {
        assert!(is_scrambled("libcudart_static_fa9401f0f5d2a9d1c3bd1b7ef4f6c0f3f4a1e6d7"));
        assert!(!is_scrambled("libcudart_static_init") && !is_scrambled("cudaMalloc"));
    }

    #[test]
    fn parts_and_copies_are_the_function() {
        for (name, expected) in [
            ("rebuild.constprop.0.isra.0", "rebuild"),
            ("_ZN4shop5Store8price_ofEi.part.0.cold", "shop::Store::price_of(int)"),
            ("_ZN4shop5stock17h0123456789abcdefE.llvm.123", "shop::stock"),
            (".cold", ".cold"),
            ("plain", "plain"),
        ] {
            assert_eq!(shown(name), expected);
        }
    }
}
