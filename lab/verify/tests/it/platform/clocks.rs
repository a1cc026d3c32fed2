//! `Clocks`: time.

use spinpark_platform::{Clock, Clocks, NS_PER_SEC, Platform};

use super::machine::{Contract, Machine};

impl<M: Machine> Contract<M> {
    pub(crate) fn time_does_not_go_back() {
        let before = M::P::now(Clock::Monotonic);
        M::pass(1_000);
        assert!(M::P::now(Clock::Monotonic) >= before + 1_000);
        assert!(M::P::TUNING.spin_ns < NS_PER_SEC);
    }
}
