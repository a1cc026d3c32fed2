//! Whether sampling a process is true, and what it costs the process. These measure: they are run by hand, on an idle
//! machine, as `cargo test --release -p spinpark-cli --test it -- --ignored --nocapture attach_truth`.
//! `SPINPARK_ROUNDS` says how many rounds.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use spinpark_fixtures::command::said;
use spinpark_fixtures::compile_c;

use crate::profile::recording;

/// Of the normal distribution: 95 % lie within so many standard deviations.
const DEVIATIONS: f64 = 1.96;

fn rounds(usual: u32) -> u32 {
    std::env::var("SPINPARK_ROUNDS").ok().and_then(|text| text.parse().ok()).unwrap_or(usual)
}

/// A program that counts, until its input ends.
struct Counting {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
    pid: String,
}

impl Counting {
    fn start(mut command: Command, threads: u32) -> Self {
        command.arg(compile_c("sections.c", &["-O1"])).arg(threads.to_string());
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().expect("it starts");
        let (input, output) = (child.stdin.take(), child.stdout.take().expect("a pipe"));
        let mut counting = Self { child, input, output: BufReader::new(output), pid: String::new() };
        counting.pid = counting.line();
        assert_eq!(counting.line(), "ready");
        counting
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.output.read_line(&mut line).expect("a line");
        line.trim().to_owned()
    }

    /// How many sections there were so far.
    fn count(&mut self) -> f64 {
        self.input.as_mut().expect("it is open").write_all(b"\n").expect("it reads");
        self.line().parse().expect("a number")
    }

    fn end(mut self) {
        drop(self.input.take());
        let _ = self.child.wait();
    }
}

fn sample(directory: &Path, pid: &str, time: &str) {
    let mut command = recording(directory, ["profile", "--for", time, "--output", "sampled", "--pid"]);
    let result = said(command.arg(pid));
    assert_eq!(result.code, Some(0), "{result:#?}");
}

/// The share of each lock in all waiting, and how many snapshots there were.
fn shares(directory: &Path, of: &str) -> (BTreeMap<String, f64>, f64) {
    let json = said(&mut recording(directory, ["report", of, "--json"]));
    let json: Value = serde_json::from_str(&json.stdout).expect("JSON");
    let total = |lock: &Value| {
        let roles = lock["roles"].as_array().into_iter().flatten();
        roles.map(|role| role["wait"]["total"].as_f64().unwrap_or(0.0)).sum::<f64>()
    };
    let locks: Vec<&Value> = json[0]["locks"].as_array().into_iter().flatten().collect();
    let all: f64 = locks.iter().map(|lock| total(lock)).sum();
    let share = |lock: &&Value| Some((lock["name"].as_str()?.to_owned(), total(lock) / all.max(1.0)));
    let snapshots = json[0]["sampling"]["snapshots"].as_f64().unwrap_or(0.0);
    (locks.iter().filter_map(share).collect(), snapshots)
}

/// The same run recorded and sampled: the share of each lock lies in the interval that the summary gives.
#[test]
#[ignore = "measures"]
fn shares_are_those_of_a_recording() {
    let rounds = rounds(20);
    for threads in [2, 8, 50, 200] {
        let (mut met, mut all) = (0, 0);
        let mut sums: BTreeMap<String, (f64, f64)> = BTreeMap::new();
        for _ in 0..rounds {
            let directory = tempfile::tempdir().expect("a directory");
            let command = recording(directory.path(), ["profile", "--output", "recorded", "--"]);
            let counting = Counting::start(command, threads);
            sample(directory.path(), &counting.pid, "4s");
            counting.end();
            let (recorded, _) = shares(directory.path(), "recorded");
            let (sampled, snapshots) = shares(directory.path(), "sampled");
            for (name, share) in &recorded {
                let found = sampled.get(name).copied().unwrap_or(0.0);
                let error = DEVIATIONS * (share * (1.0 - share) / snapshots.max(1.0)).sqrt();
                all += 1;
                met += u32::from((found - share).abs() <= error);
                let sum = sums.entry(name.clone()).or_default();
                *sum = (sum.0 + share, sum.1 + found);
            }
        }
        let mean = |sum: f64| 100.0 * sum / f64::from(rounds);
        let means: Vec<String> = sums
            .iter()
            .map(|(name, (recorded, sampled))| {
                format!("{name} {:.1} % ({:.1} % sampled)", mean(*recorded), mean(*sampled))
            })
            .collect();
        println!("{threads} threads: {met} of {all} shares in their intervals; {}", means.join(", "));
        assert!(f64::from(met) >= 0.9 * f64::from(all), "{threads} threads: {met} of {all}");
    }
}

/// How fast a program is while it is sampled, in turns.
#[test]
#[ignore = "measures"]
fn a_program_is_as_fast_while_it_is_sampled() {
    for threads in [4, 200] {
        let directory = tempfile::tempdir().expect("a directory");
        let mut counting = Counting::start(Command::new("env"), threads);
        let rate = |counting: &mut Counting, is_sampled: bool| {
            let (before, start) = (counting.count(), Instant::now());
            if is_sampled {
                let within = tempfile::tempdir_in(directory.path()).expect("a directory");
                sample(within.path(), &counting.pid, "2s");
            } else {
                std::thread::sleep(Duration::from_secs(2));
            }
            (counting.count() - before) / start.elapsed().as_secs_f64()
        };
        let mut ratios = Vec::new();
        for round in 0..rounds(20) {
            // The first of a pair is not always the same one.
            let first = round % 2 == 0;
            let (one, other) = (rate(&mut counting, first), rate(&mut counting, !first));
            ratios.push(if first { one / other } else { other / one }.ln());
        }
        counting.end();
        let number = ratios.len() as f64;
        let mean = ratios.iter().sum::<f64>() / number;
        let deviation = ratios.iter().map(|ratio| (ratio - mean).powi(2)).sum::<f64>() / (number - 1.0);
        let error = DEVIATIONS * (deviation / number).sqrt();
        println!(
            "{threads} threads: {:.4} [{:.4}, {:.4}] of the throughput",
            mean.exp(),
            (mean - error).exp(),
            (mean + error).exp()
        );
    }
}
