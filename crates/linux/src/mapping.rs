//! Whether memory is this process' alone.
//!
//! A lock that is private by its attributes may lie in shared memory all the same. glibc's own functions work there, as long as
//! no thread sleeps; so must ours.
//!
//! The program's own variables and the heap behind them are private. Of other memory the kernel is asked, by `/proc/self/maps`; but not
//! in a program that may have a filter that kills: one that has announced it, or one with a single thread, which makes no system call
//! for locks at all.

use core::ffi::CStr;

use crate::sandbox::is_confined;
use crate::single::is_single_threaded;
use crate::symbol;
use crate::syscall::call6;

const MAPS: &CStr = c"/proc/self/maps";

/// What has been read of a line: `7f0000000000-7f0000021000 rw-p 00000000 00:00 0`, and a path.
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
        None
    } else {
        by_maps(address)
    }
}

/// Whether `address` lies between the start of the program and the end of the heap, as far as glibc tells that.
fn is_program_or_heap(address: usize) -> bool {
    // SAFETY: reads what the kernel gave the process at its start.
    let start = unsafe { libc::getauxval(libc::AT_PHDR) } as usize;
    start > 0 && (start..symbol::heap_end()).contains(&address)
}

fn by_maps(address: usize) -> Option<bool> {
    let flags = libc::O_RDONLY | libc::O_CLOEXEC;
    let open = [libc::AT_FDCWD as usize, MAPS.as_ptr() as usize, flags as usize, 0, 0, 0];
    // SAFETY: a C string.
    let file = usize::try_from(unsafe { call6(libc::SYS_openat, open) }).ok()?;
    let mut buffer = [0_u8; 1024];
    let mut line = Line::NEW;
    let found = loop {
        let arguments = [file, buffer.as_mut_ptr() as usize, buffer.len(), 0, 0, 0];
        // SAFETY: the kernel writes to the buffer only.
        let read = unsafe { call6(libc::SYS_read, arguments) };
        let Some(bytes) = usize::try_from(read).ok().and_then(|read| buffer.get(..read)) else { break None };
        if bytes.is_empty() {
            break None;
        }
        if let Some(found) = bytes.iter().find_map(|&byte| line.take(byte, address as u64)) {
            break Some(found);
        }
    };
    // SAFETY: the file that was opened above.
    unsafe { call6(libc::SYS_close, [file, 0, 0, 0, 0, 0]) };
    found
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
        assert_eq!(by_maps(core::ptr::from_ref(&local) as usize), Some(true));
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        for (flag, private) in [(libc::MAP_SHARED, false), (libc::MAP_PRIVATE, true)] {
            // SAFETY: new memory.
            let memory = unsafe {
                libc::mmap(core::ptr::null_mut(), 4096, protection, flag | libc::MAP_ANONYMOUS, -1, 0)
            };
            assert_ne!(memory, libc::MAP_FAILED);
            assert_eq!(by_maps(memory as usize + 100), Some(private));
            assert!(!is_program_or_heap(memory as usize));
            // SAFETY: the memory from above, which nothing uses.
            assert_eq!(unsafe { libc::munmap(memory, 4096) }, 0);
        }
        assert_eq!(by_maps(0), None, "not mapped");
        assert!(is_program_or_heap(core::ptr::from_ref(&VARIABLE) as usize));
    }
}
