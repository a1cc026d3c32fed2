//! What a thread looks at while it polls.

use crate::time::Ps;
use crate::world::ids::LineId;

/// So many lines are remembered as polled.
const POLLED: usize = 4;

/// What a thread looks at while it spins.
#[derive(Debug, Default)]
pub(crate) struct Watch {
    /// What it has accessed since its last `spin_hint`, and what version it saw.
    pub(crate) polled: [Option<(LineId, u32)>; POLLED],
    /// Lines that have it among their watchers.
    pub(crate) registered: Vec<LineId>,
    /// How long it has seen nothing new.
    pub(crate) quiet: Ps,
    /// When it was put to wait; none: it has lost its CPU since.
    pub(crate) since: Option<Ps>,
    /// For how long it has polled in this wait before it lost its CPU.
    pub(crate) before: Ps,
    /// As much of that as was the run's time.
    pub(crate) before_in_time: Ps,
}
