//! Models of the MCS lock as a mutex by itself, and mutants.

use loom::thread::yield_now;
use spinpark_classics::RawLock;
use spinpark_classics::mcs_mutex::McsMutex;
use spinpark_classics::tas::{TasLock, TestAndTestAndSet};
use spinpark_platform::Ordering::{AcqRel, Acquire, Release};
use spinpark_verify::mutants::mcs_mutex::{
    self as mutant, ClearsLate, ForgetsTheNext, ReleasesUnlinked, Right,
};
use spinpark_verify::platform::{Fault, Kind, Loom, lead_in};
use spinpark_verify::{Model, Shared, breaks_rule, join_all, rejected, sections};

/// Nodes are destroyed (and checked) as soon as `lock` returns.
#[test]
fn sections_exclude_each_other() {
    Model::new().preemptions(5).check(|| sections::<McsMutex<Loom>>(2, 1));
    Model::new().preemptions(3).check(|| sections::<McsMutex<Loom>>(2, 2));
    Model::new().two_may_spin().check(|| sections::<McsMutex<Loom>>(3, 1));
}

/// The waiter that came first is served first, and a try does not get past it.
fn in_order<L: RawLock + 'static>() {
    Model::new().two_may_spin().check(|| {
        let shared = Shared::new(L::new());
        let others = lead_in(|| {
            shared.lock.lock();
            [0, 1].map(|place| {
                let waiter = shared.spawn(move |shared| {
                    shared.lock.lock();
                    assert_eq!(shared.data.get(), place, "out of order");
                    shared.data.add();
                    shared.lock.unlock();
                });
                yield_now(); // it queues
                waiter
            })
        });
        assert!(!shared.lock.try_lock());
        shared.lock.unlock();
        join_all(others);
    });
}

#[test]
fn first_come_first_served() {
    in_order::<McsMutex<Loom>>();
}

#[test]
fn mutant_a_lock_without_order() {
    rejected!(
        "mutant_a_lock_without_order",
        breaks_rule("of the MCS mutex: order of arrival"),
        "out of order",
        in_order::<TasLock<Loom, TestAndTestAndSet>>
    );
}

fn with_fault(fault: Fault) {
    Model::new().preemptions(3).fault(fault).check(|| sections::<McsMutex<Loom>>(2, 2));
}

macro_rules! without_order {
    ($($name:ident: $kind:ident $order:ident,)*) => {$(
        #[test]
        fn $name() {
            rejected!(stringify!($name), breaks_rule("of the MCS mutex: its orderings"), "Causality violation", || {
                with_fault(Fault::Relaxed(|op| op.is(Kind::$kind, $order)));
            });
        }
    )*};
}

without_order! {
    mutant_the_fast_path_does_not_acquire: CompareExchange Acquire,
    mutant_the_last_release_does_not_release: CompareExchange Release,
    mutant_the_wait_does_not_acquire: Load Acquire,
    mutant_the_grant_does_not_release: Store Release,
    mutant_the_swap_orders_nothing: Swap AcqRel,
}

#[test]
fn the_copy_is_right() {
    Model::new().preemptions(3).check(|| sections::<mutant::McsMutex<Loom, Right>>(2, 2));
}

/// MX1: the waiter links itself late, and is never granted the lock.
#[test]
fn mutant_a_release_does_not_wait_for_the_link() {
    rejected!(
        "mutant_a_release_does_not_wait_for_the_link",
        breaks_rule("MX1 of the MCS mutex"),
        "exceeded maximum number of branches",
        || {
            Model::new().check(|| sections::<mutant::McsMutex<Loom, ReleasesUnlinked>>(2, 1));
        }
    );
}

/// The next waiter has linked itself in between, and its link is gone.
#[test]
fn mutant_the_link_is_cleared_late() {
    rejected!(
        "mutant_the_link_is_cleared_late",
        breaks_rule("MX1 of the MCS mutex"),
        "exceeded maximum number of branches",
        || {
            Model::new().check(|| sections::<mutant::McsMutex<Loom, ClearsLate>>(3, 1));
        }
    );
}

/// MX1: the thread that takes its node out is the last one that knows the waiter behind it.
#[test]
fn mutant_the_next_waiter_is_forgotten() {
    rejected!(
        "mutant_the_next_waiter_is_forgotten",
        breaks_rule("MX1 of the MCS mutex"),
        "exceeded maximum number of branches",
        || {
            Model::new().check(|| sections::<mutant::McsMutex<Loom, ForgetsTheNext>>(3, 1));
        }
    );
}
