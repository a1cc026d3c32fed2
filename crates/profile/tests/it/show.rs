//! What people see of a profile.

use spinpark_fixtures::recordings::{named, store};
use spinpark_profile::classes::by_class;
use spinpark_profile::model::Warning;
use spinpark_profile::model::{Cost, Detail, Frame, Kind, Lock, Pair, Profile, RecordingEnd, Role};
use spinpark_profile::summary::{Summary, summary};
use spinpark_profile::text::{self, Style};

use crate::words;

fn profile() -> Profile {
    let scratch = tempfile::tempdir().expect("scratch space");
    named(store(), scratch.path())
}

const NARROW: Style = Style { width: 80, ..Style::PLAIN };

fn fits(text: &str, width: usize) {
    let widest = text.lines().max_by_key(|line| line.chars().count()).unwrap_or_default();
    assert!(widest.chars().count() <= width, "{} columns: {widest}", widest.chars().count());
}

#[test]
fn report_in_100_columns() {
    let mut profile = profile();
    profile.dropped = 12;
    profile.nested = 3;
    let changed = String::from("/opt/store/store was changed after it was recorded.");
    profile.warnings.push(Warning::Note(changed));
    profile.cost = Some(Cost {
        is_measured: false,
        ratio: 1.02,
        interval: None,
        noise: None,
        sentence: String::from("Recording cost about 2 %."),
    });
    let report = text::report(&profile, Style::PLAIN);
    fits(&report, 100);
    insta::assert_snapshot!(report);
}

#[test]
fn report_in_80_columns() {
    let report = text::report(&profile(), NARROW);
    fits(&report, 80);
    insta::assert_snapshot!(report);
}

#[test]
fn the_first_screen() {
    let overview = text::overview(&profile(), Style::PLAIN, 45);
    fits(&overview, 100);
    insta::assert_snapshot!(overview);
}

/// However many locks, waiters and call sites there are, it is one screen; every other table is named.
#[test]
fn the_first_screen_is_one() {
    let mut crowded = profile();
    for number in 0..200 {
        let (lock, pair) = (crowded.locks[0].clone(), crowded.pairs[0].clone());
        crowded.locks.push(Lock { id: 1000 + number, label: format!("lock_{number}"), ..lock });
        crowded.pairs.push(Pair { lock: 1000 + number, ..pair });
    }
    crowded.cost = Some(Cost {
        is_measured: false,
        ratio: 1.02,
        interval: None,
        noise: None,
        sentence: "Recording cost about 2 % of the threads' time. ".repeat(4),
    });
    for width in [80, 100, 140] {
        let style = Style { width, rows: 10, ..Style::PLAIN };
        for lines in [45, 31, 10] {
            let overview = text::overview(&crowded, style, lines);
            fits(&overview, width);
            let least = text::overview(&crowded, style, 0).lines().count();
            assert!(overview.lines().count() <= lines.max(least), "{lines} lines: {overview}");
            assert!(words(&overview).contains("`--view all` has everything"), "{overview}");
        }
        let overview = text::overview(&crowded, style, 45);
        assert!(overview.contains("\nLocks\n") && overview.contains("\nWaiters and holders\n"), "{overview}");
        for view in ["split", "sites", "condvars"] {
            assert!(
                overview.contains(&format!("`{view}`")) || overview.contains(&format!(" {view}`")),
                "{view}: {overview}"
            );
        }
        // Without a limit, tables have their rows.
        let whole = text::overview(&crowded, style, usize::MAX);
        assert!(
            whole.contains(&text::locks(&crowded, style)) && whole.contains(&text::blocking(&crowded, style))
        );
    }
}

#[test]
fn long_names_fit() {
    let mut profile = profile();
    profile.locks[0].label =
        String::from("a::very::long::namespace::with<many, template, arguments>::lock_of_everything");
    for frame in profile.call_sites.iter_mut().flat_map(|call_site| &mut call_site.frames) {
        frame.function =
            frame.function.take().map(|name| format!("another::very::long::namespace::{name}<int>"));
    }
    for lock in &mut profile.locks {
        for stats in &mut lock.roles {
            stats.acquisitions += 987_654_321;
            stats.contended += 123_456;
            stats.longest_queue += 1_000;
            stats.outcomes.parked += 123_456;
        }
    }
    fits(&text::report(&profile, Style::PLAIN), 100);
    fits(&text::report(&profile, NARROW), 80);
    fits(&text::report(&profile, Style { width: 140, ..Style::PLAIN }), 140);
}

#[test]
fn colours_are_only_bold() {
    let plain = text::report(&profile(), Style::PLAIN);
    let bold = text::report(&profile(), Style { color: true, ..Style::PLAIN });
    assert!(!plain.contains('\x1b') && bold.contains("\x1b[1m"));
    assert_eq!(bold.replace("\x1b[1m", "").replace("\x1b[0m", ""), plain);
}

#[test]
fn rows_that_are_left_out_are_counted() {
    let text = text::locks(&profile(), Style { rows: 2, ..Style::PLAIN });
    assert!(text.contains("… and 5 more"), "{text}");
}

#[test]
fn freebsd_columns() {
    insta::assert_snapshot!(text::freebsd(&profile(), Style::PLAIN));
}

#[test]
fn classes() {
    let profile = by_class(&profile());
    let labels: Vec<&str> = profile.locks.iter().map(|lock| lock.label.as_str()).collect();
    assert_eq!(labels.iter().filter(|label| label.contains("shard_new")).count(), 1);
    let shards = profile.locks.iter().find(|lock| lock.label.contains("(3 locks)")).expect("a class");
    let stats = &shards.roles[0];
    assert_eq!((stats.acquisitions, stats.contended, stats.wait.total), (15_000, 3, 15_000));
    assert_eq!((stats.wait.longest, stats.sites.len(), stats.sites[0].contended), (6_000, 1, 3));
    insta::assert_snapshot!(text::locks(&profile, NARROW));
}

#[test]
fn the_summary() {
    let summary = summary(&profile());
    insta::assert_snapshot!(format!("{}\n{}", summary.headline, summary.details.join("\n")));
    assert!(!summary.is_small && summary.lock == Some(0));
    assert!((summary.share_of_time - 3.805_015 / 29.0).abs() < 1e-6, "{}", summary.share_of_time);
}

/// The profile with this much time in returns from its condition variable.
fn with_back(profile: &Profile, back: u64) -> Profile {
    let mut profile = profile.clone();
    let stats = profile.locks.iter_mut().flat_map(|lock| &mut lock.roles);
    stats.filter(|stats| stats.role == Role::Back).for_each(|stats| stats.wait.total = back);
    profile.pairs.iter_mut().filter(|pair| pair.role == Role::Back).for_each(|pair| pair.wait_total = back);
    profile
}

#[test]
fn returns_have_a_sentence_of_their_own() {
    let plain = profile();
    let sentence = |summary: &Summary| {
        let is_it = |detail: &&String| detail.contains("condition variables took");
        summary.details.iter().find(is_it).cloned()
    };
    let without = summary(&plain);
    assert_eq!(sentence(&without), None, "too little");
    let with = with_back(&plain, 5_000_000_000);
    let answered = summary(&with);
    assert_eq!(answered.headline, without.headline, "shares are of waiting for locks");
    assert_eq!(answered.share_of_time, without.share_of_time);
    assert_eq!(
        sentence(&answered).expect("it is more than a tenth"),
        "Returning from condition variables took another 5.000 s: the mutex was contended, or threads woke late. The recorder \
         cannot tell which."
    );
    // As a row it is after those of locks, and has no share.
    let table = text::blocking(&with, Style::PLAIN);
    let last = table.lines().rfind(|line| line.contains("put")).expect("a row");
    assert!(last.contains("5.000 s") && last.ends_with('–'), "{table}");
    assert!(table.find("lookup") < table.find("put"), "{table}");
}

/// It may be only late wake-ups; but the summary must not say that locks do not matter.
#[test]
fn long_returns_may_be_contention() {
    let mut profile = with_back(&profile(), 5_000_000_000);
    profile.locks.retain(|lock| lock.label != "cache_lock");
    let little = summary(&profile);
    assert!(little.headline.starts_with("Threads waited little for locks, but returning"), "{little:?}");
    assert!(!little.is_small && little.headline.contains("5.000 s, 17 % of the threads' time"), "{little:?}");
    profile.locks.retain(|lock| lock.kind == Kind::Condvar);
    let none = summary(&profile);
    assert!(none.headline.starts_with("No thread waited for locks, but returning"), "{none:?}");
    assert_eq!(none.lock, None);
}

#[test]
fn idle_workers_are_not_contention() {
    let mut profile = profile();
    profile.locks.retain(|lock| lock.kind == Kind::Condvar);
    profile.locks[0].roles.retain(|stats| stats.role == Role::Signal);
    let summary = summary(&profile);
    assert!(
        summary.headline.starts_with("No thread waited for a pthread lock. What threads did otherwise"),
        "{summary:?}"
    );
    assert_eq!((summary.share_of_time, summary.lock), (0.0, None));
    assert!(summary.details[0].contains("4.000 s for signals"), "{:?}", summary.details);
}

/// A runtime's lock that is handed over by signals leads where threads waited longer for it than for all
/// locks.
#[test]
fn a_runtime_lock_leads_if_it_was_waited_for_most() {
    let mut profile = profile();
    let condvar =
        profile.locks.iter_mut().find(|lock| lock.kind == Kind::Condvar).expect("a condition variable");
    condvar.label = String::from("CPython's GIL");
    let first = summary(&profile);
    assert!(first.headline.starts_with("Threads waited 4.000 s for `CPython's GIL`"), "{first:?}");
    assert!(first.details[0].starts_with("Threads also waited 3.805 s for locks"), "{first:?}");
    assert!(first.details[1].contains("`cache_lock`") && first.lock == Some(0), "{first:?}");
    let signals = profile.locks.iter_mut().flat_map(|lock| &mut lock.roles);
    signals.filter(|stats| stats.role == Role::Signal).for_each(|stats| stats.wait.total -= 1_000_000_000);
    let second = summary(&profile);
    assert!(second.headline.contains("`cache_lock`"), "{second:?}");
    assert!(
        second.details.iter().any(|detail| detail.starts_with("Threads waited 3.000 s for `CPython's GIL`")),
        "{second:?}"
    );
    let mutex = profile.locks.iter_mut().find(|lock| lock.label == "cache_lock").expect("the first lock");
    mutex.label = String::from("CPython's GIL");
    let third = summary(&profile);
    assert!(third.headline.starts_with("Threads waited 3.000 s for `CPython's GIL`"), "its mutex: {third:?}");
}

#[test]
fn a_little_waiting_is_said_to_be_little() {
    let mut profile = profile();
    profile.locks.retain(|lock| lock.label != "cache_lock");
    let summary = summary(&profile);
    assert!(summary.is_small);
    assert!(
        summary.headline.starts_with("Threads waited ") && summary.headline.contains("was not observed"),
        "{summary:?}"
    );
    assert!(
        summary.details[0].contains("rwlock, created by `table_new` (table.c:9), held by `insert`"),
        "{summary:?}"
    );
    assert!(summary.details[1].contains("readers waited 100 %"), "{summary:?}");
}

#[test]
fn nothing_to_see() {
    let mut profile = profile();
    profile.locks.clear();
    profile.pairs.clear();
    assert!(summary(&profile).headline.starts_with("The program used no pthread lock. "));
    profile.detail = Detail::Contended;
    let contended = summary(&profile);
    assert!(contended.headline.starts_with("No thread waited for a pthread lock. "), "{contended:?}");
    assert!(contended.details[0].contains("Go's are not"), "{contended:?}");
    profile.dropped = 7;
    let unknown = summary(&profile).headline;
    assert!(unknown.starts_with("Nothing is known"), "{unknown}");
    let warned = text::report(&profile, NARROW);
    let at = |what: &str| warned.find(what).expect(what);
    assert!(at("7 records did not fit") < at("Nothing is known"), "before the summary: {warned}");
    profile.dropped = 0;
    let report = text::report(&profile, NARROW);
    assert!(!report.contains('─'), "no tables: {report}");
}

#[test]
fn no_lock_stands_out() {
    let mut profile = profile();
    let cache = profile.locks[0].clone();
    for number in 1..10 {
        let mut lock = cache.clone();
        lock.id = 100 + number;
        lock.label = format!("lock_{number}");
        profile.locks.insert(1, lock);
    }
    let summary = summary(&profile);
    assert!(summary.headline.starts_with("No lock stands out: the most waiting, "), "{summary:?}");
    assert!(
        summary.details.iter().any(|detail| detail.contains("9 of 14 contended locks have")),
        "{summary:?}"
    );
}

#[test]
fn a_class_leads() {
    let mut profile = profile();
    let cache = profile.locks[0].clone();
    profile.locks.truncate(1);
    profile.locks[0].label = String::from("shard[0]");
    for number in 1..4 {
        let label = format!("shard[{number}]");
        profile.locks.push(Lock { id: 100 + number, label, ..cache.clone() });
    }
    let summary = summary(&profile);
    assert!(summary.headline.starts_with("All waiting is on the 4 locks of `shard`"), "{summary:?}");
    assert!(!summary.details.iter().any(|detail| detail.contains("4 of 4 contended locks")), "{summary:?}");
}

/// Control characters do nothing to a terminal.
#[test]
fn names_are_harmless() {
    let mut profile = profile();
    profile.arguments = vec![String::from("sh"), String::from("-c"), String::from("a\nb\x1b[31m")];
    profile.locks[0].label = String::from("evil\nlock\x1b]0;title\x07");
    for view in [text::report(&profile, Style::PLAIN), text::freebsd(&profile, Style::PLAIN)] {
        assert!(!view.contains('\x1b') && !view.contains('\x07'), "{view:?}");
        fits(&view, 100);
    }
    assert!(text::report(&profile, NARROW).contains(r"sh -c a\nb\u{1b}[31m (process 4242)"));
}

#[test]
fn what_ended_it() {
    let mut profile = profile();
    profile.ended = RecordingEnd::Killed;
    assert!(
        text::report(&profile, Style::PLAIN).contains("3 threads, ended by a signal, `_exit` or `exec`;")
    );
    profile.ended_by = Some(String::from("ended after 2.00 s, as asked"));
    let report = text::report(&profile, Style::PLAIN);
    assert!(report.contains("3 threads, ended after 2.00 s, as asked;"), "{report}");
}

/// A wrapper of the program's own is the innermost function of all call sites; those that differ far out only
/// are one row.
#[test]
fn wrappers_have_their_callers() {
    let mut profile = profile();
    let frame = profile.call_sites[0].frames[0].clone();
    let named = |name: &str| Frame { function: Some(String::from(name)), source: None, ..frame.clone() };
    for (number, call_site) in profile.call_sites.iter_mut().enumerate() {
        let caller = if number % 2 == 0 { "load" } else { "store" };
        let names = ["my_mutex_lock", caller, "run", "thread", &number.to_string()];
        call_site.frames = names.map(&named).into();
    }
    for table in [text::blocking(&profile, Style::PLAIN), text::sites(&profile, Style::PLAIN)] {
        assert!(table.contains("my_mutex_lock < ") && !table.contains("my_mutex_lock  "), "{table}");
        let rows: Vec<&str> = table.lines().filter(|line| line.contains("cache_lock")).collect();
        assert!(rows.len() <= 4, "at most one of each: {table}");
    }
    let headline = summary(&profile).headline;
    let is_callers = ["load", "store"].iter().any(|caller| headline.contains(&format!("held by `{caller}`")));
    assert!(is_callers && !headline.contains("my_mutex_lock"), "{headline}");
}
