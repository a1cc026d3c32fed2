//! Profiles of locks, read: one process' tables merged, with symbols, ready to be shown.
//!
//! | module      | what it has                                                                     |
//! |-------------|---------------------------------------------------------------------------------|
//! | [`model`]   | a [`Profile`](model::Profile): the contract between reading and showing          |
//! | [`read`]    | recordings, `PID.spinprof`                                                       |
//! | [`symbols`] | functions and lines                                                             |

pub mod html;
pub mod model;
pub mod read;
pub mod symbols;
#[doc(hidden)]
pub mod testing;
pub mod words;
