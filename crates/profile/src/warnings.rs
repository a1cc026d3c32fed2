//! What to know before relying on the numbers, and whether records are missing.

use spinpark_measure::units::count;

use crate::model::{Profile, Warning};

impl Profile {
    /// Whether records are missing that could change the summary.
    #[must_use]
    pub fn is_partial(&self) -> bool {
        self.dropped > 0 || self.warnings.iter().any(Warning::is_loss)
    }

    /// What was not recorded: whole sentences, shown before the summary.
    #[must_use]
    pub fn losses(&self) -> Vec<String> {
        let dropped = (self.dropped > 0).then(|| {
            format!(
                "{} records did not fit (a full disk, or too many locks, threads or stacks): the numbers are too low.",
                count(self.dropped)
            )
        });
        let losses = self.warnings.iter().filter(|warning| warning.is_loss());
        dropped.into_iter().chain(losses.map(|warning| warning.text().to_owned())).collect()
    }

    /// The other warnings.
    pub fn notes(&self) -> impl Iterator<Item = &str> {
        self.warnings.iter().filter(|warning| !warning.is_loss()).map(Warning::text)
    }
}
