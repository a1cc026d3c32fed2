//! The caller of code that has no unwind table, by its frame pointer: code that is made at run time, and what an
//! engine has of it in its own file, as V8's built-in functions.
//!
//! V8, .NET, LuaJIT's interpreter and a JVM with `-XX:+PreserveFramePointer` keep one: it points to the caller's, which the return
//! address follows. The register is known of a thread that was stopped; of others, if a function below has saved
//! it, as most do. Each step is checked: the frame lies further up in the stack, and its return address leads to
//! code, behind a call where the file can be read.

use super::{Maps, Symbols};
use crate::machine::code_address;

/// A frame is not larger.
pub(super) const LARGEST: u64 = 1 << 20;

/// What a frame pointer leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// The caller.
    Caller {
        /// The return address.
        code: u64,
        /// Where its frame begins.
        stack: u64,
        /// Its frame pointer.
        pointer: u64,
    },
    /// It is behind the copy of the stack.
    Beyond,
    /// No frame.
    None,
}

impl Symbols {
    /// The caller of the function that `code` is in, which uses the stack from `stack` on. `at`: the word at an
    /// address of the stack.
    pub(super) fn by_frame_pointer(
        &mut self,
        maps: &Maps,
        (code, stack): (u64, u64),
        pointer: u64,
        at: impl Fn(u64) -> Option<u64>,
    ) -> Step {
        let mapping = maps.find(u32::MAX, code.wrapping_sub(1));
        let has_one = mapping.is_some_and(|it| it.is_executable && !it.path.starts_with("[vdso]"));
        let size = pointer.checked_sub(stack).filter(|size| *size <= LARGEST && size.is_multiple_of(8));
        if !has_one || size.is_none() {
            return Step::None;
        }
        let (Some(callers), Some(code)) = (at(pointer), at(pointer + 8)) else { return Step::Beyond };
        let code = code_address(code);
        if self.may_return_to(maps, code) {
            Step::Caller { code, stack: pointer + 16, pointer: callers }
        } else {
            Step::None
        }
    }

    /// Whether a word may be a return address: of code that was made at run time, there is no more than its place.
    fn may_return_to(&mut self, maps: &Maps, address: u64) -> bool {
        let Some(mapping) = maps.find(u32::MAX, address.wrapping_sub(1)) else { return false };
        if !mapping.is_executable {
            return false;
        }
        if mapping.is_file() && self.file(mapping).is_some() {
            return self.is_behind_call(maps, address);
        }
        true
    }
}
