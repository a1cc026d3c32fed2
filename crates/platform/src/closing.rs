//! How many reads in a row make slots worth while: as many as pay for the next writer's revocation.
//!
//! Origin: BRAVO (Dice and Kogan, 2019), which bounds the slow-down that revocation can cause by a multiple
//! of the time that the last one took. Here the time is a running mean of the process, and is compared with
//! what slots save. So the lock needs neither a clock nor a history, and slots come later where interrupts
//! are slow (virtual machines).

/// What a read in a slot saves, compared with one that is counted in the lock, ns: a read-modify-write. Where
/// others read too, it saves a transfer of the lock's line as well; the lock counts such a read as several,
/// if there are CPUs to spare.
const READ_GAIN_NS: u32 = 16;
/// A longer revocation, ns, is taken for a preemption.
const MOST_NS: u32 = 200_000;

/// The mean time that it takes to revoke a lock's bias, ns; 0: not known.
#[derive(Debug, Default, Clone, Copy)]
pub struct ClosingCost(pub u32);

impl ClosingCost {
    /// Notes the time of a revocation, ns: the mean follows by an eighth.
    pub fn took(&mut self, took: u64) {
        let took = u32::try_from(took).unwrap_or(u32::MAX).min(MOST_NS);
        self.0 = if self.0 == 0 { took } else { self.0 - self.0 / 8 + took / 8 };
    }

    /// How many reads without a write in between enable the bias: `least`, and as many as pay for its
    /// revocation.
    #[must_use]
    pub const fn reads(self, least: u32) -> u32 {
        least.saturating_add(self.0 / READ_GAIN_NS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dear_closings_ask_for_more_reads() {
        let mut cost = ClosingCost::default();
        assert_eq!(cost.reads(32), 32);
        cost.took(16_000);
        assert_eq!(cost.reads(32), 1032);
        for _ in 0..100 {
            cost.took(160);
        }
        assert!(cost.reads(32) < 64, "{cost:?}");
    }

    #[test]
    fn a_preemption_counts_for_little() {
        let mut cost = ClosingCost::default();
        cost.took(u64::MAX);
        assert!(cost.reads(0) <= MOST_NS / READ_GAIN_NS);
    }
}
