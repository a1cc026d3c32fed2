//! A platform that counts the futex calls of the locks on it, word by word: exactly, and without a privilege.
//!
//! It is for [`Condvar2003`](spinpark_lockbench::locks::adapters::classics::Condvar2003), which sleeps and
//! wakes and asks nothing else: where a trait has a default, that is enough.

use std::marker::PhantomData;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};

use spinpark_platform::{
    AsymmetricBarrier, Bias, Clock, Clocks, Deadline, Events, Futex, Layout, Memory, OnCpu, Owners, Platform,
    ReadHolds, Reader, ReaderSlots, SlotLeft, SpinPolicy, Threads, Tuning, Wait, WakeOp,
};

/// `P`, with its futex calls counted.
#[derive(Debug)]
pub(crate) struct Counted<P>(PhantomData<P>);

/// Words that are distinguished.
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

/// Functions of traits, as `P` has them.
macro_rules! as_before {
    ($($trait:ident { $(const $const:ident: $kind:ty;)? $(fn $name:ident($($arg:ident: $type:ty),*) $(-> $result:ty)?;)* })*) => {$(
        impl<P: Platform> $trait for Counted<P> {
            $(const $const: $kind = P::$const;)?
            $(fn $name($($arg: $type),*) $(-> $result)? {
                P::$name($($arg),*)
            })*
        }
    )*};
}

as_before! {
    Platform {
        const TUNING: Tuning;
    }
    Clocks {
        fn now(clock: Clock) -> u64;
    }
    Threads {
        fn thread_token() -> u32;
        fn generation() -> u32;
    }
    Owners {
        fn owner_on_cpu(owner: u32, sample: &mut u64) -> OnCpu;
    }
    SpinPolicy {
        fn spin_hint() -> u32;
        fn spin_for(span: u64);
    }
    ReadHolds {
        fn read_acquired(lock: usize);
        fn read_released(lock: usize);
        fn may_hold_read(lock: usize) -> bool;
        fn may_hold_two(lock: usize) -> bool;
    }
    ReaderSlots {
        const MOST_SLOT_READERS: u32;
        fn reads_before_slots() -> u32;
        fn slot_table() -> u32;
        fn slot_enter(bias: &P::AtomicU32, lock: usize) -> bool;
        fn slot_leave(bias: &P::AtomicU32, lock: usize) -> SlotLeft;
        fn slot_take_back(lock: usize, bias: Bias) -> Reader;
        fn has_slots(table: u32, lock: usize) -> bool;
        fn slots_mark(table: u32, lock: usize) -> u32;
        fn slots_settle(table: u32, lock: usize) -> u32;
        fn slots_disown(table: u32, lock: usize);
    }
    Events {}
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

    fn futex_gather(key: *const P::AtomicU32, told: u32, crowd: *const P::AtomicU32) -> Option<()> {
        note(key.addr());
        P::futex_gather(key, told, crowd)
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

    fn asymmetric_barrier() {
        P::asymmetric_barrier();
    }
}
