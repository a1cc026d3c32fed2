//! A program at several numbers of threads, for people.

use super::{Printed, Style, interval_of, metric_name, table, text, value};
use crate::rounds::scaling::Scaling;

/// The table, one row per number of threads.
#[must_use]
pub fn render(scaling: &Scaling, printed: &Printed, style: Style) -> String {
    let metric = metric_name(scaling.metric, printed);
    let interval = interval_of(scaling.error);
    let mut rows = table(style, &["threads", &format!("{metric} (median)"), "speed-up", &interval]);
    let or_dash = |text: Option<String>| text.unwrap_or_else(|| String::from("–"));
    for step in &scaling.steps {
        rows.add_row(vec![
            step.threads.to_string(),
            or_dash(step.median.map(|median| value(scaling.metric, median))),
            or_dash(step.speed_up.map(|speed_up| format!("{:.2}", speed_up.median))),
            or_dash(step.speed_up.map(|speed_up| format!("[{:.2}, {:.2}]", speed_up.low, speed_up.high))),
        ]);
    }
    text(&rows)
}
