//! What a mutant breaks: the invariant, by its label.

use std::fmt;

/// What a mutant breaks.
#[derive(Clone, Copy, Debug)]
pub struct Breaks(What);

#[derive(Clone, Copy, Debug)]
enum What {
    Label(&'static str),
    Rule(&'static str),
}

/// A mutant breaks the invariant, or a transition's rule, of this label: `core.W1`, `classics::mcs.M2`. A test of
/// `spinpark-tree` reads the labels from the sources, and fails if one is not defined.
#[must_use]
pub const fn breaks(label: &'static str) -> Breaks {
    Breaks(What::Label(label))
}

/// A mutant breaks a rule that has no label: one of a classic lock, or of a check itself.
#[must_use]
pub const fn breaks_rule(rule: &'static str) -> Breaks {
    Breaks(What::Rule(rule))
}

impl fmt::Display for Breaks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            What::Label(label) => f.write_str(label),
            What::Rule(rule) => write!(f, "\"{rule}\""),
        }
    }
}
