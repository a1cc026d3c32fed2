//! Fragments of the documents' own designs about which there are open claims, small enough to decide by model.

pub mod rwsem;
