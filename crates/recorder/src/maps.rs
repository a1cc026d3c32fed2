//! Snapshots of `/proc/thread-self/maps`: where code was, to look addresses up later.
//!
//! A snapshot is followed by a line `= START INODE BUILD-ID` for each module that was not seen before, read
//! from the module's headers in memory: whatever becomes of its file, a reader knows which build ran. The
//! headers are read through `/proc/thread-self/mem`, since another thread may unload the module meanwhile.
//!
//! When a module is unloaded, others may come to its addresses: the next new stack takes a new snapshot, and
//! stacks that go through the module are not used again ([`Recorder::unloaded`]).

use core::cell::UnsafeCell;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use core::sync::atomic::{AtomicU32, AtomicU64};

use spinpark_linux::raw;

use super::unwind::Unwinder;
use super::Recorder;
use crate::format::RegionId;

/// Pieces of code that are remembered.
const PIECES: usize = 1024;
/// Snapshots that are taken at most: a program that makes code all the time would fill the region with them.
const MOST: u32 = 200;

/// Modules of which the build id was looked for.
const MODULES: usize = 1024;
/// The longest build id that is noted, bytes.
const BUILD_ID: usize = 32;

/// Where code lay, at the latest snapshot.
#[repr(C)]
pub(crate) struct Code {
    /// How often modules were unloaded.
    unloads: AtomicU32,
    /// How often they had been when the latest snapshot was begun.
    unloads_seen: AtomicU32,
    /// Each a hash of a start and an inode; 0 is free. Used by the busy thread only.
    identified: [AtomicU64; MODULES],
    /// Starts and inodes that the latest snapshot has and `identified` has not. Used by the busy thread only.
    unidentified: [[AtomicU64; 2]; MODULES],
    unidentified_count: AtomicU32,
    /// A thread takes a snapshot. No other waits for that, since the thread may not be running.
    is_busy: AtomicU32,
    /// How many snapshots there are.
    snapshots: AtomicU32,
    /// Which half of `pieces` is that of the latest snapshot (the highest bit), and how many there are.
    count: AtomicU32,
    pieces: [[[AtomicU64; 2]; PIECES]; 2],
    /// How many the other half has. Used by the busy thread only.
    filled: AtomicU32,
    /// How often the maps were read for an address that may be code.
    doubts: AtomicU32,
    /// How often code was read.
    reads: AtomicU32,
    /// The busy thread's buffer: a thread that waits may have little stack.
    bytes: UnsafeCell<[u8; 4096]>,
}

impl Code {
    fn has(&self, address: u64) -> bool {
        let is_in =
            |piece: &[AtomicU64; 2]| (piece[0].load(Relaxed)..piece[1].load(Relaxed)).contains(&address);
        let (half, count) = halves(self.count.load(Acquire));
        self.pieces[half][..count].iter().any(is_in)
    }

    /// Whether a module was unloaded since the latest snapshot.
    fn is_stale(&self) -> bool {
        self.unloads.load(Acquire) != self.unloads_seen.load(Acquire)
    }

    /// Notes a module of which the build id is to be looked for, unless that was done.
    fn add_module(&self, start: u64, inode: u64) {
        let key = (start ^ inode.rotate_left(32)).wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
        for step in 0..MODULES {
            let slot = &self.identified[((key >> 40) as usize + step) % MODULES];
            match slot.load(Relaxed) {
                0 => {
                    slot.store(key, Relaxed);
                    break;
                }
                found if found == key => return,
                _ => {}
            }
        }
        let count = self.unidentified_count.load(Relaxed);
        if let Some(free) = self.unidentified.get(count as usize) {
            free[0].store(start, Relaxed);
            free[1].store(inode, Relaxed);
            self.unidentified_count.store(count + 1, Relaxed);
        }
    }

    fn add(&self, from: u64, to: u64) {
        let (shown, _) = halves(self.count.load(Relaxed));
        let filled = self.filled.load(Relaxed);
        if let Some(piece) = self.pieces[1 - shown].get(filled as usize) {
            piece[0].store(from, Relaxed);
            piece[1].store(to, Relaxed);
            self.filled.store(filled + 1, Relaxed);
        }
    }

    /// The other half is that of the latest snapshot from now on.
    fn show(&self) {
        let (shown, _) = halves(self.count.load(Relaxed));
        self.count.store((1 - shown as u32) << 31 | self.filled.load(Relaxed), Release);
    }
}

fn halves(count: u32) -> (usize, usize) {
    ((count >> 31) as usize, (count & !(1 << 31)) as usize)
}

/// Whether this process has its maps: not without `/proc`, as after chroot(2).
pub(super) fn has_maps() -> bool {
    let maps = raw::open_read(c"/proc/self/maps");
    if maps >= 0 {
        // At once: a program that closes all descriptors may have another file by this number later.
        raw::close(maps);
    }
    maps >= 0
}

impl Recorder {
    /// The number of a snapshot that has all of these addresses, if one can be had; else that of the latest.
    pub(crate) fn snapshot_for(&self, addresses: &[u64]) -> u32 {
        let Some(shared) = self.shared.get() else { return 0 };
        let code = &shared.code;
        let before = code.snapshots.load(Acquire);
        let is_known = || !code.is_stale() && addresses.iter().all(|address| code.has(*address));
        if before > 0 && is_known() || before >= MOST {
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

    /// Whether there was code at an address at the latest snapshot.
    pub(super) fn is_code(&self, address: u64) -> bool {
        self.shared.get().is_some_and(|shared| shared.code.has(address))
    }

    /// The same after the maps were read again: for a few addresses only, since any may be junk, and not in a
    /// sandbox, which might kill for it.
    pub(super) fn is_new_code(&self, address: u64) -> bool {
        const LOOKS: u32 = 8;
        let Some(shared) = self.shared.get() else { return false };
        let doubts = &shared.code.doubts;
        let may_be = (1 << 16..1 << 47).contains(&address) && doubts.load(Relaxed) < LOOKS;
        if !may_be || raw::sandbox() != self.sandbox.load(Relaxed) {
            return false;
        }
        doubts.fetch_add(1, Relaxed);
        self.snapshot_for(&[address]);
        shared.code.has(address)
    }

    /// The code before an address, if there is memory. By the calls with which build ids are read, a number
    /// of times, and not in a sandbox, which might kill for them.
    pub(super) fn code_before(&self, address: usize) -> Option<[u8; 8]> {
        const READS: u32 = 1000;
        let reads = &self.shared.get()?.code.reads;
        let from = (address as u64).checked_sub(8)?;
        if reads.load(Relaxed) >= READS || raw::sandbox() != self.sandbox.load(Relaxed) {
            return None;
        }
        reads.fetch_add(1, Relaxed);
        let memory = raw::open_read(c"/proc/thread-self/mem");
        let identity = (memory >= 0).then(|| raw::identity(memory)).flatten()?;
        let mut code = [0; 8];
        let is_read = raw::read_at(memory, &mut code, from) == 8;
        // As in `take_snapshot`.
        if raw::identity(memory) == Some(identity) {
            raw::close(memory);
        }
        is_read.then_some(code)
    }

    /// Copies the maps. A line of text may be cut where the region ends.
    #[cold]
    #[inline(never)]
    fn take_snapshot(&self, code: &Code) {
        let number = code.snapshots.load(Relaxed);
        code.unloads_seen.store(code.unloads.load(Acquire), Release);
        code.unidentified_count.store(0, Relaxed);
        code.snapshots.store(number + 1, Release);
        code.filled.store(0, Relaxed);
        let mut line = Line { bytes: [0; 128], length: 0 };
        line.text(b"@ ");
        line.number(u64::from(number));
        line.text(b" ");
        line.number(self.ticks.now());
        line.text(b"\n");
        self.file.append(RegionId::Maps, &line.bytes[..line.length], 0);
        let file = raw::open_read(c"/proc/thread-self/maps");
        if file < 0 {
            return;
        }
        // A thread that closes all descriptors it does not know may close this one, and another one may get
        // its number: that is not ours to read from or to close.
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
        code.show();
        self.identify(code, buffer);
    }

    /// Writes the build ids of modules that were seen for the first time.
    #[cold]
    #[inline(never)]
    fn identify(&self, code: &Code, buffer: &mut [u8; 4096]) {
        let count = code.unidentified_count.load(Relaxed) as usize;
        if count == 0 {
            return;
        }
        let memory = raw::open_read(c"/proc/thread-self/mem");
        if memory < 0 {
            return;
        }
        let identity = raw::identity(memory);
        for module in &code.unidentified[..count.min(MODULES)] {
            let (start, inode) = (module[0].load(Relaxed), module[1].load(Relaxed));
            if identity.is_none() || raw::identity(memory) != identity {
                return;
            }
            let mut read = |from: u64, bytes: &mut [u8]| {
                let length = usize::try_from(raw::read_at(memory, bytes, from)).unwrap_or(0);
                bytes[length..].fill(0);
            };
            let Some(id) = build_id(start, buffer, &mut read) else { continue };
            let mut line = Line { bytes: [0; 128], length: 0 };
            line.text(b"= ");
            line.hexadecimal(start, 1);
            line.text(b" ");
            line.number(inode);
            line.text(b" ");
            id.bytes[..id.length].iter().for_each(|byte| line.hexadecimal(u64::from(*byte), 2));
            line.text(b"\n");
            self.file.append(RegionId::Maps, &line.bytes[..line.length], 0);
        }
        raw::close(memory);
    }

    /// A module was unloaded just now: addresses of it may be another module's from here on.
    ///
    /// Its locks are gone, and stacks with addresses in no module are written anew at their next use.
    pub fn unloaded(&self) {
        let Some(shared) = self.shared.get() else { return };
        shared.code.unloads.fetch_add(1, Release); // before the check below: a thread that takes a snapshot from here on sees the new maps
        if !self.unwinder.knows_modules() {
            return;
        }
        let mut modules = Modules { unwinder: &self.unwinder, latest: (0, 0) };
        for slot in &shared.stacks {
            let Some(number) = slot.load(Acquire).checked_sub(1) else { continue };
            let stack = self.stack_record(number);
            let frames = stack.frames.get(..stack.depth as usize).unwrap_or_default();
            if !frames.iter().all(|frame| modules.has(*frame)) {
                stack.is_retired.store(1, Relaxed);
            }
        }
        for slot in &shared.locks {
            let Some(number) = slot.load(Acquire).checked_sub(1) else { continue };
            self.forget_unloaded(number, |address| modules.has(address));
        }
    }
}

/// Checks whether addresses are in modules.
struct Modules<'a> {
    unwinder: &'a Unwinder,
    /// The latest one that was found: from and to.
    latest: (u64, u64),
}

impl Modules<'_> {
    fn has(&mut self, address: u64) -> bool {
        if !(self.latest.0..self.latest.1).contains(&address) {
            match self.unwinder.module(address) {
                Some(found) => self.latest = found,
                None => return false,
            }
        }
        true
    }
}

/// The build id of a module that starts at `start`, with zeros behind it, and its length. `read` fills what it is
/// given, from an address on.
pub(crate) fn build_id_of(
    start: u64,
    buffer: &mut [u8; 4096],
    read: &mut dyn FnMut(u64, &mut [u8]),
) -> Option<([u8; BUILD_ID], usize)> {
    build_id(start, buffer, read).map(|id| (id.bytes, id.length))
}

/// What is read of a module's headers, and then of its notes, bytes.
const HEADERS: usize = 1024;

/// A build id.
struct BuildId {
    bytes: [u8; BUILD_ID],
    length: usize,
}

fn number<const BYTES: usize>(bytes: &[u8], at: usize) -> Option<u64> {
    let bytes = bytes.get(at..at.checked_add(BYTES)?)?;
    Some(bytes.iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte)))
}

/// The build id of a module that starts at `start`: from its program headers, the notes. `read` fills what it
/// is given.
fn build_id(start: u64, buffer: &mut [u8; 4096], read: &mut dyn FnMut(u64, &mut [u8])) -> Option<BuildId> {
    const LOAD: u64 = 1;
    const NOTE: u64 = 4;
    let (headers, notes) = buffer.split_at_mut(HEADERS);
    read(start, headers);
    let headers: &[u8] = headers;
    let notes = &mut notes[..HEADERS];
    if !headers.starts_with(b"\x7fELF\x02\x01") {
        return None;
    }
    let (at, size, count) = (number::<8>(headers, 32)?, number::<2>(headers, 54)?, number::<2>(headers, 56)?);
    let header = |index: u64| usize::try_from(at + index * size).ok();
    let of_kind = |kind: u64| {
        let all = (0..count.min(64)).filter_map(header);
        all.filter(move |at| number::<4>(headers, *at) == Some(kind))
    };
    let first = of_kind(LOAD).filter_map(|at| number::<8>(headers, at + 16)).min()? & !0xFFF;
    of_kind(NOTE).find_map(|at| {
        let (address, length) = (number::<8>(headers, at + 16)?, number::<8>(headers, at + 40)?);
        read(start.wrapping_add(address).wrapping_sub(first), notes);
        in_notes(notes.get(..usize::try_from(length).ok()?.min(HEADERS))?)
    })
}

/// The build id among notes: each has the sizes of its name and its contents, its kind, and those, padded to
/// 4 bytes.
fn in_notes(notes: &[u8]) -> Option<BuildId> {
    const KIND: u64 = 3;
    let mut at = 0_usize;
    loop {
        let (name, length) = (number::<4>(notes, at)? as usize, number::<4>(notes, at + 4)? as usize);
        let contents = at.checked_add(12)?.checked_add(name.checked_next_multiple_of(4)?)?;
        if number::<4>(notes, at + 8)? == KIND && notes.get(at + 12..at + 16)? == b"GNU\0" {
            let id = notes.get(contents..contents.checked_add(length)?)?;
            let mut found = BuildId { bytes: [0; BUILD_ID], length };
            found.bytes.get_mut(..length)?.copy_from_slice(id);
            return Some(found);
        }
        at = contents.checked_add(length.checked_next_multiple_of(4)?)?;
    }
}

/// Reads `from-to flags offset device inode …` from the lines of the maps.
#[derive(Default)]
struct Pieces {
    /// From, to, offset, inode.
    numbers: [u64; 4],
    /// 0 and 1: from and to; 2: the flags; 3: the offset; 4: the device; 5: the inode; 6: the rest of the
    /// line.
    part: usize,
    is_readable: bool,
    is_code: bool,
}

impl Pieces {
    fn feed(&mut self, byte: u8, code: &Code) {
        match (self.part, byte) {
            (_, b'\n') => {
                let [from, to, offset, inode] = self.numbers;
                if self.is_code {
                    code.add(from, to);
                }
                // The start of a module has its headers.
                if self.is_readable && offset == 0 && inode != 0 {
                    code.add_module(from, inode);
                }
                *self = Self::default();
            }
            (0, b'-') | (1..=5, b' ') => self.part += 1,
            (0 | 1 | 3, _) => {
                let digit = (byte as char).to_digit(16).unwrap_or(0);
                let number = if self.part == 3 { 2 } else { self.part };
                self.numbers[number] = self.numbers[number] << 4 | u64::from(digit);
            }
            (5, b'0'..=b'9') => self.numbers[3] = self.numbers[3].wrapping_mul(10) + u64::from(byte - b'0'),
            (2, b'x') => self.is_code = true,
            (2, b'r') => self.is_readable = true,
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
        put_digits(number, 10, 1, &mut |digit| self.text(digit));
    }

    fn hexadecimal(&mut self, number: u64, digits: u32) {
        put_digits(number, 16, digits, &mut |digit| self.text(digit));
    }
}

/// Writes a number in a base, with `at_least` digits. A loop: a small stack, such as a signal handler's, has
/// no space for a frame a digit.
pub(super) fn put_digits(number: u64, base: u64, at_least: u32, put: &mut dyn FnMut(&[u8])) {
    let mut count = at_least.max(1);
    while base.checked_pow(count).is_some_and(|limit| number >= limit) {
        count += 1;
    }
    for place in (0..count).rev() {
        let above = base.checked_pow(place).map_or(0, |unit| number / unit);
        put(&[b"0123456789abcdef"[(above % base) as usize]]);
    }
}
