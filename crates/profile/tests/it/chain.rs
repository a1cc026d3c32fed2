//! What the holder of a lock waits for itself.

use spinpark_fixtures::recordings::Builder;
use spinpark_profile::classes::by_class;
use spinpark_profile::model::Profile;
use spinpark_profile::read::{Recording, profile};
use spinpark_profile::summary::summary;
use spinpark_profile::symbols::Symbols;
use spinpark_profile::text::{Style, held_waits};
use spinpark_recorder::format::{Begun, Held, HeldWaitStats, Hold, Holds, Kind, NONE, Role};

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
    summary(profile).details.join(" ")
}

#[test]
fn the_holder_waits_for_another_lock() {
    let (mut file, thread, locks) =
        locks(&[("table", Kind::Mutex, 5_000 * MS, 1_000 * MS), ("log", Kind::Mutex, 900 * MS, 900 * MS)]);
    file.held_wait(thread, locks[1], Role::Write, locks[0], (4, 820 * MS, 4_100 * MS));
    let profile = read(file);
    let details = details(&profile);
    let said = "For about 82 % of the time that threads waited for the mutex `table`, its holder was blocked on the mutex \
                `log` (820 ms in all); fix that one first.";
    assert!(details.contains(said), "{details}");
    insta::assert_snapshot!(held_waits(&profile, Style::PLAIN));
    assert!(self::details(&by_class(&profile)).contains(said));
}

#[test]
fn the_holder_waits_for_a_signal() {
    let (mut file, thread, locks) =
        locks(&[("table", Kind::Mutex, 5_000 * MS, 1_000 * MS), ("ready", Kind::Condvar, 900 * MS, 0)]);
    file.held_wait(thread, locks[1], Role::Signal, locks[0], (4, 500 * MS, 1_000 * MS));
    file.held_wait(thread, locks[1], Role::Back, locks[0], (4, 20 * MS, 50 * MS));
    let details = details(&read(file));
    let said = "For about 20 % of the time that threads waited for the mutex `table`, its holder waited for a signal of the \
                condvar `ready` (500 ms in all). Hold only the condvar's own mutex in such a wait.";
    assert!(details.contains(said), "{details}");
}

/// A holder's wait that blocked others only briefly is in the table, and not in the summary, however long it
/// was.
#[test]
fn a_holders_wait_that_blocks_few() {
    let (mut file, thread, locks) =
        locks(&[("table", Kind::Mutex, 5_000 * MS, 1_000 * MS), ("log", Kind::Mutex, 900 * MS, 900 * MS)]);
    file.held_wait(thread, locks[1], Role::Write, locks[0], (4, 900 * MS, 30 * MS));
    let profile = read(file);
    assert!(!details(&profile).contains("its holder"));
    assert!(held_waits(&profile, Style::PLAIN).contains("table"));
}

/// Less than half of it is no advice; two locks of the same kind are named.
#[test]
fn the_holder_waits_for_two() {
    let said = |made: [u64; 2]| {
        let mutex = |name| (name, Kind::Mutex, 900 * MS, 900 * MS);
        let (mut file, thread, locks) =
            locks(&[("table", Kind::Mutex, 5_000 * MS, 1_000 * MS), mutex("log"), mutex("index")]);
        file.held_wait(thread, locks[1], Role::Write, locks[0], (4, 100 * MS, made[0] * MS));
        file.held_wait(thread, locks[2], Role::Write, locks[0], (4, 80 * MS, made[1] * MS));
        details(&read(file))
    };
    let (both, one) = (said([1_600, 1_400]), said([1_600, 300]));
    let start = "its holder was blocked on the mutex `log` (100 ms in all)";
    assert!(
        both.contains(&format!("{start} and the mutex `index` (80.0 ms in all); fix those first.")),
        "{both}"
    );
    assert!(
        one.contains(&format!(
            "For about 32 % of the time that threads waited for the mutex `table`, {start}."
        )),
        "{one}"
    );
}

/// No thread waits for the holder of an uncontended lock.
#[test]
fn the_outer_lock_is_uncontended() {
    let (mut file, thread, locks) =
        locks(&[("log", Kind::Mutex, 900 * MS, 900 * MS), ("ready", Kind::Condvar, 0, 0)]);
    let own = file.lock(Kind::Mutex, 0x9000, 0, false);
    file.uses(thread, own, Role::Write, |stats| stats.acquisitions = 4.into());
    file.held_wait(thread, locks[0], Role::Write, own, (4, 820 * MS, 0));
    assert_eq!(held_waits(&read(file), Style::PLAIN), "");
}

/// A wait that has not ended counts, and so do those of others meanwhile.
#[test]
fn the_holder_still_waits() {
    let (mut file, thread, locks) =
        locks(&[("table", Kind::Mutex, 1_000 * MS, 100 * MS), ("log", Kind::Mutex, 90 * MS, 90 * MS)]);
    let other = file.thread(2, "u", 0, 0, 0);
    let mut holds = Holds::default();
    holds.push(Hold { lock: locks[0], stack: 0 });
    let begun = Begun { since: 9_000 * MS, lock: locks[1], holder: NONE, holds, ..Begun::default() };
    file.waits(thread, begun, 0);
    let behind = Begun { since: 9_200 * MS, lock: locks[0], holder: NONE, ..Begun::default() };
    file.waits(other, behind, 0);
    let profile = read(file);
    let waits = &profile.held_waits[0];
    assert_eq!((waits.wait_total, waits.time_blocked), (1_000 * MS, 800 * MS));
    let details = details(&profile);
    assert!(
        details.contains("For about 44 % of the time that threads waited for the mutex `table`"),
        "{details}"
    );
}

/// Locks that lead together are spoken of together; a lock of theirs that waits for another one is no other.
#[test]
fn a_class_whose_holders_wait() {
    let shards = [("shard", Kind::Mutex, 400 * MS, 100 * MS); 16];
    let (mut file, thread, locks) =
        locks(&[shards.as_slice(), &[("log", Kind::Mutex, 90 * MS, 90 * MS)]].concat());
    for shard in &locks[..16] {
        file.held_wait(thread, locks[16], Role::Write, *shard, (1, 80 * MS, 320 * MS));
    }
    file.held_wait(thread, locks[1], Role::Write, locks[0], (1, 90 * MS, 30 * MS));
    let details = details(&read(file));
    let said = "For about 80 % of the time that threads waited for one of the 16 locks of `shard`, its holder was blocked on \
                the mutex `log` (1.280 s in all); fix that one first.";
    assert!(details.contains(said), "{details}");
}

/// Waits for two locks, each with the other one held: the thread, the role of each, with a deadline or
/// without.
fn both_orders(threads: [u32; 2], kinds: [Kind; 2], roles: [[Role; 2]; 2], timed: u32) -> String {
    let (mut file, first, locks) =
        locks(&[("table", kinds[0], 5_000 * MS, 1_000 * MS), ("log", kinds[1], 900 * MS, 900 * MS)]);
    let second = file.thread(2, "u", 0, 0, 0);
    let thread = |number: u32| if number == 1 { first } else { second };
    for (one, [held_as, role]) in roles.into_iter().enumerate() {
        let how = held_as as u32 | timed;
        let (outer, wanted) = (locks[one], locks[1 - one]);
        file.held_wait_as(thread(threads[one]), wanted, role, (outer, how), (1, 200 * MS, 3_000 * MS));
    }
    details(&read(file))
}

#[test]
fn two_orders() {
    use Kind::{Mutex, RwLock};
    use Role::{Read, Write};
    let said = ", and the other way round. Taken in two orders, they can deadlock, unless";
    let mutexes = |threads, timed| both_orders(threads, [Mutex; 2], [[Write; 2]; 2], timed);
    assert!(mutexes([1, 2], 0).contains(said), "{}", mutexes([1, 2], 0));
    // Neither comes first.
    assert!(mutexes([1, 2], 0).contains("its holder was blocked on the mutex `log` (200 ms in all). "));
    // One after the other, or not for ever.
    assert!(!mutexes([1, 1], 0).contains("two orders"));
    assert!(!mutexes([1, 2], HeldWaitStats::TIMED).contains("two orders"));
    // Readers do not exclude each other; a writer does.
    let rwlock = |held_as, wanted| {
        both_orders([1, 2], [RwLock, Mutex], [[held_as, Write], [Write, wanted]], 0).contains("two orders")
    };
    assert!(!rwlock(Read, Read));
    assert!(rwlock(Read, Write) && rwlock(Write, Read) && rwlock(Write, Write));
}
