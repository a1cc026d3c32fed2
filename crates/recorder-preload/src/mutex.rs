//! `pthread_mutex_*`.

use core::ffi::c_int;

#[cfg(target_arch = "x86_64")]
use spinpark_recorder::Recorder;
use spinpark_recorder::format::Role;
use spinpark_recorder::{LockCall, Site};

use crate::function::Function;
use crate::instrument::{self, LockFunctions, POSIX};
#[cfg(target_arch = "x86_64")]
use crate::mutex_layout::{FREE_WORD_AT, KIND_AT, LOCK_AT, OWNER_AT, SPECIAL};
use crate::mutex_layout::{is_special, kind, seems_free};
use crate::next;
use crate::phases::{RECORDER, look_for_wishes};
use crate::table::{CONTENDED, SAMPLED};

#[inline(always)]
pub(crate) fn call(address: usize, site: Site) -> LockCall {
    LockCall { address, role: Role::Write, kind, site }
}

const LOCK: LockFunctions = functions_with(Function::pthread_mutex_lock);

/// `pthread_mutex_lock` with the detail `contended`, by hand: [`instrument::lock`] for a mutex that was never
/// waited for. What is called then finds stack and frame pointer as they were.
///
/// # Safety
///
/// As its namesake.
#[cfg(target_arch = "x86_64")]
#[unsafe(naked)]
pub(crate) unsafe extern "C" fn lock_contended(
    mutex: usize,
    _b: usize,
    _c: usize,
    _d: usize,
    _site: Site,
) -> c_int {
    core::arch::naked_asm!(
        ".cfi_startproc",
        // The hash of the recorder's `hash::hash`.
        "mov rax, rdi",
        "shr rax, 3",
        "imul eax, eax, {factor}",
        "shr eax, 16",
        "lea rdx, [rip + {recorder} + {hot_at}]",
        "cmp byte ptr [rax + rdx], 0",
        "jne 4f",
        "test byte ptr [rdi + {kind_at}], {special}",
        "jne {other}",
        "mov rax, qword ptr [rip + {free_word_at}]",
        "cmp dword ptr [rdi + rax], 0",
        "je 2f",
        "push rdi",
        ".cfi_adjust_cfa_offset 8",
        "call qword ptr [rip + {next} + 8 * {try_lock}]",
        "pop rdi",
        ".cfi_adjust_cfa_offset -8",
        "cmp eax, {busy}",
        "je 3f",
        "ret",
        "2:",
        "jmp qword ptr [rip + {next} + 8 * {lock}]",
        "3:",
        "mov r8, rsp",
        "mov r9, rbp",
        "jmp {wait}",
        // The same if the thread leaves acquisitions out ([`Recorder::skip_next`]) and the mutex is free.
        "4:",
        "mov rcx, qword ptr [rip + spinpark_recorder_0_1_local@GOTTPOFF]",
        "dec dword ptr fs:[rcx + {turns_at}]",
        "jle {other}",
        "cmp byte ptr [rip + {recorder} + {is_light_at}], 0",
        "jne 7f",
        "mov rdx, qword ptr [rip + {recorder} + {slots_at}]",
        "shl eax, {slot_shift}",
        "cmp dword ptr fs:[rcx + {skips_at}], 0",
        "jle {other}",
        "cmp byte ptr [rax + rdx + {is_free_at}], 0",
        "jne {other}",
        "test byte ptr [rdi + {kind_at}], {special}",
        "jne {other}",
        "cmp dword ptr [rdi + {owner_at}], 0",
        "jne {other}",
        "dec dword ptr fs:[rcx + {skips_at}]",
        "push rdi",
        ".cfi_adjust_cfa_offset 8",
        "call qword ptr [rip + {next} + 8 * {try_lock}]",
        "pop rdi",
        ".cfi_adjust_cfa_offset -8",
        "test eax, eax",
        "jne 5f",
        "mov rcx, qword ptr [rip + spinpark_recorder_0_1_local@GOTTPOFF]",
        "mov qword ptr fs:[rcx + {passed_at}], rdi",
        "ret",
        "5:",
        "cmp eax, {busy}",
        "jne 6f",
        // None: see `Governor::was_not_free`.
        "mov rcx, qword ptr [rip + spinpark_recorder_0_1_local@GOTTPOFF]",
        "inc dword ptr fs:[rcx + {skips_at}]",
        "jmp 3b",
        "6:",
        "ret",
        // The same in a light span (`instrument::lock_light`).
        "7:",
        "prefetchw [rdi]",
        "test byte ptr [rdi + {kind_at}], {special}",
        "jne {other}",
        "mov rax, qword ptr [rip + {free_word_at}]",
        "cmp dword ptr [rdi + rax], 0",
        "jne 3b",
        "mov qword ptr fs:[rcx + {passed_at}], rdi",
        "jmp qword ptr [rip + {next} + 8 * {lock}]",
        ".cfi_endproc",
        factor = const Recorder::HASH_FACTOR.cast_signed(),
        recorder = sym RECORDER,
        hot_at = const Recorder::HOT_AT,
        kind_at = const 4 * KIND_AT,
        special = const SPECIAL,
        free_word_at = sym FREE_WORD_AT,
        next = sym next::NEXT,
        try_lock = const Function::pthread_mutex_trylock as usize,
        lock = const Function::pthread_mutex_lock as usize,
        busy = const libc::EBUSY,
        turns_at = const Recorder::TURNS_AT,
        is_light_at = const Recorder::IS_LIGHT_AT,
        skips_at = const Recorder::SKIPS_AT,
        passed_at = const Recorder::PASSED_AT,
        slots_at = const Recorder::SLOTS_AT,
        slot_shift = const Recorder::SLOT_BYTES.ilog2(),
        is_free_at = const Recorder::IS_FREE_AT,
        owner_at = const 4 * OWNER_AT,
        other = sym lock_hot,
        wait = sym wait_contended,
    )
}

/// `pthread_mutex_lock` with the detail `contended`, where it is not by hand.
///
/// # Safety
///
/// As its namesake.
#[cfg(not(target_arch = "x86_64"))]
pub(crate) unsafe extern "C" fn lock_contended(
    mutex: usize,
    b: usize,
    c: usize,
    d: usize,
    site: Site,
) -> c_int {
    if is_special(mutex) || RECORDER.is_hot(mutex) {
        // SAFETY: the caller's arguments, passed on.
        return unsafe { lock_hot(mutex, b, c, d, site) };
    }
    // SAFETY: the caller's arguments, passed on.
    unsafe { lock::<CONTENDED>(mutex, b, c, d, site) }
}

/// [`lock_contended`] of one that was waited for, or is always glibc's.
unsafe extern "C" fn lock_hot(mutex: usize, b: usize, c: usize, d: usize, site: Site) -> c_int {
    RECORDER.turned();
    if is_special(mutex) {
        // SAFETY: the caller's mutex.
        return unsafe { lock::<CONTENDED>(mutex, b, c, d, site) };
    }
    // SAFETY: the caller's mutex.
    unsafe { instrument::lock_hot(&LOCK, [mutex, b, c, d], call(mutex, site)) }
}

#[cfg(target_arch = "x86_64")]
unsafe extern "C" fn wait_contended(mutex: usize, b: usize, c: usize, d: usize, site: Site) -> c_int {
    // SAFETY: the caller's mutex.
    unsafe { instrument::wait::<CONTENDED>(&LOCK, [mutex, b, c, d], call(mutex, site)) }
}

/// `pthread_mutex_unlock` with the detail `contended`: at once, if the acquisition was left out and no thread
/// sleeps until the release, which glibc's lock word tells ([`is_awaited`](crate::mutex_layout::is_awaited)).
/// Whatever is done here prolongs the hold.
///
/// # Safety
///
/// As its namesake.
#[cfg(target_arch = "x86_64")]
#[unsafe(naked)]
pub(crate) unsafe extern "C" fn unlock_contended(
    mutex: usize,
    _b: usize,
    _c: usize,
    _d: usize,
    _site: Site,
) -> c_int {
    core::arch::naked_asm!(
        ".cfi_startproc",
        "mov rcx, qword ptr [rip + spinpark_recorder_0_1_local@GOTTPOFF]",
        "cmp qword ptr fs:[rcx + {passed_at}], rdi",
        "jne {other}",
        "mov qword ptr fs:[rcx + {passed_at}], 0",
        "cmp dword ptr [rdi + {lock_at}], 1",
        "ja {other}",
        "jmp qword ptr [rip + {next} + 8 * {unlock}]",
        ".cfi_endproc",
        passed_at = const Recorder::PASSED_AT,
        lock_at = const 4 * LOCK_AT,
        next = sym next::NEXT,
        unlock = const Function::pthread_mutex_unlock as usize,
        other = sym unlock::<CONTENDED>,
    )
}

/// `pthread_mutex_unlock` with the detail `contended`, where it is not by hand.
///
/// # Safety
///
/// As its namesake.
#[cfg(not(target_arch = "x86_64"))]
pub(crate) unsafe extern "C" fn unlock_contended(
    mutex: usize,
    b: usize,
    c: usize,
    d: usize,
    site: Site,
) -> c_int {
    // SAFETY: the caller's arguments, passed on.
    unsafe { unlock::<CONTENDED>(mutex, b, c, d, site) }
}

/// `pthread_mutex_lock` with the detail `sampled`: [`instrument::lock`] for a mutex that looks free and was
/// never waited for, without what it keeps for the others.
///
/// # Safety
///
/// As its namesake.
pub(crate) unsafe extern "C" fn lock_sampled(
    mutex: usize,
    b: usize,
    c: usize,
    d: usize,
    site: Site,
) -> c_int {
    if is_special(mutex) || !seems_free(mutex) || RECORDER.is_hot(mutex) {
        // SAFETY: the caller's arguments, passed on.
        return unsafe { lock_others(mutex, b, c, d, site) };
    }
    // SAFETY: the caller's arguments.
    let result = unsafe { next::call(Function::pthread_mutex_lock, [mutex, b, c, d]) };
    if result == 0 && !RECORDER.count(mutex, Role::Write) {
        note_sampled(mutex, site);
    }
    result
}

/// Apart, since all that it keeps would have to be kept for a mutex that looks free, too.
#[inline(never)]
unsafe extern "C" fn lock_others(mutex: usize, b: usize, c: usize, d: usize, site: Site) -> c_int {
    // SAFETY: the caller's arguments, passed on.
    unsafe { lock::<SAMPLED>(mutex, b, c, d, site) }
}

#[cold]
#[inline(never)]
fn note_sampled(mutex: usize, site: Site) {
    instrument::note::<SAMPLED>(call(mutex, site));
}

const fn functions_with(lock: Function) -> LockFunctions {
    LockFunctions { try_it: Function::pthread_mutex_trylock, lock, codes: POSIX, is_mutex: true }
}

/// Declares functions of one shape.
macro_rules! functions {
    ($($name:ident($a:ident, $b:ident, $c:ident, $d:ident, $site:ident) = $body:expr;)*) => {$(
        /// # Safety
        ///
        /// As its namesake.
        pub(crate) unsafe extern "C" fn $name<const DETAIL: u32>(
            $a: usize, $b: usize, $c: usize, $d: usize, $site: Site,
        ) -> c_int {
            // SAFETY: the caller's arguments, passed on.
            unsafe { $body }
        }
    )*};
}
pub(crate) use functions;

/// The same without a detail.
macro_rules! functions_of_one_shape {
    ($($name:ident($a:ident, $b:ident, $c:ident, $d:ident, $site:ident) = $body:expr;)*) => {$(
        /// # Safety
        ///
        /// As its namesake.
        unsafe extern "C" fn $name($a: usize, $b: usize, $c: usize, $d: usize, $site: Site) -> c_int {
            // SAFETY: the caller's arguments, passed on.
            unsafe { $body }
        }
    )*};
}
pub(crate) use functions_of_one_shape;

functions! {
    lock(mutex, b, c, d, site) = instrument::lock::<DETAIL>(&LOCK, [mutex, b, c, d], call(mutex, site));
    timed_lock(mutex, time, c, d, site) =
        instrument::lock::<DETAIL>(&const { functions_with(Function::pthread_mutex_timedlock) }, [mutex, time, c, d], call(mutex, site));
    clock_lock(mutex, clock, time, d, site) =
        lock_by_clock::<DETAIL>(&const { functions_with(Function::pthread_mutex_clocklock) }, [mutex, clock, time, d], call(mutex, site));
    try_lock(mutex, b, c, d, site) = instrument::try_lock::<DETAIL>(&LOCK, [mutex, b, c, d], call(mutex, site));
    unlock(mutex, _b, _c, _d, site) = instrument::unlock::<DETAIL>(Function::pthread_mutex_unlock, call(mutex, site));
    init(mutex, attributes, c, d, site) = initialise::<DETAIL>(Function::pthread_mutex_init, [mutex, attributes, c, d], site);
}

/// Whether one can wait by this clock: another one is an error, also if there is nothing to wait for.
pub(crate) fn is_clock(clock: usize) -> bool {
    matches!(clock as c_int, libc::CLOCK_REALTIME | libc::CLOCK_MONOTONIC)
}

/// As [`instrument::lock`], with a clock that may be none.
#[inline(always)]
unsafe fn lock_by_clock<const DETAIL: u32>(
    functions: &LockFunctions,
    arguments: [usize; 4],
    call: LockCall,
) -> c_int {
    if !is_clock(arguments[1]) {
        // SAFETY: the caller's arguments.
        return unsafe { next::call(functions.lock, arguments) };
    }
    // SAFETY: the caller's promise.
    unsafe { instrument::lock::<DETAIL>(functions, arguments, call) }
}

/// Creates an object.
///
/// # Safety
///
/// As to call the function with these arguments.
pub(crate) unsafe fn initialise<const DETAIL: u32>(
    function: Function,
    arguments: [usize; 4],
    site: Site,
) -> c_int {
    // SAFETY: the caller's arguments.
    let result = unsafe { next::call(function, arguments) };
    if DETAIL != 0 && result == 0 {
        if let Some(own) = RECORDER.enter() {
            let stack = RECORDER.stack(own, site);
            RECORDER.created(arguments[0], stack);
            RECORDER.leave();
        } else {
            RECORDER.created_early(arguments[0], site);
        }
    }
    look_for_wishes::<DETAIL>();
    result
}

/// Destroys an object.
///
/// # Safety
///
/// As to call the function with this object.
pub(crate) unsafe fn dispose(function: Function, object: usize) -> c_int {
    if let Some(_own) = RECORDER.enter() {
        // Before: afterwards the memory may be another object's at once. One that is in use (EBUSY) is
        // registered again.
        RECORDER.destroyed(object);
        RECORDER.leave();
    } else {
        RECORDER.destroyed_early(object);
    }
    // SAFETY: the caller's object.
    unsafe { next::call(function, [object, 0, 0, 0]) }
}

/// `pthread_mutex_destroy`.
///
/// # Safety
///
/// As its namesake.
pub(crate) unsafe extern "C" fn destroy(mutex: usize, _b: usize, _c: usize, _d: usize, _site: Site) -> c_int {
    // SAFETY: the caller's mutex.
    unsafe { dispose(Function::pthread_mutex_destroy, mutex) }
}
