//! A simulated many-core NUMA machine on which the very same lock sources run.

pub mod machine;
