//! The MCS lock as a mutex by itself (`spinpark_classics::mcs_mutex`): its way in and out.

use std::marker::PhantomData;
use std::ptr;

use spinpark_classics::RawLock;
use spinpark_platform::{
    AtomicPtr as _, AtomicU32 as _, Ordering::AcqRel, Ordering::Acquire, Ordering::Relaxed,
    Ordering::Release, Platform,
};

/// What is wrong.
pub trait Error: Send + Sync + 'static {
    /// A release does not wait for a waiter that has not linked itself yet.
    const RELEASES_UNLINKED: bool = false;
    /// A waiter that gets the lock clears `next` only after it has put `HELD` in the place of its node.
    const CLEARS_LATE: bool = false;
    /// A waiter that gets the lock forgets which waiter is behind it.
    const FORGETS_THE_NEXT: bool = false;
}

/// Nothing.
#[derive(Debug)]
pub enum Right {}
impl Error for Right {}

/// See [`Error::RELEASES_UNLINKED`].
#[derive(Debug)]
pub enum ReleasesUnlinked {}
impl Error for ReleasesUnlinked {
    const RELEASES_UNLINKED: bool = true;
}

/// See [`Error::CLEARS_LATE`].
#[derive(Debug)]
pub enum ClearsLate {}
impl Error for ClearsLate {
    const CLEARS_LATE: bool = true;
}

/// See [`Error::FORGETS_THE_NEXT`].
#[derive(Debug)]
pub enum ForgetsTheNext {}
impl Error for ForgetsTheNext {
    const FORGETS_THE_NEXT: bool = true;
}

struct Node<P: Platform> {
    next: P::AtomicPtr<Node<P>>,
    granted: P::AtomicU32,
}

fn held<P: Platform>() -> *mut Node<P> {
    ptr::without_provenance_mut(1)
}

/// The lock.
pub struct McsMutex<P: Platform, E: Error> {
    tail: P::AtomicPtr<Node<P>>,
    next: P::AtomicPtr<Node<P>>,
    error: PhantomData<E>,
}

fn linked<P: Platform>(link: &P::AtomicPtr<Node<P>>) -> *mut Node<P> {
    loop {
        let node = link.load(Acquire);
        if !node.is_null() {
            return node;
        }
        P::spin_hint();
    }
}

impl<P: Platform, E: Error> RawLock for McsMutex<P, E> {
    fn new() -> Self {
        let null = || P::AtomicPtr::new(ptr::null_mut());
        Self { tail: null(), next: null(), error: PhantomData }
    }

    fn lock(&self) {
        if self.tail.compare_exchange(ptr::null_mut(), held(), Acquire, Relaxed).is_ok() {
            return;
        }
        let node = Node { next: P::AtomicPtr::new(ptr::null_mut()), granted: P::AtomicU32::new(0) };
        let me = ptr::from_ref(&node).cast_mut();
        let before = self.tail.swap(me, AcqRel);
        if !before.is_null() {
            // SAFETY: as in the original.
            let link = if before == held() { &self.next } else { unsafe { &(*before).next } };
            link.store(me, Release);
            while node.granted.load(Acquire) == 0 {
                P::spin_hint();
            }
        }
        let mut behind = node.next.load(Acquire);
        if behind.is_null() {
            if !E::CLEARS_LATE {
                self.next.store(ptr::null_mut(), Relaxed);
            }
            if self.tail.compare_exchange(me, held(), Release, Relaxed).is_ok() {
                if E::CLEARS_LATE {
                    self.next.store(ptr::null_mut(), Relaxed);
                }
                return;
            }
            behind = linked::<P>(&node.next);
        }
        self.next.store(if E::FORGETS_THE_NEXT { ptr::null_mut() } else { behind }, Relaxed);
    }

    fn try_lock(&self) -> bool {
        self.tail.load(Relaxed).is_null()
            && self.tail.compare_exchange(ptr::null_mut(), held(), Acquire, Relaxed).is_ok()
    }

    fn unlock(&self) {
        let mut next = self.next.load(Acquire);
        if next.is_null() {
            let is_free = self.tail.compare_exchange(held(), ptr::null_mut(), Release, Relaxed).is_ok();
            if is_free || E::RELEASES_UNLINKED {
                return;
            }
            next = linked::<P>(&self.next);
        }
        // SAFETY: as in the original.
        unsafe { (*next).granted.store(1, Release) };
    }
}
