//! Warm-up, counting, the end: what threads of a load look at between two operations, instead of a clock.

use std::sync::atomic::{AtomicU8, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// Where a run is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// Operations do not count yet.
    WarmUp,
    /// They do.
    Counted,
    /// Stop.
    Over,
}

/// The phase that everybody sees.
#[derive(Debug, Default)]
pub struct Phases(AtomicU8);

impl Phases {
    /// The phase now.
    #[must_use]
    pub fn now(&self) -> Phase {
        match self.0.load(Ordering::Relaxed) {
            0 => Phase::WarmUp,
            1 => Phase::Counted,
            _ => Phase::Over,
        }
    }

    /// Ends it, early or not.
    pub fn stop(&self) {
        self.0.store(2, Ordering::Relaxed);
    }

    /// Lets the phases go by. Returns how long operations were counted. [`Phases::stop`] ends it early.
    pub fn run(&self, warm_up: Duration, counted: Duration) -> Duration {
        self.wait(warm_up);
        if self.0.compare_exchange(0, 1, Ordering::Relaxed, Ordering::Relaxed).is_err() {
            return Duration::ZERO;
        }
        let start = Instant::now();
        self.wait(counted);
        self.stop();
        start.elapsed()
    }

    fn wait(&self, time: Duration) {
        let end = Instant::now() + time;
        loop {
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() || self.now() == Phase::Over {
                return;
            }
            thread::sleep(left.min(Duration::from_millis(50)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_after_the_other() {
        let phases = Phases::default();
        assert_eq!(phases.now(), Phase::WarmUp);
        assert!(phases.run(Duration::ZERO, Duration::from_millis(1)) >= Duration::from_millis(1));
        assert_eq!(phases.now(), Phase::Over);
    }

    #[test]
    fn stopped_before_it_began() {
        let phases = Phases::default();
        phases.stop();
        assert_eq!(phases.run(Duration::from_secs(3600), Duration::from_secs(3600)), Duration::ZERO);
    }
}
