//! The call chain of a thread that is blocked in a system call, from a copy of its stack.
//!
//! From outside, only two registers of such a thread are known: where its code is, and where its stack ends. (A
//! core dump has all of them.)
//! That is enough wherever unwind tables count from the end of the stack, as most of libc does. A function
//! that keeps its frame in another register (`vfprintf` does, since it allocates by the size of a format)
//! needs that register's value, which a function below it may have saved; if none has, the return address is
//! looked for in the words above: it is the one behind a call of this very function. What earlier calls have
//! left on the stack is behind calls of others.

use std::collections::HashMap;

use super::module::{Module as File, Rules};
use super::{Maps, Symbols};

/// Of System V's numbers of registers on x86-64.
const STACK: u16 = 7;
/// The return address, as if it were a register.
const RETURN: u16 = 16;
/// More frames are not followed.
const MOST: usize = 64;

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
}

impl Symbols {
    /// The return addresses of a blocked thread, the innermost first, as far as they can be followed.
    pub(crate) fn unwind(&mut self, maps: &Maps, thread: &Blocked) -> Vec<u64> {
        let mut found = vec![thread.code];
        let mut registers: HashMap<u16, u64> = thread.kept.iter().copied().collect();
        registers.insert(STACK, thread.stack);
        let mut code = thread.code;
        while found.len() < MOST {
            let Some(rules) = self.rules(maps, code) else { break };
            let end = self.known_end(maps, thread, &registers, rules.end);
            let end = match end {
                None => self.end_of_frame(maps, thread, registers[&STACK], (code, rules.start)),
                known => known,
            };
            let Some(end) = end else { break };
            let at = |offset: i64| thread.word(end.checked_add_signed(offset)?);
            let Some(caller) = at(-8) else { break };
            for (register, offset) in rules.saved.iter().filter(|(register, _)| *register != RETURN) {
                match at(*offset) {
                    Some(value) => registers.insert(*register, value),
                    None => registers.remove(register),
                };
            }
            registers.insert(STACK, end);
            code = caller;
            found.push(code);
        }
        found
    }

    /// Where the frame ends, by its unwind table: if the register's value is known, and leads to a return
    /// address.
    fn known_end(
        &mut self,
        maps: &Maps,
        thread: &Blocked,
        registers: &HashMap<u16, u64>,
        end: Option<(u16, i64)>,
    ) -> Option<u64> {
        let (register, more) = end?;
        let end = registers.get(&register)?.checked_add_signed(more)?;
        let caller = thread.word(end.checked_sub(8)?)?;
        // With all registers, the table is right also where the caller's file is missing.
        let is_code = |maps: &Maps| {
            let mapping = maps.find(u32::MAX, caller.wrapping_sub(1));
            mapping.is_some_and(|mapping| mapping.is_file() && mapping.is_executable)
        };
        let is_known = self.is_behind_call(maps, caller) || !thread.kept.is_empty() && is_code(maps);
        (end > registers[&STACK] && is_known).then_some(end)
    }

    /// Where the frame ends of the function that begins at `start` of its file, in which `code` is: after a
    /// return address from a call of it.
    fn end_of_frame(
        &mut self,
        maps: &Maps,
        thread: &Blocked,
        from: u64,
        (code, start): (u64, u64),
    ) -> Option<u64> {
        let first = usize::try_from(from.checked_sub(thread.stack)? / 8).ok()?;
        let words = thread.words.iter().copied().enumerate().skip(first);
        let place = |at: usize| thread.stack + 8 * (at as u64 + 1);
        let mut others = Vec::new();
        for (at, word) in words {
            match self.calls(maps, word, code, start) {
                Some(true) => return Some(place(at)),
                Some(false) => {}
                // A call by a pointer may be of any function.
                None if self.is_behind_call(maps, word) => others.push(place(at)),
                None => {}
            }
        }
        others.first().copied()
    }

    /// The unwind table's row of a return address.
    fn rules(&mut self, maps: &Maps, address: u64) -> Option<Rules> {
        if let Some(known) = self.rules.get(&address) {
            return known.clone();
        }
        let found = self.place(maps, address).and_then(|(file, at)| file.rules(at - 1));
        self.rules.insert(address, found.clone());
        found
    }

    /// Whether the call before `address` is of the function in which `code` is, which begins at `start` of
    /// its file; none if it is no call, or its target is not known.
    fn calls(&mut self, maps: &Maps, address: u64, code: u64, start: u64) -> Option<bool> {
        let is_same_file = maps.find(u32::MAX, address.wrapping_sub(1))?.path
            == maps.find(u32::MAX, code.wrapping_sub(1))?.path;
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
    fn is_behind_call(&mut self, maps: &Maps, address: u64) -> bool {
        self.place(maps, address).is_some_and(|(file, at)| file.is_behind_call(at))
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
