//! What a thread was kept by of late, other than its program: to say why it came late.

use crate::time::Ps;

/// What a thread can be kept by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Delay {
    /// It slept, and had not been woken yet.
    #[default]
    Asleep,
    /// It was woken, and its CPU came out of idle and switched to it.
    Waking,
    /// It could run, and others had its CPU.
    Queued,
    /// It waited for a cache line.
    Line,
    /// It polled what had not changed yet.
    Unchanged,
    /// What it polls had changed, and the pause between two looks was not over; or it looked at nothing
    /// meanwhile (back-off).
    Pause,
}

/// How many delays are remembered. Between two owners of a lock a thread has a few.
const KEPT: usize = 16;

#[derive(Clone, Copy, Debug, Default)]
struct Kept {
    delay: Delay,
    from: Ps,
    to: Ps,
}

/// The latest delays, in their order.
#[derive(Debug, Default)]
pub(crate) struct Recent {
    kept: [Kept; KEPT],
    /// Where the next one goes: that of the oldest.
    next: usize,
    /// The one under way.
    open: Option<(Delay, Ps)>,
}

impl Recent {
    /// It was kept from `from` to `to`.
    pub(crate) fn add(&mut self, delay: Delay, from: Ps, to: Ps) {
        if from >= to {
            return;
        }
        let last = &mut self.kept[(self.next + KEPT - 1) % KEPT];
        if last.delay == delay && last.to == from && last.from < last.to {
            last.to = to;
            return;
        }
        self.kept[self.next] = Kept { delay, from, to };
        self.next = (self.next + 1) % KEPT;
    }

    /// It is kept from `at` on, by something else than before.
    pub(crate) fn begin(&mut self, delay: Delay, at: Ps) {
        self.end(at);
        // It was on its way to a CPU, and lost that before it was there.
        let last = &mut self.kept[(self.next + KEPT - 1) % KEPT];
        last.to = last.to.min(at);
        self.open = Some((delay, at));
    }

    /// It goes on with its program at `at`, which may be later than now.
    pub(crate) fn end(&mut self, at: Ps) {
        if let Some((delay, from)) = self.open.take() {
            self.add(delay, from, at);
        }
    }

    /// Whether nothing has kept it since `from`.
    pub(crate) fn is_over(&self, from: Ps) -> bool {
        self.open.is_none() && self.kept[(self.next + KEPT - 1) % KEPT].to <= from
    }

    /// What kept it between `from` and `to`: each part, as far as it is remembered.
    pub(crate) fn between(&self, from: Ps, to: Ps) -> impl Iterator<Item = (Delay, Ps)> {
        let open = self.open.map(|(delay, since)| Kept { delay, from: since, to });
        self.kept.into_iter().chain(open).filter_map(move |kept| {
            let part = kept.to.min(to).saturating_sub(kept.from.max(from));
            (part > 0).then_some((kept.delay, part))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn between(recent: &Recent, from: Ps, to: Ps) -> Vec<(Delay, Ps)> {
        let mut all: Vec<_> = recent.between(from, to).collect();
        all.sort_by_key(|(delay, _)| *delay as usize);
        all
    }

    #[test]
    fn parts_of_a_time() {
        let mut recent = Recent::default();
        recent.begin(Delay::Asleep, 10);
        recent.begin(Delay::Waking, 30);
        recent.end(45);
        recent.add(Delay::Line, 50, 60);
        recent.add(Delay::Line, 60, 65);
        assert_eq!(recent.next, 3, "what follows at once is one delay");
        assert_eq!(between(&recent, 20, 62), [(Delay::Asleep, 10), (Delay::Waking, 15), (Delay::Line, 12)]);
        assert_eq!(between(&recent, 45, 50), []);
        assert!(recent.is_over(65) && !recent.is_over(64));
        recent.begin(Delay::Queued, 70);
        assert_eq!(between(&recent, 64, 80), [(Delay::Queued, 10), (Delay::Line, 1)]);
    }

    /// A thread that is to run at 50 is preempted at 40.
    #[test]
    fn a_way_to_a_cpu_that_is_cut_short() {
        let mut recent = Recent::default();
        recent.begin(Delay::Waking, 20);
        recent.end(50);
        recent.begin(Delay::Queued, 40);
        assert_eq!(between(&recent, 0, 60), [(Delay::Waking, 20), (Delay::Queued, 20)]);
    }

    #[test]
    fn old_delays_are_forgotten() {
        let mut recent = Recent::default();
        (0..100).for_each(|at| recent.add(Delay::Pause, 10 * at, 10 * at + 5));
        assert_eq!(recent.between(0, 1_000).map(|(_, part)| part).sum::<Ps>(), 5 * KEPT as Ps);
    }
}
