//! First come, first served: a thread that arrived earlier is in earlier.

use std::cell::Cell;

use spinpark_sim::here::{self, place_in_order};

/// Watches the order in which threads get what they queued for. See
/// [`Program::watch_order`](super::Program::watch_order).
#[derive(Debug, Default)]
pub struct Line {
    /// The place of the thread served last, plus one.
    served: Cell<usize>,
    /// Whether all are to be served, or some may leave.
    may_leave: bool,
}

impl Line {
    /// Of a lock that serves all that arrive.
    #[must_use]
    pub fn of_all() -> Self {
        Self::default()
    }

    /// Of a queue that its members may leave.
    #[must_use]
    pub fn of_those_who_stay() -> Self {
        Self { may_leave: true, ..Self::default() }
    }

    /// The running thread is served now.
    pub fn serve(&self) {
        let next = self.served.get();
        let is_right = |place: &usize| if self.may_leave { *place >= next } else { *place == next };
        match place_in_order() {
            Some(place) if is_right(&place) => self.served.set(place + 1),
            place => here::fail(format!(
                "order: thread {} is served with place {place:?} in the line, after place {}",
                here::thread().number(),
                next.wrapping_sub(1) as isize
            )),
        }
    }
}
