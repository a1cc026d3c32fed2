//! The progress bar: drawn between runs only, so that this command is idle while a program is measured.

use std::env;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use console::Term;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use spinpark_measure::rounds::blocks::Plan;
use spinpark_measure::rounds::measure::{Observer, Run};

/// From this number of runs on, the measured time replaces the expected one.
const FEW_RUNS: f64 = 10.0;
/// The number of steps of a free bar.
const FREE_STEPS: u64 = 1000;

/// A bar on standard error; invisible if that is not a terminal.
pub struct Progress {
    bar: ProgressBar,
    start: Instant,
    runs: usize,
    /// How long all of it takes, as far as that is known before, in seconds.
    expected: Mutex<Option<f64>>,
    lines: Mutex<Lines>,
}

/// Where there is no terminal, a line now and then reports progress.
#[derive(Default)]
struct Lines {
    last: f64,
}

impl Lines {
    /// Whether the next line is due `elapsed` seconds after the start.
    fn is_due(&mut self, elapsed: f64) -> bool {
        const EVERY_S: f64 = 30.0;
        let is_due = elapsed - self.last >= EVERY_S;
        if is_due {
            self.last = elapsed;
        }
        is_due
    }
}

impl Progress {
    /// A bar for `runs` runs, which are expected to take `expected` seconds.
    pub fn new(runs: usize, expected: Option<f64>) -> Self {
        let bar = ProgressBar::with_draw_target(Some(runs as u64), draw_target());
        let template = "{wide_bar} {pos}/{len} runs, {prefix}, now: {msg}";
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style.progress_chars("━━─"));
        }
        Self { bar, start: Instant::now(), runs, expected: Mutex::new(expected), lines: Mutex::default() }
    }

    fn expected(&self) -> MutexGuard<'_, Option<f64>> {
        self.expected.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// `12 min left`.
    fn left(&self) -> String {
        let (done, all) = (self.bar.position() as f64, self.runs.max(1) as f64);
        let left = (all - done).max(0.0);
        let measured = (done > 0.0).then(|| self.start.elapsed().as_secs_f64() / done * left);
        let expected = (*self.expected()).map(|seconds| seconds / all * left);
        // What was measured is worth more with each run.
        let weight = (done / FEW_RUNS).min(1.0);
        match (measured, expected) {
            (Some(measured), Some(expected)) => {
                format!("{} left", about(weight * measured + (1.0 - weight) * expected))
            }
            (Some(seconds), None) | (None, Some(seconds)) => format!("{} left", about(seconds)),
            (None, None) => String::from("time not known yet"),
        }
    }

    /// A bar that the caller moves.
    pub fn free() -> Self {
        let bar = ProgressBar::with_draw_target(Some(FREE_STEPS), draw_target());
        if let Ok(style) = ProgressStyle::with_template("{wide_bar} {msg}") {
            bar.set_style(style.progress_chars("━━─"));
        }
        Self { bar, start: Instant::now(), runs: 0, expected: Mutex::new(None), lines: Mutex::default() }
    }

    /// Sets a free bar to `part`, from 0 to 1, with the label `what`. If the bar is not shown, a line goes to
    /// standard error every 30 s.
    pub fn at(&self, part: f64, what: String) {
        let is_due = || {
            let mut lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
            lines.is_due(self.start.elapsed().as_secs_f64())
        };
        if self.bar.is_hidden() && is_due() {
            note!("{what}");
        }
        self.bar.set_message(what);
        self.bar.set_position((part.clamp(0.0, 1.0) * FREE_STEPS as f64) as u64);
    }

    /// Shows what runs now.
    pub fn now(&self, what: String) {
        self.bar.set_prefix(self.left());
        self.bar.set_message(what);
        self.bar.tick();
    }

    /// Now it is known how long all of it takes, in seconds.
    pub fn expect(&self, seconds: f64) {
        *self.expected() = Some(seconds);
    }

    /// Prints a line above the bar.
    pub fn above(&self, say: impl FnOnce()) {
        self.bar.suspend(say);
    }

    /// A run has ended.
    pub fn advance(&self) {
        self.bar.inc(1);
    }
}

/// `90 s`, `12 min`.
pub fn about(seconds: f64) -> String {
    match seconds {
        s if s < 1.0 => String::from("1 s"),
        s if s < 120.0 => format!("{s:.0} s"),
        s => format!("{:.0} min", s / 60.0),
    }
}

/// Standard error, if it is a terminal. indicatif's own target hides the bar if `NO_COLOR` is set, but a bar
/// is no colour.
fn draw_target() -> ProgressDrawTarget {
    const REDRAWS_PER_SECOND: u8 = 20;
    let stderr = Term::stderr();
    let is_dumb = env::var_os("TERM").is_none_or(|term| term == "dumb");
    if is_dumb || !stderr.is_term() {
        return ProgressDrawTarget::hidden();
    }
    ProgressDrawTarget::term_like_with_hz(Box::new(stderr), REDRAWS_PER_SECOND)
}

impl Observer for Progress {
    fn starting(&mut self, plan: &Plan) {
        self.now(plan.configuration.name().to_owned());
    }

    fn finished(&mut self, _run: &Run) {
        self.advance();
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

#[cfg(test)]
mod tests {
    use super::Lines;

    #[test]
    fn a_line_now_and_then() {
        let mut lines = Lines::default();
        let due: Vec<_> = [1.0, 29.0, 31.0, 40.0, 60.0, 61.5, 200.0, 201.0]
            .into_iter()
            .filter(|at| lines.is_due(*at))
            .collect();
        assert_eq!(due, [31.0, 61.5, 200.0]);
    }
}
