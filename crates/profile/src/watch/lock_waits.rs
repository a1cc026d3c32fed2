//! Threads that sleep at a lock of glibc's own: where, and a copy of the end of their stacks.
//!
//! A lock of glibc is a word that is 2 while threads sleep for it, which they do without a deadline, in code
//! of libc. So does a mutex of its own, which the recorder knows: the stack distinguishes them, when
//! the program has ended and its files are read.

use std::collections::HashMap;
use std::fs::{self, File};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::os::unix::fs::FileExt;

use crate::glibc_locks;
use crate::symbols::Blocked;

/// So much of a stack is copied: `printf` alone has 1.5 KB.
const BYTES: usize = 8 << 10;
/// Different stacks that are kept of a program.
const MOST: usize = 256;
/// How often a program's files are read again.
const MOST_MAPS: u32 = 32;

/// A thread that sleeps at what may be a lock of glibc, by `/proc/PID/task/TID/syscall`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct At {
    pub(super) word: u64,
    pub(super) stack: u64,
    pub(super) code: u64,
}

impl At {
    pub(super) fn parse(syscall: &[u8]) -> Option<Self> {
        /// What a lock of glibc is while threads sleep for it.
        const WAITERS: u64 = 2;
        const WAIT: u64 = (libc::FUTEX_WAIT | libc::FUTEX_PRIVATE_FLAG) as u64;
        let text = std::str::from_utf8(syscall).ok()?;
        let mut fields = text.split_ascii_whitespace();
        if fields.next()?.parse() != Ok(libc::SYS_futex) {
            return None;
        }
        let numbers: Vec<u64> =
            fields.map_while(|field| u64::from_str_radix(field.strip_prefix("0x")?, 16).ok()).collect();
        match numbers[..] {
            [word, WAIT, WAITERS, 0, _, _, stack, code] => Some(Self { word, stack, code }),
            _ => None,
        }
    }

    /// The end of the thread's stack, that `copy` reads. None of a thread that has gone on meanwhile, as
    /// `syscall` has it afterwards: it has other functions on its stack, with which it never slept here.
    fn words(
        self,
        copy: impl FnOnce(&mut [u8]) -> Option<usize>,
        syscall: impl FnOnce() -> Option<Vec<u8>>,
    ) -> Option<Vec<u64>> {
        let mut bytes = vec![0; BYTES];
        let read = copy(&mut bytes)?;
        if Self::parse(&syscall()?) != Some(self) {
            return None;
        }
        let words = bytes.get(..read)?.chunks_exact(8);
        Some(words.map(|word| u64::from_ne_bytes(word.try_into().unwrap_or_default())).collect())
    }
}

/// A futex word that threads slept on, with this call chain.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct SleepSite {
    pub(super) word: u64,
    pub(super) thread: Blocked,
    /// How long all of them slept, ns.
    pub(super) time: u64,
}

/// Such waits of a program.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct LockWaits {
    pub(super) waits: Vec<SleepSite>,
    /// Its files, as the recorder notes them.
    pub(super) maps: Vec<u8>,
    snapshots: u32,
    code: Vec<(u64, u64)>,
    glibcs: Vec<(u64, u64)>,
    /// By the words of the stack that may be return addresses.
    known: HashMap<u64, u32>,
}

impl LockWaits {
    /// The number of a wait of thread `id`; none if it is in no code of glibc, or cannot be read.
    pub(super) fn note(&mut self, (pid, id): (u32, u32), at: At) -> Option<u32> {
        if !is_in(&self.code, at.code) && self.snapshots < MOST_MAPS {
            self.read_maps(pid, id)?;
        }
        if !is_in(&self.glibcs, at.code) {
            return None;
        }
        let memory = File::open(format!("/proc/{pid}/task/{id}/mem")).ok()?;
        let words = at.words(
            |bytes| memory.read_at(bytes, at.stack).ok(),
            || fs::read(format!("/proc/{pid}/task/{id}/syscall")).ok(),
        )?;
        let mut hash = DefaultHasher::new();
        (at.word, at.code).hash(&mut hash);
        words.iter().filter(|word| is_in(&self.code, **word)).for_each(|word| word.hash(&mut hash));
        let key = hash.finish();
        if let Some(known) = self.known.get(&key) {
            return Some(*known);
        }
        let number = u32::try_from(self.waits.len()).ok().filter(|_| self.waits.len() < MOST)?;
        let thread = Blocked { code: at.code, stack: at.stack, words, kept: Vec::new() };
        self.waits.push(SleepSite { word: at.word, thread, time: 0 });
        self.known.insert(key, number);
        Some(number)
    }

    /// Adds up what a thread slept.
    pub(super) fn add(&mut self, number: u32, time: u64) {
        if let Some(wait) = self.waits.get_mut(number as usize) {
            wait.time += time;
        }
    }

    fn read_maps(&mut self, pid: u32, id: u32) -> Option<()> {
        let text = fs::read(format!("/proc/{pid}/task/{id}/maps")).ok()?;
        self.code.clear();
        self.glibcs.clear();
        for line in String::from_utf8_lossy(&text).lines() {
            let mut fields = line.split_ascii_whitespace();
            let (Some(range), Some(rights), name) = (fields.next(), fields.next(), fields.nth(3)) else {
                continue;
            };
            let hexadecimal = |text: &str| u64::from_str_radix(text, 16).ok();
            let range =
                range.split_once('-').and_then(|(from, to)| Some((hexadecimal(from)?, hexadecimal(to)?)));
            let Some(range) = range.filter(|_| rights.contains('x')) else { continue };
            self.code.push(range);
            let file = name.and_then(|path| path.rsplit('/').next());
            self.glibcs.extend(file.filter(|file| glibc_locks::is_glibc(file)).map(|_| range));
        }
        self.maps.extend_from_slice(format!("@ {} 0\n", self.snapshots).as_bytes());
        self.maps.extend_from_slice(&text);
        self.snapshots += 1;
        Some(())
    }
}

/// Whether an address is in one of these ranges, which are in order.
fn is_in(ranges: &[(u64, u64)], address: u64) -> bool {
    let after = ranges.partition_point(|(start, _)| *start <= address);
    ranges[..after].last().is_some_and(|(_, end)| address < *end)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn locks_of_glibc_have_their_shape() {
        let of = |text: &str| At::parse(text.as_bytes());
        let at = Some(At { word: 0x7f00, stack: 0x7ff0, code: 0x7fa0 });
        assert_eq!(of("202 0x7f00 0x80 0x2 0x0 0x5 0x6 0x7ff0 0x7fa0\n"), at);
        // With a deadline, another value, another operation; another call; one that runs.
        assert_eq!(of("202 0x7f00 0x80 0x2 0x99 0x5 0x6 0x7ff0 0x7fa0\n"), None);
        assert_eq!(of("202 0x7f00 0x80 0x1 0x0 0x5 0x6 0x7ff0 0x7fa0\n"), None);
        assert_eq!(of("202 0x7f00 0x189 0x2 0x0 0x5 0x6 0x7ff0 0x7fa0\n"), None);
        assert_eq!(of("1 0x7f00 0x80 0x2 0x0 0x5 0x6 0x7ff0 0x7fa0\n"), None);
        assert_eq!(of("running\n"), None);
        assert_eq!(of(""), None);
    }

    /// A thread was seen at a lock of `malloc`, say, and has the stack of `usleep` by the time that it is copied:
    /// that made up a lock of `usleep`.
    #[test]
    fn a_stack_of_a_thread_that_has_gone_on_is_none_of_its_wait() {
        let slept = "202 0x7f00 0x80 0x2 0x0 0x5 0x6 0x7ff0 0x7fa0\n";
        let at = At::parse(slept.as_bytes()).expect("it sleeps at a lock");
        let words = |later: Option<&str>| {
            let copy = |bytes: &mut [u8]| {
                bytes[..16].copy_from_slice([1_u64.to_ne_bytes(), 2_u64.to_ne_bytes()].as_flattened());
                Some(20)
            };
            at.words(copy, || later.map(|text| text.as_bytes().to_vec()))
        };
        assert_eq!(words(Some(slept)), Some(vec![1, 2]));
        // In `usleep`; at another lock; at the same one, from elsewhere; awake; ended.
        for later in [
            Some("230 0x0 0x0 0x7ff0 0x0 0x5 0x6 0x7ff0 0x7fa0\n"),
            Some("202 0x7f08 0x80 0x2 0x0 0x5 0x6 0x7ff0 0x7fa0\n"),
            Some("202 0x7f00 0x80 0x2 0x0 0x5 0x6 0x7fe0 0x7fa0\n"),
            Some("running\n"),
            None,
        ] {
            assert_eq!(words(later), None, "{later:?}");
        }
        assert_eq!(at.words(|_| None, || Some(slept.as_bytes().to_vec())), None);
    }

    #[test]
    fn ranges() {
        let ranges = [(10, 20), (30, 40)];
        assert!(is_in(&ranges, 10) && is_in(&ranges, 39) && !is_in(&ranges, 20) && !is_in(&ranges, 5));
        assert!(!is_in(&[], 1));
    }
}
