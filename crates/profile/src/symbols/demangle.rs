//! Names as the source has them.

/// The name of a function or variable, demangled. Only names that begin as mangled ones do: C's `i`, `f` and `rd` are C++'s
/// `int`, `float` and a reference to `double`.
pub(super) fn demangled(name: &str) -> Option<String> {
    // Mach-O has one more `_`; so do tools that came from there.
    let name = name.strip_prefix('_').filter(|name| name.starts_with("_Z")).unwrap_or(name);
    let is_rust = name.starts_with("_R") || name.starts_with("_ZN") && name.contains("17h");
    if is_rust && let Ok(found) = rustc_demangle::try_demangle(name) {
        return Some(format!("{found:#}"));
    }
    name.starts_with("_Z").then(|| cpp_demangle::Symbol::new(name).ok()?.demangle().ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::demangled;

    #[test]
    fn names_of_c_stay() {
        for name in ["i", "f", "rd", "PKc", "Pv", "Sa", "St6vector", "_Reset", "__R", "_Z", "_ZNot", "main"] {
            assert_eq!(demangled(name), None, "{name}");
        }
        for (mangled, shown) in [
            ("_ZN4shop5Store8price_ofEi", "shop::Store::price_of(int)"),
            ("__ZN4shop5Store8price_ofEi", "shop::Store::price_of(int)"),
            ("_ZN4shop5stock17h0123456789abcdefE", "shop::stock"),
            ("_RNvC4shop5stock", "shop::stock"),
        ] {
            assert_eq!(demangled(mangled).as_deref(), Some(shown));
        }
    }
}
