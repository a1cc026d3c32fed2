//! Profiles of locks, read: one process' tables merged, with symbols, ready to be shown.

pub mod html;
pub mod model;
