//! The locks of the Rust library: they watch themselves, on their slow paths only.
//!
//! An acquisition that need not wait is not seen, and so its holder is not noted. But a release with waiters
//! is slow, and so its place is known: it replaces the place of the acquisition.
//!
//! The release of a lock that was waited for is made slow, to end the hold; but a waiter that gives up may
//! make it fast again. So a hold counts as measured only if no waiter has given up since it began.

use core::sync::atomic::Ordering::{Relaxed, Release};

use super::hold::Releasing;
use super::site_cache::LockCall;
use super::thread_state::ThreadState;
use super::Recorder;
use crate::format::{HolderId, RegionId, NONE};

impl Recorder {
    /// The noted hold of this lock has ended unrecorded: the thread is about to wait for it, or has waited.
    pub fn forget_hold(&self, own: &ThreadState, address: usize) {
        if let Some(found) = own.find(address) {
            self.forget_note(own, found);
        }
    }

    /// The thread is about to wait, and may be the first that does.
    pub fn forget_release(&self, address: usize) {
        let Some(shared) = self.shared.get() else { return };
        let slot = shared.slot(address);
        if slot.queue.load(Relaxed) == 0 {
            slot.release.store(0, Relaxed);
        }
    }

    /// A waiter has given up.
    pub fn disturb(&self, address: usize) {
        if let Some(shared) = self.shared.get() {
            shared.slot(address).disturbed.store(self.now(), Relaxed);
        }
    }

    /// As [`Recorder::release`]; the hold is not measured if an earlier one may have ended unrecorded. If the
    /// lock is not noted and has waiters, notes where it is released.
    pub fn release_seen(&self, own: &ThreadState, call: &LockCall) -> Releasing {
        let Some(shared) = self.shared.get() else { return Releasing::Unknown };
        let slot = shared.slot(call.address);
        let mut releasing = self.release(own, call.address);
        match &mut releasing {
            Releasing::Last(release) => release.forget_before(slot.disturbed.load(Relaxed)),
            _ if slot.queue.load(Relaxed) != 0 => {
                let stack = self.stack(own, call.site);
                slot.note_release(call.address, HolderId::ReleasedAt(stack).number());
            }
            _ => {}
        }
        releasing
    }

    /// The lock that is called for has this name. If it had another one, what was there is gone.
    pub fn name(&self, own: &ThreadState, call: &LockCall, name: &[u8]) {
        if let Some((_, lock)) = self.find_lock(call.address) {
            let text = lock.name.load(Relaxed);
            let is_other = text != NONE && !self.is_text(text, name);
            if is_other || lock.kind.load(Relaxed) != (call.kind)(call.address) as u32 {
                self.destroyed(call.address);
            } else if text != NONE {
                return;
            }
        }
        let stack = self.stack(own, call.site);
        let Some((_, lock)) = self.find_or_register(own, call.address, (call.kind)(call.address), || stack)
        else {
            return;
        };
        let Some(start) = self.file.append(RegionId::Text, name, 1) else { return };
        lock.name.store(start, Release);
    }

    /// Whether the name at `start` is `name`, which has no zero.
    fn is_text(&self, start: u32, name: &[u8]) -> bool {
        let has = |(at, byte): (u32, u8)| {
            // SAFETY: a name that was written, or what is behind it in the region, which is larger than any.
            unsafe { *self.file.at::<u8>(RegionId::Text, start + at) == byte }
        };
        (0..).zip(name.iter().copied().chain([0])).all(has)
    }
}
