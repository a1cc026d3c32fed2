//! A [`Snapshot`] for people: the deadlock, or who waits for whom; then each thread on a line.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::ExitStatus;

use serde_json::{Value, json};
use spinpark_measure::process::ended::in_words;
use spinpark_measure::text::one_line;
use spinpark_measure::text::units::{self, count};

use super::object::Held;
use super::python::GIL;
use super::snapshot::{OfCore, Snapshot};
use super::thread_now::{State, ThreadNow, Wait};
use crate::model::{Kind, Role};
use crate::stuck;
use crate::text::{Style, render, wrap};

/// Threads of a cycle, or locks, that a sentence names.
const NAMED: usize = 4;
/// After the name of a lock inside of glibc.
const GLIBCS: &str = " (glibc)";
/// Holders of holders that a sentence follows.
const FAR: usize = 4;

/// The first sentence: what is stuck, or that nothing is.
fn headline(snapshot: &Snapshot) -> String {
    deadlock(snapshot)
        .or_else(|| locks(snapshot).filter(|_| is_lost(snapshot)))
        .or_else(|| none_left(snapshot))
        .or_else(|| locks(snapshot))
        .unwrap_or_else(|| no_locks(snapshot))
}

/// One screen: the sentences, and the threads.
#[must_use]
pub fn page(snapshot: &Snapshot, style: Style) -> String {
    let program = Path::new(&snapshot.program).file_name().unwrap_or_default().to_string_lossy();
    let number = snapshot.threads.len();
    let head = format!(
        "{} ({}process {}), {} thread{}",
        one_line(&program),
        if snapshot.core.is_some() { "core of " } else { "" },
        snapshot.pid,
        count(number as u64),
        if number == 1 { "" } else { "s" }
    );
    let mut parts = vec![head, wrap(&headline(snapshot), style.width, 0)];
    parts.extend(details(snapshot).into_iter().map(|sentence| wrap(&sentence, style.width, 0)));
    parts.push(String::new());
    parts.push(table(snapshot, style).trim_end().to_owned());
    parts.join("\n")
}

/// `Deadlock: …`.
fn deadlock(snapshot: &Snapshot) -> Option<String> {
    let cycle = snapshot.deadlocks.first()?;
    let threads: Vec<&ThreadNow> = cycle.iter().filter_map(|index| snapshot.threads.get(*index)).collect();
    let one = |thread: &&ThreadNow| {
        let wait = thread.wait()?;
        let site = thread.place.as_ref().map_or(String::new(), |place| format!(" in `{}`", place.label()));
        let start = format!("{} waits{site} for {}", named(thread), wanted(wait));
        Some(match wait.held {
            _ if wait.kind == Kind::Join => start,
            Held::Thread(id) if id == thread.id => format!("{start}, which it has taken itself"),
            Held::Thread(id) => format!("{start}{}", stuck::owned(id, true)),
            Held::Perhaps(id) => format!("{start}{}", stuck::owned(id, false)),
            _ => start,
        })
    };
    let mut parts: Vec<String> = threads.iter().take(NAMED).filter_map(one).collect();
    if threads.len() > NAMED {
        parts.push(format!("and so on: {} threads in a cycle", threads.len()));
    }
    let is_guess =
        |thread: &&ThreadNow| thread.wait().is_some_and(|wait| matches!(wait.held, Held::Perhaps(_)));
    Some(format!("{}: {}.", stuck::verdict(!threads.iter().any(is_guess)), parts.join("; ")))
}

/// `All 3 threads wait, none with a deadline, …`
fn none_left(snapshot: &Snapshot) -> Option<String> {
    let number = snapshot.threads.len();
    let all = match number {
        1 => String::from("Its only thread waits, without a deadline"),
        number => format!("All {} threads wait for each other, none with a deadline", count(number as u64)),
    };
    let end = match snapshot.has_handlers {
        // Nor is it in a core whether there are any.
        _ if snapshot.core.is_some() => "only a signal's handler could have woken one.",
        true => "only a signal's handler can wake one.",
        false => "none is left to wake another, so the process hangs.",
    };
    snapshot.is_none_left().then(|| format!("{all}: {end}"))
}

/// Whether a lock is waited for whose owner has ended.
fn is_lost(snapshot: &Snapshot) -> bool {
    snapshot.threads.iter().filter_map(ThreadNow::lock).any(Wait::is_lost)
}

/// Threads that wait for one lock.
struct Group<'a> {
    wait: &'a Wait,
    threads: Vec<&'a ThreadNow>,
}

/// Threads that wait for a lock, by lock and holder: the most first, and those that wait for the longest chain.
fn by_lock(snapshot: &Snapshot) -> Vec<Group<'_>> {
    let mut groups: BTreeMap<(u64, Option<&str>, Held), Group<'_>> = BTreeMap::new();
    for thread in &snapshot.threads {
        let Some(wait) = thread.lock() else { continue };
        // Those without an address are one by their names.
        let key = (wait.address, wait.name.as_deref().filter(|_| wait.address == 0), wait.held);
        groups.entry(key).or_insert(Group { wait, threads: Vec::new() }).threads.push(thread);
    }
    let length = |wait: &Wait| {
        let next = |wait: &&Wait| snapshot.thread(wait.holder()?)?.lock();
        std::iter::successors(Some(wait), next).take(FAR).count()
    };
    let mut groups: Vec<_> = groups.into_values().collect();
    groups.sort_by_key(|group| (!group.wait.is_lost(), Reverse(group.threads.len())));
    // A lock whose holder has changed while threads were read is one.
    let mut groups = groups.into_iter().fold(Vec::<Group<'_>>::new(), |mut all, group| {
        let is_it = |one: &&mut Group<'_>| {
            one.wait.address == group.wait.address
                && group.wait.address != 0
                && one.wait.kind == group.wait.kind
        };
        match all.iter_mut().find(is_it) {
            Some(one) => one.threads.extend(group.threads),
            None => all.push(group),
        }
        all
    });
    groups.iter_mut().for_each(|group| group.threads.sort_by_key(|thread| thread.id));
    groups.sort_by_key(|group| {
        let rank = (!group.wait.is_lost(), Reverse(group.threads.len()), Reverse(length(group.wait)));
        (rank, group.threads[0].id)
    });
    groups
}

/// `3 threads wait in `load` for the mutex `table`, held by thread 7 (`flush`), which is in `fsync` in `store`.`
fn locks(snapshot: &Snapshot) -> Option<String> {
    let groups = by_lock(snapshot);
    let Group { wait, threads } = groups.first()?;
    let sites: BTreeSet<String> = threads
        .iter()
        .map(|thread| thread.place.as_ref().map_or_else(String::new, |place| place.label()))
        .collect();
    let site = match sites.first() {
        Some(site) if sites.len() == 1 && !site.is_empty() => format!(" in `{site}`"),
        _ => String::new(),
    };
    let who = match threads[..] {
        [only] => format!("{} waits{site}", capital_thread(only)),
        _ => format!("{} threads wait{site}", count(threads.len() as u64)),
    };
    let (held, said) = held(snapshot, wait);
    let others = match groups.iter().skip(1).filter(|group| !said.contains(&group.wait)).count() {
        0 => String::new(),
        1 => String::from(" Another lock is waited for, too."),
        more => format!(" {} other locks are waited for, too.", count(more as u64)),
    };
    Some(format!("{who} for {}{held}.{others}", wanted(wait)))
}

/// `, held by thread 7 (`flush`), which …`, holder by holder; with the waits that are named.
fn held<'a>(snapshot: &'a Snapshot, wait: &'a Wait) -> (String, Vec<&'a Wait>) {
    let (mut text, mut said) = (String::new(), vec![wait]);
    while let Some(wait) = said.last() {
        let (word, id) = match wait.held {
            Held::Thread(id) => (", held by", id),
            Held::Perhaps(id) => (", which seems to be held by", id),
            other => return (text + &unseen(other), said),
        };
        let Some(holder) = snapshot.thread(id) else { break };
        if holder.has_passed_on(wait) {
            text += ", held by one thread after the other";
            break;
        }
        text += &format!("{word} {}, which {}", named(holder), doing(holder));
        match holder.lock() {
            Some(next) if said.len() < FAR && !said.contains(&next) => said.push(next),
            Some(next) if next.holder().is_some() => {
                text += ", and so on";
                break;
            }
            Some(next) => {
                text += &unseen(next.held);
                break;
            }
            None => break,
        }
    }
    (text, said)
}

/// Where no thread of the process is known to have it.
fn unseen(held: Held) -> String {
    match held {
        Held::Unknown => String::from("; which thread has it is not known"),
        Held::Free => String::from(", which is free: its next owner is on its way"),
        Held::Gone(id) => format!(", held by thread {id}, which has ended: nobody will release it"),
        Held::Process(id) => format!(", held by thread {id} of another process"),
        Held::Readers(1) => String::from(", held by a reader"),
        Held::Readers(number) => format!(", held by {} readers", count(number.into())),
        Held::Thread(_) | Held::Perhaps(_) => String::new(),
    }
}

/// What a thread does, after *which*.
fn doing(thread: &ThreadNow) -> String {
    let place = thread.place.as_ref().map_or(String::new(), |place| format!(" in `{}`", place.label()));
    match &thread.state {
        State::Running => format!("runs{place}"),
        State::Waits(wait) | State::Stopped(Some(wait)) => format!("waits{place} for {}", wanted(wait)),
        State::Call(name) => format!("is in `{name}`{place}"),
        State::Fault => format!("waits{place} for memory from a disk"),
        State::Stopped(None) => format!("is stopped{place}, by a signal or a debugger"),
        State::Unknown => String::from("sleeps"),
    }
}

/// Without a wait for a lock.
fn no_locks(snapshot: &Snapshot) -> String {
    let number = |is: fn(&ThreadNow) -> bool| snapshot.threads.iter().filter(|thread| is(thread)).count();
    let running = number(|thread| thread.state == State::Running);
    let unknown = number(|thread| thread.state == State::Unknown);
    let is_stopped = |thread: &ThreadNow| matches!(thread.state, State::Stopped(_));
    let unclear = number(
        |thread| matches!(&thread.state, State::Waits(wait) if !wait.is_lock() && wait.role == Role::Wake),
    );
    let stopped = number(is_stopped);
    let rest = snapshot.threads.len() - running - unknown - unclear - stopped;
    let part = |number: usize, one: &str, more: &str| match number {
        0 => None,
        1 => Some(format!("1 {one}")),
        number => Some(format!("{} {more}", count(number as u64))),
    };
    let parts = [
        part(running, "runs", "run"),
        part(rest, "waits for work, an event or a thread's end", "wait for work, events or threads' ends"),
        part(unclear, "waits for what may be a lock or a signal", "wait for what may be locks or signals"),
        part(stopped, "is stopped", "are stopped"),
        part(unknown, "sleeps, and its call cannot be read", "sleep, and their calls cannot be read"),
    ];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    let sure = if unclear + unknown + stopped > 0 {
        "No thread is known to wait for a lock"
    } else {
        "No thread waits for a lock"
    };
    format!("{sure}: {}.", parts.join(", "))
}

/// After the headline.
fn details(snapshot: &Snapshot) -> Vec<String> {
    let mut said = Vec::new();
    match snapshot.deadlocks.len() {
        0 | 1 => {}
        2 => said.push(String::from("There is another such cycle.")),
        more => said.push(format!("There are {} more such cycles.", count(more as u64 - 1))),
    }
    if let Some(cycle) = snapshot.deadlocks.first() {
        let id = |index: &usize| snapshot.threads.get(*index).map(|thread| thread.id);
        let mut stuck: BTreeSet<u32> = cycle.iter().filter_map(id).collect();
        // Those behind it.
        let is_behind = |stuck: &BTreeSet<u32>, thread: &ThreadNow| {
            thread.wait().and_then(Wait::holder).is_some_and(|holder| stuck.contains(&holder))
        };
        loop {
            let more =
                snapshot.threads.iter().filter(|thread| is_behind(&stuck, thread)).map(|thread| thread.id);
            let before = stuck.len();
            stuck.extend(more.collect::<Vec<_>>());
            if stuck.len() == before {
                break;
            }
        }
        match stuck.len() - cycle.len() {
            0 => {}
            1 => said.push(String::from("1 more thread waits for one of these.")),
            more => said.push(format!("{} more threads wait for these.", count(more as u64))),
        }
    }
    if snapshot.deadlocks.is_empty() && snapshot.is_none_left() {
        said.extend(if is_lost(snapshot) { none_left(snapshot) } else { locks(snapshot) });
    }
    let stopped = snapshot.threads.iter().filter(|thread| matches!(thread.state, State::Stopped(_))).count();
    if stopped > 0 {
        let resume = format!("`kill -CONT {}` resumes it, unless a debugger has it.", snapshot.pid);
        said.push(match stopped == snapshot.threads.len() {
            true => format!("The process is stopped. {resume}"),
            false => format!("{} of its threads are stopped.", count(stopped as u64)),
        });
    }
    if snapshot.is_of_go {
        said.push(String::from(
            "This is a Go program: goroutines that wait have no thread, and are not seen. Its own profile \
             `/debug/pprof/goroutine?debug=2` has them.",
        ));
    }
    if let Some(time) = snapshot.stopped {
        said.push(format!("It was stopped for {}.", units::time(time.as_nanos() as f64)));
    }
    said.extend(snapshot.core.iter().flat_map(|core| of_core(snapshot, core)));
    said.extend(snapshot.notes.iter().cloned());
    said
}

/// What a core dump says besides: how the process ended, and what is missing here.
fn of_core(snapshot: &Snapshot, core: &OfCore) -> Vec<String> {
    let ended = core.signal.map(|(id, signal)| {
        let place = snapshot.thread(id).and_then(|thread| thread.place.as_ref());
        let place = place.map_or(String::new(), |place| format!(" in `{}`", place.label()));
        let killed = in_words(ExitStatus::from_raw(signal));
        format!("The process {killed}, which thread {id} got{place}.")
    });
    let missing = core.missing.first().map(|first| {
        let files = match core.missing.len() {
            1 => format!("`{first}` is"),
            2 => format!("`{first}` and another file are"),
            more => format!("`{first}` and {} other files are", count(more as u64 - 1)),
        };
        let advice = match core.missing.contains(&snapshot.program) {
            true => "Give the program behind the core: CORE EXECUTABLE.",
            false => "Read the core where it was written.",
        };
        format!("{files} not here as when the core was written: stacks may end there. {advice}")
    });
    ended.into_iter().chain(missing).collect()
}

/// `thread 7 (`flush`)`.
fn named(thread: &ThreadNow) -> String {
    match thread.name.is_empty() {
        true => format!("thread {}", thread.id),
        false => format!("thread {} (`{}`)", thread.id, thread.name),
    }
}

fn capital_thread(thread: &ThreadNow) -> String {
    spinpark_measure::text::capital(&named(thread))
}

/// `the mutex `table``, `the end of thread 7`.
fn wanted(wait: &Wait) -> String {
    if wait.kind == Kind::Join {
        return match wait.held {
            Held::Thread(id) => format!("the end of thread {id}"),
            _ => String::from("the end of a thread"),
        };
    }
    let what = match (&wait.name, wait.address) {
        (Some(name), _) if name.ends_with(GLIBCS) => {
            format!("glibc's lock of {}", name.trim_end_matches(GLIBCS))
        }
        (Some(name), _) if name == GIL => String::from("the GIL"),
        // `std Mutex` has its kind in its name.
        (Some(name), _) if name.contains(' ') => format!("a {name}"),
        (Some(name), _) => format!("the {} `{name}`", wait.kind.noun()),
        (None, 0) => format!("a {}", wait.kind.noun()),
        (None, address) => format!("a {} at {address:#x}", wait.kind.noun()),
    };
    match (wait.role, wait.kind) {
        (Role::Signal, Kind::Condvar) => format!("a signal of {what}"),
        (Role::Read, _) => format!("{what}, to read"),
        (Role::Back, _) => format!("{what}, after a signal"),
        _ => what,
    }
}

/// The rows: threads that do the same at the same place are one.
fn table(snapshot: &Snapshot, style: Style) -> String {
    let rank = |thread: &ThreadNow| match &thread.state {
        State::Waits(wait) | State::Stopped(Some(wait)) if wait.is_lock() => 0,
        State::Running => 1,
        State::Stopped(_) | State::Fault | State::Unknown => 2,
        State::Call(_) => 3,
        State::Waits(_) => 4,
    };
    // Threads that nobody named are called as the first one.
    let common = snapshot.thread(snapshot.pid).map_or("", |thread| &thread.name);
    let name = |thread: &ThreadNow| match thread.name.as_str() {
        _ if thread.id == snapshot.pid => String::from("main"),
        name if name == common => String::from("–"),
        name => name.to_owned(),
    };
    let mut groups: BTreeMap<(u8, [String; 4]), Vec<u32>> = BTreeMap::new();
    for thread in &snapshot.threads {
        let place = thread.place.as_ref().map_or_else(|| String::from("–"), |place| place.label());
        let cells = [state(thread), holder(thread), place, name(thread)];
        groups.entry((rank(thread), cells)).or_default().push(thread.id);
    }
    let mut rows: Vec<_> = groups.into_iter().collect();
    rows.sort_by_key(|((rank, _), ids)| (*rank, ids[0]));
    let header = ["what it does", "who has it", "where", "name", "thread"];
    let row = |((_, [state, holder, place, name]), ids): ((u8, [String; 4]), Vec<u32>)| {
        let ids = match &ids[..] {
            [one] => one.to_string(),
            [first, rest @ ..] => format!("{first} and {} more", count(rest.len() as u64)),
            [] => String::new(),
        };
        vec![state, holder, place, name, ids]
    };
    render(style, "Threads", &header, 4, (rows.into_iter(), row))
}

/// In a cell.
fn state(thread: &ThreadNow) -> String {
    match &thread.state {
        State::Running => String::from("runs"),
        State::Call(name) => format!("in {name}"),
        State::Fault => String::from("memory from a disk"),
        State::Stopped(None) => String::from("stopped"),
        State::Unknown => String::from("sleeps"),
        State::Waits(wait) => awaited(wait),
        State::Stopped(Some(wait)) => format!("stopped: {}", awaited(wait)),
    }
}

/// `mutex table, for a time`.
fn awaited(wait: &Wait) -> String {
    let what = wanted(wait).replace('`', "");
    let what = what.strip_prefix("the ").or(what.strip_prefix("a ")).unwrap_or(&what);
    let until = if wait.is_timed { ", for a time" } else { "" };
    format!("{what}{until}")
}

fn holder(thread: &ThreadNow) -> String {
    match thread.wait().filter(|wait| wait.is_lock()).map(|wait| wait.held) {
        None => String::from("–"),
        Some(Held::Thread(id)) => id.to_string(),
        Some(Held::Perhaps(id)) => format!("{id}?"),
        Some(Held::Gone(id)) => format!("{id}, has ended"),
        Some(Held::Process(id)) => format!("{id}, elsewhere"),
        Some(Held::Readers(1)) => String::from("1 reader"),
        Some(Held::Readers(number)) => format!("{} readers", count(number.into())),
        Some(Held::Free) => String::from("none"),
        Some(Held::Unknown) => String::from("not known"),
    }
}

/// A document for programs.
#[must_use]
pub fn json(snapshot: &Snapshot) -> Value {
    let thread = |thread: &ThreadNow| {
        let frames = thread.place.iter().flat_map(|place| &place.frames);
        let frames: Vec<Value> = frames
            .map(|frame| {
                json!({
                    "function": frame.function,
                    "source": frame.source,
                    "module": frame.module,
                    "offset": frame.offset,
                })
            })
            .collect();
        let (state, call) = match &thread.state {
            State::Running => ("running", None),
            State::Waits(_) => ("waiting", Some("futex")),
            State::Call(name) => ("call", Some(*name)),
            State::Fault => ("fault", None),
            State::Stopped(_) => ("stopped", None),
            State::Unknown => ("unknown", None),
        };
        let wait = thread.wait().map(|wait| {
            let (held, by) = match wait.held {
                Held::Unknown => ("unknown", None),
                Held::Free => ("free", None),
                Held::Thread(id) => ("thread", Some(id)),
                Held::Perhaps(id) => ("perhaps", Some(id)),
                Held::Gone(id) => ("ended", Some(id)),
                Held::Process(id) => ("process", Some(id)),
                Held::Readers(number) => ("readers", Some(number)),
            };
            json!({
                "kind": wait.kind, "role": wait.role, "address": wait.address, "name": wait.name, "timed": wait.is_timed,
                "held": held, "by": by,
            })
        });
        json!({
            "id": thread.id, "name": thread.name, "state": state, "call": call, "stays": thread.stays, "wait": wait, "frames": frames,
        })
    };
    let cycle =
        |cycle: &Vec<usize>| -> Vec<u32> { cycle.iter().map(|index| snapshot.threads[*index].id).collect() };
    json!({
        "format": "spinpark-why",
        "version": 1,
        "pid": snapshot.pid,
        "program": snapshot.program,
        "headline": headline(snapshot),
        "go": snapshot.is_of_go,
        "stopped": snapshot.stopped.map(|time| time.as_nanos() as u64),
        "notes": snapshot.notes,
        "deadlocks": snapshot.deadlocks.iter().map(cycle).collect::<Vec<_>>(),
        "threads": snapshot.threads.iter().map(thread).collect::<Vec<_>>(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Threads are read one after the other, and one that had a lock then may wait for it by now.
    #[test]
    fn a_lock_that_is_passed_on_is_one() {
        let waits = |id: u32, held: Held| {
            let (kind, role, name) = (Kind::Mutex, Role::Write, Some(String::from("table")));
            let wait = Wait { kind, role, address: 8, name, is_timed: false, is_private: true, held };
            ThreadNow { id, name: String::new(), state: State::Waits(wait), place: None, stays: true }
        };
        let runs = ThreadNow { state: State::Running, ..waits(3, Held::Unknown) };
        let snapshot = |threads: Vec<ThreadNow>| Snapshot {
            pid: 1,
            program: String::new(),
            threads,
            deadlocks: Vec::new(),
            has_handlers: false,
            is_of_go: false,
            stopped: None,
            core: None,
            notes: Vec::new(),
        };
        let passed = snapshot(vec![waits(1, Held::Thread(2)), waits(2, Held::Thread(3)), runs.clone()]);
        let said = "2 threads wait for the mutex `table`, held by one thread after the other.";
        assert_eq!(headline(&passed), said);
        let held = snapshot(vec![waits(1, Held::Thread(3)), waits(2, Held::Thread(3)), runs]);
        let said = "2 threads wait for the mutex `table`, held by thread 3, which runs.";
        assert_eq!(headline(&held), said);
    }
}
