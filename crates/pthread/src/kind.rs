//! What a mutex' `kind` says, the field that glibc's own initialiser or a static one writes.

/// The bits that tell how the mutex behaves.
pub(crate) const TYPE: u32 = 0x3;
pub(crate) const RECURSIVE: u32 = libc::PTHREAD_MUTEX_RECURSIVE as u32;
pub(crate) const ERRORCHECK: u32 = libc::PTHREAD_MUTEX_ERRORCHECK as u32;
/// Ours: the mutex was found to be used through glibc's functions, which serve it from then on. They ignore this bit.
pub(crate) const FOREIGN: u32 = 1 << 10;
/// The bits that make it glibc's: robust, priority inheritance, priority protection, process-shared; or [`FOREIGN`]. (Not the two
/// above the first four, which only said whether to elide the lock.)
pub(crate) const GLIBCS: u32 = 0xf0 | FOREIGN;
/// What glibc's destroy leaves there: glibc's own functions answer EINVAL then.
pub(crate) const DESTROYED: u32 = u32::MAX;

const _: () = assert!(RECURSIVE == 1 && ERRORCHECK == 2 && TYPE == 3);

/// Neither recursive nor error checking.
#[inline(always)]
pub(crate) fn is_plain(kind: u32) -> bool {
    kind & TYPE == 0 || kind & TYPE == TYPE
}
