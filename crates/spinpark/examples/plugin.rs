//! A library that a program loads, uses and closes at run time, as plugins and extension modules are.
//!
//! `tests/it/unload.rs` does that to it, and to one that uses its locks only as it is closed.

use spinpark::{Mutex, RwLock};

static COUNT: Mutex<u64> = Mutex::new(0);
static STEP: RwLock<u64> = RwLock::new(1);

/// Counts up; returns how often it was called.
#[no_mangle]
pub extern "C" fn count() -> u64 {
    let step = *STEP.read();
    let mut count = COUNT.lock();
    *count += step;
    *count
}
