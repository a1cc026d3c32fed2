//! The table through which the exported functions jump, and what it may have for each detail.
//!
//! Its words are written one by one, while other threads may be jumping: each is at all times a function that
//! does what its name says, so any mixture is good. Which functions these are, the module `exports` says,
//! which is above everything that records: it defines both symbols.

use core::ffi::{c_int, c_void};
use core::sync::atomic::{AtomicPtr, Ordering::Relaxed};

use spinpark_recorder::Site;
use spinpark_recorder::format::Detail;

use crate::function::COUNT;
use crate::next;

/// A recording function: at most four arguments, then its call site.
pub(crate) type Ours = unsafe extern "C" fn(usize, usize, usize, usize, Site) -> c_int;

/// The details as parameters of recording functions.
pub(crate) const OFF: u32 = Detail::Off as u32;
pub(crate) const CONTENDED: u32 = Detail::Contended as u32;
pub(crate) const SAMPLED: u32 = Detail::Sampled as u32;
pub(crate) const FULL: u32 = Detail::Full as u32;

/// Ours for each detail; none where there is nothing to record.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub(crate) struct Forms(pub(crate) [Option<Ours>; 4]);

unsafe extern "C" {
    static spinpark_profiler_table: [AtomicPtr<c_void>; COUNT];
    static spinpark_profiler_forms: [Forms; COUNT];
    static spinpark_profiler_delays: [Option<Ours>; COUNT];
}

fn table() -> &'static [AtomicPtr<c_void>; COUNT] {
    // SAFETY: defined in `exports`, with a word for each function; only ever accessed as this.
    unsafe { &spinpark_profiler_table }
}

fn forms() -> &'static [Forms; COUNT] {
    // SAFETY: defined in `exports`, of this type, and never written.
    unsafe { &spinpark_profiler_forms }
}

/// Switches every exported function to this detail.
pub(crate) fn install(detail: Detail) {
    fill(|number| forms()[number].0[detail as usize]);
}

/// Switches every exported function to the one that delays, or, where there is none, to the next implementation's.
pub(crate) fn install_delays() {
    // SAFETY: defined in `delay`, of this type, and never written.
    let delays = unsafe { &spinpark_profiler_delays };
    fill(|number| delays[number]);
}

fn fill(ours: impl Fn(usize) -> Option<Ours>) {
    for (number, slot) in table().iter().enumerate() {
        let ours = ours(number).map_or(core::ptr::null_mut(), |ours| ours as *mut c_void);
        let next = next::address(number);
        // What the next library does not have is not called by a program that started.
        let ours = if next.is_null() { core::ptr::null_mut() } else { ours };
        slot.store(if ours.is_null() { next } else { ours }, Relaxed);
    }
}

/// Makes one exported function the next implementation's, which is known.
pub(crate) fn pass(number: usize) {
    if let Some(slot) = table().get(number) {
        slot.store(next::address(number), Relaxed);
    }
}
