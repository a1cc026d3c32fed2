//! The text of the counters, in OpenMetrics 1.0, and in the older text format of Prometheus, which the textfile
//! collector of the node exporter reads.

use std::fmt::Write;

use super::Metrics;
use crate::model::ThreadTime;

/// Which of the two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    /// OpenMetrics 1.0: families have units, and the text ends with `# EOF`.
    OpenMetrics,
    /// Prometheus' text format 0.0.4.
    Prometheus,
}

/// The media types, for HTTP, in the order of [`Dialect`].
pub const CONTENT_TYPE: [&str; 2] = [
    "application/openmetrics-text; version=1.0.0; charset=utf-8",
    "text/plain; version=0.0.4; charset=utf-8",
];

/// A name and what it is.
type Labels<'a> = [(&'a str, &'a str)];

struct Writer<'a> {
    text: String,
    dialect: Dialect,
    common: &'a [(String, String)],
}

/// The text of all counters.
#[must_use]
pub fn text(metrics: &Metrics, dialect: Dialect) -> String {
    let mut writer = Writer { text: String::new(), dialect, common: &metrics.labels };
    let help = "Time that threads waited, by lock and place. class: lock; reacquire, a mutex after a signal; \
                signal, for work; thread-end, joins; unclear, for what may be a lock or a signal.";
    writer.family("spinpark_wait_seconds", "counter", Some("seconds"), help);
    for (wait, (time, _)) in &metrics.waits {
        let labels =
            [("class", wait.class), ("kind", &*wait.kind), ("lock", &*wait.lock), ("place", &*wait.place)];
        writer.sample("spinpark_wait_seconds_total", &labels, &seconds(*time));
    }
    // Of a process that is sampled, how often threads waited is not known.
    if metrics.sampler.is_none() {
        writer.family("spinpark_waits", "counter", None, "Number of waits, by lock and place.");
        for (wait, (_, waits)) in &metrics.waits {
            let labels = [
                ("class", wait.class),
                ("kind", &*wait.kind),
                ("lock", &*wait.lock),
                ("place", &*wait.place),
            ];
            writer.sample("spinpark_waits_total", &labels, &waits.to_string());
        }
    }
    if !metrics.holders.is_empty() {
        let help = "Time that threads waited for a lock, by what its holder did meanwhile.";
        writer.family("spinpark_holder_seconds", "counter", Some("seconds"), help);
        for (holder, time) in &metrics.holders {
            let labels = [("lock", &*holder.lock), ("doing", &*holder.doing)];
            writer.sample("spinpark_holder_seconds_total", &labels, &seconds(*time));
        }
    }
    let help = "Time of all threads, by what they did.";
    writer.family("spinpark_thread_seconds", "counter", Some("seconds"), help);
    for (state, time) in states(&metrics.time) {
        writer.sample("spinpark_thread_seconds_total", &[("state", state)], &seconds(time));
    }
    writer.one("spinpark_threads", "gauge", None, "Threads of the process.", &metrics.threads.to_string());
    let is_running = u64::from(metrics.is_running).to_string();
    writer.one(
        "spinpark_process_running",
        "gauge",
        None,
        "1 if the process ran when this was written.",
        &is_running,
    );
    let is_sampled = u64::from(metrics.is_sampled).to_string();
    let help = "1 while the process is sampled; 0: these are the last figures.";
    writer.one("spinpark_sampled", "gauge", None, help, &is_sampled);
    let help = "Combinations of lock and place without a series of their own: they are in the lock other (--series).";
    writer.one("spinpark_series_folded", "counter", None, help, &metrics.folded().to_string());
    if let Some((snapshots, cost)) = metrics.sampler {
        let help = "Snapshots of the process.";
        writer.one("spinpark_snapshots", "counter", None, help, &snapshots.to_string());
        let help = "CPU time that taking them took.";
        writer.one("spinpark_sampler_cpu_seconds", "counter", Some("seconds"), help, &seconds(cost));
    }
    if dialect == Dialect::OpenMetrics {
        writer.text += "# EOF\n";
    }
    writer.text
}

impl Writer<'_> {
    /// What a family of series is. In the older format, the family of a counter has the name of its series.
    fn family(&mut self, name: &str, kind: &str, unit: Option<&str>, help: &str) {
        let name = self.name(name, kind);
        let _ = writeln!(self.text, "# TYPE {name} {kind}");
        if let Some(unit) = unit.filter(|_| self.dialect == Dialect::OpenMetrics) {
            let _ = writeln!(self.text, "# UNIT {name} {unit}");
        }
        let help = match self.dialect {
            Dialect::OpenMetrics => escaped(help),
            Dialect::Prometheus => help.replace('\\', r"\\").replace('\n', r"\n"),
        };
        let _ = writeln!(self.text, "# HELP {name} {help}");
    }

    fn name(&self, name: &str, kind: &str) -> String {
        match kind == "counter" && self.dialect == Dialect::Prometheus {
            true => format!("{name}_total"),
            false => name.to_owned(),
        }
    }

    fn sample(&mut self, name: &str, labels: &Labels<'_>, value: &str) {
        let common = self.common.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        let all = common.chain(labels.iter().copied());
        let labels: Vec<String> = all.map(|(name, value)| format!("{name}=\"{}\"", escaped(value))).collect();
        match labels.is_empty() {
            true => _ = writeln!(self.text, "{name} {value}"),
            false => _ = writeln!(self.text, "{name}{{{}}} {value}", labels.join(",")),
        }
    }

    /// A family of one series.
    fn one(&mut self, name: &str, kind: &str, unit: Option<&str>, help: &str, value: &str) {
        self.family(name, kind, unit, help);
        let name = if kind == "counter" { format!("{name}_total") } else { name.to_owned() };
        self.sample(&name, &[], value);
    }
}

/// In a label's value.
fn escaped(text: &str) -> String {
    text.replace('\\', r"\\").replace('"', "\\\"").replace('\n', r"\n")
}

/// ns in seconds, without rounding.
fn seconds(ns: u64) -> String {
    format!("{}.{:09}", ns / 1_000_000_000, ns % 1_000_000_000)
}

fn states(time: &ThreadTime) -> [(&'static str, u64); 12] {
    [
        ("running", time.running),
        ("runnable", time.runnable),
        ("locks", time.locks),
        ("signals", time.signals),
        ("unclear", time.unclear),
        ("futexes", time.futexes),
        ("semaphores", time.semaphores),
        ("io", time.io),
        ("sleep", time.sleep),
        ("ends", time.ends),
        ("stopped", time.stopped),
        ("unknown", time.unknown),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{CallSite, Frame, Lock, Profile, RoleStats, SiteStats};

    fn metrics() -> Metrics {
        let frame = Frame { function: Some(String::from("a\\b\n\"c\"")), ..Frame::default() };
        let site = SiteStats { wait_total: 1_500_000_000, contended: 3, ..SiteStats::default() };
        let stats = RoleStats { sites: vec![site], ..RoleStats::default() };
        let profile = Profile {
            call_sites: vec![CallSite { frames: vec![frame], is_cut: false }],
            locks: vec![Lock { label: String::from("cache #2"), roles: vec![stats], ..Lock::default() }],
            ..Profile::default()
        };
        let mut metrics = Metrics::new(10, vec![(String::from("program"), String::from("store"))]);
        metrics.add(&profile);
        metrics
    }

    #[test]
    fn as_openmetrics() {
        let text = text(&metrics(), Dialect::OpenMetrics);
        let begin = "# TYPE spinpark_wait_seconds counter\n# UNIT spinpark_wait_seconds seconds\n# HELP spinpark_wait_seconds ";
        assert!(text.starts_with(begin), "{text}");
        let labels = r#"program="store",class="lock",kind="mutex",lock="cache",place="a\\b\n\"c\"""#;
        assert!(text.contains(&format!("\nspinpark_wait_seconds_total{{{labels}}} 1.500000000\n")), "{text}");
        assert!(text.contains(&format!("\nspinpark_waits_total{{{labels}}} 3\n")), "{text}");
        assert!(text.ends_with("\n# EOF\n"), "{text}");
    }

    #[test]
    fn as_the_node_exporter_reads_it() {
        let text = text(&metrics(), Dialect::Prometheus);
        assert!(
            text.starts_with(
                "# TYPE spinpark_wait_seconds_total counter\n# HELP spinpark_wait_seconds_total "
            )
        );
        assert!(!text.contains("# UNIT") && !text.contains("# EOF"), "{text}");
    }
}
