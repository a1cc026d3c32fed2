//! Where a lock function was called.

/// Where a lock function was called, as its first instruction sees it.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Site {
    /// The stack pointer: it points to the return address.
    pub stack: *const usize,
    /// The frame pointer, or whatever that register has.
    pub frame: *const usize,
}

impl Site {
    /// The return address.
    #[inline(always)]
    #[must_use]
    pub fn caller(self) -> usize {
        // SAFETY: a site is made where that is so.
        unsafe { *self.stack }
    }
}
