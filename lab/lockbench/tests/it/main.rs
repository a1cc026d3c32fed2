//! Locks side by side: definitions, adapters, records, and what is shown of them.

mod adapters;
mod definitions;
mod grid;
mod locks;
mod manual;
mod records;
