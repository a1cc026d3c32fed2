//! A platform that counts the futex calls of the locks on it, word by word: exactly, and without a privilege.

use std::marker::PhantomData;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};

use spinpark_platform::{
    Adaptive, AsymmetricBarrier, Clock, Clocks, Deadline, Event, Events, Futex, Layout, Memory, Note, OnCpu,
    Owners, Platform, ReadHolds, Reader, ReaderSlots, SlotLeft, Spin, SpinPolicy, Spinning, Threads, Timing,
    Tuning, Wait, WakeOp,
};

/// `P`, with its futex calls counted.
#[derive(Debug)]
pub(crate) struct Counted<P>(PhantomData<P>);

/// Words that are told apart.
const WORDS: usize = 16;

/// The calls on one word; address 0: of no word yet.
#[derive(Debug)]
struct Word {
    address: AtomicUsize,
    calls: AtomicU64,
}

static CALLS: [Word; WORDS] =
    [const { Word { address: AtomicUsize::new(0), calls: AtomicU64::new(0) } }; WORDS];

/// Notes a call on the word at `address`. A call on two words is noted with the first.
fn note(address: usize) {
    for word in &CALLS {
        let owner = match word.address.compare_exchange(0, address, Relaxed, Relaxed) {
            Ok(_) => address,
            Err(owner) => owner,
        };
        if owner == address {
            word.calls.fetch_add(1, Relaxed);
            return;
        }
    }
    panic!("there are locks of more than {WORDS} words");
}

/// Forgets all calls. One alternation runs at a time.
pub(crate) fn start() {
    for word in &CALLS {
        word.address.store(0, Relaxed);
        word.calls.store(0, Relaxed);
    }
}

fn sum(is_meant: impl Fn(usize) -> bool) -> u64 {
    let meant = CALLS.iter().filter(|word| is_meant(word.address.load(Relaxed)));
    meant.map(|word| word.calls.load(Relaxed)).sum()
}

/// All calls since [`start`]; none if there was none.
pub(crate) fn all() -> Option<u64> {
    Some(sum(|_| true)).filter(|&calls| calls > 0)
}

/// Those of them on words of `object`.
pub(crate) fn inside<T>(object: &T) -> u64 {
    let start = std::ptr::from_ref(object).addr();
    sum(|address| (start..start + size_of::<T>()).contains(&address))
}

impl<P: Platform> Platform for Counted<P> {
    const TUNING: Tuning = P::TUNING;
}

impl<P: Platform> Memory for Counted<P> {
    type AtomicU32 = P::AtomicU32;
    type AtomicPtr<T> = P::AtomicPtr<T>;
    type Cell<T> = P::Cell<T>;

    fn full_fence() {
        P::full_fence();
    }
}

impl<P: Platform> Layout for Counted<P> {
    type Padding = P::Padding;
    type Gap = ();
}

impl<P: Platform> Clocks for Counted<P> {
    fn now(clock: Clock) -> u64 {
        P::now(clock)
    }
}

impl<P: Platform> Futex for Counted<P> {
    fn futex_wait(word: &P::AtomicU32, expected: u32, deadline: Option<Deadline>) -> Wait {
        note(std::ptr::from_ref(word).addr());
        P::futex_wait(word, expected, deadline)
    }

    fn futex_wake(key: *const P::AtomicU32, count: u32) -> u32 {
        note(key.addr());
        P::futex_wake(key, count)
    }

    fn futex_requeue(
        from: &P::AtomicU32,
        expected: Option<u32>,
        wake: u32,
        to: *const P::AtomicU32,
        moved: u32,
    ) -> Option<u32> {
        note(std::ptr::from_ref(from).addr());
        P::futex_requeue(from, expected, wake, to, moved)
    }

    fn futex_wake_op(
        first: *const P::AtomicU32,
        wake: u32,
        second: &P::AtomicU32,
        op: WakeOp,
        wake_second: u32,
    ) -> Option<u32> {
        note(first.addr());
        P::futex_wake_op(first, wake, second, op, wake_second)
    }
}

impl<P: Platform> AsymmetricBarrier for Counted<P> {
    fn release_unless<const MASK: u32>(
        guard: &P::AtomicU32,
        word: &P::AtomicU32,
        likely: impl FnOnce() -> u32,
    ) -> bool {
        P::release_unless::<MASK>(guard, word, likely)
    }

    fn heavy_fence() {
        P::heavy_fence();
    }
}

impl<P: Platform> Threads for Counted<P> {
    fn thread_token() -> u32 {
        P::thread_token()
    }

    fn generation() -> u32 {
        P::generation()
    }

    fn priority() -> u8 {
        P::priority()
    }
}

impl<P: Platform> Owners for Counted<P> {
    fn owner_on_cpu(owner: u32, sample: &mut u64) -> OnCpu {
        P::owner_on_cpu(owner, sample)
    }

    fn has_ended(thread: u32) -> bool {
        P::has_ended(thread)
    }
}

impl<P: Platform> SpinPolicy for Counted<P> {
    fn spin_hint() -> u32 {
        P::spin_hint()
    }

    fn spin_for(span: u64) {
        P::spin_for(span);
    }

    fn need_resched() -> bool {
        P::need_resched()
    }

    fn cpus() -> u32 {
        P::cpus()
    }

    fn only_cpu() -> Option<u32> {
        P::only_cpu()
    }

    fn has_fine_timers() -> bool {
        P::has_fine_timers()
    }
}

impl<P: Platform> Adaptive for Counted<P> {
    fn can_spin(kind: Spin) -> bool {
        P::can_spin(kind)
    }

    fn notes(lock: usize, note: Note) {
        match note {
            Note::Waits
            | Note::Returns
            | Note::Spun(..)
            | Note::Acquired { .. }
            | Note::Released
            | Note::ReleasesToWait => P::notes(lock, note),
            Note::PassesWaiters | Note::Tried(_) | Note::Moved { .. } | Note::Sleeps => {}
        }
    }

    fn spinning(lock: usize) -> Spinning {
        P::spinning(lock)
    }

    fn reads_first() -> bool {
        P::reads_first()
    }

    fn wants_time(lock: usize, queued: bool) -> Option<Timing> {
        P::wants_time(lock, queued)
    }

    fn times_release(lock: usize) -> bool {
        P::times_release(lock)
    }

    fn returns_soon(lock: usize) -> bool {
        P::returns_soon(lock)
    }

    fn waits_next(lock: usize) -> bool {
        P::waits_next(lock)
    }

    fn has_passed_woken() -> bool {
        P::has_passed_woken()
    }

    fn ends_contended(lock: usize) -> bool {
        P::ends_contended(lock)
    }
}

impl<P: Platform> ReadHolds for Counted<P> {
    fn read_acquired(lock: usize) {
        P::read_acquired(lock);
    }

    fn read_released(lock: usize) {
        P::read_released(lock);
    }

    fn may_hold_read(lock: usize) -> bool {
        P::may_hold_read(lock)
    }
}

impl<P: Platform> ReaderSlots for Counted<P> {
    const MOST_SLOT_READERS: u32 = P::MOST_SLOT_READERS;

    fn reads_before_slots() -> u32 {
        P::reads_before_slots()
    }

    fn is_sample(one_in: u32) -> bool {
        P::is_sample(one_in)
    }

    fn bias_revoked(took: u64) {
        P::bias_revoked(took);
    }

    fn is_private(lock: usize) -> Option<bool> {
        P::is_private(lock)
    }

    fn slot_table() -> u32 {
        P::slot_table()
    }

    fn slot_enter(bias: &P::AtomicU32, lock: usize) -> bool {
        P::slot_enter(bias, lock)
    }

    fn slot_leave(bias: &P::AtomicU32, lock: usize) -> SlotLeft {
        P::slot_leave(bias, lock)
    }

    fn slot_take_back(lock: usize, kept: bool) -> Reader {
        P::slot_take_back(lock, kept)
    }

    fn has_slots(table: u32, lock: usize) -> bool {
        P::has_slots(table, lock)
    }

    fn slots_mark(table: u32, lock: usize) -> u32 {
        P::slots_mark(table, lock)
    }

    fn slots_settle(table: u32, lock: usize) -> u32 {
        P::slots_settle(table, lock)
    }
}

impl<P: Platform> Events for Counted<P> {
    fn event(event: Event) {
        P::event(event);
    }
}
