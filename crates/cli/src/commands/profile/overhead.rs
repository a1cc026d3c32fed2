//! `--overhead`: the cost of recording, measured on the program itself.

use std::process::Stdio;

use anyhow::{Context, bail};
use rand::rngs::Xoshiro256PlusPlus;
use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};
use spinpark_measure::process::ended::in_words;
use spinpark_measure::process::{self, ProcessError};
use spinpark_measure::rounds::failure::RunError;
use spinpark_measure::stats::Ratio;
use spinpark_measure::stats::bootstrap::ratio_interval;
use spinpark_profile::model::Cost;

use super::launch::Launch;
use crate::cli::{DetailChoice, Profile};
use crate::progress::Progress;
use crate::say::Say;
use crate::session::{Session, check_rounds};

/// What is compared: no recorder, the same again, and each detail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Configuration {
    None,
    Again,
    With(DetailChoice),
}

impl Configuration {
    const ALL: [Self; 6] = [
        Self::None,
        Self::Again,
        Self::With(DetailChoice::Off),
        Self::With(DetailChoice::Contended),
        Self::With(DetailChoice::Sampled),
        Self::With(DetailChoice::Full),
    ];

    fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Again => "none, again",
            Self::With(detail) => detail.word(),
        }
    }
}

/// The most padding in the environment, bytes: it varies the stack's place, so that no configuration profits
/// from one.
const PADDING: usize = 4096;

/// Runs the program in shuffled rounds, prints the result, and returns the cost of the detail that is
/// wanted.
pub(crate) fn measure(launch: &Launch, profile: &Profile) -> anyhow::Result<Cost> {
    check_rounds(profile.rounds)?;
    let session = Session::start(None)?;
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(session.seed);
    let progress = Progress::new(profile.rounds * Configuration::ALL.len(), None);
    let mut rounds: Vec<[f64; 6]> = Vec::new();
    'rounds: for _ in 0..profile.rounds {
        let mut order = [0, 1, 2, 3, 4, 5];
        order.shuffle(&mut rng);
        let mut walls = [0.0; 6];
        for configuration in order {
            progress.now(format!("recording: {}", Configuration::ALL[configuration].name()));
            let scratch = tempfile::tempdir().context("cannot make a temporary directory")?;
            let mut command = launch.command();
            if let Configuration::With(detail) = Configuration::ALL[configuration] {
                launch.set_environment_for(detail, &mut command, scratch.path());
            }
            command
                .stdin(Stdio::null())
                .env("SPINPARK_RANDOMIZED_ENVIRONMENT_OFFSET", "X".repeat(rng.random_range(0..PADDING)));
            let finished = match process::run(&mut command, profile.duration, &session.interrupt) {
                Err(ProcessError::Interrupted) => break 'rounds,
                finished => finished?,
            };
            if !finished.status.success() {
                bail!(
                    "the program {} (recording: {}); --overhead needs one that succeeds each time",
                    in_words(finished.status),
                    Configuration::ALL[configuration].name()
                );
            }
            walls[configuration] = finished.wall.as_secs_f64();
            progress.advance();
        }
        rounds.push(walls);
    }
    drop(progress);
    if session.interrupt.is_requested() && rounds.len() < profile.rounds {
        so_far(&rounds, profile, session.seed);
        return Err(RunError::Interrupted.into());
    }
    report(&rounds, profile, session.seed)
}

/// Time of configuration `configuration` ÷ time without a recorder.
fn ratio(rounds: &[[f64; 6]], configuration: usize, seed: u64) -> anyhow::Result<Ratio> {
    let ratios: Vec<f64> = rounds.iter().map(|walls| walls[configuration] / walls[0]).collect();
    ratio_interval(&ratios, seed).context("the program is too short to be measured")
}

/// What was measured before Ctrl-C.
fn so_far(rounds: &[[f64; 6]], profile: &Profile, seed: u64) {
    let say = Say { on_stderr: true };
    say.line(format_args!("Interrupted after {} of {} rounds.", rounds.len(), profile.rounds));
    if !rounds.is_empty() && report(rounds, profile, seed).is_err() {
        say.line("Too few for intervals; the medians of wall time ÷ without a recorder:");
        for (number, configuration) in Configuration::ALL.into_iter().enumerate().skip(1) {
            let mut ratios: Vec<f64> = rounds.iter().map(|walls| walls[number] / walls[0]).collect();
            ratios.sort_by(f64::total_cmp);
            say.line(format_args!("  {:<12} {:.3}", configuration.name(), ratios[ratios.len() / 2]));
        }
    }
}

/// Prints it; nothing if there is too little.
fn report(rounds: &[[f64; 6]], profile: &Profile, seed: u64) -> anyhow::Result<Cost> {
    let say = Say { on_stderr: true };
    let again = ratio(rounds, 1, seed)?;
    let noise = again.reach();
    say.line(format_args!(
        "What recording costs this program: wall time ÷ without a recorder, {} rounds in shuffled order (seed {seed}).",
        rounds.len()
    ));
    let mut cost = None;
    for (number, configuration) in Configuration::ALL.into_iter().enumerate().skip(1) {
        let ratio = ratio(rounds, number, seed)?;
        let says = words(&ratio, &again, configuration);
        say.line(format_args!(
            "  {:<12} {:.3}  [{:.3}, {:.3}]  {says}",
            configuration.name(),
            ratio.median,
            ratio.low,
            ratio.high
        ));
        if configuration == Configuration::With(profile.detail) {
            cost = Some(Cost {
                is_measured: true,
                ratio: ratio.median,
                interval: Some((ratio.low, ratio.high)),
                noise: Some(noise),
                sentence: format!(
                    "Recording with the detail `{}` took {:.3} [{:.3}, {:.3}] of the time without, measured on this program in \
                     {} rounds; two runs without a recorder differ by up to {:.1} %: {says}.",
                    profile.detail.word(),
                    ratio.median,
                    ratio.low,
                    ratio.high,
                    rounds.len(),
                    100.0 * noise,
                ),
            });
        }
    }
    say.line("");
    cost.context("every detail is measured")
}

/// The verdict on a ratio, given the noise.
fn words(ratio: &Ratio, again: &Ratio, configuration: Configuration) -> &'static str {
    if configuration == Configuration::Again {
        return "the noise";
    }
    // The same reach in both directions, whichever way two runs without a recorder happened to differ.
    let floor = 1.0 + again.reach();
    if ratio.low > floor {
        "slower"
    } else if ratio.high < 1.0 / floor {
        "FASTER: recording changes what it measures, as in document 004; do not trust this profile"
    } else if ratio.median > floor {
        "perhaps slower: the interval overlaps the noise; use more --rounds"
    } else if ratio.median < 1.0 / floor {
        "perhaps faster: the interval overlaps the noise; use more --rounds"
    } else {
        "within the noise"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn beside_the_noise() {
        let noise = Ratio { median: 0.98, low: 0.95, high: 1.01 };
        let says = |median, low, high| {
            words(&Ratio { median, low, high }, &noise, Configuration::With(DetailChoice::Full))
        };
        assert_eq!(words(&noise, &noise, Configuration::Again), "the noise");
        assert_eq!(says(1.01, 0.9, 1.2), "within the noise");
        assert_eq!(says(1.2, 1.1, 1.3), "slower");
        assert!(says(1.2, 1.01, 1.3).starts_with("perhaps slower"));
        assert!(says(0.9, 0.85, 0.94).starts_with("FASTER"));
        assert!(says(0.9, 0.85, 0.99).starts_with("perhaps faster"));
        // As far in both directions.
        assert_eq!(says(1.05, 1.03, 1.06), "within the noise");
    }
}
