//! Where glibc's fields stand in our locks: the state of a lock lies around them.
//!
//! | bytes | a queue of ours     | mutex                                                 | read-write lock | condition variable (from byte 8 on) |
//! |-------|---------------------|-------------------------------------------------------|-----------------|-------------------------------------|
//! | 0     | word                | `__lock`                                              | `__readers`     | –                                   |
//! | 4–23  | padding, five words | `__count`, `__owner`, `__nusers`, `__kind`, `__spins` | –               | the last word: `__wrefs` (2.41)     |
//! | 18    | in the fourth       | the choice of a [`policy`]                            | the same        | –                                   |
//! | 24    | queue lock          | –                                                     | –               | –                                   |
//! | 28    | gap                 | –                                                     | `__shared`      | `__wrefs` (before 2.41)             |
//! | 32–39 | head                | –                                                     | –               | –                                   |
//!
//! A mutex' fields have glibc's meaning where other code reads them: Chromium's sandbox reads `__owner`,
//! debuggers' scripts read all of them, and glibc's own functions may be called on it as well (see
//! [`glibc_owned`](crate::glibc_owned)). Its words that the fast paths touch (`__lock`, `__kind`, the queue
//! lock) are near each other.

use core::mem::{MaybeUninit, size_of};
use core::sync::atomic::{AtomicU32, Ordering::Relaxed};

use libc::{pthread_cond_t, pthread_condattr_t};
use spinpark_linux::{LinuxWith, LockPadding};
use spinpark_locks::{Chosen, WaitQueue};

use crate::{policy, real};

/// The padding in our locks.
pub(crate) enum Fields {}

impl LockPadding for Fields {
    type Padding = [AtomicU32; 5];
    type Gap = AtomicU32;

    fn may_have_bias(lock: usize) -> bool {
        policy::may_have_bias(lock)
    }
}

/// What the locks here ask: as usual, or as the user has chosen for one of them.
pub(crate) type Policy = Chosen<policy::Noted>;

/// The platform of all locks here.
pub(crate) type Linux = LinuxWith<Fields>;

const _: () =
    assert!(matches!(WaitQueue::<Linux>::layout(), [24, 32]) && size_of::<WaitQueue<Linux>>() == 40);

/// In the flags of a condition variable: process-shared.
pub(crate) const SHARED: u32 = 1;
/// In the flags of a condition variable: `CLOCK_MONOTONIC`.
pub(crate) const MONOTONIC: u32 = 2;
/// Where glibc keeps these flags, in words of 32 bits from the padding on; any word behind that is the gap.
static FLAGS_AT: AtomicU32 = AtomicU32::new(u32::MAX);
/// Where our queue starts in a condition variable, in bytes.
pub(crate) const COND_QUEUE_AT: usize = 8;
/// The padding there, in words from the start of the object: behind the queue's word.
const COND_PADDING: usize = COND_QUEUE_AT / size_of::<u32>() + 1;
const WORDS: usize = size_of::<pthread_cond_t>() / size_of::<u32>();

/// glibc's flags of the condition variable whose queue this is.
#[inline(always)]
pub(crate) fn cond_flags(queue: &WaitQueue<Linux>) -> &AtomicU32 {
    queue.padding().get(FLAGS_AT.load(Relaxed) as usize).unwrap_or(queue.gap())
}

/// Finds out where glibc keeps its flags: they are what is left of an object initialised as process-shared
/// and monotonic. Nothing changes if glibc cannot be asked.
#[cold]
pub(crate) fn probe() {
    let mut attributes = MaybeUninit::<pthread_condattr_t>::zeroed();
    let mut scratch = MaybeUninit::<pthread_cond_t>::zeroed();
    let pointer = attributes.as_mut_ptr();
    // SAFETY: glibc's own function on memory of the right size and alignment.
    let shared = unsafe { real::pthread_condattr_setpshared(pointer, libc::PTHREAD_PROCESS_SHARED) } == 0;
    // SAFETY: as above.
    let monotonic = unsafe { real::pthread_condattr_setclock(pointer, libc::CLOCK_MONOTONIC) } == 0;
    // SAFETY: as above.
    let initialised = unsafe { real::pthread_cond_init(scratch.as_mut_ptr(), pointer) } == 0;
    // SAFETY: as large, and any bits are good words.
    let words = unsafe { scratch.as_ptr().cast::<[u32; WORDS]>().read() };
    let found = words[COND_PADDING..].iter().position(|&word| word == SHARED | MONOTONIC);
    if let (true, Some(found)) = (shared && monotonic && initialised, found) {
        FLAGS_AT.store(found as u32, Relaxed);
    }
}
