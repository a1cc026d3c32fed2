//! What every measuring command needs: Ctrl-C, orphans, a seed, enough rounds.

use std::sync::Arc;

use anyhow::{Context, bail};
use spinpark_measure::process::{Interrupt, adopt_orphans, inherited, signals};
use spinpark_measure::rounds::environment::Environment;
use spinpark_measure::stats::bootstrap::MIN_BLOCKS;

/// A measurement in progress.
pub struct Session {
    /// Set by Ctrl-C.
    pub interrupt: Arc<Interrupt>,
    /// Where and when.
    pub environment: Environment,
    /// What decides the order of runs.
    pub seed: u64,
}

impl Session {
    /// Starts one. From here on, Ctrl-C ends the measurement instead of the process.
    pub fn start(seed: Option<u64>) -> anyhow::Result<Self> {
        let interrupt = Arc::new(Interrupt::new()?);
        let handler = Arc::clone(&interrupt);
        on_interrupt(move || handler.request())?;
        adopt_orphans();
        // 32 bits survive every JSON reader.
        let seed = seed.unwrap_or_else(|| rand::random::<u32>().into());
        Ok(Self { interrupt, environment: Environment::read(), seed })
    }
}

/// Calls `handler` at Ctrl-C, SIGTERM and SIGHUP, unless the command was started with that signal ignored
/// (`nohup`, `&`).
///
/// # Errors
///
/// If there is such a handler already.
pub fn on_interrupt(handler: impl FnMut() + Send + 'static) -> anyhow::Result<()> {
    // The handler's thread must not take signals that are meant for a profiled program.
    signals::while_blocked(|| ctrlc::set_handler(handler))
        .context("cannot block signals")?
        .context("cannot handle Ctrl-C")?;
    for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP] {
        if inherited::is_ignored(signal) {
            // SAFETY: to ignore is a valid disposition.
            unsafe { libc::signal(signal, libc::SIG_IGN) };
        }
    }
    Ok(())
}

/// Checks a number of rounds.
pub fn check_rounds(rounds: usize) -> anyhow::Result<()> {
    if rounds < MIN_BLOCKS {
        bail!(
            "--rounds {rounds} is too few for a 95 % interval: even with five, chance alone puts all of them on the \
             same side in 6 % of cases\nUse --rounds {MIN_BLOCKS} or more"
        );
    }
    Ok(())
}
