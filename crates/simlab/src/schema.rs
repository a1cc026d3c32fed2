//! The version of the JSON that the simulator's commands write.

/// The version of the documents' structure. It grows when a field changes its meaning or goes.
pub const SCHEMA: u32 = 2;
