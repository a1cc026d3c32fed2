//! Faults that a mutant puts into the machine, under unchanged locks.

use spinpark_platform::Ordering;

/// What an atomic operation does.
#[allow(missing_docs)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Load,
    Store,
    Swap,
    CompareExchange,
    CompareExchangeWeak,
    FetchAdd,
    FetchSub,
    FetchAnd,
    FetchOr,
}

/// An atomic operation, as a mutant sees it before it happens.
#[derive(Clone, Copy, Debug)]
pub struct Op {
    /// What it does.
    pub kind: Kind,
    /// Its order; of a compare-exchange, that of success.
    pub order: Ordering,
    /// The value it writes, adds, takes or masks with; 0 for a load, the address for a pointer.
    pub value: u64,
    /// Whether it is on a pointer.
    pub pointer: bool,
}

impl Op {
    /// An operation of kind `kind` with `order`, on a number.
    pub fn is(&self, kind: Kind, order: Ordering) -> bool {
        self.kind == kind && self.order == order
    }

    /// Either compare-exchange.
    pub fn is_compare_exchange(&self) -> bool {
        matches!(self.kind, Kind::CompareExchange | Kind::CompareExchangeWeak)
    }
}

/// What is wrong with the machine.
#[derive(Clone, Copy, Debug, Default)]
pub enum Fault {
    /// Nothing.
    #[default]
    None,
    /// Atomic operations for which this holds are relaxed.
    Relaxed(fn(&Op) -> bool),
    /// Wakes are lost.
    NoWakes,
    /// The heavy fence does nothing.
    NoFence,
    /// A wait goes to sleep whatever its word holds.
    NoCompare,
    /// A compare-exchange for which this holds (of what it would write) reports success without having written.
    NoWrite(fn(&Op) -> bool),
}

impl Fault {
    pub(super) fn order(self, op: Op) -> Ordering {
        match self {
            Self::Relaxed(is_weakened) if is_weakened(&op) => Ordering::Relaxed,
            _ => op.order,
        }
    }

    pub(super) fn skips(self, op: Op) -> bool {
        matches!(self, Self::NoWrite(is_skipped) if is_skipped(&op))
    }
}
