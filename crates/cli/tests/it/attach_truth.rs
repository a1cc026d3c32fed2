//! Whether sampling a process is true, and what it costs the process: of C, of Rust and of CPython. These measure: they
//! are run by hand, on an idle machine, as
//! `cargo test --release -p spinpark-cli --test it -- --ignored --nocapture attach_truth`.
//! `SPINPARK_ROUNDS` says how many rounds.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use spinpark_fixtures::command::said;
use spinpark_fixtures::{compile_c, source};

use crate::profile::recording;
use crate::python::interpreters;

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
        command.arg(threads.to_string());
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

    /// What it answers to a line.
    fn answer(&mut self) -> String {
        self.input.as_mut().expect("it is open").write_all(b"\n").expect("it reads");
        self.line()
    }

    /// How many sections there were so far.
    fn count(&mut self) -> f64 {
        self.answer().parse().expect("a number")
    }

    /// How long its threads have waited in each function, if it says that: `often 1200 seldom 300`.
    fn waits(&mut self) -> BTreeMap<String, f64> {
        let answer = self.answer();
        let words: Vec<&str> = answer.split(' ').collect();
        words.chunks_exact(2).map(|pair| (pair[0].to_owned(), pair[1].parse().expect("a time"))).collect()
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

/// The time that threads waited for each lock, by its label, or by the function where they waited; and of how many
/// snapshots the summary's interval is: those that found them waiting, as far as they are independent.
fn waits(directory: &Path, of: &str, is_by_function: bool) -> (BTreeMap<String, f64>, f64) {
    let json = said(&mut recording(directory, ["report", of, "--json"]));
    let json: Value = serde_json::from_str(&json.stdout).expect("JSON");
    let sites: Vec<&Value> = json[0]["call_sites"].as_array().into_iter().flatten().collect();
    let function = |site: &Value| {
        let at = usize::try_from(site.as_u64()?).ok()?;
        sites.get(at)?["frames"][0]["function"].as_str().map(str::to_owned)
    };
    let mut found: BTreeMap<String, f64> = BTreeMap::new();
    let mut add = |name: Option<String>, time: &Value| {
        *found.entry(name.unwrap_or_default()).or_default() += time.as_f64().expect("a time");
    };
    for lock in json[0]["locks"].as_array().into_iter().flatten() {
        for role in lock["roles"].as_array().into_iter().flatten() {
            if is_by_function {
                let sites = role["sites"].as_array().into_iter().flatten();
                sites.for_each(|site| add(function(&site["call_site"]), &site["wait_total"]));
            } else {
                add(lock["label"].as_str().map(str::to_owned), &role["wait"]["total"]);
            }
        }
    }
    let sampling = |field: &str| json[0]["sampling"][field].as_f64().filter(|number| *number > 0.0);
    let independent = sampling("independent").unwrap_or(f64::INFINITY);
    (found, sampling("found").unwrap_or(0.0).min(independent))
}

/// Their shares in the sum.
fn shares(times: &BTreeMap<String, f64>) -> BTreeMap<String, f64> {
    let all: f64 = times.values().sum();
    times.iter().map(|(name, time)| (name.clone(), time / all.max(1.0))).collect()
}

/// How many shares lie in the intervals that the summary gives, of all that are true.
#[derive(Default)]
struct Compared {
    met: u32,
    all: u32,
    rounds: u32,
    sums: BTreeMap<String, (f64, f64)>,
}

impl Compared {
    fn add(&mut self, truth: &BTreeMap<String, f64>, (sampled, snapshots): (BTreeMap<String, f64>, f64)) {
        /// Less is found in no snapshot.
        const LITTLE: f64 = 0.001;
        let (truth, sampled) = (shares(truth), shares(&sampled));
        self.rounds += 1;
        for (name, share) in truth.into_iter().filter(|(_, share)| *share >= LITTLE) {
            let found = sampled.get(&name).copied().unwrap_or(0.0);
            let error = DEVIATIONS * (share * (1.0 - share) / snapshots.max(1.0)).sqrt();
            self.all += 1;
            self.met += u32::from((found - share).abs() <= error);
            let sum = self.sums.entry(name).or_default();
            *sum = (sum.0 + share, sum.1 + found);
        }
    }

    #[track_caller]
    fn show(&self, what: &str) {
        /// Fewer tell nothing about 95 of 100.
        const ENOUGH: u32 = 30;
        let mean = |sum: f64| 100.0 * sum / f64::from(self.rounds);
        let means = self.sums.iter().map(|(name, (truth, sampled))| {
            format!("{name} {:.1} % ({:.1} % sampled)", mean(*truth), mean(*sampled))
        });
        let means: Vec<String> = means.collect();
        let (met, all) = (self.met, self.all);
        println!("{what}: {met} of {all} shares in their intervals; {}", means.join(", "));
        assert!(all > 0, "{what}: nothing was waited for");
        assert!(all < ENOUGH || f64::from(met) >= 0.9 * f64::from(all), "{what}: {met} of {all}");
    }
}

/// The same run recorded and sampled: the share of each lock lies in the interval that the summary gives.
fn as_recorded(program: &Path, what: &str) {
    for threads in [2, 8, 50, 200] {
        let mut compared = Compared::default();
        for _ in 0..rounds(20) {
            let directory = tempfile::tempdir().expect("a directory");
            let mut command = recording(directory.path(), ["profile", "--output", "recorded", "--"]);
            command.arg(program);
            let counting = Counting::start(command, threads);
            sample(directory.path(), &counting.pid, "4s");
            counting.end();
            let (recorded, _) = waits(directory.path(), "recorded", false);
            compared.add(&recorded, waits(directory.path(), "sampled", false));
        }
        compared.show(&format!("{what}, {threads} threads"));
    }
}

fn sections_of_c() -> PathBuf {
    compile_c("sections.c", &["-O1"])
}

#[test]
#[ignore = "measures"]
fn shares_of_c_are_those_of_a_recording() {
    as_recorded(&sections_of_c(), "C");
}

#[test]
#[ignore = "measures"]
fn shares_of_rust_are_those_of_a_recording() {
    let directory = tempfile::tempdir().expect("a directory");
    let program = directory.path().join("sections");
    let mut compile = Command::new(std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into()));
    compile.args(["-O", "-g", "--edition", "2021", "-o"]).arg(&program).arg(source("sections.rs"));
    assert!(compile.status().is_ok_and(|status| status.success()));
    as_recorded(&program, "Rust");
}

/// A recording does not know Python's locks: the program measures its own waits, which include those for the GIL.
#[test]
#[ignore = "measures"]
fn shares_of_python_are_those_that_it_measures() {
    let interpreters = interpreters();
    for threads in [2, 8, 50] {
        for interpreter in &interpreters {
            let mut compared = Compared::default();
            for _ in 0..rounds(20) {
                let directory = tempfile::tempdir().expect("a directory");
                let mut command = Command::new(interpreter);
                command.arg("-S").arg(source("sections.py"));
                let mut counting = Counting::start(command, threads);
                let before = counting.waits();
                sample(directory.path(), &counting.pid, "4s");
                let after = counting.waits();
                counting.end();
                let waited = |(name, time): (String, f64)| {
                    let earlier = before.get(&name).copied().unwrap_or(0.0);
                    (name, time - earlier)
                };
                let truth = after.into_iter().map(waited).collect();
                compared.add(&truth, waits(directory.path(), "sampled", true));
            }
            compared.show(&format!("{}, {threads} threads", interpreter.display()));
        }
    }
}

/// How fast a program is while it is sampled, in turns.
#[test]
#[ignore = "measures"]
fn a_program_is_as_fast_while_it_is_sampled() {
    for threads in [4, 200] {
        let directory = tempfile::tempdir().expect("a directory");
        let mut counting = Counting::start(Command::new(sections_of_c()), threads);
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
