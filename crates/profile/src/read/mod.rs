//! Reading what recorders wrote.
//!
//! | module            | what it has                                                         |
//! |-------------------|---------------------------------------------------------------------|
//! | `recording_files` | finding and mapping `*.spinprof`; [`Recording`]                      |
//! | `error`           | why something cannot be read, and what to do                        |
//! | `unrecorded`      | processes that were not recorded                                    |
//! | `clock`           | ticks in ns                                                         |
//! | `thread_tables`   | the tables of all threads added up, in ticks and numbers of records |
//! | `meaning`         | what waits are for whose stacks tell                                |
//! | `by_stack`        | how that is found                                                   |
//! | `made_locks`      | locks that programs make of a mutex and condition variables         |
//! | `waiting`         | waits that had not ended, and cycles of them (deadlocks)            |
//! | `sampled_time`    | time held, from samples                                             |
//! | `experiment`      | what the recorder's spans have measured of its cost                 |
//! | `merge`           | the [`Profile`](crate::model::Profile) of all these                 |
//! | `threads`         | its threads                                                         |
//! | `labels`          | names of its locks                                                  |

mod by_stack;
mod clock;
mod error;
mod experiment;
mod labels;
mod made_locks;
mod meaning;
mod merge;
mod recording_files;
mod sampled_time;
mod thread_tables;
mod threads;
mod unrecorded;
mod waiting;

pub use self::clock::Clock;
pub use self::error::ReadError;
pub use self::merge::profile;
pub(crate) use self::recording_files::is_file_in_use;
pub use self::recording_files::{Directory, EXTENSION, Recording, compact, directory, is_in_use, note_end};
pub use self::unrecorded::{Cause, QUOTA_FILE, Unrecorded};
pub(crate) use self::waiting::is_never_woken;
pub use crate::maps::{Mapping, Maps};
