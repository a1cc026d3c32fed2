//! Models of the spinner queue.

use std::sync::Arc;

use loom::thread;
use spinpark_classics::osq::Osq;
use spinpark_verify::platform::Loom;
use spinpark_verify::{Guarded, Model};

/// Every thread enters and passes the position on; `patience` is how often it polls before it leaves.
fn enter_all(patience: &'static [u32]) {
    let shared = Arc::new((Osq::<Loom, 3>::new(), Guarded::new()));
    let enter = |(queue, data): &(Osq<Loom, 3>, Guarded), mut polls: u32| {
        let keep_spinning = || {
            polls = polls.saturating_sub(1);
            polls > 0
        };
        // O2: the data is the head's alone, and the queue orders one head after the other.
        queue.enter(keep_spinning).map(|_spot| data.add());
    };
    let others: Vec<_> = patience[1..]
        .iter()
        .map(|&polls| {
            let shared = Arc::clone(&shared);
            thread::spawn(move || enter(&shared, polls))
        })
        .collect();
    enter(&shared, patience[0]);
    for other in others {
        other.join().unwrap();
    }
    assert!(shared.0.is_empty(), "a slot was left in the queue");
}

/// Polls for as long as it takes.
const STAYS: u32 = u32::MAX;
/// Leaves at the first poll.
const LEAVES: u32 = 1;

#[test]
fn spinners_that_stay_and_that_leave() {
    let two = Model::new().preemptions(4);
    two.check(|| enter_all(&[STAYS, STAYS]));
    two.check(|| enter_all(&[STAYS, LEAVES]));
    let three = Model::new().two_may_spin();
    three.check(|| enter_all(&[STAYS, STAYS, STAYS]));
    three.check(|| enter_all(&[STAYS, LEAVES, STAYS])); // in the middle
    three.check(|| enter_all(&[STAYS, LEAVES, LEAVES])); // two neighbours
}

#[test]
fn a_slot_is_used_again() {
    Model::new().preemptions(3).check(|| {
        let shared = Arc::new((Osq::<Loom, 2>::new(), Guarded::new()));
        let other = {
            let shared = Arc::clone(&shared);
            thread::spawn(move || {
                for _ in 0..2 {
                    shared.0.enter(|| false).map(|_spot| shared.1.add());
                }
            })
        };
        for _ in 0..2 {
            shared.0.enter(|| true).map(|_spot| shared.1.add());
        }
        other.join().unwrap();
        assert!(shared.0.is_empty(), "a slot was left in the queue");
    });
}
