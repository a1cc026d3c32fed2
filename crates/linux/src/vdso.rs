//! The vDSO: functions that the kernel maps into each process. It is found at the address that the kernel
//! gives, and read as an ELF file; not through libc, whose functions another library may replace.
//!
//! The file is not trusted: only memory that it declares as mapped is touched, and a symbol that does not fit
//! is not found.

use core::slice;

/// The kernel's `clock_gettime`. Each processor has had one version of it.
#[cfg(target_arch = "x86_64")]
const NAME: &[u8] = b"__vdso_clock_gettime\0";
#[cfg(target_arch = "aarch64")]
const NAME: &[u8] = b"__kernel_clock_gettime\0";

/// The part of the file that is certainly mapped.
const PAGE: usize = 4096;
/// More than any vDSO has (two pages).
const MOST: usize = 1 << 20;

const PROGRAM_HEADER: usize = 56;
const DYNAMIC_ENTRY: usize = 16;
const SYMBOL: usize = 24;

const DT_STRTAB: usize = 5;
const DT_SYMTAB: usize = 6;
const FUNCTION: usize = 2;

/// The address of [`NAME`], or 0.
pub(crate) fn clock_gettime() -> usize {
    // SAFETY: no pointer is passed.
    let base = unsafe { libc::getauxval(libc::AT_SYSINFO_EHDR) } as usize;
    if base == 0 {
        return 0;
    }
    // SAFETY: the kernel reports that its file is mapped here; nothing ever writes to it.
    let head = unsafe { slice::from_raw_parts(base as *const u8, PAGE) };
    let Some(load) = header(head, libc::PT_LOAD) else { return 0 };
    let length = load.offset.saturating_add(load.length);
    if length > MOST {
        return 0;
    }
    // SAFETY: the kernel's file, which declares `length` bytes of it as mapped, in one piece from its start
    // on.
    let file = unsafe { slice::from_raw_parts(base as *const u8, length) };
    find(file).map_or(0, |at| base + at)
}

/// The eight bytes at `at`; 0 beyond the end, which no caller accepts.
#[inline(never)]
fn word(file: &[u8], at: usize) -> usize {
    file.get(at..).and_then(|rest| rest.first_chunk()).map_or(0, |bytes| usize::from_le_bytes(*bytes))
}

/// A part of the file, from its program headers.
struct Part {
    offset: usize,
    address: usize,
    length: usize,
}

/// The first part of this kind.
#[inline(never)]
fn header(file: &[u8], kind: u32) -> Option<Part> {
    let (first, count) = (word(file, 32), word(file, 56) & 0xffff);
    let mut headers = (0..count).map(|index| first.wrapping_add(index * PROGRAM_HEADER));
    let at = headers.find(|&at| word(file, at) as u32 == kind)?;
    let field = |offset| word(file, at.wrapping_add(offset));
    Some(Part { offset: field(8), address: field(16), length: field(32) })
}

/// Where [`NAME`] is in the file.
///
/// The hash tables, which tell how many symbols there are, come in two kinds, of which a vDSO has one or the
/// other; but the symbols end where their names begin, in every linker's order. If not, what follows is none
/// of that name.
fn find(file: &[u8]) -> Option<usize> {
    let load = header(file, libc::PT_LOAD)?;
    let place = |address: usize| address.wrapping_sub(load.address).wrapping_add(load.offset);
    let (mut names, mut symbol) = (0, 0);
    let mut at = header(file, libc::PT_DYNAMIC)?.offset;
    loop {
        let value = word(file, at.wrapping_add(8));
        match word(file, at) {
            0 => break,
            DT_STRTAB => names = place(value),
            DT_SYMTAB => symbol = place(value),
            _ => {}
        }
        at = at.wrapping_add(DYNAMIC_ENTRY);
    }
    while symbol < names.min(file.len()) {
        // Name (32 bits), type (4 of 8 bits), visibility (8), section (16; 0: defined elsewhere).
        let about = word(file, symbol);
        let name = names.wrapping_add(about as u32 as usize);
        let is_function = about >> 32 & 0xf == FUNCTION && about >> 48 != 0;
        if is_function && file.get(name..).is_some_and(|rest| rest.starts_with(NAME)) {
            let found = place(word(file, symbol + 8));
            return (found < file.len()).then_some(found);
        }
        symbol += SYMBOL;
    }
    None
}

#[cfg(test)]
mod tests {
    extern crate std;
    use std::vec::Vec;

    use super::*;

    /// The file as it is mapped here; none under valgrind.
    fn mapped() -> Option<&'static [u8]> {
        // SAFETY: as in `clock_gettime`.
        let base = unsafe { libc::getauxval(libc::AT_SYSINFO_EHDR) } as usize;
        // SAFETY: as there.
        let head = (base != 0).then(|| unsafe { slice::from_raw_parts(base as *const u8, PAGE) })?;
        let length = header(head, libc::PT_LOAD)?.length;
        // SAFETY: as there.
        Some(unsafe { slice::from_raw_parts(base as *const u8, length) })
    }

    // A static program has no loader.
    #[cfg(target_env = "gnu")]
    #[test]
    fn it_is_what_the_loader_finds() {
        let Some(file) = mapped() else { return };
        // SAFETY: a C string; a library that is there as long as the process.
        let library =
            unsafe { libc::dlopen(c"linux-vdso.so.1".as_ptr(), libc::RTLD_NOW | libc::RTLD_NOLOAD) };
        assert!(!library.is_null());
        // SAFETY: a handle and a C string.
        let theirs = unsafe { libc::dlsym(library, NAME.as_ptr().cast()) } as usize;
        assert_ne!(theirs, 0);
        assert_eq!(clock_gettime(), theirs);
        assert_eq!(file.as_ptr() as usize + find(file).unwrap(), theirs);
    }

    #[test]
    fn a_broken_file_is_survived() {
        let Some(file) = mapped() else { return };
        let good = find(file).unwrap();
        for length in 0..file.len() {
            // The other parts are unchanged: the symbol is found, or not.
            assert!(find(&file[..length]).is_none_or(|found| found == good));
        }
        let mut bytes: Vec<u8> = file.into();
        for at in 0..bytes.len() {
            for broken in [0, 0x7f, 0x80, 0xff] {
                let kept = core::mem::replace(&mut bytes[at], broken);
                assert!(find(&bytes).is_none_or(|found| found < bytes.len()));
                bytes[at] = kept;
            }
        }
        assert_eq!(find(&[]), None);
        assert_eq!(find(&[0xff; 4096]), None);
    }
}
