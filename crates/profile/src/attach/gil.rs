//! Threads that wait for CPython's GIL: they stay where they are as long as its holder does.
//!
//! Such a thread wakes every 5 ms, to ask the holder for it, and so seems to go on. But it leaves that wait only with
//! the GIL, which a holder that does not run cannot release. A holder that waits meanwhile for what such a thread
//! has, as extension modules do that take a lock of C without releasing the GIL, is in a deadlock with it.

use std::collections::BTreeSet;
use std::time::Duration;

use super::object::Held;
use super::python::{GIL, Interpreter};
use super::target::{Depth, Followed, Target};
use super::task::{Call, Task};
use super::thread_now::{State, ThreadNow};

/// Reads threads of Python again that were awake, if the GIL's holder stays: they may have been about to ask for it.
pub(super) fn read_again(
    target: &Target,
    python: &Interpreter,
    tasks: &mut [Task],
    stays: impl Fn(&Task) -> bool,
) {
    const TRIES: u32 = 10;
    const PAUSE: Duration = Duration::from_millis(1);
    let holders = python.holders_of_gils(target);
    if !tasks.iter().any(|task| holders.contains(&task.id) && stays(task)) {
        return;
    }
    let is_awake = |task: &Task| task.call == Call::Running && python.has(task.id);
    for _ in 0..TRIES {
        if !tasks.iter().any(is_awake) {
            return;
        }
        std::thread::sleep(PAUSE);
        for task in tasks.iter_mut().filter(|task| is_awake(task)) {
            let depth = Depth { is_idle: false, has_state: true, is_stopped: false };
            let mut followed = Followed::default();
            target.follow(task.id, usize::MAX, &mut followed, depth);
            if let Some(now) = followed.task {
                *task = now;
            }
        }
    }
}

/// The GIL that a thread waits for, and the thread that has it.
pub(super) fn wait(thread: &ThreadNow) -> Option<(u64, u32)> {
    let wait = thread.wait().filter(|wait| wait.name.as_deref() == Some(GIL))?;
    match wait.held {
        Held::Thread(id) if id != thread.id => Some((wait.address, id)),
        _ => None,
    }
}

/// A wait for the GIL over many snapshots, some of which find the thread awake in it.
#[derive(Debug)]
pub(super) struct ForGil {
    /// As it was found first.
    pub(super) thread: ThreadNow,
    /// Then, ns.
    pub(super) since: u64,
}

impl ForGil {
    /// What it is after another snapshot, which found `thread`. `blocked_since`: of the threads that do not run.
    pub(super) fn next(
        before: Option<Self>,
        thread: &ThreadNow,
        now: u64,
        blocked_since: impl Fn(u32) -> Option<u64>,
    ) -> Option<Self> {
        match (wait(thread), before) {
            (None, before) => {
                before.filter(|before| thread.state == State::Running || before.is_of_same_gil(thread))
            }
            (found, Some(before)) if found == wait(&before.thread) && before.lasts(blocked_since) => {
                Some(before)
            }
            (Some(_), _) => Some(Self { thread: thread.clone(), since: now }),
        }
    }

    /// Whether a thread waits for the same GIL, whose holder was not read: the thread woke while it was read.
    fn is_of_same_gil(&self, thread: &ThreadNow) -> bool {
        let gil = |thread: &ThreadNow| {
            thread.wait().filter(|wait| wait.name.as_deref() == Some(GIL)).map(|wait| wait.address)
        };
        gil(thread).is_some() && gil(thread) == gil(&self.thread)
    }

    /// Whether it is this wait still: the holder has not run since.
    pub(super) fn lasts(&self, blocked_since: impl Fn(u32) -> Option<u64>) -> bool {
        let holder = wait(&self.thread).and_then(|(_, holder)| blocked_since(holder));
        holder.is_some_and(|since| since < self.since)
    }
}

/// The threads that wait for a GIL whose holder stays. What others wait for and these have is read again: it may have
/// been read before these came to wait.
pub(super) fn waiters<'a>(
    target: &Target,
    python: &Interpreter,
    threads: &mut [ThreadNow],
    task: impl Fn(u32) -> Option<&'a Task>,
) -> BTreeSet<u32> {
    let staying: BTreeSet<u32> =
        threads.iter().filter(|thread| thread.stays).map(|thread| thread.id).collect();
    let is_stuck = |thread: &&ThreadNow| {
        wait(thread).is_some_and(|(gil, holder)| {
            staying.contains(&holder) && python.holder_of_gil(target, gil) == Held::Thread(holder)
        })
    };
    let waiters: BTreeSet<u32> = threads.iter().filter(is_stuck).map(|thread| thread.id).collect();
    for thread in threads.iter_mut() {
        let Some(task) = task(thread.id) else { continue };
        let Some(wait) = thread.wait_mut() else { continue };
        let is_theirs = wait.holder().is_some_and(|holder| waiters.contains(&holder));
        // Of other locks the owner is read after all threads.
        let is_copy = task.call.futex().is_some_and(|futex| futex.address == wait.address);
        if is_theirs && is_copy && !is_as_copied(target, task, wait.address) {
            wait.held = Held::Unknown;
        }
    }
    waiters
}

/// Whether a lock is as it was when its waiter was read: its word, and its owner behind that.
fn is_as_copied(target: &Target, task: &Task, address: u64) -> bool {
    const BYTES: usize = 16;
    // Of a core there is one moment, and no copy.
    let Some(near) = &task.near else { return true };
    near.get::<BYTES>(address).is_some_and(|before| target.read(address) == Some(before))
}

#[cfg(test)]
mod tests {
    use super::super::thread_now::Wait;
    use super::*;
    use crate::model::{Kind, Role};

    fn thread(holder: Option<u32>) -> ThreadNow {
        let state = holder.map_or(State::Running, |holder| {
            let (kind, role, name) = (Kind::Mutex, Role::Write, Some(String::from(GIL)));
            let held = Held::Thread(holder);
            State::Waits(Wait { kind, role, address: 8, name, is_timed: false, is_private: true, held })
        });
        ThreadNow { id: 1, name: String::new(), state, place: None, stays: false }
    }

    #[test]
    fn a_wait_lasts_as_long_as_its_holder_stays() {
        // Thread 2 has been blocked since 5, thread 3 runs.
        let blocked_since = |id: u32| (id == 2).then_some(5);
        let next =
            |before: Option<ForGil>, holder, now| ForGil::next(before, &thread(holder), now, blocked_since);
        let begun = next(None, Some(2), 10);
        assert_eq!(begun.as_ref().map(|wait| (wait.since, wait.lasts(blocked_since))), Some((10, true)));
        // It was awake, to ask for it.
        let awake = next(begun, None, 20);
        let goes_on = next(awake, Some(2), 30);
        // It went on while it was read: who has the GIL was not.
        let goes_on = ForGil::next(goes_on, &thread(Some(2)).without_owner(), 35, blocked_since);
        assert_eq!(goes_on.as_ref().map(|wait| wait.since), Some(10));
        // Another one has it, which may have released it meanwhile; or it was taken in the same snapshot.
        let other = next(goes_on, Some(3), 40);
        assert_eq!(other.as_ref().map(|wait| (wait.since, wait.lasts(blocked_since))), Some((40, false)));
        assert!(!next(None, Some(2), 5).expect("it waits").lasts(blocked_since));
        // It waits for something else.
        let sleeps = ThreadNow { state: State::Call("read"), ..thread(None) };
        assert!(ForGil::next(next(None, Some(2), 10), &sleeps, 20, blocked_since).is_none());
    }
}
