//! A process that runs, and was not started under us: what each of its threads does now, read from `/proc`
//! and from its memory.
//!
//! Nothing is stopped, unless that is asked for, and nothing runs in it, but for a JVM that dumps its threads.
//! A thread that sleeps has its system call, with the arguments,
//! in `/proc/PID/task/TID/syscall`, and the end of its stack in memory: the futex that it sleeps at, and the
//! functions that led to it. A mutex of glibc, or of the drop-in, has its owner's number in memory.
//!
//! | module    | what it has                                                                     |
//! |-----------|---------------------------------------------------------------------------------|
//! | `access`  | what may be read of a process, and, where it may not, what opens it              |
//! | `target`  | the process: its memory, its files, a snapshot of its threads                     |
//! | `core`    | the same from a core dump                                                        |
//! | `task`    | one thread in a snapshot                                                         |
//! | `stop`    | all threads at one moment, stopped for it                                        |
//! | `registers` | of a thread that does not run                                                  |
//! | `gil`     | waits for CPython's GIL: whether they go on                                       |
//! | `hotspot` | a JVM's own dump of its threads                                                |
//! | `object`  | what a thread waits for, and which thread has it                                 |
//! | `python`  | CPython's frames, its GIL and its locks                                        |
//! | `python_sites` | the same of a program that is recorded: names of what was recorded        |
//! | `sampler` | many snapshots, as a profile                                                    |
//! | `stack`   | the stack of a thread with symbols, and what it waits for                          |
//! | `thread_now` | what a thread does at a moment                                               |
//! | `snapshot` | all threads at a moment, with symbols: who waits for whom, and what is stuck       |
//! | `page`    | that for people                                                                  |
//!
//! A snapshot is no instant: threads are read one after the other. What did not change between two of them is
//! sure; all else is said of the moment.

mod access;
mod core;
mod gil;
mod hotspot;
mod object;
mod page;
mod python;
mod python_sites;
#[cfg_attr(target_arch = "aarch64", path = "registers/aarch64.rs")]
mod registers;
mod sampler;
mod snapshot;
mod stack;
#[cfg_attr(target_arch = "aarch64", path = "stop/aarch64.rs")]
mod stop;
mod target;
mod task;
mod thread_now;

pub use self::access::Refused;
pub(crate) use self::access::{as_root, hidden, of_program};
pub use self::core::is_core;
pub use self::object::Held;
pub use self::page::{json, page};
pub use self::python_sites::{PythonSites, PythonWatch};
pub use self::sampler::Sampler;
pub use self::snapshot::{OfCore, Snapshot};
pub use self::target::Target;
pub use self::thread_now::{State, ThreadNow, Wait};
