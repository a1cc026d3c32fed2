//! A request to stop, as a file descriptor that `poll` can wait for.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::event::EventfdFlags;

/// Set once, by a signal; seen by every waiting thread.
#[derive(Debug)]
pub struct Interrupt {
    requested: AtomicBool,
    event: OwnedFd,
}

impl Interrupt {
    /// An interrupt that is not requested yet.
    ///
    /// # Errors
    ///
    /// If there are no file descriptors left.
    pub fn new() -> io::Result<Self> {
        let event = rustix::event::eventfd(0, EventfdFlags::CLOEXEC)?;
        Ok(Self { requested: AtomicBool::new(false), event })
    }

    /// Asks all threads to stop, for good.
    pub fn request(&self) {
        self.requested.store(true, Ordering::Relaxed);
        // Cannot fail: the counter is far from its limit. The write also orders the store for threads that
        // poll.
        let _ = rustix::io::write(&self.event, &1u64.to_ne_bytes());
    }

    /// Whether it is requested.
    #[must_use]
    pub fn is_requested(&self) -> bool {
        self.requested.load(Ordering::Relaxed)
    }

    /// Readable once requested.
    pub(super) fn fd(&self) -> &OwnedFd {
        &self.event
    }
}
