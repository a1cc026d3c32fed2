//! Profiles of locks, read: one process' tables merged, with symbols, ready to be shown.
//!
//! | module                 | what it has                                                                         |
//! |------------------------|-------------------------------------------------------------------------------------|
//! | [`load`](mod@load)     | whatever a recording has left, as finished profiles; begin here                     |
//! | [`read`]               | a recording, `PID.spinprof`, as a profile                                           |
//! | [`symbols`], [`waits`] | functions and lines; what a stack waits for                                         |
//! | [`model`]              | a [`Profile`](model::Profile): the contract between reading and showing             |
//! | [`json`], [`saved`]    | profiles as JSON; those that a recording's directory keeps                          |
//! | [`watch`], [`keeper`]  | what the command sees of a program in `/proc` while it runs, and keeps of its files |
//! | [`attach`]             | a process that runs, and was not started under us                                   |
//! | [`dormant`]            | a process that records when it is asked to                                          |
//! | [`names`]              | names of call sites and locks                                                       |
//! | [`summary`]            | the summary, in sentences; the parts of it are the next nine                        |
//! | `blame`                | the lock that most of the waiting is on, and which functions hold it and wait       |
//! | [`stuck`]              | waits that had not ended                                                            |
//! | [`silence`]            | what may be concluded where threads waited little                                   |
//! | `split`                | what the time waited for a lock was                                                 |
//! | `chain`                | what blocked its holder                                                             |
//! | `holders`              | what the holders in a sampled process did                                           |
//! | [`advice`](mod@advice) | what to do first, and what it can bring at most                                    |
//! | `phases`               | waiting over time                                                                   |
//! | `other_waits`          | waits that are for no lock, or may be for one                                       |
//! | `glibc_locks`          | locks inside of glibc, which only the observer sees                                 |
//! | [`unnamed`]            | code without names, and what to do about it                                         |
//! | [`thread_time`]        | what threads did with their time                                                    |
//! | [`share`]              | the share of threads' time that was waited, judged against a bound                  |
//! | [`swap`]               | which part of the waiting the drop-in could change                                  |
//! | [`whatif`]             | locks that can be delayed in other runs, and what tells them from others            |
//! | [`measured`]           | what `spinpark whatif` has measured, added to a profile                             |
//! | [`classes`]            | locks of one creation site as one                                                   |
//! | [`cost`]               | what recording cost                                                                 |
//! | [`text`], [`html`]     | the report as tables for terminals, and as a page                                   |
//! | [`diff`]               | two profiles compared                                                               |
//! | [`merged`]             | several profiles added up                                                           |
//! | [`slow`]               | the longest waits, one by one, for other tools                                      |
//! | [`export`]             | counters of waiting, for monitoring systems                                        |
//! | [`folded`], [`pprof`]  | stacks of waiting, for flame graphs and `go tool pprof`                             |

pub mod advice;
pub mod attach;
mod blame;
mod chain;
pub mod classes;
pub mod cost;
pub mod diff;
pub mod dormant;
pub mod export;
mod fit;
pub mod folded;
mod function_names;
mod glibc_locks;
mod holders;
pub mod html;
pub mod json;
pub mod keeper;
mod known_locks;
pub mod live_process;
pub mod load;
mod machine;
mod maps;
pub mod measured;
pub mod merged;
pub mod model;
pub mod names;
mod other_waits;
mod phases;
pub mod pprof;
pub mod read;
pub mod saved;
pub mod share;
pub mod silence;
pub mod slow;
mod split;
pub mod stuck;
pub mod summary;
pub mod swap;
pub mod symbols;
pub mod text;
pub mod thread_time;
pub mod unnamed;
pub mod waits;
pub mod watch;
pub mod whatif;
