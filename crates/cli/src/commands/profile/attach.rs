//! `spinpark profile --pid`: where a process waits that runs already.

use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

use spinpark_profile::attach::{Sampler, Target};
use spinpark_profile::load::Loaded;
use spinpark_profile::model::Profile as Sampled;
use spinpark_profile::saved;
use spinpark_profile::symbols::Symbols;

use super::request::waits;
use super::show::Shower;
use super::{load, recording_directory};
use crate::cli::Profile;
use crate::exit;
use crate::progress::Progress;
use crate::session::on_interrupt;

/// 50 snapshots a second.
pub(super) const INTERVAL: Duration = Duration::from_millis(20);
/// Without `--for`.
const DEFAULT: Duration = Duration::from_secs(10);
/// Between two updates of the progress.
const STEP: Duration = Duration::from_millis(200);

/// Samples it, and reports.
pub(super) fn run(profile: &Profile, pid: u32) -> anyhow::Result<ExitCode> {
    let shower = Shower::new(&profile.show, false)?;
    let target = Target::open(pid, "spinpark profile --pid")?;
    let symbols = Symbols::new().with_debuginfod().with_waits(waits(&profile.show)?);
    let directory = recording_directory::create(profile.output.as_deref())?;
    let is_over = Arc::new(AtomicBool::new(false));
    let flag = Arc::clone(&is_over);
    on_interrupt(move || flag.store(true, Relaxed))?;
    let mut sampler = Sampler::new(target, symbols, INTERVAL)?;
    let progress = Progress::free();
    let time = profile.time.unwrap_or(DEFAULT);
    let mut left = time;
    while !left.is_zero() && !is_over.load(Relaxed) {
        let part = 1.0 - left.as_secs_f64() / time.as_secs_f64();
        progress.at(part, format!("sampling process {pid}, {:.0} s left", left.as_secs_f64().ceil()));
        let step = left.min(STEP);
        left -= step;
        if !sampler.sample(step, || !is_over.load(Relaxed)) {
            break;
        }
    }
    drop(progress);
    let sampled: Sampled = sampler.profile();
    let profiles = load::on_this_host(Loaded { profiles: vec![sampled], broken: Vec::new() });
    let loaded = load::Loaded { profiles, unmet: None };
    let saved = saved::save(&directory, &loaded.profiles.profiles, profile.max_size);
    let shown = shower.show(&loaded.profiles);
    let is_kept = load::kept_alone(saved, &loaded.profiles, &directory);
    shown.map(|()| if is_kept { ExitCode::SUCCESS } else { exit::FAILED.into() })
}
