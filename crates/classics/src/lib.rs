//! The locks of the four documents as they were: to be run, measured and broken, not to be used.
//!
//! | lock                          | document | what it is                                                            |
//! |-------------------------------|----------|-----------------------------------------------------------------------|
//! | [`mutex_2003::Mutex`]         | 003      | glibc's futex mutex of three states                                   |
//! | [`condvar_2003::Condvar`]     | 003      | glibc's condition variable, with each of three ways to signal         |
//!
//! Written from descriptions of the algorithms, over the same [`Platform`](spinpark_platform::Platform) as our own
//! locks, so that benchmarks, models and simulations take either. Nothing is allocated, no statics, no thread-locals,
//! no `cfg`.
#![no_std]
#![deny(unsafe_code)]

#[allow(unsafe_code)] // Cells that the internal lock protects.
pub mod condvar_2003;
pub mod mutex_2003;
