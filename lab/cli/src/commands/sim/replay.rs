//! `spinpark-lab sim replay`: a recorded program on a simulated machine.

use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Context, bail};
use spinpark_experiments::prediction::{Prediction, Proof, heading, json as document, render};
use spinpark_experiments::recording::Recorded;
use spinpark_experiments::summary::Summary;
use spinpark_measure::text::units::counted;
use spinpark_profile::load::load;
use spinpark_profile::symbols::Symbols;
use spinpark_sim::machine::Machine;
use spinpark_sim::workload::{Report, Setting};

use super::{many, stop_on_ctrl_c};
use crate::cli::{Replay, nanos};
use spinpark_cli::exit::BatchEnd;
use spinpark_cli::files::open;
use spinpark_cli::own;
use spinpark_cli::say::Say;

/// Checks the request, simulates, reports.
pub(super) fn run(wanted: &Replay) -> anyhow::Result<ExitCode> {
    let recorded = recorded(wanted)?;
    let machine = Machine::choose(&wanted.machine)?;
    let threads = wanted.threads.unwrap_or(recorded.workers);
    let home = home(wanted, &recorded)?;
    let proven = settings(wanted, &recorded, &[recorded.lock.to_owned()], &home, recorded.workers);
    let settings = settings(wanted, &recorded, &wanted.locks, &machine, threads);
    proven.iter().chain(&settings).step_by(wanted.seeds).try_for_each(Setting::check)?;
    let json = open(&wanted.out.json)?;
    let say = Say::apart_from(&[&wanted.out.json]);
    stop_on_ctrl_c()?;
    let style = say.style();
    say.line(style.wrap(&heading(&recorded, &machine.name, threads), 2));
    let made = many::run(&proven);
    let seeds: Vec<Report> = made.reports.iter().flatten().cloned().collect();
    let proof = match Summary::of(&home, &seeds) {
        Some(summary) if made.end == BatchEnd::Complete && summary.failure.is_none() => {
            Proof::new(&recorded, &home.name, &summary)
        }
        summary => {
            // An interrupted or failed run says so itself.
            if let Some((seed, what)) = summary.and_then(|summary| summary.failure) {
                note!("Simulated as it was recorded, the run with seed {seed} failed: {what}.");
            }
            made.say_end();
            return Ok(made.end.code(true));
        }
    };
    say.line(format!("\n{}", proof.render(&recorded, style)));
    let command = own::command_line();
    if !proof.holds {
        if let Some(json) = json {
            json.write_compact(&document(made.end.name(), &command, &recorded, &proof, &[]))?;
        }
        return Ok(made.end.code(true));
    }
    let made = many::run(&settings);
    let predictions: Vec<Prediction> = made
        .reports
        .chunks(wanted.seeds)
        .filter_map(|seeds| {
            let seeds: Vec<Report> = seeds.iter().flatten().cloned().collect();
            Some(Prediction::new(&recorded, &proof, Summary::of(&machine, &seeds)?))
        })
        .collect();
    if !predictions.is_empty() {
        say.line(format!("\n{}", render(&recorded, &predictions, style).trim_end()));
        if let Some(json) = json {
            json.write_compact(&document(made.end.name(), &command, &recorded, &proof, &predictions))?;
        }
    }
    Say { on_stderr: true }.wrapped(&made.speed(), 2);
    made.say_end();
    let has_failed = predictions.iter().any(|prediction| prediction.summary.failure.is_some());
    Ok(made.end.code(made.end == BatchEnd::Complete && has_failed))
}

/// A machine like the one that was recorded on.
fn home(wanted: &Replay, recorded: &Recorded) -> anyhow::Result<Machine> {
    let cpus = if recorded.cpus > 0 { recorded.cpus } else { recorded.threads };
    let usual = || format!("plain-{cpus}");
    let machine = Machine::choose(&wanted.recorded_on.clone().unwrap_or_else(usual))?;
    if recorded.cpus > 0 && machine.cpus() != recorded.cpus {
        let (cpus, has) = (recorded.cpus, machine.cpus());
        let name = if has > cpus { format!("{}:{cpus}", machine.name) } else { format!("plain-{cpus}") };
        bail!(
            "{} was recorded on {}, and {} has {has}\nName a machine with as many, such as {name}",
            recorded.program,
            counted(cpus as usize, "CPU"),
            machine.name
        );
    }
    Ok(machine)
}

fn recorded(wanted: &Replay) -> anyhow::Result<Recorded> {
    let loaded = load(&wanted.recording, &mut Symbols::new())
        .context("a recording of `spinpark profile --detail full` is needed")?;
    loaded.broken.iter().for_each(|error| note!("{error}"));
    let several = loaded.profiles.len();
    let pids: Vec<String> = loaded.profiles.iter().map(|profile| profile.pid.to_string()).collect();
    let is_meant = |pid: u32| wanted.process.is_none_or(|process| process == pid);
    let mut made: Vec<_> = loaded
        .profiles
        .iter()
        .filter(|profile| is_meant(profile.pid))
        .map(|profile| (profile.pid, Recorded::of(profile)))
        .collect();
    // The most acquisitions first; what cannot be simulated last, with its reason.
    made.sort_by_key(|(_, made)| std::cmp::Reverse(made.as_ref().map_or(0, |made| made.acquisitions)));
    let Some((pid, made)) = made.into_iter().next() else {
        bail!(
            "no process {} was recorded\nRecorded are {}",
            wanted.process.unwrap_or_default(),
            pids.join(", ")
        );
    };
    if several > 1 && wanted.process.is_none() && made.is_ok() {
        note!(
            "{several} processes were recorded. This is {pid}, with the most acquisitions; --process names another."
        );
    }
    made.with_context(|| format!("cannot simulate {}", wanted.recording.display()))
}

fn settings(
    wanted: &Replay,
    recorded: &Recorded,
    locks: &[String],
    machine: &Machine,
    threads: u32,
) -> Vec<Setting> {
    let replay = Arc::new(recorded.replay.clone());
    let mut settings = Vec::new();
    for lock in locks {
        for number in 0..wanted.seeds as u64 {
            let setting = Setting::new(machine.clone(), lock, "replay", threads);
            settings.push(Setting {
                seed: wanted.seed.wrapping_add(number),
                for_ns: nanos(wanted.duration),
                replay: Some(Arc::clone(&replay)),
                ..setting
            });
        }
    }
    settings
}
