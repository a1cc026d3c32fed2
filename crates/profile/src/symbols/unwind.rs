//! The call chain of a thread that is blocked in a system call, from a copy of its stack.
//!
//! From outside, only two registers of such a thread are known: where its code is, and where its stack ends. (A
//! core dump has all of them.)
//! That is enough wherever unwind tables count from the end of the stack, as most of libc does. A function
//! that keeps its frame in another register (`vfprintf` does, since it allocates by the size of a format)
//! needs that register's value, which a function below it may have saved; if none has, the return address is
//! looked for in the words above: it is the one behind a call of this very function. What earlier calls have
//! left on the stack is behind calls of others. (On AArch64 a return address may lie anywhere in a frame, or in a
//! register, and there the chain ends instead.) Code without a table has a frame pointer
//! ([`frame_pointer`](super::frame_pointer)), or is where the chain ends.

use std::collections::HashMap;
use std::sync::Arc;

use super::frame_pointer::{LARGEST, Step};
use super::module::{Module as File, Rules};
use super::{Maps, Symbols};
use crate::machine::{self, POINTER, RETURN, STACK};

/// More frames are not followed.
const MOST: usize = 64;
/// What is known of more addresses is forgotten: a program that makes code has ever new ones.
const MOST_KNOWN: usize = 1 << 16;

/// What was looked up of addresses in the code of a process.
#[derive(Debug, Default)]
pub(super) struct Code {
    /// The unwind tables' rows of return addresses.
    rules: HashMap<u64, Option<Arc<Rules>>>,
    /// Whether words are behind a call.
    behind_calls: HashMap<u64, bool>,
    /// Whether the call before the first is of the function of the second; see [`Symbols::calls`].
    calls: HashMap<(u64, u64), Option<bool>>,
}

/// A call chain.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Unwound {
    /// Return addresses, the innermost first.
    pub(crate) stack: Vec<u64>,
    /// How many bytes of the copy it took. None if the chain goes on behind the copy, or may do so: a longer
    /// copy may have more frames.
    pub(crate) bytes: Option<usize>,
}

/// The registers of a frame, by System V's numbers, as far as they are known.
#[derive(Clone, Copy, Default)]
struct Registers([Option<u64>; machine::REGISTERS]);

impl Registers {
    fn get(&self, register: u16) -> Option<u64> {
        *self.0.get(usize::from(register))?
    }

    fn set(&mut self, register: u16, value: Option<u64>) {
        if let Some(known) = self.0.get_mut(usize::from(register)) {
            *known = value;
        }
    }
}

/// A blocked thread.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Blocked {
    /// The instruction after the system call.
    pub(crate) code: u64,
    /// Where its stack ends: the address of the first of `words`.
    pub(crate) stack: u64,
    /// What is there.
    pub(crate) words: Vec<u64>,
    /// Other registers, by System V's numbers, where they are known: in a core dump.
    pub(crate) kept: Vec<(u16, u64)>,
}

impl Blocked {
    fn word(&self, address: u64) -> Option<u64> {
        let at = address.checked_sub(self.stack).filter(|at| at % 8 == 0)? / 8;
        self.words.get(usize::try_from(at).ok()?).copied()
    }

    /// Whether a frame that ends there, and is no larger than frames are, ends behind the copy.
    fn is_behind(&self, end: u64) -> bool {
        let copied = self.stack + 8 * self.words.len() as u64;
        end > copied && end - copied <= LARGEST
    }
}

impl Symbols {
    /// The return addresses of a blocked thread, the innermost first, as far as they can be followed.
    pub(crate) fn unwind(&mut self, maps: &Maps, thread: &Blocked) -> Vec<u64> {
        self.unwound(maps, thread).stack
    }

    /// The same, with how much of the copy that took.
    pub(crate) fn unwound(&mut self, maps: &Maps, thread: &Blocked) -> Unwound {
        let mut found = vec![thread.code];
        let mut registers = Registers::default();
        thread.kept.iter().for_each(|(register, value)| registers.set(*register, Some(*value)));
        let (mut code, mut stack) = (thread.code, thread.stack);
        let mut is_whole = true;
        while found.len() < MOST {
            let Some(rules) = self.rules(maps, code) else {
                let Some(pointer) = registers.get(POINTER) else { break };
                match self.by_frame_pointer(maps, (code, stack), pointer, |address| thread.word(address)) {
                    Step::Caller { code: caller, stack: end, pointer } => {
                        // What else it has saved for its caller is not known.
                        registers = Registers::default();
                        registers.set(POINTER, Some(pointer));
                        (code, stack) = (caller, end);
                        found.push(code);
                        continue;
                    }
                    Step::Beyond => is_whole = false,
                    Step::None => {}
                }
                break;
            };
            registers.set(STACK, Some(stack));
            let by_table =
                rules.end.and_then(|(register, more)| registers.get(register)?.checked_add_signed(more));
            if by_table.is_some_and(|end| end > stack && thread.is_behind(end)) {
                is_whole = false;
                break;
            }
            let leafs = registers.get(RETURN).filter(|_| rules.return_at.is_none());
            let caller = |end: u64| match rules.return_at {
                Some(offset) => thread.word(end.checked_add_signed(offset)?),
                None => leafs,
            };
            let is_end = by_table.filter(|end| {
                let least = stack + u64::from(leafs.is_none());
                *end >= least && caller(*end).is_some_and(|caller| self.is_return(maps, thread, caller))
            });
            let end = match is_end {
                None if machine::RETURN_ENDS_FRAME => {
                    let (end, is_sure) = self.end_of_frame(maps, thread, stack, (code, rules.start)).unzip();
                    is_whole &= is_sure == Some(true);
                    end
                }
                known => known,
            };
            let Some(end) = end else { break };
            let at = |offset: i64| thread.word(end.checked_add_signed(offset)?);
            let found_at = if machine::RETURN_ENDS_FRAME { at(-8) } else { caller(end) };
            let Some(caller) = found_at.map(machine::code_address) else { break };
            for (register, offset) in &rules.saved {
                registers.set(*register, at(*offset));
            }
            registers.set(RETURN, None);
            (code, stack) = (caller, end);
            found.push(code);
        }
        let bytes = usize::try_from(stack.saturating_sub(thread.stack)).ok().filter(|_| is_whole);
        Unwound { stack: found, bytes }
    }

    /// Whether a word is a return address, where the unwind table of a frame has one.
    fn is_return(&mut self, maps: &Maps, thread: &Blocked, word: u64) -> bool {
        let caller = machine::code_address(word);
        // With all registers, the table is right also where the caller's file is missing.
        let is_code = |maps: &Maps| {
            let mapping = maps.find(u32::MAX, caller.wrapping_sub(1));
            mapping.is_some_and(|mapping| mapping.is_file() && mapping.is_executable)
        };
        self.is_behind_call(maps, caller) || !thread.kept.is_empty() && is_code(maps)
    }

    /// Where the frame ends of the function that begins at `start` of its file, in which `code` is: after a
    /// return address from a call of it; and whether that is sure.
    fn end_of_frame(
        &mut self,
        maps: &Maps,
        thread: &Blocked,
        from: u64,
        (code, start): (u64, u64),
    ) -> Option<(u64, bool)> {
        let first = usize::try_from(from.checked_sub(thread.stack)? / 8).ok()?;
        let words = thread.words.iter().copied().enumerate().skip(first);
        let place = |at: usize| thread.stack + 8 * (at as u64 + 1);
        let mut others = Vec::new();
        for (at, word) in words {
            match self.calls(maps, word, code, start) {
                Some(true) => return Some((place(at), true)),
                Some(false) => {}
                // A call by a pointer may be of any function.
                None if self.is_behind_call(maps, word) => others.push(place(at)),
                None => {}
            }
        }
        others.first().map(|end| (*end, false))
    }

    /// The unwind table's row of a return address.
    fn rules(&mut self, maps: &Maps, address: u64) -> Option<Arc<Rules>> {
        if let Some(known) = self.code.rules.get(&address) {
            return known.clone();
        }
        let found = self.place(maps, address).and_then(|(file, at)| file.rules(at - 1)).map(Arc::new);
        remember(&mut self.code.rules, address, found)
    }

    /// Whether the call before `address` is of the function in which `code` is, which begins at `start` of
    /// its file; none if it is no call, or its target is not known.
    fn calls(&mut self, maps: &Maps, address: u64, code: u64, start: u64) -> Option<bool> {
        if let Some(known) = self.code.calls.get(&(address, code)) {
            return *known;
        }
        // Most words are none of code: those are not worth remembering.
        let place = maps.find(u32::MAX, address.wrapping_sub(1)).filter(|place| place.is_executable)?;
        let is_same_file =
            maps.find(u32::MAX, code.wrapping_sub(1)).is_some_and(|own| own.path == place.path);
        let found = self.is_call_of(maps, (address, is_same_file), code, start);
        remember(&mut self.code.calls, (address, code), found)
    }

    fn is_call_of(
        &mut self,
        maps: &Maps,
        (address, is_same_file): (u64, bool),
        code: u64,
        start: u64,
    ) -> Option<bool> {
        let (file, at) = self.place(maps, address)?;
        if is_same_file && file.target(at) == Some(start) {
            return Some(true);
        }
        if let Some(name) = file.imported(at).map(str::to_owned) {
            let (callee, _) = self.place(maps, code)?;
            return Some(callee.begins(&name, start));
        }
        file.target(at).map(|_| false)
    }

    /// Whether a word may be a return address.
    pub(super) fn is_behind_call(&mut self, maps: &Maps, address: u64) -> bool {
        if let Some(known) = self.code.behind_calls.get(&address) {
            return *known;
        }
        let Some((file, at)) = self.place(maps, address) else { return false };
        let found = file.is_behind_call(at);
        remember(&mut self.code.behind_calls, address, found)
    }

    /// The file of code that returns to `address`, and that address there.
    fn place(&mut self, maps: &Maps, address: u64) -> Option<(&File, u64)> {
        let mapping = maps.find(u32::MAX, address.wrapping_sub(1))?;
        if !mapping.is_file() || !mapping.is_executable {
            return None;
        }
        let file = self.file(mapping)?;
        let at = file.address(address - 1 - mapping.start + mapping.offset)? + 1;
        Some((file, at))
    }
}

fn remember<K: Eq + std::hash::Hash, V: Clone>(known: &mut HashMap<K, V>, key: K, value: V) -> V {
    if known.len() >= MOST_KNOWN {
        known.clear();
    }
    known.insert(key, value.clone());
    value
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Code that was made at run time is from 0x7000 on, the stack from 0x10000 on.
    fn unwound(code: u64, pointer: Option<u64>, frames: &[(u64, u64, u64)]) -> Unwound {
        const WORDS: usize = 64;
        let maps = b"@ 0 0\n7000-8000 rwxp 00000000 00:00 0 \n9000-a000 r-xp 00000000 00:00 0 [vdso]\n\
            10000-20000 rw-p 00000000 00:00 0 \n";
        let mut words = vec![0; WORDS];
        for (at, pointer, code) in frames {
            let at = (at - 0x10000) as usize / 8;
            (words[at], words[at + 1]) = (*pointer, *code);
        }
        let kept = pointer.map(|pointer| (POINTER, pointer)).into_iter().collect();
        let thread = Blocked { code, stack: 0x10000, words, kept };
        Symbols::none().unwound(&Maps::new(maps), &thread)
    }

    #[test]
    fn frame_pointers_lead_through_code_without_tables() {
        let two = [(0x10010, 0x10080, 0x7020), (0x10080, 0, 0x7030)];
        let chain = unwound(0x7010, Some(0x10010), &two);
        assert_eq!(chain, Unwound { stack: vec![0x7010, 0x7020, 0x7030], bytes: Some(0x90) });
        // It goes on behind the copy.
        let more = unwound(0x7010, Some(0x10010), &[(0x10010, 0x10800, 0x7020)]);
        assert_eq!(more, Unwound { stack: vec![0x7010, 0x7020], bytes: None });
        let end = |code: u64, pointer: Option<u64>, frames: &[(u64, u64, u64)]| {
            unwound(code, pointer, frames).stack.len()
        };
        // A register that is not known, below the stack, between words, or far from it.
        for pointer in [None, Some(0xfff0), Some(0x10011), Some(0x1000_0000), Some(u64::MAX - 7)] {
            assert_eq!(end(0x7010, pointer, &two), 1, "{pointer:x?}");
        }
        // It returns to data, or to nothing; the next frame is this one again, or one below it.
        for to in [0x10020, 0, 0x7000] {
            assert_eq!(end(0x7010, Some(0x10010), &[(0x10010, 0x10080, to)]), 1, "{to:#x}");
        }
        for again in [0x10010, 0x10008] {
            assert_eq!(end(0x7010, Some(0x10010), &[(0x10010, again, 0x7020)]), 2);
        }
        // The kernel's functions have no frames of this kind.
        assert_eq!(end(0x9010, Some(0x10010), &two), 1);
    }
}
