//! An MCS lock of which a newcomer may take the place at the head.

use spinpark_classics::mcs::McsLock;
use spinpark_platform::{AtomicU32 as _, Ordering::Acquire, Ordering::Relaxed, Ordering::Release, Platform};

/// A thread that comes while the lock is free takes it, past the queue.
pub struct BargingLock<P: Platform> {
    line: McsLock<P>,
    held: P::AtomicU32,
    barges: bool,
}

impl<P: Platform> BargingLock<P> {
    /// Free. It is first come, first served unless it `barges`.
    pub fn new(barges: bool) -> Self {
        Self { line: McsLock::new(), held: P::AtomicU32::new(0), barges }
    }

    fn take(&self) -> bool {
        self.held.load(Relaxed) == 0 && self.held.compare_exchange(0, 1, Acquire, Relaxed).is_ok()
    }

    /// Runs `section` with the lock held.
    pub fn with(&self, section: impl FnOnce()) {
        let run = || {
            section();
            self.held.store(0, Release);
        };
        if self.barges && self.take() {
            return run();
        }
        self.line.with(|| {
            while !self.take() {
                P::spin_hint();
            }
            run();
        });
    }
}
