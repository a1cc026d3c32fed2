//! How a measurement ended.

use crate::failure::RunError;
/// Why there are no more runs.
#[derive(Debug)]
pub enum End {
    /// All blocks were run.
    Complete,
    /// The user stopped it.
    Interrupted,
    /// A run failed.
    Failed(RunError),
}

impl End {
    /// The word for data files.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::Complete => "complete",
            Self::Interrupted => "interrupted",
            Self::Failed(_) => "failed",
        }
    }

    pub(crate) fn from_error(error: RunError) -> Self {
        if matches!(error, RunError::Interrupted) { Self::Interrupted } else { Self::Failed(error) }
    }
}
