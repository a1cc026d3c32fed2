//! What the holder of a lock waits for itself.

use spinpark_observe::format::{Held, Kind, Role};
use spinpark_profile::answer::answer;
use spinpark_profile::classes::by_class;
use spinpark_profile::model::Profile;
use spinpark_profile::read::{Recording, profile};
use spinpark_profile::symbols::Symbols;
use spinpark_profile::testing::Builder;
use spinpark_profile::text::{Style, held_waits};

const MS: u64 = 1_000_000;

fn read(file: Builder) -> Profile {
    let scratch = tempfile::tempdir().expect("scratch space");
    let path = file.write(scratch.path()).expect("it is written");
    profile(&Recording::open(&path).expect("it is a recording"), &mut Symbols::none())
}

fn sum(held: &mut Held, count: u64, total: u64) {
    (held.count, held.total, held.longest) = (count.into(), total.into(), total.into());
}

/// Locks with names that threads waited for: how long in all, for how long they were held.
fn locks(kinds: &[(&str, Kind, u64, u64)]) -> (Builder, u32, Vec<u32>) {
    let mut file = Builder::new();
    let maps = file.maps("");
    let stack = file.stack(maps, &[1, 2]);
    let thread = file.thread(1, "t", 0, 0, 0);
    let mut numbers = Vec::new();
    for (name, kind, waited, held) in kinds {
        let lock = file.lock(*kind, 0x1000 + 64 * numbers.len() as u64, stack, false);
        file.name(lock, name);
        let role = if *kind == Kind::Condvar { Role::Signal } else { Role::Write };
        file.uses(thread, lock, role, |stats| {
            stats.acquisitions = 10.into();
            stats.contended = 5.into();
            stats.waited = (*waited).into();
            sum(&mut stats.held, 10, *held);
        });
        numbers.push(lock);
    }
    (file, thread, numbers)
}

fn details(profile: &Profile) -> String {
    answer(profile).details.join(" ")
}

#[test]
fn the_holder_waits_for_another_lock() {
    let (mut file, thread, locks) =
        locks(&[("table", Kind::Mutex, 5_000 * MS, 1_000 * MS), ("log", Kind::Mutex, 900 * MS, 900 * MS)]);
    file.held_wait(thread, locks[1], Role::Write, locks[0], (4, 820 * MS, 300 * MS));
    let profile = read(file);
    let details = details(&profile);
    let said = "Who held it waited meanwhile itself for the mutex `log`, for 820 ms, 82 % of the time for which it was held: \
                that one comes first.";
    assert!(details.contains(said), "{details}");
    insta::assert_snapshot!(held_waits(&profile, Style::PLAIN));
    assert!(self::details(&by_class(&profile)).contains(said));
}

#[test]
fn the_holder_waits_for_a_signal() {
    let (mut file, thread, locks) =
        locks(&[("table", Kind::Mutex, 5_000 * MS, 1_000 * MS), ("ready", Kind::Condvar, 900 * MS, 0)]);
    file.held_wait(thread, locks[1], Role::Signal, locks[0], (4, 500 * MS, 300 * MS));
    file.held_wait(thread, locks[1], Role::Back, locks[0], (4, 20 * MS, 5 * MS));
    let details = details(&read(file));
    let said = "for a signal of the condvar `ready`, for 520 ms, 52 % of the time for which it was held: nothing should be \
                held in such a wait but the mutex that belongs to it.";
    assert!(details.contains(said), "{details}");
}

/// What hardly ever happened is in the table, and not in the answer.
#[test]
fn the_holder_hardly_waits() {
    let (mut file, thread, locks) =
        locks(&[("table", Kind::Mutex, 5_000 * MS, 1_000 * MS), ("log", Kind::Mutex, 9 * MS, 9 * MS)]);
    file.held_wait(thread, locks[1], Role::Write, locks[0], (4, 8 * MS, 3 * MS));
    let profile = read(file);
    assert!(!details(&profile).contains("Who held it"));
    assert!(held_waits(&profile, Style::PLAIN).contains("table"));
}

/// Nobody waits for who holds a lock that nobody wants.
#[test]
fn nobody_wants_the_outer_lock() {
    let (mut file, thread, locks) =
        locks(&[("log", Kind::Mutex, 900 * MS, 900 * MS), ("ready", Kind::Condvar, 0, 0)]);
    let own = file.lock(Kind::Mutex, 0x9000, 0, false);
    file.uses(thread, own, Role::Write, |stats| stats.acquisitions = 4.into());
    file.held_wait(thread, locks[0], Role::Write, own, (4, 820 * MS, 300 * MS));
    assert_eq!(held_waits(&read(file), Style::PLAIN), "");
}

#[test]
fn two_orders() {
    let read = |is_both: bool| {
        let (mut file, thread, locks) = locks(&[
            ("table", Kind::Mutex, 5_000 * MS, 1_000 * MS),
            ("log", Kind::Mutex, 900 * MS, 900 * MS),
        ]);
        file.held_wait(thread, locks[1], Role::Write, locks[0], (1, 2 * MS, MS));
        if is_both {
            file.held_wait(thread, locks[0], Role::Write, locks[1], (1, MS, MS));
        }
        details(&read(file))
    };
    let said = "Threads waited for the mutex `log` with the mutex `table` held, and the other way round: taken in two orders \
                they can deadlock, unless a third lock prevents that.";
    assert!(!read(false).contains("two orders"));
    assert!(read(true).contains(said), "{}", read(true));
}
