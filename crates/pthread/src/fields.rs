//! Where glibc's fields stand in our locks: the state of a lock lies around them.
//!
//! | bytes | a queue of ours  | mutex         | read-write lock | condition variable (from byte 8 on)     |
//! |-------|------------------|---------------|-----------------|-----------------------------------------|
//! | 0     | word             | `__lock`      | `__readers`     | –                                       |
//! | 4–23  | room, five words | `__count`, `__owner`, `__nusers`, `__kind`, `__spins` | – | the last word: `__wrefs` (2.41) |
//! | 24    | queue lock       | –             | –               | –                                       |
//! | 28    | gap              | –             | `__shared`      | `__wrefs` (before 2.41)                 |
//! | 32–39 | head             | –             | –               | –                                       |
//!
//! A mutex' fields have glibc's meaning where other code looks at them: Chromium's sandbox reads `__owner`, debuggers' scripts
//! read all of them, and glibc's own functions may be called on it as well (see [`foreign`](crate::foreign)). Its words that the fast paths touch (`__lock`, `__kind`, the queue lock) are near each other.

use core::ffi::c_int;
use core::mem::{MaybeUninit, align_of, size_of};
use core::sync::atomic::{AtomicU32, Ordering::Relaxed};

use libc::{pthread_cond_t, pthread_condattr_t, pthread_mutex_t};
use spinpark_linux::{LinuxWith, Rooms};
use spinpark_locks::{RawMutex, WaitNode, WaitQueue};

use crate::kind::{self, FOREIGN, GLIBCS};
use crate::real;

/// What our locks leave room for.
pub(crate) enum Fields {}

impl Rooms for Fields {
    type Room = [AtomicU32; 5];
    type Gap = AtomicU32;
}

/// The platform of all locks here.
pub(crate) type Linux = LinuxWith<Fields>;

const _: () =
    assert!(matches!(WaitQueue::<Linux>::layout(), [24, 32]) && size_of::<WaitQueue<Linux>>() == 40);

/// Our view of a `pthread_mutex_t`.
#[repr(C)]
pub(crate) struct Mutex {
    pub(crate) raw: RawMutex<Linux>,
}

const _: () = assert!(size_of::<Mutex>() <= size_of::<pthread_mutex_t>());
const _: () = assert!(align_of::<Mutex>() <= align_of::<pthread_mutex_t>());
const _: () = assert!(
    matches!(WaitNode::<Linux>::layout(), [8, 28, 32]),
    "preload/libspinpark_preload.so-gdb.py follows waiters"
);

impl Mutex {
    /// # Safety
    ///
    /// `mutex` points to a mutex, which lives for `'a`.
    #[inline(always)]
    pub(crate) unsafe fn at<'a>(mutex: *const pthread_mutex_t) -> &'a Self {
        // SAFETY: the caller's pointer; size and alignment fit; every field is atomic.
        unsafe { &*mutex.cast() }
    }

    /// glibc's `__count`: how often a recursive mutex is held; only its owner reads and writes it.
    #[inline(always)]
    pub(crate) fn count(&self) -> &AtomicU32 {
        &self.raw.queue().room()[0]
    }

    /// glibc's `__owner`, of recursive and error-checking mutexes: the id of the thread that holds it, 0 while it is free.
    /// Written by the owner only, so its own is certain. (The lock word has it too; but a load of what a read-modify-write has
    /// just written costs 5 ns.)
    #[inline(always)]
    pub(crate) fn owner(&self) -> &AtomicU32 {
        &self.raw.queue().room()[1]
    }

    /// glibc's `__nusers`, which only its own functions count: 0 unless they have locked the mutex.
    #[inline(always)]
    pub(crate) fn users(&self) -> &AtomicU32 {
        &self.raw.queue().room()[2]
    }

    /// Where glibc counts spins: the threads that wait on a condition variable and will take this mutex back. Read and written by
    /// the thread that holds the mutex, but for the look of a destroyer.
    #[inline(always)]
    pub(crate) fn waiters(&self) -> &AtomicU32 {
        &self.raw.queue().room()[4]
    }

    /// glibc's `__kind`.
    #[inline(always)]
    pub(crate) fn kind_word(&self) -> &AtomicU32 {
        &self.raw.queue().room()[3]
    }

    #[inline(always)]
    pub(crate) fn kind(&self) -> u32 {
        self.kind_word().load(Relaxed)
    }

    #[inline(always)]
    pub(crate) fn is_plain(&self) -> bool {
        kind::is_plain(self.kind())
    }

    /// Whether calls on this mutex go to glibc because it was found to be used through glibc's functions.
    pub(crate) fn is_passed_on(&self) -> bool {
        self.kind() & GLIBCS == FOREIGN
    }

    #[inline(always)]
    pub(crate) fn is_owned_by(&self, token: u32) -> bool {
        self.owner().load(Relaxed) == token
    }

    /// Notes the owner after an acquisition; returns 0.
    #[inline(always)]
    pub(crate) fn acquired_by(&self, token: u32) -> c_int {
        if !self.is_plain() {
            self.owner().store(token, Relaxed);
            self.count().store(1, Relaxed);
        }
        0
    }

    /// By the owner, with the mutex held once.
    pub(crate) fn held_more_often(&self, depth: u32) {
        if depth > 0 {
            self.count().store(depth + 1, Relaxed);
        }
    }
}

/// In the flags of a condition variable: process-shared.
pub(crate) const SHARED: u32 = 1;
/// In the flags of a condition variable: `CLOCK_MONOTONIC`.
pub(crate) const MONOTONIC: u32 = 2;
/// Where glibc keeps these flags, in words of 32 bits from the room on; any word behind that is the gap.
static FLAGS_AT: AtomicU32 = AtomicU32::new(u32::MAX);
/// Where our queue starts in a condition variable, in bytes.
pub(crate) const COND_QUEUE_AT: usize = 8;
/// The room there, in words from the start of the object: behind the queue's word.
const COND_ROOM: usize = COND_QUEUE_AT / size_of::<u32>() + 1;
const WORDS: usize = size_of::<pthread_cond_t>() / size_of::<u32>();

/// glibc's flags of the condition variable whose queue this is.
#[inline(always)]
pub(crate) fn cond_flags(queue: &WaitQueue<Linux>) -> &AtomicU32 {
    queue.room().get(FLAGS_AT.load(Relaxed) as usize).unwrap_or(queue.gap())
}

/// Finds out where glibc keeps its flags: they are what is left of an object initialised as process-shared and
/// monotonic. Nothing changes if glibc cannot be asked.
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
    let found = words[COND_ROOM..].iter().position(|&word| word == SHARED | MONOTONIC);
    if let (true, Some(found)) = (shared && monotonic && initialised, found) {
        FLAGS_AT.store(found as u32, Relaxed);
    }
}
