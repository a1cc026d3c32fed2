//! Thread identity, and what a thread remembers: thread-local memory without std, allocation or destructors.
//!
//! The token is the kernel's thread id: small, unique among living threads, and what the question "does the
//! owner run?" needs. It is looked up once per thread, and again by the thread that survives a fork.

use core::num::NonZeroU32;
use core::sync::atomic::AtomicBool;
#[cfg(target_env = "gnu")]
use core::sync::atomic::AtomicUsize;
use core::sync::atomic::Ordering::Relaxed;

use spinpark_locks::{write_hold, SpinStats, READS_AFTER_WAIT};
use spinpark_platform::{Clock, ReadHolds, Threads, NS_PER_MS};

use crate::memory::{LinuxWith, LockPadding};
use crate::reads::Reads;
use crate::{clock, generation, policy};

/// This crate's thread-local memory. All zero in a new thread.
#[repr(C)]
struct Local {
    token: u32,
    /// The number of attempts to acquire a lock in which the thread still reads first.
    reads_first: u32,
    unmarked: Unmarked,
    reads: Reads,
    spin_stats: SpinStats,
    place: Place,
    /// See [`ready_hold`]; or 0. In what would be padding: fields before would move all others.
    ready_hold: u32,
}

/// The waiters that the calling thread has woken without a mark, where there is one CPU.
#[repr(C)]
struct Unmarked {
    /// Since when they are counted, ns; the end of a slice is not seen.
    since: u64,
    count: u32,
}

/// The CPU that the calling thread may use, as found when it slept: see [`place`](crate::cpu::only_cpu).
#[repr(C)]
pub(crate) struct Place {
    /// The only CPU that it could use, from 1 on; or [`cpu::ANY`](crate::cpu::ANY).
    pub(crate) cpu: u32,
    /// The number of the check that found it; 0: it was never asked for.
    pub(crate) affinity_version: u32,
    /// How often the thread slept.
    pub(crate) sleeps: u32,
}

/// Where [`ready_hold`] is in `spinpark_0_1_local`.
pub const READY_HOLD_AT: usize = core::mem::offset_of!(Local, ready_hold);

crate::thread_block!(fn local() -> *mut Local = "spinpark_0_1_local");

/// What the calling thread remembers of its read locks. The reference is for one call: see [`spin_stats`].
#[inline(always)]
pub(crate) fn reads<'a>() -> &'a mut Reads {
    // SAFETY: the block belongs to this thread, and the caller is done with the reference before any other
    // code in this thread asks for it.
    unsafe { &mut (*local()).reads }
}

/// The same, and the thread's token, or 0 if it has not been asked for.
#[inline(always)]
pub(crate) fn reader<'a>() -> (&'a mut Reads, u32) {
    // SAFETY: as in `reads`.
    let local = unsafe { &mut *local() };
    (&mut local.reads, local.token)
}

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

/// How many waiters a thread wakes without a mark in [`UNMARKED_SPAN`]. None of them runs before its slice
/// ends, and if that is inside a section, all of them sleep again.
const MOST_UNMARKED: u32 = 16;
/// About a slice.
const UNMARKED_SPAN: u64 = 4 * NS_PER_MS;

impl Unmarked {
    /// Whether one more waiter is woken without a mark. The clock is read only once there have been many.
    fn wakes_one_more(&mut self, now: impl FnOnce() -> u64) -> bool {
        self.count = self.count.saturating_add(1);
        if self.count <= MOST_UNMARKED {
            return true;
        }
        let now = now();
        let is_over = now.saturating_sub(self.since) > UNMARKED_SPAN;
        if is_over {
            *self = Self { since: now, count: 1 };
        }
        is_over
    }
}

/// Whether the calling thread wakes one more waiter without a mark.
#[inline(never)] // it is about to make a system call
pub(crate) fn wakes_one_more() -> bool {
    // SAFETY: the block belongs to this thread. A signal handler in between may count as well.
    unsafe { &mut (*local()).unmarked }.wakes_one_more(|| clock::now(Clock::Monotonic))
}

/// Whether the calling thread still reads first after its last wait; if so, it has done so once more.
#[inline(always)]
pub(crate) fn reads_first() -> bool {
    // No store by a thread that has not waited lately: the compare-exchange that follows would wait for it.
    // SAFETY: the block belongs to this thread.
    unsafe { (*local()).reads_first != 0 && read_first() }
}

/// The rest of [`reads_first`].
#[cold]
#[inline(never)]
fn read_first() -> bool {
    // SAFETY: the block belongs to this thread. A signal handler in between may add to the number, or take
    // one more away.
    let reads = unsafe { &mut (*local()).reads_first };
    *reads = reads.saturating_sub(1);
    if *reads == 0 {
        make_ready();
    }
    true
}

/// What the calling thread writes into a free lock, if it may at once: its token is known, and it does not read
/// first after a wait ([`Adaptive::reads_first`](spinpark_locks::Adaptive::reads_first)). For fast paths that
/// leave the rest to their slow path.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
#[must_use]
pub fn ready_hold() -> Option<NonZeroU32> {
    let hold: u64;
    // SAFETY: as in `load_token`; the field is in this thread's block.
    unsafe {
        core::arch::asm!(
            "mov {hold}, qword ptr [rip + spinpark_0_1_local@GOTTPOFF]",
            "mov {hold:e}, dword ptr fs:[{hold} + {at}]",
            hold = out(reg) hold,
            at = const READY_HOLD_AT,
            options(readonly, nostack, preserves_flags),
        );
    }
    NonZeroU32::new(hold as u32)
}

/// The same: see there.
#[cfg(target_arch = "aarch64")]
#[inline(always)]
#[must_use]
pub fn ready_hold() -> Option<NonZeroU32> {
    // SAFETY: the block belongs to this thread.
    NonZeroU32::new(unsafe { (*local()).ready_hold })
}

/// The thread tries at once from here on.
#[cold]
fn make_ready() {
    let local = local();
    // SAFETY: the block belongs to this thread.
    let token_at = unsafe { &raw const (*local).token };
    // SAFETY: as before.
    let hold_at = unsafe { &raw mut (*local).ready_hold };
    loop {
        // SAFETY: as before; volatile, since a signal handler in between may fork.
        let token = unsafe { token_at.read_volatile() };
        let hold = if token == 0 { 0 } else { write_hold(token) };
        // SAFETY: as before.
        unsafe { hold_at.write_volatile(hold) };
        // SAFETY: as before. In the child of such a fork, the token is another one.
        if unsafe { token_at.read_volatile() } == token {
            break;
        }
    }
}

/// The calling thread reads first in as many attempts as after a wait.
#[inline(always)]
pub(crate) fn reads_on() {
    // SAFETY: the block belongs to this thread.
    let local = unsafe { &mut *local() };
    local.reads_first = READS_AFTER_WAIT;
    local.ready_hold = 0;
}

/// The calling thread waits for the lock at `lock`.
pub(crate) fn waits_for(lock: usize) {
    reads_on();
    spin_stats().waits_for(lock);
}

/// The calling thread's token if it has been asked for before, else 0: for fast paths that leave the first
/// time to their slow path.
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

#[cold]
#[inline(never)]
fn first_token() -> u32 {
    crate::first_call();
    ask_token()
}

/// Where glibc keeps a thread's id, from the thread pointer: the same place in all versions so far.
#[cfg(all(target_arch = "x86_64", target_env = "gnu"))]
const ID_PLACE: usize = 0x2d0;

/// Whether it keeps the id there.
static ID_IS_THERE: AtomicBool = AtomicBool::new(false);

/// Where [`thread_id`] reads, from the thread pointer: at glibc's place, or, if [`start`] finds that it is
/// another, at the token.
#[cfg(all(target_arch = "x86_64", target_env = "gnu"))]
static ID_AT: AtomicUsize = AtomicUsize::new(ID_PLACE);

/// The word where glibc keeps the calling thread's id. The kernel writes it before a thread runs, and in a
/// forked child.
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

/// Where glibc keeps a thread's id, from the thread pointer, below which it has its descriptor; 0: not known, as
/// until [`start`].
#[cfg(all(target_arch = "aarch64", target_env = "gnu"))]
static ID_AT: AtomicUsize = AtomicUsize::new(0);

/// The place, as glibc describes it to debuggers.
#[cfg(all(target_arch = "aarch64", target_env = "gnu"))]
fn find_id() -> Option<usize> {
    let lookup = |name| crate::lookup(crate::Scope::All, name).cast_const().cast::<u32>();
    // SAFETY: null, or glibc's `const uint32_t`.
    let length = unsafe { lookup(c"_thread_db_sizeof_pthread").as_ref() }?;
    // SAFETY: null, or glibc's three of them: bits, number, and offset.
    let [bits, _, offset] = unsafe { lookup(c"_thread_db_pthread_tid").cast::<[u32; 3]>().as_ref() }?;
    let is_inside = *bits == 32 && *offset < *length && *offset % 4 == 0;
    is_inside.then(|| (*offset as usize).wrapping_sub(*length as usize))
}

#[cfg(all(target_arch = "aarch64", target_env = "gnu"))]
#[inline(always)]
fn glibcs_id() -> u32 {
    match ID_AT.load(Relaxed) {
        0 => 0,
        at => {
            let place = crate::raw::thread_pointer().wrapping_add(at) as *const u32;
            // SAFETY: in this thread's descriptor. The kernel may write it, in a forked child.
            unsafe { place.read_volatile() }
        }
    }
}

#[cfg(not(target_env = "gnu"))]
fn glibcs_id() -> u32 {
    0
}

/// Finds out whether threads need not ask the kernel for their ids. Once, from [`start`](crate::start).
pub(crate) fn start() {
    #[cfg(all(target_arch = "aarch64", target_env = "gnu"))]
    ID_AT.store(find_id().unwrap_or(0), Relaxed);
    let is_there = glibcs_id() == crate::raw::thread_id();
    ID_IS_THERE.store(is_there, Relaxed);
    #[cfg(all(target_arch = "aarch64", target_env = "gnu"))]
    if !is_there {
        ID_AT.store(0, Relaxed);
    }
    #[cfg(all(target_arch = "x86_64", target_env = "gnu"))]
    if !is_there {
        let token_at: usize;
        // SAFETY: reads the offset of the token, which is the first field of the thread's block, from the
        // GOT.
        unsafe {
            core::arch::asm!("mov {it}, qword ptr [rip + spinpark_0_1_local@GOTTPOFF]", it = out(reg) token_at,
                             options(pure, readonly, nostack, preserves_flags));
        }
        ID_AT.store(token_at, Relaxed);
    }
}

/// The calling thread's id as glibc knows it, which is what glibc's own functions write as a mutex' owner. It
/// differs from the token in a process that was cloned past glibc, from where the program has given glibc the
/// new id (Chromium's sandbox does).
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

/// The same: see there.
#[cfg(all(target_arch = "aarch64", target_env = "gnu"))]
#[inline(always)]
#[must_use]
pub fn thread_id() -> u32 {
    match glibcs_id() {
        0 => token(),
        id => id,
    }
}

/// The calling thread's id.
#[cfg(not(target_env = "gnu"))]
#[inline(always)]
#[must_use]
pub fn thread_id() -> u32 {
    token()
}

/// Asks for the calling thread's id, which is its token from then on.
pub(crate) fn ask_token() -> u32 {
    let token = match glibcs_id() {
        id if id != 0 && ID_IS_THERE.load(Relaxed) => id,
        _ => crate::raw::thread_id(),
    };
    // SAFETY: the block belongs to this thread.
    unsafe { (*local()).token = token };
    // SAFETY: as before.
    if unsafe { (*local()).reads_first } == 0 {
        make_ready();
    }
    token
}

/// The calling thread's [`Place`]. The reference is for one call: see [`spin_stats`].
pub(crate) fn place<'a>() -> &'a mut Place {
    // SAFETY: the block belongs to this thread, and the caller is done with the reference before any other
    // code in this thread asks for it.
    unsafe { &mut (*local()).place }
}

/// What the calling thread has learnt about spinning. The reference is for one call: no other call in this
/// thread may ask meanwhile.
pub(crate) fn spin_stats<'a>() -> &'a mut SpinStats {
    // SAFETY: the block belongs to this thread, and the caller is done with the reference before any other
    // code in this thread asks for it.
    unsafe { &mut (*local()).spin_stats }
}

impl<R: LockPadding> Threads for LinuxWith<R> {
    #[inline(always)]
    fn thread_token() -> u32 {
        token()
    }

    fn generation() -> u32 {
        generation::generation()
    }

    fn priority() -> u8 {
        policy::priority()
    }
}

impl<R: LockPadding> ReadHolds for LinuxWith<R> {
    #[inline(always)]
    fn read_acquired(lock: usize) {
        reads().acquired(lock);
    }

    #[inline(always)]
    fn read_released(lock: usize) {
        reads().released(lock);
    }

    fn may_hold_read(lock: usize) -> bool {
        reads().may_hold(lock)
    }

    fn may_hold_two(lock: usize) -> bool {
        reads().holds_two(lock)
    }
}

#[cfg(test)]
mod tests {
    extern crate std;

    use super::*;

    /// In a thread of its own, whose memory is new.
    #[test]
    fn a_thread_is_ready_unless_it_reads_first() {
        let check = || {
            assert_eq!(ready_hold(), None);
            let hold = NonZeroU32::new(write_hold(token()));
            assert_eq!(ready_hold(), hold);
            assert!(!reads_first());
            reads_on();
            for _ in 0..READS_AFTER_WAIT {
                assert_eq!(ready_hold(), None);
                assert!(reads_first());
            }
            assert_eq!(ready_hold(), hold);
            reads_on();
            assert_eq!((ask_token(), ready_hold()), (token(), None));
        };
        std::thread::spawn(check).join().unwrap();
    }

    #[test]
    fn a_crowd_is_not_woken_at_once() {
        let mut unmarked = Unmarked { since: 0, count: 0 };
        let start = 10 * UNMARKED_SPAN;
        let mut wakes = |now| (0..1000).filter(|_| unmarked.wakes_one_more(|| now)).count() as u32;
        assert!((MOST_UNMARKED..=2 * MOST_UNMARKED).contains(&wakes(start)));
        assert_eq!(wakes(start + UNMARKED_SPAN), 0);
        assert_eq!(wakes(start + 2 * UNMARKED_SPAN), MOST_UNMARKED);
        assert_eq!(wakes(start), 0, "a clock that was set back");
    }
}
