//! What is known of a mutex' layout: the kind, which glibc's static initialisers fix, and the words that say
//! which thread has it.

use core::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use spinpark_linux::raw;
use spinpark_recorder::format::{Kind, Role};

/// Where glibc's static initialisers have the kind of a mutex, and where its mutexes have lock word and
/// owner; words.
pub(crate) const KIND_AT: usize = 4;
pub(crate) const LOCK_AT: usize = 0;
pub(crate) const OWNER_AT: usize = 2;
/// Where glibc's read-write locks have the thread that has them for writing, words.
const WRITER_AT: usize = 6;
/// Robust, priority-inheriting, priority-protected, process-shared.
pub(crate) const SPECIAL: u32 = 0xf0;
/// Robust, priority-inheriting.
const WITH_OWNER: u32 = 0x30;
/// The part of a lock word that is a priority, with priority protection.
const CEILING: u32 = 0xfff8_0000;
/// The part of a lock word that is a thread id.
const THREAD: u32 = 0x3fff_ffff;

#[inline(always)]
fn word(mutex: usize, at: usize) -> u32 {
    // SAFETY: inside a mutex that the caller has just locked or wants to; others may write it meanwhile.
    unsafe { (mutex as *const u32).wrapping_add(at).read_volatile() }
}

/// Whether a mutex is glibc's, whichever library implements the others.
#[inline(always)]
pub(crate) fn is_special(mutex: usize) -> bool {
    word(mutex, KIND_AT) & SPECIAL != 0
}

/// Whether a mutex that is glibc's is another thread's, as far as its words tell. The lock word of a robust
/// or priority-inheriting one has its owner; others' say that they are held, and, with priority protection,
/// the ceiling.
pub(crate) fn is_others(mutex: usize) -> bool {
    let (kind, lock) = (word(mutex, KIND_AT), word(mutex, LOCK_AT));
    let owner = match kind {
        _ if kind & WITH_OWNER != 0 => lock & THREAD,
        _ if lock & !CEILING == 0 => 0,
        _ => word(mutex, OWNER_AT),
    };
    owner != 0 && owner != raw::thread_id()
}

/// Where a mutex has a word that is 0 while it is free, bytes: the owner in glibc's. (Not its lock word: a
/// release is a read-modify-write of that, and to load what one has just written takes longer than all of
/// this.) In spinpark's it is the lock word, which a release merely stores.
pub(crate) static FREE_WORD_AT: AtomicUsize = AtomicUsize::new(4 * OWNER_AT);

/// Mutexes are spinpark's.
pub(crate) fn are_spinparks() {
    FREE_WORD_AT.store(4 * LOCK_AT, Relaxed);
}

/// Whether a mutex seems free. A hint.
#[inline(always)]
pub(crate) fn seems_free(mutex: usize) -> bool {
    word(mutex, FREE_WORD_AT.load(Relaxed) / 4) == 0
}

#[inline(always)]
fn are_glibcs() -> bool {
    FREE_WORD_AT.load(Relaxed) == 4 * OWNER_AT
}

/// The word of glibc's mutexes that has their owner, if it is one of those and not [`is_special`]; 0 while it
/// is free, or is just being taken or released.
#[inline(always)]
pub(crate) fn owner_word(mutex: usize) -> Option<u32> {
    (are_glibcs() && !is_special(mutex)).then(|| word(mutex, OWNER_AT))
}

/// Whether threads sleep until this mutex is released, which the calling thread has; none if that is
/// not known. Glibc's have 2 in their lock word then: also for a thread that is awake already, and then
/// sleeps once more.
#[inline(always)]
pub(crate) fn is_awaited(mutex: usize) -> Option<bool> {
    (are_glibcs() && !is_special(mutex)).then(|| word(mutex, LOCK_AT) > 1)
}

/// Whether the owner of this mutex holds it more than once: recursive ones of glibc's have a count.
pub(crate) fn is_held_recursively(mutex: usize) -> bool {
    const COUNT_AT: usize = 1;
    are_glibcs() && kind(mutex) == Kind::Recursive && word(mutex, COUNT_AT) > 1
}

/// Whether threads sleep until this read-write lock is released, that the thread `own` has; of readers the
/// one that releases it last lets them in.
///
/// glibc's first word has the number of readers from the third bit on, those that wait included while a
/// writer has the lock; its second bit is set if a writer has the lock or is the next one. The second word
/// has the number of writers that come after that.
#[inline(always)]
pub(crate) fn is_rwlock_awaited(rwlock: usize, own: u32) -> Option<bool> {
    const WRITER: u32 = 2;
    const READER: u32 = 8;
    if !are_glibcs() {
        return None;
    }
    let readers = word(rwlock, 0);
    if word(rwlock, WRITER_AT) == own {
        return Some(readers >= READER || word(rwlock, 1) != 0);
    }
    Some(readers & WRITER != 0 && readers < 2 * READER)
}

/// Whether a thread that calls for a read-write lock has it at once, as far as its words tell; none if they
/// are not glibc's. See [`is_rwlock_awaited`] for the first word; its lowest bit is set if writers are next.
#[inline(always)]
pub(crate) fn rwlock_seems_free(rwlock: usize, role: Role) -> Option<bool> {
    const WRITERS_NEXT: u32 = 1;
    const WRITER: u32 = 2;
    const READER: u32 = 8;
    let readers = word(rwlock, 0);
    are_glibcs().then_some(match role {
        Role::Read => readers & WRITERS_NEXT == 0,
        _ => readers & WRITER == 0 && readers < READER,
    })
}

/// The thread id of the owner of a mutex; 0 if it is free, or is just being taken or released.
pub(crate) fn owner(mutex: usize) -> u32 {
    if word(mutex, KIND_AT) & WITH_OWNER != 0 {
        // The other word is none's while a robust one is being repaired.
        return word(mutex, LOCK_AT) & THREAD;
    }
    if FREE_WORD_AT.load(Relaxed) != 4 * LOCK_AT || is_special(mutex) {
        return word(mutex, OWNER_AT);
    }
    // A token is a thread id there.
    spinpark_locks::owner(word(mutex, LOCK_AT))
}

/// The thread id of the writer that has a read-write lock; 0 if none has.
pub(crate) fn writer(rwlock: usize) -> u32 {
    if are_glibcs() { word(rwlock, WRITER_AT) } else { spinpark_locks::owner(word(rwlock, LOCK_AT)) }
}

/// The thread id of the writer that has a read-write lock of glibc's; none if it is another library's.
pub(crate) fn writer_word(rwlock: usize) -> Option<u32> {
    are_glibcs().then(|| word(rwlock, WRITER_AT))
}

/// Whether a read-write lock of glibc's is shared by processes. Of others it is not known.
#[inline(always)]
pub(crate) fn is_shared_rwlock(rwlock: usize) -> bool {
    const SHARED_AT: usize = 7;
    are_glibcs() && word(rwlock, SHARED_AT) != 0
}

/// Whether a mutex is shared by processes.
pub(crate) fn is_shared(mutex: usize) -> bool {
    const SHARED: u32 = 0x80;
    word(mutex, KIND_AT) & SHARED != 0
}

/// What kind of mutex is at `address`.
pub(crate) fn kind(address: usize) -> Kind {
    let kind = word(address, KIND_AT);
    match kind & 3 {
        _ if kind & SPECIAL != 0 => Kind::Special,
        1 => Kind::Recursive,
        2 => Kind::ErrorChecking,
        3 => Kind::Adaptive,
        _ => Kind::Mutex,
    }
}
