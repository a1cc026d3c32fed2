//! What is said where threads waited little for locks: the rows of the table at the head of `silence.rs`.

use spinpark_fixtures::recordings::Builder;
use spinpark_profile::model::{
    Detail, Observed, OtherProgram, Profile, Recorder, RecordingEnd, Rest, ThreadTime, Threads,
};
use spinpark_profile::read::{Recording, profile};
use spinpark_profile::summary::{Summary, summary};
use spinpark_profile::symbols::Symbols;
use spinpark_profile::thread_time::line;

const MS: u64 = 1_000_000;

/// A process in which no thread waited.
fn quiet() -> Profile {
    let directory = tempfile::tempdir().expect("a directory");
    let path = Builder::new().write(directory.path()).expect("a file");
    let mut profile = profile(&Recording::open(&path).expect("a recording"), &mut Symbols::new());
    profile.detail = Detail::Contended;
    profile
}

/// Ten threads whose time is `time`, in ms.
fn threads(time: ThreadTime) -> Threads {
    Threads { number: 10, time, samples: 1_000, ..Threads::default() }
}

fn observed(threads: Threads) -> Observed {
    Observed {
        duration: 10_000 * MS,
        interval: 20 * MS,
        cost: 5 * MS,
        cpu: 0,
        cpu_seen: 0,
        cpu_of_others: None,
        seen: 10_000 * MS,
        is_left: false,
        threads,
        others: Vec::new(),
        rest: Rest::default(),
    }
}

fn other(recorder: Recorder, threads: Threads) -> OtherProgram {
    OtherProgram {
        pid: 4711,
        program: String::from("/opt/app/app"),
        from: 10 * MS,
        until: 9_000 * MS,
        is_left: false,
        recorder,
        threads,
    }
}

fn with(observed: Observed) -> Profile {
    Profile { observed: Some(observed), ..quiet() }
}

fn running(ms: u64) -> ThreadTime {
    ThreadTime { running: ms * MS, ..ThreadTime::default() }
}

/// No sentence may conclude that locks are not the cause.
#[track_caller]
fn no_verdict(profile: &Profile, words: &[&str]) -> Summary {
    let summary = summary(profile);
    let all = format!("{} {}", summary.headline, summary.details.join(" "));
    assert!(!all.contains("not what makes"), "{all}");
    for words in words {
        assert!(summary.headline.contains(words), "no `{words}` in {}", summary.headline);
    }
    summary
}

#[test]
fn threads_that_ran() {
    let headline = summary(&with(observed(threads(running(9_700))))).headline;
    assert_eq!(
        headline,
        "No thread waited for a pthread lock: these are not what makes this program slow. Its threads ran 100 % of the time."
    );
    let waits =
        ThreadTime { running: 3_000 * MS, runnable: 1_000 * MS, io: 6_000 * MS, ..ThreadTime::default() };
    let headline = summary(&with(observed(threads(waits)))).headline;
    let did = "Its threads waited for I/O 60 % of the time, ran 30 %, waited for a CPU 10 %.";
    assert!(headline.contains("not what makes") && headline.ends_with(did), "{headline}");
}

#[test]
fn locks_that_are_not_recorded() {
    let time =
        ThreadTime { running: 3_800 * MS, futexes: 6_100 * MS, sleep: 100 * MS, ..ThreadTime::default() };
    let said = no_verdict(
        &with(observed(threads(time))),
        &[
            "Its threads waited about 61 % of the time for something that is not recorded",
            "No thread waited for a pthread",
        ],
    );
    assert!(said.details[0].contains("libgomp, Go"), "{said:?}");
}

#[test]
fn not_observed() {
    no_verdict(
        &quiet(),
        &["No thread waited for a pthread lock. What threads did otherwise was not observed"],
    );
    let live = Profile { ended: RecordingEnd::Running, ..quiet() };
    assert_eq!(summary(&live).headline, "No thread waited for a pthread lock so far.");
}

#[test]
fn too_short_to_tell() {
    let short = Observed { seen: 12 * MS, ..observed(threads(running(10))) };
    no_verdict(&with(short), &["ran too briefly to tell", "12.0 ms"]);
    // One that was sampled once may have run for long.
    let once = Observed { seen: 0, ..observed(threads(running(10))) };
    let said = no_verdict(&with(once), &["was observed for a part of its time only, too short to tell"]);
    assert!(!said.headline.contains("50.0 ms"), "{said:?}");
    let rarely = observed(Threads { samples: 3, ..threads(running(9_000)) });
    no_verdict(&with(rarely), &["was sampled too rarely to tell", "3 times, and 10 are needed"]);
}

#[test]
fn nothing_but_idle_threads() {
    let idle_time = ThreadTime { futexes: 9_000 * MS, ..ThreadTime::default() };
    let threads = Threads { number: 4, idle: 4, idle_time, samples: 1_000, ..Threads::default() };
    let profile = with(observed(threads));
    no_verdict(&profile, &["slept nearly all the time: without work, or stuck", "in other futexes 100 %"]);
    assert!(line(&profile).expect("a line").contains("all 4 threads slept"));
}

#[test]
fn other_reasons_for_no_verdict() {
    let of = |time: ThreadTime| with(observed(threads(time)));
    let base = running(5_000);
    no_verdict(&of(ThreadTime { unknown: 5_000 * MS, ..base }), &["blocked 50 %", "/proc hides it"]);
    no_verdict(&of(ThreadTime { signals: 5_000 * MS, ..base }), &["50 % of the time for signals"]);
    no_verdict(&of(ThreadTime { stopped: 5_000 * MS, ..base }), &["stopped 50 %"]);
    let partial = Profile { dropped: 3, ..of(base) };
    no_verdict(&partial, &["Nothing is known"]);
}

#[test]
fn programs_without_the_recorder() {
    let app = threads(ThreadTime { running: 3_600 * MS, futexes: 5_400 * MS, ..ThreadTime::default() });
    let run = |recorder, app: &Threads, own: u64| {
        let others = vec![other(recorder, app.clone())];
        with(Observed { others, ..observed(threads(running(own))) })
    };
    for (recorder, why, what) in [
        (Recorder::NoPreload, "it started without LD_PRELOAD", "`spinpark profile --` right before"),
        (Recorder::Static, "statically linked", "Link it dynamically"),
        (Recorder::Privileged, "setuid", "`cp` drops"),
        (Recorder::OtherLibc, "another C library", "glibc"),
        (Recorder::Bits32, "32-bit", "x86-64"),
        (Recorder::NotLoaded, "did not find the recorder", "`spinpark libraries --to DIR`"),
        (Recorder::Missing, "the reason cannot be read", "as its user"),
    ] {
        let words =
            ["Process 4711 (`app`), 90 % of the threads' time of this run, was not recorded", why, what];
        let said = no_verdict(&run(recorder, &app, 1_000), &words);
        assert_eq!(said.details[0], "No thread waited for a pthread lock in the part that was recorded.");
    }
    // It is the same process.
    let mut became = run(Recorder::NoPreload, &app, 10);
    became.observed.as_mut().expect("observed").others[0].pid = became.pid;
    no_verdict(
        &became,
        &["The program became `app` (exec), which was not recorded", "waited in other futexes 60 %"],
    );
    // Several, of which one has little time.
    let mut several = run(Recorder::NoPreload, &app, 9_000);
    several.observed.as_mut().expect("observed").others.push(other(Recorder::NoPreload, threads(running(1))));
    no_verdict(&several, &["2 programs, 50 % of the threads' time", "among them process 4711 (`app`)"]);
    // Of no weight: later.
    let light = summary(&run(Recorder::NoPreload, &threads(running(5)), 9_000));
    assert!(light.headline.contains("not what makes"), "{light:?}");
    assert!(
        light.details.iter().any(|it| it.contains("less than 1 %") && it.contains("was not recorded")),
        "{light:?}"
    );
    // Whether it had the recorder is not known: it ended before that could be seen.
    let unknown = summary(&run(Recorder::Unknown, &app, 1_000));
    assert!(!unknown.headline.contains("was not recorded"), "{unknown:?}");
}

#[test]
fn a_recorded_process_that_waited_for_nothing_either() {
    let others = vec![other(Recorder::Loaded, threads(running(9_000)))];
    let headline = summary(&with(Observed { others, ..observed(threads(running(5))) })).headline;
    assert!(headline.contains("The threads of process 4711 (`app`) ran 100 %"), "{headline}");
}

#[test]
fn processes_that_are_left_behind() {
    let daemon = |recorder| OtherProgram { is_left: true, ..other(recorder, threads(running(5))) };
    let of = |recorder| with(Observed { others: vec![daemon(recorder)], ..observed(threads(running(5))) });
    no_verdict(
        &of(Recorder::Loaded),
        &["left process 4711 (`app`) running, which the recorder goes on recording"],
    );
    no_verdict(&of(Recorder::NoPreload), &["left process 4711 (`app`) running, which is not recorded"]);
    let own = Observed { is_left: true, ..observed(threads(running(500))) };
    let live = Profile { ended: RecordingEnd::Running, ..with(own.clone()) };
    no_verdict(&live, &["The program ended and left this process running"]);
    no_verdict(&with(own), &["observed only until the program that had started this process ended"]);
}

#[test]
fn the_line() {
    let time = ThreadTime {
        running: 3_001 * MS,
        runnable: 799 * MS,
        locks: 200 * MS,
        futexes: 5_800 * MS,
        io: 200 * MS,
        ..ThreadTime::default()
    };
    let profile = with(observed(Threads { idle: 3, number: 12, ..threads(time) }));
    assert_eq!(
        line(&profile).expect("a line"),
        "Threads' time: running 30 %, runnable 8 %, locks 2 %, signals 0 %, other 60 % (other futexes 58 %, I/O 2 %). 3 of 12 \
         threads idle, not counted. Resolution: 20.0 ms between samples, 1,000 samples."
    );
    assert_eq!(line(&quiet()), None);
}

#[test]
fn cpu_time_that_no_look_saw() {
    let seen = Observed { cpu: 4_000 * MS, cpu_seen: 1_000 * MS, ..observed(threads(running(900))) };
    let said = summary(&with(seen));
    assert!(said.details[0].starts_with("3.000 s of 4.000 s of CPU time"), "{said:?}");
}
