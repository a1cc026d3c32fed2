//! The table of stacks: each is written once. Two threads that have the same new stack at a time may both
//! write it; readers merge equal ones.

use core::ptr;
use core::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use core::sync::atomic::{AtomicU32, AtomicU64};

use super::shared_tables::STACK_SLOTS;
use super::unwind::Trace;
use super::Recorder;
use crate::format::{RegionId, Stack, NONE};

/// A chain that is longer than this is a table that is full.
const LONGEST_CHAIN: usize = 128;

fn hash(trace: &Trace) -> u64 {
    let mix = |hash: u64, frame: &u64| (hash.rotate_left(23) ^ frame).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    trace.frames[..trace.depth].iter().fold(trace.depth as u64, mix) | 1
}

impl Stack {
    /// Whether it goes through a module that was unloaded. Relaxed: code of another module at these addresses
    /// runs after the loader's own synchronisation.
    #[inline(always)]
    pub(crate) fn is_retired(&self) -> bool {
        self.is_retired.load(Relaxed) != 0
    }
}

impl Recorder {
    /// The record with a number that was returned by [`Recorder::add_stack`].
    pub(crate) fn stack_record(&self, number: u32) -> &Stack {
        // SAFETY: such a record was claimed and written.
        unsafe { &*self.file.at::<Stack>(RegionId::Stacks, number) }
    }

    /// The number of this stack, which may be new; [`NONE`] if there is no space.
    pub(crate) fn add_stack(&self, trace: &Trace) -> u32 {
        let Some(shared) = self.shared.get() else { return NONE };
        let hash = hash(trace);
        let frames = &trace.frames[..trace.depth];
        let start = (hash >> 40) as usize;
        let mut written = None;
        for step in 0..LONGEST_CHAIN {
            let slot = &shared.stacks[(start + step) % STACK_SLOTS];
            if slot.load(Acquire) == 0 {
                let number = match written {
                    Some(number) => number,
                    None => match self.write_stack(trace, hash) {
                        NONE => return NONE,
                        number => number,
                    },
                };
                if slot.compare_exchange(0, number + 1, AcqRel, Acquire).is_ok() {
                    return number;
                }
                written = Some(number);
            }
            let number = slot.load(Acquire) - 1;
            let stack = self.stack_record(number);
            if stack.hash.load(Acquire) == hash
                && !stack.is_retired()
                && stack.frames.get(..stack.depth as usize) == Some(frames)
            {
                return number;
            }
        }
        NONE
    }

    fn write_stack(&self, trace: &Trace, hash: u64) -> u32 {
        let frames = &trace.frames[..trace.depth];
        let maps = self.snapshot_for(frames);
        let Some((number, record)) = self.file.claim::<Stack>(RegionId::Stacks) else { return NONE };
        let stack = Stack {
            hash: AtomicU64::new(0),
            depth: trace.depth as u16,
            is_cut: u16::from(trace.is_cut),
            is_retired: AtomicU32::new(0),
            maps,
            method: trace.method as u32,
            frames: trace.frames,
        };
        // SAFETY: claimed for this thread; a whole record is there.
        unsafe { ptr::write(record, stack) };
        // SAFETY: written just now, and never moved.
        unsafe { &*record }.hash.store(hash, Release);
        number
    }
}
