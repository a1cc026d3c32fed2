//! What a caller must not do, and what shows at no cost: a line on standard error, and the end of the process.
//! To go on would be to let two threads into a critical section, or to wait for ever.

use spinpark_linux::write_message;

/// Ends the process. `message` is the whole line: the function that was called, and what is wrong.
#[cold]
#[inline(never)]
pub(crate) fn end(message: &[u8]) -> ! {
    write_message(message);
    // SAFETY: ends the process.
    unsafe { libc::abort() }
}

/// The line about a call: `misuse!("spinpark_mutex_lock", "why")` does not return.
macro_rules! misuse {
    ($function:literal, $what:literal) => {
        $crate::misuse::end(concat!("spinpark: ", $function, ": ", $what, "\n").as_bytes())
    };
}

pub(crate) use misuse;
