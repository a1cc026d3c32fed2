//! Runs once when the library is loaded. Nothing depends on it: the first call does the same if it comes before.

extern "C" fn start() {
    spinpark_pthread::mode::start();
}

// SAFETY: the loader calls each entry of `.init_array` once, with arguments that `start` does not look at.
#[used]
#[unsafe(link_section = ".init_array")]
static START: extern "C" fn() = start;
