//! `spinpark compare`: glibc's locks against spinpark's, on an unchanged program.

pub(super) mod report;
mod request;
mod waiting;

use std::process::ExitCode;

use spinpark_measure::launch::Launcher;
use spinpark_measure::machine::{Noise, Watch};
use spinpark_measure::measure::{Measurement, measure};
use spinpark_measure::units::counted;

use self::request::Request;
use super::prepare::{Prepared, prepare};
use crate::cli::{Compare, DEMO_OPERATIONS};
use crate::progress::Progress;
use crate::say;
use crate::session::{Session, check_rounds};

/// How long one run of the demonstration should take on the faster locks, in seconds.
const DEMO_RUN_S: f64 = 0.6;

/// What was measured, and around it.
struct Measured {
    prepared: Prepared,
    measurement: Measurement,
    noise: Noise,
    /// Whether the program brings spinpark's locks itself; they were off in the baseline.
    had_drop_in: bool,
    /// A sentence on the share of the waiting that is not for locks that the drop-in replaces; none if the
    /// share is small, or was not recorded.
    waiting: Option<String>,
}

/// Checks the request, measures, reports.
pub(crate) fn run(compare: &Compare) -> anyhow::Result<ExitCode> {
    check_rounds(compare.rounds)?;
    let request = Request::new(compare)?;
    let session = Session::start(compare.seed)?;
    print_intro(&request);
    say::check()?;
    let mut launcher = Launcher::new(
        request.program.clone(),
        request.environments.clone(),
        &request.number,
        &session.interrupt,
    );
    let measured = launcher
        .run_around("--setup")
        .map_err(anyhow::Error::from)
        .and_then(|()| measure_all(&request, &session, &mut launcher));
    let cleaned = launcher.clean_up();
    drop(launcher);
    let exit = report::report(request, &session, measured?)?;
    cleaned?;
    Ok(exit)
}

fn print_intro(request: &Request) {
    if request.is_demo {
        request.say.wrapped(
            "Demonstration: 8 threads share one hot mutex, one read-mostly table (rwlock) and one condvar queue.",
            0,
        );
    } else {
        request
            .say
            .wrapped(&format!("Comparing glibc's locks with spinpark's: {}", request.command.join(" ")), 2);
    }
}

fn measure_all(
    request: &Request,
    session: &Session,
    launcher: &mut Launcher<'_>,
) -> anyhow::Result<Measured> {
    let mut prepared = prepare(launcher)?;
    let waiting = if request.is_demo { None } else { waiting::record(launcher) };
    if request.is_demo {
        prepared = adjust_demo(launcher, prepared);
    }
    if launcher.switches_off_drop_in() {
        request.say.wrapped(
            "The program runs on spinpark's locks by itself (linked with the drop-in, or preloaded on the way). They are off in \
             the runs on glibc's locks (SPINPARK_DISABLE=1).",
            0,
        );
    }
    request.say.wrapped(
        &format!(
            "{} of 3 runs in shuffled order (seed {}), about {:.0} s. Ctrl-C: the result so far.",
            counted(request.rounds, "round"),
            session.seed,
            prepared.estimate_s(request.rounds).ceil()
        ),
        0,
    );
    let watch = Watch::start();
    let mut progress = Progress::new(request.rounds * 3, Some(prepared.estimate_s(request.rounds)));
    let measurement = measure(request.rounds, session.seed, launcher, &mut progress);
    Ok(Measured {
        prepared,
        measurement,
        noise: watch.noise(),
        had_drop_in: launcher.switches_off_drop_in(),
        waiting,
    })
}

/// Gives the demonstration so much work that a run takes about [`DEMO_RUN_S`] on this machine.
fn adjust_demo(launcher: &mut Launcher<'_>, prepared: Prepared) -> Prepared {
    let fastest = [&prepared.glibc, &prepared.spinpark].into_iter().filter_map(|sample| sample.printed);
    let per_second = fastest.fold(1.0, f64::max);
    let operations = per_second * DEMO_RUN_S;
    launcher.set_args(request::demo_args(operations as u64));
    let scale = operations / DEMO_OPERATIONS as f64;
    let mut prepared = prepared;
    prepared.glibc.wall_s *= scale;
    prepared.spinpark.wall_s *= scale;
    prepared
}
