//! Processes, signals, questions to the system, address spaces.

use std::ffi::CStr;
use std::io;
use std::mem::MaybeUninit;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

use rustix::event::EventfdFlags;
use rustix::fd::OwnedFd;
use rustix::fs::MemfdFlags;
use rustix::mm::{MapFlags, ProtFlags};
use rustix::process::WaitOptions;

use super::Context;
use crate::workloads::job::{JobError, expect};
use crate::workloads::mapping::Mapping;
use crate::workloads::workers::{ended, fork_task, wait};

const TRUE: &str = "/bin/true";
const SHELL: &str = "/bin/sh";

/// Checks that the program of `exec_test`, or the shell, is there.
pub(super) fn check_program(is_shell: bool) -> Result<(), JobError> {
    let program = if is_shell { SHELL } else { TRUE };
    match Path::new(program).exists() {
        true => Ok(()),
        false => Err(JobError::Refused(format!(
            "this mix needs {program}, which is not there; use a mix without exec_test and shell_rtns, such as fserver"
        ))),
    }
}

/// 100 processes that end at once.
pub(super) fn forks(_: &mut Context) -> Result<(), JobError> {
    for number in 0..100 {
        let child = fork_task(number, || Ok(()))?;
        let status = wait(child, WaitOptions::empty())?;
        status.map_or(Ok(()), ended)?;
    }
    Ok(())
}

/// A program started five times.
pub(super) fn execs(_: &mut Context) -> Result<(), JobError> {
    for _ in 0..5 {
        let mut command = Command::new(TRUE);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        // SAFETY: the closure does nothing. With one, the child is forked in full, and not started by a short
        // cut.
        unsafe { command.pre_exec(|| Ok(())) };
        let status = command.status().map_err(JobError::failed("cannot start `true`"))?;
        expect(status.success(), || format!("`true` {status}"))?;
    }
    Ok(())
}

/// What a shell does, and what it must say: arithmetic and a loop.
pub(super) const SCRIPT_1: [&str; 2] =
    ["n=0; for i in 1 2 3 4 5 6 7 8 9 10; do n=$((n + i)); done; echo $n", "55"];

/// Files, made and removed.
pub(super) const SCRIPT_2: [&str; 2] = [
    "for i in a b c; do echo $i > shell-$i; done; \
     n=0; for f in shell-*; do read x < $f; n=$n$x; done; rm shell-a shell-b shell-c; echo $n",
    "0abc",
];

/// A pipe between two shells.
pub(super) const SCRIPT_3: [&str; 2] = ["(echo one; echo two) | (read a; read b; echo $b $a)", "two one"];

pub(super) fn script(context: &Context, [text, expected]: [&str; 2]) -> Result<(), JobError> {
    let mut command = Command::new(SHELL);
    command.args(["-c", text]).current_dir(&context.directory).stdin(Stdio::null()).stderr(Stdio::null());
    let output = command.output().map_err(JobError::failed("cannot start the shell"))?;
    let said = String::from_utf8_lossy(&output.stdout);
    let is_right = output.status.success() && said.trim() == expected;
    expect(is_right, || format!("the shell says {said:?}, not {expected:?}"))
}

/// How many signals are sent.
const SIGNALS: u32 = 1000;

static CAUGHT: AtomicU32 = AtomicU32::new(0);

extern "C" fn catch(_: libc::c_int) {
    CAUGHT.fetch_add(1, Ordering::Relaxed);
}

/// A thousand signals, each caught before the next one is sent.
pub(super) fn signals(_: &mut Context) -> Result<(), JobError> {
    CAUGHT.store(0, Ordering::Relaxed);
    // SAFETY: `sigaction` is integers and a function's address; all zero means: no flags, the default action.
    let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
    action.sa_sigaction = catch as extern "C" fn(libc::c_int) as libc::sighandler_t;
    // SAFETY: as before.
    let mut before: libc::sigaction = unsafe { std::mem::zeroed() };
    // SAFETY: two live locals; the handler only adds to an atomic.
    let set = unsafe { libc::sigaction(libc::SIGUSR1, &raw const action, &raw mut before) };
    if set != 0 {
        return Err(JobError::failed("cannot catch a signal")(io::Error::last_os_error()));
    }
    for _ in 0..SIGNALS {
        // SAFETY: a signal that is caught, to this thread: it is delivered before the call returns.
        unsafe { libc::raise(libc::SIGUSR1) };
    }
    // SAFETY: a live local with what was there before.
    unsafe { libc::sigaction(libc::SIGUSR1, &raw const before, std::ptr::null_mut()) };
    let caught = CAUGHT.load(Ordering::Relaxed);
    expect(caught == SIGNALS, || format!("{caught} signals of {SIGNALS} were caught"))
}

/// Asks the kernel ten times about the process, its user and the machine.
pub(super) fn questions(_: &mut Context) -> Result<(), JobError> {
    let me = rustix::process::getuid();
    for _ in 0..10 {
        let here = std::env::current_dir().map_err(JobError::failed("getcwd"))?;
        expect(here.is_absolute(), || format!("the current directory is {}", here.display()))?;
        expect(rustix::process::getuid() == me && rustix::process::geteuid().as_raw() < u32::MAX, || {
            String::from("the user has changed")
        })?;
        look_up_root()?;
        let mut times = MaybeUninit::<libc::tms>::uninit();
        // SAFETY: a live local of the right type.
        let ticks = unsafe { libc::times(times.as_mut_ptr()) };
        expect(ticks != -1, || String::from("times fails"))?;
        let system = rustix::system::uname();
        expect(system.sysname() == c"Linux", || format!("the system is {:?}", system.sysname()))?;
        expect(rustix::process::getppid().is_some() || rustix::process::getpid().is_init(), || {
            String::from("there is no parent")
        })?;
    }
    Ok(())
}

/// Looks user 0 up, as long as there is a list of users.
fn look_up_root() -> Result<(), JobError> {
    // SAFETY: a string that ends with NUL. The result is static; users have one thread.
    let entry = unsafe { libc::getpwnam(c"root".as_ptr()) };
    if entry.is_null() {
        return Ok(());
    }
    // SAFETY: not null, and valid until the next call.
    let entry = unsafe { &*entry };
    // SAFETY: a string of the entry.
    let name = unsafe { CStr::from_ptr(entry.pw_name) };
    expect(entry.pw_uid == 0 && name == c"root", || format!("root is {name:?} with number {}", entry.pw_uid))
}

const KB: isize = 1024;

/// Moves the end of the heap, and returns where it was.
///
/// # Safety
///
/// No other thread moves it meanwhile, and what is cut off is not used.
unsafe fn sbrk(bytes: isize) -> Result<*mut u8, JobError> {
    // SAFETY: as the caller promises.
    let old = unsafe { libc::sbrk(bytes) };
    match old.addr() {
        usize::MAX => {
            Err(JobError::failed("cannot move the end of the heap")(std::io::Error::last_os_error()))
        }
        _ => Ok(old.cast()),
    }
}

/// The heap grows by `extra`; `rounds` times it shrinks by 64 KB and grows by 16 pages of 4 KB, which are
/// told to `fresh`; in the end it is as it was. Nothing is allocated in between: allocators use the same end.
fn grow_and_shrink(extra: isize, rounds: usize, fresh: impl Fn(*mut u8)) -> Result<(), JobError> {
    // SAFETY: one thread, and nothing moves.
    let before = unsafe { sbrk(0) }?;
    // SAFETY: one thread; it grows.
    unsafe { sbrk(extra) }?;
    for _ in 0..rounds {
        // SAFETY: cuts off what was added here, and is not used.
        unsafe { sbrk(-64 * KB) }?;
        for _ in 0..16 {
            // SAFETY: one thread; it grows.
            fresh(unsafe { sbrk(4 * KB) }?);
        }
    }
    // SAFETY: cuts off what was added here.
    unsafe { sbrk(-extra) }?;
    // SAFETY: nothing moves.
    let after = unsafe { sbrk(0) }?;
    expect(before == after, || format!("the heap ends at {after:?}, not {before:?}"))
}

/// The end of the heap moved 17,000 times, without touching a page.
pub(super) fn breaks(_: &mut Context) -> Result<(), JobError> {
    grow_and_shrink(64 * KB, 1000, |_| ())
}

/// A megabyte more, of which 64 KB are given back and touched again 100 times: every 128 bytes of fresh
/// pages.
pub(super) fn pages(_: &mut Context) -> Result<(), JobError> {
    grow_and_shrink(1024 * KB, 100, |page| {
        for offset in (0..4096).step_by(128) {
            // SAFETY: inside of the page that was just added.
            let byte = unsafe { page.add(offset) };
            // SAFETY: as before, and of this thread alone.
            unsafe { byte.write_volatile(1) };
        }
    })
}

/// Memory that is mapped twice, written through one mapping and read through the other, 100 times, with four
/// semaphore calls each.
///
/// The published one has System V semaphores. They outlive a user that is killed, so these are eventfd(2)
/// semaphores.
pub(super) fn shared(_: &mut Context) -> Result<(), JobError> {
    const SIZE: usize = 4096;
    let memory = rustix::fs::memfd_create(c"spinpark-jobs", MemfdFlags::CLOEXEC);
    let memory = memory.map_err(JobError::failed("cannot make shared memory"))?;
    rustix::fs::ftruncate(&memory, SIZE as u64).map_err(JobError::failed("cannot size shared memory"))?;
    let map = || {
        let mapping = Mapping::of(&memory, SIZE, ProtFlags::READ | ProtFlags::WRITE, MapFlags::SHARED);
        mapping.map_err(JobError::failed("cannot map shared memory"))
    };
    let (one, other) = (map()?, map()?);
    let flags = EventfdFlags::SEMAPHORE | EventfdFlags::CLOEXEC;
    let semaphore = || rustix::event::eventfd(0, flags).map_err(JobError::failed("cannot make a semaphore"));
    let (written, read) = (semaphore()?, semaphore()?);
    let mut block = [0_u8; SIZE];
    for round in 0..100_u8 {
        block.fill(round);
        // SAFETY: the mapping is as long as the block, which is somewhere else.
        unsafe { one.start.cast().write(block) };
        up(&written)?;
        down(&written)?;
        // SAFETY: as before, and what was written is a block.
        block = unsafe { other.start.cast().read() };
        up(&read)?;
        down(&read)?;
        expect(block.iter().all(|&byte| byte == round), || format!("round {round}: {} was read", block[0]))?;
    }
    Ok(())
}

fn up(semaphore: &OwnedFd) -> Result<(), JobError> {
    rustix::io::write(semaphore, &1_u64.to_ne_bytes()).map(|_| ()).map_err(JobError::failed("semaphore, up"))
}

fn down(semaphore: &OwnedFd) -> Result<(), JobError> {
    let mut count = [0; 8];
    rustix::io::read(semaphore, &mut count).map(|_| ()).map_err(JobError::failed("semaphore, down"))
}
