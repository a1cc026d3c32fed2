//! The programs: what threads do with each kind of lock.

mod condvar;
mod condvar_2003;
mod crowd;
mod dependent;
mod first;
mod forked;
mod mutex;
mod order;
mod owed;
mod patience;
mod queueing;
mod queues;
mod rwlock;
mod rwsem;
mod signalled;
mod stopped;
mod subject;
mod tries;

use super::checker::Family;
pub use condvar_2003::tokens_with as tokens_of_2003;
pub use dependent::dependent_with;
pub use first::first_with;
pub use order::{Monitor, order_of};
pub use patience::patience_with;
pub use stopped::{mutex_without_probes, rwlock_without_probes};
pub use tries::tries_with;

const FAMILIES: &[Family] = &[
    Family { name: "mutex", build: mutex::any },
    Family { name: "mutex_tight", build: mutex::tight },
    Family { name: "mutex_freed", build: mutex::freed },
    Family { name: "mutex_policies", build: mutex::policies },
    Family { name: "mutex_tight_policies", build: mutex::tight_policies },
    Family { name: "rwlock_policies", build: rwlock::policies },
    Family { name: "condvar_policies", build: condvar::policies },
    Family { name: "mutex_patience", build: patience::mutex },
    Family { name: "rwlock", build: rwlock::ours },
    Family { name: "rwlock_first", build: first::ours },
    Family { name: "rwlock_told", build: rwlock::told },
    Family { name: "rwlock_freed", build: rwlock::freed },
    Family { name: "rwlock_helper", build: rwlock::helper },
    Family { name: "rwlock_queueing", build: queueing::rwlock },
    Family { name: "rwlock_patience", build: patience::rwlock },
    Family { name: "rwlock_dependent_patience", build: dependent::ours },
    Family { name: "rwlock_tries", build: tries::ours },
    Family { name: "mutex_forked", build: forked::mutex },
    Family { name: "rwlock_forked", build: forked::rwlock },
    Family { name: "condvar_forked", build: forked::condvar },
    Family { name: "mutex_signalled", build: signalled::mutex },
    Family { name: "rwlock_signalled", build: signalled::rwlock },
    Family { name: "mutex_stopped", build: stopped::mutex },
    Family { name: "rwlock_stopped", build: stopped::rwlock },
    Family { name: "rwlock_first_stopped", build: stopped::rwlock_first },
    Family { name: "condvar_stopped", build: stopped::condvar },
    Family { name: "mutex_left", build: stopped::mutex_left },
    Family { name: "rwlock_left", build: stopped::rwlock_left },
    Family { name: "rwsem", build: rwsem::any },
    Family { name: "condvar", build: condvar::tokens },
    Family { name: "condvar_tight", build: condvar::tight },
    Family { name: "condvar_order", build: condvar::order },
    Family { name: "condvar_freed", build: condvar::freed },
    Family { name: "crowd", build: crowd::any },
    Family { name: "condvar_2003", build: condvar_2003::tokens },
    Family { name: "queues", build: queues::any },
    Family { name: "osq", build: queues::spinners },
    Family { name: "spin_queue", build: queues::spin_queue },
];

/// All of them.
#[must_use]
pub fn families() -> &'static [Family] {
    FAMILIES
}
