//! What threads do that have a lock for which others wait: `read`, `fsync`, `poll` and their like, by libc's
//! names. What libc does by itself, and what a program does by system calls of its own, is not seen.
//!
//! A thread that has noted no lock jumps on, with all that its caller has passed; one that has takes the time
//! of the call.

use core::ffi::{CStr, c_int};

use spinpark_recorder::format::{CALLS, Kind, Role};
use spinpark_recorder::{LockCall, Site};

use crate::arch;
use crate::function::{COUNT, Function, NAMES};
use crate::instrument::enter_late;
use crate::next::{self, NEXT};
use crate::phases::RECORDER;
use crate::table::Forms;

/// The first of these functions; all that follow are of them.
const FIRST: usize = Function::read as usize;

/// What calls of each function count as: an index of [`CALLS`], plus one.
static COUNTED_AS: [u8; COUNT - FIRST] = {
    let mut counted_as = [0; COUNT - FIRST];
    let mut at = 0;
    while at < counted_as.len() {
        counted_as[at] = number_of(NAMES[FIRST + at]);
        at += 1;
    }
    counted_as
};

/// The number of the call that a function makes, whatever its variant: `__read_chk`, `pread64`.
const fn number_of(function: &CStr) -> u8 {
    let bytes = function.to_bytes();
    let mut at = 0;
    // The longest name that is the beginning of it, but for underscores: `pwritev` is no `pwrite`.
    let (mut found, mut longest) = (0, 0);
    while at < CALLS.len() {
        let name = CALLS[at].as_bytes();
        if name.len() > longest && begins_with(bytes, name) {
            (found, longest) = (at + 1, name.len());
        }
        at += 1;
    }
    assert!(found != 0 && found < 256, "a name of a call is missing");
    found as u8
}

const fn begins_with(function: &[u8], name: &[u8]) -> bool {
    let start = if function[0] == b'_' { 2 } else { 0 };
    let mut at = 0;
    while at < name.len() {
        if start + at >= function.len() || function[start + at] != name[at] {
            return false;
        }
        at += 1;
    }
    true
}

pub(crate) const FORMS: Forms = Forms([None, Some(held), Some(held), Some(held)]);

/// Any of these functions; [`arch::jump`] has said which.
///
/// # Safety
///
/// As its namesake.
#[unsafe(naked)]
unsafe extern "C" fn held(_: usize, _: usize, _: usize, _: usize, _: Site) -> c_int {
    core::arch::naked_asm!(
        ".cfi_startproc",
        arch::held!(),
        ".cfi_endproc",
        holds = sym holds,
        next = sym NEXT,
        call = sym call,
    )
}

/// Whether the thread has noted a lock, or tries for one.
extern "C" fn holds() -> u32 {
    u32::from(RECORDER.holds_anything() || RECORDER.is_polling())
}

/// `sched_yield`.
///
/// # Safety
///
/// As its namesake.
unsafe extern "C" fn sched_yield(_a: usize, _b: usize, _c: usize, _d: usize, site: Site) -> c_int {
    let start = RECORDER.now();
    // SAFETY: takes nothing.
    let result = unsafe { next::call(Function::sched_yield, [0; 4]) };
    // What a holder does, and a thread that tries for a lock, is known better.
    if holds() != 0 {
        yielded(site, start);
    } else if let Some(ticks) = RECORDER.yielded(start) {
        looped(site, ticks);
    }
    result
}

const YIELD: usize = CALLS.len();
const _: () = assert!(matches!(CALLS[YIELD - 1].as_bytes(), b"sched_yield"));

fn yield_call(site: Site) -> LockCall {
    LockCall { address: YIELD, role: Role::Wake, kind: |_| Kind::Call, site }
}

#[cold]
#[inline(never)]
fn yielded(site: Site, start: u64) {
    RECORDER.slept();
    if let Some(own) = RECORDER.enter() {
        RECORDER.called(own, &yield_call(site), start);
        RECORDER.leave();
    }
}

#[cold]
#[inline(never)]
fn looped(site: Site, ticks: u64) {
    if let Some(own) = enter_late(false) {
        RECORDER.looped(own, &yield_call(site), ticks);
        RECORDER.leave();
    }
}

pub(crate) const YIELDS: Forms = Forms([None, Some(sched_yield), Some(sched_yield), Some(sched_yield)]);

/// Makes the call.
///
/// # Safety
///
/// As to call that function; the site is that of the caller.
unsafe extern "C" fn call(arguments: &[usize; 7], site: Site, number: usize) -> isize {
    let start = RECORDER.now();
    // SAFETY: the caller's promise.
    let result = unsafe { next::call_wide(number, arguments) };
    if matches!(NAMES[number].to_bytes(), b"nanosleep" | b"clock_nanosleep" | b"usleep") {
        RECORDER.slept();
    }
    if let Some(own) = RECORDER.enter() {
        let counted_as = COUNTED_AS.get(number - FIRST).copied().unwrap_or(0);
        let call =
            LockCall { address: usize::from(counted_as), role: Role::Wake, kind: |_| Kind::Call, site };
        RECORDER.called(own, &call, start);
        RECORDER.leave();
    }
    result
}
