//! `pthread_spin_*`.

use core::ffi::c_int;

use spinpark_recorder::format::{Kind, Role};
use spinpark_recorder::{LockCall, Site, word};

use crate::function::Function;
use crate::instrument::{self, LockFunctions, POSIX};
use crate::mutex::functions;

const FUNCTIONS: LockFunctions = LockFunctions {
    try_it: Function::pthread_spin_trylock,
    lock: Function::pthread_spin_lock,
    codes: POSIX,
    is_mutex: false,
};

#[inline(always)]
fn call(address: usize, site: Site) -> LockCall {
    LockCall { address: word(address), role: Role::Write, kind: |_| Kind::Spin, site }
}

functions! {
    lock(lock, b, c, d, site) = instrument::lock::<DETAIL>(&FUNCTIONS, [lock, b, c, d], call(lock, site));
    try_lock(lock, b, c, d, site) = instrument::try_lock::<DETAIL>(&FUNCTIONS, [lock, b, c, d], call(lock, site));
    unlock(lock, _b, _c, _d, site) =
        instrument::unlock::<DETAIL>(Function::pthread_spin_unlock, call(lock, site));
}
