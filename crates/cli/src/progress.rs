//! The progress bar: drawn between runs only, so that nothing of ours runs while a program is measured.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use spinpark_bench::blocks::Plan;
use spinpark_bench::measure::{Observer, Run};

/// A bar on standard error; invisible if that is not a terminal.
pub(crate) struct Progress(ProgressBar);

impl Progress {
    /// A bar for `runs` runs.
    pub(crate) fn new(runs: usize) -> Self {
        let bar = ProgressBar::with_draw_target(Some(runs as u64), ProgressDrawTarget::stderr());
        let template = "{wide_bar} {pos}/{len} runs, {eta} left, now: {msg}";
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style.progress_chars("━━─"));
        }
        Self(bar)
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
