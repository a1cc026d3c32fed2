//! Watching one acquisition or release, whatever kind of lock it is: what the modules of the kinds have in
//! common.

use core::ffi::c_int;

use libc::{EBUSY, EOWNERDEAD, ETIMEDOUT};
use spinpark_recorder::format::{Detail, Kind, Role};
use spinpark_recorder::{
    Blocking, FinishedWait, HandOff, LeftOut, LockCall, Lot, Releasing, ThreadState, address_of,
};

use crate::function::Function;
use crate::phases::{RECORDER, look_for_wishes};
use crate::single_threaded::is_alone;
use crate::table::{CONTENDED, FULL, SAMPLED};
use crate::{arch, mutex_layout, next, phases};

/// What the functions of a family answer.
pub(crate) struct ReturnCodes {
    pub(crate) busy: c_int,
    timed_out: c_int,
    /// Besides 0: acquired, but its owner had died.
    also_acquired: c_int,
}

/// pthread's codes.
pub(crate) const POSIX: ReturnCodes =
    ReturnCodes { busy: EBUSY, timed_out: ETIMEDOUT, also_acquired: EOWNERDEAD };
/// C11's: `thrd_busy`, `thrd_timedout`.
pub(crate) const C11: ReturnCodes = ReturnCodes { busy: 1, timed_out: 4, also_acquired: 0 };

impl ReturnCodes {
    #[inline(always)]
    pub(crate) fn is_acquired(&self, result: c_int) -> bool {
        result == 0 || result == self.also_acquired
    }
}

/// The next implementation's functions that acquire a lock.
pub(crate) struct LockFunctions {
    pub(crate) try_it: Function,
    pub(crate) lock: Function,
    pub(crate) codes: ReturnCodes,
    /// Then glibc's have their owner's thread id in a known place.
    pub(crate) is_mutex: bool,
}

/// Gets a lock.
///
/// # Safety
///
/// As to call the functions of `functions` with these arguments; the call's site is that of the caller.
#[inline(always)]
pub(crate) unsafe fn lock<const DETAIL: u32>(
    functions: &LockFunctions,
    arguments: [usize; 4],
    call: LockCall,
) -> c_int {
    if functions.is_mutex && mutex_layout::is_special(call.address) {
        // SAFETY: the caller's promise.
        return unsafe { lock_special::<DETAIL>(functions, arguments, call) };
    }
    if DETAIL != FULL
        && functions.is_mutex
        && mutex_layout::seems_free(call.address)
        && !RECORDER.is_hot(call.address)
    {
        // SAFETY: the caller's arguments.
        let result = unsafe { next::call(functions.lock, arguments) };
        if DETAIL == SAMPLED && functions.codes.is_acquired(result) {
            acquired_at_once::<DETAIL>(call);
        }
        return result;
    }
    if DETAIL == CONTENDED && !RECORDER.is_hot(call.address) {
        // Another process may have one that is shared.
        if is_alone() && !(is_rwlock(functions) && mutex_layout::is_shared_rwlock(call.address)) {
            // SAFETY: the caller's arguments.
            return unsafe { next::call(functions.lock, arguments) };
        }
        // SAFETY: the caller's arguments; a try has the first of them.
        let result = unsafe { next::call(functions.try_it, arguments) };
        if result == functions.codes.busy {
            // SAFETY: the caller's promise.
            return unsafe { wait::<DETAIL>(functions, arguments, call) };
        }
        return result;
    }
    if DETAIL == CONTENDED {
        RECORDER.turn();
        // SAFETY: the caller's promise.
        return unsafe { lock_hot(functions, arguments, call) };
    }
    if DETAIL == FULL {
        // SAFETY: the caller's promise.
        return unsafe { lock_noted::<DETAIL>(functions, arguments, call) };
    }
    // SAFETY: the caller's arguments; a try has the first of them.
    let result = unsafe { next::call(functions.try_it, arguments) };
    if functions.codes.is_acquired(result) {
        acquired_at_once::<DETAIL>(call);
    } else if result == functions.codes.busy {
        // SAFETY: the caller's promise.
        return unsafe { wait::<DETAIL>(functions, arguments, call) };
    }
    result
}

/// Gets a lock that was waited for before. A try that fails would take the line of the lock from its holder
/// for nothing: so one that is seen to be another thread's is waited for at once.
///
/// # Safety
///
/// As [`lock`].
#[inline(always)]
pub(crate) unsafe fn lock_hot(functions: &LockFunctions, arguments: [usize; 4], call: LockCall) -> c_int {
    if RECORDER.is_light() {
        // SAFETY: the caller's promise.
        return unsafe { lock_light(functions, arguments, call) };
    }
    if functions.is_mutex
        && mutex_layout::owner_word(call.address).is_some_and(|owner| RECORDER.is_another(owner))
    {
        // SAFETY: the caller's promise.
        return unsafe { wait::<CONTENDED>(functions, arguments, call) };
    }
    if !RECORDER.leaves_out(call.address) {
        // SAFETY: the caller's promise.
        return unsafe { lock_noted::<CONTENDED>(functions, arguments, call) };
    }
    if functions.is_mutex && mutex_layout::is_awaited(call.address).is_some() {
        RECORDER.skip_next();
    }
    let was_free = RECORDER.is_awaited_and_free(call.address);
    // SAFETY: the caller's arguments; a try has the first of them.
    let result = unsafe { next::call(functions.try_it, arguments) };
    if result == functions.codes.busy {
        RECORDER.was_not_free(false);
        // SAFETY: the caller's promise.
        return unsafe { wait::<CONTENDED>(functions, arguments, call) };
    }
    if was_free {
        RECORDER.barged(call.address);
    }
    note_passed(functions, result, call);
    result
}

/// The thread has the mutex, and leaves that out: if it waits for another one with it, that may be a
/// deadlock.
#[inline(always)]
fn note_passed(functions: &LockFunctions, result: c_int, call: LockCall) {
    if result == 0 && matches!(functions.lock, Function::pthread_mutex_lock) {
        RECORDER.passed(call.address);
    }
}

/// Gets a lock that was waited for before, in a light span: what is done here is what the lock itself does,
/// if it is free. Its line is fetched for writing, and looked at then: to read it first would fetch it twice.
///
/// # Safety
///
/// As [`lock`].
#[inline(always)]
unsafe fn lock_light(functions: &LockFunctions, arguments: [usize; 4], call: LockCall) -> c_int {
    let seems_free = match functions.is_mutex {
        true => {
            arch::fetch(call.address);
            Some(mutex_layout::seems_free(call.address))
        }
        false if matches!(functions.lock, Function::pthread_spin_lock) => None,
        false => {
            arch::fetch(call.address);
            mutex_layout::rwlock_seems_free(call.address, call.role)
        }
    };
    let result = match seems_free {
        Some(true) => {
            // SAFETY: the caller's arguments.
            let result = unsafe { next::call(functions.lock, arguments) };
            note_passed(functions, result, call);
            return result;
        }
        Some(false) => functions.codes.busy,
        // SAFETY: the caller's arguments; a try has the first of them.
        None => unsafe { next::call(functions.try_it, arguments) },
    };
    if result == functions.codes.busy {
        // SAFETY: the caller's promise.
        return unsafe { wait::<CONTENDED>(functions, arguments, call) };
    }
    result
}

/// Gets a lock, and notes that the thread has it. What is to be noted is looked up before.
///
/// # Safety
///
/// As [`lock`].
#[inline(never)]
unsafe fn lock_noted<const DETAIL: u32>(
    functions: &LockFunctions,
    arguments: [usize; 4],
    call: LockCall,
) -> c_int {
    // A thread that has no CPU from here on waits, if the lock is not free then.
    let start = if DETAIL == FULL { RECORDER.now() } else { 0 };
    // A forked child has inherited what its parent's threads have waited for.
    let (entered, start) = match RECORDER.enter() {
        // To begin a recording is not waiting, and begins its clock.
        None if DETAIL != CONTENDED => (enter_late(true), 0),
        entered => (entered, start),
    };
    let Some(own) = entered else {
        // SAFETY: the caller's arguments; a try has the first of them.
        let result = unsafe { next::call(functions.try_it, arguments) };
        if result == functions.codes.busy {
            // A forked child begins its recording with its first wait.
            // SAFETY: the caller's promise.
            return unsafe { wait::<DETAIL>(functions, arguments, call) };
        }
        return result;
    };
    let meter = RECORDER.meter(own);
    let prepared = RECORDER.prepare_call(own, &call, DETAIL == FULL);
    RECORDER.metered(own, meter, false);
    // SAFETY: the caller's arguments; a try has the first of them.
    let result = unsafe { next::call(functions.try_it, arguments) };
    if functions.codes.is_acquired(result) {
        let meter = RECORDER.meter_again(own, meter);
        RECORDER.acquired_at_once(own, &call, prepared, DETAIL == FULL);
        RECORDER.metered(own, meter, true);
    }
    RECORDER.leave();
    if result == functions.codes.busy {
        if DETAIL == CONTENDED {
            RECORDER.was_not_free(true);
        }
        // SAFETY: the caller's promise.
        return unsafe { wait_since::<DETAIL>(functions, arguments, call, start) };
    }
    result
}

/// Gets a mutex that is always glibc's (robust, and so on). It is not tried first: glibc's try leaves a
/// robust mutex that cannot be recovered locked. Whether it has to be waited for is what its lock word says
/// just before.
#[cold]
#[inline(never)]
unsafe fn lock_special<const DETAIL: u32>(
    functions: &LockFunctions,
    arguments: [usize; 4],
    call: LockCall,
) -> c_int {
    if mutex_layout::is_others(call.address) {
        // SAFETY: the caller's promise.
        return unsafe { wait::<DETAIL>(functions, arguments, call) };
    }
    // SAFETY: the caller's arguments.
    let result = unsafe { next::call(functions.lock, arguments) };
    if functions.codes.is_acquired(result) && (DETAIL != CONTENDED || RECORDER.is_hot(call.address)) {
        acquired_at_once::<DETAIL>(call);
    }
    result
}

/// A lock was acquired at once.
#[inline(always)]
fn acquired_at_once<const DETAIL: u32>(call: LockCall) {
    if DETAIL == SAMPLED && !RECORDER.is_hot(call.address) && RECORDER.count(call.address, call.role) {
        return;
    }
    if DETAIL == CONTENDED && RECORDER.is_light() {
        return;
    }
    if DETAIL == CONTENDED && RECORDER.leaves_out(call.address) {
        if RECORDER.is_awaited_and_free(call.address) {
            RECORDER.barged(call.address);
        }
        return;
    }
    note::<DETAIL>(call);
}

/// Notes a lock that was acquired at once.
#[inline(never)]
pub(crate) fn note<const DETAIL: u32>(call: LockCall) {
    // A forked child has inherited what its parent's threads have waited for.
    let entered = if DETAIL == CONTENDED { RECORDER.enter() } else { enter_late(true) };
    let Some(own) = entered else { return };
    match DETAIL {
        CONTENDED | FULL => {
            let prepared = RECORDER.prepare_call(own, &call, DETAIL == FULL);
            RECORDER.acquired_at_once(own, &call, prepared, DETAIL == FULL);
        }
        _ => RECORDER.count_or_sample(own, &call),
    }
    RECORDER.leave();
}

/// As [`Recorder::enter`](spinpark_recorder::Recorder::enter), for what a recording begins with if there is
/// none: a wait, or (`is_idle`) something else.
#[inline(always)]
pub(crate) fn enter_late(is_idle: bool) -> Option<&'static ThreadState> {
    match RECORDER.enter() {
        None if phases::late(is_idle) => RECORDER.enter(),
        entered => entered,
    }
}

/// Whether they are of a read-write lock.
#[inline(always)]
fn is_rwlock(functions: &LockFunctions) -> bool {
    matches!(functions.try_it, Function::pthread_rwlock_tryrdlock | Function::pthread_rwlock_trywrlock)
}

fn has_deadline(function: Function) -> bool {
    matches!(
        function,
        Function::pthread_mutex_timedlock
            | Function::pthread_mutex_clocklock
            | Function::pthread_rwlock_timedrdlock
            | Function::pthread_rwlock_clockrdlock
            | Function::pthread_rwlock_timedwrlock
            | Function::pthread_rwlock_clockwrlock
            | Function::mtx_timedlock
    )
}

/// A lock has to be waited for.
///
/// # Safety
///
/// As [`lock`].
#[inline(always)]
pub(crate) unsafe fn wait<const DETAIL: u32>(
    functions: &LockFunctions,
    arguments: [usize; 4],
    call: LockCall,
) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { wait_since::<DETAIL>(functions, arguments, call, 0) }
}

/// The same, since `start` (ticks); 0: since now.
///
/// # Safety
///
/// As [`lock`].
#[cold]
#[inline(never)]
unsafe fn wait_since<const DETAIL: u32>(
    functions: &LockFunctions,
    arguments: [usize; 4],
    call: LockCall,
    start: u64,
) -> c_int {
    // First of all: a thread's first entry takes its time.
    let mut start = if start == 0 { RECORDER.now() } else { start };
    let entered = RECORDER.enter().or_else(|| {
        let own = enter_late(false);
        // To begin a recording is not waiting.
        start = RECORDER.now();
        own
    });
    let Some(own) = entered else {
        // SAFETY: the caller's arguments.
        return unsafe { next::call(functions.lock, arguments) };
    };
    let is_rwlock = is_rwlock(functions);
    let owner = match (functions.is_mutex, is_rwlock) {
        (true, _) => Some(mutex_layout::owner(call.address)),
        // Which readers have it is not known.
        (_, true) => mutex_layout::writer_word(call.address).filter(|writer| *writer != 0),
        _ => None,
    };
    let is_shared = match is_rwlock {
        true => mutex_layout::is_shared_rwlock(call.address),
        false => functions.is_mutex && mutex_layout::is_shared(call.address),
    };
    let is_timed = has_deadline(functions.lock);
    let mut lot = Lot::None;
    if DETAIL == CONTENDED {
        if RECORDER.turn_to_wait(start) && RECORDER.is_hot(call.address) {
            if owner == Some(own.id()) && matches!((call.kind)(call.address), Kind::Recursive) {
                RECORDER.leave();
                // SAFETY: the caller's arguments.
                return unsafe { next::call(functions.lock, arguments) };
            }
            let light = RECORDER.begin_light(own, &call, (start, owner, is_timed));
            RECORDER.leave();
            // SAFETY: the caller's promise.
            return unsafe { wait_left_out(functions, arguments, call, light) };
        }
        match RECORDER.begin_left_out(own, &call, (start, owner, is_timed)) {
            Ok(left_out) => {
                RECORDER.leave();
                // SAFETY: the caller's promise.
                return unsafe { wait_left_out(functions, arguments, call, left_out) };
            }
            Err(asked) => lot = asked,
        }
    }
    let is_exact = DETAIL == FULL;
    let wait =
        RECORDER.begin_wait(own, &call, &Blocking { start, owner, is_exact, is_timed, is_shared, lot });
    // While it blocks, signal handlers may use locks.
    RECORDER.leave();
    // SAFETY: the caller's arguments.
    let result = unsafe { next::call(functions.lock, arguments) };
    let Some(own) = RECORDER.enter() else { return result };
    let ended = RECORDER.end_wait(own, &call, &wait);
    note_end(functions, result, own, &call, &ended);
    RECORDER.leave();
    look_for_wishes::<DETAIL>();
    result
}

/// The rest of a wait that is left out, unless it is long.
///
/// # Safety
///
/// As [`lock`].
#[inline(always)]
unsafe fn wait_left_out(
    functions: &LockFunctions,
    arguments: [usize; 4],
    call: LockCall,
    wait: LeftOut,
) -> c_int {
    // SAFETY: the caller's arguments.
    let result = unsafe { next::call(functions.lock, arguments) };
    let Some(own) = RECORDER.enter() else { return result };
    let owner = match functions.codes.is_acquired(result) {
        true => None,
        false if functions.is_mutex => Some(mutex_layout::owner(call.address)),
        false => Some(0),
    };
    if let Some(ended) = RECORDER.end_left_out(own, &call, wait, owner) {
        note_end(functions, result, own, &call, &ended);
        RECORDER.leave();
        look_for_wishes::<CONTENDED>();
        return result;
    }
    RECORDER.leave();
    note_passed(functions, result, call);
    result
}

/// A wait has ended with this result.
fn note_end(
    functions: &LockFunctions,
    result: c_int,
    own: &ThreadState,
    call: &LockCall,
    ended: &FinishedWait,
) {
    if functions.codes.is_acquired(result) {
        RECORDER.acquired(own, call, ended);
    } else if result == functions.codes.timed_out {
        RECORDER.gave_up(own, ended);
    }
}

/// Tries to get a lock, because the program does.
///
/// # Safety
///
/// As [`lock`].
#[inline(always)]
pub(crate) unsafe fn try_lock<const DETAIL: u32>(
    functions: &LockFunctions,
    arguments: [usize; 4],
    call: LockCall,
) -> c_int {
    // SAFETY: the caller's arguments.
    let result = unsafe { next::call(functions.try_it, arguments) };
    if functions.codes.is_acquired(result) {
        let is_light = DETAIL == CONTENDED && (!RECORDER.is_hot(call.address) || RECORDER.is_light());
        if is_light && !RECORDER.is_polling() {
            return result;
        }
        if !RECORDER.is_polling() || !polled(&call) {
            acquired_at_once::<DETAIL>(call);
        }
    } else if result == functions.codes.busy {
        failed(functions, call);
    }
    result
}

/// A try acquired a lock, in a thread that tries for one. Whether it is noted.
#[cold]
#[inline(never)]
fn polled(call: &LockCall) -> bool {
    let Some(own) = RECORDER.enter() else { return false };
    let is_noted = RECORDER.polled(own, call);
    RECORDER.leave();
    is_noted
}

#[cold]
#[inline(never)]
fn failed(functions: &LockFunctions, call: LockCall) {
    // A lock that is only tried for is waited for, too.
    if let Some(own) = enter_late(true) {
        let owner = functions.is_mutex.then(|| mutex_layout::owner(call.address));
        RECORDER.failed(own, &call, owner);
        RECORDER.leave();
    }
}

/// The lock itself: a spin lock has four bytes, and a call has it as a word.
#[inline(always)]
fn lock_of(unlock: Function, call: &LockCall) -> usize {
    match unlock {
        Function::pthread_spin_unlock => address_of(call.address),
        _ => call.address,
    }
}

/// Releases a lock. The role of the call is that in which wake-ups are counted if it is not known how it was
/// acquired.
///
/// # Safety
///
/// As to call `unlock` with this address; the call's site is that of the caller.
#[inline(always)]
pub(crate) unsafe fn unlock<const DETAIL: u32>(unlock: Function, call: LockCall) -> c_int {
    let arguments = [lock_of(unlock, &call), 0, 0, 0];
    // With `contended` only hot locks are noted, and once hot they stay hot; with `full` all are, by this
    // thread or another.
    let is_noted = DETAIL == FULL || DETAIL == SAMPLED && RECORDER.holds_anything();
    if !is_noted && !RECORDER.is_hot(call.address) {
        // SAFETY: the caller's object.
        return unsafe { next::call(unlock, arguments) };
    }
    if DETAIL == CONTENDED {
        let is_left_out = match unlock {
            _ if RECORDER.is_light() => RECORDER.passes_release(call.address),
            Function::pthread_spin_unlock => RECORDER.leaves_out_release(call.address, None, |_| None),
            Function::pthread_rwlock_unlock => RECORDER.leaves_out_release(call.address, None, |own| {
                mutex_layout::is_rwlock_awaited(call.address, own)
            }),
            _ => RECORDER.leaves_out_release(call.address, mutex_layout::owner_word(call.address), |_| {
                mutex_layout::is_awaited(call.address)
            }),
        };
        if is_left_out {
            // SAFETY: the caller's object.
            return unsafe { next::call(unlock, arguments) };
        }
    }
    // SAFETY: the caller's promise.
    unsafe { let_go(unlock, call) }
}

#[inline(never)]
unsafe fn let_go(unlock: Function, call: LockCall) -> c_int {
    let arguments = [lock_of(unlock, &call), 0, 0, 0];
    let Some(own) = RECORDER.enter() else {
        // SAFETY: the caller's object.
        return unsafe { next::call(unlock, arguments) };
    };
    let meter = RECORDER.meter(own);
    let mut releasing = RECORDER.release(own, call.address);
    let is_shared = matches!(unlock, Function::pthread_rwlock_unlock);
    let is_mutex = !is_shared && !matches!(unlock, Function::pthread_spin_unlock);
    if matches!(releasing, Releasing::Unknown) && is_mutex && mutex_layout::is_held_recursively(call.address)
    {
        releasing = Releasing::Again;
    }
    let is_hot = RECORDER.is_hot(call.address);
    // With `sampled`, locks without waiters are not noted as a rule.
    let is_odd = matches!(releasing, Releasing::Unknown) && (is_hot || RECORDER.detail() == Detail::Full);
    let unnoted = is_odd.then(|| Unnoted::new(own, &call));
    let role = unnoted.as_ref().map_or(Role::Write, |unnoted| unnoted.role);
    let mut hand_off = None;
    if is_hot {
        let is_awaited = match (is_shared, is_mutex) {
            (true, _) => mutex_layout::is_rwlock_awaited(call.address, own.id()),
            (_, true) => mutex_layout::is_awaited(call.address),
            _ => None,
        };
        let how = (is_shared, is_awaited == Some(true));
        hand_off = RECORDER.hand_off(own, &LockCall { role, ..call }, how, &releasing);
        RECORDER.begin_release(call.address);
    }
    RECORDER.metered(own, meter, true);
    // SAFETY: the caller's object.
    let result = unsafe { next::call(unlock, arguments) };
    let woke = is_hot && RECORDER.end_release();
    let meter = RECORDER.meter_again(own, meter);
    if result != 0 {
        RECORDER.kept(own, call.address, &releasing);
        if hand_off.is_some() {
            RECORDER.not_handed_off(call.address);
        }
    } else if let Releasing::Last(release) = &releasing {
        RECORDER.released(own, release, hand_off.map(|hand_off| (call.address, hand_off)));
    } else if let Some(unnoted) = unnoted {
        unnoted.released(own, &call, hand_off.as_ref());
    }
    if woke {
        let role = if let Releasing::Last(release) = &releasing { release.role() } else { role };
        RECORDER.woke(own, call.address, role);
    }
    RECORDER.metered(own, meter, false);
    RECORDER.leave();
    result
}

/// A lock that its thread has not noted: taken before any thread had waited for it; or by another thread, as
/// plain mutexes and readers' locks allow.
struct Unnoted {
    /// The thread that has it, 0 if that is not known.
    owner: u32,
    role: Role,
}

impl Unnoted {
    /// Of a lock that is about to be released.
    #[cold]
    #[inline(never)]
    fn new(own: &ThreadState, call: &LockCall) -> Self {
        let kind = (call.kind)(call.address);
        if kind == Kind::Spin {
            return Self { owner: 0, role: Role::Write };
        }
        if kind != Kind::RwLock {
            return Self { owner: mutex_layout::owner(call.address), role: Role::Write };
        }
        let is_writers = mutex_layout::writer(call.address) == own.id();
        Self { owner: 0, role: if is_writers { Role::Write } else { Role::Read } }
    }

    /// It was released.
    #[cold]
    #[inline(never)]
    fn released(&self, own: &ThreadState, call: &LockCall, hand_off: Option<&HandOff>) {
        match self.role {
            Role::Read => RECORDER.let_go_for_readers(own, call.address),
            _ => RECORDER.let_go_for(own, call.address, self.owner),
        }
        if RECORDER.is_hot(call.address) {
            RECORDER.released_unseen(own);
        }
        if let Some(hand_off) = hand_off {
            RECORDER.handed_off_unnoted(own, call, hand_off);
        }
    }
}
