//! Reading what recorders wrote.
//!
//! | module     | what it has                                                        |
//! |------------|--------------------------------------------------------------------|
//! | `files`    | finding and mapping `*.spinprof`; [`Recording`]                     |
//! | `error`    | why something cannot be read, and what to do                        |
//! | `room`     | processes that were not recorded, for want of room                   |
//! | `maps`     | where modules were mapped                                           |
//! | `clock`    | ticks in ns                                                         |
//! | `tables`   | the tables of all threads added up, in ticks and numbers of records |
//! | `estimate` | time held, from samples                                             |
//! | `merge`    | the [`Profile`](crate::model::Profile)                              |
//! | `threads`  | how long threads were there                                         |
//! | `waiting`  | waits that had not ended, and cycles of them (deadlocks)            |
//! | `blame`    | the sites that blocked other threads                                |
//! | `labels`   | names of locks                                                      |
//! | `by_stack` | what waits at futexes and semaphores are for, by their stacks        |
//! | `condvars` | waits that are for locks which runtimes make of condition variables  |
//! | `meaning`  | what both have found                                                |

mod arrays;
mod blame;
mod by_stack;
mod clock;
mod condvars;
mod error;
mod estimate;
mod labels;
mod meaning;
mod merge;
mod recording_files;
mod thread_tables;
mod threads;
mod unrecorded;
mod waiting;

pub use self::clock::Clock;
pub use self::error::ReadError;
pub use self::estimate::{Sampled, student};
pub use self::merge::profile;
pub use self::recording_files::{Directory, EXTENSION, Recording, compact, directory, note_end};
pub use self::unrecorded::{Cause, ROOM_FILE, Unrecorded};
pub use crate::maps::{Mapping, Maps};
