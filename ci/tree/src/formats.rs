//! `docs/stability.md` has the version of each format of files as the sources have it.

use std::fs;

/// The row of the table, and the source with its version.
const FORMATS: [(&str, &str, &str); 7] = [
    ("`PID-START.spinprof`", "crates/recorder/src/format/header.rs", "VERSION"),
    ("`spinpark-profile`", "crates/profile/src/model/mod.rs", "VERSION"),
    ("`spinpark-diff`", "crates/profile/src/diff/mod.rs", "VERSION"),
    ("`spinpark compare`", "crates/measure/src/report/json.rs", "FORMAT_VERSION"),
    ("`spinpark whatif`", "crates/measure/src/report/whatif.rs", "VERSION"),
    ("`spinpark-policy`", "crates/cli/src/policy.rs", "VERSION"),
    ("`spinpark tune`", "crates/cli/src/commands/tune.rs", "FORMAT_VERSION"),
];

#[test]
fn versions_of_files_are_documented() {
    let page = fs::read_to_string(crate::repository().join("docs/stability.md")).expect("a page");
    for (format, source, constant) in FORMATS {
        let row = page.lines().find(|line| line.starts_with('|') && line.contains(format));
        let text = fs::read_to_string(crate::repository().join(source)).expect("a source");
        let start = format!("const {constant}: u32 = ");
        let definition = |line: &str| {
            let line = line.strip_prefix("pub(crate) ").or(line.strip_prefix("pub ")).unwrap_or(line);
            line.strip_prefix(&start)?.strip_suffix(';').map(str::to_owned)
        };
        let version = text.lines().find_map(definition);
        let version = version.unwrap_or_else(|| panic!("no {constant} in {source}"));
        assert!(
            row.is_some_and(|row| row.contains(&format!("| {version} |"))),
            "docs/stability.md: the row of {format} lacks version {version}: {row:?}"
        );
    }

    // The Python module reads one of them.
    let module =
        fs::read_to_string(crate::repository().join("python/src/spinpark/__init__.py")).expect("a module");
    let version = module.lines().find_map(|line| line.strip_prefix("VERSION = ")).expect("its version");
    let row = page.lines().find(|line| line.contains("`spinpark-profile`")).expect("a row");
    assert!(
        row.contains(&format!("| {version} |")),
        "python/src/spinpark/__init__.py reads version {version}"
    );
}
