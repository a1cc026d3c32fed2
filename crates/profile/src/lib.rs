//! Profiles of locks, read: one process' tables merged, with symbols, ready to be shown.
//!
//! | module      | what it has                                                                     |
//! |-------------|---------------------------------------------------------------------------------|
//! | [`model`]   | a [`Profile`](model::Profile): the contract between reading and showing          |
//! | [`names`]   | names of functions and call sites                                               |
//! | [`read`]    | recordings, `PID.spinprof`                                                       |
//! | [`symbols`] | functions and lines                                                             |
//! | [`json`]    | profiles as JSON; [`json::load`] reads whatever there is                         |
//! | [`summary`] | the summary, in sentences                                                       |
//! | [`stuck`]   | waits that had not ended, in sentences                                          |
//! | `split` | what the time waited for a lock was, in sentences                                     |
//! | [`unnamed`] | code without names, and what to do about it                                     |
//! | [`classes`] | locks of one creation site as one                                               |
//! | [`cost`]    | what recording cost                                                             |
//! | [`watch`]   | what the command sees of a program in `/proc` while it runs                       |
//! | [`silence`] | what may be concluded where threads waited little, in sentences                  |
//! | [`thread_time`] | what threads did with their time, in a line                                  |
//! | [`text`]    | tables for terminals                                                            |
//! | [`diff`]    | two profiles compared                                                           |
//! | [`folded`]  | stacks of waiting, for flame graphs                                             |
//! | [`pprof`]   | the same and more for `go tool pprof`                                           |
//! | [`html`]    | the report as a page                                                            |

mod chain;
pub mod classes;
pub mod cost;
pub mod diff;
mod fit;
pub mod folded;
mod function_names;
pub mod html;
pub mod json;
pub mod keeper;
mod known_locks;
mod maps;
pub mod model;
pub mod names;
mod other_waits;
mod phases;
pub mod pprof;
pub mod read;
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
