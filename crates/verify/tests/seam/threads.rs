//! What a thread is called, what it remembers, and time.

use spinpark_platform::{Clock, NS_PER_SEC, Platform};

use crate::machine::{Contract, Machine};

impl<M: Machine> Contract<M> {
    pub(crate) fn tokens_name_threads() {
        let mine = M::P::thread_token();
        assert!(mine != 0 && mine < 1 << 22);
        assert_eq!(mine, M::P::thread_token());
        let other = M::spawn(move || {
            let token = M::P::thread_token();
            assert!(token != mine && token != 0 && token < 1 << 22);
        });
        M::join(other);
        assert_eq!(M::P::generation(), 0, "there was no fork");
    }

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

    pub(crate) fn time_does_not_go_back() {
        let before = M::P::now(Clock::Monotonic);
        M::pass(1_000);
        assert!(M::P::now(Clock::Monotonic) >= before + 1_000);
        assert!(M::P::TUNING.spin_ns < NS_PER_SEC);
    }
}
