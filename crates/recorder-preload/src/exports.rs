//! The exported functions: trampolines through a table.
//!
//! A trampoline notes for ours where they were called, looks at the bell of a dormant process ([`dormant`]), and
//! jumps; [`arch`] has its instructions. Before the process has looked around, the table has *starters*, which do that and
//! jump again; so does one that has heard the bell. Functions with more arguments than
//! are left alone so, the calls of [`call`] and `syscall`, make their own notes of where they were called.

use crate::function::{COUNT, Function};
use crate::table::{CONTENDED, FULL, Forms, OFF, SAMPLED};
use crate::{
    arch, c11, call, condvar, dormant, mutex, phases, rendezvous, rwlock, semaphore, spin, syscall, unload,
};

/// A version of x86-64, as it is called on this architecture (`build.rs`).
macro_rules! version {
    ($version:literal) => {
        env!(concat!("SPINPARK_VERSION_", $version))
    };
}

/// The text that exports a function of assembly as a symbol. `"V" @` is the version that new programs are
/// linked to, `@ "V"` another one, `old "V"` one that only x86-64 has. The assembler's `.symver` wants a symbol of
/// its own for each version.
macro_rules! alias {
    ($name:ident, $symbol:literal, old $version:literal) => {
        arch::on_x86_64!(alias!(text $name, $symbol, $version, "@"))
    };
    ($name:ident, $symbol:literal, $default:literal @) => {
        alias!(text $name, $symbol, $default, "@@")
    };
    ($name:ident, $symbol:literal, @ $version:literal) => {
        alias!(text $name, $symbol, $version, "@")
    };
    (text $name:ident, $symbol:literal, $version:literal, $at:literal) => {
        concat!(
            ".globl spinpark_profiler_alias_", $symbol, "_", $version, "\n",
            ".type spinpark_profiler_alias_", $symbol, "_", $version, ", @function\n",
            ".set spinpark_profiler_alias_", $symbol, "_", $version, ", spinpark_profiler_", stringify!($name), "\n",
            ".symver spinpark_profiler_alias_", $symbol, "_", $version, ", ", $symbol, $at, version!($version),
        )
    };
}

/// Defines the functions: what they are for each detail, and their symbols with versions; and with them the
/// two tables of [`table`](crate::table). The trampoline of the one `by_hand` is written elsewhere; those of
/// `calls` say which they are.
macro_rules! exports {
    ($($number:literal $name:ident = $forms:expr, [$($symbol:literal $(@ $(@ $default:literal)? $($version:literal)?)? $(old $old:literal)?),+];)*
     by_hand $by_hand:literal $other:ident = $others:expr, [$others_symbol:literal @@ $others_version:literal];
     calls $($call:literal $called:ident = $calls:expr, [$($calls_symbol:literal $(@ $(@ $calls_default:literal)?)? $(old $calls_old:literal)?),+];)*) => {
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
                arch::trampoline!($name, $number),
                ".cfi_endproc",
                concat!("spinpark_profiler_start_", stringify!($name), ":"),
                ".cfi_startproc",
                arch::starter!($number),
                ".cfi_endproc",
                $(
                    alias!($name, $symbol, $($($default)? @ $($version)?)? $(old $old)?),
                )+
            )*
            alias!($other, $others_symbol, $others_version @),
            concat!(".hidden spinpark_profiler_start_", stringify!($other)),
            concat!(".globl spinpark_profiler_start_", stringify!($other)),
            concat!("spinpark_profiler_start_", stringify!($other), ":"),
            ".cfi_startproc",
            arch::starter!($by_hand),
            ".cfi_endproc",
            $(
                ".p2align 4",
                concat!(".type spinpark_profiler_", stringify!($called), ", @function"),
                concat!("spinpark_profiler_", stringify!($called), ":"),
                ".cfi_startproc",
                arch::jump!($call),
                ".cfi_endproc",
                concat!("spinpark_profiler_start_", stringify!($called), ":"),
                ".cfi_startproc",
                arch::starter!($call),
                ".cfi_endproc",
                $(
                    alias!($called, $calls_symbol, $($($calls_default)? @)? $(old $calls_old)?),
                )+
            )*
            // What starters jump to. The arguments are to stay, and where the function was called, if noted.
            "spinpark_profiler_start:",
            ".cfi_startproc",
            arch::start!(),
            ".cfi_endproc",
            ".popsection",
            control = sym dormant::CONTROL,
            heard = sym dormant::HEARD,
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

/// A function for each detail: it checks whether another one is wanted.
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
        ["pthread_mutex_init" @@ "GLIBC_2.2.5", "__pthread_mutex_init" @ "GLIBC_2.2.5"];
    1 pthread_mutex_destroy = all!(mutex::destroy),
        ["pthread_mutex_destroy" @@ "GLIBC_2.2.5", "__pthread_mutex_destroy" @ "GLIBC_2.2.5"];
    2 pthread_mutex_lock = Forms([
        None,
        Some(mutex::lock_contended),
        Some(mutex::lock_sampled),
        Some(mutex::lock::<FULL>),
    ]), ["pthread_mutex_lock" @@ "GLIBC_2.2.5", "__pthread_mutex_lock" @ "GLIBC_2.2.5"];
    3 pthread_mutex_trylock = each!(try_lock in mutex),
        ["pthread_mutex_trylock" @ "GLIBC_2.2.5", "pthread_mutex_trylock" @@ "GLIBC_2.34",
         "__pthread_mutex_trylock" @ "GLIBC_2.2.5"];
    4 pthread_mutex_timedlock = each!(timed_lock in mutex),
        ["pthread_mutex_timedlock" @ "GLIBC_2.2.5", "pthread_mutex_timedlock" @@ "GLIBC_2.34"];
    5 pthread_mutex_clocklock = each!(clock_lock in mutex),
        ["pthread_mutex_clocklock" @ "GLIBC_2.30", "pthread_mutex_clocklock" @@ "GLIBC_2.34"];
    6 pthread_mutex_unlock = Forms([
        None,
        Some(mutex::unlock_contended),
        Some(mutex::unlock::<SAMPLED>),
        Some(mutex::unlock::<FULL>),
    ]), ["pthread_mutex_unlock" @@ "GLIBC_2.2.5", "__pthread_mutex_unlock" @ "GLIBC_2.2.5"];
    7 pthread_rwlock_init = always!(init in rwlock),
        ["pthread_rwlock_init" @ "GLIBC_2.2.5", "pthread_rwlock_init" @@ "GLIBC_2.34",
         "__pthread_rwlock_init" @ "GLIBC_2.2.5"];
    8 pthread_rwlock_destroy = all!(rwlock::destroy),
        ["pthread_rwlock_destroy" @ "GLIBC_2.2.5", "pthread_rwlock_destroy" @@ "GLIBC_2.34",
         "__pthread_rwlock_destroy" @ "GLIBC_2.2.5"];
    9 pthread_rwlock_rdlock = each!(read in rwlock),
        ["pthread_rwlock_rdlock" @ "GLIBC_2.2.5", "pthread_rwlock_rdlock" @@ "GLIBC_2.34",
         "__pthread_rwlock_rdlock" @ "GLIBC_2.2.5"];
    10 pthread_rwlock_tryrdlock = each!(try_read in rwlock),
        ["pthread_rwlock_tryrdlock" @ "GLIBC_2.2.5", "pthread_rwlock_tryrdlock" @@ "GLIBC_2.34",
         "__pthread_rwlock_tryrdlock" @ "GLIBC_2.2.5"];
    11 pthread_rwlock_wrlock = each!(write in rwlock),
        ["pthread_rwlock_wrlock" @ "GLIBC_2.2.5", "pthread_rwlock_wrlock" @@ "GLIBC_2.34",
         "__pthread_rwlock_wrlock" @ "GLIBC_2.2.5"];
    12 pthread_rwlock_trywrlock = each!(try_write in rwlock),
        ["pthread_rwlock_trywrlock" @ "GLIBC_2.2.5", "pthread_rwlock_trywrlock" @@ "GLIBC_2.34",
         "__pthread_rwlock_trywrlock" @ "GLIBC_2.2.5"];
    13 pthread_rwlock_unlock = each!(unlock in rwlock),
        ["pthread_rwlock_unlock" @ "GLIBC_2.2.5", "pthread_rwlock_unlock" @@ "GLIBC_2.34",
         "__pthread_rwlock_unlock" @ "GLIBC_2.2.5"];
    14 pthread_rwlock_timedrdlock = each!(timed_read in rwlock),
        ["pthread_rwlock_timedrdlock" @ "GLIBC_2.2.5", "pthread_rwlock_timedrdlock" @@ "GLIBC_2.34"];
    15 pthread_rwlock_timedwrlock = each!(timed_write in rwlock),
        ["pthread_rwlock_timedwrlock" @ "GLIBC_2.2.5", "pthread_rwlock_timedwrlock" @@ "GLIBC_2.34"];
    16 pthread_rwlock_clockrdlock = each!(clock_read in rwlock),
        ["pthread_rwlock_clockrdlock" @ "GLIBC_2.30", "pthread_rwlock_clockrdlock" @@ "GLIBC_2.34"];
    17 pthread_rwlock_clockwrlock = each!(clock_write in rwlock),
        ["pthread_rwlock_clockwrlock" @ "GLIBC_2.30", "pthread_rwlock_clockwrlock" @@ "GLIBC_2.34"];
    18 pthread_cond_init = always!(init in condvar), ["pthread_cond_init" @@ "GLIBC_2.3.2"];
    19 pthread_cond_destroy = all!(condvar::destroy), ["pthread_cond_destroy" @@ "GLIBC_2.3.2"];
    20 pthread_cond_wait = always!(wait in condvar), ["pthread_cond_wait" @@ "GLIBC_2.3.2"];
    21 pthread_cond_timedwait = always!(timed_wait in condvar), ["pthread_cond_timedwait" @@ "GLIBC_2.3.2"];
    22 pthread_cond_clockwait = always!(clock_wait in condvar),
        ["pthread_cond_clockwait" @ "GLIBC_2.30", "pthread_cond_clockwait" @@ "GLIBC_2.34"];
    23 pthread_cond_signal = each!(signal in condvar), ["pthread_cond_signal" @@ "GLIBC_2.3.2"];
    24 pthread_cond_broadcast = each!(broadcast in condvar), ["pthread_cond_broadcast" @@ "GLIBC_2.3.2"];
    25 mtx_init = always!(mtx_init in c11), ["mtx_init" @ "GLIBC_2.28", "mtx_init" @@ "GLIBC_2.34"];
    26 mtx_destroy = all!(c11::mtx_destroy), ["mtx_destroy" @ "GLIBC_2.28", "mtx_destroy" @@ "GLIBC_2.34"];
    27 mtx_lock = each!(mtx_lock in c11), ["mtx_lock" @ "GLIBC_2.28", "mtx_lock" @@ "GLIBC_2.34"];
    28 mtx_trylock = each!(mtx_trylock in c11), ["mtx_trylock" @ "GLIBC_2.28", "mtx_trylock" @@ "GLIBC_2.34"];
    29 mtx_timedlock = each!(mtx_timedlock in c11),
        ["mtx_timedlock" @ "GLIBC_2.28", "mtx_timedlock" @@ "GLIBC_2.34"];
    30 mtx_unlock = each!(mtx_unlock in c11), ["mtx_unlock" @ "GLIBC_2.28", "mtx_unlock" @@ "GLIBC_2.34"];
    31 cnd_init = always!(cnd_init in c11), ["cnd_init" @ "GLIBC_2.28", "cnd_init" @@ "GLIBC_2.34"];
    32 cnd_destroy = all!(c11::cnd_destroy), ["cnd_destroy" @ "GLIBC_2.28", "cnd_destroy" @@ "GLIBC_2.34"];
    33 cnd_wait = always!(cnd_wait in c11), ["cnd_wait" @ "GLIBC_2.28", "cnd_wait" @@ "GLIBC_2.34"];
    34 cnd_timedwait = always!(cnd_timedwait in c11),
        ["cnd_timedwait" @ "GLIBC_2.28", "cnd_timedwait" @@ "GLIBC_2.34"];
    35 cnd_signal = each!(cnd_signal in c11), ["cnd_signal" @ "GLIBC_2.28", "cnd_signal" @@ "GLIBC_2.34"];
    36 cnd_broadcast = each!(cnd_broadcast in c11),
        ["cnd_broadcast" @ "GLIBC_2.28", "cnd_broadcast" @@ "GLIBC_2.34"];
    37 dlclose = all!(unload::dlclose), ["dlclose" @ "GLIBC_2.2.5", "dlclose" @@ "GLIBC_2.34"];
    38 old_pthread_cond_init = always!(old_init in condvar), ["pthread_cond_init" old "GLIBC_2.2.5"];
    39 old_pthread_cond_destroy = all!(condvar::old_destroy), ["pthread_cond_destroy" old "GLIBC_2.2.5"];
    40 old_pthread_cond_wait = always!(old_wait in condvar), ["pthread_cond_wait" old "GLIBC_2.2.5"];
    41 old_pthread_cond_timedwait = always!(old_timed_wait in condvar),
        ["pthread_cond_timedwait" old "GLIBC_2.2.5"];
    42 old_pthread_cond_signal = each!(old_signal in condvar), ["pthread_cond_signal" old "GLIBC_2.2.5"];
    43 old_pthread_cond_broadcast = each!(old_broadcast in condvar),
        ["pthread_cond_broadcast" old "GLIBC_2.2.5"];
    44 sem_wait = each!(wait in semaphore), ["sem_wait" @ "GLIBC_2.2.5", "sem_wait" @@ "GLIBC_2.34"];
    45 sem_timedwait = each!(timed_wait in semaphore),
        ["sem_timedwait" @ "GLIBC_2.2.5", "sem_timedwait" @@ "GLIBC_2.34"];
    46 sem_clockwait = each!(clock_wait in semaphore),
        ["sem_clockwait" @ "GLIBC_2.30", "sem_clockwait" @@ "GLIBC_2.34"];
    47 sem_post = each!(post in semaphore), ["sem_post" @ "GLIBC_2.2.5", "sem_post" @@ "GLIBC_2.34"];
    48 sem_init = each!(init in semaphore), ["sem_init" @ "GLIBC_2.2.5", "sem_init" @@ "GLIBC_2.34"];
    49 sem_trywait = each!(try_wait in semaphore),
        ["sem_trywait" @ "GLIBC_2.2.5", "sem_trywait" @@ "GLIBC_2.34"];
    50 pthread_barrier_wait = each!(barrier in rendezvous),
        ["pthread_barrier_wait" @ "GLIBC_2.2.5", "pthread_barrier_wait" @@ "GLIBC_2.34"];
    51 pthread_join = each!(join in rendezvous), ["pthread_join" @ "GLIBC_2.2.5", "pthread_join" @@ "GLIBC_2.34"];
    52 pthread_timedjoin_np = each!(timed_join in rendezvous),
        ["pthread_timedjoin_np" @ "GLIBC_2.3.3", "pthread_timedjoin_np" @@ "GLIBC_2.34"];
    53 pthread_clockjoin_np = each!(clock_join in rendezvous),
        ["pthread_clockjoin_np" @ "GLIBC_2.31", "pthread_clockjoin_np" @@ "GLIBC_2.34"];
    54 thrd_join = each!(thrd_join in rendezvous), ["thrd_join" @ "GLIBC_2.28", "thrd_join" @@ "GLIBC_2.34"];
    // Not `__pthread_once`: before glibc 2.34, `dlvsym` calls it, and the functions are looked up by that.
    55 pthread_once = each!(once in rendezvous),
        ["pthread_once" @ "GLIBC_2.2.5", "pthread_once" @@ "GLIBC_2.34"];
    56 call_once = each!(call_once in rendezvous), ["call_once" @ "GLIBC_2.28", "call_once" @@ "GLIBC_2.34"];
    57 pthread_spin_lock = each!(lock in spin),
        ["pthread_spin_lock" @ "GLIBC_2.2.5", "pthread_spin_lock" @@ "GLIBC_2.34"];
    58 pthread_spin_trylock = each!(try_lock in spin),
        ["pthread_spin_trylock" @ "GLIBC_2.2.5", "pthread_spin_trylock" @@ "GLIBC_2.34"];
    59 pthread_spin_unlock = each!(unlock in spin),
        ["pthread_spin_unlock" @ "GLIBC_2.2.5", "pthread_spin_unlock" @@ "GLIBC_2.34"];
    60 sched_yield = call::YIELDS, ["sched_yield" @@ "GLIBC_2.2.5"];
    by_hand
    61 syscall = Forms([None, Some(syscall::contended), Some(syscall::sampled), Some(syscall::full)]),
        ["syscall" @@ "GLIBC_2.2.5"];
    calls
    62 read = call::FORMS, ["read" @@ "GLIBC_2.2.5"];
    63 __read_chk = call::FORMS, ["__read_chk" @@ "GLIBC_2.4"];
    64 pread = call::FORMS, ["pread" @@ "GLIBC_2.2.5"];
    65 pread64 = call::FORMS, ["pread64" @@ "GLIBC_2.2.5"];
    66 __pread64_chk = call::FORMS, ["__pread64_chk" @@ "GLIBC_2.4"];
    67 readv = call::FORMS, ["readv" @@ "GLIBC_2.2.5"];
    68 preadv = call::FORMS, ["preadv" @@ "GLIBC_2.10"];
    69 write = call::FORMS, ["write" @@ "GLIBC_2.2.5"];
    70 pwrite = call::FORMS, ["pwrite" @@ "GLIBC_2.2.5"];
    71 pwrite64 = call::FORMS, ["pwrite64" @@ "GLIBC_2.2.5"];
    72 writev = call::FORMS, ["writev" @@ "GLIBC_2.2.5"];
    73 pwritev = call::FORMS, ["pwritev" @@ "GLIBC_2.10"];
    74 fsync = call::FORMS, ["fsync" @@ "GLIBC_2.2.5"];
    75 fdatasync = call::FORMS, ["fdatasync" @@ "GLIBC_2.2.5"];
    76 sync_file_range = call::FORMS, ["sync_file_range" @@ "GLIBC_2.6"];
    77 msync = call::FORMS, ["msync" @@ "GLIBC_2.2.5"];
    78 ftruncate = call::FORMS, ["ftruncate" @@ "GLIBC_2.2.5"];
    79 ftruncate64 = call::FORMS, ["ftruncate64" @@ "GLIBC_2.2.5"];
    80 fallocate = call::FORMS, ["fallocate" @@ "GLIBC_2.10"];
    81 fallocate64 = call::FORMS, ["fallocate64" @@ "GLIBC_2.10"];
    82 open = call::FORMS, ["open" @@ "GLIBC_2.2.5"];
    83 open64 = call::FORMS, ["open64" @@ "GLIBC_2.2.5"];
    84 openat = call::FORMS, ["openat" @@ "GLIBC_2.4"];
    85 openat64 = call::FORMS, ["openat64" @@ "GLIBC_2.4"];
    86 poll = call::FORMS, ["poll" @@ "GLIBC_2.2.5"];
    87 __poll_chk = call::FORMS, ["__poll_chk" @@ "GLIBC_2.16"];
    88 ppoll = call::FORMS, ["ppoll" @@ "GLIBC_2.4"];
    89 select = call::FORMS, ["select" @@ "GLIBC_2.2.5"];
    90 pselect = call::FORMS, ["pselect" @@ "GLIBC_2.2.5"];
    91 epoll_wait = call::FORMS, ["epoll_wait" @@ "GLIBC_2.3.2"];
    92 epoll_pwait = call::FORMS, ["epoll_pwait" @@ "GLIBC_2.6"];
    93 connect = call::FORMS, ["connect" @@ "GLIBC_2.2.5"];
    94 accept = call::FORMS, ["accept" @@ "GLIBC_2.2.5"];
    95 accept4 = call::FORMS, ["accept4" @@ "GLIBC_2.10"];
    96 recv = call::FORMS, ["recv" @@ "GLIBC_2.2.5"];
    97 __recv_chk = call::FORMS, ["__recv_chk" @@ "GLIBC_2.4"];
    98 recvfrom = call::FORMS, ["recvfrom" @@ "GLIBC_2.2.5"];
    99 __recvfrom_chk = call::FORMS, ["__recvfrom_chk" @@ "GLIBC_2.4"];
    100 recvmsg = call::FORMS, ["recvmsg" @@ "GLIBC_2.2.5"];
    101 recvmmsg = call::FORMS, ["recvmmsg" @@ "GLIBC_2.12"];
    102 send = call::FORMS, ["send" @@ "GLIBC_2.2.5"];
    103 sendto = call::FORMS, ["sendto" @@ "GLIBC_2.2.5"];
    104 sendmsg = call::FORMS, ["sendmsg" @@ "GLIBC_2.2.5"];
    105 sendmmsg = call::FORMS, ["sendmmsg" @@ "GLIBC_2.14"];
    106 sendfile = call::FORMS, ["sendfile" @@ "GLIBC_2.2.5"];
    107 sendfile64 = call::FORMS, ["sendfile64" @@ "GLIBC_2.3"];
    108 nanosleep = call::FORMS, ["nanosleep" @@ "GLIBC_2.2.5"];
    109 clock_nanosleep = call::FORMS, ["clock_nanosleep" old "GLIBC_2.2.5", "clock_nanosleep" @@ "GLIBC_2.17"];
    110 usleep = call::FORMS, ["usleep" @@ "GLIBC_2.2.5"];
    111 sleep = call::FORMS, ["sleep" @@ "GLIBC_2.2.5"];
    112 flock = call::FORMS, ["flock" @@ "GLIBC_2.2.5"];
    113 lockf = call::FORMS, ["lockf" @@ "GLIBC_2.2.5"];
    114 wait = call::FORMS, ["wait" @@ "GLIBC_2.2.5"];
    115 waitpid = call::FORMS, ["waitpid" @@ "GLIBC_2.2.5"];
    116 wait4 = call::FORMS, ["wait4" @@ "GLIBC_2.2.5"];
    117 waitid = call::FORMS, ["waitid" @@ "GLIBC_2.2.5"];
    118 getaddrinfo = call::FORMS, ["getaddrinfo" @@ "GLIBC_2.2.5"];
    119 fflush = call::FORMS, ["fflush" @@ "GLIBC_2.2.5"];
    120 fclose = call::FORMS, ["fclose" @@ "GLIBC_2.2.5"];
    121 rename = call::FORMS, ["rename" @@ "GLIBC_2.2.5"];
    122 unlink = call::FORMS, ["unlink" @@ "GLIBC_2.2.5"];
}
