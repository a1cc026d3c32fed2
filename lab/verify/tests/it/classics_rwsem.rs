//! Models of the kernel's rwsem of 2013 with document 002's series, and mutants. Its two claims:
//! `document_002.rs`.

use std::sync::Arc;

use spinpark_classics::RawRwLock;
use spinpark_classics::rwsem_2013::{Full, NoSpin, Patches, Rwsem, Series, Vanilla};
use spinpark_platform::Ordering::AcqRel;
use spinpark_platform::{Event, OnCpu};
use spinpark_verify::platform::{Fault, Kind, Loom};
use spinpark_verify::{Model, Shared, breaks, breaks_rule, join_all, rejected};

type Both<S> = Shared<Rwsem<Loom, S>>;

fn shared<S: Series>() -> Arc<Both<S>> {
    Shared::new(<Rwsem<Loom, S> as RawRwLock>::new())
}

fn write<S: Series>(shared: &Both<S>) {
    shared.lock.write();
    shared.data.add();
    shared.lock.unlock_write();
}

fn read<S: Series>(shared: &Both<S>) {
    shared.lock.read();
    shared.data.get();
    shared.lock.unlock_read();
}

/// One thread for each letter: `w`rites, `r`eads, `d`owngrades.
fn threads<S: Series>(letters: &'static str) {
    let act = |letter, shared: &Both<S>| match letter {
        'w' => write(shared),
        'r' => read(shared),
        _ => {
            shared.lock.write();
            shared.data.add();
            shared.lock.downgrade();
            shared.data.get();
            shared.lock.unlock_read();
        }
    };
    let shared = shared::<S>();
    let mut letters = letters.chars();
    let mine = letters.next().expect("a letter");
    let others: Vec<_> = letters.map(|letter| shared.spawn(move |shared| act(letter, shared))).collect();
    act(mine, &shared);
    join_all(others);
    assert!(shared.lock.try_write(), "it is free");
    shared.lock.unlock_write();
}

fn asleep() -> Model {
    Model::new().oracle(OnCpu::Off)
}

#[test]
fn writers() {
    asleep().preemptions(5).check(|| threads::<Vanilla>("ww")).reaches(&[Event::Parked]);
    asleep().preemptions(5).check(|| threads::<NoSpin>("ww")).reaches(&[Event::Parked]);
    asleep().two_may_spin().check(|| threads::<Vanilla>("www")).reaches(&[Event::WokeHead]);
    asleep().two_may_spin().check(|| threads::<NoSpin>("www")).reaches(&[Event::WokeHead]);
    asleep().two_may_spin().check(|| threads::<Full>("www")).reaches(&[Event::WokeHead]);
}

#[test]
fn a_writer_and_a_reader() {
    asleep().preemptions(5).check(|| threads::<Vanilla>("wr")).reaches(&[Event::GrantedReaders]);
    asleep().preemptions(5).check(|| threads::<NoSpin>("wr")).reaches(&[Event::GrantedReaders]);
    asleep().preemptions(5).spurious().check(|| threads::<NoSpin>("rw"));
}

#[test]
fn a_writer_and_two_readers() {
    asleep().two_may_spin().check(|| threads::<Vanilla>("wrr")).reaches(&[Event::GrantedReaders]);
    asleep().two_may_spin().check(|| threads::<NoSpin>("wrr")).reaches(&[Event::GrantedReaders]);
}

#[test]
fn two_writers_and_a_reader() {
    let events = [Event::GrantedReaders, Event::WokeHead];
    asleep().two_may_spin().check(|| threads::<Vanilla>("wwr")).reaches(&events);
    asleep().two_may_spin().check(|| threads::<NoSpin>("wwr")).reaches(&events);
    asleep().two_may_spin().check(|| threads::<Full>("wwr")).reaches(&events);
}

#[test]
fn a_downgrade() {
    let granted = [Event::GrantedReaders];
    asleep().preemptions(5).check(|| threads::<Vanilla>("dr")).reaches(&granted);
    asleep().two_may_spin().check(|| threads::<Full>("drw")).reaches(&granted);
}

#[test]
fn spinners() {
    let spin = Model::new().two_may_spin().oracle(OnCpu::Running);
    spin.check(|| threads::<Full>("ww")).reaches(&[Event::SpinAcquired]);
    spin.check(|| threads::<Full>("wr"));
    spin.three_may_spin().check(|| threads::<Full>("www")).reaches(&[Event::SpinAcquired]);
    spin.three_may_spin().check(|| threads::<Full>("wwr"));
}

/// Each switch on its own, at least where no thread spins.
#[test]
fn each_patch_alone() {
    asleep().preemptions(2).check(|| threads::<Patches<true, false, false, false, false, false>>("wr"));
    asleep().two_may_spin().check(|| threads::<Patches<false, true, false, false, false, false>>("wwr"));
    asleep().two_may_spin().check(|| threads::<Patches<false, false, false, false, false, true>>("wwr"));
}

#[test]
fn trying() {
    asleep().preemptions(5).check(|| {
        let shared = shared::<Full>();
        let other = shared.spawn(|shared| {
            if shared.lock.try_write() {
                shared.data.add();
                shared.lock.unlock_write();
            }
            if shared.lock.try_read() {
                shared.data.get();
                shared.lock.unlock_read();
            }
        });
        write(&shared);
        other.join().unwrap();
    });
}

#[test]
fn mutant_rwsem_no_wakes() {
    rejected!("mutant_rwsem_no_wakes", breaks("rwsem_2013.S3"), "deadlock", || {
        asleep().fault(Fault::NoWakes).check(|| threads::<Vanilla>("wr"));
    });
}

/// A writer says that it sleeps and looks at the count; a release changes the count and looks who sleeps.
/// Neither sees the other if no barrier stands in between.
#[test]
fn mutant_rwsem_no_full_fence() {
    rejected!(
        "mutant_rwsem_no_full_fence",
        breaks_rule("of the rwsem of 3.12: a writer announces its sleep before it reads the count"),
        "deadlock",
        || {
            asleep().two_may_spin().fault(Fault::NoFullFence).check(|| threads::<Vanilla>("www"));
        }
    );
}

/// Neither the release publishes nor the acquisition sees.
#[test]
fn mutant_rwsem_relaxed_count() {
    rejected!(
        "mutant_rwsem_relaxed_count",
        breaks_rule("of the rwsem: the count is AcqRel"),
        "Causality violation",
        || {
            asleep()
                .fault(Fault::Relaxed(|op| op.is(Kind::FetchAdd, AcqRel)))
                .check(|| threads::<Vanilla>("wr"));
        }
    );
}

/// A reader that was let in enters without having seen who let it in.
#[test]
fn mutant_rwsem_relaxed_grant() {
    rejected!(
        "mutant_rwsem_relaxed_grant",
        breaks_rule("of the rwsem: a grant is ordered"),
        "Causality violation",
        || {
            let relaxed = Fault::Relaxed(|op| op.kind == Kind::Swap && op.value == 0);
            asleep().preemptions(5).fault(relaxed).check(|| threads::<Vanilla>("wr"));
        }
    );
}
