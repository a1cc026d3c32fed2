//! Delays instead of a recording ([`spinpark_recorder::delay`]): the functions that the table has then.
//!
//! | function                       | points at the lock                                      |
//! |--------------------------------|---------------------------------------------------------|
//! | locks, timed or not            | before the attempt; inside, if it was acquired            |
//! | tries                          | the same; retry, if it was not                            |
//! | unlocks                        | after the release                                          |
//! | waits for condition variables  | inside: the mutex is acquired at the return                |
//! | signals, broadcasts            | before the wake-up                                         |
//! | semaphores                     | as locks; a post is a wake-up, and a release                |
//! | futexes by `syscall`           | before the wake-up                                         |
//!
//! Whether a lock is one of the plan is asked before it is acquired: the first time, that takes longer. All else
//! goes to the next implementation, and so do all functions that are not here.

use core::ffi::c_int;

use spinpark_recorder::Site;
use spinpark_recorder::delay::Point;

use crate::arch;
use crate::function::{COUNT, Function};
use crate::instrument::{C11, POSIX, ReturnCodes};
use crate::mutex::functions_of_one_shape;
use crate::next;
use crate::recorder::RECORDER;
use crate::syscall::{self, FutexUse};
use crate::table::Ours;

// `table` finds them by this name: it is below.
core::arch::global_asm!(
    ".hidden spinpark_profiler_delays",
    ".globl spinpark_profiler_delays",
    ".set spinpark_profiler_delays, {forms}",
    forms = sym FORMS,
);

static FORMS: [Option<Ours>; COUNT] = {
    let mut forms: [Option<Ours>; COUNT] = [None; COUNT];
    macro_rules! set {
        ($($name:ident)*) => { $(forms[Function::$name as usize] = Some($name);)* };
    }
    set! {
        pthread_mutex_init pthread_mutex_destroy pthread_mutex_lock pthread_mutex_trylock pthread_mutex_timedlock
        pthread_mutex_clocklock pthread_mutex_unlock
        pthread_rwlock_init pthread_rwlock_destroy pthread_rwlock_rdlock pthread_rwlock_tryrdlock
        pthread_rwlock_wrlock pthread_rwlock_trywrlock pthread_rwlock_unlock pthread_rwlock_timedrdlock
        pthread_rwlock_timedwrlock pthread_rwlock_clockrdlock pthread_rwlock_clockwrlock
        pthread_cond_init pthread_cond_destroy pthread_cond_wait pthread_cond_timedwait pthread_cond_clockwait
        pthread_cond_signal pthread_cond_broadcast
        mtx_init mtx_destroy mtx_lock mtx_trylock mtx_timedlock mtx_unlock
        cnd_init cnd_destroy cnd_wait cnd_timedwait cnd_signal cnd_broadcast
        dlclose
        old_pthread_cond_init old_pthread_cond_destroy old_pthread_cond_wait old_pthread_cond_timedwait
        old_pthread_cond_signal old_pthread_cond_broadcast
        sem_wait sem_timedwait sem_clockwait sem_post sem_trywait
        pthread_spin_lock pthread_spin_trylock pthread_spin_unlock
        syscall
    }
    forms
};

/// An attempt to acquire a lock; `is_try`: it does not wait.
///
/// # Safety
///
/// As to call `function` with these arguments; the site is that of the caller.
#[inline(always)]
unsafe fn attempt(
    function: Function,
    codes: &ReturnCodes,
    is_try: bool,
    arguments: [usize; 4],
    site: Site,
) -> c_int {
    let is_delayed = RECORDER.is_delayed(arguments[0], site);
    if is_delayed {
        RECORDER.reach(Point::Before);
    }
    // SAFETY: the caller's promise.
    let result = unsafe { next::call(function, arguments) };
    if codes.is_acquired(result) {
        RECORDER.hold_one_more();
        if is_delayed {
            RECORDER.reach(Point::Inside);
        }
    } else if is_try && is_delayed && result == codes.busy {
        RECORDER.reach(Point::Retry);
    }
    result
}

/// A release.
///
/// # Safety
///
/// As to call `function` with this object.
#[inline(always)]
unsafe fn release(function: Function, lock: usize) -> c_int {
    // Before: afterwards another lock may be there.
    let is_delayed = RECORDER.is_known_delayed(lock);
    // SAFETY: the caller's object.
    let result = unsafe { next::call(function, [lock, 0, 0, 0]) };
    if result == 0 {
        RECORDER.let_go_of_one();
        if is_delayed {
            RECORDER.reach(Point::After);
        }
    }
    result
}

/// A wait for a condition variable. Its mutex is acquired at the return, however the wait ended; a thread that is
/// cancelled does not return.
///
/// # Safety
///
/// As to call `function` with these arguments.
#[inline(always)]
unsafe fn wait(function: Function, arguments: [usize; 4], site: Site) -> c_int {
    let [cond, mutex, ..] = arguments;
    RECORDER.is_delayed(cond, site);
    let is_delayed = RECORDER.is_delayed(mutex, site);
    // SAFETY: the caller's arguments.
    let result = unsafe { next::call(function, arguments) };
    if is_delayed {
        RECORDER.reach(Point::Inside);
    }
    result
}

/// A wake-up of threads that wait at `at`.
#[inline(always)]
fn before_wake(at: usize, site: Site) {
    if RECORDER.is_delayed(at, site) {
        RECORDER.reach(Point::Wake);
    }
}

/// A signal or broadcast.
///
/// # Safety
///
/// As to call `function` with this condition variable.
#[inline(always)]
unsafe fn signal(function: Function, cond: usize, site: Site) -> c_int {
    before_wake(cond, site);
    // SAFETY: the caller's condition variable.
    unsafe { next::call(function, [cond, 0, 0, 0]) }
}

/// A post.
///
/// # Safety
///
/// As to call `sem_post` with these arguments.
#[inline(always)]
unsafe fn post(arguments: [usize; 4], site: Site) -> c_int {
    let is_delayed = RECORDER.is_delayed(arguments[0], site);
    if is_delayed {
        RECORDER.reach(Point::Wake);
    }
    // SAFETY: the caller's arguments.
    let result = unsafe { next::call(Function::sem_post, arguments) };
    if is_delayed && result == 0 {
        RECORDER.reach(Point::After);
    }
    result
}

/// A wait for a semaphore, or a try. It says by `errno` why it failed.
///
/// # Safety
///
/// As to call `function` with these arguments.
#[inline(always)]
unsafe fn take(function: Function, is_try: bool, arguments: [usize; 4], site: Site) -> c_int {
    let is_delayed = RECORDER.is_delayed(arguments[0], site);
    if is_delayed {
        RECORDER.reach(Point::Before);
    }
    // SAFETY: the caller's arguments.
    let result = unsafe { next::call(function, arguments) };
    match result {
        0 if is_delayed => RECORDER.reach(Point::Inside),
        -1 if is_delayed && is_try => RECORDER.reach(Point::Retry),
        _ => {}
    }
    result
}

/// A creation.
///
/// # Safety
///
/// As to call `function` with these arguments.
unsafe fn create(function: Function, arguments: [usize; 4], site: Site) -> c_int {
    // SAFETY: the caller's arguments.
    let result = unsafe { next::call(function, arguments) };
    if result == 0 {
        RECORDER.meet_created(arguments[0], site);
    }
    result
}

/// A destruction.
///
/// # Safety
///
/// As to call `function` with this object.
unsafe fn destroy(function: Function, object: usize) -> c_int {
    // Before: afterwards the memory may be another object's at once. One that is in use (EBUSY) is met again.
    RECORDER.forget_delayed(object);
    // SAFETY: the caller's object.
    unsafe { next::call(function, [object, 0, 0, 0]) }
}

macro_rules! locks {
    ($codes:expr, $is_try:literal: $($name:ident)*) => { functions_of_one_shape! { $(
        $name(a, b, c, d, site) = attempt(Function::$name, &$codes, $is_try, [a, b, c, d], site);
    )* } };
}

macro_rules! others {
    ($body:ident: $($name:ident)*) => { functions_of_one_shape! { $(
        $name(a, b, c, d, site) = $body(Function::$name, [a, b, c, d], site);
    )* } };
}

macro_rules! of_object {
    ($body:ident: $($name:ident)*) => { functions_of_one_shape! { $(
        $name(a, _b, _c, _d, _site) = $body(Function::$name, a);
    )* } };
}

locks! { POSIX, false:
    pthread_mutex_lock pthread_mutex_timedlock pthread_mutex_clocklock
    pthread_rwlock_rdlock pthread_rwlock_wrlock pthread_rwlock_timedrdlock pthread_rwlock_timedwrlock
    pthread_rwlock_clockrdlock pthread_rwlock_clockwrlock pthread_spin_lock
}
locks! { POSIX, true:
    pthread_mutex_trylock pthread_rwlock_tryrdlock pthread_rwlock_trywrlock pthread_spin_trylock
}
locks! { C11, false: mtx_lock mtx_timedlock }
locks! { C11, true: mtx_trylock }

of_object! { release: pthread_mutex_unlock pthread_rwlock_unlock mtx_unlock pthread_spin_unlock }
of_object! { destroy:
    pthread_mutex_destroy pthread_rwlock_destroy pthread_cond_destroy mtx_destroy cnd_destroy
    old_pthread_cond_destroy
}
others! { create:
    pthread_mutex_init pthread_rwlock_init pthread_cond_init mtx_init cnd_init old_pthread_cond_init
}
others! { wait:
    pthread_cond_wait pthread_cond_timedwait pthread_cond_clockwait cnd_wait cnd_timedwait
    old_pthread_cond_wait old_pthread_cond_timedwait
}

functions_of_one_shape! {
    pthread_cond_signal(cond, _b, _c, _d, site) = signal(Function::pthread_cond_signal, cond, site);
    pthread_cond_broadcast(cond, _b, _c, _d, site) = signal(Function::pthread_cond_broadcast, cond, site);
    cnd_signal(cond, _b, _c, _d, site) = signal(Function::cnd_signal, cond, site);
    cnd_broadcast(cond, _b, _c, _d, site) = signal(Function::cnd_broadcast, cond, site);
    old_pthread_cond_signal(cond, _b, _c, _d, site) = signal(Function::old_pthread_cond_signal, cond, site);
    old_pthread_cond_broadcast(cond, _b, _c, _d, site) = signal(Function::old_pthread_cond_broadcast, cond, site);
    sem_wait(a, b, c, d, site) = take(Function::sem_wait, false, [a, b, c, d], site);
    sem_timedwait(a, b, c, d, site) = take(Function::sem_timedwait, false, [a, b, c, d], site);
    sem_clockwait(a, b, c, d, site) = take(Function::sem_clockwait, false, [a, b, c, d], site);
    sem_trywait(a, b, c, d, site) = take(Function::sem_trywait, true, [a, b, c, d], site);
    sem_post(a, b, c, d, site) = post([a, b, c, d], site);
    dlclose(handle, _b, _c, _d, _site) = unload(handle);
}

/// `dlclose`.
///
/// # Safety
///
/// As its namesake.
unsafe fn unload(handle: usize) -> c_int {
    // SAFETY: the caller's argument.
    let result = unsafe { next::call(Function::dlclose, [handle, 0, 0, 0]) };
    RECORDER.forget_modules();
    result
}

/// `syscall`: it gathers the arguments.
///
/// # Safety
///
/// As its namesake.
#[unsafe(naked)]
unsafe extern "C" fn syscall(_: usize, _: usize, _: usize, _: usize, _: Site) -> c_int {
    core::arch::naked_asm!(
        ".cfi_startproc",
        arch::call_with_arguments!(),
        ".cfi_endproc",
        call = sym delayed_syscall,
    )
}

/// # Safety
///
/// As to make the call; the site is that of the caller.
unsafe extern "C" fn delayed_syscall(arguments: &[usize; 7], site: Site) -> isize {
    let address = arguments[1];
    match syscall::futex_use(arguments) {
        Some(FutexUse::Wake { .. }) => before_wake(address, site),
        Some(FutexUse::Wait { .. }) => {
            RECORDER.is_delayed(address, site);
        }
        None => {}
    }
    // SAFETY: the caller's arguments.
    unsafe { next::call_wide(Function::syscall as usize, arguments) }
}
