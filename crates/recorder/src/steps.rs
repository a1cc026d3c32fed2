//! Stacks without unwinding: how far it is from a return address to the next one.
//!
//! Between a call and the return from it a function's frame has one size, unless the function asks for memory
//! on the stack (`alloca`). So the distance from a return address to its caller's, once found by unwinding,
//! is true for every stack with that address on it, of any thread and at any depth. A stack of known
//! addresses costs a lookup for each of them: all call sites of a program, recursion and wrappers are
//! distinguished without unwinding.
//!
//! On AArch64 it depends on what is called, and is followed by frame records instead, which most functions have:
//! what is known of an address is then that its function has one.
//!
//! An address whose frame was found to have another size more than a few times [varies](VARIES), and stacks
//! with it are unwound. Code that takes the place of other code (plugins, generated code) has those few
//! times.
//!
//! A slot is one word: the address (48 bits), how often its step changed (2) and the step, in words (14).
//! Slots are filled by compare-and-swap, and never emptied. Relaxed throughout: a word is complete in itself,
//! and a wrong step is found like a changed one.

use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

use super::arch::code_address;
use super::site::Site;
use super::stack_bounds::Bounds;
use super::unwind::Trace;
use crate::format::FRAMES;

/// Return addresses of which the steps are known at a time: 512 KB of memory, of which only what is used is
/// there.
const SLOTS: usize = 1 << 16;
/// A chain that is longer than this is a table that is full.
const LONGEST_CHAIN: usize = 16;

const STEP_BITS: u32 = 14;
const CHANGE_BITS: u32 = 2;
/// No return address follows: a thread's first function.
const END: u32 = (1 << STEP_BITS) - 1;
/// No single step is right, or it is too large to be kept.
const VARIES: u32 = END - 1;
/// The frame pointer that lies below this return address leads to the next one.
const BY_FRAME: u32 = END - 2;
const MOST_CHANGES: u32 = (1 << CHANGE_BITS) - 1;

fn word(address: usize, changes: u32, step: u32) -> u64 {
    (address as u64) << (STEP_BITS + CHANGE_BITS) | u64::from(changes) << STEP_BITS | u64::from(step)
}

fn address_of(word: u64) -> usize {
    (word >> (STEP_BITS + CHANGE_BITS)) as usize
}

fn step_of(word: u64) -> u32 {
    word as u32 & END
}

fn changes_of(word: u64) -> u32 {
    word as u32 >> STEP_BITS & MOST_CHANGES
}

fn start(address: usize) -> usize {
    address.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 48
}

/// All zero is an empty one.
#[repr(C)]
pub(crate) struct Steps {
    slots: [AtomicU64; SLOTS],
}

impl Steps {
    fn chain(&self, address: usize) -> impl Iterator<Item = &AtomicU64> {
        (0..LONGEST_CHAIN).map(move |at| &self.slots[(start(address) + at) % SLOTS])
    }

    /// The step from this return address, if it is known.
    #[inline(always)]
    fn of(&self, address: usize) -> Option<u32> {
        for slot in self.chain(address) {
            let found = slot.load(Relaxed);
            if address_of(found) == address && found != 0 {
                return Some(step_of(found));
            }
            if found == 0 {
                return None;
            }
        }
        None
    }

    /// Whether this is an address from which steps are known.
    pub(super) fn knows(&self, address: usize) -> bool {
        self.of(address).is_some()
    }

    /// The step from this return address was seen to be `step`.
    fn set(&self, address: usize, step: u32) {
        if address == 0 || address >> 48 != 0 {
            return;
        }
        for slot in self.chain(address) {
            let mut found = slot.load(Relaxed);
            if found == 0 {
                match slot.compare_exchange(0, word(address, 0, step), Relaxed, Relaxed) {
                    Ok(_) => return,
                    Err(other) => found = other,
                }
            }
            if address_of(found) != address {
                continue;
            }
            let changes = changes_of(found);
            if step_of(found) != step && step_of(found) != VARIES {
                let step = if changes == MOST_CHANGES { VARIES } else { step };
                let changed = word(address, (changes + 1).min(MOST_CHANGES), step);
                // If another thread has just changed it, its value is as good.
                let _ = slot.compare_exchange(found, changed, Relaxed, Relaxed);
            }
            return;
        }
    }

    /// Keeps the result of unwinding.
    pub(crate) fn learn(&self, trace: &Trace) {
        let (frames, places) = (&trace.frames[..trace.depth], &trace.places[..trace.depth]);
        for at in 0..trace.depth {
            let address = frames[at] as usize;
            // A place that is not known has no step to it, and none from it.
            if at > 0 && places[at] == 0 {
                continue;
            }
            let next = match places.get(at + 1) {
                Some(0) => continue,
                Some(_) if at >= trace.by_frame => {
                    self.set(address, BY_FRAME);
                    continue;
                }
                Some(next) => *next,
                None if !trace.is_cut => {
                    self.set(address, END);
                    continue;
                }
                None if trace.place_beyond != 0 && at < trace.by_frame => trace.place_beyond,
                None => continue,
            };
            let step = next.saturating_sub(places[at]);
            self.set(address, if step < BY_FRAME { step } else { VARIES });
        }
    }

    /// Fills `trace` with the stack above `site`; whether that was possible. Otherwise it has the part of it
    /// of which the steps are known, and the next address.
    #[inline]
    pub(crate) fn walk(&self, site: Site, bounds: Bounds, trace: &mut Trace) -> bool {
        trace.depth = 0;
        trace.by_frame = FRAMES;
        if !bounds.has(site.stack as usize) {
            return false;
        }
        let (mut address, mut place, mut depth) = (site.caller(), 0_u32, 0);
        loop {
            trace.frames[depth] = address as u64;
            trace.places[depth] = place;
            depth += 1;
            let Some(step) = self.of(address) else { return false };
            // An unknown address may be no return address.
            trace.depth = depth;
            if step == VARIES {
                return false;
            }
            trace.is_cut = depth == FRAMES && step != END;
            if step == END || depth == FRAMES {
                return true;
            }
            if step == BY_FRAME {
                // SAFETY: a word of this thread's own stack, below one that was read, above the call.
                let frame =
                    unsafe { site.stack.wrapping_add(place.saturating_sub(1) as usize).read_volatile() };
                let up = frame.wrapping_add(8).wrapping_sub(site.stack as usize) / 8;
                match u32::try_from(up) {
                    Ok(up) if up > place && frame % 8 == 0 => place = up,
                    _ => return false,
                }
            } else {
                place += step;
            }
            let at = site.stack.wrapping_add(place as usize);
            if step == 0 || !bounds.has(at as usize) {
                return false;
            }
            // SAFETY: a word of this thread's own stack, above the call.
            address = code_address(unsafe { at.read_volatile() });
        }
    }
}

#[cfg(test)]
mod tests {
    extern crate std;

    use std::boxed::Box;
    use std::vec::Vec;

    use super::*;

    fn steps() -> Box<Steps> {
        let slots: Vec<AtomicU64> = (0..SLOTS).map(|_| AtomicU64::new(0)).collect();
        let slots: Box<[AtomicU64; SLOTS]> = slots.into_boxed_slice().try_into().expect("`SLOTS` of them");
        // SAFETY: a `Steps` is this array.
        unsafe { Box::from_raw(Box::into_raw(slots).cast()) }
    }

    /// A stack that has return addresses in these places, and where it lies.
    fn stack(frames: &[(usize, u32)]) -> (Vec<usize>, Trace) {
        let mut words = std::vec![0xdead_usize; 64];
        let mut trace = Trace::empty();
        for (address, place) in frames {
            words[*place as usize] = *address;
            trace.push(*address, *place);
        }
        (words, trace)
    }

    fn walk(steps: &Steps, words: &[usize]) -> Option<Vec<u64>> {
        let site = Site { stack: words.as_ptr(), frame: core::ptr::null() };
        let low = words.as_ptr() as usize;
        let mut trace = Trace::empty();
        let done = steps.walk(site, Bounds { low, high: low + size_of_val(words) }, &mut trace);
        done.then(|| trace.frames[..trace.depth].to_vec())
    }

    #[test]
    fn what_two_stacks_teach_is_true_for_a_third() {
        let steps = steps();
        let (one, first) = stack(&[(0x1001, 0), (0x2002, 4), (0x3003, 9)]);
        assert_eq!(walk(&steps, &one), None);
        steps.learn(&first);
        assert_eq!(walk(&steps, &one), Some([0x1001, 0x2002, 0x3003].to_vec()));
        // Recursion: the same frame again and again, at places where no stack had it.
        steps.learn(&stack(&[(0x1001, 0), (0x2002, 4), (0x2002, 9), (0x3003, 14)]).1);
        let (deep, _) = stack(&[(0x1001, 0), (0x2002, 4), (0x2002, 9), (0x2002, 14), (0x3003, 19)]);
        assert_eq!(walk(&steps, &deep), Some([0x1001, 0x2002, 0x2002, 0x2002, 0x3003].to_vec()));
        let (strange, _) = stack(&[(0x1001, 0), (0x4004, 4), (0x3003, 9)]);
        assert_eq!(walk(&steps, &strange), None, "an address that was never seen");
    }

    #[test]
    fn a_frame_of_many_sizes_is_unwound() {
        let steps = steps();
        for size in 3..6 {
            let (words, trace) = stack(&[(0x1001, 0), (0x2002, size)]);
            steps.learn(&trace);
            assert_eq!(
                walk(&steps, &words),
                Some([0x1001, 0x2002].to_vec()),
                "code in the place of other code"
            );
        }
        for size in 7..20 {
            steps.learn(&stack(&[(0x1001, 0), (0x2002, size)]).1);
        }
        assert_eq!(walk(&steps, &stack(&[(0x1001, 0), (0x2002, 19)]).0), None);
    }

    #[test]
    fn a_stack_that_is_cut_stays_so() {
        let steps = steps();
        let mut frames: Vec<(usize, u32)> =
            (0..FRAMES as u32).map(|at| (0x1000 + at as usize, 2 * at)).collect();
        let (words, mut trace) = stack(&frames);
        assert!(!trace.push(0x9999, 2 * FRAMES as u32));
        steps.learn(&trace);
        assert_eq!(walk(&steps, &words).map(|frames| frames.len()), Some(FRAMES));
        frames.truncate(3);
        assert_eq!(walk(&steps, &stack(&frames).0), None, "its end was never seen");
    }

    #[test]
    fn many_addresses_are_told_apart() {
        let steps = steps();
        for address in 1..20_000 {
            steps.set(address * 16 + 5, (address % 1_000) as u32);
        }
        let known =
            (1..20_000).filter(|address| steps.of(address * 16 + 5) == Some((address % 1_000) as u32));
        assert!(known.count() > 19_000);
        assert_eq!(steps.of(7), None);
    }
}
