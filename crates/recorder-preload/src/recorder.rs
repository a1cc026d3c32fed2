//! The recorder of this process: below what begins and ends recordings.

use spinpark_recorder::Recorder;

/// See above.
pub(crate) static RECORDER: Recorder = Recorder::new();
