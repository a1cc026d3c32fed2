//! The verdict of `spinpark gate`: is a bound kept, as far as a measurement tells?
//!
//! | verdict | a build server sees |
//! |---|---|
//! | passed | success |
//! | failed | failure: the bound does not hold, beyond the noise |
//! | undecided | neither, unless undecided counts as failed (`--strict`) |

use std::fmt::Write;

use serde::Serialize;

use super::{Goodness, Printed, interval, metric_name, verdict_word};
use crate::rounds::compare::Summary;
use crate::rounds::sample::Metric;
use crate::rounds::scaling::Scaling;
use crate::rounds::warnings::Warning;
use crate::stats::{Ratio, verdict};
use crate::text::units::{change, counted, exact_percent, percent};

/// What the document is called in its field `format`.
pub const FORMAT: &str = "spinpark gate";

/// The version of its structure. It grows when a field changes its meaning or goes.
pub const VERSION: u32 = 1;

/// Whether the bound holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// It does.
    Passed,
    /// It does not.
    Failed,
    /// The measurement does not tell.
    Undecided,
}

/// The figure that was judged: a ratio or a share, as a fraction.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Figure {
    /// What it is: `wall time, after / before`.
    pub name: String,
    /// The best estimate.
    pub value: Option<f64>,
    /// The lower end of its interval; none if it is not known.
    pub low: Option<f64>,
    /// The upper end.
    pub high: Option<f64>,
    /// What the same program differs by from run to run; none for a figure of one run.
    pub noise: Option<f64>,
    /// What was asked for; none for "not worse".
    pub bound: Option<f64>,
}

/// A gate that was measured and judged.
#[derive(Debug, Clone, PartialEq)]
pub struct Judged {
    /// `compare`, `scaling` or `waits`.
    pub gate: &'static str,
    /// What was measured: a command line, or a recording.
    pub subject: String,
    /// Whether the bound holds.
    pub verdict: Verdict,
    /// What was measured, its interval, the noise and the verdict. Back quotes enclose code.
    pub sentence: String,
    /// The figure.
    pub figure: Figure,
    /// What weakens the result, in sentences.
    pub notes: Vec<String>,
}

/// A judged gate with everything that was measured.
#[derive(Debug, Serialize)]
pub struct Document<'a, T> {
    format: &'static str,
    version: u32,
    gate: &'static str,
    subject: &'a str,
    verdict: Verdict,
    exit_status: u8,
    sentence: &'a str,
    figure: &'a Figure,
    notes: &'a [String],
    measurement: &'a T,
}

impl<'a, T: Serialize> Document<'a, T> {
    /// The document of a command that exits with `exit_status`.
    pub fn new(judged: &'a Judged, exit_status: u8, measurement: &'a T) -> Self {
        let Judged { gate, subject, verdict, sentence, figure, notes } = judged;
        Self {
            format: FORMAT,
            version: VERSION,
            gate,
            subject,
            verdict: *verdict,
            exit_status,
            sentence,
            figure,
            notes,
            measurement,
        }
    }
}

/// Judges a metric of two builds: worse is what [`verdict::judge`] calls so. Not worse is also what may be better, but
/// is worse by no more than its margin, whole interval. With `at_most`, a worsening is accepted if the whole interval
/// is below.
#[must_use]
pub fn compared(
    subject: &str,
    summary: &Summary,
    printed: &Printed,
    rounds: usize,
    at_most: Option<f64>,
    warnings: &[Warning],
) -> Judged {
    let metric = summary.metric;
    let higher_is_better = metric == Metric::Printed && printed.higher_is_better;
    let (word, goodness) = verdict_word(metric, summary.verdict, printed);
    // As a fraction of the old value, at the far end.
    let worsening = |change: Ratio| if higher_is_better { 1.0 - change.low } else { change.high - 1.0 };
    let accepted = at_most.filter(|most| summary.change.is_some_and(|change| worsening(change) < *most));
    let is_within_margin = || {
        let margin = summary.noise_floor().map(verdict::margin);
        margin.zip(summary.change).is_some_and(|(margin, change)| worsening(change) <= margin)
    };
    let is_not_worse = goodness == Goodness::Good
        || summary.verdict == verdict::Verdict::Equivalent
        || goodness != Goodness::Bad && is_within_margin();
    let (verdict, says) = match (is_not_worse, accepted, goodness) {
        (true, ..) if goodness == Goodness::Good => {
            (Verdict::Passed, format!("`after` is {word} than `before`"))
        }
        (true, ..) => (Verdict::Passed, String::from("`after` is not worse than `before`")),
        (_, Some(most), _) => (
            Verdict::Passed,
            format!("`after` is worse than `before` by less than {}, if at all", exact_percent(most)),
        ),
        (.., Goodness::Bad) => (Verdict::Failed, format!("`after` is {word} than `before`")),
        _ => (Verdict::Undecided, String::from("Undecided whether `after` is worse than `before`")),
    };
    let noise = summary.noise_floor();
    let sentence = format!(
        "{says}: {} {}, noise {}, {}{}. {}",
        metric_name(metric, printed),
        summary.change.map_or_else(
            || String::from("without an interval"),
            |ratio| format!("{} {}", change(ratio.median), interval(&ratio))
        ),
        noise.map_or_else(|| String::from("unknown"), |floor| format!("±{}", percent(floor))),
        counted(rounds, "round"),
        at_most.map_or_else(String::new, |most| format!(", accepted up to {} worse", exact_percent(most))),
        verdict.in_words()
    );
    let ratio = |of: fn(&Ratio) -> f64| summary.change.as_ref().map(of);
    Judged {
        gate: "compare",
        subject: subject.to_owned(),
        verdict,
        sentence,
        figure: Figure {
            name: format!("{}, after / before", metric_name(metric, printed)),
            value: ratio(|it| it.median),
            low: ratio(|it| it.low),
            high: ratio(|it| it.high),
            noise,
            bound: at_most.map(|most| if higher_is_better { 1.0 - most } else { 1.0 + most }),
        },
        notes: warnings.iter().map(|warning| format!("Warning: {warning}")).collect(),
    }
}

/// Judges the speed-up of the last number of threads over the first: at least `bound` is asked for.
#[must_use]
pub fn scaled(subject: &str, scaling: &Scaling, printed: &Printed, bound: f64, notes: Vec<String>) -> Judged {
    let (first, last) = scaling.ends();
    let noise = scaling.again.map(|again| again.reach());
    let verdict = match (last.speed_up, noise) {
        (Some(speed_up), _) if speed_up.low >= bound => Verdict::Passed,
        // As in `compare`: the interval excludes the bound, and the median misses it by more than the noise.
        (Some(speed_up), Some(noise)) if speed_up.high < bound && 1.0 - speed_up.median / bound > noise => {
            Verdict::Failed
        }
        _ => Verdict::Undecided,
    };
    let claim = format!("{bound} times as fast as {}", counted(first.threads, "thread"));
    let threads = counted(last.threads, "thread");
    let says = match verdict {
        Verdict::Passed => format!("{threads} are at least {claim}"),
        Verdict::Failed => format!("{threads} are not {claim}"),
        Verdict::Undecided => format!("Undecided whether {threads} are {claim}"),
    };
    let sentence = format!(
        "{says}: speed-up {} ({}), noise {}, {}. {}",
        last.speed_up.map_or_else(
            || String::from("without an interval"),
            |it| format!("{:.2} [{:.2}, {:.2}]", it.median, it.low, it.high)
        ),
        metric_name(scaling.metric, printed),
        noise.map_or_else(|| String::from("unknown"), |floor| format!("±{}", percent(floor))),
        counted(scaling.rounds, "round"),
        verdict.in_words()
    );
    let ratio = |of: fn(&Ratio) -> f64| last.speed_up.as_ref().map(of);
    Judged {
        gate: "scaling",
        subject: subject.to_owned(),
        verdict,
        sentence,
        figure: Figure {
            name: speed_up_of(first.threads, last.threads),
            value: ratio(|it| it.median),
            low: ratio(|it| it.low),
            high: ratio(|it| it.high),
            noise,
            bound: Some(bound),
        },
        notes,
    }
}

/// What the figure is called that [`scaled`] judges.
#[must_use]
pub fn speed_up_of(first: usize, last: usize) -> String {
    format!("speed-up, {last} over {first}")
}

impl Verdict {
    /// A sentence.
    #[must_use]
    pub fn in_words(self) -> &'static str {
        match self {
            Self::Passed => "The gate passes.",
            Self::Failed => "The gate fails.",
            Self::Undecided => "That is no verdict.",
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Passed => "passed",
            Self::Failed => "failed",
            Self::Undecided => "undecided",
        }
    }
}

impl Judged {
    fn title(&self) -> String {
        format!("spinpark gate {}: {}", self.gate, self.verdict.name())
    }

    /// A section of a job's summary. `is_red`: the command exits with a failure.
    #[must_use]
    pub fn markdown(&self, is_red: bool) -> String {
        let mark = match (self.verdict, is_red) {
            (Verdict::Passed, _) => "✅",
            (_, true) => "❌",
            _ => "❔",
        };
        let Figure { name, value, low, high, noise, bound } = &self.figure;
        let number = |number: &Option<f64>| number.map_or_else(|| String::from("–"), |it| format!("{it:.4}"));
        let mut text = format!(
            "### {mark} {}\n\n{}\n\n| measured | value | interval | noise | bound |\n|---|--:|--:|--:|--:|\n\
             | {} | {} | [{}, {}] | {} | {} |\n\n",
            self.title(),
            in_markdown(&self.sentence),
            in_markdown(name),
            number(value),
            number(low),
            number(high),
            noise.map_or_else(|| String::from("–"), |floor| format!("±{}", percent(floor))),
            number(bound),
        );
        for note in &self.notes {
            let _ = writeln!(text, "- {}", in_markdown(note));
        }
        let _ = write!(
            text,
            "{}<code>{}</code>\n\n",
            if self.notes.is_empty() { "" } else { "\n" },
            in_html(&self.subject.replace(['\r', '\n'], " ")).replace('`', "&#96;")
        );
        text
    }

    /// A JUnit report of one test case. `is_red`: the command exits with a failure.
    #[must_use]
    pub fn junit(&self, is_red: bool) -> String {
        let (failures, skipped) = (u8::from(is_red), u8::from(!is_red && self.verdict == Verdict::Undecided));
        let message = in_xml(&self.sentence);
        let result = match (is_red, self.verdict) {
            (true, _) => format!("      <failure type=\"{}\" message=\"{message}\"/>\n", self.verdict.name()),
            (false, Verdict::Undecided) => format!("      <skipped message=\"{message}\"/>\n"),
            _ => String::new(),
        };
        let counts = format!("tests=\"1\" failures=\"{failures}\" errors=\"0\" skipped=\"{skipped}\"");
        let said = std::iter::once(&self.sentence).chain(&self.notes);
        let said: String = said.map(|line| in_xml(line) + "\n").collect();
        format!(
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites {counts}>\n  <testsuite name=\"spinpark gate\" {counts}>\n    \
             <testcase classname=\"spinpark.gate.{}\" name=\"{}\">\n{result}      <system-out>{said}</system-out>\n    \
             </testcase>\n  </testsuite>\n</testsuites>\n",
            self.gate,
            in_xml(&self.subject)
        )
    }

    /// A command of GitHub Actions that shows the verdict with the job. `is_red`: the command exits with a failure.
    #[must_use]
    pub fn annotation(&self, is_red: bool) -> String {
        let level = match (is_red, self.verdict) {
            (true, _) => "error",
            (false, Verdict::Undecided) => "warning",
            (false, _) => "notice",
        };
        let in_value = |text: &str| text.replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A");
        let title = in_value(&self.title()).replace(':', "%3A").replace(',', "%2C");
        format!("::{level} title={title}::{}", in_value(&self.sentence))
    }
}

/// A sentence in which nothing but code in back quotes is marked up, on one line.
fn in_markdown(text: &str) -> String {
    let text = text.replace(['\r', '\n'], " ");
    // An odd number of back quotes leaves the last part outside of code.
    let has_code = text.matches('`').count().is_multiple_of(2);
    let parts = text.split('`').enumerate();
    let parts = parts.map(|(at, part)| if has_code && at % 2 == 1 { part.to_owned() } else { in_html(part) });
    parts.collect::<Vec<_>>().join("`")
}

/// Text of an HTML element inside of Markdown.
fn in_html(text: &str) -> String {
    let text = text.replace('&', "&amp;").replace('<', "&lt;");
    text.replace('*', "&#42;").replace('_', "&#95;").replace('[', "&#91;").replace('|', "&#124;")
}

/// Text of an element or an attribute, without what XML cannot have.
fn in_xml(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => escaped += "&amp;",
            '<' => escaped += "&lt;",
            '>' => escaped += "&gt;",
            '"' => escaped += "&quot;",
            '\n' | '\t' => escaped.push(' '),
            character if character.is_control() || matches!(character, '\u{fffe}' | '\u{ffff}') => {
                escaped.push('\u{fffd}');
            }
            character => escaped.push(character),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use rand::rngs::Xoshiro256PlusPlus;
    use rand::{RngExt, SeedableRng};

    use super::*;
    use crate::rounds::compare::Medians;
    use crate::rounds::configuration::Subject;
    use crate::rounds::looks::Looks;
    use crate::stats::bootstrap::ratio_interval_at;
    use crate::stats::verdict::judge;

    fn judged(metric: Metric, [low, median, high]: [f64; 3], noise: f64, at_most: Option<f64>) -> Judged {
        let again = Ratio { median: 1.0, low: 1.0 / (1.0 + noise), high: 1.0 + noise };
        of(metric, Ratio { median, low, high }, again, at_most)
    }

    fn of(metric: Metric, change: Ratio, again: Ratio, at_most: Option<f64>) -> Judged {
        let summary = Summary {
            metric,
            medians: Medians::new(Subject::Programs, Some(1.0), Some(change.median)),
            change: Some(change),
            again: Some(again),
            verdict: judge(&change, &again),
        };
        let printed = Printed { unit: String::from("tps"), higher_is_better: true };
        compared("./new", &summary, &printed, 10, at_most, &[])
    }

    #[test]
    fn worse_beyond_the_noise_fails_in_either_direction() {
        let of = |metric, ratios, noise| judged(metric, ratios, noise, None).verdict;
        assert_eq!(of(Metric::Wall, [1.08, 1.1, 1.12], 0.01), Verdict::Failed);
        assert_eq!(of(Metric::Wall, [0.88, 0.9, 0.92], 0.01), Verdict::Passed);
        assert_eq!(of(Metric::Printed, [0.88, 0.9, 0.92], 0.01), Verdict::Failed);
        assert_eq!(of(Metric::Printed, [1.08, 1.1, 1.12], 0.01), Verdict::Passed);
        assert_eq!(of(Metric::Wall, [0.99, 1.0, 1.01], 0.01), Verdict::Passed);
        assert_eq!(of(Metric::Wall, [1.08, 1.1, 1.12], 0.2), Verdict::Undecided);
        assert_eq!(of(Metric::Wall, [0.9, 1.0, 1.1], 0.01), Verdict::Undecided);
        // It may be better, but is not worse.
        assert_eq!(of(Metric::Wall, [0.9, 0.99, 1.015], 0.01), Verdict::Passed);
        assert_eq!(of(Metric::Printed, [0.985, 1.01, 1.1], 0.01), Verdict::Passed);
    }

    /// The verdicts of `count` measurements whose new program takes `change` times as long, on a machine whose runs
    /// scatter by `noise`, and one in ten of which a neighbour makes longer: passed, failed, undecided.
    fn verdicts(looks: &Looks, change: f64, noise: f64, count: u64) -> [usize; 3] {
        let mut found = [0; 3];
        for seed in 0..count {
            let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
            let mut run = |length: f64| {
                let scatter: f64 = (0..12).map(|_| rng.random_range(-0.5..0.5)).sum();
                let neighbour =
                    if rng.random_range(0.0..1.0) < 0.1 { rng.random_range(0.0..5.0 * noise) } else { 0.0 };
                length * (scatter * noise + neighbour).exp()
            };
            let (mut changes, mut again) = (Vec::new(), Vec::new());
            let mut verdict = Verdict::Undecided;
            for part in looks.parts() {
                for _ in 0..part {
                    let before = run(1.0);
                    again.push(run(1.0) / before);
                    changes.push(run(change) / before);
                }
                let interval = |ratios: &[f64]| ratio_interval_at(ratios, seed, looks.error());
                if let (Some(change), Some(again)) = (interval(&changes), interval(&again)) {
                    verdict = of(Metric::Wall, change, again, None).verdict;
                }
                if verdict != Verdict::Undecided {
                    break;
                }
            }
            found[verdict as usize] += 1;
        }
        found
    }

    /// An unchanged program is not called worse, a change of 10 % is not called none, and more looks decide more.
    #[test]
    fn more_looks_decide_more_and_err_no_more() {
        for (noise, passed) in [(0.01, 50), (0.02, 49), (0.03, 45)] {
            let (one, four) = (Looks::new(10, 10), Looks::new(10, 80));
            let (once, often) = (verdicts(&one, 1.0, noise, 50), verdicts(&four, 1.0, noise, 50));
            assert!(often[2] <= once[2], "{noise}: {once:?} {often:?}");
            assert!(often[1] <= 1, "{noise}: unchanged, {often:?}");
            let slower = verdicts(&four, 1.1, noise, 50);
            assert!(slower[0] <= 1, "{noise}: slower by 10 %, {slower:?}");
            assert!(often[0] >= passed && slower[1] >= 48, "{noise}: {often:?} {slower:?}");
        }
    }

    #[test]
    fn an_accepted_worsening_needs_the_whole_interval() {
        let of = |metric, ratios| judged(metric, ratios, 0.001, Some(0.05)).verdict;
        assert_eq!(of(Metric::Wall, [1.03, 1.035, 1.04]), Verdict::Passed);
        assert_eq!(of(Metric::Wall, [1.03, 1.04, 1.06]), Verdict::Failed);
        assert_eq!(of(Metric::Wall, [0.9, 1.0, 1.04]), Verdict::Passed, "much better is accepted");
        assert_eq!(of(Metric::Wall, [0.9, 1.0, 1.06]), Verdict::Undecided);
        assert_eq!(of(Metric::Printed, [0.96, 0.965, 0.97]), Verdict::Passed);
        assert_eq!(of(Metric::Printed, [0.94, 0.96, 0.97]), Verdict::Failed);
    }

    #[test]
    fn a_bound_is_shown_as_it_was_written() {
        let said = judged(Metric::Wall, [0.99, 1.0, 1.000_05], 0.001, Some(0.01 / 100.0)).sentence;
        assert!(said.contains("accepted up to 0.01 % worse"), "{said}");
        let said = judged(Metric::Wall, [1.0, 1.0601, 1.0612], 0.001, Some(6.125 / 100.0)).sentence;
        assert!(said.starts_with("`after` is worse than `before` by less than 6.125 %, if at all"), "{said}");
    }

    #[test]
    fn the_sentence_has_the_figure_its_interval_the_noise_and_the_verdict() {
        let said = judged(Metric::Wall, [1.08, 1.1, 1.12], 0.01, None).sentence;
        assert_eq!(
            said,
            "`after` is slower than `before`: wall time +10.0 % [+8.0 %, +12.0 %], noise ±1.0 %, 10 rounds. The gate fails."
        );
    }

    #[test]
    fn a_speed_up_must_be_shown_and_a_miss_must_exceed_the_noise() {
        use crate::rounds::scaling::Step;

        let of = |[low, median, high]: [f64; 3], noise: f64| {
            let step = |threads, speed_up| Step { threads, median: Some(1.0), speed_up };
            let scaling = Scaling {
                metric: Metric::Wall,
                rounds: 10,
                error: 0.05,
                again: Some(Ratio { median: 1.0, low: 1.0, high: 1.0 + noise }),
                steps: vec![step(1, None), step(2, Some(Ratio { median, low, high }))],
            };
            scaled("./job", &scaling, &Printed::default(), 1.7, Vec::new())
        };
        assert_eq!(of([1.75, 1.8, 1.9], 0.01).verdict, Verdict::Passed);
        assert_eq!(of([1.6, 1.8, 1.9], 0.01).verdict, Verdict::Undecided);
        assert_eq!(of([1.4, 1.5, 1.6], 0.01).verdict, Verdict::Failed);
        assert_eq!(of([1.4, 1.5, 1.6], 0.2).verdict, Verdict::Undecided);
        assert_eq!(
            of([1.4, 1.5, 1.6], 0.01).sentence,
            "2 threads are not 1.7 times as fast as 1 thread: speed-up 1.50 [1.40, 1.60] (wall time), noise ±1.0 %, \
             10 rounds. The gate fails."
        );
    }

    #[test]
    fn nothing_in_a_name_breaks_a_document() {
        let mut hostile = judged(Metric::Wall, [0.9, 1.0, 1.1], 0.01, None);
        hostile.subject = String::from("./a<b>&\"\n\u{1b}[31m|`");
        hostile.sentence = String::from("100 %\n::error::x <script>");
        assert!(
            hostile.junit(false).contains("skipped=\"1\"") && hostile.junit(true).contains("failures=\"1\"")
        );
        let text = hostile.junit(true);
        assert!(!text.contains('\u{1b}') && text.contains("./a&lt;b&gt;&amp;&quot; "), "{text}");
        assert_eq!(
            hostile.annotation(true),
            "::error title=spinpark gate compare%3A undecided::100 %25%0A::error::x <script>"
        );
        assert!(hostile.annotation(false).starts_with("::warning "));
        assert!(!hostile.markdown(false).contains("<script>"));
    }
}
