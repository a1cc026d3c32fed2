//! Where a thread's own stack lies: the stack that the C library or the kernel gave it.
//!
//! Unwinding reads what lies above a call, as far as tables say. On a stack that the program made itself (a
//! coroutine's, or that of a signal handler) it is unknown what that is, and where the memory ends. So only a
//! thread's own stack is unwound, and only if the unwinder fits on it.
//!
//! `pthread_getattr_np` would say where it is, but it allocates. glibc's descriptor of a thread, found from the
//! thread pointer, has the start of its stack and the length side by side, and lies itself at the upper end
//! of that stack: two words whose sum is just behind it are those two. The main thread's has none: its stack
//! is where the loader found it.

use core::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use spinpark_linux::{lookup, raw, Scope};

use super::arch::stack_by_descriptor;
use super::site::Site;

/// What unwinding needs below a call, bytes: with some for what it calls, and for a signal.
const NEEDED: usize = 12 << 10;
/// The most of the main thread's stack that is searched, bytes, if it may be that large. Nothing else is
/// mapped that near.
const MAIN: usize = 64 << 20;

/// Addresses from and to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Bounds {
    pub(crate) low: usize,
    pub(crate) high: usize,
}

impl Bounds {
    /// Of a thread whose stack cannot be found: everything.
    pub(crate) const UNKNOWN: Self = Self { low: 0, high: usize::MAX };

    /// Whether a call from `site` may be unwound.
    pub(crate) fn has_room(self, site: Site) -> bool {
        let stack = site.stack as usize;
        stack >= self.low.saturating_add(NEEDED) && stack < self.high
    }

    /// Whether there is a word of this stack at `address`.
    pub(crate) fn has(self, address: usize) -> bool {
        self.low <= address && address < self.high && address % 8 == 0
    }
}

/// The main thread's.
#[derive(Debug)]
pub(crate) struct MainStack {
    low: AtomicUsize,
    high: AtomicUsize,
}

impl MainStack {
    pub(crate) const fn new() -> Self {
        Self { low: AtomicUsize::new(0), high: AtomicUsize::new(0) }
    }

    pub(crate) fn start(&self) {
        let end = lookup(Scope::All, c"__libc_stack_end").cast::<usize>();
        // SAFETY: null, or the loader's variable of that name.
        let Some(end) = (unsafe { end.as_ref() }) else { return };
        // What the kernel put there first, arguments and environment, counts and is not below this end.
        let largest = usize::try_from(raw::largest_stack()).unwrap_or(MAIN).min(MAIN) / 4 * 3;
        self.low.store(end.saturating_sub(largest), Relaxed);
        self.high.store(*end, Relaxed);
    }

    fn get(&self) -> Bounds {
        Bounds { low: self.low.load(Relaxed), high: self.high.load(Relaxed) }
    }
}

/// The calling thread's.
pub(crate) fn of_this_thread(main: &MainStack) -> Bounds {
    stack_by_descriptor().map_or_else(|| main.get(), |(low, high)| Bounds { low, high })
}

#[cfg(all(test, target_env = "gnu"))]
mod tests {
    extern crate std;

    use super::*;

    fn here() -> Site {
        let word = 0_usize;
        Site { stack: core::ptr::from_ref(&word), frame: core::ptr::null() }
    }

    #[test]
    fn a_thread_knows_its_stack() {
        let main = MainStack::new();
        main.start();
        let seen = |size: usize| {
            let read = || (of_this_thread(&MainStack::new()), here().stack as usize);
            std::thread::Builder::new()
                .stack_size(size)
                .spawn(read)
                .expect("a thread")
                .join()
                .expect("its end")
        };
        for size in [256 << 10, 1 << 20, 8 << 20] {
            let (bounds, stack) = seen(size);
            assert!(bounds.has(stack / 8 * 8));
            // Guard and descriptor are a part of it, or not. glibc may give the thread the larger stack of
            // one that has ended, such as another test's, which has 2 MB.
            let length = bounds.high - bounds.low;
            let most = size.max(2 << 20) + (64 << 10);
            assert!((size - (16 << 10)..most).contains(&length), "{bounds:x?} of {size:x}");
        }
        // This thread is not the main one, either.
        assert!(of_this_thread(&main).has_room(here()));
        assert!(!main.get().has(here().stack as usize / 8 * 8));
    }
}
