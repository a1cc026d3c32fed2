//! A mutex with a condition variable that is made of many: each waiter has one to itself, and a list says who
//! is next.

use std::cell::RefCell;
use std::collections::VecDeque;

use spinpark_locks::{Adaptive, RawCondvar, RawMutex};
use spinpark_platform::Platform;

/// What is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Error {
    /// Nothing.
    None,
    /// The newest wait ends first.
    NewestFirst,
    /// A signal ends two waits.
    OneTooMany,
    /// A broadcast leaves out the newest wait.
    OneTooFew,
}

/// The mutex, and the variable. All but `lock` are for the mutex' owner.
pub struct Monitor<P: Platform + Adaptive> {
    mutex: RawMutex<P>,
    places: [RawCondvar<P>; 64],
    /// Which places are waited at, the oldest wait first. Guarded by the mutex.
    line: RefCell<VecDeque<usize>>,
    error: Error,
}

impl<P: Platform + Adaptive> Monitor<P> {
    /// No waiters.
    pub fn new(error: Error) -> Self {
        let places = std::array::from_fn(|_| RawCondvar::new());
        Self { mutex: RawMutex::new(), places, line: RefCell::default(), error }
    }

    /// Locks the mutex.
    pub fn lock(&self) {
        self.mutex.lock();
    }

    /// Unlocks the mutex.
    pub fn unlock(&self) {
        self.mutex.unlock();
    }

    /// Waits for a signal.
    ///
    /// # Panics
    ///
    /// There is room for 64.
    pub fn wait(&self) {
        let is_free = |place: &usize| !self.line.borrow().contains(place);
        let place = (0..self.places.len()).find(is_free).expect("there is a place");
        self.line.borrow_mut().push_back(place);
        self.places[place].wait(&self.mutex, None);
    }

    /// Ends one wait. Returns whether there was one.
    pub fn signal(&self) -> bool {
        let is_over = self.end_one();
        if self.error == Error::OneTooMany {
            self.end_one();
        }
        is_over
    }

    /// Ends all waits. Returns how many.
    pub fn broadcast(&self) -> u32 {
        let all = self.line.borrow().len() as u32;
        let ended = if self.error == Error::OneTooFew { all.saturating_sub(1) } else { all };
        (0..ended).map(|_| u32::from(self.end_one())).sum()
    }

    fn end_one(&self) -> bool {
        let next = match self.error {
            Error::NewestFirst => self.line.borrow_mut().pop_back(),
            _ => self.line.borrow_mut().pop_front(),
        };
        next.is_some_and(|place| self.places[place].signal())
    }
}
