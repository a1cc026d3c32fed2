//! Recordings of a dormant process, by `spinpark_recorder::presence`; how it is asked, by
//! `spinpark_recorder::bell`; and wrong ways for both.

use std::convert::Infallible;

use spinpark_platform::AtomicU32 as _;
use spinpark_platform::Ordering::{AcqRel, Acquire, Relaxed, Release};
use spinpark_platform::Platform;
use spinpark_recorder::{bell, presence};

use crate::Guarded;

/// What is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Error {
    /// Nothing: the recorder's own code.
    None,
    /// Nothing, in the copies that have the other errors.
    Copied,
    /// The thread that ends all recordings has no barrier (presence.P1).
    NoBarrier,
    /// A thread without a table has no fence (presence.P2).
    NoFence,
    /// Threads at work are looked for before those that are counted (presence.P3).
    LooksFirst,
    /// A thread is counted out before it is at work (presence.P3).
    WorksLate,
    /// What was heard is read after the wishes are (bell.B1).
    HearsLate,
    /// A try that is to be made again counts as heard (bell.B1).
    HearsAnyway,
    /// A forked child has its parent's answering thread (bell.B4).
    ForksAnswerer,
}

const ON: u32 = 1;
const BEGINNING: u32 = 3;
const ASLEEP: u32 = 4;

/// A thread that uses locks.
struct User<P: Platform> {
    at_work: P::AtomicU32,
    /// The recording that its table is of; 0: it has none.
    own: P::AtomicU32,
    /// What it has of the recording's memory.
    memory: Guarded,
}

/// Recordings of a process with some threads; the first one is on.
pub struct Recordings<P: Platform, const USERS: usize> {
    state: P::AtomicU32,
    epoch: P::AtomicU32,
    entering: P::AtomicU32,
    users: [User<P>; USERS],
    error: Error,
}

impl<P: Platform, const USERS: usize> Recordings<P, USERS> {
    /// Whether each thread `has_table` of the first recording.
    pub fn new(error: Error, has_table: [bool; USERS]) -> Self {
        let user = |has_table: bool| User {
            at_work: P::AtomicU32::new(0),
            own: P::AtomicU32::new(has_table.into()),
            memory: Guarded::new(),
        };
        Self {
            state: P::AtomicU32::new(ON),
            epoch: P::AtomicU32::new(1),
            entering: P::AtomicU32::new(0),
            users: has_table.map(user),
            error,
        }
    }

    /// As `Recorder::enter`, something that is recorded, and `Recorder::leave`. `fence`: what a barrier makes
    /// of that of the compiler. Whether it was recorded.
    pub fn record(&self, user: usize, fence: impl FnOnce()) -> bool {
        let me = &self.users[user];
        if self.state.load(Acquire) != ON {
            return false;
        }
        let has_table = me.own.load(Relaxed) != 0;
        let is_in = has_table && presence::enter(&me.at_work, &me.own, &self.epoch, fence);
        let is_in = is_in || self.first_entry(me);
        if is_in {
            me.memory.add();
        }
        presence::leave(&me.at_work);
        is_in
    }

    fn first_entry(&self, me: &User<P>) -> bool {
        let full_fence = || match self.error {
            Error::NoFence => {}
            _ => P::full_fence(),
        };
        let is_on = presence::enter_first(&self.entering, &self.state, ON, full_fence);
        if is_on {
            me.memory.add();
            me.own.store(self.epoch.load(Relaxed), Relaxed);
        }
        let at_work = is_on.then_some(&me.at_work);
        match self.error {
            Error::WorksLate => {
                self.entering.fetch_sub(1, Release);
                if let Some(at_work) = at_work {
                    at_work.store(1, Relaxed);
                }
            }
            _ => presence::got_table(&self.entering, at_work),
        }
        is_on
    }

    /// As `Recorder::fall_asleep`. `barrier`: of all threads.
    pub fn fall_asleep(&self, barrier: impl FnOnce()) {
        if self.change(ON, BEGINNING) {
            self.end_all(barrier);
            self.change(BEGINNING, ASLEEP);
        }
    }

    /// As `Recorder::awake`; whether another recording has begun.
    pub fn awake(&self, barrier: impl FnOnce()) -> bool {
        if !self.change(ASLEEP, BEGINNING) {
            return false;
        }
        let has_begun = self.end_all(barrier);
        if has_begun {
            for user in &self.users {
                user.memory.add();
            }
        }
        self.change(BEGINNING, if has_begun { ON } else { ASLEEP });
        has_begun
    }

    fn change(&self, from: u32, to: u32) -> bool {
        self.state.compare_exchange(from, to, AcqRel, Relaxed).is_ok()
    }

    fn end_all(&self, barrier: impl FnOnce()) -> bool {
        let barrier = || {
            if self.error != Error::NoBarrier {
                P::full_fence();
                barrier();
            }
        };
        let are_out = || self.users.iter().all(|user| presence::is_out(&user.at_work));
        match self.error {
            Error::LooksFirst => {
                self.epoch.fetch_add(1, Relaxed);
                barrier();
                are_out() && self.entering.load(Acquire) == 0
            }
            Error::Copied => {
                self.epoch.fetch_add(1, Relaxed);
                barrier();
                self.entering.load(Acquire) == 0 && are_out()
            }
            _ => {
                let barrier = || {
                    barrier();
                    Ok::<(), Infallible>(())
                };
                let Ok(is_quiet) = presence::end_all(&self.epoch, &self.entering, barrier, are_out);
                is_quiet
            }
        }
    }
}

/// A page with two requests, and their processes.
pub struct Page<P: Platform> {
    bell: P::AtomicU32,
    requests: [Request<P>; 2],
}

struct Request<P: Platform> {
    wish: P::AtomicU32,
    done: P::AtomicU32,
}

/// One of the processes that have a page.
pub struct Process<P: Platform> {
    request: usize,
    heard: P::AtomicU32,
    answerer: P::AtomicU32,
    /// What its answering threads have.
    answers: Guarded,
    error: Error,
}

impl<P: Platform> Default for Page<P> {
    fn default() -> Self {
        let request = || Request { wish: P::AtomicU32::new(0), done: P::AtomicU32::new(0) };
        Self { bell: P::AtomicU32::new(0), requests: [request(), request()] }
    }
}

impl<P: Platform> Page<P> {
    /// A command, the only one, asks the process with this request for something more.
    pub fn ask(&self, request: usize) {
        let wish = &self.requests[request].wish;
        wish.store(wish.load(Relaxed) + 1, Relaxed);
        self.bell.store(self.bell.load(Relaxed) + 1, Release);
    }

    /// All threads are done: one more makes a call, and then nothing may be left to do.
    pub fn finish(&self, process: &Process<P>) {
        process.call(self, 9, |_| true);
        let Request { wish, done } = &self.requests[process.request];
        let (wish, done) = (wish.load(Relaxed), done.load(Relaxed));
        assert_eq!(wish, done, "a ring was missed");
    }
}

impl<P: Platform> Process<P> {
    /// One that has heard all.
    pub fn new(error: Error, request: usize) -> Self {
        let word = || P::AtomicU32::new(0);
        Self { request, heard: word(), answerer: word(), answers: Guarded::new(), error }
    }

    /// A forked child, made by one of the threads: it has the words as they are now.
    pub fn forked(&self, request: usize) -> Self {
        let child = Self::new(self.error, request);
        child.heard.store(self.heard.load(Relaxed), Relaxed);
        child.answerer.store(self.answerer.load(Relaxed), Relaxed);
        if self.error != Error::ForksAnswerer {
            bell::forked(&child.answerer);
        }
        child
    }

    /// An intercepted call of thread `me`. `may`: whether it can do now what is wished, which is this number.
    pub fn call(&self, page: &Page<P>, me: u32, mut may: impl FnMut(u32) -> bool) {
        if page.bell.load(Relaxed) == self.heard.load(Relaxed) {
            return;
        }
        let fulfil = || {
            let Request { wish, done } = &page.requests[self.request];
            self.answers.add();
            let wished = wish.load(Acquire);
            if wished == done.load(Relaxed) {
                return true;
            }
            let has = may(wished);
            if has {
                done.store(wished, Release);
            }
            has
        };
        match self.error {
            Error::None | Error::ForksAnswerer => {
                bell::answer(&page.bell, &self.heard, &self.answerer, me, fulfil);
            }
            _ => bell::with_turn(&self.answerer, me, || self.answer_copied(page, fulfil)),
        }
    }

    /// What [`bell::answer`] does in its turn.
    fn answer_copied(&self, page: &Page<P>, mut fulfil: impl FnMut() -> bool) {
        loop {
            let rung = page.bell.load(Acquire);
            if self.heard.load(Relaxed) == rung {
                return;
            }
            if !fulfil() && self.error != Error::HearsAnyway {
                return;
            }
            let heard = if self.error == Error::HearsLate { page.bell.load(Acquire) } else { rung };
            self.heard.store(heard, Relaxed);
        }
    }
}
