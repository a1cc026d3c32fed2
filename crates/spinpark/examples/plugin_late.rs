//! A library whose only use of a lock is in its destructor, when the loader has already decided to unload it.
//!
//! `tests/it/unload.rs` loads and closes it.

use spinpark::Mutex;

static COUNT: Mutex<u64> = Mutex::new(0);

extern "C" fn at_the_end() {
    for _ in 0..1000 {
        *COUNT.lock() += 1;
    }
}

#[used]
#[link_section = ".fini_array"]
static AT_THE_END: extern "C" fn() = at_the_end;
