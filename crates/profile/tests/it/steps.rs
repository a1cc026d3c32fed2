//! What to do first.

use spinpark_fixtures::recordings::{named, store};
use spinpark_measure::rounds::whatif::Verdict;
use spinpark_profile::advice::advice;
use spinpark_profile::html::Shown;
use spinpark_profile::model::{
    Detail, Doing, HeldWait, HolderTime, Kind, Lock, LocksOf, Measured, Profile, RecordingEnd, Role,
    Sampling, Split,
};
use spinpark_profile::text::{self, Style};

const MS: u64 = 1_000_000;

/// Of 10 s; its mutex was waited for 3 s.
fn profile() -> Profile {
    let scratch = tempfile::tempdir().expect("scratch space");
    let mut profile = named(store(), scratch.path());
    let lock = profile.locks[0].id;
    let stats = &mut profile.locks[0].roles[0];
    (stats.wait.count, stats.wait.total) = (200, 3_000 * MS);
    stats.split = Split { held: 3_000 * MS, ..Split::default() };
    stats.utilisation = Some(0.8);
    let mut pairs = profile.pairs.iter_mut().filter(|pair| pair.lock == lock && pair.holder.is_some());
    let pair = pairs.next().expect("it has a holder");
    (pair.wait_total, pair.free) = (2_900 * MS, 0);
    for pair in pairs {
        (pair.wait_total, pair.free) = (10 * MS, 0);
    }
    profile
}

/// The first.
#[track_caller]
fn first(profile: &Profile) -> String {
    advice(profile).first().map(|first| first.advice.clone()).expect("there is something to do")
}

#[track_caller]
fn begins(profile: &Profile, words: &str) {
    let said = first(profile);
    assert!(said.starts_with(words), "{said}");
}

fn split(profile: &mut Profile, held: u64, free: u64, unknown: u64) {
    profile.locks[0].roles[0].split =
        Split { held: held * MS, free: free * MS, unknown: unknown * MS, ..Split::default() };
}

#[test]
fn one_holder() {
    let profile = profile();
    begins(&profile, "Shorten the section of `");
    let said = first(&profile);
    assert!(said.contains("which had it for 97 % of this time"), "{said}");
    assert!(said.contains("more threads can use it at most 1.2 times as much"), "{said}");
    let cost = &advice(&profile)[0].cost;
    assert!(cost.contains("threads waited 3.000 s for it"), "{cost}");
    assert!(cost.contains("the run is shorter by at most 30 %"), "{cost}");
}

#[test]
fn waits_that_overlap_bound_nothing() {
    let mut profile = profile();
    profile.locks[0].roles[0].wait.total = 30_000 * MS;
    let cost = &advice(&profile)[0].cost;
    assert!(!cost.contains("at most"), "{cost}");
}

#[test]
fn many_holders() {
    let mut profile = profile();
    let lock = profile.locks[0].id;
    let (mut sites, mut number) = (profile.call_sites.clone(), 0);
    let pair = profile.pairs.iter().find(|pair| pair.lock == lock && pair.holder.is_some()).cloned();
    let pair = pair.expect("it has a holder");
    profile.pairs.retain(|pair| pair.lock != lock);
    for _ in 0..4 {
        let mut site = sites[pair.holder.expect("it has one")].clone();
        for frame in &mut site.frames {
            frame.function = Some(format!("part_{number}"));
        }
        number += 1;
        sites.push(site);
        let mut pair = pair.clone();
        (pair.holder, pair.wait_total) = (Some(sites.len() - 1), 700 * MS);
        profile.pairs.push(pair);
    }
    profile.call_sites = sites;
    begins(&profile, "Split it, or take it less often: no function had it for more than 23 % of this time");
}

#[test]
fn short_sections() {
    let mut profile = profile();
    profile.detail = Detail::Full;
    let stats = &mut profile.locks[0].roles[0];
    stats.acquisitions = 8_000_000;
    stats.hold.measured.count = stats.acquisitions;
    (stats.hold.measured.total, stats.hold.total) = (8_000 * MS, 8_000 * MS);
    (stats.hold.total_error, stats.hold.while_waited) = (0, 0);
    begins(
        &profile,
        "Take it less often, or split it: it is taken 800,000 times a second, for 1.00 µs on average",
    );
}

#[test]
fn late_owners() {
    let mut profile = profile();
    split(&mut profile, 500, 2_500, 0);
    profile.cpus = 64;
    begins(&profile, "`spinpark compare` shows whether other locks help. It was free for 83 % of this time");
    profile.cpus = 2;
    begins(&profile, "Run fewer threads");
    split(&mut profile, 3_000, 0, 0);
    let split = &mut profile.locks[0].roles[0].split;
    (split.watched, split.no_cpu) = (1_000 * MS, 800 * MS);
    let said = first(&profile);
    assert!(said.contains("about 80 % of this time its holder was ready to run, without a CPU"), "{said}");
}

#[test]
fn blocked_holders() {
    let mut profile = profile();
    let outer = profile.locks[0].id;
    let call = |label: &str, kind| Lock { id: 99, label: label.to_owned(), kind, ..Lock::default() };
    let wait = HeldWait {
        outer,
        outer_role: Role::Write,
        lock: 99,
        role: Role::Wake,
        count: 10,
        wait_total: 900 * MS,
        time_blocked: 2_400 * MS,
        ..HeldWait::default()
    };
    profile.held_waits = vec![wait.clone()];
    profile.locks.push(call("fsync", Kind::Call));
    begins(
        &profile,
        "Move `fsync` out of the section of `store_update`: for about 80 % of this time its holder was in it.",
    );
    *profile.locks.last_mut().expect("there is one") = call("log", Kind::Mutex);
    profile.held_waits = vec![HeldWait { role: Role::Write, ..wait.clone() }];
    begins(
        &profile,
        "Fix the mutex `log` first: for about 80 % of this time its holder was blocked on that.",
    );
    // Who waits for which?
    let other = HeldWait { outer: 99, lock: outer, role: Role::Write, time_blocked: 1, ..wait };
    profile.held_waits.push(other);
    begins(&profile, "Take it and the mutex `log` in one order");
}

#[test]
fn undecided() {
    let mut profile = profile();
    split(&mut profile, 500, 0, 2_500);
    begins(&profile, "The figures do not decide: who held it meanwhile is not known.");
    split(&mut profile, 3_000, 0, 0);
    let lock = profile.locks[0].id;
    for pair in profile.pairs.iter_mut().filter(|pair| pair.lock == lock) {
        pair.holder = None;
    }
    begins(&profile, "The figures do not decide: which function held it is not known.");
}

#[test]
fn nothing() {
    // Little.
    let mut little = profile();
    little.locks.truncate(1);
    little.locks[0].roles.truncate(1);
    little.locks[0].roles[0].wait.total = MS;
    assert_eq!(advice(&little), []);
    assert_eq!(text::steps(&little, Style::PLAIN), "");
    // Records are missing.
    let partial = Profile { dropped: 1, ..profile() };
    assert_eq!(advice(&partial), []);
    // Of an unfinished one it is said what is known.
    let mut running = profile();
    running.ended = RecordingEnd::Running;
    begins(&running, "Shorten");
    // The library does not know who held it.
    let mut library = profile();
    library.locks_of = LocksOf::Library;
    begins(&library, "Shorten");
}

#[test]
fn the_most_costly_first() {
    let mut profile = profile();
    let mut other = profile.locks[0].clone();
    other.id = 98;
    profile.locks[0].label = String::from("first");
    other.label = String::from("second");
    other.roles[0].wait.total = 500 * MS;
    profile.locks.insert(1, other);
    profile.locks.sort_by_key(|lock| std::cmp::Reverse(lock.lock_wait()));
    let costs: Vec<String> = advice(&profile).into_iter().map(|one| one.cost).collect();
    assert!(costs[0].contains("`first`") && costs[1].contains("`second`"), "{costs:#?}");
    let text = text::steps(&profile, Style::PLAIN);
    assert!(text.starts_with("What to do first\n 1. "), "{text}");
    assert!(text.lines().all(|line| line.chars().count() <= 100), "{text}");
    let one = text::steps(&profile, Style { rows: 1, ..Style::PLAIN });
    assert!(one.ends_with(" … and 1 more\n"), "{one}");
}

#[test]
fn of_a_sampled_process() {
    let mut profile = profile();
    let lock = profile.locks[0].id;
    let mut doing = |kind: Doing, doing: &str| {
        let holder = HolderTime { lock, kind, doing: doing.to_owned(), time: 800 };
        let doing = String::from("had ended");
        let other = HolderTime { lock, kind: Doing::Other, doing, time: 200 };
        profile.sampling = Some(Sampling { holders: vec![holder, other], ..Sampling::default() });
        first(&profile)
    };
    assert_eq!(
        doing(Doing::Calls, "was in `fsync` in `flush`"),
        "Move the call out of the section of `store_update`: its holder was in `fsync` in `flush` for 80 % of this time."
    );
    assert_eq!(
        doing(Doing::Runs, "ran, or was ready to"),
        "Shorten the section of `store_update`: its holder ran, or was ready to for 80 % of this time."
    );
    assert!(
        doing(Doing::WaitsForLock, "waited for another lock in `flush`").starts_with("Fix that lock first: ")
    );
    assert!(doing(Doing::Other, "is not known").starts_with("The figures do not decide"));
}

/// A second lock with less waiting, and what was measured of both: `(verdict, cost)`.
fn measured(of: [Option<(Verdict, f64)>; 2]) -> Profile {
    let mut profile = profile();
    let mut other = profile.locks[0].clone();
    (other.id, other.label) = (profile.locks.iter().map(|lock| lock.id).max().unwrap_or(0) + 1, "log".into());
    other.roles[0].wait.total = 2_000 * MS;
    profile.locks.insert(1, other);
    for (lock, of) in of.iter().enumerate() {
        let Some((verdict, cost)) = *of else { continue };
        let lock = &profile.locks[lock];
        let one = Measured {
            name: lock.class().into_owned(),
            noun: lock.noun().to_owned(),
            is_of_sections: true,
            verdict,
            cost: Some(cost),
            answer: format!("Sections of `{}` cost.", lock.class()),
            command: profile.arguments.clone(),
        };
        profile.measured.push(one);
    }
    profile
}

/// What was measured decides the order, and stands where the bound is.
#[test]
fn what_was_measured_comes_first() {
    let second = |profile: &Profile| advice(profile)[0].cost.contains("`log`: ");
    assert!(!second(&measured([None, None])));
    assert!(second(&measured([None, Some((Verdict::Costs, 0.1))])));
    assert!(second(&measured([Some((Verdict::Costs, 0.1)), Some((Verdict::Costs, 0.2))])));
    assert!(!second(&measured([Some((Verdict::Costs, 0.2)), Some((Verdict::Costs, 0.1))])));
    assert!(!second(&measured([None, Some((Verdict::Undecided, 0.9))])));
    assert!(!second(&measured([Some((Verdict::Undecided, 0.0)), None])), "undecided is not little");
    for verdict in [Verdict::Little, Verdict::Saves] {
        let profile = measured([Some((verdict, 0.0)), None]);
        assert!(second(&profile));
        assert_eq!(advice(&profile)[1].advice, "Look elsewhere first.");
    }
    let decided = measured([Some((Verdict::Costs, 0.2)), None]);
    let cost = advice(&decided)[0].cost.clone();
    assert!(
        cost.contains(" % of their time. Measured: sections of `") && !cost.contains("at most"),
        "{cost}"
    );
    assert!(advice(&decided)[1].cost.contains("at most"), "the other one has its bound");
    let mut open = measured([Some((Verdict::Undecided, 0.2)), None]);
    open.measured[0].command = vec![String::from("./other"), String::from("--fast")];
    let cost = advice(&open)[0].cost.clone();
    assert!(cost.contains("at most") && cost.contains("Measured with `./other --fast`: sections"), "{cost}");
    let page = spinpark_profile::html::html(&[Shown { profile: &decided, summary: &[] }]).expect("a page");
    assert!(page.contains("Measured: sections of "), "the page has it, too");
    assert!(text::steps(&decided, Style::PLAIN).contains("Measured: sections of"));
    // Another place than its sections neither orders nor bounds.
    let mut beside = measured([None, Some((Verdict::Costs, 0.2))]);
    beside.measured[0].is_of_sections = false;
    assert!(!second(&beside) && advice(&beside)[1].cost.contains("Measured: "));
}

#[test]
fn data_of_whatif_is_read_and_its_mistakes_are_told() {
    let scratch = tempfile::tempdir().expect("scratch space");
    let path = scratch.path().join("whatif.json");
    let mut profiles = [profile()];
    let lock = &profiles[0].locks[0];
    let good = format!(
        r#"{{"format": "spinpark whatif", "version": 1, "command": ["./x"], "where": "inside", "locks": [{{"name": {:?},
        "noun": {:?}, "section_ns": 100.0, "delay_ns": 400, "answer": "It.", "effect": {{"slope": {{"median": 0.4,
        "low": 0.3, "high": 0.5}}, "verdict": "costs"}}}}]}}"#,
        lock.class(),
        lock.noun()
    );
    let mut try_it = |text: &str| {
        std::fs::write(&path, text).expect("it is written");
        spinpark_profile::measured::add(&mut profiles, &path).map_err(|error| error.to_string())
    };
    for (text, words) in [
        ("{", "is no result of `spinpark whatif --json`"),
        ("{}", "it names no format"),
        (r#"{"format": "spinpark compare"}"#, "its format is `spinpark compare`"),
        (r#"{"format": "spinpark whatif", "version": 9}"#, "has version 9 of its format"),
        (r#"{"format": "spinpark whatif", "version": 1}"#, "missing field"),
        (&good.replace(r#""name": ""#, r#""name": "no "#), "has none of the locks of"),
    ] {
        let said = try_it(text).expect_err(text);
        assert!(said.contains(words), "{said}");
    }
    try_it(&good).expect("it is right");
    let cost = profiles[0].measured[0].cost.expect("it has one");
    assert!((cost - 0.1).abs() < 1e-9, "of a whole section, not of a whole delay: {cost}");
}
