//! What it costs to move a lock to another CPU: learnt by spinners, for the whole process.
//!
//! It differs by a factor of three between machines, and decides whether taking turns with a lock pays (see
//! [`Adaptive::spinning`](super::Adaptive::spinning)). A spinner reads the clock, then the lock, finds it
//! free, and takes it. The time until it reads the clock again is a read and a compare-exchange of a line
//! that another CPU has just written, and a reading of the clock. Two readings in a row measure that last
//! part.

/// The number of samples before the cost is known, and then twice as many before it is set anew. The least of
/// them counts: others were preempted, or waited for other spinners.
const FIRST: u8 = 8;
/// The number of questions that get "unknown" before [`USUAL_NS`] is the answer: no thread gets a lock by
/// spinning.
const PATIENCE: u8 = 64;
/// Of two virtual CPUs of an Emerald Rapids Xeon, ns.
const USUAL_NS: u64 = 250;
/// One in 16 acquisitions by spinning is timed, once the cost is known.
const MOVES_PER_SAMPLE: u32 = 16;

/// The time that it takes to move a lock. All zero: not known. Plain data; a lost update does no harm.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct TransferCost {
    /// 0: not known.
    ns: u16,
    /// Of the samples that are being collected: the least, the least reading of the clock, and their number.
    least: u16,
    clock: u16,
    samples: u8,
    questions: u8,
}

impl TransferCost {
    /// Whether an acquisition by spinning is to be timed, the `count`th of its thread.
    #[must_use]
    pub const fn wants_sample(self, count: u32) -> bool {
        self.ns == 0 || count % MOVES_PER_SAMPLE == 0
    }

    /// The count before one that is timed.
    #[must_use]
    pub const fn before_sample() -> u32 {
        MOVES_PER_SAMPLE - 1
    }

    /// Notes that a move took `took` ns, with one reading of the clock, which takes `clock` ns.
    ///
    /// The least of each counts, not the least difference: a thread that is preempted between two readings
    /// has a long one.
    pub fn took(&mut self, took: u64, clock: u64) {
        let [took, clock] = [took, clock].map(|ns| u16::try_from(ns).unwrap_or(u16::MAX));
        let is_first = self.samples == 0;
        self.least = if is_first { took } else { self.least.min(took) };
        self.clock = if is_first { clock } else { self.clock.min(clock) };
        self.samples += 1;
        let enough = if self.ns == 0 { FIRST } else { 2 * FIRST };
        if self.samples >= enough {
            self.ns = self.least.saturating_sub(self.clock).max(1);
            self.samples = 0;
        }
    }

    /// What it costs to move a lock and its data, ns; 0 while that is not known. Counts the questions.
    ///
    /// The factor is that of two machines, an EPYC and a Xeon: `notes/tuning.md`.
    pub fn ask(&mut self) -> u64 {
        if self.ns != 0 {
            return (u64::from(self.ns) * 9 / 4).min(USUAL_NS);
        }
        self.questions = self.questions.saturating_add(1);
        if self.questions > PATIENCE {
            USUAL_NS
        } else {
            0
        }
    }

    /// As one word, and back.
    #[must_use]
    pub const fn to_bits(self) -> u64 {
        let Self { ns, least, clock, samples, questions } = self;
        ns as u64
            | (least as u64) << 16
            | (clock as u64) << 32
            | (samples as u64) << 48
            | (questions as u64) << 56
    }

    /// See [`to_bits`](TransferCost::to_bits).
    #[must_use]
    pub const fn from_bits(bits: u64) -> Self {
        Self {
            ns: bits as u16,
            least: (bits >> 16) as u16,
            clock: (bits >> 32) as u16,
            samples: (bits >> 48) as u8,
            questions: (bits >> 56) as u8,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cost_is_known_after_some_samples() {
        let mut cost = TransferCost::default();
        for _ in 0..FIRST {
            assert_eq!(cost.ask(), 0);
            assert!(cost.wants_sample(1));
            cost.took(90, 26);
        }
        assert_eq!(cost.ask(), 144);
        assert!(!cost.wants_sample(1) && cost.wants_sample(MOVES_PER_SAMPLE));
    }

    #[test]
    fn without_samples_the_usual_cost_counts_in_the_end() {
        let mut cost = TransferCost::default();
        assert!((0..PATIENCE).all(|_| cost.ask() == 0));
        assert_eq!(cost.ask(), USUAL_NS);
    }

    #[test]
    fn the_least_counts_until_the_next_series() {
        let mut cost = TransferCost::default();
        for took in [u64::MAX, 70, 1_000_000, 60, 65, 4_000_000, 75, 70] {
            cost.took(took, if took == 60 { 1_000_000 } else { 20 });
        }
        assert_eq!(cost.ask(), 90);
        for _ in 0..2 * FIRST {
            assert_eq!(cost.ask(), 90);
            cost.took(84, 20); // other CPUs
        }
        assert_eq!(cost.ask(), 144);
    }

    #[test]
    fn a_slow_machine_is_taken_to_be_the_usual_one() {
        let mut cost = TransferCost::default();
        for _ in 0..FIRST {
            cost.took(1000, 20); // or many spinners delay each other
        }
        assert_eq!(cost.ask(), USUAL_NS);
    }

    #[test]
    fn a_clock_that_ticks_seldom_makes_no_cost_unknown() {
        let mut cost = TransferCost::default();
        for _ in 0..FIRST {
            cost.took(0, 1000);
        }
        assert_eq!((cost.ask(), cost.wants_sample(1)), (2, false));
    }

    #[test]
    fn a_word_has_it_all() {
        let cost = TransferCost { ns: 0x1234, least: 7, clock: 0xffff, samples: 5, questions: 77 };
        assert_eq!(TransferCost::from_bits(cost.to_bits()), cost);
        assert_eq!(TransferCost::default().to_bits(), 0);
    }
}
