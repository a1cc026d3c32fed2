//! What the kernel counts while operations are counted: CPU time, context switches, and (in runs that are for
//! nothing else) futex calls.
//!
//! Futex calls are counted by a tracepoint (`perf_event_open(2)`), in the kernel and for all threads, without
//! stopping any. It slows each call down a little; that is why the runs that are timed do without it.

use std::fs::{self, File};
use std::io::{self, Read};
use std::os::fd::{FromRawFd, RawFd};
use std::time::Duration;

use perf_event_open_sys as perf;

/// Counters that do not run yet. The threads that they count are created later.
#[derive(Debug)]
pub struct Counters {
    futex_calls: Option<Result<File, String>>,
}

/// Counters that run.
#[derive(Debug)]
pub struct Running {
    futex_calls: Option<Result<File, String>>,
    before: Usage,
}

/// What was counted.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Counts {
    /// User and system time.
    pub cpu: Duration,
    /// The user's part of it.
    pub user: Duration,
    /// Voluntary context switches.
    pub voluntary_switches: u64,
    /// Involuntary context switches.
    pub involuntary_switches: u64,
    /// Futex calls, if they were asked for; or why not.
    pub futex_calls: Option<Result<u64, String>>,
}

/// The kernel's account of this process.
#[derive(Debug, Clone, Copy)]
struct Usage {
    cpu: Duration,
    user: Duration,
    voluntary: u64,
    involuntary: u64,
}

impl Counters {
    /// Prepares them, before any thread is created.
    pub fn open(futex_calls: bool) -> Self {
        Self { futex_calls: futex_calls.then(|| open_futex_counter().map_err(|error| error.to_string())) }
    }

    /// Starts to count.
    pub fn start(self) -> Running {
        control(self.futex_calls.as_ref(), perf::ioctls::ENABLE);
        Running { futex_calls: self.futex_calls, before: usage() }
    }
}

impl Running {
    /// Stops, and says what was counted.
    pub fn stop(self) -> Counts {
        let after = usage();
        control(self.futex_calls.as_ref(), perf::ioctls::DISABLE);
        Counts {
            cpu: after.cpu.saturating_sub(self.before.cpu),
            user: after.user.saturating_sub(self.before.user),
            voluntary_switches: after.voluntary - self.before.voluntary,
            involuntary_switches: after.involuntary - self.before.involuntary,
            futex_calls: self.futex_calls.map(|counter| {
                let mut count = [0; 8];
                counter?.read_exact(&mut count).map_err(|error| error.to_string())?;
                Ok(u64::from_ne_bytes(count))
            }),
        }
    }
}

fn usage() -> Usage {
    // SAFETY: `rusage` is plain integers; all zero is a value of it.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: a live local of the right type; the call cannot fail for our own process.
    unsafe { libc::getrusage(libc::RUSAGE_SELF, &raw mut usage) };
    let time =
        |t: libc::timeval| Duration::new(t.tv_sec.unsigned_abs(), t.tv_usec.unsigned_abs() as u32 * 1000);
    Usage {
        cpu: time(usage.ru_utime) + time(usage.ru_stime),
        user: time(usage.ru_utime),
        voluntary: usage.ru_nvcsw.unsigned_abs(),
        involuntary: usage.ru_nivcsw.unsigned_abs(),
    }
}

/// Why futex calls cannot be counted here; none if they can.
#[must_use]
pub fn obstacle() -> Option<String> {
    open_futex_counter().err().map(|error| error.to_string())
}

/// Enables or disables a counter and those that our threads inherited from it.
fn control(
    counter: Option<&Result<File, String>>,
    request: unsafe fn(libc::c_int, libc::c_uint) -> libc::c_int,
) {
    use std::os::fd::AsRawFd;
    if let Some(Ok(file)) = counter {
        // SAFETY: an open perf event; both requests take flags, of which there are none.
        let _ = unsafe { request(file.as_raw_fd(), 0) };
    }
}

/// A counter of this process' futex calls, and of those of all threads that it creates from now on.
fn open_futex_counter() -> io::Result<File> {
    let mut attributes = perf::bindings::perf_event_attr {
        type_: perf::bindings::PERF_TYPE_TRACEPOINT,
        size: size_of::<perf::bindings::perf_event_attr>() as u32,
        config: tracepoint()?,
        ..Default::default()
    };
    attributes.set_disabled(1);
    attributes.set_inherit(1);
    // SAFETY: the attributes live and say their size; the other numbers mean this process, on any CPU, no
    // group.
    let fd: RawFd = unsafe { perf::perf_event_open(&raw mut attributes, 0, -1, -1, 0) };
    if fd < 0 {
        let error = io::Error::last_os_error();
        return Err(io::Error::other(format!("perf_event_open: {error}")));
    }
    // SAFETY: the kernel has just given us this descriptor.
    Ok(unsafe { File::from_raw_fd(fd) })
}

/// The number of the tracepoint "a futex call begins".
fn tracepoint() -> io::Result<u64> {
    let read = |root: &str| fs::read_to_string(format!("{root}/events/syscalls/sys_enter_futex/id"));
    let id = read("/sys/kernel/tracing").or_else(|_| read("/sys/kernel/debug/tracing"));
    let id = id.map_err(|error| {
        io::Error::other(format!(
            "cannot read /sys/kernel/tracing/events/syscalls/sys_enter_futex/id ({error})"
        ))
    })?;
    id.trim().parse().map_err(|_| io::ErrorKind::InvalidData.into())
}
