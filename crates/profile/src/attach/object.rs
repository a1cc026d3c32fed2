//! What a sleeping thread waits for, and which thread has it.
//!
//! | waits for                       | known by                                     | its owner                      |
//! |---------------------------------|----------------------------------------------|--------------------------------|
//! | a mutex of glibc                | `pthread_mutex_lock` on the stack            | `__owner`; or the futex' word  |
//! | a read-write lock of glibc      | `pthread_rwlock_*` on the stack              | `__cur_writer`, or readers      |
//! | a lock of the drop-in           | its library on the stack; the lock whose     | in its word                    |
//! |                                 | queue has the waiter's node                  |                                |
//! | a lock inside of glibc          | the [table](crate::glibc_locks)              | of a `FILE`: in it             |
//! | other locks                     | the [table](crate::waits) of functions       | not known                      |
//! | the end of a thread             | the futex: it is shared, and has its number  | that thread                    |
//!
//! The owner is of the moment of the wait: its memory is copied between two looks at the thread's system call, or, of
//! the drop-in's, read before the thread is found not to have run.
//!
//! Layouts are those of x86-64: glibc 2.17 to 2.42, and of the drop-in's script for gdb.

use std::collections::BTreeSet;

use super::target::Target;
use super::task::{Futex, Task};
use crate::glibc_locks::{self, Place};
use crate::machine;
use crate::model::{Frame, Kind, Role};

/// Who has what a thread waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Held {
    /// That cannot be told.
    Unknown,
    /// No thread: it is free, and its next owner on its way.
    Free,
    /// A thread of the process.
    Thread(u32),
    /// Nothing says who has it, but only this thread has its address on the stack and does not wait for it,
    /// and so it is in a cycle.
    Perhaps(u32),
    /// A thread that has ended.
    Gone(u32),
    /// A thread of another process.
    Process(u32),
    /// So many readers.
    Readers(u32),
}

/// What a thread waits for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Object {
    pub(super) kind: Kind,
    pub(super) role: Role,
    /// 0: it has none that distinguishes it.
    pub(super) address: u64,
    /// What it is called, if it is not a variable: `std Mutex`, `stdout (glibc)`.
    pub(super) name: Option<String>,
    pub(super) held: Held,
}

/// The drop-in's library.
const DROP_IN: &str = "libspinpark_preload.so";
/// The recorder's.
pub(super) const RECORDER: &str = "libspinpark_profiler.so";
/// What locks are made of, between the program and the system call.
const LIBRARIES: [&str; 2] = [DROP_IN, RECORDER];

/// The function of pthreads, C11 or POSIX that a thread with these frames is in, without underscores.
fn called(frames: &[Frame]) -> Option<&str> {
    const NAMES: [&str; 6] = ["pthread_", "mtx_", "cnd_", "sem_", "thrd_join", "call_once"];
    let is_own = |frame: &&Frame| {
        glibc_locks::is_glibc(&frame.module) || LIBRARIES.contains(&frame.module.as_str()) || is_static(frame)
    };
    let own = frames.iter().take_while(is_own).filter_map(|frame| frame.function.as_deref());
    // As libc calls them itself: `__new_sem_wait_slow64`.
    let mut names = own.map(|name| name.trim_start_matches('_').trim_start_matches("new_"));
    names.find(|name| NAMES.iter().any(|known| name.starts_with(known)))
}

/// Whether a function of a program is libc's: it was linked statically.
pub(super) fn is_static(frame: &Frame) -> bool {
    const NAMES: [&str; 9] =
        ["pthread_", "mtx_", "cnd_", "sem_", "thrd_", "lll_", "futex_", "syscall", "timedwait"];
    let name = frame.function.as_deref().unwrap_or("").trim_start_matches('_');
    NAMES.iter().any(|known| name.starts_with(known))
}

/// What thread `task` waits for in `futex`, with these frames. `place`: where the word is.
pub(super) fn object(
    target: &Target,
    (task, futex): (&Task, Futex),
    frames: &[Frame],
    (place, called_of_glibc): (&Place, Option<&str>),
    threads: &BTreeSet<u32>,
) -> Object {
    let owner = |number: u32, now: &dyn Fn() -> Option<u32>| owner(target, number, futex, threads, now);
    let word = |address: u64| {
        let near = task.near.as_ref().and_then(|near| near.get(address));
        near.map(u32::from_ne_bytes).or_else(|| target.word(address))
    };
    // `pthread_join` waits for the thread's number to become 0.
    if !futex.is_private
        && let Some(thread) = u32::try_from(futex.value).ok().map(|number| target.thread(number))
        && threads.contains(&thread)
        && word(futex.address).is_some_and(|word| u64::from(word) == futex.value)
        && called(frames).is_none_or(|name| name.contains("join"))
    {
        return of(Kind::Join, Role::Signal, futex.address, Held::Thread(thread));
    }
    let Some(name) = called(frames) else {
        if let Some(found) = glibc_locks::find(frames, place, called_of_glibc) {
            let name = Some(format!("{} (glibc)", found.name));
            let held = owner_of_file(target, task, futex.address, threads);
            return Object { name, ..of(Kind::Mutex, Role::Write, futex.address, held) };
        }
        // The kernel keeps the owner's number in a word like this.
        if matches!(futex.operation, libc::FUTEX_LOCK_PI | LOCK_PI2) {
            return of(Kind::Mutex, Role::Write, futex.address, owner_of_word(target, word, futex, owner));
        }
        return of(Kind::Futex, Role::Wake, futex.address, Held::Unknown);
    };
    let is_drop_in = frames.first().is_some_and(|frame| frame.module == DROP_IN);
    if is_drop_in && let Some(found) = in_queue(target, task, futex, name, threads) {
        // The queue and the word are read now. They are of the thread's wait if it has not run since: else its
        // lock was passed on meanwhile, maybe to this very thread.
        let is_sure = found.held == Held::Unknown || target.stays(task);
        return Object { held: if is_sure { found.held } else { Held::Unknown }, ..found };
    }
    // A thread that comes back from `pthread_cond_wait` waits for the mutex like others.
    let is_mutex = futex.operation == libc::FUTEX_WAIT && futex.value == 2;
    let is_cond = name.starts_with("pthread_cond_") || name.starts_with("cnd_");
    let is_pi = matches!(futex.operation, libc::FUTEX_LOCK_PI | LOCK_PI2);
    if name.starts_with("pthread_mutex_") || name.starts_with("mtx_") || is_cond && (is_mutex || is_pi) {
        if is_drop_in {
            return of(Kind::Mutex, Role::Write, 0, Held::Unknown);
        }
        let role = if is_cond { Role::Back } else { Role::Write };
        // Of a mutex that inherits priorities, and whose owner has ended: glibc waits for ever, elsewhere.
        if futex.value == 0 && !is_pi {
            return of(Kind::Mutex, role, 0, Held::Unknown);
        }
        let kind = match word(futex.address.wrapping_add(16)).map(|kind| kind & 3) {
            Some(1) => Kind::Recursive,
            Some(2) => Kind::ErrorChecking,
            Some(3) => Kind::Adaptive,
            _ => Kind::Mutex,
        };
        let held = match futex.is_held_by_word() {
            true => owner_of_word(target, word, futex, owner),
            false => {
                let address = futex.address.wrapping_add(8);
                word(address).map_or(Held::Unknown, |number| owner(number, &|| target.word(address)))
            }
        };
        return of(kind, role, futex.address, held);
    }
    if let Some(rest) = name.strip_prefix("pthread_rwlock_") {
        let role = if rest.contains("rd") { Role::Read } else { Role::Write };
        if is_drop_in {
            return of(Kind::RwLock, role, 0, Held::Unknown);
        }
        return rwlock((target, task), futex, role, owner);
    }
    let (kind, role) = match name {
        _ if is_cond => (Kind::Condvar, Role::Signal),
        name if name.starts_with("sem_") => (Kind::Semaphore, Role::Wake),
        name if name.starts_with("pthread_barrier_") => (Kind::Barrier, Role::Signal),
        name if name.contains("join") => (Kind::Join, Role::Signal),
        name if name.starts_with("pthread_once") || name == "call_once" => (Kind::Once, Role::Write),
        _ => (Kind::Futex, Role::Wake),
    };
    let address = if is_drop_in { 0 } else { futex.address };
    of(kind, role, address, Held::Unknown)
}

/// Newer than the crate's list.
const LOCK_PI2: i32 = 13;

impl Futex {
    /// The word has the owner's number: of mutexes that inherit priorities, and robust ones.
    fn is_held_by_word(&self) -> bool {
        matches!(self.operation, libc::FUTEX_LOCK_PI | LOCK_PI2) || self.value > 2
    }
}

fn of(kind: Kind, role: Role, address: u64, held: Held) -> Object {
    Object { kind, role, address, name: None, held }
}

/// The thread that its process calls `number`. `now`: the owner that memory has now.
fn owner(
    target: &Target,
    number: u32,
    futex: Futex,
    threads: &BTreeSet<u32>,
    now: &dyn Fn() -> Option<u32>,
) -> Held {
    let thread = target.thread(number);
    match number {
        0 => Held::Free,
        _ if threads.contains(&thread) => Held::Thread(thread),
        // It is newer than the snapshot.
        _ if target.has(thread) => Held::Thread(thread),
        _ if !futex.is_private && target.is_elsewhere(number) => Held::Process(number),
        // What other processes have is not in a core dump.
        _ if !futex.is_private && target.core().is_some() => Held::Unknown,
        // A newer one may have had it, and have ended after it gave it back.
        _ if now() == Some(number) => Held::Gone(number),
        _ => Held::Unknown,
    }
}

fn owner_of_word(
    target: &Target,
    word: impl Fn(u64) -> Option<u32>,
    futex: Futex,
    owner: impl Fn(u32, &dyn Fn() -> Option<u32>) -> Held,
) -> Held {
    const NUMBER: u32 = 0x3fff_ffff;
    let now = || target.word(futex.address).map(|word| word & NUMBER);
    word(futex.address).map_or(Held::Unknown, |word| owner(word & NUMBER, &now))
}

/// The owner of a `FILE`, which is behind its lock: the thread's control block, which has the thread's number.
fn owner_of_file(target: &Target, task: &Task, address: u64, threads: &BTreeSet<u32>) -> Held {
    let behind = address.wrapping_add(8);
    let near = task.near.as_ref().and_then(|near| near.get(behind)).map(u64::from_ne_bytes);
    let block = near.or_else(|| target.pointer(behind)).filter(|block| *block != 0);
    let number = block.and_then(|block| target.word(block.checked_add(machine::THREAD_ID)?));
    let thread = number.map(|number| target.thread(number)).filter(|thread| threads.contains(thread));
    thread.map_or(Held::Unknown, Held::Thread)
}

/// A read-write lock of glibc, of which the futex is one of three words.
fn rwlock(
    (target, task): (&Target, &Task),
    futex: Futex,
    role: Role,
    owner: impl Fn(u32, &dyn Fn() -> Option<u32>) -> Held,
) -> Object {
    const READERS_SHIFT: u32 = 3;
    const BYTES: usize = 56;
    let number =
        |lock: &[u8; BYTES], at: usize| u32::from_ne_bytes(lock[at..at + 4].try_into().unwrap_or_default());
    // `__readers`, of which waiters expect a bit above those of the two others; `__wrphase_futex`,
    // `__writers_futex`. The lock is aligned.
    let offset = match futex.value {
        4.. => 0,
        _ if futex.address.is_multiple_of(8) => 8,
        _ => 12,
    };
    let lock =
        futex.address.checked_sub(offset).filter(|address| address.is_multiple_of(8)).and_then(|address| {
            let near = task.near.as_ref().and_then(|near| near.get::<BYTES>(address));
            Some((address, near.or_else(|| target.read(address))?))
        });
    let found = lock.and_then(|(address, lock)| {
        let (readers, writer) = (number(&lock, 0) >> READERS_SHIFT, number(&lock, 24));
        // Whether it is shared, and what it prefers.
        let is_one = number(&lock, 28) <= 1 && number(&lock, 48) <= 2 && readers < 1 << 16;
        let held = match (writer, readers) {
            (0, 0) => Held::Free,
            (0, readers) => Held::Readers(readers),
            (writer, _) => owner(writer, &|| target.word(address + 24)),
        };
        is_one.then_some((address, held))
    });
    match found {
        Some((address, held)) => of(Kind::RwLock, role, address, held),
        None => of(Kind::RwLock, role, futex.address, Held::Unknown),
    }
}

/// The drop-in's lock or condition variable whose queue has this thread's node: the futex is in the node, and
/// the object's address on the stack.
fn in_queue(
    target: &Target,
    task: &Task,
    futex: Futex,
    name: &str,
    threads: &BTreeSet<u32>,
) -> Option<Object> {
    /// As the script for gdb has them.
    const NEXT: u64 = 8;
    const TOKEN: u64 = 28;
    const LOCK_HEAD: u64 = 32;
    const COND_HEAD: u64 = 40;
    const WRITER: u32 = 3;
    const COUNT_SHIFT: u32 = 10;
    const KIND: u64 = 16;
    /// Waiters of a queue at most.
    const MOST: usize = 4096;
    let node = futex.address;
    if target.thread(target.word(node.wrapping_add(TOKEN))?) != task.id {
        return None;
    }
    let is_in = |head: u64| {
        let mut at = head;
        for _ in 0..MOST {
            if at == node {
                return true;
            }
            match target.pointer(at.wrapping_add(NEXT)) {
                Some(next) if next != 0 && next != head && next % 8 == 0 => at = next,
                _ => return false,
            }
        }
        false
    };
    let stack = task.stack.as_ref()?;
    let own = stack.stack..stack.stack + 8 * stack.words.len() as u64;
    let is_object = |word: &u64| *word > 1 << 16 && word.is_multiple_of(4);
    // Nodes have each other's addresses, too, and a stack may have copies of a queue's head. The object's own is
    // in the innermost frames.
    let with = |offset: u64| {
        let has_it = |object: &u64| {
            let head = object.checked_add(offset).and_then(|at| target.pointer(at));
            head.is_some_and(|head| head != 0 && head % 8 == 0 && is_in(head)) && !is_in(*object)
        };
        let mut known = BTreeSet::new();
        let words = stack.words.iter().copied().filter(is_object);
        words.filter(|object| !own.contains(object) && known.insert(*object)).find(has_it)
    };
    let is_cond = name.starts_with("pthread_cond_") || name.starts_with("cnd_");
    if is_cond && let Some(cond) = with(COND_HEAD) {
        return Some(of(Kind::Condvar, Role::Signal, cond, Held::Unknown));
    }
    let lock = with(LOCK_HEAD)?;
    let word = target.word(lock)?;
    let now = || target.word(lock).map(|word| word >> COUNT_SHIFT);
    let owner = |number| owner(target, number, futex, threads, &now);
    let held = match (word & WRITER, word >> COUNT_SHIFT) {
        (0, 0) => Held::Free,
        (0, readers) => Held::Readers(readers),
        (_, number) => owner(number),
    };
    if let Some(rest) = name.strip_prefix("pthread_rwlock_") {
        let role = if rest.contains("rd") { Role::Read } else { Role::Write };
        return Some(of(Kind::RwLock, role, lock, held));
    }
    let kind = match target.word(lock + KIND)? & 3 {
        1 => Kind::Recursive,
        2 => Kind::ErrorChecking,
        _ => Kind::Mutex,
    };
    Some(of(kind, if is_cond { Role::Back } else { Role::Write }, lock, held))
}
