//! One figure, one number: terminal, page, comparison and data say the same of one recording.

use std::sync::atomic::Ordering::Relaxed;

use spinpark_fixtures::recordings::Builder;
use spinpark_measure::text::units::time;
use spinpark_profile::classes::by_class;
use spinpark_profile::diff;
use spinpark_profile::html::{Shown, html};
use spinpark_profile::model::{Bound, Profile, RoleStats};
use spinpark_profile::read::{Recording, profile};
use spinpark_profile::symbols::Symbols;
use spinpark_profile::text::{self, Style};
use spinpark_recorder::format::{Begun, Detail, Holds, Kind, NONE, Role};

use crate::words;

const MS: u64 = 1_000_000;
const S: u64 = 1_000 * MS;

/// A recording of 10 s with the detail `contended`: a mutex whose measured holds took 1.702 s, and which was
/// held for 276 ms more while others waited.
fn read(unfinished: Option<u64>) -> Profile {
    let mut file = Builder::new();
    file.header().detail.store(Detail::Contended as u32, Relaxed);
    let maps = file.maps("");
    let stack = file.stack(maps, &[1, 2]);
    let lock = file.lock(Kind::Mutex, 0x1000, stack, false);
    file.name(lock, "table");
    let thread = file.thread(1, "t", 0, 7, 2 * S);
    file.uses(thread, lock, Role::Write, |stats| {
        stats.acquisitions.store(9, Relaxed);
        stats.contended.store(7, Relaxed);
        stats.waited.store(2 * S, Relaxed);
        stats.longest_wait.store(S, Relaxed);
        if unfinished.is_none() {
            stats.held_after_wait.count.store(7, Relaxed);
            stats.held_after_wait.total.store(1_702 * MS, Relaxed);
            stats.held_after_wait.longest.store(400 * MS, Relaxed);
            stats.held_waited.store(276 * MS, Relaxed);
        }
    });
    if let Some(since) = unfinished {
        let waiter = file.thread(2, "u", 0, 0, 0);
        let begun = Begun {
            since,
            lock,
            role: Role::Write as u32,
            stack,
            holder: NONE,
            owner: 1,
            is_timed: false,
            is_noted: false,
            holds: Holds::default(),
        };
        file.uses(waiter, lock, Role::Write, |_| {});
        file.waits(waiter, begun, 0);
    }
    let scratch = tempfile::tempdir().expect("scratch space");
    let path = file.write(scratch.path()).expect("it is written");
    profile(&Recording::open(&path).expect("it is a recording"), &mut Symbols::none())
}

/// The line of the lock in a table.
fn line(table: &str) -> String {
    words(table.lines().find(|line| line.starts_with(" table")).unwrap_or_else(|| panic!("{table}")))
}

fn stats(profile: &Profile) -> &RoleStats {
    &profile.locks[0].roles[0]
}

#[test]
fn the_time_held_is_the_same_everywhere() {
    let profile = read(None);
    let held = stats(&profile).held().expect("it is known");
    assert_eq!((held.time, held.bound), (1_978 * MS, Bound::AtLeast));
    let (shown, share) = (format!("≥ {}", time(held.time as f64)), "≥ 20 %");
    assert_eq!(shown, "≥ 1.978 s");

    let wide = Style { width: 140, ..Style::PLAIN };
    assert!(line(&text::locks(&profile, wide)).contains(&shown), "{}", text::locks(&profile, wide));
    let split = line(&text::split(&profile, Style::PLAIN));
    assert!(split.ends_with(&format!("{shown} {share}")), "{split}");
    assert!(line(&text::locks(&by_class(&profile), wide)).contains(&shown));

    let summary = [String::from("a summary")];
    let page = html(&[Shown { profile: &profile, summary: &summary }]).expect("a page");
    assert!(page.contains(">≥ 1.978 s</td>") && page.contains(">≥ 19.8 %</td>"), "{page}");
    assert!(!page.contains("1.702 s"), "no second number");

    let same = diff::diff(&profile, &profile);
    assert_eq!(same.locks[0].change.hold, (held.time, held.time));
    assert!(line(&diff::text(&same, &profile, &profile, Style::PLAIN)).ends_with("1.978 s 1.978 s"));

    let json = serde_json::to_value(&profile).expect("JSON");
    let role = &json["locks"][0]["roles"][0];
    assert_eq!(role["hold"]["total"], 1_978 * MS);
    assert!((role["utilisation"].as_f64().expect("a number") - 0.1978).abs() < 1e-9, "{role}");
}

/// A lock that was held all the time, and never released: no measured sum has its hold.
#[test]
fn a_hold_that_has_not_ended_counts() {
    let profile = read(Some(S));
    let held = stats(&profile).held().expect("it is known");
    assert_eq!((held.time, held.bound), (9 * S, Bound::AtLeast));
    assert_eq!(stats(&profile).utilisation, Some(0.9));
    assert!(line(&text::split(&profile, Style::PLAIN)).ends_with("≥ 9.000 s ≥ 90 %"));
}

/// A lock of which no hold was measured was not held for 0 % of the run.
#[test]
fn what_is_not_known_is_not_zero() {
    let mut profile = read(None);
    let stats = &mut profile.locks[0].roles[0];
    (stats.hold.total, stats.hold.while_waited, stats.hold.measured) = Default::default();
    assert_eq!(stats.held(), None);
    stats.utilisation = None;
    assert!(line(&text::split(&profile, Style::PLAIN)).ends_with("– –"));
}
