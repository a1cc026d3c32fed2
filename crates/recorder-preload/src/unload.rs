//! Modules that are unloaded: other code and other locks may come to their addresses.

use core::ffi::c_int;

use spinpark_recorder::Site;

use crate::function::Function;
use crate::next;
use crate::phases::RECORDER;

/// `dlclose`.
pub(crate) unsafe extern "C" fn dlclose(handle: usize, _: usize, _: usize, _: usize, _: Site) -> c_int {
    // SAFETY: the caller's argument.
    let result = unsafe { next::call(Function::dlclose, [handle, 0, 0, 0]) };
    RECORDER.unloaded();
    result
}
