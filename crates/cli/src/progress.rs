//! The progress bar: drawn between runs only, so that nothing of ours runs while a program is measured.

use std::env;

use console::Term;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use spinpark_bench::blocks::Plan;
use spinpark_bench::locks::experiment::{Cell, CellObserver};
use spinpark_bench::measure::{Observer, Run};

/// How finely a free bar moves.
const FREE_STEPS: u64 = 1000;

/// A bar on standard error; invisible if that is not a terminal.
pub(crate) struct Progress(ProgressBar);

impl Progress {
    /// A bar for `runs` runs.
    pub(crate) fn new(runs: usize) -> Self {
        let bar = ProgressBar::with_draw_target(Some(runs as u64), draw_target());
        let template = "{wide_bar} {pos}/{len} runs, {eta} left, now: {msg}";
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style.progress_chars("━━─"));
        }
        Self(bar)
    }

    /// A bar that moves as it is told to.
    pub(crate) fn free() -> Self {
        let bar = ProgressBar::with_draw_target(Some(FREE_STEPS), draw_target());
        if let Ok(style) = ProgressStyle::with_template("{wide_bar} {msg}") {
            bar.set_style(style.progress_chars("━━─"));
        }
        Self(bar)
    }

    /// Of a free bar: how far it is, from 0 to 1, and what stands beside it.
    pub(crate) fn at(&self, part: f64, what: String) {
        self.0.set_message(what);
        self.0.set_position((part.clamp(0.0, 1.0) * FREE_STEPS as f64) as u64);
    }

    /// Says what runs now.
    pub(crate) fn now(&self, what: String) {
        self.0.set_message(what);
        self.0.tick();
    }

    /// A run has ended.
    pub(crate) fn advance(&self) {
        self.0.inc(1);
    }
}

/// Standard error, if somebody sees it. indicatif's own target hides the bar if `NO_COLOR` is set, but a bar is no
/// colour.
fn draw_target() -> ProgressDrawTarget {
    const REDRAWS_PER_SECOND: u8 = 20;
    let stderr = Term::stderr();
    let is_dumb = env::var_os("TERM").is_none_or(|term| term == "dumb");
    if is_dumb || !stderr.is_term() {
        return ProgressDrawTarget::hidden();
    }
    ProgressDrawTarget::term_like_with_hz(Box::new(stderr), REDRAWS_PER_SECOND)
}

impl CellObserver for Progress {
    fn starting(&mut self, cell: &Cell, target: &str) {
        self.0.set_message(format!("{} × {}, {target}", cell.shape, cell.threads));
        self.0.tick();
    }

    fn finished(&mut self) {
        self.0.inc(1);
    }
}

impl Observer for Progress {
    fn starting(&mut self, plan: &Plan) {
        self.0.set_message(plan.arm.name());
        self.0.tick();
    }

    fn finished(&mut self, _run: &Run) {
        self.0.inc(1);
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}
