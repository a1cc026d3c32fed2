//! The queue of spinners of `spinpark_locks` that may leave: its way in, out and away.

use spinpark_platform::{
    AtomicU32 as _, Ordering::AcqRel, Ordering::Acquire, Ordering::Relaxed, Ordering::Release, Platform,
    SpinnerSlots,
};

const FREE: u32 = 0;
const WAITS: u32 = 1;
const PASSED: u32 = 2;
const LEFT: u32 = 3;
const NONE: u32 = 0;

/// What is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Error {
    /// Nothing.
    None,
    /// A spinner that leaves frees its slot, behind which another one may be.
    FreesWhatIsWatched,
    /// A spinner behind a slot that was left is the head.
    TakesLeftForPassed,
    /// The youngest, as it leaves, leaves an empty queue.
    ForgetsThoseBefore,
    /// A slot that was left is free before it is known which one was before it.
    FreesBeforeReading,
    /// The spinner behind does not free a slot that was passed: its own does.
    FreesAfterPassing,
    /// A slot is taken without a look at whether it is free.
    ClaimsAnySlot,
}

/// The queue.
pub struct SpinQueue<'a, P: Platform> {
    memory: SpinnerSlots<'a, P::AtomicU32>,
    error: Error,
}

impl<'a, P: Platform> SpinQueue<'a, P> {
    /// In `memory`.
    pub fn new(memory: SpinnerSlots<'a, P::AtomicU32>, error: Error) -> Self {
        Self { memory, error }
    }

    fn word(&self, number: u32) -> &'a P::AtomicU32 {
        &self.memory.slots[number as usize - 1].word
    }

    fn about(&self, number: u32) -> &'a P::AtomicU32 {
        &self.memory.slots[number as usize - 1].about
    }

    fn claim(&self, token: u32) -> Option<u32> {
        let count = self.memory.slots.len();
        let number = |probe| ((token as usize + probe) % count) as u32 + 1;
        (0..count).map(number).find(|&number| {
            let seen = self.word(number).load(Relaxed);
            (seen == FREE || self.error == Error::ClaimsAnySlot)
                && self.word(number).compare_exchange(seen, WAITS, Acquire, Relaxed).is_ok()
        })
    }

    /// As `SpinQueue::enter`, then `section` as the head, then as the drop of `Head`.
    pub fn enter(&self, token: u32, mut keep_spinning: impl FnMut() -> bool, section: impl FnOnce()) {
        let Some(me) = self.claim(token) else { return };
        let mut before = self.memory.queue.word.swap(me, AcqRel);
        while before != NONE {
            match self.word(before).load(Acquire) {
                PASSED => {
                    if self.error != Error::FreesAfterPassing {
                        self.word(before).store(FREE, Release);
                    }
                    break;
                }
                LEFT if self.error == Error::TakesLeftForPassed => {
                    self.word(before).store(FREE, Release);
                    break;
                }
                LEFT if self.error == Error::FreesBeforeReading => {
                    self.word(before).store(FREE, Release);
                    before = self.about(before).load(Relaxed);
                }
                LEFT => {
                    let further = self.about(before).load(Relaxed);
                    self.word(before).store(FREE, Release);
                    before = further;
                }
                _ if keep_spinning() => {
                    P::spin_hint();
                }
                _ => return self.leave(me, before),
            }
        }
        section();
        self.word(me).store(PASSED, Release);
        if self.error == Error::FreesAfterPassing {
            self.word(me).store(FREE, Release);
        }
    }

    fn leave(&self, me: u32, before: u32) {
        let earlier = if self.error == Error::ForgetsThoseBefore { NONE } else { before };
        if self.memory.queue.word.compare_exchange(me, earlier, AcqRel, Relaxed).is_ok() {
            self.word(me).store(FREE, Release);
        } else {
            self.about(me).store(before, Relaxed);
            let state = if self.error == Error::FreesWhatIsWatched { FREE } else { LEFT };
            self.word(me).store(state, Release);
        }
    }
}
