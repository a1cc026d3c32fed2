//! Whose condition variables a signaller and a waiter take turns on.

use spinpark_classics::condvar_2003::{Orig, Requeue, Signalling, WakeByOp};
use spinpark_linux::Linux;

use super::condvar_2003::Condvar2003;
use super::{parking_lot_locks, pthread, spinpark_locks, std, usync_locks};
use crate::workloads::condvar::alternation::{Done, Setting, run};
use crate::workloads::condvar::counted::Counted;
use crate::workloads::job::Trouble;

/// Takes turns on one kind of condition variable.
pub(crate) type Alternate = fn(&Setting) -> Result<Done, Trouble>;

/// The one for the condition variables of a family; none if it has none, or none in this process.
pub(crate) fn by_name(family: &str) -> Option<Alternate> {
    Some(match family {
        "pthread" => run::<pthread::Condvar>,
        "pthread-adaptive" => run::<pthread::AdaptiveCondvar>,
        "std" => run::<std::Condvar>,
        "parking_lot" => run::<parking_lot_locks::Condvar>,
        "usync" => run::<usync_locks::Condvar>,
        "spinpark" => run::<spinpark_locks::Condvar>,
        "condvar-2003-orig" => of_2003::<Orig>,
        "condvar-2003-requeue" => of_2003::<Requeue>,
        "condvar-2003-wake-op" => of_2003::<WakeByOp>,
        _ => return None,
    })
}

/// What is timed runs on Linux as it is.
fn of_2003<S: Signalling>(setting: &Setting) -> Result<Done, Trouble> {
    match setting.counts {
        true => run::<Condvar2003<Counted<Linux>, S>>(setting),
        false => run::<Condvar2003<Linux, S>>(setting),
    }
}
