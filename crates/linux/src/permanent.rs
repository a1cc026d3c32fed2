//! Whether this code stays mapped until the process ends: the kernel keeps a pointer into it (S4 in `rseq`).
//!
//! The program itself stays, and so does a library that was linked with `-z nodelete`, such as the drop-in.
//! Any other library, a plugin or an extension module, is opened once more and never closed, which keeps it.
//! Thread-local destructors of std and C++ keep their library in the same way.
//!
//! Its initialiser keeps a library ([`initialise`]). Its first lock would be too late: a destructor may use
//! it when `dlclose` has already decided.

use core::ffi::{c_char, c_int, c_void};
use core::sync::atomic::{AtomicBool, Ordering::Relaxed};
use core::{mem, ptr, slice};

use crate::symbol::{lookup, Scope};

type Dladdr = unsafe extern "C" fn(*const c_void, *mut libc::Dl_info) -> c_int;
type Dlopen = unsafe extern "C" fn(*const c_char, c_int) -> *mut c_void;

static KEPT: AtomicBool = AtomicBool::new(false);

/// Whether this code stays mapped.
#[cold]
pub(crate) fn is_certain() -> bool {
    KEPT.load(Relaxed) || is_in_program(is_certain as fn() -> bool as usize)
}

/// An initialiser: keeps the library that this code is in, if it is in one. Without it, or if the loader
/// refuses, the locks there do not use restartable sequences.
///
/// Starts those, too. Registering for the barrier takes microseconds in a single-threaded process, and
/// milliseconds in one of several threads, for which the first lock would have to wait.
pub extern "C" fn initialise() {
    let code = initialise as extern "C" fn() as usize;
    if !is_in_program(code) && keep(code) {
        KEPT.store(true, Relaxed);
    }
    crate::start(false);
}

/// Whether `address` is in the program, rather than in a library.
fn is_in_program(address: usize) -> bool {
    // SAFETY: no pointer is passed.
    let start = unsafe { libc::getauxval(libc::AT_PHDR) };
    // SAFETY: the same.
    let count = unsafe { libc::getauxval(libc::AT_PHNUM) };
    if start == 0 {
        return false;
    }
    // SAFETY: the kernel, or the loader for the program that it starts, gives the address and the number
    // of the program's headers.
    let headers = unsafe { slice::from_raw_parts(start as *const libc::Elf64_Phdr, count as usize) };
    // A program at a fixed address need not have a header for its headers.
    let table = headers.iter().find(|header| header.p_type == libc::PT_PHDR);
    let base = table.map_or(0, |table| (start as usize).wrapping_sub(table.p_vaddr as usize));
    headers.iter().filter(|header| header.p_type == libc::PT_LOAD).any(|header| {
        address.wrapping_sub(base.wrapping_add(header.p_vaddr as usize)) < header.p_memsz as usize
    })
}

/// Opens the library that `address` is in, and never closes it.
fn keep(address: usize) -> bool {
    let (dladdr, dlopen) = (lookup(Scope::All, c"dladdr"), lookup(Scope::All, c"dlopen"));
    // SAFETY: null, or the function of that name; `Option<fn>` has null for `None`.
    let dladdr = unsafe { mem::transmute::<*mut c_void, Option<Dladdr>>(dladdr) };
    // SAFETY: the same.
    let dlopen = unsafe { mem::transmute::<*mut c_void, Option<Dlopen>>(dlopen) };
    let (Some(dladdr), Some(dlopen)) = (dladdr, dlopen) else { return false };
    let mut found = libc::Dl_info {
        dli_fname: ptr::null(),
        dli_fbase: ptr::null_mut(),
        dli_sname: ptr::null(),
        dli_saddr: ptr::null_mut(),
    };
    // SAFETY: an address to look up, and where to say what was found.
    if unsafe { dladdr(address as *const c_void, &mut found) } == 0 {
        return false;
    }
    // SAFETY: the name of a library that is loaded: no code of it runs. Not a tail call: the caller's address
    // says in which namespace to look.
    let library =
        core::hint::black_box(unsafe { dlopen(found.dli_fname, libc::RTLD_LAZY | libc::RTLD_NOLOAD) });
    !library.is_null()
}
