//! Two profiles compared, and which locks of them are the same.

use spinpark_fixtures::recordings::{named, relabel, store};
use spinpark_profile::diff::{self, Diff, LockChange};
use spinpark_profile::model::{CallSite, Frame, Kind, Lock, Module, Profile, Role, SiteStats};
use spinpark_profile::text;

use crate::words;

fn profile() -> Profile {
    let scratch = tempfile::tempdir().expect("scratch space");
    named(store(), scratch.path())
}

/// The same after an edit of the source, which changed frames so.
fn edited(profile: &Profile, edit: impl Fn(&mut Frame)) -> Profile {
    let mut edited = profile.clone();
    edited.call_sites.iter_mut().flat_map(|call_site| &mut call_site.frames).for_each(edit);
    relabel(&mut edited);
    edited
}

/// One more line at the top of each file, and code that lies elsewhere.
fn moved(frame: &mut Frame) {
    frame.offset += 0x20;
    if let Some((_, line)) = &mut frame.source {
        *line += 1;
    }
}

/// Locks, one for each of these stacks: functions from the innermost out, and the line of that.
fn locks(stacks: &[(&[&str], u32)]) -> Profile {
    let mut profile = profile();
    let (frame, mut lock) = (profile.call_sites[0].frames[0].clone(), profile.locks[0].clone());
    (profile.locks, profile.call_sites, profile.pairs) = (Vec::new(), Vec::new(), Vec::new());
    (lock.name, lock.kind, lock.label) = (None, Kind::Mutex, String::from("mutex of ? #1"));
    lock.roles[0].sites.clear();
    for (number, (functions, line)) in stacks.iter().enumerate() {
        let frames = functions.iter().map(|function| Frame {
            function: Some((*function).to_owned()),
            source: Some((String::from("/src/x.c"), *line)),
            ..frame.clone()
        });
        profile.call_sites.push(CallSite { frames: frames.collect(), is_cut: false });
        let mut lock =
            Lock { id: number as u32, creation_site: Some(number), is_created: true, ..lock.clone() };
        lock.roles[0].wait.total = 1_000_000 * u64::from(*line);
        profile.locks.push(lock);
    }
    relabel(&mut profile);
    profile
}

/// Label before, label after, waits in ms, of locks.
fn rows(diff: &Diff) -> Vec<(Option<&str>, &str, u64, u64)> {
    let row = |lock: &'_ LockChange| (lock.change.wait.0 / 1_000_000, lock.change.wait.1 / 1_000_000);
    let locks = diff.locks.iter().filter(|lock| lock.role == Role::Write);
    locks.map(|lock| (lock.label_before.as_deref(), lock.label.as_str(), row(lock).0, row(lock).1)).collect()
}

#[test]
fn differences() {
    let before = profile();
    let mut after = before.clone();
    after.locks[0].roles[0].wait.total /= 4;
    after.locks[0].roles[0].contended = 3;
    after.locks.retain(|lock| !lock.label.ends_with(" #2") && !lock.label.starts_with("rwlock"));
    after.locks[0].address += 64;
    after.duration /= 2;
    let diff = diff::diff(&before, &after);
    let cache = &diff.locks[0];
    assert_eq!((cache.label.as_str(), cache.count), ("cache_lock", (1, 1)));
    assert_eq!((cache.change.wait, cache.change.contended), ((3_800_000_000, 950_000_000), (6, 3)));
    let shards = diff.locks.iter().find(|lock| lock.label.contains("shard_new")).expect("it is in both");
    assert_eq!((shards.count, shards.change.acquisitions), ((3, 2), (15_000, 10_000)));
    assert_eq!(diff.all.wait, (before.lock_wait(), after.lock_wait()));
    let shown = diff::text(&diff, &before, &after, text::Style { width: 80, ..text::Style::PLAIN });
    assert!(shown.lines().all(|line| line.chars().count() <= 80), "{shown}");
    insta::assert_snapshot!(shown);
    let same = diff::diff(&before, &before);
    assert!(
        diff::text(&same, &before, &before, text::Style::PLAIN)
            .starts_with("Threads waited for locks just as long.")
    );
}

/// What sampling leaves open is beside the ratio; what one run each leaves open is said in any case.
#[test]
fn ratios_have_intervals_where_waits_were_sampled() {
    let before = profile();
    let mut after = before.clone();
    after.locks[0].roles[0].wait.total /= 2;
    let words = |after: &Profile| {
        let shown = diff::text(&diff::diff(&before, after), &before, after, text::Style::PLAIN);
        crate::words(&shown)
    };
    let exact = words(&after);
    assert!(!exact.contains('±') && exact.contains("`spinpark compare --against` measures"), "{exact}");
    let stats = &mut after.locks[0].roles[0];
    stats.error.waited = stats.wait.total / 25;
    let error = stats.error.waited;
    let diff = diff::diff(&before, &after);
    let cache = &diff.locks[0].change;
    assert_eq!((cache.wait_error.0, cache.wait_error.1), (0, error));
    assert!((cache.ratio_error().expect("sampled") - 0.04).abs() < 1e-6, "{cache:?}");
    assert!(words(&after).contains("×0.50 ±4.0 %"), "{}", words(&after));
    assert!(words(&after).contains("±: 95 % interval, as waits were sampled."));
}

#[test]
fn lines_may_move() {
    let before = profile();
    let after = edited(&before, moved);
    let diff = diff::diff(&before, &after);
    assert_eq!(diff.locks.len(), diff::diff(&before, &before).locks.len());
    for lock in &diff.locks {
        assert_eq!(lock.change.wait.0, lock.change.wait.1, "{lock:?}");
        assert_eq!((lock.count.0, lock.creation_sites), (lock.count.1, (1, 1)), "{lock:?}");
        assert!(!lock.is_by_order, "each is the only one of its function: {lock:?}");
    }
    let shards = diff.locks.iter().find(|lock| lock.label.contains("shard_new")).expect("it is there");
    assert_eq!(shards.label, "mutex of shard_new (shard.c:22)", "where it is now");
    assert_eq!(shards.label_before.as_deref(), Some("mutex of shard_new (shard.c:21)"));
    let shown = diff::text(&diff, &before, &after, text::Style::PLAIN);
    assert!(
        shown.contains("just as long") && !shown.contains("from 0") && !shown.contains("to 0"),
        "{shown}"
    );
}

#[test]
fn a_program_may_be_called_otherwise_and_compiled_otherwise() {
    let before = profile();
    let mut after = edited(&before, |frame| {
        moved(frame);
        frame.module = String::from("store-with-two-locks");
        frame.function = frame.function.take().map(|name| name + ".constprop.0");
    });
    after.program = String::from("/opt/store/store-with-two-locks");
    let diff = diff::diff(&before, &after);
    assert!(diff.locks.iter().all(|lock| lock.change.wait.0 == lock.change.wait.1), "{diff:#?}");
    // A library is not the program.
    let other = edited(&before, |frame| frame.module = String::from("libother.so.2"));
    let diff = diff::diff(&before, &other);
    let shards: Vec<_> = diff.locks.iter().filter(|lock| lock.label.contains("shard_new")).collect();
    assert_eq!(shards.len(), 2, "{shards:#?}");
    // A new version of it is.
    let newer = edited(&other, |frame| frame.module = String::from("libother.so.3.1"));
    let diff = diff::diff(&other, &newer);
    assert!(diff.locks.iter().all(|lock| lock.change.wait.0 == lock.change.wait.1), "{diff:#?}");
}

#[test]
fn callers_tell_apart() {
    let before = locks(&[(&["make", "load", "main"], 10), (&["make", "store", "main"], 20)]);
    let after = locks(&[(&["make", "store", "main"], 11), (&["make", "load", "start", "main"], 21)]);
    let diff = diff::diff(&before, &after);
    let (load, store) = ("mutex of make (x.c:21)", "mutex of make (x.c:11)");
    assert_eq!(
        rows(&diff),
        [(Some("mutex of make (x.c:10)"), load, 10, 21), (Some("mutex of make (x.c:20)"), store, 20, 11)]
    );
    assert!(!diff.locks.iter().any(|lock| lock.is_by_order));
}

#[test]
fn equal_ones_are_in_order() {
    let before = locks(&[(&["init", "main"], 10), (&["init", "main"], 20)]);
    let after = locks(&[(&["init", "main"], 31), (&["init", "main"], 11)]);
    let diff = diff::diff(&before, &after);
    let (first, second) = ("mutex of init (x.c:11)", "mutex of init (x.c:31)");
    assert_eq!(
        rows(&diff),
        [(Some("mutex of init (x.c:20)"), second, 20, 31), (Some("mutex of init (x.c:10)"), first, 10, 11)]
    );
    assert!(diff.locks.iter().all(|lock| lock.is_by_order));
    let shown = diff::text(&diff, &before, &after, text::Style::PLAIN);
    assert!(words(&shown).contains("in the order of their lines"), "{shown}");
    // Nothing moved: nothing to be said.
    assert!(!diff::diff(&before, &before).locks.iter().any(|lock| lock.is_by_order));
}

#[test]
fn what_cannot_be_told_apart_is_one_row() {
    let before = locks(&[(&["init", "main"], 10)]);
    let after = locks(&[(&["init", "main"], 11), (&["init", "main"], 31)]);
    let diff = diff::diff(&before, &after);
    assert_eq!(rows(&diff), [(Some("mutex of init (x.c:10)"), "mutex of init", 10, 42)]);
    assert_eq!((diff.locks[0].creation_sites, diff.locks[0].count), ((1, 2), (1, 2)));
    insta::assert_snapshot!(diff::text(&diff, &before, &after, text::Style::PLAIN));
    // In one build of the program, lines do not move.
    let build = |mut profile: Profile| {
        let module = Module {
            path: String::from("/opt/store/store"),
            build_id: Some(String::from("c0ffee")),
            unnamed: None,
        };
        profile.modules = vec![module];
        profile
    };
    let (before, after) = (build(locks(&[(&["init", "main"], 31)])), build(after));
    let same = diff::diff(&before, &after);
    assert_eq!(
        rows(&same),
        [(None, "mutex of init (x.c:11)", 0, 11), (None, "mutex of init (x.c:31)", 31, 31)]
    );
}

/// A lock that no thread waited for in the first run is new in the second, and the others are not.
#[test]
fn takers_tell_equal_ones_apart() {
    let take = |profile: &mut Profile, takers: &[&str]| {
        let (site, frame) =
            (self::profile().locks[0].roles[0].sites[0].clone(), profile.call_sites[0].frames[0].clone());
        for (lock, taker) in profile.locks.iter_mut().zip(takers) {
            let frame = Frame { function: Some((*taker).to_owned()), ..frame.clone() };
            profile.call_sites.push(CallSite { frames: vec![frame], is_cut: false });
            let call_site = profile.call_sites.len() - 1;
            lock.roles[0].sites.push(SiteStats { call_site, ..site.clone() });
        }
    };
    let mut before = locks(&[(&["init", "main"], 20)]);
    let mut after = locks(&[(&["init", "main"], 11), (&["init", "main"], 21)]);
    take(&mut before, &["push"]);
    take(&mut after, &["log", "push"]);
    let diff = diff::diff(&before, &after);
    assert_eq!(
        rows(&diff),
        [
            (None, "mutex of init (x.c:11)", 0, 11),
            (Some("mutex of init (x.c:20)"), "mutex of init (x.c:21)", 20, 21)
        ]
    );
    assert!(
        diff.locks
            .iter()
            .all(|lock| lock.creation_sites.0 <= 1 && lock.creation_sites.1 == 1 && !lock.is_by_order)
    );
}

/// The first user may differ between runs.
#[test]
fn first_users_may_change() {
    let mut before = locks(&[(&["price_of", "reader"], 10), (&["rebuild", "main"], 20), (&["log"], 30)]);
    let mut after = before.clone();
    let site = profile().locks[0].roles[0].sites[0].clone();
    for (profile, first) in [(&mut before, 0), (&mut after, 1)] {
        profile.locks.truncate(1);
        let lock = &mut profile.locks[0];
        (lock.creation_site, lock.is_created) = (Some(first), false);
        for call_site in [0, 1] {
            lock.roles[0].sites.push(SiteStats { call_site, ..site.clone() });
        }
        relabel(profile);
    }
    let same = diff::diff(&before, &after);
    let row = (Some("mutex in price_of (x.c:10)"), "mutex in rebuild (x.c:20)", 10, 10);
    assert_eq!(rows(&same), [row]);
    // Two that share a taker cannot be distinguished.
    let mut other = after.locks[0].clone();
    (other.id, other.creation_site) = (7, Some(2));
    after.locks.push(other);
    relabel(&mut after);
    assert_eq!(diff::diff(&before, &after).locks.len(), 3);
}
