//! pthread objects and functions over the spinpark locks; one function per pthread call, each returning its errno.
//!
//! Exports nothing: the drop-in (`preload`) is an export table over this crate. All state is inside the pthread
//! objects, in glibc's own sizes, with glibc's own fields where it reads them; static initialisers of every kind work,
//! and nothing here needs a constructor to have run.
//!
//! | module     | what it has                                                                  |
//! |------------|------------------------------------------------------------------------------|
//! | [`mutex`]  | `pthread_mutex_*`                                                            |
//! | `fields`   | where glibc's fields stand in our locks                                      |
//! | `kind`     | the bits of a mutex' kind                                                    |
//! | `waited`   | a mutex that a wait on a condition variable takes back                        |
//! | [`loader`] | `dlopen`, `dlmopen`, `dlsym`: ways past the drop-in                          |
//! | `shared`   | a process in which glibc's functions are called as well                      |
//! | `foreign`  | mutexes that are locked through glibc's own functions as well                |
//! | [`glibcs`] | the calls for robust and priority-protected mutexes                            |
//! | [`rwlock`] | `pthread_rwlock_*`                                                           |
//! | [`cond`]   | `pthread_cond_*`, a cancellation point                                       |
//! | [`cancel`] | `pthread_cancel`, counted: a cancelled waiter must lose no other's signal     |
//! | [`leave`]  | calls that are left: cancelled, by `pthread_exit`, by a jump                    |
//! | [`fork`]   | `__register_atfork`: our handler comes first                                 |
//! | [`sandbox`]| `prctl`: a seccomp filter is about to come                                  |
//! | [`c11`]    | `mtx_*`, `cnd_*`                                                             |
//! | [`observe`]| an observer of what the locks do                                             |
//! | [`mode`]   | active or disabled, and how the user can tell                                |
//!
//! # Whose object is it?
//!
//! Robust, priority-inheritance, priority-protected and process-shared objects are glibc's: their kind says so, in the
//! field where glibc keeps it, and each call on one goes to glibc's own function (`real.rs`). With `SPINPARK_DISABLE=1`
//! that is every call.
#![no_std]

pub mod c11;
pub mod cancel;
pub mod cond;
mod fields;
mod foreign;
pub mod fork;
pub mod glibcs;
mod kind;
pub mod leave;
pub mod loader;
pub mod mode;
pub mod mutex;
pub mod observe;
mod real;
pub mod rwlock;
pub mod sandbox;
mod shared;
mod time;
mod waited;
