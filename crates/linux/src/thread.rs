//! Thread identity: a few words of thread-local memory, reached without std, allocation or destructors.
//!
//! The token is the kernel's thread id: small, unique among living threads, and what the question "does the owner
//! run?" needs. It is looked up once per thread, and again by the thread that survives a fork.

use core::sync::atomic::{compiler_fence, AtomicBool, AtomicUsize};
use core::sync::atomic::{Ordering::Relaxed, Ordering::SeqCst};

use spinpark_platform::Habits;

/// Read locks that a thread remembers by address; more are only counted.
const REMEMBERED: usize = 8;

/// This crate's thread-local memory. All zero in a new thread.
#[repr(C)]
struct Local {
    token: u32,
    reads: Reads,
    habits: Habits,
    /// See [`place`].
    place: u32,
    /// The look that it is of; 0: it was never wanted.
    place_look: u32,
    /// How often it slept.
    sleeps: u32,
    /// See [`call`].
    call: u32,
}

/// In the state of a call: the thread is or may be in a queue.
pub const QUEUED: u32 = 1;
/// In the state of a call: a sleep in it acts on cancellation at once.
pub const CANCELLABLE: u32 = 2;

/// The state of the calling thread's call that waits: [`QUEUED`], [`CANCELLABLE`].
#[must_use]
pub fn call() -> u32 {
    // SAFETY: the block belongs to this thread.
    unsafe { (*local()).call }
}

/// Sets the state of the calling thread's call that waits; returns what it was.
pub fn set_call(call: u32) -> u32 {
    // SAFETY: the block belongs to this thread.
    core::mem::replace(unsafe { &mut (*local()).call }, call)
}

/// The read locks that a thread holds.
#[repr(C)]
pub(crate) struct Reads {
    /// How many of `held` are in use.
    remembered: u32,
    /// Read locks beyond those.
    uncounted: u32,
    held: [Held; REMEMBERED],
}

/// A read lock that a thread holds.
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct Held {
    /// The address of the lock.
    pub(crate) lock: usize,
    /// The slot that says so; null if the reader is counted in the lock.
    pub(crate) slot: *const AtomicUsize,
}

crate::thread_block!(fn local() -> *mut Local = "spinpark_0_1_local");

/// The token in one load less than through `local`.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn load_token() -> u32 {
    let token: u64;
    // SAFETY: as in `local`; the token is its first field.
    unsafe {
        core::arch::asm!(
            "mov {token}, qword ptr [rip + spinpark_0_1_local@GOTTPOFF]",
            "mov {token:e}, dword ptr fs:[{token}]",
            token = out(reg) token,
            options(readonly, nostack, preserves_flags),
        );
    }
    token as u32
}

#[cfg(target_arch = "aarch64")]
#[inline(always)]
fn load_token() -> u32 {
    // SAFETY: the block belongs to this thread.
    unsafe { (*local()).token }
}

/// Whether a thread has given back a read lock that another thread had acquired: what threads remember of theirs may be wrong.
static GIVEN_BACK: AtomicBool = AtomicBool::new(false);
static FORK_HANDLER: AtomicBool = AtomicBool::new(false);

/// The calling thread's token if it has been asked for before, else 0: for fast paths that leave the first time to
/// their slow path.
#[inline(always)]
#[must_use]
pub fn known_token() -> u32 {
    load_token()
}

#[inline(always)]
pub(crate) fn token() -> u32 {
    match load_token() {
        0 => first_token(),
        token => token,
    }
}

/// The function that must run first in every forked child. A caller that takes it registers it; otherwise a thread's first
/// lock operation does, which is too late for handlers that were registered before it and use locks.
pub fn take_over_fork_handler() -> unsafe extern "C" fn() {
    FORK_HANDLER.store(true, Relaxed);
    in_forked_child
}

#[cold]
#[inline(never)]
fn first_token() -> u32 {
    if !FORK_HANDLER.swap(true, Relaxed) {
        // SAFETY: registers a function that is sound to run in a forked child. It fails only without memory; then
        // locks on which threads waited at a fork are not usable in the child.
        unsafe { libc::pthread_atfork(None, None, Some(in_forked_child)) };
        crate::start(false);
    }
    ask_token()
}

/// Where glibc keeps a thread's id, from the thread pointer: the same place in all versions so far.
#[cfg(all(target_arch = "x86_64", target_env = "gnu"))]
const ID_PLACE: usize = 0x2d0;

/// Whether it does.
static ID_IS_THERE: AtomicBool = AtomicBool::new(false);

/// Where [`thread_id`] looks, from the thread pointer: at glibc's place, or, if [`start`] finds that it is another, at the token.
#[cfg(all(target_arch = "x86_64", target_env = "gnu"))]
static ID_AT: AtomicUsize = AtomicUsize::new(ID_PLACE);

/// What stands where glibc keeps the calling thread's id. The kernel writes it before a thread runs, and in a forked child.
#[cfg(all(target_arch = "x86_64", target_env = "gnu"))]
fn glibcs_id() -> u32 {
    let id: u32;
    // SAFETY: glibc's descriptor of a thread starts at the thread pointer, and is more than twice as long.
    unsafe {
        core::arch::asm!("mov {id:e}, dword ptr fs:[{place}]", id = out(reg) id, place = const ID_PLACE,
                         options(readonly, nostack, preserves_flags));
    }
    id
}

#[cfg(not(all(target_arch = "x86_64", target_env = "gnu")))]
fn glibcs_id() -> u32 {
    0
}

/// Finds out whether threads need not ask the kernel for their ids. Once, from [`start`](crate::start).
pub(crate) fn start() {
    let is_there = glibcs_id() == crate::raw::thread_id();
    ID_IS_THERE.store(is_there, Relaxed);
    #[cfg(all(target_arch = "x86_64", target_env = "gnu"))]
    if !is_there {
        let token_at: usize;
        // SAFETY: reads the offset of the token, which is the first field of the thread's block, from the GOT.
        unsafe {
            core::arch::asm!("mov {it}, qword ptr [rip + spinpark_0_1_local@GOTTPOFF]", it = out(reg) token_at,
                             options(pure, readonly, nostack, preserves_flags));
        }
        ID_AT.store(token_at, Relaxed);
    }
}

/// The calling thread's id as glibc knows it, which is what glibc's own functions write as a mutex' owner. It differs from the
/// token in a process that was cloned past glibc, from where the program has told glibc the new id (Chromium's sandbox does).
#[cfg(all(target_arch = "x86_64", target_env = "gnu"))]
#[inline(always)]
#[must_use]
pub fn thread_id() -> u32 {
    let id: u64;
    // SAFETY: a word of this thread's, as `glibcs_id` or `load_token` reads it.
    unsafe {
        core::arch::asm!("mov {id:e}, dword ptr fs:[{at}]", at = in(reg) ID_AT.load(Relaxed), id = out(reg) id,
                         options(readonly, nostack, preserves_flags));
    }
    match id as u32 {
        0 => first_token(),
        id => id,
    }
}

/// The calling thread's id.
#[cfg(not(all(target_arch = "x86_64", target_env = "gnu")))]
#[inline(always)]
#[must_use]
pub fn thread_id() -> u32 {
    token()
}

fn ask_token() -> u32 {
    let token = match glibcs_id() {
        id if id != 0 && ID_IS_THERE.load(Relaxed) => id,
        _ => crate::raw::thread_id(),
    };
    // SAFETY: the block belongs to this thread.
    unsafe { (*local()).token = token };
    token
}

/// The surviving thread has a new id, and every wait queue belongs to threads that are not here.
unsafe extern "C" fn in_forked_child() {
    if !crate::STARTED.load(Relaxed) {
        return; // no lock of ours is in use
    }
    crate::generation::in_forked_child();
    crate::cpu::in_forked_child(ask_token());
    crate::slots::in_forked_child();
}

/// The only CPU that the calling thread could use when it last slept, from 1 on; [`cpu::ANY`](crate::cpu::ANY) if several,
/// or if it has not slept since it first wanted to know.
pub(crate) fn place() -> u32 {
    // SAFETY: the block belongs to this thread.
    let local = unsafe { &mut *local() };
    if local.place_look == 0 {
        local.place_look = WANTED;
        local.place = crate::cpu::ANY;
    }
    local.place
}

/// In `place_look`: the next sleep asks.
const WANTED: u32 = u32::MAX;

/// Before the calling thread sleeps: questions that are not to be asked with a lock held.
#[inline(never)] // for the drop-in's size
pub(crate) fn sleeps() {
    /// One sleep in so many looks at the clock.
    const FEW: u32 = 16;
    // SAFETY: the block belongs to this thread.
    let local = unsafe { &mut *local() };
    local.sleeps = local.sleeps.wrapping_add(1);
    if local.sleeps % FEW == 0 {
        crate::cpu::look_again();
    }
    let look = crate::cpu::looks();
    if local.place_look != 0 && local.place_look != look && !crate::single::is_single_threaded() {
        local.place_look = look;
        local.place = crate::cpu::ask_place();
    }
}

/// What the calling thread has learnt about spinning. The reference is for one call: no other call in this thread may ask
/// meanwhile.
pub(crate) fn habits<'a>() -> &'a mut Habits {
    // SAFETY: the block belongs to this thread, and the caller is done with the reference before any other code in
    // this thread asks for it.
    unsafe { &mut (*local()).habits }
}

impl Reads {
    #[inline(always)]
    pub(crate) fn of_this_thread<'a>() -> &'a mut Self {
        // SAFETY: the block belongs to this thread, and the caller is done with the reference before any other code in
        // this thread asks for it.
        unsafe { &mut (*local()).reads }
    }

    /// Remembers a read lock, as one that is counted in the lock itself; none if there is no room.
    #[inline(always)]
    pub(crate) fn add(&mut self, lock: usize) -> Option<&mut Held> {
        let held = self.held.get_mut(self.remembered as usize)?;
        // T4 in `slots`: an entry that is not in use has no slot, and a handler that runs from here on uses those behind
        // this one.
        self.remembered += 1;
        compiler_fence(SeqCst);
        held.lock = lock;
        Some(held)
    }

    /// The latest hold on `lock` that is in a slot; it is the last one then. Not just the latest: an upgradable hold is
    /// noted as a counted one, and may be younger than the slot.
    #[inline(always)]
    pub(crate) fn last_if_in_slot(&mut self, lock: usize) -> Option<&mut Held> {
        let last = (self.remembered as usize).checked_sub(1)?;
        match self.held.get(last) {
            Some(held) if held.lock == lock && !held.slot.is_null() => self.held.get_mut(last),
            _ if last == 0 => None,
            _ => self.bring_last(lock),
        }
    }

    /// Not what was read-locked last: makes the latest hold on `lock` that is in a slot the last one.
    #[cold]
    #[inline(never)]
    fn bring_last(&mut self, lock: usize) -> Option<&mut Held> {
        let held = self.remembered_mut();
        let found = held.iter().rposition(|held| held.lock == lock && !held.slot.is_null())?;
        if let Some(last) = held.len().checked_sub(1) {
            held.swap(found, last);
        }
        held.last_mut()
    }

    #[inline(always)]
    pub(crate) fn removed_last(&mut self) {
        self.remembered = self.remembered.saturating_sub(1);
    }

    fn remembered_mut(&mut self) -> &mut [Held] {
        let remembered = (self.remembered as usize).min(REMEMBERED);
        &mut self.held[..remembered]
    }

    /// Notes a read lock that is counted in the lock itself.
    #[inline(always)]
    pub(crate) fn acquired(&mut self, lock: usize) {
        if self.add(lock).is_none() {
            self.overflow(lock);
        }
    }

    /// No room to remember one more.
    #[cold]
    #[inline(never)]
    fn overflow(&mut self, lock: usize) {
        if !GIVEN_BACK.load(Relaxed) {
            self.uncounted += 1;
            return;
        }
        // What other threads have given back stays here for good. Nothing but a slot has to be remembered.
        self.uncounted = 0;
        let mut kept = 0;
        for index in 0..REMEMBERED {
            if !self.held[index].slot.is_null() && !crate::slots::free_if_moved(self.held[index]) {
                self.held.swap(kept, index);
                kept += 1;
            }
        }
        self.held[kept..].fill(Held { lock: 0, slot: core::ptr::null() });
        self.remembered = kept as u32;
        if self.add(lock).is_none() {
            self.uncounted = 1;
        }
    }

    /// Forgets a read lock that is counted in the lock itself.
    #[inline(always)]
    pub(crate) fn released(&mut self, lock: usize) {
        match self.held.get((self.remembered as usize).wrapping_sub(1)) {
            Some(last) if last.lock == lock && last.slot.is_null() => self.remembered -= 1,
            _ => self.forget(lock),
        }
    }

    /// Not the lock that was read-locked last.
    #[inline(never)]
    fn forget(&mut self, lock: usize) {
        let held = self.remembered_mut();
        match held.iter().rposition(|held| held.lock == lock && held.slot.is_null()) {
            Some(found) => {
                let last = held.len() - 1;
                held.swap(found, last);
                self.removed_last();
            }
            None if self.uncounted > 0 => self.uncounted -= 1,
            // Acquired by another thread, which remembers it still. POSIX leaves that undefined; glibc lets it pass.
            None => GIVEN_BACK.store(true, Relaxed),
        }
    }

    /// Whether a hold is noted in `slot`.
    pub(crate) fn is_in(&mut self, slot: &AtomicUsize) -> bool {
        self.remembered_mut().iter().any(|held| core::ptr::eq(held.slot, slot))
    }

    /// Not known any more in a process whose threads give back each other's read locks.
    pub(crate) fn may_hold(&mut self, lock: usize) -> bool {
        !GIVEN_BACK.load(Relaxed)
            && (self.uncounted > 0 || self.remembered_mut().iter().any(|held| held.lock == lock))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::ptr;

    const OUTER: usize = 64;
    const INNER: usize = 128;

    fn none() -> Reads {
        Reads { remembered: 0, uncounted: 0, held: [Held { lock: 0, slot: ptr::null() }; REMEMBERED] }
    }

    /// A signal handler reads `lock` in `slot`, and gives it up.
    fn handler(reads: &mut Reads, lock: usize, slot: &AtomicUsize) {
        if let Some(held) = reads.add(lock) {
            held.slot = slot;
        }
        let held = reads.last_if_in_slot(lock).expect("its own");
        assert!(ptr::eq(held.slot, slot));
        held.slot = ptr::null();
        reads.removed_last();
    }

    #[test]
    fn a_handler_leaves_a_hold_alone_whose_slot_is_being_claimed() {
        let slots = [AtomicUsize::new(0), AtomicUsize::new(0)];
        for lock in [INNER, OUTER] {
            let mut reads = none();
            assert!(reads.add(OUTER).is_some());
            handler(&mut reads, lock, &slots[1]); // the slot is claimed, and not in the entry yet
            reads.held[0].slot = &slots[0];
            let held = reads.last_if_in_slot(OUTER).expect("the hold is remembered");
            assert!(held.lock == OUTER && ptr::eq(held.slot, &slots[0]));
            assert!(reads.last_if_in_slot(INNER).is_none(), "nothing of the handler's is left");
        }
    }

    #[test]
    fn a_handler_does_not_take_a_slot_that_is_being_given_back() {
        let mut reads = none();
        let slot = AtomicUsize::new(0);
        reads.add(OUTER).expect("there is room").slot = &slot;
        let held = reads.last_if_in_slot(OUTER).expect("the hold is remembered");
        held.slot = ptr::null(); // as `leave` does, before the slot may be another thread's
        reads.acquired(OUTER); // the handler's, counted in the lock
        assert!(reads.last_if_in_slot(OUTER).is_none(), "it is in no slot");
        reads.released(OUTER);
        reads.removed_last();
        assert_eq!(reads.remembered, 0);
    }
}
