//! `spinpark export`.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::builder::{OsStringValueParser, TypedValueParser};
use clap::{Args, ValueEnum};

use super::{Subject, subject};
use crate::line::numbers::whole;
use crate::line::units::{between, duration};

const EXAMPLES: &str = "\
Examples:
  spinpark export 4711 --listen 127.0.0.1:9464      http://127.0.0.1:9464/metrics, for Prometheus
  spinpark export 4711 --listen unix:/run/spinpark  the same at a socket, for an agent of this host
  spinpark export 4711 --textfile /var/lib/node_exporter/spinpark.prom
  spinpark export 4711 --push http://pyroscope:4040 --label service=shop
  spinpark export 4711 --push http://parca:7070 --receiver parca --every 30s
  spinpark export spinpark-profile --openmetrics    a recording, once, to standard output

A process is sampled as by `spinpark profile --pid`, until it ends, or Ctrl-C. Counters only rise, from the start of this command on.";

/// Send where a process waits to Prometheus, Pyroscope or Parca, while it runs
///
/// The process is not stopped, and nothing is loaded into it. Of a recording, all that it has is sent once.
#[derive(Debug, Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct Export {
    /// Serve the counters by HTTP, at /metrics: an address and a port, or unix: and the path of a socket
    #[arg(long, value_name = "WHERE")]
    pub(crate) listen: Option<OsString>,

    /// Write the counters to this file again and again, for the textfile collector of the node exporter
    ///
    /// It is replaced as a whole: a reader never sees half of it.
    #[arg(long, value_name = "FILE")]
    pub(crate) textfile: Option<PathBuf>,

    /// Print the counters to standard output once, in OpenMetrics' text; of a process, at the end
    #[arg(long)]
    pub(crate) openmetrics: bool,

    /// Push stacks of waiting, in pprof's format, to a continuous profiler: http://host:4040
    #[arg(long, value_name = "WHERE")]
    pub(crate) push: Option<String>,

    /// What receives them
    #[arg(long, value_enum, default_value_t = Receiver::Pyroscope, requires = "push")]
    pub(crate) receiver: Receiver,

    /// Time between two updates, and between two pushes: 10s, 1min; at least 1s
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = between("1s", "1h"))]
    pub(crate) every: Duration,

    /// End after this time: 30s, 10min [default: when the process ends; with --openmetrics alone, 10s]
    #[arg(long = "for", value_name = "TIME", value_parser = duration)]
    pub(crate) time: Option<Duration>,

    /// Number of series of waits; the rest is added to the lock `other`
    #[arg(long, value_name = "N", default_value_t = 200, value_parser = whole::<usize>(1..=100_000, 200))]
    pub(crate) series: usize,

    /// Add a label to all series and pushes, as NAME=VALUE; can be repeated
    #[arg(long, value_name = "NAME", value_parser = label)]
    pub(crate) label: Vec<(String, String)>,

    /// A process, or what `spinpark profile` wrote
    #[arg(value_name = "PID | DIR", value_parser = OsStringValueParser::new().try_map(subject))]
    pub(crate) subject: Subject,
}

/// A continuous profiler.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Receiver {
    /// Grafana Pyroscope, or an agent that takes its pushes (Grafana Alloy)
    Pyroscope,
    /// Parca, by its HTTP endpoint
    Parca,
}

/// `NAME=VALUE`, with a name that Prometheus takes, and that is not one of ours.
fn label(text: &str) -> Result<(String, String), String> {
    const OURS: [&str; 8] = ["program", "pid", "class", "kind", "lock", "place", "doing", "state"];
    let is_first = |byte: u8| byte.is_ascii_alphabetic() || byte == b'_';
    match text.split_once('=') {
        Some((name, _)) if OURS.contains(&name) => Err(format!("`{name}` is a label of spinpark's own")),
        Some((name, value))
            if name.bytes().next().is_some_and(is_first)
                && name.bytes().all(|byte| is_first(byte) || byte.is_ascii_digit())
                && !name.starts_with("__") =>
        {
            Ok((name.to_owned(), value.to_owned()))
        }
        _ => Err(String::from(
            "a label is NAME=VALUE, and its name has letters, digits and _, such as service=shop",
        )),
    }
}
