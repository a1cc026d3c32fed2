//! `Threads`: what a thread is called.

use spinpark_platform::Threads;

use super::machine::{Contract, Machine};

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
}
