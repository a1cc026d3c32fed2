//! All threads of a process at one moment, with all registers: they are stopped for it, and go on.
//!
//! `PTRACE_SEIZE` and `PTRACE_INTERRUPT` stop a thread without a signal. The kernel makes the call again that a
//! thread was in, or lets it go on; but for a few, which return `EINTR` to the program though no signal came
//! (signal(7), "Interruption of system calls and library functions by stop signals"). Those are
//! [made again](Registers::with_call_again) here, so that the program does not see it; a time-out of theirs
//! begins anew. If this process is killed meanwhile, the kernel lets all threads go on, and such calls return.
//!
//! All are stopped first, then read, then let go, by a thread of its own: when it ends, the kernel lets those go,
//! too, that did not stop in time.

use std::collections::HashSet;
use std::io;
use std::ptr::null_mut;
use std::time::{Duration, Instant};

use super::access::Refused;
use super::registers::Registers;
use super::target::{Process, STACK, Target};
use super::task::{Call, Task};
use crate::symbols::Blocked;
use crate::watch::Stat;

/// Of a thread that does not stop so long, as one that waits for a disk, nothing is known.
const PATIENCE: Duration = Duration::from_millis(100);
/// Threads that start meanwhile are stopped, too; who starts them is, after so many rounds.
const ROUNDS: u32 = 8;

const SEIZE: i64 = libc::PTRACE_SEIZE as i64;
const INTERRUPT: i64 = libc::PTRACE_INTERRUPT as i64;
const DETACH: i64 = libc::PTRACE_DETACH as i64;
const GET_REGISTERS: i64 = libc::PTRACE_GETREGS as i64;
const SET_REGISTERS: i64 = libc::PTRACE_SETREGS as i64;

/// Threads that are stopped, until this is dropped.
#[derive(Debug, Default)]
struct Stopped {
    /// With the signal that each was about to get.
    threads: Vec<(u32, i32)>,
}

impl Drop for Stopped {
    fn drop(&mut self) {
        for (thread, signal) in self.threads.drain(..) {
            // Of one that has been killed meanwhile there is nothing to let go.
            let _ = ptrace(DETACH, thread, signal as usize as *mut libc::c_void);
        }
    }
}

/// The threads of a process at one moment, and for how long they were stopped. Those of a core dump are not.
///
/// # Errors
/// If a debugger has the process already, or it may not be stopped, or has ended.
pub(super) fn snapshot(target: &Target) -> Result<(Vec<Task>, Duration), Refused> {
    /// So that calls that were interrupted go on.
    const MOMENT: Duration = Duration::from_millis(1);
    let Some(process) = target.process() else {
        return Ok((target.snapshot()?, Duration::ZERO));
    };
    let taken = std::thread::scope(|scope| scope.spawn(|| take(process)).join());
    let (mut tasks, stopped) = taken.unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
    std::thread::sleep(MOMENT);
    for task in &mut tasks {
        target.resume(task);
        // It has run in order to wait again for what it waited for.
        let (call, registers, sched) = target.call_of(process, task);
        let same = task.stack.as_ref().map(|stack| (stack.stack, stack.code));
        task.sched = sched.filter(|_| call == task.call && registers == same);
    }
    Ok((tasks, stopped))
}

fn take(process: &Process) -> Result<(Vec<Task>, Duration), Refused> {
    let mut begun = None;
    let mut seized = HashSet::new();
    let mut stopped = Stopped::default();
    let mut tasks = Vec::new();
    for _ in 0..ROUNDS {
        // Once a thread is stopped, that is all that this says of it.
        let new = process.numbers()?.into_iter().filter(|id| !seized.contains(id));
        let new: Vec<(u32, Option<Stat>)> = new.map(|id| (id, process.stat(id))).collect();
        if new.is_empty() {
            break;
        }
        let mut stopping = Vec::new();
        for (id, stat) in new {
            seized.insert(id);
            let Some(stat) = stat.filter(|stat| !stat.has_ended()) else { continue };
            match ptrace(SEIZE, id, null_mut()) {
                Ok(()) => {}
                // It has ended.
                Err(error) if error.raw_os_error() == Some(libc::ESRCH) => continue,
                Err(error) => return Err(process.not_stopped(&error)),
            }
            begun = begun.or_else(|| Some(Instant::now()));
            if ptrace(INTERRUPT, id, null_mut()).is_ok() {
                stopping.push(id);
                tasks.push(Task { id, stat, sched: None, call: Call::Unknown, stack: None, near: None });
            }
        }
        wait(stopping, &mut stopped);
    }
    let ids: HashSet<u32> = stopped.threads.iter().map(|(id, _)| *id).collect();
    for task in tasks.iter_mut().filter(|task| ids.contains(&task.id)) {
        read(process, task);
    }
    drop(stopped);
    tasks.sort_by_key(|task| task.id);
    match begun {
        Some(begun) if !tasks.is_empty() => Ok((tasks, begun.elapsed())),
        _ => Err(process.has_ended()),
    }
}

/// Waits until these threads have stopped.
fn wait(mut stopping: Vec<u32>, stopped: &mut Stopped) {
    /// Between two looks.
    const PAUSE: Duration = Duration::from_micros(20);
    let begun = Instant::now();
    loop {
        stopping.retain(|id| {
            let mut status = 0;
            // SAFETY: `status` is there for the call to write to; a thread's number is no pointer.
            let found =
                unsafe { libc::waitpid(id.cast_signed(), &raw mut status, libc::__WALL | libc::WNOHANG) };
            if found > 0 && libc::WIFSTOPPED(status) {
                // A stop for `PTRACE_INTERRUPT` has an event; one for a signal, which it is still to get, has none.
                let signal = if status >> 16 == 0 { libc::WSTOPSIG(status) } else { 0 };
                stopped.threads.push((*id, signal));
            }
            found == 0
        });
        if stopping.is_empty() || begun.elapsed() > PATIENCE {
            return;
        }
        std::thread::sleep(PAUSE);
    }
}

/// What a thread that is stopped was in.
fn read(process: &Process, task: &mut Task) {
    let mut registers = Registers([0; Registers::NUMBER]);
    if ptrace(GET_REGISTERS, task.id, registers.0.as_mut_ptr().cast()).is_err() {
        return;
    }
    let words = process.words(registers.stack(), STACK);
    let (code, kept) = (registers.code(), registers.kept());
    task.stack = Some(Blocked { code, stack: registers.stack(), words, kept });
    task.call = registers.call();
    task.near = task.call.futex().and_then(|futex| process.near(futex.address));
    if let Some(mut again) = registers.with_call_again() {
        // Of a thread that was killed while it was stopped nothing is left to change.
        let _ = ptrace(SET_REGISTERS, task.id, again.0.as_mut_ptr().cast());
    }
}

/// A request of which the address is nothing.
fn ptrace(request: i64, thread: u32, data: *mut libc::c_void) -> io::Result<()> {
    let nothing = null_mut::<libc::c_void>();
    // SAFETY: the requests above take a number or nothing in `data`, but for the two of registers, which get a
    // place for `struct user_regs_struct`: as many words as `Registers` has. The rest is about another process.
    let result = unsafe { libc::ptrace(request as _, thread.cast_signed(), nothing, data) };
    if result == -1 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

const _: () = assert!(size_of::<libc::user_regs_struct>() == 8 * Registers::NUMBER);
