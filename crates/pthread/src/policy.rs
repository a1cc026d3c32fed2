//! Policies that the user has chosen for single locks: `SPINPARK_POLICY`.
//!
//! The variable has a table, or the path of a file with one; `spinpark run --policy` makes it. Lines, or parts between
//! semicolons:
//!
//! ```text
//! spinpark-policy 1
//! module 4f3a9c…  server         a build id, and a file's name: modules count from 0
//! object 0 4060 28 park          locks in the 0x28 bytes at address 0x4060 of module 0
//! site 0 11c9 in-order           locks that a call creates which returns to 0x11c9, or that first wait so
//! ```
//!
//! Addresses are those that the module's file gives them (its symbols'), in hexadecimal digits. A module with another
//! build id has no policies; if its name is in the table, a message says so.
//!
//! # Where a lock keeps its choice
//!
//! In 8 bits of the word at byte 16, which is `__kind` of a mutex (above all bits that glibc or we give a meaning) and
//! padding of a read-write lock. An initialiser of whatever kind clears them, and so does destroying a read-write lock
//! (a destroyed mutex has no kind): memory that is used again inherits none. They are set by the first call of
//! `pthread_*_init`, or by the first wait. Without a table nothing reads them.
//!
//! `_dl_find_object` (glibc 2.35) tells which module has an address. It takes no lock, which the loader's other functions
//! do: a thread that waits for a lock must not wait for the loader.

use core::cell::UnsafeCell;
use core::ffi::{CStr, c_char, c_int, c_void};
use core::mem::transmute;
use core::sync::atomic::{AtomicBool, AtomicU32, Ordering::Acquire, Ordering::Relaxed, Ordering::Release};
use core::{ptr, slice};

use spinpark_linux::{Scope, lookup, raw, variable, write_message};
use spinpark_locks::{Choice, Choices};

// ---- the word in a lock

/// Where it is, in bytes.
const NOTE_AT: usize = 16;
/// The first bit of the policy's number in it.
const SHIFT: u32 = 16;
const NUMBER: u32 = 0xf << SHIFT;
/// The table was asked by the lock's address.
const ASKED_BY_ADDRESS: u32 = 1 << 20;
/// The table was asked by the caller's address.
const ASKED_BY_SITE: u32 = 1 << 21;
/// All of these.
const NOTE: u32 = NUMBER | ASKED_BY_ADDRESS | ASKED_BY_SITE;

/// The policies' names in a table; their numbers are their places.
const NAMES: [&[u8]; 7] =
    [b"default", b"eager", b"back-off", b"park", b"in-order", b"no-bias", b"writers-first"];
/// A read-write lock whose readers are always counted.
const NO_BIAS: u32 = 5;
/// A read-write lock whose readers do not join readers while a writer waits.
const WRITERS_FIRST: u32 = 6;

const _: () = assert!(NAMES.len() <= (NUMBER >> SHIFT) as usize + 1);

/// The choices that the locks have noted.
pub(crate) enum Noted {}

impl Choices for Noted {
    #[inline(always)]
    fn of(lock: usize) -> Choice {
        // Acquire: the table is complete.
        if lock != 0 && IS_ACTIVE.load(Acquire) { choice(lock) } else { Choice::Usual }
    }
}

#[cold]
#[inline(never)]
fn choice(lock: usize) -> Choice {
    Choice::ALL.get(number(lock) as usize).copied().unwrap_or_default()
}

/// Whether readers of the lock at `lock` may use slots.
pub(crate) fn may_have_bias(lock: usize) -> bool {
    !IS_ACTIVE.load(Acquire) || number(lock) != NO_BIAS
}

fn note(lock: usize) -> &'static AtomicU32 {
    let address = ptr::with_exposed_provenance::<AtomicU32>(lock + NOTE_AT);
    // SAFETY: `lock` is the address of a mutex or read-write lock that the calling thread holds, waits for or initialises
    // (`Choices::of`), so that it is alive for as long as the reference is used. Its word there is always atomic.
    unsafe { &*address }
}

/// The number of the lock's policy; asks the table by the lock's address if that was not done yet.
fn number(lock: usize) -> u32 {
    let noted = note(lock).load(Relaxed);
    if noted & (ASKED_BY_ADDRESS | ASKED_BY_SITE) == 0 {
        return ask(lock, ASKED_BY_ADDRESS, find(lock, false));
    }
    (noted & NUMBER) >> SHIFT
}

/// Notes what the table answered; of threads that ask at once for two call sites, the first one's answer stands. Returns
/// what stands.
fn ask(lock: usize, asked: u32, found: u32) -> u32 {
    let note = note(lock);
    let mut noted = note.load(Relaxed);
    loop {
        let number = if noted & NUMBER == 0 { found << SHIFT } else { noted & NUMBER };
        // A read-modify-write: glibc's part of the word may change meanwhile (`GLIBC_OWNED`).
        match note.compare_exchange_weak(noted, noted | asked | number, Relaxed, Relaxed) {
            Ok(_) => return number >> SHIFT,
            Err(now) => noted = now,
        }
    }
}

/// What a read-write lock is to be told of its policy.
#[derive(Clone, Copy, Default)]
pub(crate) struct OfRwLock {
    pub(crate) has_no_bias: bool,
    pub(crate) prefers_writers: bool,
}

/// A thread that cannot have the lock at `lock` at once, or initialises it, was called from `site`. Returns what is new
/// for a read-write lock.
#[inline(always)]
pub(crate) fn meets(lock: usize, site: usize) -> OfRwLock {
    if IS_ACTIVE.load(Acquire) { meets_site(lock, site) } else { OfRwLock::default() }
}

#[cold]
#[inline(never)]
fn meets_site(lock: usize, site: usize) -> OfRwLock {
    if note(lock).load(Relaxed) & ASKED_BY_SITE != 0 {
        return OfRwLock::default();
    }
    let by_address = number(lock);
    let found = if by_address == 0 { find(site, true) } else { by_address };
    let number = ask(lock, ASKED_BY_SITE, found);
    OfRwLock { has_no_bias: number == NO_BIAS, prefers_writers: number == WRITERS_FIRST }
}

/// The lock could not be told of its policy: the next thread that waits for it tries again.
pub(crate) fn ask_again(lock: usize) {
    note(lock).fetch_and(!ASKED_BY_SITE, Relaxed);
}

/// The lock is destroyed: other locks may come to be at its address.
pub(crate) fn forget(lock: usize) {
    if IS_ACTIVE.load(Acquire) {
        note(lock).fetch_and(!NOTE, Relaxed);
    }
}

// ---- the table

const MOST_MODULES: usize = 16;
const MOST_LOCKS: usize = 256;
/// The longest build id: linkers make 20 bytes at most, unless a user gives one.
const LONGEST_ID: usize = 32;
const LONGEST_NAME: usize = 64;
/// The longest file, bytes: more than the most modules and locks take.
const LONGEST: usize = 64 * 1024;

/// Bytes, and how many of them count.
#[derive(Clone, Copy)]
struct Bytes<const MOST: usize> {
    bytes: [u8; MOST],
    length: usize,
}

impl<const MOST: usize> Bytes<MOST> {
    const EMPTY: Self = Self { bytes: [0; MOST], length: 0 };

    fn push(&mut self, byte: u8) -> Option<()> {
        *self.bytes.get_mut(self.length)? = byte;
        self.length += 1;
        Some(())
    }

    fn get(&self) -> &[u8] {
        self.bytes.get(..self.length).unwrap_or_default()
    }
}

#[derive(Clone, Copy)]
struct Module {
    id: Bytes<LONGEST_ID>,
    name: Bytes<LONGEST_NAME>,
}

#[derive(Clone, Copy)]
struct Entry {
    start: usize,
    length: usize,
    module: u8,
    is_site: bool,
    policy: u8,
}

struct Table {
    modules: [Module; MOST_MODULES],
    module_count: usize,
    entries: [Entry; MOST_LOCKS],
    entry_count: usize,
}

struct Shared(UnsafeCell<Table>);

// SAFETY: `start` writes to it, once, before it sets `IS_ACTIVE`; others read it after they have seen that.
unsafe impl Sync for Shared {}

static TABLE: Shared = Shared(UnsafeCell::new(Table {
    modules: [Module { id: Bytes::EMPTY, name: Bytes::EMPTY }; MOST_MODULES],
    module_count: 0,
    entries: [Entry { start: 0, length: 0, module: 0, is_site: false, policy: 0 }; MOST_LOCKS],
    entry_count: 0,
}));

static IS_STARTED: AtomicBool = AtomicBool::new(false);
static IS_ACTIVE: AtomicBool = AtomicBool::new(false);
/// A message has said that a module has another build id.
static IS_REPORTED: AtomicBool = AtomicBool::new(false);

const UNREADABLE: &[u8] =
    b"spinpark: SPINPARK_POLICY is neither a table of policies nor a file with one: every lock has \
the default. `spinpark run --policy FILE` makes one.\n";
const TOO_OLD: &[u8] = b"spinpark: SPINPARK_POLICY needs glibc 2.35: every lock has the default.\n";
const OTHER_BUILD: &[u8] =
    b"spinpark: SPINPARK_POLICY is for another build of a module of that name: its locks have the \
default. Run `spinpark tune` again.\n";

/// Reads the table, if the user has given one.
#[cold]
pub(crate) fn start() {
    let Some(value) = variable(c"SPINPARK_POLICY").filter(|value| !value.is_empty()) else { return };
    if IS_STARTED.swap(true, Relaxed) {
        return;
    }
    // SAFETY: only this thread gets here, and none reads it before `IS_ACTIVE` is set.
    let table = unsafe { &mut *TABLE.0.get() };
    let read = if value.to_bytes().starts_with(HEADER) {
        table.parse(value.to_bytes())
    } else {
        with_content(value, |text| table.parse(text))
    };
    if read.is_none() {
        return write_message(UNREADABLE);
    }
    let finder = lookup(Scope::All, c"_dl_find_object");
    if finder.is_null() {
        return write_message(TOO_OLD);
    }
    // SAFETY: glibc's function of that name, whose type this is.
    let finder = unsafe { transmute::<*mut c_void, FindObject>(finder) };
    // SAFETY: as above: no other thread reads it yet.
    unsafe { *FINDER.0.get() = Some(finder) };
    // Release: what was written above.
    IS_ACTIVE.store(true, Release);
}

/// How many locks the table names, if it is in use.
pub(crate) fn count() -> Option<u32> {
    // SAFETY: complete, as `IS_ACTIVE` says.
    IS_ACTIVE.load(Acquire).then(|| unsafe { (*TABLE.0.get()).entry_count as u32 })
}

/// What `use_text` makes of the content of a file.
fn with_content(path: &CStr, use_text: impl FnOnce(&[u8]) -> Option<()>) -> Option<()> {
    let file = raw::open_read(path);
    if file < 0 {
        return None;
    }
    let memory = raw::map_zero(LONGEST);
    let result = memory.and_then(|memory| {
        // SAFETY: mapped just now, zeroed, and this thread's alone.
        let buffer = unsafe { slice::from_raw_parts_mut(memory.as_ptr(), LONGEST) };
        let mut length = 0;
        while let Some(rest) = buffer.get_mut(length..).filter(|rest| !rest.is_empty()) {
            match raw::read_at(file, rest, length as u64) {
                0 => break,
                read if read < 0 => return None,
                read => length += read as usize,
            }
        }
        buffer.get(..length).filter(|text| text.len() < LONGEST).and_then(use_text)
    });
    if let Some(memory) = memory {
        // SAFETY: mapped above; the reference to it is gone.
        unsafe { raw::unmap(memory, LONGEST) };
    }
    raw::close(file);
    result
}

/// The first line.
const HEADER: &[u8] = b"spinpark-policy 1";

impl Table {
    /// `None`: it is no table, or larger than this one.
    fn parse(&mut self, text: &[u8]) -> Option<()> {
        let mut lines = text.split(|byte| matches!(byte, b'\n' | b';'));
        if lines.next()? != HEADER {
            return None;
        }
        for line in lines.filter(|line| !line.is_empty()) {
            let mut words = line.split(|byte| *byte == b' ').filter(|word| !word.is_empty());
            match words.next()? {
                b"module" => self.add_module(words.next()?, words.next()?)?,
                b"object" => {
                    let module = number_of(words.next()?, 10)?;
                    let (start, length) = (number_of(words.next()?, 16)?, number_of(words.next()?, 16)?);
                    self.add(module, start, length, false, words.next()?)?;
                }
                b"site" => {
                    let module = number_of(words.next()?, 10)?;
                    self.add(module, number_of(words.next()?, 16)?, 1, true, words.next()?)?;
                }
                _ => return None,
            }
            if words.next().is_some() {
                return None;
            }
        }
        Some(())
    }

    fn add_module(&mut self, id: &[u8], name: &[u8]) -> Option<()> {
        let module = self.modules.get_mut(self.module_count)?;
        for pair in id.chunks(2) {
            module.id.push(u8::try_from(number_of(pair, 16).filter(|_| pair.len() == 2)?).ok()?)?;
        }
        for &byte in name {
            module.name.push(byte)?;
        }
        self.module_count += 1;
        Some(())
    }

    fn add(
        &mut self,
        module: usize,
        start: usize,
        length: usize,
        is_site: bool,
        policy: &[u8],
    ) -> Option<()> {
        let policy = NAMES.iter().position(|name| *name == policy)? as u8;
        let entry = self.entries.get_mut(self.entry_count).filter(|_| module < self.module_count)?;
        *entry = Entry { start, length, module: module as u8, is_site, policy };
        self.entry_count += 1;
        Some(())
    }
}

fn number_of(digits: &[u8], radix: u32) -> Option<usize> {
    let mut number = 0_usize;
    for &digit in digits {
        let value = char::from(digit).to_digit(radix)? as usize;
        number = number.checked_mul(radix as usize)?.checked_add(value)?;
    }
    (!digits.is_empty()).then_some(number)
}

/// The number of the policy for the lock at `address`, or for a call that returns to `address`; 0: none.
#[cold]
fn find(address: usize, is_site: bool) -> u32 {
    // SAFETY: complete, as `IS_ACTIVE` says, which the caller has seen.
    let table = unsafe { &*TABLE.0.get() };
    let Some(loaded) = Loaded::at(address) else { return 0 };
    let modules = table.modules.get(..table.module_count).unwrap_or_default();
    let Some(module) = modules.iter().position(|module| loaded.has_id(module.id.get())) else {
        if modules.iter().any(|module| loaded.is_called(module.name.get()))
            && !IS_REPORTED.swap(true, Relaxed)
        {
            write_message(OTHER_BUILD);
        }
        return 0;
    };
    let place = address.wrapping_sub(loaded.base);
    let entries = table.entries.get(..table.entry_count).unwrap_or_default();
    let is_it = |entry: &&Entry| {
        usize::from(entry.module) == module
            && entry.is_site == is_site
            && place.wrapping_sub(entry.start) < entry.length
    };
    entries.iter().find(is_it).map_or(0, |entry| entry.policy.into())
}

// ---- modules of the process

/// glibc's `struct dl_find_object`, as far as it is read, with room for what it has behind that.
#[repr(C)]
struct Found {
    flags: u64,
    start: usize,
    end: usize,
    map: *const LinkMap,
    rest: [u64; 16],
}

/// glibc's `struct link_map`, as far as it is public and read.
#[repr(C)]
struct LinkMap {
    base: usize,
    name: *const c_char,
}

type FindObject = unsafe extern "C" fn(address: *mut c_void, found: *mut Found) -> c_int;

struct SharedFinder(UnsafeCell<Option<FindObject>>);

// SAFETY: as for `Shared`.
unsafe impl Sync for SharedFinder {}

static FINDER: SharedFinder = SharedFinder(UnsafeCell::new(None));

/// A module of the process.
struct Loaded {
    base: usize,
    name: *const c_char,
    start: usize,
    end: usize,
}

/// Of an ELF file for this machine.
const ELF: u32 = u32::from_ne_bytes(*b"\x7fELF");

impl Loaded {
    /// The module with `address`: of a lock or of a caller, so that it stays loaded meanwhile.
    fn at(address: usize) -> Option<Self> {
        let mut found = Found { flags: 0, start: 0, end: 0, map: ptr::null(), rest: [0; 16] };
        // SAFETY: written once, before `IS_ACTIVE` was set.
        let finder = unsafe { *FINDER.0.get() }?;
        // SAFETY: any address will do; `found` is as large as the struct, and larger.
        let result = unsafe { finder(ptr::without_provenance_mut(address), &raw mut found) };
        if result != 0 || found.map.is_null() {
            return None;
        }
        // SAFETY: the loader's, while the module is loaded.
        let map = unsafe { &*found.map };
        Some(Self { base: map.base, name: map.name, start: found.start, end: found.end })
    }

    /// The value at `address`, if it is within the module's memory.
    fn read<T: Copy>(&self, address: usize) -> Option<T> {
        let is_inside = address >= self.start && address.checked_add(size_of::<T>())? <= self.end;
        // SAFETY: the module's headers and notes, within a segment that is loaded; numbers have no invalid values.
        is_inside.then(|| unsafe { ptr::with_exposed_provenance::<T>(address).read_unaligned() })
    }

    /// Whether its build id is `id`.
    fn has_id(&self, id: &[u8]) -> bool {
        self.find_id(id).unwrap_or(false)
    }

    fn find_id(&self, id: &[u8]) -> Option<bool> {
        if self.read::<u32>(self.start)? != ELF {
            return None;
        }
        let headers = self.start.checked_add(self.read::<u64>(self.start + 32)? as usize)?;
        let count = usize::from(self.read::<u16>(self.start + 56)?);
        let segments = || (0..count).filter_map(|number| self.segment(headers.checked_add(number * 56)?));
        let is_loaded = |note: &Segment| {
            let holds = |it: Segment| {
                it.kind == libc::PT_LOAD
                    && it.start <= note.start
                    && note.end() <= it.start.saturating_add(it.length)
            };
            segments().any(holds)
        };
        let notes = segments().filter(|it| it.kind == libc::PT_NOTE).filter(is_loaded);
        Some(notes.into_iter().any(|it| self.has_note(&it, id)))
    }

    fn segment(&self, header: usize) -> Option<Segment> {
        Some(Segment {
            kind: self.read(header)?,
            start: self.read::<u64>(header + 16)? as usize,
            length: self.read::<u64>(header + 32)? as usize,
        })
    }

    /// Whether the notes have the build id `id`.
    fn has_note(&self, notes: &Segment, id: &[u8]) -> bool {
        const BUILD_ID: u32 = 3;
        let mut at = self.base.wrapping_add(notes.start);
        let end = at.saturating_add(notes.length);
        while at.saturating_add(12) <= end {
            let (Some(name), Some(length), Some(kind)) =
                (self.read::<u32>(at), self.read::<u32>(at + 4), self.read::<u32>(at + 8))
            else {
                return false;
            };
            let data = at.saturating_add(12).saturating_add(name.next_multiple_of(4) as usize);
            let is_gnu = name == 4 && self.read::<[u8; 4]>(at + 12) == Some(*b"GNU\0");
            if is_gnu && kind == BUILD_ID {
                let same =
                    |(place, byte): (usize, &u8)| self.read::<u8>(data.saturating_add(place)) == Some(*byte);
                return length as usize == id.len() && id.iter().enumerate().all(same);
            }
            at = data.saturating_add(length.next_multiple_of(4) as usize);
        }
        false
    }

    /// Whether its file, or the program's, has the name `name`.
    fn is_called(&self, name: &[u8]) -> bool {
        // SAFETY: the loader's string, while the module is loaded.
        let path = unsafe { CStr::from_ptr(self.name) };
        let path = match path.is_empty() {
            // SAFETY: the kernel's string, which stays.
            true => match unsafe { libc::getauxval(libc::AT_EXECFN) } {
                0 => path,
                // SAFETY: as above.
                address => unsafe { CStr::from_ptr(ptr::with_exposed_provenance(address as usize)) },
            },
            false => path,
        };
        path.to_bytes().rsplit(|byte| *byte == b'/').next() == Some(name)
    }
}

/// A program header: addresses as in the file.
struct Segment {
    kind: u32,
    start: usize,
    length: usize,
}

impl Segment {
    fn end(&self) -> usize {
        self.start.saturating_add(self.length)
    }
}
