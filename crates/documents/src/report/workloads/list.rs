//! The workloads, four lines each.

use std::fmt::Write;

use crate::registry::WORKLOADS;

/// All of them: what tasks do, the document that each comes from, numbers of tasks, options.
#[must_use]
pub fn render() -> String {
    let mut text = String::from("Workloads of the four documents, `spinpark documents NAME`:\n");
    for workload in WORKLOADS {
        let rungs: Vec<String> = workload.rungs.iter().map(usize::to_string).collect();
        let rungs = if rungs.is_empty() { String::from("one per CPU") } else { rungs.join(" ") };
        let _ = write!(
            text,
            "  {:10}{}\n{:12}{}\n{:12}{}: {rungs}\n{:12}{}\n",
            workload.name, workload.about, "", workload.source, "", workload.tasks, "", workload.variants
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_line_is_too_long() {
        let text = render();
        assert!(text.lines().all(|line| line.chars().count() <= 100), "{text}");
    }
}
