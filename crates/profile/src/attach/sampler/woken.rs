//! Threads that were woken from a wait for a lock, and wait for a CPU: in what wait they still are.
//!
//! To a program, a wait for a lock lasts until the thread goes on, and so it does to a recording. `/proc` shows the
//! system call of a blocked thread alone. One that was woken, and has no CPU yet, seems to run: its registers are not
//! shown. If it counted as running, waits for locks that are held briefly, which are short and each end with such a
//! delay, would have too small a share.
//!
//! But its stack is memory, and what it will return to is there. A thread that has been woken and has not run since
//! has the return addresses on its stack that a thread has which is blocked there, at the same distance from the
//! stack's other end. So each place at which a thread was found blocked for a lock is kept as a *point*; and a thread
//! that has no CPU, and has all return addresses of a point, is in that wait. Code that went on from there has called
//! other functions, most likely, whose return addresses lie where those of the point did; at least that of the
//! function that releases the lock.
//!
//! - Which lock it is, is where its address was on the stacks of those that were found blocked at this point; where it
//!   was on none, the point has one lock, or it is one of them by chance, in proportion to how often they were found.
//! - A thread that is its owner does not wait. It may have lost its CPU with the lock, before it called anything. Where
//!   a lock has no owner in memory, that is not told apart, and counts as waiting.
//! - A thread on a CPU is in no such wait. Which threads are, the kernel's counts say: how often a thread got a CPU, and
//!   how often it gave it up. They are not exact, so that one that runs with a lock that has no owner in memory may count
//!   as waiting for it, until it calls something.

use std::collections::{BTreeMap, HashMap};
use std::ops::Range;
use std::sync::Arc;

use crate::attach::stack::Stack;
use crate::attach::target::{STACK, Target};
use crate::attach::task::{Call, Task};
use crate::attach::thread_now::ThreadNow;
use crate::symbols::Blocked;

/// The bytes of a word.
const WORD: usize = 8;
/// In so many of the innermost bytes of a stack the lock's address is looked for: the functions that wait have it
/// there.
const INNERMOST: usize = 1024;
/// A lock is no longer: an address so close to the futex's is that of the lock.
const LOCK: u64 = 64;
/// More points are not kept.
const MOST: usize = 1024;
/// Nor more locks of one.
const MOST_LOCKS: usize = 256;

/// The points at which threads were found blocked for locks.
#[derive(Debug, Default)]
pub(super) struct Points {
    all: Vec<Point>,
    /// By how deep they are, and their return addresses.
    numbers: HashMap<(usize, Vec<u64>), usize>,
}

/// The address of a futex: a lock's, or on the stack of the thread that waits, counted from the stack's other end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Place {
    Of(u64),
    OnStack(u64),
}

/// Where the stack of a thread begins: behind the return address of its outermost function, which is in the first
/// field. A thread has several where the functions of its stack can not always be followed to the same one.
pub(super) type Base = (u64, u64);

/// One of them. Offsets are in words from the end of the stack.
#[derive(Debug)]
struct Point {
    /// From the end of the stack to where it begins.
    bytes: usize,
    outermost: u64,
    /// The system call, and the next instruction.
    number: i64,
    arguments: [u64; 6],
    code: u64,
    stack: Arc<Stack>,
    returns: Vec<(usize, u64)>,
    /// Where the lock's address was each time, and what to add to have the futex's.
    addresses: Vec<(usize, u64)>,
    /// The locks that were waited for: how often they were found, and a wait.
    locks: BTreeMap<Place, (u64, ThreadNow)>,
}

/// A thread that was woken, as it was when it was blocked; and a thread that waited there.
pub(super) struct Woken {
    pub(super) task: Task,
    pub(super) stack: Arc<Stack>,
    before: ThreadNow,
    /// The address of the lock is not that of the futex, which each waiter has on its own stack.
    is_on_stack: bool,
}

impl Woken {
    /// The thread in its wait; none if it has what it waited for. `now`: the thread, as if it were blocked still.
    pub(super) fn waits(self, now: ThreadNow) -> Option<(Arc<Stack>, ThreadNow)> {
        let (id, before) = (now.id, self.before.lock()?);
        let is_it = now.lock().is_some_and(|wait| {
            (wait.kind, &wait.name) == (before.kind, &before.name)
                && (self.is_on_stack || wait.address == before.address)
        });
        // Some locks tell what they are only while they have the thread in their queue.
        let thread = match is_it {
            true => now,
            false => ThreadNow { id, name: now.name, ..self.before }.without_owner(),
        };
        let has_it = thread.lock().is_some_and(|wait| wait.holder() == Some(id));
        (!has_it).then_some((self.stack, thread))
    }
}

impl Points {
    /// Notes where a thread is blocked for a lock.
    pub(super) fn add(&mut self, task: &Task, stack: &Arc<Stack>, thread: &ThreadNow) {
        let (Call::Blocked { number, arguments }, Some(copy), Some(futex)) =
            (task.call, &task.stack, task.call.futex())
        else {
            return;
        };
        let Some(returns) = returns(&copy.words, &stack.addresses) else { return };
        let Some((last, outermost)) = returns.last().copied() else { return };
        let words = &copy.words[..=last];
        let bytes = WORD * words.len();
        let (start, end) = (copy.stack, copy.stack.saturating_add(bytes as u64));
        let place = match (start..end).contains(&futex.address) {
            true => Place::OnStack(end - futex.address),
            false => Place::Of(futex.address),
        };
        let key = (bytes, stack.addresses.clone());
        let at = match self.numbers.get(&key) {
            Some(at) => *at,
            None if self.all.len() >= MOST => return,
            None => {
                self.all.push(Point {
                    bytes,
                    outermost,
                    number,
                    arguments,
                    code: copy.code,
                    stack: Arc::clone(stack),
                    returns,
                    addresses: addresses(words, futex.address),
                    locks: BTreeMap::new(),
                });
                self.numbers.insert(key, self.all.len() - 1);
                self.all.len() - 1
            }
        };
        let point = &mut self.all[at];
        point.addresses.retain(|(at, more)| words[*at].wrapping_add(*more) == futex.address);
        point.arguments = arguments;
        if point.locks.len() < MOST_LOCKS || point.locks.contains_key(&place) {
            let known = point.locks.entry(place).or_insert_with(|| (0, thread.clone()));
            known.0 += 1;
        }
    }

    /// The wait in which a thread is that is not blocked, if it has the stack of one. `bases`: where its stack begins.
    /// `random`: for the lock, if the stack does not tell.
    pub(super) fn find(&self, target: &Target, task: &Task, bases: &[Base], random: u64) -> Option<Woken> {
        bases.iter().find_map(|base| self.find_from(target, task, *base, random))
    }

    fn find_from(&self, target: &Target, task: &Task, base: Base, random: u64) -> Option<Woken> {
        let of_it = self.all.iter().filter(|point| point.outermost == base.0);
        let deepest = of_it.map(|point| point.bytes).max()?;
        let all = target.process()?.words(base.1.checked_sub(deepest as u64)?, deepest);
        let (point, words, place) = self.matching(&all, base, random)?;
        let base = base.1;
        let address = match place {
            Place::Of(address) => address,
            Place::OnStack(offset) => base.checked_sub(offset)?,
        };
        let mut arguments = point.arguments;
        arguments[0] = address;
        let stack = Blocked {
            code: point.code,
            stack: base - point.bytes as u64,
            words: words.to_vec(),
            kept: Vec::new(),
        };
        let task = Task {
            call: Call::Blocked { number: point.number, arguments },
            stack: Some(stack),
            near: target.near(address),
            ..task.clone()
        };
        let is_on_stack = matches!(place, Place::OnStack(_));
        Some(Woken {
            task,
            stack: Arc::clone(&point.stack),
            before: point.locks[&place].1.clone(),
            is_on_stack,
        })
    }

    /// The point at which a thread is with these words at the other end of its stack, its stack there, and its lock.
    fn matching<'a>(
        &'a self,
        all: &'a [u64],
        (outermost, base): Base,
        random: u64,
    ) -> Option<(&'a Point, &'a [u64], Place)> {
        let of_it = self.all.iter().filter(|point| point.outermost == outermost);
        let found = of_it.filter_map(|point| {
            let words = &all[all.len().checked_sub(point.bytes / WORD)?..];
            let place = point.fits(words).then(|| point.lock(words, base, random))?;
            Some((point, words, place?))
        });
        // A chain of calls that another one goes on from is a part of it.
        found.max_by_key(|(point, ..)| point.returns.len())
    }

    /// Forgets those in code that is made at run time: there may be other code by now.
    pub(super) fn renew(&mut self) {
        if !self.all.iter().all(|point| point.stack.is_of_files()) {
            *self = Self::default();
        }
    }
}

impl Point {
    /// Whether a stack has its return addresses.
    fn fits(&self, words: &[u64]) -> bool {
        self.returns.iter().all(|(at, address)| words.get(*at) == Some(address))
    }

    /// The lock that is waited for with this stack.
    fn lock(&self, words: &[u64], base: u64, random: u64) -> Option<Place> {
        let mut found = self.addresses.iter().map(|(at, more)| words[*at].wrapping_add(*more));
        if let Some(address) = found.next() {
            let is_one = found.all(|other| other == address);
            let places = [Place::Of(address), Place::OnStack(base.wrapping_sub(address))];
            return places.into_iter().find(|place| is_one && self.locks.contains_key(place));
        }
        let all: u64 = self.locks.values().map(|(count, _)| count).sum();
        let mut left = random % all.max(1);
        let chosen = self.locks.iter().find(|(_, (count, _))| {
            let is_it = left < *count;
            left = left.saturating_sub(*count);
            is_it
        });
        chosen.map(|(place, _)| *place)
    }
}

/// Where the stack of a blocked thread begins.
pub(super) fn base(stack: &Blocked, addresses: &[u64]) -> Option<Base> {
    let (last, outermost) = returns(&stack.words, addresses)?.last().copied()?;
    Some((outermost, stack.stack.checked_add((WORD * (last + 1)) as u64)?))
}

/// Where on a stack its return addresses are; none if not all are there. The first is that of the system call, in a
/// register.
fn returns(words: &[u64], addresses: &[u64]) -> Option<Vec<(usize, u64)>> {
    let mut rest = 0;
    let found: Option<Vec<(usize, u64)>> = addresses
        .get(1..)?
        .iter()
        .map(|address| {
            let at = rest + words[rest..].iter().position(|word| word == address)?;
            rest = at + 1;
            Some((at, *address))
        })
        .collect();
    // With none, any stack would have them.
    found.filter(|found| !found.is_empty())
}

/// Where on a stack the address of a lock is, as that of its futex or close to it, and what to add to have that.
fn addresses(words: &[u64], futex: u64) -> Vec<(usize, u64)> {
    let near: Range<u64> = futex.saturating_sub(LOCK)..futex.saturating_add(LOCK);
    let innermost = words.iter().take(INNERMOST / WORD).enumerate();
    innermost
        .filter(|(_, word)| near.contains(word))
        .map(|(at, word)| (at, futex.wrapping_sub(*word)))
        .collect()
}

const _: () = assert!(INNERMOST <= STACK);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::attach::object::Held;
    use crate::attach::thread_now::{State, Wait};
    use crate::model::{Kind, Role};
    use crate::watch::Stat;

    const BASE: u64 = 0x7000_0000;
    /// Of the system call, of the function that waits, and of two callers of it.
    const CODE: u64 = 0x4000;
    const WAITS: u64 = 0x4100;
    const CALLERS: [u64; 2] = [0x4200, 0x4300];

    /// A stack of six words, of which the lock's address is one.
    fn words(caller: u64, lock: u64) -> Vec<u64> {
        vec![1, WAITS, lock, 2, 3, caller]
    }

    fn blocked(id: u32, base: u64, caller: u64, lock: u64, words: &[u64]) -> (Task, Arc<Stack>, ThreadNow) {
        let stack = Blocked { code: CODE, stack: base - 48, words: words.to_vec(), kept: Vec::new() };
        let arguments = [lock, libc::FUTEX_WAIT as u64 | libc::FUTEX_PRIVATE_FLAG as u64, 2, 0, 0, 0];
        let call = Call::Blocked { number: libc::SYS_futex, arguments };
        let task = Task { id, stat: Stat::default(), sched: None, call, stack: Some(stack), near: None };
        let stack = Arc::new(Stack::at(vec![CODE, WAITS, caller]));
        let wait = Wait {
            kind: Kind::Mutex,
            role: Role::Write,
            address: lock,
            name: None,
            is_timed: false,
            is_private: true,
            held: Held::Thread(9),
        };
        let (name, state) = (String::new(), State::Waits(wait));
        (task, stack, ThreadNow { id, name, state, place: None, stays: false })
    }

    fn points(waits: &[(u64, u64)]) -> Points {
        let mut points = Points::default();
        for (caller, lock) in waits {
            let (task, stack, thread) = blocked(7, BASE, *caller, *lock, &words(*caller, *lock));
            points.add(&task, &stack, &thread);
        }
        points
    }

    fn place(points: &Points, words: &[u64], random: u64) -> Option<Place> {
        CALLERS.iter().find_map(|caller| Some(points.matching(words, (*caller, BASE), random)?.2))
    }

    #[test]
    fn a_stack_tells_the_wait() {
        let points = points(&[(CALLERS[0], 0x9000), (CALLERS[0], 0x9100), (CALLERS[1], 0x9000)]);
        assert_eq!(points.all.len(), 2);
        let found = |caller, lock| place(&points, &words(caller, lock), 0);
        assert_eq!(found(CALLERS[0], 0x9000), Some(Place::Of(0x9000)));
        assert_eq!(found(CALLERS[0], 0x9100), Some(Place::Of(0x9100)));
        // A lock that was not waited for there; a caller that is not known.
        assert_eq!(found(CALLERS[1], 0x9100), None);
        assert_eq!(found(0x4400, 0x9000), None);
        // It has called something else; and what is above it on a longer copy.
        let mut gone_on = words(CALLERS[0], 0x9000);
        gone_on[1] = 0x4500;
        assert_eq!(place(&points, &gone_on, 0), None);
        let longer = [vec![WAITS; 8], words(CALLERS[0], 0x9000)].concat();
        assert_eq!(place(&points, &longer, 0), Some(Place::Of(0x9000)));
        assert_eq!(place(&points, &longer[..7], 0), None);
        let (task, ..) = blocked(7, BASE, CALLERS[0], 0x9000, &longer[8..]);
        let stack = task.stack.expect("it is blocked");
        assert_eq!(base(&stack, &[CODE, WAITS, CALLERS[0]]), Some((CALLERS[0], BASE)));
    }

    #[test]
    fn where_no_word_is_the_lock_it_is_one_by_chance() {
        let mut points = Points::default();
        // The word is this lock's address once only.
        for lock in [0x9000, 0x9200, 0x9200, 0x9200] {
            let (task, stack, thread) = blocked(7, BASE, CALLERS[0], lock, &words(CALLERS[0], 0x9000));
            points.add(&task, &stack, &thread);
        }
        let found: Vec<_> = (0..8).map(|at| place(&points, &words(CALLERS[0], 0x9000), at)).collect();
        assert_eq!(found.iter().filter(|place| **place == Some(Place::Of(0x9000))).count(), 2);
        assert_eq!(found.iter().filter(|place| **place == Some(Place::Of(0x9200))).count(), 6);
    }

    #[test]
    fn a_waiter_may_have_its_futex_on_its_own_stack() {
        let mut points = Points::default();
        let (task, stack, thread) = blocked(7, BASE, CALLERS[0], BASE - 8, &words(CALLERS[0], BASE - 8));
        points.add(&task, &stack, &thread);
        let other = BASE + 0x1000;
        let words = words(CALLERS[0], other - 8);
        let found = points.matching(&words, (CALLERS[0], other), 0).map(|(_, _, place)| place);
        assert_eq!(found, Some(Place::OnStack(8)));
    }

    #[test]
    fn an_owner_does_not_wait() {
        let woken = |held: Held, kind: Kind| {
            let (task, stack, before) = blocked(7, BASE, CALLERS[0], 0x9000, &words(CALLERS[0], 0x9000));
            let mut now = before.clone();
            if let State::Waits(wait) = &mut now.state {
                (wait.held, wait.kind) = (held, kind);
            }
            let found = Woken { task, stack, before, is_on_stack: false }.waits(now)?.1;
            found.lock().map(|wait| (wait.kind, wait.held))
        };
        assert_eq!(woken(Held::Thread(9), Kind::Mutex), Some((Kind::Mutex, Held::Thread(9))));
        assert_eq!(woken(Held::Free, Kind::Mutex), Some((Kind::Mutex, Held::Free)));
        assert_eq!(woken(Held::Thread(7), Kind::Mutex), None);
        // What it was before: which thread has it is not known.
        assert_eq!(woken(Held::Thread(3), Kind::Futex), Some((Kind::Mutex, Held::Unknown)));
    }
}
