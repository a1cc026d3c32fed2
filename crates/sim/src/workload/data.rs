//! The data that locks of a workload protect, on cache lines of its own.

use std::rc::Rc;

use spinpark_platform::{AtomicU32 as _, Ordering::Relaxed};

use crate::object::Object;
use crate::platform::AtomicU32;

/// Cache lines of protected data.
#[derive(Debug)]
pub(super) struct Data(pub(super) [Line; 8]);

#[derive(Debug)]
#[repr(align(64))]
pub(super) struct Line(AtomicU32);

pub(super) fn data() -> Rc<Object<Data>> {
    Object::new(Data(std::array::from_fn(|_| Line(AtomicU32::new(0)))))
}

/// A change of each line, as `+= 1` under a lock: a load and a store. None needs another one, so they come
/// side by side.
pub(super) fn change(lines: &[Line]) {
    for Line(word) in lines {
        word.store(word.load(Relaxed), Relaxed);
    }
}

/// A reader's look at a line.
pub(super) fn look(Line(word): &Line) -> u32 {
    word.load(Relaxed)
}
