//! Semaphores that are used as locks, and which thread has them.
//!
//! A semaphore has no owner. But one that was created with a count of 1, for threads of one process, and that
//! is posted only by the thread that took it last, is a lock as far as was seen. A thread notes in memory of
//! its own which semaphores it has taken and not posted since. When it is about to block, it notes those that
//! are locks in its table, as addresses: so a reader sees whether threads wait for each other.
//!
//! A map by hash says how semaphores are used; its bits are set and never cleared. So what is not known, or
//! shares its place there with a semaphore that is no lock, counts as none. So does one that a signal handler
//! takes or posts while its thread changes the list (it stays there), and each that a thread uses after such
//! a handler has left that change by a jump.

use core::cell::Cell;
use core::sync::atomic::{compiler_fence, Ordering::Relaxed, Ordering::SeqCst};

use super::hash::hash;
use super::thread_state::{here, Taken, ThreadState};
use super::Recorder;

/// It was created with a count of 1, for threads of one process.
const AS_A_LOCK: u8 = 1;
/// It was created otherwise, or posted by a thread that does not have it.
const OTHERWISE: u8 = 2;

impl Taken {
    /// What `act` returns for the list; `None` if a call of this thread, which a signal interrupted, changes
    /// it.
    #[inline(always)]
    fn unless_changing<R>(&self, act: impl FnOnce() -> R) -> Option<R> {
        if self.changes.replace(true) {
            return None;
        }
        // A handler of this thread sees the mark before the first change, and the list whole after the mark.
        compiler_fence(SeqCst);
        let result = act();
        compiler_fence(SeqCst);
        self.changes.set(false);
        Some(result)
    }

    /// Where there is no space, it is not noted: the reader then knows no owner.
    #[inline(always)]
    fn push(&self, address: usize) -> Option<()> {
        self.unless_changing(|| {
            let count = self.count.get();
            if let Some(free) = self.addresses.get(count) {
                free.set(address);
                self.count.set(count + 1);
            }
        })
    }

    /// Whether it was there.
    #[inline(always)]
    fn remove(&self, address: usize) -> Option<bool> {
        self.unless_changing(|| {
            let count = self.count.get();
            let Some(at) = self.addresses.iter().take(count).rposition(|taken| taken.get() == address) else {
                return false;
            };
            self.addresses[at].set(self.addresses[count - 1].get());
            self.count.set(count - 1);
            true
        })
    }
}

impl Recorder {
    /// A semaphore was created at `address`.
    pub fn semaphore_created(&self, address: usize, is_lock: bool) {
        self.use_semaphore(address, if is_lock { AS_A_LOCK } else { OTHERWISE });
    }

    /// The calling thread has taken it.
    #[inline(always)]
    pub fn semaphore_taken(&self, address: usize) {
        if here().semaphores.push(address).is_none() {
            self.use_semaphore(address, OTHERWISE);
        }
    }

    /// The calling thread is about to post it.
    #[inline(always)]
    pub fn semaphore_posted(&self, address: usize) {
        if here().semaphores.remove(address) != Some(true) {
            self.use_semaphore(address, OTHERWISE);
        }
    }

    /// Relaxed: a reader of the file decides by what was noted before threads blocked, and by nothing else.
    #[inline(always)]
    fn use_semaphore(&self, address: usize, how: u8) {
        let uses = &self.semaphores[hash(address)];
        if uses.load(Relaxed) & how == 0 {
            uses.fetch_or(how, Relaxed);
        }
    }

    /// The calling thread is about to block: notes which locks of this kind it has.
    #[inline(always)]
    pub(super) fn publish_semaphores(&self, own: &ThreadState) {
        let taken = &here().semaphores;
        let noted = &own.table().semaphores;
        if taken.count.get() == 0 && noted[0].load(Relaxed) == 0 {
            return;
        }
        // While the list changes under a handler, none is known.
        let count = if taken.changes.get() { 0 } else { taken.count.get() };
        let addresses = taken.addresses.iter().take(count).map(Cell::get);
        let mut locks =
            addresses.filter(|address| self.semaphores[hash(*address)].load(Relaxed) == AS_A_LOCK);
        // Written before the wait is, whose first word a reader looks for.
        noted.iter().for_each(|place| place.store(locks.next().unwrap_or(0) as u64, Relaxed));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::TAKEN;

    #[test]
    fn a_handler_leaves_a_list_that_changes_as_it_is() {
        let taken = Taken {
            addresses: [const { Cell::new(0) }; TAKEN],
            count: Cell::new(0),
            changes: Cell::new(false),
        };
        assert_eq!(taken.push(16), Some(()));
        let in_a_handler = taken.unless_changing(|| (taken.push(32), taken.remove(16)));
        assert_eq!(in_a_handler, Some((None, None)));
        assert_eq!(taken.remove(32), Some(false));
        assert_eq!(taken.remove(16), Some(true));
        assert_eq!(taken.count.get(), 0);
    }
}
