//! An operation on a word that a wake does on the way: see
//! [`Futex::futex_wake_op`](crate::Futex::futex_wake_op).
//!
//! Origin: Linux 4732efbe (document 003). The operations of the kernel, by name; the platform encodes them.

/// What happens to the word. The operand is a signed number of 32 bits; nothing overflows, it wraps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WordOp {
    /// The word becomes the operand.
    Set,
    /// The operand is added.
    Add,
    /// The operand's bits are set.
    Or,
    /// The operand's bits are cleared.
    AndNot,
    /// The operand's bits are inverted.
    Xor,
}

/// What it happens with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operand {
    /// This number; must fit into 12 bits with its sign: −2048 to 2047.
    Value(i32),
    /// The bit of this number, 0 to 31: `1 << bit`.
    Bit(u32),
}

/// How the old value is compared with a constant; both are signed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Comparison {
    /// Old value = constant.
    Equal,
    /// Old value ≠ constant.
    NotEqual,
    /// Old value < constant.
    Less,
    /// Old value ≤ constant.
    LessOrEqual,
    /// Old value > constant.
    Greater,
    /// Old value ≥ constant.
    GreaterOrEqual,
}

/// An operation on a word, and a condition on its old value.
///
/// ```
/// use spinpark_platform::{Comparison, Operand, WakeOp, WordOp};
///
/// // The unlock of a three-state lock: the word becomes 0; if it was more than 1, there are sleepers.
/// const UNLOCK: Option<WakeOp> = WakeOp::new(WordOp::Set, Operand::Value(0), Comparison::Greater, 1);
/// let unlock = UNLOCK.unwrap();
/// assert_eq!([1, 2].map(|old| (unlock.apply(old), unlock.holds(old))), [(0, false), (0, true)]);
/// assert_eq!(WakeOp::new(WordOp::Set, Operand::Value(2048), Comparison::Greater, 1), None);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WakeOp {
    op: WordOp,
    operand: Operand,
    comparison: Comparison,
    constant: i32,
}

/// What 12 bits hold, with a sign.
const SMALLEST: i32 = -(1 << 11);
const LARGEST: i32 = (1 << 11) - 1;

const fn fits(number: i32) -> bool {
    SMALLEST <= number && number <= LARGEST
}

impl WakeOp {
    /// An operation. `None` if a number does not fit into its 12 bits, or a bit not into a word.
    #[must_use]
    pub const fn new(op: WordOp, operand: Operand, comparison: Comparison, constant: i32) -> Option<Self> {
        let can_be = match operand {
            Operand::Value(value) => fits(value),
            Operand::Bit(bit) => bit < u32::BITS,
        };
        if can_be && fits(constant) {
            Some(Self { op, operand, comparison, constant })
        } else {
            None
        }
    }

    /// What happens to the word.
    #[must_use]
    pub const fn op(&self) -> WordOp {
        self.op
    }

    /// What it happens with.
    #[must_use]
    pub const fn operand(&self) -> Operand {
        self.operand
    }

    /// How the old value is compared.
    #[must_use]
    pub const fn comparison(&self) -> Comparison {
        self.comparison
    }

    /// What it is compared with.
    #[must_use]
    pub const fn constant(&self) -> i32 {
        self.constant
    }

    /// What a word that held `old` holds afterwards.
    #[must_use]
    pub const fn apply(&self, old: u32) -> u32 {
        let operand = match self.operand {
            Operand::Value(value) => value as u32,
            Operand::Bit(bit) => 1 << bit,
        };
        match self.op {
            WordOp::Set => operand,
            WordOp::Add => old.wrapping_add(operand),
            WordOp::Or => old | operand,
            WordOp::AndNot => old & !operand,
            WordOp::Xor => old ^ operand,
        }
    }

    /// Whether the condition holds of a word that held `old`.
    #[must_use]
    pub const fn holds(&self, old: u32) -> bool {
        let old = old as i32;
        match self.comparison {
            Comparison::Equal => old == self.constant,
            Comparison::NotEqual => old != self.constant,
            Comparison::Less => old < self.constant,
            Comparison::LessOrEqual => old <= self.constant,
            Comparison::Greater => old > self.constant,
            Comparison::GreaterOrEqual => old >= self.constant,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const EVERY: [Comparison; 6] = [
        Comparison::Equal,
        Comparison::NotEqual,
        Comparison::Less,
        Comparison::LessOrEqual,
        Comparison::Greater,
        Comparison::GreaterOrEqual,
    ];

    #[test]
    fn the_arithmetic() {
        let result = |op, operand, old| WakeOp::new(op, operand, Comparison::Equal, 0).unwrap().apply(old);
        assert_eq!(result(WordOp::Set, Operand::Value(-1), 5), u32::MAX);
        assert_eq!(result(WordOp::Add, Operand::Value(-6), 5), u32::MAX);
        assert_eq!(result(WordOp::Or, Operand::Bit(31), 5), 0x8000_0005);
        assert_eq!(result(WordOp::AndNot, Operand::Value(4), 5), 1);
        assert_eq!(result(WordOp::Xor, Operand::Bit(1), 7), 5);
    }

    #[test]
    fn the_comparisons_are_signed() {
        let holds = |old: i32| {
            EVERY.map(|comparison| {
                WakeOp::new(WordOp::Set, Operand::Value(0), comparison, -7).unwrap().holds(old as u32)
            })
        };
        assert_eq!(holds(-8), [false, true, true, true, false, false]);
        assert_eq!(holds(-7), [true, false, false, true, false, true]);
        assert_eq!(holds(7), [false, true, false, false, true, true]);
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        let new = |operand, constant| WakeOp::new(WordOp::Add, operand, Comparison::Less, constant).is_some();
        for (number, can_be) in [(-2049, false), (-2048, true), (2047, true), (2048, false)] {
            assert_eq!([new(Operand::Value(number), 0), new(Operand::Value(0), number)], [can_be; 2]);
        }
        assert!(new(Operand::Bit(31), 0) && !new(Operand::Bit(32), 0));
    }
}
