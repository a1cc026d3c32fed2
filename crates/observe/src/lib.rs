//! What a profile of locks is made of, and the code that writes it.
//!
//! The profiled program maps a file and counts in it; so a program that is killed leaves what it had, and another process can
//! look while it runs. Each thread writes to tables of its own, never near a lock; nothing is shared but what is written
//! once. No std, no allocation.
//!
//! | module      | what it has                                                   |
//! |-------------|---------------------------------------------------------------|
//! | [`format`]  | the file: regions, records, entries; a [`format::View`] of it  |
//! | [`recorder`]| the code that writes it, inside the program                   |
//! | [`lock_free_table`] | how it finds locks: a table without a lock                     |
#![no_std]

pub mod format;
pub mod lock_free_table;
pub mod recorder;
