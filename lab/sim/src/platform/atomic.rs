//! Words whose accesses cost what the machine says. As large as real ones, so that they share cache lines as
//! those do.

use std::cell::UnsafeCell;
use std::sync::atomic;

use spinpark_platform as platform;
use spinpark_platform::Ordering;
use spinpark_platform::Ordering::Relaxed;

use crate::access::{access, store, touch};
use crate::check::{Kind, Op};
use crate::engine::{in_run, note};
use crate::here::branches;
use crate::platform::faulty;
use crate::world::Did;
use crate::world::memory::{Access, Value, Write};

/// A word of 32 bits.
#[derive(Debug)]
#[repr(transparent)]
pub struct AtomicU32(atomic::AtomicU32);

/// A pointer.
#[derive(Debug)]
#[repr(transparent)]
pub struct AtomicPtr<T>(atomic::AtomicPtr<T>);

/// Whether a store is an `XCHG`, which x86 needs for one that is sequentially consistent.
fn is_exchange(op: Op) -> bool {
    faulty::faults().order(op) == Ordering::SeqCst
}

impl AtomicU32 {
    pub(crate) fn address(&self) -> usize {
        std::ptr::from_ref(self).addr()
    }

    /// The value, as it is: an access that costs nothing.
    pub(super) fn value(&self) -> u32 {
        self.0.load(Relaxed)
    }

    /// Replaces the value: as above. For the kernel, which has updated the word.
    pub(super) fn set(&self, value: u32) {
        note(|| Did::Wrote(self.address(), self.value(), value));
        self.0.store(value, Relaxed);
    }

    /// A store of `value`.
    pub(super) fn write(&self, value: u32) -> Write {
        Write::word(&self.0, value)
    }

    fn update(&self, act: impl FnOnce(&atomic::AtomicU32) -> u32) -> u32 {
        access(self.address(), Access::Update);
        let old = act(&self.0);
        note(|| Did::Wrote(self.address(), old, self.value()));
        old
    }

    /// The exchange itself, in one step.
    pub(super) fn exchange(&self, current: u32, new: u32) -> Result<u32, u32> {
        access(self.address(), Access::Update);
        let result = self.0.compare_exchange(current, new, Relaxed, Relaxed);
        branches(self.address(), result.is_ok());
        if result.is_err() {
            in_run(|world| world.counts.failed_exchanges += 1);
        }
        note(|| match result {
            Ok(old) => Did::Wrote(self.address(), old, new),
            Err(seen) => Did::Failed(self.address(), seen, current),
        });
        result
    }

    fn exchange_as(&self, kind: Kind, current: u32, new: u32, order: Ordering) -> Result<u32, u32> {
        if faulty::is_on() {
            let op = Op { kind, order, value: new.into(), pointer: false };
            return self.faulty_exchange(op, current, new);
        }
        self.exchange(current, new)
    }

    /// The exchange on a machine with faults.
    fn faulty_exchange(&self, op: Op, current: u32, new: u32) -> Result<u32, u32> {
        let faults = faulty::faults();
        if faults.fences_before(op) {
            super::interrupt_cpus();
        }
        faulty::wrote(new); // only asked for after a success
        if faults.skips(op) {
            return Ok(current);
        }
        if faults.refuses(op) {
            return self.exchange(current, current).and_then(Err);
        }
        if faults.blinds(op) {
            platform::AtomicU32::store(self, new, op.order);
            return Ok(current);
        }
        if faults.halves(op) {
            let first = current & new;
            self.exchange(current, first)?;
            platform::AtomicU32::fetch_add(self, new - first, op.order);
            return Ok(current);
        }
        let new = if faults.clears(op) { 0 } else { new & !faults.left_out(op) };
        let new = if new == current { new | faults.added(op) } else { new };
        self.exchange(current, new | faults.kept(current & !new))
    }
}

impl platform::AtomicU32 for AtomicU32 {
    fn new(value: u32) -> Self {
        object_begins();
        Self(atomic::AtomicU32::new(value))
    }

    fn load(&self, _: Ordering) -> u32 {
        let value = match access(self.address(), Access::Load) {
            Some(Value::Word(_, value)) => value,
            _ => self.0.load(Relaxed),
        };
        note(|| Did::Loaded(self.address(), value));
        if faulty::is_on() { faulty::seen(value) } else { value }
    }

    fn store(&self, value: u32, order: Ordering) {
        let op = Op { kind: Kind::Store, order, value: value.into(), pointer: false };
        if is_exchange(op) {
            self.update(|word| word.swap(value, Relaxed));
        } else {
            store(self.write(value));
        }
    }

    fn swap(&self, value: u32, order: Ordering) -> u32 {
        let op = Op { kind: Kind::Swap, order, value: value.into(), pointer: false };
        let value = if faulty::faults().clears(op) { 0 } else { value };
        self.update(|word| {
            crate::here::note_order(self.address(), value as usize);
            let old = word.swap(value, Relaxed);
            // A swap never fails, but its caller branches on what it found, which is not known here. 0
            // against all else stands for that: it is a free lock (test-and-set, 2003), an empty queue of
            // spinners, a waiter that is awake. Where it is something else, two ways count as one, and the
            // guess is right more often than a core's would be: the counter of 2.6.34's mutex (0: held, 1:
            // free, less: waiters), and releases, which never find 0.
            branches(self.address(), old == 0);
            old
        })
    }

    fn compare_exchange(&self, current: u32, new: u32, order: Ordering, _: Ordering) -> Result<u32, u32> {
        self.exchange_as(Kind::CompareExchange, current, new, order)
    }

    fn compare_exchange_weak(
        &self,
        current: u32,
        new: u32,
        order: Ordering,
        _: Ordering,
    ) -> Result<u32, u32> {
        if in_run(|world| world.chance(world.chaos.weak)) {
            access(self.address(), Access::Update);
            note(|| Did::Said("a weak compare-exchange fails for no reason"));
            return Err(self.value());
        }
        self.exchange_as(Kind::CompareExchangeWeak, current, new, order)
    }

    fn fetch_add(&self, value: u32, _: Ordering) -> u32 {
        self.update(|word| word.fetch_add(value, Relaxed))
    }

    fn fetch_sub(&self, value: u32, _: Ordering) -> u32 {
        self.update(|word| word.fetch_sub(value, Relaxed))
    }

    fn fetch_and(&self, value: u32, _: Ordering) -> u32 {
        let value = value | faulty::faults().kept(!value);
        self.update(|word| word.fetch_and(value, Relaxed))
    }

    fn fetch_or(&self, value: u32, _: Ordering) -> u32 {
        self.update(|word| word.fetch_or(value, Relaxed))
    }
}

impl Drop for AtomicU32 {
    fn drop(&mut self) {
        object_ends(self.address(), size_of::<Self>());
    }
}

impl<T> AtomicPtr<T> {
    fn address(&self) -> usize {
        std::ptr::from_ref(self).addr()
    }

    fn touch(&self, kind: Access) {
        access(self.address(), kind);
    }
}

impl<T> platform::AtomicPtr<T> for AtomicPtr<T> {
    fn new(value: *mut T) -> Self {
        object_begins();
        Self(atomic::AtomicPtr::new(value))
    }

    fn load(&self, _: Ordering) -> *mut T {
        let value = match access(self.address(), Access::Load) {
            Some(Value::Pointer(_, value)) => value.cast(),
            _ => self.0.load(Relaxed),
        };
        note(|| Did::Pointer(self.address(), None, value.addr()));
        value
    }

    fn store(&self, value: *mut T, order: Ordering) {
        let op = Op { kind: Kind::Store, order, value: value.addr() as u64, pointer: true };
        if is_exchange(op) {
            self.touch(Access::Update);
            let old = self.0.swap(value, Relaxed);
            note(|| Did::Pointer(self.address(), Some(old.addr()), value.addr()));
        } else {
            store(Write::pointer(&self.0, value));
        }
    }

    fn swap(&self, value: *mut T, _: Ordering) -> *mut T {
        self.touch(Access::Update);
        crate::here::note_order(self.address(), value.addr());
        let old = self.0.swap(value, Relaxed);
        // As with numbers: null is an empty queue.
        branches(self.address(), old.is_null());
        note(|| Did::Pointer(self.address(), Some(old.addr()), value.addr()));
        old
    }

    fn compare_exchange(
        &self,
        current: *mut T,
        new: *mut T,
        _: Ordering,
        _: Ordering,
    ) -> Result<*mut T, *mut T> {
        self.touch(Access::Update);
        let result = self.0.compare_exchange(current, new, Relaxed, Relaxed);
        branches(self.address(), result.is_ok());
        note(|| match result {
            Ok(old) => Did::Pointer(self.address(), Some(old.addr()), new.addr()),
            Err(seen) => Did::Pointer(self.address(), None, seen.addr()),
        });
        result
    }
}

impl<T> Drop for AtomicPtr<T> {
    fn drop(&mut self) {
        object_ends(self.address(), size_of::<Self>());
    }
}

/// See [`spinpark_platform::Cell`].
#[derive(Debug)]
#[repr(transparent)]
pub struct Cell<T>(UnsafeCell<T>);

impl<T> platform::Cell<T> for Cell<T> {
    fn new(value: T) -> Self {
        object_begins();
        Self(UnsafeCell::new(value))
    }

    fn with<R>(&self, act: impl FnOnce(*const T) -> R) -> R {
        touch(self.0.get().addr(), Access::Load);
        act(self.0.get())
    }

    fn with_mut<R>(&self, act: impl FnOnce(*mut T) -> R) -> R {
        touch(self.0.get().addr(), Access::Store); // its contents are there at once: see `stores`
        act(self.0.get())
    }
}

impl<T> Drop for Cell<T> {
    fn drop(&mut self) {
        object_ends(self.0.get().addr(), size_of::<T>());
    }
}

/// The running thread makes an object. Where one begins cannot be seen: it is made, and moved to its place.
/// So what ends on a thread's stack is taken for gone until that thread makes another object. What it has had
/// on its stack before may lie under it.
#[inline]
fn object_begins() {
    in_run(|world| {
        let stack = &world.threads[world.running].stack;
        if let Some(checks) = &mut world.checks {
            checks.revive(stack.clone());
        }
    });
}

/// An object at `address`, of `size` bytes, ends.
#[inline]
fn object_ends(address: usize, size: usize) {
    in_run(|world| {
        let line = world.memory.ends(address);
        if line.is_some_and(|line| world.memory.get(line).buffered > 0) {
            world.memory_ends(&(address..address + size));
        }
        let is_on_stack = world.threads[world.running].stack.contains(&address);
        if let Some(checks) = world.checks.as_mut().filter(|_| is_on_stack) {
            checks.bury(address..address + size);
        }
    });
}
