//! How late a timer is.

use std::sync::atomic::AtomicU32;
use std::time::{Duration, Instant};

use super::cpus::{Cpus, pin};
use super::spread::quick;
use super::{CalibrateError, futex};

/// How much later than asked a thread runs again that waits for a futex for 50 µs, ns: the timer, the CPU
/// that was idle, the way back.
pub(super) fn lateness(cpus: &Cpus) -> Result<Option<f64>, CalibrateError> {
    const TIMEOUT: Duration = Duration::from_micros(50);
    pin(cpus.main().cpu)?;
    let word = AtomicU32::new(0);
    let late: Vec<f64> = (0..200)
        .map(|_| {
            let start = Instant::now();
            futex::wait(&word, 0, Some(TIMEOUT));
            start.elapsed().saturating_sub(TIMEOUT).as_nanos() as f64
        })
        .collect();
    Ok(quick(&late))
}
