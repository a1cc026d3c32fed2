//! All threads at a moment, with symbols: who waits for whom, and what is stuck.
//!
//! Two snapshots are taken, a moment apart. A thread that has not run in between *stays*: what it waits for,
//! and what it has, are what they were. A cycle of threads that all stay, each in a wait without a deadline
//! for what the next one has, is a deadlock. Of a core dump, and of threads that were stopped, there is one
//! snapshot: all that are blocked stay so.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use spinpark_measure::text::one_line;

use super::access::Refused;
use super::gil;
use super::hotspot::{self, JavaThread};
use super::object::{Held, Object};
use super::stack::{Known, thread};
use super::stop;
use super::target::Target;
use super::task::{Call, Task};
use super::thread_now::{State, ThreadNow, Wait};
use crate::symbols::Symbols;

/// Between the two snapshots.
const MOMENT: Duration = Duration::from_millis(100);

/// A process at a moment.
#[derive(Clone, Debug)]
pub struct Snapshot {
    /// The process.
    pub pid: u32,
    /// Its program.
    pub program: String,
    /// Its threads, by their numbers.
    pub threads: Vec<ThreadNow>,
    /// Cycles, as indices of `threads`: each waits for what the next one has.
    pub deadlocks: Vec<Vec<usize>>,
    /// It has handlers of signals that others send: one may wake a thread.
    pub has_handlers: bool,
    /// It is a program of Go, whose goroutines wait without a thread.
    pub is_of_go: bool,
    /// For how long its threads were stopped, if they were.
    pub stopped: Option<Duration>,
    /// What there is besides, if it is of a core dump.
    pub core: Option<OfCore>,
    /// What to know of its stacks: sentences.
    pub notes: Vec<String>,
}

/// What a core dump has besides.
#[derive(Clone, Debug, Default)]
pub struct OfCore {
    /// The thread that got a signal, and which, if that is why the core was written.
    pub signal: Option<(u32, i32)>,
    /// Files of which stacks have code, that are not here, or are other builds.
    pub missing: Vec<String>,
}

impl Snapshot {
    /// What the threads of a process do.
    ///
    /// # Errors
    /// If it has ended, or may no longer be read.
    pub fn take(target: &mut Target) -> Result<Self, Refused> {
        let tools = tools(target);
        if target.core().is_some() {
            let now = target.snapshot()?;
            return Ok(Self::of(target, tools, &now, |task| matches!(task.call, Call::Blocked { .. }), None));
        }
        let before = target.calls()?;
        std::thread::sleep(MOMENT);
        let mut now = target.snapshot()?;
        let stays = |task: &Task| before.get(&task.id).is_some_and(|before| task.is_still(*before));
        gil::read_again(target, tools.1.python(), &mut now, stays);
        Ok(Self::of(target, tools, &now, stays, None))
    }

    /// The same, with all threads stopped for a moment: their stacks are exact, also of those that run.
    ///
    /// # Errors
    /// If a debugger has the process already, or it may not be stopped, or has ended.
    pub fn take_stopped(target: &mut Target) -> Result<Self, Refused> {
        let tools = tools(target);
        let (now, stopped) = stop::snapshot(target)?;
        Ok(Self::of(target, tools, &now, |task| matches!(task.call, Call::Blocked { .. }), Some(stopped)))
    }

    /// Of a snapshot. `stays`: as [`ThreadNow::stays`]. `stopped`: for how long all threads were, at its moment.
    fn of(
        target: &mut Target,
        (mut symbols, mut known): (Symbols, Known),
        now: &[Task],
        stays: impl Fn(&Task) -> bool,
        stopped: Option<Duration>,
    ) -> Self {
        known.read_python(target, &mut symbols, now);
        target.read_maps();
        let ids: BTreeSet<u32> = now.iter().map(|task| task.id).collect();
        let one = |task: &Task| thread(target, (&mut symbols, &mut known), task, &ids, stays(task));
        let mut threads: Vec<ThreadNow> = now.iter().map(one).collect();
        confirm(target, &mut threads, now, stopped.is_some());
        let task = |id: u32| Some(&now[now.binary_search_by_key(&id, |task| task.id).ok()?]);
        let waiters = gil::waiters(target, known.python(), &mut threads, task);
        threads.iter_mut().for_each(|thread| thread.stays |= waiters.contains(&thread.id));
        known.name_holders(target, &mut threads.iter_mut().collect::<Vec<_>>());
        let mut notes: Vec<String> = known.why_not().map(str::to_owned).into_iter().collect();
        notes.extend(ask_jvm(target, &mut threads));
        guess_holders(&mut threads, now, |address| symbols.variable(&target.maps, address).is_some());
        let deadlocks = cycles(&threads);
        forget_guesses(&mut threads, &deadlocks);
        let has_handlers = target.has_handlers();
        let is_of_go = target.is_of_go();
        let core = target.core().map(|core| OfCore { signal: core.signal, missing: symbols.missing() });
        let program = target.program().to_owned();
        Self { pid: target.pid, program, threads, deadlocks, has_handlers, is_of_go, stopped, core, notes }
    }

    /// Whether each thread waits for another one, without a deadline: only a signal's handler could wake one.
    pub(super) fn is_none_left(&self) -> bool {
        self.threads
            .iter()
            .all(|thread| thread.stays && thread.wait().is_some_and(|wait| !wait.is_timed && wait.is_private))
    }

    /// The thread with this number.
    pub(super) fn thread(&self, id: u32) -> Option<&ThreadNow> {
        // They are in order.
        let at = self.threads.binary_search_by_key(&id, |thread| thread.id).ok()?;
        self.threads.get(at)
    }
}

/// What looks things up in a process. It takes time to find an interpreter: before threads are read.
fn tools(target: &mut Target) -> (Symbols, Known) {
    let mut symbols = Symbols::new().with_kept(std::mem::take(&mut target.kept));
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let since = u64::try_from(since.as_nanos()).unwrap_or(u64::MAX);
    match target.core() {
        Some(core) => symbols.begin(target.pid, core.written),
        None => symbols.begin_running(target.pid, since),
    }
    let mut known = Known::default();
    known.read_python(target, &mut symbols, &[]);
    (symbols, known)
}

/// Owners were read after the snapshots, thread by thread. Of one that has not run until now, what it waits for
/// and what it has are what they were; of others, they need not fit together. All that was copied while threads
/// were stopped does.
fn confirm(target: &mut Target, threads: &mut [ThreadNow], tasks: &[Task], were_stopped: bool) {
    target.renew_numbers();
    for (thread, task) in threads.iter_mut().zip(tasks) {
        thread.stays &= were_stopped || target.stays(task);
        let (id, stays) = (thread.id, thread.stays);
        let Some(wait) = thread.wait_mut() else { continue };
        wait.held = match wait.held {
            // It has come by now.
            Held::Thread(own) if own == id && !stays => Held::Unknown,
            Held::Gone(number) if target.has(target.thread(number)) => Held::Thread(target.thread(number)),
            Held::Gone(_) if !stays => Held::Unknown,
            held => held,
        };
    }
}

/// What a JVM knows of its threads takes the place of what its functions of C++ tell. A sentence about it, if it is
/// one.
fn ask_jvm(target: &Target, threads: &mut [ThreadNow]) -> Option<String> {
    if target.core().is_some() || !target.has_loaded(hotspot::LIBRARY) {
        return None;
    }
    let all = match hotspot::threads(target.pid) {
        Ok(all) => all,
        Err(why) => {
            return Some(format!("Stacks are the JVM's own, not Java's, since {why}."));
        }
    };
    let by_number: HashMap<u32, JavaThread> =
        all.into_iter().map(|thread| (target.thread(thread.number), thread)).collect();
    for thread in threads {
        let Some(java) = by_number.get(&thread.id) else { continue };
        thread.name = one_line(&java.name).to_string();
        thread.place = java.place.clone().map(Arc::new).or(thread.place.take());
        let Some((object, is_timed)) = &java.wait else { continue };
        let Object { kind, role, address, name, held } = object.clone();
        let held = match held {
            Held::Thread(number) => Held::Thread(target.thread(number)),
            held => held,
        };
        thread.state =
            State::Waits(Wait { kind, role, address, name, is_timed: *is_timed, is_private: true, held });
        // All threads were read at one moment.
        thread.stays = true;
    }
    Some(String::from("Java's stacks, monitors and owners are from a thread dump by the JVM."))
}

/// Who may have locks that do not say it: the only other thread that has the lock's address on its stack. A
/// guard is a pointer to its lock; but so is what leads to it, so that this alone tells nothing
/// ([`forget_guesses`]). The stack of a thread that runs is not known.
///
/// The address of a variable is in the program: who has such a lock need not have it on the stack. Then all
/// threads must wait for others.
fn guess_holders(threads: &mut [ThreadNow], tasks: &[Task], mut is_variable: impl FnMut(u64) -> bool) {
    let is_silent = |wait: &&Wait| {
        wait.role.is_lock() && wait.held == Held::Unknown && wait.address != 0 && !wait.is_pythons()
    };
    let all_wait = threads.iter().all(|thread| thread.wait().is_some());
    let mut wanted: BTreeSet<u64> = threads
        .iter()
        .filter_map(|thread| thread.lock())
        .filter(is_silent)
        .map(|wait| wait.address)
        .collect();
    wanted.retain(|address| all_wait || !is_variable(*address));
    if wanted.is_empty() || tasks.iter().any(|task| task.stack.is_none()) {
        return;
    }
    let mut having: BTreeMap<u64, BTreeSet<u32>> = BTreeMap::new();
    for (task, thread) in tasks.iter().zip(threads.iter()) {
        let own = thread.lock().map(|wait| wait.address);
        let words = task.stack.iter().flat_map(|stack| &stack.words);
        for word in words.filter(|word| wanted.contains(word) && own != Some(**word)) {
            having.entry(*word).or_default().insert(task.id);
        }
    }
    for thread in threads {
        let Some(wait) = thread.wait_mut() else { continue };
        if !is_silent(&&*wait) {
            continue;
        }
        if let Some(only) = having.get(&wait.address).filter(|having| having.len() == 1) {
            wait.held = only.first().map_or(Held::Unknown, |id| Held::Perhaps(*id));
        }
    }
}

/// Guesses count where they make a cycle.
fn forget_guesses(threads: &mut [ThreadNow], cycles: &[Vec<usize>]) {
    for (index, thread) in threads.iter_mut().enumerate() {
        let is_in = cycles.iter().any(|cycle| cycle.contains(&index));
        if let Some(wait) = thread.wait_mut()
            && matches!(wait.held, Held::Perhaps(_))
            && !is_in
            && !wait.is_pythons()
        {
            wait.held = Held::Unknown;
        }
    }
}

/// Cycles of threads that stay, each without a deadline in a wait for the next one.
pub(super) fn cycles(threads: &[ThreadNow]) -> Vec<Vec<usize>> {
    let by_id: HashMap<u32, usize> =
        threads.iter().enumerate().map(|(index, thread)| (thread.id, index)).collect();
    let next = |index: usize| {
        let thread: &ThreadNow = &threads[index];
        let wait = thread.wait().filter(|wait| thread.stays && !wait.is_timed)?;
        by_id.get(&wait.holder()?).copied()
    };
    let mut cycles = Vec::new();
    let mut is_done = vec![false; threads.len()];
    for start in 0..threads.len() {
        let mut path = Vec::new();
        let mut at = Some(start);
        while let Some(index) = at.filter(|index| !is_done[*index]) {
            is_done[index] = true;
            path.push(index);
            at = next(index);
        }
        if let Some(from) = at.and_then(|index| path.iter().position(|known| *known == index)) {
            cycles.push(path[from..].to_vec());
        }
    }
    cycles
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Kind;
    use crate::model::Role;

    fn waits(id: u32, held: Held, is_timed: bool) -> ThreadNow {
        let wait = Wait {
            kind: Kind::Mutex,
            role: Role::Write,
            address: 8,
            name: None,
            is_timed,
            is_private: true,
            held,
        };
        ThreadNow { id, name: String::new(), state: State::Waits(wait), place: None, stays: true }
    }

    #[test]
    fn cycles_of_threads() {
        let threads = [
            waits(1, Held::Thread(2), false),
            waits(2, Held::Thread(3), false),
            waits(3, Held::Thread(2), false),
            waits(4, Held::Thread(4), false),
            waits(5, Held::Thread(99), false),
            waits(6, Held::Free, false),
        ];
        assert_eq!(cycles(&threads), [vec![1, 2], vec![3]]);
        // A deadline ends it, and one that runs may release it.
        assert!(cycles(&[waits(1, Held::Thread(2), false), waits(2, Held::Thread(1), true)]).is_empty());
        let runs = ThreadNow { stays: false, ..waits(2, Held::Thread(1), false) };
        assert!(cycles(&[waits(1, Held::Thread(2), false), runs]).is_empty());
    }
}
