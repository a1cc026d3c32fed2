//! What delays at a lock have shown, for people: a table, and a sentence that says no more than it may.

use super::{Printed, Style, interval, metric_name, table, text, value};
use crate::rounds::sample::Metric;
use crate::rounds::whatif::{Arm, Doubt, Effect, Verdict};
use crate::stats::Estimate;
use crate::stats::bootstrap::MIN_BLOCKS;
use crate::text::units::{change, percent, time};

/// What the document is called in its field `format`.
pub const FORMAT: &str = "spinpark whatif";

/// The version of its structure. It grows when a field changes its meaning or goes.
pub const VERSION: u32 = 1;

/// By how much a section is longer in the sentence: not far from what it is.
const A_LITTLE: f64 = 0.1;

/// Where the delays were.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// Inside sections.
    Inside,
    /// Before attempts.
    Before,
    /// Between failed tries.
    Retry,
    /// After releases.
    After,
    /// Before wake-ups.
    Wake,
}

/// What was asked.
#[derive(Debug, Clone)]
pub struct Question<'a> {
    /// The lock's name.
    pub lock: &'a str,
    /// Where the delays were.
    pub place: Place,
    /// The whole delay, ns.
    pub delay_ns: u64,
    /// The mean length of a section, ns, if sections are seen.
    pub section_ns: Option<f64>,
    /// The share of the recorded run in which it was held.
    pub held: Option<f64>,
    /// The lock of the control.
    pub other: Option<&'a str>,
    /// What the program's own number means.
    pub printed: &'a Printed,
}

/// The table, one row for each arm.
#[must_use]
pub fn render(effect: &Effect, printed: &Printed, style: Style) -> String {
    let metric = metric_name(effect.metric, printed);
    let header = ["delay", "each", "delays a run", &format!("{metric} (median)"), "change", "95 % interval"];
    let mut rows = table(style, &header);
    let or_dash = |text: Option<String>| text.unwrap_or_else(|| String::from("–"));
    for row in &effect.rows {
        let ratio = if row.arm == Arm::NoneAgain { effect.again.as_ref() } else { row.change.as_ref() };
        let is_none = row.delay_ns == 0;
        rows.add_row(vec![
            row.arm.name().to_owned(),
            if is_none { String::from("–") } else { time(row.delay_ns as f64) },
            or_dash(row.delays.filter(|_| !is_none).map(crate::text::units::number)),
            or_dash(row.median.map(|median| value(effect.metric, median))),
            or_dash(ratio.map(|ratio| change(ratio.median))),
            or_dash(ratio.map(interval)),
        ]);
    }
    text(&rows)
}

impl Question<'_> {
    /// By how many whole delays sections are longer by [`A_LITTLE`]; one delay, if it is not about sections.
    fn delays(&self) -> f64 {
        match (self.place, self.section_ns) {
            (Place::Inside, Some(section)) if self.delay_ns > 0 => A_LITTLE * section / self.delay_ns as f64,
            _ => 1.0,
        }
    }

    fn subject(&self) -> String {
        let (lock, delay) = (self.lock, time(self.delay_ns as f64));
        match (self.place, self.section_ns) {
            (Place::Inside, Some(_)) => format!("Sections of `{lock}` longer by 10 %"),
            (Place::Inside, None) => format!("{delay} more in each section of `{lock}`"),
            (Place::Before, _) => format!("{delay} before each attempt at `{lock}`"),
            (Place::Retry, _) => format!("{delay} after each failed try for `{lock}`"),
            (Place::After, _) => format!("{delay} after each release of `{lock}`"),
            (Place::Wake, _) => format!("{delay} before each wake-up of `{lock}`"),
        }
    }

    fn of_metric(&self, metric: Metric) -> String {
        let name = metric_name(metric, self.printed);
        if metric == Metric::Printed && self.printed.unit.is_empty() { format!("the {name}") } else { name }
    }

    /// What halved sections gain, as a part of the metric, if the line goes on. That can be more than half of the time
    /// in which the lock is held: shorter sections also meet fewer waiters, so that sleeping and waking up goes, too.
    fn gain(&self, slope: f64, is_rate: bool) -> f64 {
        let of_sections = slope * self.delays() / A_LITTLE;
        let saved = (of_sections / 2.0).clamp(0.0, 0.99);
        if is_rate { 1.0 / (1.0 - saved) - 1.0 } else { saved }
    }

    /// `18 % [17 %, 19 %]`.
    fn gains(&self, slope: Estimate, is_rate: bool) -> String {
        let of = |slope| short(self.gain(slope, is_rate));
        format!("{} [{}, {}]", of(slope.median), of(slope.low), of(slope.high))
    }
}

/// A cost in time as a part of the metric: of a rate, what is lost of it.
fn part(time: f64, is_rate: bool) -> f64 {
    if is_rate { 1.0 - 1.0 / (1.0 + time).max(f64::MIN_POSITIVE) } else { time }
}

/// `7.1 % [6.0 %, 8.4 %]`.
fn parts(times: Estimate, is_rate: bool) -> String {
    let of = |time: f64| {
        let shown = percent(part(time, is_rate));
        if shown == "-0.0 %" { String::from("0.0 %") } else { shown }
    };
    format!("{} [{}, {}]", of(times.median), of(times.low), of(times.high))
}

/// The answer, in sentences.
#[must_use]
pub fn answer(question: &Question<'_>, effect: &Effect) -> String {
    let (subject, metric) = (question.subject(), question.of_metric(effect.metric));
    let is_sections = question.place == Place::Inside && question.section_ns.is_some();
    let verb = |one: &str, several: &str| if is_sections { several.to_owned() } else { one.to_owned() };
    let Some(slope) = effect.slope.filter(|_| !effect.reasons.contains(&Doubt::FewRounds)) else {
        return format!(
            "Undecided: {} of the rounds count, and a 95 % interval needs {MIN_BLOCKS}.",
            effect.rounds
        );
    };
    let cost = slope.times(question.delays());
    match effect.verdict {
        Verdict::Costs => {
            let costs =
                format!("{subject} {} {} of {metric}", verb("costs", "cost"), parts(cost, effect.is_rate));
            match is_sections {
                true => format!(
                    "{costs}. If that goes on for shorter ones, and nothing else becomes the limit, halving them gains {}.",
                    question.gains(slope, effect.is_rate)
                ),
                false => format!("{costs}."),
            }
        }
        Verdict::Saves => {
            let saved = Estimate { median: -cost.median, low: -cost.high, high: -cost.low };
            let saves = format!("{subject} {} {} of {metric}", verb("saves", "save"), parts(saved, false));
            match is_sections {
                true => format!("{saves}: shorter ones are not what makes this program faster."),
                false => format!("{saves}."),
            }
        }
        Verdict::Little => {
            let most = percent(part(cost.high.max(0.0), effect.is_rate));
            let costs = format!(
                "{subject} {} at most {most} of {metric} ({})",
                verb("costs", "cost"),
                parts(cost, effect.is_rate)
            );
            match is_sections {
                true => format!(
                    "{costs}. If that goes on for shorter ones, halving them gains at most {}.",
                    short(question.gain(slope.high, effect.is_rate))
                ),
                false => format!("{costs}."),
            }
        }
        Verdict::Undecided if effect.reasons == [Doubt::ContainsZero] => {
            let most = match is_sections {
                true => format!(
                    " If they do, and that goes on for shorter ones, halving them gains up to {}.",
                    short(question.gain(slope.high, effect.is_rate))
                ),
                false => String::new(),
            };
            format!(
                "Undecided whether {} {} anything: {} of {metric}.{most}",
                lower_first(&subject),
                verb("costs", "cost"),
                parts(cost, effect.is_rate)
            )
        }
        Verdict::Undecided => {
            let why: Vec<String> =
                effect.reasons.iter().map(|doubt| doubted(*doubt, question, effect)).collect();
            format!(
                "Undecided: {} {} {} of {metric}, but {}.",
                lower_first(&subject),
                verb("costs", "cost"),
                parts(cost, effect.is_rate),
                why.join("; and ")
            )
        }
    }
}

fn doubted(doubt: Doubt, question: &Question<'_>, effect: &Effect) -> String {
    match doubt {
        Doubt::FewRounds | Doubt::ContainsZero => String::from("the interval does not tell"),
        Doubt::WithinNoise => {
            let floor = effect.again.map_or(0.0, |again| again.reach());
            format!("all of the delay does not change more than the noise of ±{}", percent(floor))
        }
        Doubt::NotLinear => String::from(
            "the effect is not proportional to the delay, so that less of it may have another one (smaller delays: --delay)",
        ),
        Doubt::Outside => String::from(
            "the same delays outside of locks may cost as much: then it is the threads' time that counts, not that they have \
             the lock",
        ),
        Doubt::OtherLock => format!(
            "the same delays at `{}`, for which no thread waits, may cost as much",
            question.other.unwrap_or("another lock")
        ),
    }
}

/// What the recording alone says, without an experiment.
#[must_use]
pub fn bound(question: &Question<'_>, waited: Option<f64>) -> Option<String> {
    let held = question.held?;
    let waits = waited.map_or_else(String::new, |share| {
        format!(", and threads waited {} of their time for it: neither says what that costs", short(share))
    });
    Some(format!("In the recorded run `{}` was held {} of the time{waits}.", question.lock, short(held)))
}

/// `36 %`; with a decimal below 10.
fn short(fraction: f64) -> String {
    if fraction >= 0.0995 { format!("{:.0} %", fraction * 100.0) } else { percent(fraction) }
}

/// Names in backquotes stay as they are.
fn lower_first(text: &str) -> String {
    text.strip_prefix('S').map_or_else(|| text.to_owned(), |rest| format!("s{rest}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::Ratio;

    fn effect(slope: (f64, f64, f64), is_rate: bool, reasons: Vec<Doubt>) -> Effect {
        let verdict = match slope.0 {
            _ if !reasons.is_empty() => Verdict::Undecided,
            slope if slope > 0.0 => Verdict::Costs,
            _ => Verdict::Saves,
        };
        Effect {
            metric: if is_rate { Metric::Printed } else { Metric::Wall },
            is_rate,
            rounds: 10,
            failed: 0,
            rows: Vec::new(),
            again: Some(Ratio { median: 1.0, low: 0.99, high: 1.01 }),
            slope: Some(Estimate { median: slope.0, low: slope.1, high: slope.2 }),
            bend: None,
            over_outside: None,
            over_other: None,
            verdict,
            reasons,
        }
    }

    fn question(place: Place, printed: &Printed) -> Question<'_> {
        Question {
            lock: "cache_lock",
            place,
            delay_ns: 1_000,
            section_ns: Some(1_000.0),
            held: Some(0.9),
            other: Some("calm"),
            printed,
        }
    }

    #[test]
    fn answers() {
        let (none, rate) =
            (Printed::default(), Printed { unit: String::from("throughput"), higher_is_better: true });
        let inside = question(Place::Inside, &none);
        assert_eq!(
            answer(&inside, &effect((0.4, 0.36, 0.44), false, vec![])),
            "Sections of `cache_lock` longer by 10 % cost 4.0 % [3.6 %, 4.4 %] of wall time. If that goes on for shorter ones, and \
             nothing else becomes the limit, halving them gains 20 % [18 %, 22 %]."
        );
        // As a rate: 1 / 1.07; and 1 / (1 - 0.35).
        assert_eq!(
            answer(&question(Place::Inside, &rate), &effect((0.7, 0.6, 0.8), true, vec![])),
            "Sections of `cache_lock` longer by 10 % cost 6.5 % [5.7 %, 7.4 %] of throughput. If that goes on for shorter ones, and \
             nothing else becomes the limit, halving them gains 54 % [43 %, 67 %]."
        );
        assert_eq!(
            answer(&question(Place::Wake, &none), &effect((0.4, 0.36, 0.44), false, vec![])),
            "1.00 µs before each wake-up of `cache_lock` costs 40.0 % [36.0 %, 44.0 %] of wall time."
        );
        assert!(answer(&inside, &effect((-0.2, -0.3, -0.1), false, vec![])).starts_with(
            "Sections of `cache_lock` longer by 10 % save 2.0 % [1.0 %, 3.0 %] of wall time: shorter ones"
        ));
        let little = Effect { verdict: Verdict::Little, ..effect((0.001, -0.004, 0.01), false, vec![]) };
        assert_eq!(
            answer(&inside, &little),
            "Sections of `cache_lock` longer by 10 % cost at most 0.1 % of wall time (0.0 % [0.0 %, 0.1 %]). If that goes on \
             for shorter ones, halving them gains at most 0.5 %."
        );
        // Waits and wake-ups cost, too: more than the time in which it is held.
        let little = Question { held: Some(0.1), ..question(Place::Inside, &none) };
        assert!(answer(&little, &effect((0.4, 0.3, 0.5), false, vec![])).contains("gains 20 % [15 %, 25 %]"));
    }

    #[test]
    fn doubts() {
        let none = Printed::default();
        let inside = question(Place::Inside, &none);
        let said = |doubts: &[Doubt]| answer(&inside, &effect((0.4, -0.1, 0.9), false, doubts.to_vec()));
        assert_eq!(
            said(&[Doubt::ContainsZero]),
            "Undecided whether sections of `cache_lock` longer by 10 % cost anything: 4.0 % [-1.0 %, 9.0 %] of wall time. If \
             they do, and that goes on for shorter ones, halving them gains up to 45 %."
        );
        let both = said(&[Doubt::Outside, Doubt::OtherLock]);
        assert!(both.starts_with("Undecided: sections of `cache_lock` longer by 10 % cost 4.0 % "), "{both}");
        assert!(
            both.contains("outside of locks") && both.contains("; and the same delays at `calm`"),
            "{both}"
        );
        assert!(said(&[Doubt::FewRounds]).starts_with("Undecided: 10 of the rounds count"));
        let bound = bound(&inside, Some(0.62)).unwrap();
        assert_eq!(
            bound,
            "In the recorded run `cache_lock` was held 90 % of the time, and threads waited 62 % of their time for it: neither \
             says what that costs."
        );
    }
}
