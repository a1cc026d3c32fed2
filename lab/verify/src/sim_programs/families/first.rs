//! Programs of a read-write lock that prefers writers: what that promises, beside exclusion.
//!
//! A reader that has not slept joins no readers past a writer that sleeps. A promise that the last reader has
//! made is kept: no reader comes in before a writer has been inside. (Not so a reader of a higher real-time
//! priority.)

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use spinpark_locks::{Preference, RawRwLock, TryRwLock as _};
use spinpark_platform::Event;
use spinpark_sim::here::{self, has_priorities};
use spinpark_sim::{Sim, Tuned};

use super::subject::soon;
use crate::sim_programs::case::tuned;
use crate::sim_programs::decode;
use crate::sim_programs::guard::{stay, wander};
use crate::sim_programs::{Guard, Hold, Mortal, Program};

/// What the threads have been seen to do.
#[derive(Default)]
struct Watch {
    /// Threads in a call to write that has no deadline, and since when they sleep there.
    writing: RefCell<Vec<(u32, Option<f64>)>>,
    /// Threads that have slept in their calls to read.
    slept: RefCell<Vec<u32>>,
    /// Readers inside, and since when.
    inside: RefCell<Vec<(u32, f64)>>,
    /// When the free lock was promised to a writer that has not come yet.
    promised: Cell<Option<f64>>,
    /// When readers were let in last, out of the queue.
    granted: Cell<f64>,
}

impl Watch {
    fn sees(&self, thread: u32, event: Event) {
        match event {
            Event::Parked => {
                match self.writing.borrow_mut().iter_mut().find(|(writer, _)| *writer == thread) {
                    Some((_, since)) => {
                        since.get_or_insert(here::now());
                        // It may be the one that was promised the lock, and lost it to a call that does not
                        // wait: it is in the queue again.
                        self.promised.set(None);
                    }
                    None => self.slept.borrow_mut().push(thread),
                }
            }
            Event::GrantedReaders => self.granted.set(here::now()),
            Event::HandedOff => self.promised.set(Some(here::now())),
            // It may have been that writer, which takes the promise along; or a call that does not wait has
            // passed it, and made it a request, which has ended.
            Event::TimedOut | Event::WithdrewRequest => self.promised.set(None),
            _ => {}
        }
    }

    /// The running thread, whose call `began` then, has come in to read. `waits`: the call had no deadline.
    fn reads(&self, began: f64, waits: bool) {
        let me = here::thread().number();
        // Or it was in the queue, perhaps, and let in before it slept.
        let has_slept = self.slept.borrow().contains(&me) || self.granted.get() >= began;
        let passed =
            self.writing.borrow().iter().find(|(_, since)| since.is_some_and(|since| since < began)).copied();
        let joins = self.inside.borrow().iter().any(|&(_, since)| since < began);
        if let Some((writer, _)) = passed
            && joins
            && !has_slept
            && !has_priorities()
        {
            here::fail(format!("a new reader joins readers past thread {writer}, which waits to write"));
        }
        if waits && !has_priorities() && self.promised.get().is_some_and(|promised| promised < began) {
            here::fail("a new reader comes in before the writer that was promised the lock".to_owned());
        }
        self.inside.borrow_mut().push((me, here::now()));
    }

    fn leaves(&self) {
        let me = here::thread().number();
        self.inside.borrow_mut().retain(|&(reader, _)| reader != me);
    }
}

struct First<T: Tuned> {
    lock: Mortal<RawRwLock<Sim<T>>>,
    guard: Guard,
    watch: Rc<Watch>,
    /// How readers read.
    readers: Preference,
}

impl<T: Tuned> First<T> {
    fn read(&self) {
        let Self { lock, guard, watch, readers } = self;
        let me = here::thread().number();
        watch.slept.borrow_mut().retain(|&thread| thread != me);
        let began = here::now();
        let (acquired, waits) = match here::random(6) {
            0 => (lock.try_read(*readers), false),
            1 => (lock.read_until(*readers, Some(soon())), false),
            _ => {
                lock.read(*readers);
                (true, true)
            }
        };
        if acquired {
            watch.reads(began, waits);
            guard.enter(Hold::Shared);
            stay();
            guard.leave(Hold::Shared);
            watch.leaves();
            if here::random(8) == 0 { lock.unlock_read_fair() } else { lock.unlock_read() }
        }
    }

    fn write(&self) {
        let Self { lock, guard, watch, .. } = self;
        let acquired = match here::random(6) {
            0 => lock.try_write(),
            1 => lock.write_until_as(Preference::Writers, Some(soon())),
            _ => {
                let me = here::thread().number();
                watch.writing.borrow_mut().push((me, None));
                lock.write_until_as(Preference::Writers, None);
                watch.writing.borrow_mut().retain(|&(writer, _)| writer != me);
                true
            }
        };
        if acquired {
            watch.promised.set(None);
            guard.visit(Hold::Alone);
            if here::random(8) == 0 { lock.unlock_write_fair() } else { lock.unlock_write() }
        }
    }
}

/// Each thread uses it again and again.
pub(super) fn ours(program: &mut Program) {
    first_with(program, Preference::Writers);
}

/// The same, with readers of this kind.
pub fn first_with(program: &mut Program, readers: Preference) {
    fn put_together<T: Tuned>(program: &mut Program, readers: Preference) {
        let lock = Mortal::new(RawRwLock::<Sim<T>>::new());
        program.name_fields("lock", &lock, decode::RWLOCK);
        let reads = [2, 4, 20][program.random(3)];
        program.about(format!("our read-write lock that prefers writers: of {reads} rounds one is a write"));
        let watch = Rc::new(Watch::default());
        let told = Rc::clone(&watch);
        program.on_event(move |thread, event| told.sees(thread, event));
        let first = Rc::new(First { lock, guard: Guard::new(), watch, readers });
        for _ in 0..program.threads() {
            let (first, rounds) = (Rc::clone(&first), program.rounds());
            program.thread(move || {
                for _ in 0..rounds {
                    if here::random(reads) == 0 {
                        first.write();
                    } else {
                        first.read();
                    }
                    wander();
                }
            });
        }
        program.after(move || {
            let lock = &first.lock;
            if lock.is_locked() || !lock.try_write() {
                return Err("the lock is not free".to_owned());
            }
            match decode::flags(lock.first_word()) {
                0 => Ok(()),
                _ => Err(format!("a flag was left behind: {}", decode::word(lock.first_word()))),
            }
        });
    }
    tuned!(program.case.constants, T => put_together::<T>(program, readers));
}
