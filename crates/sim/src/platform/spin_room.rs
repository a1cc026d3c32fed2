//! What spinners queue in, in memory that costs what memory costs.

use std::any::Any;
use std::rc::Rc;

use spinpark_platform::{AtomicU32 as _, SpinLine, SpinnerSlots};

use super::AtomicU32;
use crate::engine::run::{is_inside, world};

/// As many as in the Linux platform.
const QUEUES: usize = 256;
const MOST_SLOTS: usize = SpinnerSlots::<AtomicU32>::MOST_SLOTS;
/// A run with few threads does without most slots, which take time to make; none of them is missed.
const SLOTS_PER_THREAD: usize = 16;
/// In a run that is checked there may be too few.
const FEW_SLOTS: usize = 3;

struct Lines {
    queues: Box<[SpinLine<AtomicU32>]>,
    slots: Box<[SpinLine<AtomicU32>]>,
}

impl Lines {
    fn new(slots: usize) -> Self {
        let line =
            |_| SpinLine { word: AtomicU32::new(0), about: AtomicU32::new(0), before: AtomicU32::new(0) };
        Self { queues: (0..QUEUES).map(line).collect(), slots: (0..slots).map(line).collect() }
    }
}

fn lines() -> Option<Rc<Lines>> {
    let made = world(|world| world.shared.spin_lines.clone());
    let lines = made.unwrap_or_else(|| {
        let slots = world(|world| match world.checks {
            Some(_) => FEW_SLOTS,
            None => (SLOTS_PER_THREAD * world.threads.0.len()).min(MOST_SLOTS),
        });
        let lines = Rc::new(Lines::new(slots));
        world(|world| {
            world.shared.add_region(&lines.queues);
            world.shared.add_region(&lines.slots);
            let lines: Rc<dyn Any> = lines;
            world.shared.spin_lines = Some(Rc::clone(&lines));
            lines
        })
    });
    lines.downcast().ok()
}

pub(super) fn with<R>(lock: usize, act: impl FnOnce(SpinnerSlots<'_, AtomicU32>) -> R) -> Option<R> {
    if !is_inside() {
        return None;
    }
    let lines = lines()?;
    let name = world(|world| world.name_of_lock(lock));
    Some(act(SpinnerSlots { queue: &lines.queues[name % QUEUES], slots: &lines.slots, name: name as u32 }))
}
