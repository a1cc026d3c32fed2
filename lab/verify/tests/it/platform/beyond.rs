//! What Loom does beyond the contract.

use std::sync::Arc;

use spinpark_platform::AtomicU32;
use spinpark_platform::Ordering::Relaxed;
use spinpark_verify::{Guarded, Model, breaks_rule, rejected};

use super::machine::{OnLoom, Word};

/// Beyond the contract, Loom reports a cell whose accesses nothing orders.
#[test]
fn loom_reports_a_race() {
    rejected!(
        "loom_reports_a_race",
        breaks_rule("of the platform: accesses to a cell are ordered"),
        "Causality violation",
        || {
            Model::new().check(|| {
                let data = Arc::new(Guarded::new());
                let other = {
                    let data = Arc::clone(&data);
                    loom::thread::spawn(move || {
                        data.add();
                    })
                };
                data.add();
                other.join().unwrap();
            });
        }
    );
}

/// Two stores and a read-modify-write on one word: the last one in place is read, never one that was
/// overwritten.
#[test]
fn loom_does_not_lose_a_store_to_an_older_swap() {
    Model::new().preemptions(3).check(|| {
        let word = Arc::new(Word::<OnLoom>::new(0));
        let other = {
            let word = Arc::clone(&word);
            loom::thread::spawn(move || {
                word.swap(1, Relaxed);
            })
        };
        word.store(2, Relaxed);
        let seen = word.swap(3, Relaxed);
        other.join().unwrap();
        let last = word.swap(4, Relaxed);
        assert!(matches!((seen, last), (2, 3) | (1, 3) | (2, 1)), "{seen} {last}");
    });
}
