//! A store happens.

use std::sync::atomic::Ordering::Relaxed;

use crate::world::Did;
use crate::world::memory::{Access, Value, Write};

impl Write {
    /// Puts the value into memory. Returns what to say of it.
    ///
    /// # Safety
    ///
    /// The word has not been dropped.
    pub(crate) unsafe fn happen(self) -> Did {
        match self.value {
            Value::Unknown => Did::Accessed(Access::Store, self.address),
            Value::Word(word, value) => {
                // SAFETY: it came from a reference, and is not dropped, as the caller says; all accesses are
                // atomic.
                let old = unsafe { &*word }.swap(value, Relaxed);
                Did::Wrote(self.address, old, value)
            }
            Value::Pointer(pointer, value) => {
                // SAFETY: as above. A pointer to a sized type is as large as any other.
                let old = unsafe { &*pointer }.swap(value, Relaxed);
                Did::Pointer(self.address, Some(old.addr()), value.addr())
            }
            Value::Slot(slot, value) => {
                // SAFETY: as above.
                unsafe { &*slot }.store(value, Relaxed);
                Did::Accessed(Access::Store, self.address)
            }
        }
    }
}
