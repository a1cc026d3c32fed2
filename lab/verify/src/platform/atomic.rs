//! Loom's atomics behind the platform's traits, with faults and the drop check.
//!
//! A plain store first reads the newest value, relaxed and in the same step. Otherwise loom may put the store
//! before a read-modify-write of another thread that did not see it, which no machine does: nothing comes
//! between what a read-modify-write reads and what it writes. The price: stores to one word take effect in
//! the order in which loom runs them.

use std::sync::atomic::AtomicBool;

use loom::sync::atomic;
use spinpark_platform::{self as platform, Ordering, Ordering::Acquire, Ordering::Relaxed};

use super::fence::fence;
use super::world::{PutOff, world};
use spinpark_sim::check::{Kind, Op};

/// A value that no word ever holds: a compare-exchange with it fails and reads the newest value.
const IMPOSSIBLE: u32 = 0xfeed_f00d;

/// Whether the memory is in use; a use after its end fails the model, if the memory itself still exists.
#[derive(Debug, Default)]
struct Life {
    over: AtomicBool,
}

impl Life {
    /// Before every operation of a thread. `false`: the execution has failed and unwinds, so nothing may be
    /// done any more.
    fn check(&self) -> bool {
        let goes_on = self.is_in_use();
        if goes_on {
            world().stop_here();
        }
        goes_on
    }

    fn is_in_use(&self) -> bool {
        if std::thread::panicking() {
            return false;
        }
        assert!(
            !self.over.load(Relaxed),
            "use after free: an atomic is accessed after its memory was given back"
        );
        true
    }

    fn end(&self) {
        self.over.store(true, Relaxed);
    }
}

fn order(kind: Kind, order: Ordering, value: u32) -> Ordering {
    world().config.faults.order(Op { kind, order, value: value.into(), pointer: false })
}

/// A word of 32 bits.
#[derive(Debug)]
pub struct AtomicU32 {
    value: atomic::AtomicU32,
    life: Life,
}

impl AtomicU32 {
    /// The newest value, as the kernel reads it: an access to the word that orders nothing.
    pub(super) fn newest(&self) -> u32 {
        if !self.life.is_in_use() {
            return 0;
        }
        self.value.compare_exchange(IMPOSSIBLE, IMPOSSIBLE, Relaxed, Relaxed).unwrap_or_else(|value| value)
    }

    fn exchange(&self, kind: Kind, current: u32, new: u32, orders: [Ordering; 2]) -> Result<u32, u32> {
        if !self.life.check() {
            return Ok(current);
        }
        let world = world();
        let faults = world.config.faults;
        let op = Op { kind, order: orders[0], value: new.into(), pointer: false };
        if faults.fences_before(op) {
            fence();
        }
        if faults.looks_back() {
            world.local(|local| local.written = new); // only asked for after a success
        }
        if faults.skips(op) {
            return Ok(current);
        }
        if faults.puts_off(op) {
            world.local(|local| {
                local.put_off = Some(PutOff { word: std::ptr::from_ref(self).cast(), current, new });
            });
            return Ok(current);
        }
        if faults.refuses(op) {
            return Err(self.newest());
        }
        if faults.blinds(op) {
            platform::AtomicU32::store(self, new, orders[0]);
            return Ok(current);
        }
        if faults.halves(op) {
            let first = current & new;
            self.value.compare_exchange(current, first, faults.order(op), orders[1])?;
            self.value.fetch_add(new - first, faults.order(op));
            return Ok(current);
        }
        let new = if faults.clears(op) { 0 } else { new & !faults.left_out(op) };
        let new = new | faults.kept(current & !new);
        match self.value.compare_exchange(current, new, faults.order(op), orders[1]) {
            Err(now) if op.is(Kind::CompareExchangeWeak, Acquire) && faults.overlooks(now ^ current) => {
                self.value.compare_exchange(now, new, faults.order(op), orders[1]).map(|_| current)
            }
            result => result,
        }
    }
}

impl PutOff {
    /// It happens now; returns the address of its word.
    pub(super) fn happen(self) -> usize {
        // SAFETY: a mutant puts off only what it writes to the node of a waiter that sleeps until then.
        let word = unsafe { &*self.word.cast::<AtomicU32>() };
        if word.life.check() {
            let _ = word.value.compare_exchange(self.current, self.new, Relaxed, Relaxed);
        }
        self.word as usize
    }
}

macro_rules! read_modify_write {
    ($($name:ident $kind:ident),*) => {$(
        fn $name(&self, value: u32, with: Ordering) -> u32 {
            if !self.life.check() {
                return 0;
            }
            self.value.$name(value, order(Kind::$kind, with, value))
        }
    )*};
}

impl platform::AtomicU32 for AtomicU32 {
    fn new(value: u32) -> Self {
        Self { value: atomic::AtomicU32::new(value), life: Life::default() }
    }

    fn load(&self, with: Ordering) -> u32 {
        if !self.life.check() {
            return 0;
        }
        let world = world();
        if world.config.faults.looks_back()
            && let Some(written) = world.local(|local| local.after_fence.take())
        {
            return world.config.faults.looked_back(written);
        }
        self.value.load(order(Kind::Load, with, 0))
    }

    fn store(&self, value: u32, with: Ordering) {
        if self.life.check() {
            self.newest();
            world().undivided(|| self.value.store(value, order(Kind::Store, with, value)));
        }
    }

    fn compare_exchange(
        &self,
        current: u32,
        new: u32,
        success: Ordering,
        failure: Ordering,
    ) -> Result<u32, u32> {
        self.exchange(Kind::CompareExchange, current, new, [success, failure])
    }

    fn compare_exchange_weak(
        &self,
        current: u32,
        new: u32,
        success: Ordering,
        failure: Ordering,
    ) -> Result<u32, u32> {
        self.exchange(Kind::CompareExchangeWeak, current, new, [success, failure])
    }

    fn swap(&self, value: u32, with: Ordering) -> u32 {
        if !self.life.check() {
            return 0;
        }
        let op = Op { kind: Kind::Swap, order: with, value: value.into(), pointer: false };
        let faults = world().config.faults;
        faults.reported(self.value.swap(if faults.clears(op) { 0 } else { value }, faults.order(op)))
    }

    fn fetch_and(&self, value: u32, with: Ordering) -> u32 {
        if !self.life.check() {
            return 0;
        }
        self.value.fetch_and(value | world().config.faults.kept(!value), order(Kind::FetchAnd, with, value))
    }

    fn fetch_sub(&self, value: u32, with: Ordering) -> u32 {
        if !self.life.check() {
            return 0;
        }
        let op = Op { kind: Kind::FetchSub, order: with, value: value.into(), pointer: false };
        let faults = world().config.faults;
        self.value.fetch_sub(value & !faults.left_out(op), faults.order(op))
    }

    read_modify_write!(fetch_add FetchAdd, fetch_or FetchOr);
}

impl Drop for AtomicU32 {
    /// The drop check: every access happened before.
    fn drop(&mut self) {
        if !std::thread::panicking() {
            self.value.with_mut(|_| ());
        }
        self.life.end();
    }
}

/// A pointer that several threads change.
#[derive(Debug)]
pub struct AtomicPtr<T> {
    value: atomic::AtomicPtr<T>,
    life: Life,
}

impl<T> AtomicPtr<T> {
    /// As for words.
    const IMPOSSIBLE: *mut T = std::ptr::without_provenance_mut(usize::MAX);

    fn order(kind: Kind, order: Ordering, value: *mut T) -> Ordering {
        world().config.faults.order(Op { kind, order, value: value.addr() as u64, pointer: true })
    }
}

impl<T> platform::AtomicPtr<T> for AtomicPtr<T> {
    fn new(value: *mut T) -> Self {
        Self { value: atomic::AtomicPtr::new(value), life: Life::default() }
    }

    fn load(&self, with: Ordering) -> *mut T {
        if !self.life.check() {
            return std::ptr::null_mut();
        }
        self.value.load(Self::order(Kind::Load, with, std::ptr::null_mut()))
    }

    fn store(&self, value: *mut T, with: Ordering) {
        if self.life.check() {
            let _ = self.value.compare_exchange(Self::IMPOSSIBLE, Self::IMPOSSIBLE, Relaxed, Relaxed);
            world().undivided(|| self.value.store(value, Self::order(Kind::Store, with, value)));
        }
    }

    fn swap(&self, value: *mut T, with: Ordering) -> *mut T {
        if !self.life.check() {
            return std::ptr::null_mut();
        }
        self.value.swap(value, Self::order(Kind::Swap, with, value))
    }

    fn compare_exchange(
        &self,
        current: *mut T,
        new: *mut T,
        success: Ordering,
        failure: Ordering,
    ) -> Result<*mut T, *mut T> {
        if !self.life.check() {
            return Ok(current);
        }
        self.value.compare_exchange(current, new, Self::order(Kind::CompareExchange, success, new), failure)
    }
}

impl<T> Drop for AtomicPtr<T> {
    /// The drop check: every access happened before.
    fn drop(&mut self) {
        if !std::thread::panicking() {
            self.value.with_mut(|_| ());
        }
        self.life.end();
    }
}
