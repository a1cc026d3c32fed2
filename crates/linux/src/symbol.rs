//! Symbols that may be missing, looked up at run time.
//!
//! Another preloaded library may have a `dlsym` of its own, before or behind ours. If such a function calls
//! glibc's, then `RTLD_NEXT` means the libraries after *that* library, ours among them. It would return our
//! own function, which would call itself for ever. So glibc's `dlsym` is looked up by `dlvsym` first.
//!
//! `dlsym` takes the loader's lock, which glibc does not take through anything that the drop-in intercepts;
//! it allocates only to report a failure.

use core::ffi::{c_char, c_void, CStr};
use core::sync::atomic::{AtomicPtr, Ordering::Relaxed};
use core::{mem, ptr};

type Dlsym = unsafe extern "C" fn(*mut c_void, *const c_char) -> *mut c_void;
type Dlvsym = unsafe extern "C" fn(*mut c_void, *const c_char, *const c_char) -> *mut c_void;
type Init = unsafe extern "C" fn();

// Weak, and by their oldest version: before glibc 2.34 they are in libdl, on which the drop-in depends.
#[cfg(all(target_arch = "x86_64", target_env = "gnu"))]
core::arch::global_asm!(".symver dlsym, dlsym@GLIBC_2.2.5", ".symver dlvsym, dlvsym@GLIBC_2.2.5");
core::arch::global_asm!(".weak dlsym", ".weak dlvsym", ".weak __tsan_init", ".weak __curbrk");

/// Defines a function that returns the address of a weak symbol, of a function or variable: from the GOT,
/// where it is 0 if it is not defined.
macro_rules! weak {
    ($($name:ident = $symbol:ident: $type:ty;)*) => {$(
        fn $name() -> Option<$type> {
            let address: *const c_void;
            #[cfg(target_arch = "x86_64")]
            // SAFETY: loads from the GOT.
            unsafe {
                core::arch::asm!(concat!("mov {}, qword ptr [rip + ", stringify!($symbol), "@GOTPCREL]"),
                                 out(reg) address, options(pure, readonly, nostack, preserves_flags));
            }
            #[cfg(target_arch = "aarch64")]
            // SAFETY: loads from the GOT.
            unsafe {
                core::arch::asm!(concat!("adrp {0}, :got:", stringify!($symbol)),
                                 concat!("ldr {0}, [{0}, #:got_lo12:", stringify!($symbol), "]"),
                                 out(reg) address, options(pure, readonly, nostack, preserves_flags));
            }
            // SAFETY: null or the function's address; `Option<fn>` has null for `None`.
            unsafe { mem::transmute::<*const c_void, Option<$type>>(address) }
        }
    )*};
}

weak! {
    bound_dlsym = dlsym: Dlsym;
    dlvsym = dlvsym: Dlvsym;
    tsan_init = __tsan_init: Init;
    curbrk = __curbrk: &'static AtomicPtr<c_void>;
}

/// The version that glibc's oldest functions have.
const OLDEST: &CStr = if cfg!(target_arch = "x86_64") { c"GLIBC_2.2.5" } else { c"GLIBC_2.17" };

/// Whether glibc has two versions of condition variables' functions.
const HAS_OLDER_CONDVARS: bool = cfg!(target_arch = "x86_64");

/// The address of glibc's `dlsym`: of the first library after this one that has it by version. Null if there
/// is no `dlvsym`.
#[must_use]
pub fn glibc_dlsym() -> *mut c_void {
    /// The address that was found, or null. Each thread finds the same, so no thread needs to see what
    /// another one stored.
    static FOUND: AtomicPtr<c_void> = AtomicPtr::new(ptr::null_mut());
    let mut found = FOUND.load(Relaxed);
    if found.is_null() {
        found = lookup_version(c"dlsym", OLDEST);
        FOUND.store(found, Relaxed);
    }
    found
}

/// glibc's `dlsym`, or what the name is bound to in another libc.
fn dlsym() -> Option<Dlsym> {
    // SAFETY: null, or the function of that name; `Option<fn>` has null for `None`.
    unsafe { mem::transmute::<*mut c_void, Option<Dlsym>>(glibc_dlsym()) }.or_else(bound_dlsym)
}

/// Whether ThreadSanitizer is in the process. Not by `dlsym`, which allocates to report that there is none.
pub(crate) fn has_thread_sanitizer() -> bool {
    tsan_init().is_some()
}

/// The end of the heap according to glibc; 0 if it does not say.
pub(crate) fn heap_end() -> usize {
    curbrk().map_or(0, |end| end.load(Relaxed) as usize)
}

/// Where a symbol is looked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// In all libraries.
    All,
    /// In the libraries after this one.
    Next,
}

/// Looks `name` up; null if it is missing, or there is no `dlsym`.
#[must_use]
#[inline(never)] // for the drop-in's size
pub fn lookup(scope: Scope, name: &CStr) -> *mut c_void {
    let handle = match scope {
        Scope::All => libc::RTLD_DEFAULT,
        Scope::Next => libc::RTLD_NEXT,
    };
    match dlsym() {
        // SAFETY: a handle and a C string, as dlsym wants them. The result is used after the call, so this is
        // not a tail call, which RTLD_NEXT (it reads its return address) would take for a call by another
        // library.
        Some(dlsym) => core::hint::black_box(unsafe { dlsym(handle, name.as_ptr()) }),
        None => ptr::null_mut(),
    }
}

/// Looks `name` up in the libraries after this one, in the version that programs are linked to; null if there
/// is none.
///
/// `dlsym(RTLD_NEXT)` finds glibc's older condition variables before 2.36 (BZ 14932): then the version is
/// named that has had its present layout since 2.3.2 (clockwait, and architectures that came later, have one
/// only). Not always: a library between that intercepts them (ThreadSanitizer's) exports no version, and
/// `dlvsym` passes it by.
#[must_use]
#[inline(never)] // for the drop-in's size
pub fn lookup_next(name: &CStr) -> *mut c_void {
    let found = lookup(Scope::Next, name);
    // Not clockwait: to report a version that is missing, the loader allocates, perhaps within an allocator
    // that is just being set up (Chromium's, which would wait for itself).
    let is_double = HAS_OLDER_CONDVARS
        && !found.is_null()
        && name.to_bytes().starts_with(b"pthread_cond_")
        && name.to_bytes() != b"pthread_cond_clockwait";
    let is_older = is_double && found == lookup_version(name, c"GLIBC_2.2.5");
    if is_older {
        lookup_version(name, c"GLIBC_2.3.2")
    } else {
        found
    }
}

/// Looks `version` of `name` up in the libraries after this one; null if there is none, or no `dlvsym`.
#[must_use]
#[inline(never)] // for the drop-in's size
pub fn lookup_version(name: &CStr, version: &CStr) -> *mut c_void {
    match dlvsym() {
        Some(dlvsym) => {
            // SAFETY: a handle and two C strings.
            let found = unsafe { dlvsym(libc::RTLD_NEXT, name.as_ptr(), version.as_ptr()) };
            core::hint::black_box(found) // not a tail call: as in `lookup`
        }
        None => ptr::null_mut(),
    }
}

/// A library that was opened, and is never closed.
#[derive(Clone, Copy, Debug)]
pub struct Library(*mut c_void);

impl Library {
    /// Opens a library by the name that others know it by. Allocates: not for intercepted calls.
    #[must_use]
    pub fn open(name: &CStr) -> Option<Self> {
        Self::open_with(name, libc::RTLD_NOW)
    }

    /// Opens a library that the process has already loaded, perhaps only in the scope of one library.
    #[must_use]
    pub fn loaded(name: &CStr) -> Option<Self> {
        Self::open_with(name, libc::RTLD_NOW | libc::RTLD_NOLOAD)
    }

    #[inline(never)] // for the drop-in's size
    fn open_with(name: &CStr, flags: core::ffi::c_int) -> Option<Self> {
        type Dlopen = unsafe extern "C" fn(*const c_char, core::ffi::c_int) -> *mut c_void;
        let dlopen = lookup(Scope::All, c"dlopen");
        // SAFETY: null, or the function of that name; `Option<fn>` has null for `None`.
        let dlopen = unsafe { mem::transmute::<*mut c_void, Option<Dlopen>>(dlopen) }?;
        // SAFETY: a C string. Not a tail call: the caller's address selects the namespace.
        let library = core::hint::black_box(unsafe { dlopen(name.as_ptr(), flags) });
        (!library.is_null()).then_some(Self(library))
    }

    /// Looks `name` up in it; null if there is none.
    #[must_use]
    #[inline(never)] // for the drop-in's size
    pub fn lookup(self, name: &CStr) -> *mut c_void {
        // SAFETY: a handle and a C string.
        dlsym()
            .map_or(ptr::null_mut(), |dlsym| core::hint::black_box(unsafe { dlsym(self.0, name.as_ptr()) }))
    }
}
