//! What the simulator's runs say, and how far that is from the machine at hand.
//!
//! | what | where |
//! |---|---|
//! | the simulator's runs | [`simulate`] |
//! | this machine as a file for the simulator | [`calibrate`] |
//! | how far the simulator is from this machine | [`accuracy`] |
//! | a recorded program on another machine | [`replay`] |
//! | saying it | [`report`] |

pub mod accuracy;
pub mod calibrate;
pub mod replay;
pub mod report;
pub mod schema;
pub mod simulate;
