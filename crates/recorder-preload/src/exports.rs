//! The exported functions: trampolines through a table.
//!
//! A trampoline is two moves, so that ours know where they were called, and a jump. Before the process has
//! looked around, the table has *starters*, which do that and jump again. Functions with more arguments than
//! are left alone so, the calls of [`call`] and `syscall`, make their own notes of where they were called.

use crate::function::{COUNT, Function};
use crate::table::{CONTENDED, FULL, Forms, OFF, SAMPLED};
use crate::{c11, call, condvar, meet, mutex, phases, rwlock, semaphore, spin, syscall, unload};

/// Defines the functions: what they are for each detail, and their symbols with versions; and with them the
/// two tables of [`table`](crate::table). The trampoline of the one `by_hand` is written elsewhere; those of
/// `calls` say in eax which they are.
macro_rules! exports {
    ($($number:literal $name:ident = $forms:expr, [$($alias:literal as $symbol:literal),+ $(,)?];)*
     by_hand $by_hand:literal $other:ident = $others:expr, [$others_alias:literal as $others_symbol:literal];
     calls $($call:literal $called:ident = $calls:expr, [$($calls_alias:literal as $calls_symbol:literal),+ $(,)?];)*) => {
        $(const _: () = assert!(Function::$name as usize == $number);)*
        const _: () = assert!(Function::$other as usize == $by_hand);
        $(const _: () = assert!(Function::$called as usize == $call);)*

        static FORMS: [Forms; COUNT] = [$($forms,)* $others, $($calls,)*];

        core::arch::global_asm!(
            ".pushsection .data.rel.spinpark_profiler, \"aw\", @progbits",
            ".p2align 6",
            ".hidden spinpark_profiler_table",
            ".globl spinpark_profiler_table",
            "spinpark_profiler_table:",
            $(concat!(".quad spinpark_profiler_start_", stringify!($name)),)*
            concat!(".quad spinpark_profiler_start_", stringify!($other)),
            $(concat!(".quad spinpark_profiler_start_", stringify!($called)),)*
            ".popsection",
            ".hidden spinpark_profiler_forms",
            ".globl spinpark_profiler_forms",
            ".set spinpark_profiler_forms, {forms}",
            ".pushsection .text.spinpark_profiler, \"ax\", @progbits",
            $(
                ".p2align 4",
                concat!(".type spinpark_profiler_", stringify!($name), ", @function"),
                concat!("spinpark_profiler_", stringify!($name), ":"),
                ".cfi_startproc",
                "mov r8, rsp",
                "mov r9, rbp",
                concat!("jmp qword ptr [rip + spinpark_profiler_table + 8 * ", stringify!($number), "]"),
                ".cfi_endproc",
                concat!("spinpark_profiler_start_", stringify!($name), ":"),
                ".cfi_startproc",
                concat!("mov eax, ", stringify!($number)),
                "jmp spinpark_profiler_start",
                ".cfi_endproc",
                $(
                    concat!(".globl ", $alias),
                    concat!(".type ", $alias, ", @function"),
                    concat!(".set ", $alias, ", spinpark_profiler_", stringify!($name)),
                    concat!(".symver ", $alias, ", ", $symbol),
                )+
            )*
            concat!(".globl ", $others_alias),
            concat!(".type ", $others_alias, ", @function"),
            concat!(".set ", $others_alias, ", spinpark_profiler_", stringify!($other)),
            concat!(".symver ", $others_alias, ", ", $others_symbol),
            concat!("spinpark_profiler_start_", stringify!($other), ":"),
            ".cfi_startproc",
            concat!("mov eax, ", stringify!($by_hand)),
            "jmp spinpark_profiler_start",
            ".cfi_endproc",
            $(
                ".p2align 4",
                concat!(".type spinpark_profiler_", stringify!($called), ", @function"),
                concat!("spinpark_profiler_", stringify!($called), ":"),
                ".cfi_startproc",
                concat!("mov eax, ", stringify!($call)),
                concat!("jmp qword ptr [rip + spinpark_profiler_table + 8 * ", stringify!($call), "]"),
                ".cfi_endproc",
                concat!("spinpark_profiler_start_", stringify!($called), ":"),
                ".cfi_startproc",
                concat!("mov eax, ", stringify!($call)),
                "jmp spinpark_profiler_start",
                ".cfi_endproc",
                $(
                    concat!(".globl ", $calls_alias),
                    concat!(".type ", $calls_alias, ", @function"),
                    concat!(".set ", $calls_alias, ", spinpark_profiler_", stringify!($called)),
                    concat!(".symver ", $calls_alias, ", ", $calls_symbol),
                )+
            )*
            // eax: the number of the function; its arguments are to stay, up to six in registers, and where
            // it was called, if noted.
            "spinpark_profiler_start:",
            ".cfi_startproc",
            spinpark_linux::call_and_keep_arguments!("mov edi, eax", "call {first_call}"),
            "lea r10, [rip + spinpark_profiler_table]",
            "jmp qword ptr [r10 + 8 * rax]",
            ".cfi_endproc",
            ".popsection",
            first_call = sym phases::first_call,
            forms = sym FORMS,
        );
    };
}

/// The same function for every detail but `Off`.
macro_rules! all {
    ($function:path) => {
        Forms([None, Some($function), Some($function), Some($function)])
    };
}

/// A function for each detail but `Off`.
macro_rules! each {
    ($function:ident in $module:ident) => {
        Forms([
            None,
            Some($module::$function::<CONTENDED>),
            Some($module::$function::<SAMPLED>),
            Some($module::$function::<FULL>),
        ])
    };
}

/// A function for each detail: it looks whether another one is wanted.
macro_rules! always {
    ($function:ident in $module:ident) => {
        Forms([
            Some($module::$function::<OFF>),
            Some($module::$function::<CONTENDED>),
            Some($module::$function::<SAMPLED>),
            Some($module::$function::<FULL>),
        ])
    };
}

exports! {
    0 pthread_mutex_init = always!(init in mutex),
        ["spinpark_profiler_alias_pthread_mutex_init_0" as "pthread_mutex_init@@GLIBC_2.2.5", "spinpark_profiler_alias_pthread_mutex_init_1" as "__pthread_mutex_init@GLIBC_2.2.5"];
    1 pthread_mutex_destroy = all!(mutex::destroy),
        ["spinpark_profiler_alias_pthread_mutex_destroy_0" as "pthread_mutex_destroy@@GLIBC_2.2.5", "spinpark_profiler_alias_pthread_mutex_destroy_1" as "__pthread_mutex_destroy@GLIBC_2.2.5"];
    2 pthread_mutex_lock = Forms([
        None,
        Some(mutex::lock_contended),
        Some(mutex::lock_sampled),
        Some(mutex::lock::<FULL>),
    ]),
        ["spinpark_profiler_alias_pthread_mutex_lock_0" as "pthread_mutex_lock@@GLIBC_2.2.5", "spinpark_profiler_alias_pthread_mutex_lock_1" as "__pthread_mutex_lock@GLIBC_2.2.5"];
    3 pthread_mutex_trylock = each!(try_lock in mutex),
        ["spinpark_profiler_alias_pthread_mutex_trylock_0" as "pthread_mutex_trylock@GLIBC_2.2.5", "spinpark_profiler_alias_pthread_mutex_trylock_1" as "pthread_mutex_trylock@@GLIBC_2.34", "spinpark_profiler_alias_pthread_mutex_trylock_2" as "__pthread_mutex_trylock@GLIBC_2.2.5"];
    4 pthread_mutex_timedlock = each!(timed_lock in mutex),
        ["spinpark_profiler_alias_pthread_mutex_timedlock_0" as "pthread_mutex_timedlock@GLIBC_2.2.5", "spinpark_profiler_alias_pthread_mutex_timedlock_1" as "pthread_mutex_timedlock@@GLIBC_2.34"];
    5 pthread_mutex_clocklock = each!(clock_lock in mutex),
        ["spinpark_profiler_alias_pthread_mutex_clocklock_0" as "pthread_mutex_clocklock@GLIBC_2.30", "spinpark_profiler_alias_pthread_mutex_clocklock_1" as "pthread_mutex_clocklock@@GLIBC_2.34"];
    6 pthread_mutex_unlock = Forms([
        None,
        Some(mutex::unlock_contended),
        Some(mutex::unlock::<SAMPLED>),
        Some(mutex::unlock::<FULL>),
    ]),
        ["spinpark_profiler_alias_pthread_mutex_unlock_0" as "pthread_mutex_unlock@@GLIBC_2.2.5", "spinpark_profiler_alias_pthread_mutex_unlock_1" as "__pthread_mutex_unlock@GLIBC_2.2.5"];
    7 pthread_rwlock_init = always!(init in rwlock),
        ["spinpark_profiler_alias_pthread_rwlock_init_0" as "pthread_rwlock_init@GLIBC_2.2.5", "spinpark_profiler_alias_pthread_rwlock_init_1" as "pthread_rwlock_init@@GLIBC_2.34", "spinpark_profiler_alias_pthread_rwlock_init_2" as "__pthread_rwlock_init@GLIBC_2.2.5"];
    8 pthread_rwlock_destroy = all!(rwlock::destroy),
        ["spinpark_profiler_alias_pthread_rwlock_destroy_0" as "pthread_rwlock_destroy@GLIBC_2.2.5", "spinpark_profiler_alias_pthread_rwlock_destroy_1" as "pthread_rwlock_destroy@@GLIBC_2.34", "spinpark_profiler_alias_pthread_rwlock_destroy_2" as "__pthread_rwlock_destroy@GLIBC_2.2.5"];
    9 pthread_rwlock_rdlock = each!(read in rwlock),
        ["spinpark_profiler_alias_pthread_rwlock_rdlock_0" as "pthread_rwlock_rdlock@GLIBC_2.2.5", "spinpark_profiler_alias_pthread_rwlock_rdlock_1" as "pthread_rwlock_rdlock@@GLIBC_2.34", "spinpark_profiler_alias_pthread_rwlock_rdlock_2" as "__pthread_rwlock_rdlock@GLIBC_2.2.5"];
    10 pthread_rwlock_tryrdlock = each!(try_read in rwlock),
        ["spinpark_profiler_alias_pthread_rwlock_tryrdlock_0" as "pthread_rwlock_tryrdlock@GLIBC_2.2.5", "spinpark_profiler_alias_pthread_rwlock_tryrdlock_1" as "pthread_rwlock_tryrdlock@@GLIBC_2.34", "spinpark_profiler_alias_pthread_rwlock_tryrdlock_2" as "__pthread_rwlock_tryrdlock@GLIBC_2.2.5"];
    11 pthread_rwlock_wrlock = each!(write in rwlock),
        ["spinpark_profiler_alias_pthread_rwlock_wrlock_0" as "pthread_rwlock_wrlock@GLIBC_2.2.5", "spinpark_profiler_alias_pthread_rwlock_wrlock_1" as "pthread_rwlock_wrlock@@GLIBC_2.34", "spinpark_profiler_alias_pthread_rwlock_wrlock_2" as "__pthread_rwlock_wrlock@GLIBC_2.2.5"];
    12 pthread_rwlock_trywrlock = each!(try_write in rwlock),
        ["spinpark_profiler_alias_pthread_rwlock_trywrlock_0" as "pthread_rwlock_trywrlock@GLIBC_2.2.5", "spinpark_profiler_alias_pthread_rwlock_trywrlock_1" as "pthread_rwlock_trywrlock@@GLIBC_2.34", "spinpark_profiler_alias_pthread_rwlock_trywrlock_2" as "__pthread_rwlock_trywrlock@GLIBC_2.2.5"];
    13 pthread_rwlock_unlock = each!(unlock in rwlock),
        ["spinpark_profiler_alias_pthread_rwlock_unlock_0" as "pthread_rwlock_unlock@GLIBC_2.2.5", "spinpark_profiler_alias_pthread_rwlock_unlock_1" as "pthread_rwlock_unlock@@GLIBC_2.34", "spinpark_profiler_alias_pthread_rwlock_unlock_2" as "__pthread_rwlock_unlock@GLIBC_2.2.5"];
    14 pthread_rwlock_timedrdlock = each!(timed_read in rwlock),
        ["spinpark_profiler_alias_pthread_rwlock_timedrdlock_0" as "pthread_rwlock_timedrdlock@GLIBC_2.2.5", "spinpark_profiler_alias_pthread_rwlock_timedrdlock_1" as "pthread_rwlock_timedrdlock@@GLIBC_2.34"];
    15 pthread_rwlock_timedwrlock = each!(timed_write in rwlock),
        ["spinpark_profiler_alias_pthread_rwlock_timedwrlock_0" as "pthread_rwlock_timedwrlock@GLIBC_2.2.5", "spinpark_profiler_alias_pthread_rwlock_timedwrlock_1" as "pthread_rwlock_timedwrlock@@GLIBC_2.34"];
    16 pthread_rwlock_clockrdlock = each!(clock_read in rwlock),
        ["spinpark_profiler_alias_pthread_rwlock_clockrdlock_0" as "pthread_rwlock_clockrdlock@GLIBC_2.30", "spinpark_profiler_alias_pthread_rwlock_clockrdlock_1" as "pthread_rwlock_clockrdlock@@GLIBC_2.34"];
    17 pthread_rwlock_clockwrlock = each!(clock_write in rwlock),
        ["spinpark_profiler_alias_pthread_rwlock_clockwrlock_0" as "pthread_rwlock_clockwrlock@GLIBC_2.30", "spinpark_profiler_alias_pthread_rwlock_clockwrlock_1" as "pthread_rwlock_clockwrlock@@GLIBC_2.34"];
    18 pthread_cond_init = always!(init in condvar),
        ["spinpark_profiler_alias_pthread_cond_init_0" as "pthread_cond_init@@GLIBC_2.3.2"];
    19 pthread_cond_destroy = all!(condvar::destroy),
        ["spinpark_profiler_alias_pthread_cond_destroy_0" as "pthread_cond_destroy@@GLIBC_2.3.2"];
    20 pthread_cond_wait = always!(wait in condvar),
        ["spinpark_profiler_alias_pthread_cond_wait_0" as "pthread_cond_wait@@GLIBC_2.3.2"];
    21 pthread_cond_timedwait = always!(timed_wait in condvar),
        ["spinpark_profiler_alias_pthread_cond_timedwait_0" as "pthread_cond_timedwait@@GLIBC_2.3.2"];
    22 pthread_cond_clockwait = always!(clock_wait in condvar),
        ["spinpark_profiler_alias_pthread_cond_clockwait_0" as "pthread_cond_clockwait@GLIBC_2.30", "spinpark_profiler_alias_pthread_cond_clockwait_1" as "pthread_cond_clockwait@@GLIBC_2.34"];
    23 pthread_cond_signal = each!(signal in condvar),
        ["spinpark_profiler_alias_pthread_cond_signal_0" as "pthread_cond_signal@@GLIBC_2.3.2"];
    24 pthread_cond_broadcast = each!(broadcast in condvar),
        ["spinpark_profiler_alias_pthread_cond_broadcast_0" as "pthread_cond_broadcast@@GLIBC_2.3.2"];
    25 mtx_init = always!(mtx_init in c11),
        ["spinpark_profiler_alias_mtx_init_0" as "mtx_init@GLIBC_2.28", "spinpark_profiler_alias_mtx_init_1" as "mtx_init@@GLIBC_2.34"];
    26 mtx_destroy = all!(c11::mtx_destroy),
        ["spinpark_profiler_alias_mtx_destroy_0" as "mtx_destroy@GLIBC_2.28", "spinpark_profiler_alias_mtx_destroy_1" as "mtx_destroy@@GLIBC_2.34"];
    27 mtx_lock = each!(mtx_lock in c11),
        ["spinpark_profiler_alias_mtx_lock_0" as "mtx_lock@GLIBC_2.28", "spinpark_profiler_alias_mtx_lock_1" as "mtx_lock@@GLIBC_2.34"];
    28 mtx_trylock = each!(mtx_trylock in c11),
        ["spinpark_profiler_alias_mtx_trylock_0" as "mtx_trylock@GLIBC_2.28", "spinpark_profiler_alias_mtx_trylock_1" as "mtx_trylock@@GLIBC_2.34"];
    29 mtx_timedlock = each!(mtx_timedlock in c11),
        ["spinpark_profiler_alias_mtx_timedlock_0" as "mtx_timedlock@GLIBC_2.28", "spinpark_profiler_alias_mtx_timedlock_1" as "mtx_timedlock@@GLIBC_2.34"];
    30 mtx_unlock = each!(mtx_unlock in c11),
        ["spinpark_profiler_alias_mtx_unlock_0" as "mtx_unlock@GLIBC_2.28", "spinpark_profiler_alias_mtx_unlock_1" as "mtx_unlock@@GLIBC_2.34"];
    31 cnd_init = always!(cnd_init in c11),
        ["spinpark_profiler_alias_cnd_init_0" as "cnd_init@GLIBC_2.28", "spinpark_profiler_alias_cnd_init_1" as "cnd_init@@GLIBC_2.34"];
    32 cnd_destroy = all!(c11::cnd_destroy),
        ["spinpark_profiler_alias_cnd_destroy_0" as "cnd_destroy@GLIBC_2.28", "spinpark_profiler_alias_cnd_destroy_1" as "cnd_destroy@@GLIBC_2.34"];
    33 cnd_wait = always!(cnd_wait in c11),
        ["spinpark_profiler_alias_cnd_wait_0" as "cnd_wait@GLIBC_2.28", "spinpark_profiler_alias_cnd_wait_1" as "cnd_wait@@GLIBC_2.34"];
    34 cnd_timedwait = always!(cnd_timedwait in c11),
        ["spinpark_profiler_alias_cnd_timedwait_0" as "cnd_timedwait@GLIBC_2.28", "spinpark_profiler_alias_cnd_timedwait_1" as "cnd_timedwait@@GLIBC_2.34"];
    35 cnd_signal = each!(cnd_signal in c11),
        ["spinpark_profiler_alias_cnd_signal_0" as "cnd_signal@GLIBC_2.28", "spinpark_profiler_alias_cnd_signal_1" as "cnd_signal@@GLIBC_2.34"];
    36 cnd_broadcast = each!(cnd_broadcast in c11),
        ["spinpark_profiler_alias_cnd_broadcast_0" as "cnd_broadcast@GLIBC_2.28", "spinpark_profiler_alias_cnd_broadcast_1" as "cnd_broadcast@@GLIBC_2.34"];
    37 dlclose = all!(unload::dlclose),
        ["spinpark_profiler_alias_dlclose_0" as "dlclose@GLIBC_2.2.5", "spinpark_profiler_alias_dlclose_1" as "dlclose@@GLIBC_2.34"];
    38 old_pthread_cond_init = always!(old_init in condvar),
        ["spinpark_profiler_alias_old_pthread_cond_init" as "pthread_cond_init@GLIBC_2.2.5"];
    39 old_pthread_cond_destroy = all!(condvar::old_destroy),
        ["spinpark_profiler_alias_old_pthread_cond_destroy" as "pthread_cond_destroy@GLIBC_2.2.5"];
    40 old_pthread_cond_wait = always!(old_wait in condvar),
        ["spinpark_profiler_alias_old_pthread_cond_wait" as "pthread_cond_wait@GLIBC_2.2.5"];
    41 old_pthread_cond_timedwait = always!(old_timed_wait in condvar),
        ["spinpark_profiler_alias_old_pthread_cond_timedwait" as "pthread_cond_timedwait@GLIBC_2.2.5"];
    42 old_pthread_cond_signal = each!(old_signal in condvar),
        ["spinpark_profiler_alias_old_pthread_cond_signal" as "pthread_cond_signal@GLIBC_2.2.5"];
    43 old_pthread_cond_broadcast = each!(old_broadcast in condvar),
        ["spinpark_profiler_alias_old_pthread_cond_broadcast" as "pthread_cond_broadcast@GLIBC_2.2.5"];
    44 sem_wait = each!(wait in semaphore),
        ["spinpark_profiler_alias_sem_wait_0" as "sem_wait@GLIBC_2.2.5", "spinpark_profiler_alias_sem_wait_1" as "sem_wait@@GLIBC_2.34"];
    45 sem_timedwait = each!(timed_wait in semaphore),
        ["spinpark_profiler_alias_sem_timedwait_0" as "sem_timedwait@GLIBC_2.2.5", "spinpark_profiler_alias_sem_timedwait_1" as "sem_timedwait@@GLIBC_2.34"];
    46 sem_clockwait = each!(clock_wait in semaphore),
        ["spinpark_profiler_alias_sem_clockwait_0" as "sem_clockwait@GLIBC_2.30", "spinpark_profiler_alias_sem_clockwait_1" as "sem_clockwait@@GLIBC_2.34"];
    47 sem_post = each!(post in semaphore),
        ["spinpark_profiler_alias_sem_post_0" as "sem_post@GLIBC_2.2.5", "spinpark_profiler_alias_sem_post_1" as "sem_post@@GLIBC_2.34"];
    48 pthread_barrier_wait = each!(barrier in meet),
        ["spinpark_profiler_alias_pthread_barrier_wait_0" as "pthread_barrier_wait@GLIBC_2.2.5", "spinpark_profiler_alias_pthread_barrier_wait_1" as "pthread_barrier_wait@@GLIBC_2.34"];
    49 pthread_join = each!(join in meet),
        ["spinpark_profiler_alias_pthread_join_0" as "pthread_join@GLIBC_2.2.5", "spinpark_profiler_alias_pthread_join_1" as "pthread_join@@GLIBC_2.34"];
    50 pthread_timedjoin_np = each!(timed_join in meet),
        ["spinpark_profiler_alias_pthread_timedjoin_np_0" as "pthread_timedjoin_np@GLIBC_2.3.3", "spinpark_profiler_alias_pthread_timedjoin_np_1" as "pthread_timedjoin_np@@GLIBC_2.34"];
    51 pthread_clockjoin_np = each!(clock_join in meet),
        ["spinpark_profiler_alias_pthread_clockjoin_np_0" as "pthread_clockjoin_np@GLIBC_2.31", "spinpark_profiler_alias_pthread_clockjoin_np_1" as "pthread_clockjoin_np@@GLIBC_2.34"];
    52 thrd_join = each!(thrd_join in meet),
        ["spinpark_profiler_alias_thrd_join_0" as "thrd_join@GLIBC_2.28", "spinpark_profiler_alias_thrd_join_1" as "thrd_join@@GLIBC_2.34"];
    53 pthread_once = each!(once in meet),
        ["spinpark_profiler_alias_pthread_once_0" as "pthread_once@GLIBC_2.2.5", "spinpark_profiler_alias_pthread_once_1" as "pthread_once@@GLIBC_2.34", "spinpark_profiler_alias_pthread_once_2" as "__pthread_once@GLIBC_2.2.5"];
    54 call_once = each!(call_once in meet),
        ["spinpark_profiler_alias_call_once_0" as "call_once@GLIBC_2.28", "spinpark_profiler_alias_call_once_1" as "call_once@@GLIBC_2.34"];
    55 pthread_spin_lock = each!(lock in spin),
        ["spinpark_profiler_alias_pthread_spin_lock_0" as "pthread_spin_lock@GLIBC_2.2.5", "spinpark_profiler_alias_pthread_spin_lock_1" as "pthread_spin_lock@@GLIBC_2.34"];
    56 pthread_spin_trylock = each!(try_lock in spin),
        ["spinpark_profiler_alias_pthread_spin_trylock_0" as "pthread_spin_trylock@GLIBC_2.2.5", "spinpark_profiler_alias_pthread_spin_trylock_1" as "pthread_spin_trylock@@GLIBC_2.34"];
    57 pthread_spin_unlock = each!(unlock in spin),
        ["spinpark_profiler_alias_pthread_spin_unlock_0" as "pthread_spin_unlock@GLIBC_2.2.5", "spinpark_profiler_alias_pthread_spin_unlock_1" as "pthread_spin_unlock@@GLIBC_2.34"];
    by_hand
    58 syscall = Forms([None, Some(syscall::contended), Some(syscall::sampled), Some(syscall::full)]),
        ["spinpark_profiler_alias_syscall" as "syscall@@GLIBC_2.2.5"];
    calls
    59 read = call::FORMS,
        ["spinpark_profiler_alias_read_0" as "read@@GLIBC_2.2.5"];
    60 __read_chk = call::FORMS,
        ["spinpark_profiler_alias___read_chk_0" as "__read_chk@@GLIBC_2.4"];
    61 pread = call::FORMS,
        ["spinpark_profiler_alias_pread_0" as "pread@@GLIBC_2.2.5"];
    62 pread64 = call::FORMS,
        ["spinpark_profiler_alias_pread64_0" as "pread64@@GLIBC_2.2.5"];
    63 __pread64_chk = call::FORMS,
        ["spinpark_profiler_alias___pread64_chk_0" as "__pread64_chk@@GLIBC_2.4"];
    64 readv = call::FORMS,
        ["spinpark_profiler_alias_readv_0" as "readv@@GLIBC_2.2.5"];
    65 preadv = call::FORMS,
        ["spinpark_profiler_alias_preadv_0" as "preadv@@GLIBC_2.10"];
    66 write = call::FORMS,
        ["spinpark_profiler_alias_write_0" as "write@@GLIBC_2.2.5"];
    67 pwrite = call::FORMS,
        ["spinpark_profiler_alias_pwrite_0" as "pwrite@@GLIBC_2.2.5"];
    68 pwrite64 = call::FORMS,
        ["spinpark_profiler_alias_pwrite64_0" as "pwrite64@@GLIBC_2.2.5"];
    69 writev = call::FORMS,
        ["spinpark_profiler_alias_writev_0" as "writev@@GLIBC_2.2.5"];
    70 pwritev = call::FORMS,
        ["spinpark_profiler_alias_pwritev_0" as "pwritev@@GLIBC_2.10"];
    71 fsync = call::FORMS,
        ["spinpark_profiler_alias_fsync_0" as "fsync@@GLIBC_2.2.5"];
    72 fdatasync = call::FORMS,
        ["spinpark_profiler_alias_fdatasync_0" as "fdatasync@@GLIBC_2.2.5"];
    73 sync_file_range = call::FORMS,
        ["spinpark_profiler_alias_sync_file_range_0" as "sync_file_range@@GLIBC_2.6"];
    74 msync = call::FORMS,
        ["spinpark_profiler_alias_msync_0" as "msync@@GLIBC_2.2.5"];
    75 ftruncate = call::FORMS,
        ["spinpark_profiler_alias_ftruncate_0" as "ftruncate@@GLIBC_2.2.5"];
    76 ftruncate64 = call::FORMS,
        ["spinpark_profiler_alias_ftruncate64_0" as "ftruncate64@@GLIBC_2.2.5"];
    77 fallocate = call::FORMS,
        ["spinpark_profiler_alias_fallocate_0" as "fallocate@@GLIBC_2.10"];
    78 fallocate64 = call::FORMS,
        ["spinpark_profiler_alias_fallocate64_0" as "fallocate64@@GLIBC_2.10"];
    79 open = call::FORMS,
        ["spinpark_profiler_alias_open_0" as "open@@GLIBC_2.2.5"];
    80 open64 = call::FORMS,
        ["spinpark_profiler_alias_open64_0" as "open64@@GLIBC_2.2.5"];
    81 openat = call::FORMS,
        ["spinpark_profiler_alias_openat_0" as "openat@@GLIBC_2.4"];
    82 openat64 = call::FORMS,
        ["spinpark_profiler_alias_openat64_0" as "openat64@@GLIBC_2.4"];
    83 poll = call::FORMS,
        ["spinpark_profiler_alias_poll_0" as "poll@@GLIBC_2.2.5"];
    84 __poll_chk = call::FORMS,
        ["spinpark_profiler_alias___poll_chk_0" as "__poll_chk@@GLIBC_2.16"];
    85 ppoll = call::FORMS,
        ["spinpark_profiler_alias_ppoll_0" as "ppoll@@GLIBC_2.4"];
    86 select = call::FORMS,
        ["spinpark_profiler_alias_select_0" as "select@@GLIBC_2.2.5"];
    87 pselect = call::FORMS,
        ["spinpark_profiler_alias_pselect_0" as "pselect@@GLIBC_2.2.5"];
    88 epoll_wait = call::FORMS,
        ["spinpark_profiler_alias_epoll_wait_0" as "epoll_wait@@GLIBC_2.3.2"];
    89 epoll_pwait = call::FORMS,
        ["spinpark_profiler_alias_epoll_pwait_0" as "epoll_pwait@@GLIBC_2.6"];
    90 connect = call::FORMS,
        ["spinpark_profiler_alias_connect_0" as "connect@@GLIBC_2.2.5"];
    91 accept = call::FORMS,
        ["spinpark_profiler_alias_accept_0" as "accept@@GLIBC_2.2.5"];
    92 accept4 = call::FORMS,
        ["spinpark_profiler_alias_accept4_0" as "accept4@@GLIBC_2.10"];
    93 recv = call::FORMS,
        ["spinpark_profiler_alias_recv_0" as "recv@@GLIBC_2.2.5"];
    94 __recv_chk = call::FORMS,
        ["spinpark_profiler_alias___recv_chk_0" as "__recv_chk@@GLIBC_2.4"];
    95 recvfrom = call::FORMS,
        ["spinpark_profiler_alias_recvfrom_0" as "recvfrom@@GLIBC_2.2.5"];
    96 __recvfrom_chk = call::FORMS,
        ["spinpark_profiler_alias___recvfrom_chk_0" as "__recvfrom_chk@@GLIBC_2.4"];
    97 recvmsg = call::FORMS,
        ["spinpark_profiler_alias_recvmsg_0" as "recvmsg@@GLIBC_2.2.5"];
    98 recvmmsg = call::FORMS,
        ["spinpark_profiler_alias_recvmmsg_0" as "recvmmsg@@GLIBC_2.12"];
    99 send = call::FORMS,
        ["spinpark_profiler_alias_send_0" as "send@@GLIBC_2.2.5"];
    100 sendto = call::FORMS,
        ["spinpark_profiler_alias_sendto_0" as "sendto@@GLIBC_2.2.5"];
    101 sendmsg = call::FORMS,
        ["spinpark_profiler_alias_sendmsg_0" as "sendmsg@@GLIBC_2.2.5"];
    102 sendmmsg = call::FORMS,
        ["spinpark_profiler_alias_sendmmsg_0" as "sendmmsg@@GLIBC_2.14"];
    103 sendfile = call::FORMS,
        ["spinpark_profiler_alias_sendfile_0" as "sendfile@@GLIBC_2.2.5"];
    104 sendfile64 = call::FORMS,
        ["spinpark_profiler_alias_sendfile64_0" as "sendfile64@@GLIBC_2.3"];
    105 nanosleep = call::FORMS,
        ["spinpark_profiler_alias_nanosleep_0" as "nanosleep@@GLIBC_2.2.5"];
    106 clock_nanosleep = call::FORMS,
        ["spinpark_profiler_alias_clock_nanosleep_0" as "clock_nanosleep@GLIBC_2.2.5", "spinpark_profiler_alias_clock_nanosleep_1" as "clock_nanosleep@@GLIBC_2.17"];
    107 usleep = call::FORMS,
        ["spinpark_profiler_alias_usleep_0" as "usleep@@GLIBC_2.2.5"];
    108 sleep = call::FORMS,
        ["spinpark_profiler_alias_sleep_0" as "sleep@@GLIBC_2.2.5"];
    109 flock = call::FORMS,
        ["spinpark_profiler_alias_flock_0" as "flock@@GLIBC_2.2.5"];
    110 lockf = call::FORMS,
        ["spinpark_profiler_alias_lockf_0" as "lockf@@GLIBC_2.2.5"];
    111 wait = call::FORMS,
        ["spinpark_profiler_alias_wait_0" as "wait@@GLIBC_2.2.5"];
    112 waitpid = call::FORMS,
        ["spinpark_profiler_alias_waitpid_0" as "waitpid@@GLIBC_2.2.5"];
    113 wait4 = call::FORMS,
        ["spinpark_profiler_alias_wait4_0" as "wait4@@GLIBC_2.2.5"];
    114 waitid = call::FORMS,
        ["spinpark_profiler_alias_waitid_0" as "waitid@@GLIBC_2.2.5"];
    115 getaddrinfo = call::FORMS,
        ["spinpark_profiler_alias_getaddrinfo_0" as "getaddrinfo@@GLIBC_2.2.5"];
    116 fflush = call::FORMS,
        ["spinpark_profiler_alias_fflush_0" as "fflush@@GLIBC_2.2.5"];
    117 fclose = call::FORMS,
        ["spinpark_profiler_alias_fclose_0" as "fclose@@GLIBC_2.2.5"];
    118 rename = call::FORMS,
        ["spinpark_profiler_alias_rename_0" as "rename@@GLIBC_2.2.5"];
    119 unlink = call::FORMS,
        ["spinpark_profiler_alias_unlink_0" as "unlink@@GLIBC_2.2.5"];
}
