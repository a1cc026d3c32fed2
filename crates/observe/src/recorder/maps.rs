//! Snapshots of `/proc/self/maps`: what code lay where, to look addresses up later.

use core::cell::UnsafeCell;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use core::sync::atomic::{AtomicU32, AtomicU64};

use spinpark_linux::raw;

use super::Recorder;
use crate::format::RegionId;

/// Pieces of code that are remembered.
const PIECES: usize = 1024;
/// Snapshots that are taken at most: a program that makes code all the time would fill the region with them.
const MOST: u32 = 200;

/// Where code lay, at the latest snapshot.
#[repr(C)]
pub(crate) struct Code {
    /// A thread takes a snapshot. No other waits for that, since the thread may not be running.
    is_busy: AtomicU32,
    /// How many snapshots there are.
    snapshots: AtomicU32,
    count: AtomicU32,
    pieces: [[AtomicU64; 2]; PIECES],
    /// What the busy thread reads: a thread that has to wait may have little stack.
    bytes: UnsafeCell<[u8; 4096]>,
}

impl Code {
    fn has(&self, address: u64) -> bool {
        let count = (self.count.load(Acquire) as usize).min(PIECES);
        let is_in =
            |piece: &[AtomicU64; 2]| (piece[0].load(Relaxed)..piece[1].load(Relaxed)).contains(&address);
        self.pieces[..count].iter().any(is_in)
    }

    fn add(&self, from: u64, to: u64) {
        let count = self.count.load(Relaxed) as usize;
        if let Some(piece) = self.pieces.get(count) {
            piece[0].store(from, Relaxed);
            piece[1].store(to, Relaxed);
            self.count.store(count as u32 + 1, Release);
        }
    }
}

impl Recorder {
    /// The number of a snapshot that has all of these addresses, if one can be had; else that of the latest.
    pub(crate) fn snapshot_for(&self, addresses: &[u64]) -> u32 {
        let Some(shared) = self.shared.get() else { return 0 };
        let code = &shared.code;
        let before = code.snapshots.load(Acquire);
        if before > 0 && addresses.iter().all(|address| code.has(*address)) || before >= MOST {
            return before.saturating_sub(1);
        }
        // No thread waits for another's snapshot: that one is likely to have the new code.
        if code.is_busy.compare_exchange(0, 1, Acquire, Relaxed).is_ok() {
            if code.snapshots.load(Relaxed) == before {
                self.take_snapshot(code);
            }
            code.is_busy.store(0, Release);
        }
        code.snapshots.load(Acquire).saturating_sub(1)
    }

    /// Copies the maps. A line of text may be cut where the region ends.
    fn take_snapshot(&self, code: &Code) {
        let number = code.snapshots.load(Relaxed);
        code.snapshots.store(number + 1, Release);
        code.count.store(0, Release);
        let mut line = Line { bytes: [0; 128], length: 0 };
        line.text(b"@ ");
        line.number(u64::from(number));
        line.text(b" ");
        line.number(self.ticks.now());
        line.text(b"\n");
        self.file.append(RegionId::Maps, &line.bytes[..line.length], 0);
        let file = raw::open_read(c"/proc/self/maps");
        if file < 0 {
            return;
        }
        // A thread that closes all descriptors it does not know may close this one, and another one may get its number: that
        // is not ours to read from or to close.
        let identity = raw::identity(file);
        let is_ours = || identity.is_some() && raw::identity(file) == identity;
        // SAFETY: the thread that set `is_busy` is the only one that uses it.
        let buffer = unsafe { &mut *code.bytes.get() };
        let mut reader = Pieces::default();
        let mut from = 0;
        while is_ours() {
            let read = raw::read_at(file, buffer, from);
            let Some(bytes) = usize::try_from(read).ok().and_then(|read| buffer.get(..read)) else { break };
            if bytes.is_empty() {
                break;
            }
            self.file.append(RegionId::Maps, bytes, 0);
            bytes.iter().for_each(|byte| reader.feed(*byte, code));
            from += bytes.len() as u64;
        }
        if is_ours() {
            raw::close(file);
        }
    }
}

/// Reads `from-to flags …` from the lines of the maps.
#[derive(Default)]
struct Pieces {
    numbers: [u64; 2],
    /// 0 and 1: in a number; 2: in the flags; 3: in the rest of the line.
    part: usize,
    is_code: bool,
}

impl Pieces {
    fn feed(&mut self, byte: u8, code: &Code) {
        match (self.part, byte) {
            (_, b'\n') => {
                if self.is_code {
                    code.add(self.numbers[0], self.numbers[1]);
                }
                *self = Self::default();
            }
            (0, b'-') | (1 | 2, b' ') => self.part += 1,
            (0 | 1, _) => {
                let digit = (byte as char).to_digit(16).unwrap_or(0);
                self.numbers[self.part] = self.numbers[self.part] << 4 | u64::from(digit);
            }
            (2, b'x') => self.is_code = true,
            _ => {}
        }
    }
}

/// A line of text.
struct Line {
    bytes: [u8; 128],
    length: usize,
}

impl Line {
    fn text(&mut self, text: &[u8]) {
        for byte in text {
            if let Some(free) = self.bytes.get_mut(self.length) {
                *free = *byte;
                self.length += 1;
            }
        }
    }

    fn number(&mut self, number: u64) {
        if number >= 10 {
            self.number(number / 10);
        }
        self.text(&[b'0' + (number % 10) as u8]);
    }
}
