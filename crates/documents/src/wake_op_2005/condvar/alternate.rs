//! Whose condition variables a signaller and a waiter take turns on.

use spinpark_classics::condvar_2003::Signalling;
use spinpark_classics::designs::{self, Use};
use spinpark_linux::Linux;
use spinpark_lockbench::locks::adapters::classics::Condvar2003;
use spinpark_lockbench::locks::adapters::{UseCondvar, with_condvar};
use spinpark_lockbench::locks::primitives::BenchCondvar;

use super::alternation::{Done, Setting, run};
use super::counted::Counted;
use crate::workloads::job::JobError;

/// Takes turns on one kind of condition variable.
pub(crate) type Alternate = fn(&Setting) -> Result<Done, JobError>;

/// The one for the condition variables of an adapter; none if it has none, or none in this process.
pub(crate) fn by_name(adapter: &str) -> Option<Alternate> {
    let of_today = || with_condvar(adapter, TakeTurns);
    designs::with::<Linux, _>(adapter, TakeTurns).unwrap_or_else(of_today)
}

struct TakeTurns;

impl UseCondvar for TakeTurns {
    type Output = Alternate;

    fn with<C: BenchCondvar>(self) -> Alternate {
        run::<C>
    }
}

impl Use<Linux> for TakeTurns {
    type Output = Option<Alternate>;

    fn otherwise(self) -> Option<Alternate> {
        None
    }

    fn condvar_2003<S: Signalling + 'static>(self) -> Option<Alternate> {
        Some(of_2003::<S>)
    }
}

/// What is timed runs on Linux as it is.
fn of_2003<S: Signalling>(setting: &Setting) -> Result<Done, JobError> {
    match setting.counts {
        true => run::<Condvar2003<Counted<Linux>, S>>(setting),
        false => run::<Condvar2003<Linux, S>>(setting),
    }
}
