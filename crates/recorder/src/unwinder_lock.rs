//! Whether the unwinder's own mutex is held.
//!
//! Once a program has registered unwind tables of its own, the `libgcc_s` of GCC 12 and before locks a mutex
//! to look through them, and may allocate with it held. So a thread that holds it may wait for an allocator's
//! mutex: were its stack unwound then, it would wait for itself. And one that waits while it holds an
//! allocator's mutex would wait for the first.
//!
//! No interface gives that mutex's address. But it is static, so it is in the little memory that the library
//! writes to, and a held mutex looks like nothing else there.

use core::mem::size_of;
use core::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// More is not searched, bytes: `libgcc_s` has 1,304.
const LARGEST: usize = 16 << 10;

/// Memory that the unwinder's library writes to: addresses from and to.
#[derive(Debug)]
pub(crate) struct UnwinderLock {
    from: AtomicUsize,
    to: AtomicUsize,
}

impl UnwinderLock {
    pub(crate) const fn new() -> Self {
        Self { from: AtomicUsize::new(0), to: AtomicUsize::new(0) }
    }

    /// Finds that memory, of the library that is mapped from `start` on.
    pub(crate) fn start(&self, start: usize) {
        // SAFETY: a library's first page begins with its header.
        let header = unsafe { &*(start as *const libc::Elf64_Ehdr) };
        let first = start.wrapping_add(header.e_phoff as usize) as *const libc::Elf64_Phdr;
        let writable = (0..usize::from(header.e_phnum)).find_map(|number| {
            // SAFETY: the header describes that number of segments there.
            let segment = unsafe { &*first.wrapping_add(number) };
            let is_it = segment.p_type == libc::PT_LOAD && segment.p_flags & libc::PF_W != 0;
            is_it.then_some((segment.p_vaddr as usize, segment.p_memsz as usize))
        });
        let Some((at, length)) = writable.filter(|(_, length)| *length <= LARGEST) else { return };
        let from = (start + at).next_multiple_of(size_of::<usize>());
        self.from.store(from, Relaxed);
        self.to.store(start + at + length, Relaxed);
    }

    /// Whether a thread seems to hold a mutex there; or `thread` does, one of spinpark's.
    pub(crate) fn is_held(&self, thread: u32) -> bool {
        const WORDS: usize = 5;
        let (from, to) = (self.from.load(Relaxed), self.to.load(Relaxed));
        let Some(places) = (to - from).checked_sub(4 * WORDS) else { return false };
        (0..=places).step_by(8).any(|place| {
            let word = |at: usize| {
                // SAFETY: inside that memory; others may be writing.
                unsafe { ((from + place) as *const u32).wrapping_add(at).read_volatile() }
            };
            is_held_mutex(core::array::from_fn(word), thread)
        })
    }
}

/// Bits of a default mutex' kind that may be set: whether glibc elides it, that spinpark's is glibc's by now, and the
/// policy that the user has chosen for one of spinpark's.
const IN_KIND: u32 = 0x300 | 0x400 | 0x3f << 16;

/// Whether these are the first words of a mutex of the default kind that is held.
fn is_held_mutex([word, count, owner, users, kind]: [u32; 5], thread: u32) -> bool {
    match [word, count, owner, users, kind & !IN_KIND] {
        // glibc's: lock, count, owner, users, kind.
        [1 | 2, 0, owner, 1, 0] if owner != 0 => true,
        // spinpark's, by its owner.
        [word, _, _, _, 0] => word & 3 == 3 && word >> 10 == thread,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mutex_that_is_held_is_seen() {
        let words: [u64; 8] = [0, 7, 1, 4321 | 1 << 32, 0, 0, 0, 0];
        let lock = UnwinderLock::new();
        assert!(!lock.is_held(4321));
        let from = words.as_ptr() as usize;
        lock.from.store(from, Relaxed);
        lock.to.store(from + size_of_val(&words), Relaxed);
        assert!(lock.is_held(4321) && lock.is_held(1));
        lock.from.store(from + 24, Relaxed);
        assert!(!lock.is_held(4321));
        assert!(is_held_mutex([4321 << 10 | 3, 0, 0, 0, 0], 4321));
        assert!(!is_held_mutex([4321 << 10 | 3, 0, 0, 0, 0], 4322));
        let with_policy = 3 << 16 | 3 << 20;
        assert!(is_held_mutex([4321 << 10 | 3, 0, 0, 0, with_policy], 4321));
        assert!(!is_held_mutex([4321 << 10 | 3, 0, 0, 0, 0x80], 4321));
    }
}
