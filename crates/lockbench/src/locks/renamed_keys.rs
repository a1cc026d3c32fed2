//! Keys of definition files that have another name today.

const RENAMED: [(&str, &str); 5] = [
    ("shape", "workload"),
    ("target", "implementation"),
    ("targets", "implementations"),
    ("side", "role"),
    ("family", "adapter"),
];

/// What to do about an unknown key.
pub(super) fn advice(error: &toml::de::Error) -> String {
    let is_it = |(old, _): &&(&str, &str)| error.message().starts_with(&format!("unknown field `{old}`"));
    match RENAMED.iter().find(is_it) {
        Some((old, new)) => format!("`{old}` is now `{new}`; the keys are described in docs/bench.md"),
        None => String::from("The keys are described in docs/bench.md"),
    }
}
