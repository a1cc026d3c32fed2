//! Whether memory is private to this process.
//!
//! A lock that is private by its attributes may lie in shared memory all the same. glibc's own functions work
//! there while no thread sleeps, so ours must, too.
//!
//! The program's own variables and the heap behind them are private. For other memory the kernel is asked, by
//! `PROCMAP_QUERY` (Linux 6.11) or the text of `/proc/thread-self/maps`. It is not asked in a program that
//! may have a filter that kills: one that has announced it, or one with a single thread, which makes no
//! system call for locks. At most 64 KiB of the text are read. If asking fails, the process does not ask
//! again: its other locks have no bias.

use core::ffi::CStr;
use core::ptr;
use core::sync::atomic::{AtomicBool, Ordering::Relaxed};

use crate::raw::call6;
use crate::sandbox::is_confined;
use crate::single::is_single_threaded;
use crate::{raw, symbol};

/// Not `/proc/self`: the first thread may have ended.
const MAPS: &CStr = c"/proc/thread-self/maps";
/// How many bytes of it are read at most: about 700 mappings.
const MOST_BYTES: usize = 64 * 1024;

/// `PROCMAP_QUERY`: `_IOWR('f', 17, struct procmap_query)`.
const QUERY: usize = 0xc068_6611;
/// The flag of the answer that matters: `PROCMAP_QUERY_VMA_SHARED`.
const QUERY_SHARED: u64 = 8;

/// The kernel's `struct procmap_query`.
#[repr(C)]
#[derive(Default)]
struct Query {
    size: u64,
    /// No flags: the mapping that covers the address.
    query_flags: u64,
    query_addr: u64,
    vma_start: u64,
    vma_end: u64,
    vma_flags: u64,
    vma_page_size: u64,
    vma_offset: u64,
    inode: u64,
    dev_major: u32,
    dev_minor: u32,
    vma_name_size: u32,
    build_id_size: u32,
    vma_name_addr: u64,
    build_id_addr: u64,
}

const _: () = assert!(core::mem::size_of::<Query>() == (QUERY >> 16) & 0x3fff);

/// Whether asking has failed in this process.
static CANNOT_ASK: AtomicBool = AtomicBool::new(false);

/// The part of a line that has been read: `7f0000000000-7f0000021000 rw-p 00000000 00:00 0`, and a path.
#[derive(Clone, Copy)]
struct Line {
    part: Part,
    number: u64,
    start: u64,
    /// Bytes of the permissions.
    permissions: u8,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    Start,
    End,
    Permissions,
    Rest,
}

impl Line {
    const NEW: Self = Self { part: Part::Start, number: 0, start: 0, permissions: 0 };

    /// Takes the next byte. `Some`: the line is that of `address`, which is private or not.
    fn take(&mut self, byte: u8, address: u64) -> Option<bool> {
        match (self.part, byte) {
            (_, b'\n') => *self = Self::NEW,
            (Part::Start, b'-') => *self = Self { part: Part::End, start: self.number, ..Self::NEW },
            (Part::End, b' ') => {
                let is_it = (self.start..self.number).contains(&address);
                self.part = if is_it { Part::Permissions } else { Part::Rest };
            }
            (Part::Start | Part::End, digit) => {
                let digit = (digit as char).to_digit(16).unwrap_or_default();
                self.number = self.number << 4 | u64::from(digit);
            }
            (Part::Permissions, letter) => {
                self.permissions += 1;
                if self.permissions == 4 {
                    return Some(letter == b'p');
                }
            }
            (Part::Rest, _) => {}
        }
        None
    }
}

/// See [`ReaderSlots::is_private`](spinpark_platform::ReaderSlots::is_private).
#[cold]
#[inline(never)]
pub(crate) fn is_private(address: usize) -> Option<bool> {
    if is_program_or_heap(address) {
        return Some(true);
    }
    if is_confined() || is_single_threaded() {
        return None;
    }
    if CANNOT_ASK.load(Relaxed) {
        return Some(false);
    }
    let found = ask(address);
    if found.is_none() {
        CANNOT_ASK.store(true, Relaxed);
    }
    Some(found == Some(true))
}

/// Whether `address` lies between the start of the program and the end of the heap, as far as glibc reports
/// it.
fn is_program_or_heap(address: usize) -> bool {
    // SAFETY: reads what the kernel gave the process at its start.
    let start = unsafe { libc::getauxval(libc::AT_PHDR) } as usize;
    start > 0 && (start..symbol::heap_end()).contains(&address)
}

fn ask(address: usize) -> Option<bool> {
    let file = raw::open_read(MAPS);
    if file < 0 {
        return None;
    }
    let found = by_query(file, address).or_else(|| by_text(file, address));
    raw::close(file);
    found
}

fn by_query(file: i32, address: usize) -> Option<bool> {
    let mut query = Query { query_addr: address as u64, ..Query::default() };
    query.size = core::mem::size_of_val(&query) as u64;
    let arguments = [file as usize, QUERY, ptr::addr_of_mut!(query) as usize, 0, 0, 0];
    // SAFETY: the kernel reads and writes as much of the structure as its `size` says, and neither of the two
    // buffers, of size 0.
    let done = unsafe { call6(libc::SYS_ioctl, arguments) };
    (done == 0).then_some(query.vma_flags & QUERY_SHARED == 0)
}

fn by_text(file: i32, address: usize) -> Option<bool> {
    let mut buffer = [0_u8; 2048];
    let mut line = Line::NEW;
    let mut left = MOST_BYTES;
    while left > 0 {
        let bytes = usize::try_from(raw::read(file, &mut buffer)).ok().and_then(|read| buffer.get(..read))?;
        if bytes.is_empty() {
            return None;
        }
        if let Some(found) = bytes.iter().find_map(|&byte| line.take(byte, address as u64)) {
            return Some(found);
        }
        left = left.saturating_sub(bytes.len());
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    static VARIABLE: core::sync::atomic::AtomicU32 = core::sync::atomic::AtomicU32::new(0);

    fn look_for(address: u64, text: &[u8]) -> Option<bool> {
        let mut line = Line::NEW;
        text.iter().find_map(|&byte| line.take(byte, address))
    }

    #[test]
    fn lines() {
        let text = b"1000-3000 rw-p 00000000 08:01 12 /a-b 5000-9000 rw-s\n3000-5000 rw-s 0 00:01 3\n\
                     ffffffffff600000-ffffffffff601000 --xp 0 00:00 0 [vsyscall]\n";
        assert_eq!(look_for(0x0fff, text), None);
        assert_eq!(look_for(0x1000, text), Some(true));
        assert_eq!(look_for(0x2fff, text), Some(true));
        assert_eq!(look_for(0x3000, text), Some(false));
        assert_eq!(look_for(0x5000, text), None);
        assert_eq!(look_for(0xffff_ffff_ff60_0000, text), Some(true));
    }

    #[test]
    fn of_this_process() {
        let local = 0_u32;
        assert_eq!(ask(core::ptr::from_ref(&local) as usize), Some(true));
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        for (flag, private) in [(libc::MAP_SHARED, false), (libc::MAP_PRIVATE, true)] {
            // SAFETY: new memory.
            let memory = unsafe {
                libc::mmap(core::ptr::null_mut(), 4096, protection, flag | libc::MAP_ANONYMOUS, -1, 0)
            };
            assert_ne!(memory, libc::MAP_FAILED);
            assert_eq!(ask(memory as usize + 100), Some(private));
            let file = raw::open_read(MAPS);
            assert_eq!(
                by_text(file, memory as usize + 100),
                Some(private),
                "as on kernels without the query"
            );
            raw::close(file);
            assert!(!is_program_or_heap(memory as usize));
            // SAFETY: the memory from above, which nothing uses.
            assert_eq!(unsafe { libc::munmap(memory, 4096) }, 0);
        }
        assert_eq!(ask(0), None, "not mapped");
        // Other C libraries do not report the heap's end: each address is asked for.
        let is_reported = cfg!(target_env = "gnu");
        assert_eq!(is_program_or_heap(core::ptr::from_ref(&VARIABLE) as usize), is_reported);
    }
}
