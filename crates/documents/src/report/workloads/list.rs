//! The workloads, four lines each.

use std::fmt::Write;

use spinpark_measure::report::Style;

use crate::registry::WORKLOADS;

/// Where texts begin.
const INDENT: usize = 12;

/// All of them: what tasks do, the document that each comes from, numbers of tasks, options.
#[must_use]
pub fn render(style: Style) -> String {
    let mut text = String::from("Workloads of the four documents, `spinpark documents NAME`:\n");
    for workload in WORKLOADS {
        let thread_counts: Vec<String> = workload.thread_counts.iter().map(usize::to_string).collect();
        let thread_counts =
            if thread_counts.is_empty() { String::from("one per CPU") } else { thread_counts.join(" ") };
        let first = format!("  {:10}{}", workload.name, workload.about);
        let _ = writeln!(text, "{}", style.wrap(&first, INDENT));
        for line in [workload.source, &format!("{}: {thread_counts}", workload.tasks), workload.variants] {
            let _ = writeln!(text, "{}", style.wrap(&format!("{:INDENT$}{line}", ""), INDENT));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_line_is_too_long() {
        for width in [80, 100] {
            let text = render(Style { width, ..Style::PLAIN });
            assert!(text.lines().all(|line| line.chars().count() <= usize::from(width)), "{text}");
            assert!(text.contains("\n  creat     create and close a file"), "{text}");
        }
    }
}
