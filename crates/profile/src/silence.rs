//! What a report says where it has little waiting for locks to show: silence is no verdict.
//!
//! First, processes that are not in the recording. *Weight*: their share of the time of all threads of the
//! run that were not idle (of all threads, if all were).
//!
//! | seen                                                        | first sentence                                          |
//! |-------------------------------------------------------------|---------------------------------------------------------|
//! | programs without the recorder, weight ≥ 10 %, of the same process | *… became X (exec), which was not recorded: reason* |
//! | the same, of other processes                                | *process N (X), W % of the threads' time, was not recorded: reason* |
//! | a process without the recorder that outlives the program    | *The program left process N (X) running, not recorded: reason* |
//! | a process with the recorder that outlives the program       | *The program left process N (X) running, which is being recorded* |
//! | programs without the recorder, weight < 10 %                | a sentence later on                                     |
//!
//! They come first if the process that is shown waited little; otherwise its lock does, and they follow.
//!
//! Then the process that is shown, if its threads waited little for pthread locks; or, if another recorded
//! process that waited no more has most of the weight, that one:
//!
//! | seen (first that holds; shares of its threads' time, idle ones left out) | said                                        |
//! |--------------------------------------------------------------------------|---------------------------------------------|
//! | records are missing                                                      | *Nothing is known*                          |
//! | it still runs, and no command observed it                                | *… so far*                                  |
//! | not observed                                                             | no verdict; what would observe it           |
//! | shorter than 50 ms, or observed for less, or fewer than 10 samples       | no verdict: too short to tell               |
//! | all threads idle                                                         | no verdict: they slept, and in what         |
//! | in other futexes or semaphores ≥ 10 %                                    | no verdict: what they may be, how to see them; after what they waited for longer |
//! | blocked, and not known in what, ≥ 25 %                                   | no verdict: `/proc` does not tell           |
//! | signals of condition variables ≥ 25 %                                    | no verdict: for work or a resource          |
//! | stopped ≥ 25 %                                                           | no verdict: stopped                         |
//! | sampled, and what may have been missed (95 %) is not little              | no verdict: too few snapshots               |
//! | otherwise: ran, or waited for a CPU, I/O, timers, processes              | *not what makes this program slow*, and these shares |

use spinpark_measure::text::units::{count, short_percent, time};
use spinpark_measure::text::{capital, one_line};

use crate::model::{
    Detail, FEW, LocksOf, Observed, OtherProgram, Profile, Recorder, RecordingEnd, ThreadTime, Threads,
};
use crate::thread_time::shares;
use crate::watch::Observation;
use crate::{holders, stuck};

/// Programs without the recorder lead from this weight on.
const HEAVY: f64 = 0.1;
/// No verdict on a shorter run, ns, or on fewer samples than [`FEW`].
const SHORT: u64 = 50_000_000;
/// Percentages from which on something else than locks may be what makes a program slow.
const NOT_RECORDED: u64 = 10;
const OPEN: u64 = 25;
/// Parts below this many per cent are not listed.
const LISTED: u64 = 5;

/// What it may be that threads wait for in a futex which is not recorded, and how to find out.
const NOT_RECORDED_ARE: &str = "These may be locks of code that calls the kernel by itself (libgomp, Go), or a \
     runtime's workers that have nothing to do. `gdb -p PID -batch -ex 'thread apply all backtrace'` shows where threads wait.";

/// A headline and what follows it.
pub(crate) struct Said {
    pub(crate) headline: String,
    pub(crate) details: Vec<String>,
}

impl Said {
    /// One sentence, which nothing follows.
    pub(crate) fn plain(headline: String) -> Self {
        Self { headline, details: Vec::new() }
    }
}

/// The sentences about a process in which no thread waited for a lock, or only as long as `little` says (`1.2
/// ms for locks, …`). `is_sure`: so they did, whatever sampling has missed.
pub(crate) fn verdict(profile: &Profile, little: Option<&str>, is_sure: bool) -> Said {
    let lock = match profile.locks_of {
        _ if profile.sampling.is_some() => "lock in any snapshot",
        LocksOf::Library => "lock of the library",
        _ => "pthread lock",
    };
    let is_unused = profile.locks.is_empty() && profile.detail > Detail::Contended;
    let clause = match little {
        None if profile.is_partial() => {
            return Said::plain(format!(
                "Nothing is known: no wait for a {lock} was recorded, but records are missing."
            ));
        }
        None if is_unused => format!("the program used no {lock}"),
        None => format!("no thread waited for a {lock}"),
        Some(little) => format!("threads waited {little}"),
    };
    let waited = capital(&clause);
    if let Some((absent, true)) = absent(profile) {
        let recorded = format!("{waited} in the part that was recorded.");
        return Said { headline: absent, details: vec![recorded] };
    }
    let plain = |headline: String| Said { headline, details: not_counted(profile).into_iter().collect() };
    let observed = match &profile.observed {
        Some(observed) if !observed.is_left => observed,
        Some(_) if profile.ended == RecordingEnd::Running => {
            return plain(format!(
                "The program ended and left this process running, which the recorder goes on recording: `spinpark report` shows \
                 later what became of it. {waited} so far."
            ));
        }
        _ if profile.ended == RecordingEnd::Running => return plain(format!("{waited} so far.")),
        Some(_) => {
            return plain(format!(
                "{waited}. What threads did otherwise was observed only until the program that had started this process ended."
            ));
        }
        None => {
            return plain(format!(
                "{waited}. What threads did otherwise was not observed: the recorder alone does not, `spinpark profile` does."
            ));
        }
    };
    let subject = Subject::of(profile, observed);
    let Subject { threads, seen, .. } = subject;
    let its = subject.its_threads();
    // One that was seen at one sample only may have run for long all the same.
    let ran = if seen == 0 { profile.duration.min(observed.duration) } else { seen };
    if ran < SHORT {
        return plain(format!(
            "{waited}. {} ran too briefly to tell what else threads did: {}, and {} are needed.",
            subject.name(),
            time(ran as f64),
            time(SHORT as f64)
        ));
    }
    if seen < SHORT {
        return plain(format!(
            "{waited}. {} was observed for a part of its time only, too short to tell what else threads did: the observer had no \
             CPU, or too many threads to observe.",
            subject.name(),
        ));
    }
    // The samples of many threads in one snapshot tell of one moment.
    let samples = profile.sampling.as_ref().map_or(threads.samples, |of| threads.samples.min(of.snapshots));
    if samples < FEW {
        return plain(format!(
            "{waited}. {} was sampled too rarely to tell what else threads did: {}, and {FEW} are needed.",
            subject.name(),
            if samples == 1 { String::from("once") } else { format!("{samples} times") }
        ));
    }
    if threads.time.total() == 0 {
        let how = did(&shares(&threads.idle_time));
        return match stuck::slept(profile).filter(|_| subject.other.is_none()) {
            Some(waits) => {
                let why = match stuck::none_is_left(profile) {
                    true => "all wait, and none is left in this process to wake another",
                    false => "without work, or stuck",
                };
                let said = format!("{its} slept nearly all the time: {why}. {waits}");
                let rest = format!("{waited}. They {how}.");
                Said { headline: said, details: std::iter::once(rest).chain(not_counted(profile)).collect() }
            }
            None => plain(format!(
                "{waited}. {its} slept nearly all the time: without work, or stuck. They {how}."
            )),
        };
    }
    let share = shares(&threads.time);
    let not_recorded = share.futexes + share.semaphores;
    if not_recorded >= NOT_RECORDED {
        let what =
            "something that is not recorded: locks or semaphores of another kind, other threads, or work";
        let headline = if share.io > not_recorded {
            format!(
                "{its} waited {} % of the time for I/O, and about {not_recorded} % for {what}. {waited}.",
                share.io
            )
        } else {
            format!("{its} waited about {not_recorded} % of the time for {what}. {waited}.")
        };
        return Said { headline, details: vec![String::from(NOT_RECORDED_ARE)] };
    }
    let open = if share.unknown >= OPEN {
        format!(
            "{its} were blocked {} % of the time. In what is not known: /proc hides it from this user, or no sample found them there.",
            share.unknown
        )
    } else if share.signals >= OPEN {
        format!(
            "{its} waited {} % of the time {}: for work, or for a resource that other threads have.",
            share.signals,
            crate::other_waits::signals(profile).unwrap_or_else(|| String::from("for signals"))
        )
    } else if share.stopped >= OPEN {
        format!("{its} were stopped {} % of the time, by a signal or a debugger.", share.stopped)
    } else {
        let did = format!("{its} {}.", did(&share));
        let headline = match (little, &profile.sampling) {
            (_, Some(sampling)) if !is_sure => format!(
                "{waited}. {} too few to tell whether locks make this program slow: sample for longer. {did}",
                holders::snapshots_are(sampling)
            ),
            (Some(_), _) => format!("Waiting for locks is not what makes this program slow: {clause}. {did}"),
            (None, _) => format!("{waited}: these are not what makes this program slow. {did}"),
        };
        let details = [busy_machine(profile, &share), unseen(observed), not_counted(profile)];
        return Said { headline, details: details.into_iter().flatten().collect() };
    };
    plain(format!("{waited}. {open}"))
}

/// What is missing from the table of locks where no thread waited.
fn not_counted(profile: &Profile) -> Option<String> {
    let is_it = profile.locks.is_empty() && profile.detail == Detail::Contended;
    (is_it && profile.locks_of != LocksOf::Library).then(|| {
        String::from(
            "Locks that no thread waited for are not counted; `--detail full` counts those of pthreads. Other locks are recorded if \
             threads sleep for them by libc's `syscall`, as Rust's std does; Go's are not.",
        )
    })
}

/// Which programs had the CPUs that threads waited for.
fn busy_machine(profile: &Profile, share: &ThreadTime) -> Option<String> {
    let others = crate::split::cpus_of_others(profile).filter(|_| share.runnable >= NOT_RECORDED)?;
    Some(format!(
        "Threads waited for a CPU while other programs used {} of the {} CPUs: record again while the machine is idle.",
        short_percent(others),
        count(profile.cpus.into())
    ))
}

/// CPU time that no sample has: that of threads and processes which lived only between two samples.
fn unseen(observed: &Observed) -> Option<String> {
    /// ns.
    const MUCH: u64 = 100_000_000;
    let unseen = observed.cpu.saturating_sub(observed.cpu_seen);
    (unseen > MUCH && unseen > observed.cpu / 4).then(|| {
        format!(
            "{} of {} of CPU time were used by threads and processes that lived too briefly to be observed.",
            time(unseen as f64),
            time(observed.cpu as f64)
        )
    })
}

/// What is said in addition to a lock that threads did wait for, if they waited longer for something that is
/// not recorded.
pub(crate) fn waited_elsewhere(profile: &Profile) -> Option<String> {
    let observed = profile.observed.as_ref()?;
    let share = shares(&observed.threads.time);
    let elsewhere = share.futexes + share.semaphores;
    let is_known = observed.threads.samples >= FEW && observed.seen >= SHORT;
    (is_known && elsewhere >= NOT_RECORDED && elsewhere > share.locks).then(|| {
        format!(
            "Threads waited longer, about {elsewhere} % of the time, for something that is not recorded: locks or semaphores of \
             another kind, other threads, or work."
        )
    })
}

/// Processes of the run that are not in the recording, or not yet: the sentences, and whether they are
/// important enough to come first where the process that is shown waited little.
pub(crate) fn absent(profile: &Profile) -> Option<(String, bool)> {
    let observed = profile.observed.as_ref()?;
    unrecorded(observed, Some(profile.pid))
        .or_else(|| left_running(profile, observed).map(|text| (text, true)))
}

/// Why there is no recording at all, as far as that was seen.
#[must_use]
pub fn nothing(observation: &Observation) -> Option<String> {
    unrecorded(&observation.seen_by_none(), None).map(|(text, _)| text)
}

/// Programs without the recorder. `pid`: of the process that is shown.
fn unrecorded(observed: &Observed, pid: Option<u32>) -> Option<(String, bool)> {
    let is_missing = |other: &&OtherProgram| other.recorder.is_missing();
    let missing = || observed.others.iter().filter(is_missing);
    let heaviest =
        missing().max_by_key(|other| (other.threads.time.total(), other.threads.idle_time.total()))?;
    let weight = weight(observed);
    let number = missing().count() as u64 + u64::from(observed.rest.unrecorded);
    let name = name(&heaviest.program);
    let (why, what_to_do) = reason(heaviest.recorder);
    let share = match (weight * 100.0).round() {
        share if share < 1.0 => String::from("less than 1 %"),
        share => format!("{share:.0} %"),
    };
    let is_exec = Some(heaviest.pid) == pid && !heaviest.is_left;
    let begun = match number {
        1 if is_exec => format!("The program became {name} (exec), which was not recorded"),
        1 if heaviest.is_left => {
            format!("The program left process {} ({name}) running, which is not recorded", heaviest.pid)
        }
        1 => format!(
            "Process {} ({name}), {share} of the threads' time of this run, was not recorded",
            heaviest.pid
        ),
        number => format!(
            "{} programs, {share} of the threads' time of this run, were not recorded, among them process {} ({name})",
            count(number),
            heaviest.pid
        ),
    };
    let did = match heaviest.threads.time.total() {
        0 => String::new(),
        _ if number == 1 => format!(" Its threads {}.", did(&shares(&heaviest.threads.time))),
        _ => format!(" The threads of {name} {}.", did(&shares(&heaviest.threads.time))),
    };
    Some((format!("{begun}: {why}.{did} {what_to_do}"), weight >= HEAVY))
}

/// The share of programs without the recorder in the time of threads: of those that were not idle, or of all
/// if all were.
fn weight(observed: &Observed) -> f64 {
    let share = |of: fn(&Threads) -> u64, rest: [u64; 2]| {
        let sum = |is: fn(Recorder) -> bool| {
            let others = observed.others.iter().filter(move |other| is(other.recorder));
            others.map(|other| of(&other.threads)).sum::<u64>()
        };
        let without = sum(Recorder::is_missing) + rest[1];
        let all = without + sum(|recorder| !recorder.is_missing()) + rest[0] + of(&observed.threads);
        (all > 0).then(|| without as f64 / all as f64)
    };
    let rest = [observed.rest.recorded_time, observed.rest.unrecorded_time];
    let of_busy = share(|threads| threads.time.total(), rest);
    of_busy.or_else(|| share(|threads| threads.idle_time.total(), [0, 0])).unwrap_or(0.0)
}

/// Why a program had no recorder, and what to do.
fn reason(recorder: Recorder) -> (&'static str, &'static str) {
    match recorder {
        Recorder::Static => (
            "it is statically linked, so that no library can be put in front of its locks",
            "Link it dynamically; Go programs have a mutex profile of their own.",
        ),
        Recorder::Privileged => (
            "it gains rights when it starts (setuid, setgid, file capabilities), so that its loader ignores LD_PRELOAD",
            "Record a copy of the file: `cp` drops the rights.",
        ),
        Recorder::OtherLibc => ("it is built for another C library", "Build it for glibc."),
        Recorder::Bits32 => ("it is a 32-bit program", "Build it for x86-64."),
        Recorder::NotLoaded => (
            "its loader did not find the recorder that LD_PRELOAD names: in a container or chroot, or as a user who may not read it",
            "Copy it with `spinpark libraries --to DIR` to where that program can read it, and set SPINPARK_PROFILER.",
        ),
        Recorder::NoPreload => (
            "it started without LD_PRELOAD, as after `env -i`, `unset`, `sudo`, or from a service manager",
            "Put `spinpark profile --` right before that program, inside of what starts it.",
        ),
        Recorder::Loaded | Recorder::Unknown | Recorder::Missing => (
            "the recorder was not loaded, and the reason cannot be read",
            "Put `spinpark profile --` right before that program, as its user.",
        ),
    }
}

/// A process with the recorder that the program left behind, and that is not the one shown.
fn left_running(profile: &Profile, observed: &Observed) -> Option<String> {
    let mut left = observed.others.iter().filter(|other| other.is_left && other.recorder == Recorder::Loaded);
    let first = left.next()?;
    let others = match left.count() {
        0 => String::new(),
        1 => String::from(" and another one"),
        more => format!(" and {} others", count(more as u64)),
    };
    Some(format!(
        "The program ended after {}, and left process {} ({}){others} running, which the recorder goes on recording: `spinpark \
         report` shows later what became of it. To see it at once, keep it in the foreground, and end it with `--duration`.",
        time(profile.duration.min(observed.duration) as f64),
        first.pid,
        name(&first.program)
    ))
}

/// The process of which the verdict is.
struct Subject<'a> {
    /// None: the one that is shown.
    other: Option<&'a OtherProgram>,
    threads: &'a Threads,
    seen: u64,
}

impl<'a> Subject<'a> {
    /// The process that is shown, or a recorded one with more time: that one waited no longer.
    fn of(profile: &Profile, observed: &'a Observed) -> Self {
        let recorded =
            observed.others.iter().filter(|other| other.recorder == Recorder::Loaded && !other.is_left);
        let heaviest = recorded.max_by_key(|other| other.threads.time.total());
        let is_heavier = |other: &&OtherProgram| other.threads.time.total() > observed.threads.time.total();
        match heaviest.filter(is_heavier).filter(|_| profile.lock_wait() == 0) {
            Some(other) => {
                Self { other: Some(other), threads: &other.threads, seen: other.until - other.from }
            }
            None => Self { other: None, threads: &observed.threads, seen: observed.seen },
        }
    }

    fn name(&self) -> String {
        self.other.map_or_else(
            || String::from("The program"),
            |other| format!("Process {} ({})", other.pid, name(&other.program)),
        )
    }

    fn its_threads(&self) -> String {
        match self.other {
            None => String::from("Its threads"),
            Some(other) => format!("The threads of process {} ({})", other.pid, name(&other.program)),
        }
    }
}

/// `ran 30 %, waited for pthread locks 12 %, …`: what follows *threads*, the largest first.
fn did(share: &ThreadTime) -> String {
    let mut parts = [
        (share.running, "ran"),
        (share.runnable, "waited for a CPU"),
        (share.locks, "waited for pthread locks"),
        (share.signals, "waited for signals"),
        (share.unclear, "waited for locks or for work"),
        (share.futexes, "waited in other futexes"),
        (share.semaphores, "waited for System V semaphores or file locks"),
        (share.io, "waited for I/O"),
        (share.sleep, "slept"),
        (share.ends, "waited for threads or processes to end"),
        (share.stopped, "were stopped"),
        (share.unknown, "were blocked in something unknown"),
    ];
    parts.sort_by_key(|(share, _)| std::cmp::Reverse(*share));
    let listed = parts.iter().enumerate().filter(|(at, (share, _))| *at == 0 || *share >= LISTED);
    let texts: Vec<String> = listed
        .map(|(at, (share, did))| {
            let of = if at == 0 { " of the time" } else { "" };
            format!("{did} {share} %{of}")
        })
        .collect();
    texts.join(", ")
}

/// A program's file name, as code.
fn name(program: &str) -> String {
    let path = program.trim_end_matches(" (deleted)");
    format!("`{}`", one_line(path.rsplit('/').next().unwrap_or(path)))
}
