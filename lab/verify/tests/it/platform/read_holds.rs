//! `ReadHolds`: the read locks that a thread remembers.

use spinpark_platform::ReadHolds;

use super::machine::{Contract, Machine};

impl<M: Machine> Contract<M> {
    /// `false` is certain; `true` is allowed when more locks are held than a platform remembers.
    pub(crate) fn read_locks_are_remembered() {
        let locks: Vec<usize> = (1..=20).map(|lock| lock * 64).collect();
        assert!(!M::P::may_hold_read(locks[0]));
        M::P::read_acquired(locks[0]);
        M::P::read_acquired(locks[0]);
        M::P::read_released(locks[0]);
        assert!(M::P::may_hold_read(locks[0]), "held twice, given up once");
        let other = {
            let lock = locks[0];
            M::spawn(move || assert!(!M::P::may_hold_read(lock), "another thread's"))
        };
        M::join(other);
        M::P::read_released(locks[0]);
        assert!(!M::P::may_hold_read(locks[0]));
        for order in [locks.clone(), locks.iter().rev().copied().collect()] {
            locks.iter().for_each(|&lock| M::P::read_acquired(lock));
            assert!(locks.iter().all(|&lock| M::P::may_hold_read(lock)));
            order.iter().for_each(|&lock| M::P::read_released(lock));
            assert!(!locks.iter().any(|&lock| M::P::may_hold_read(lock)));
        }
    }
}
