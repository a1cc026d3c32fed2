//! Native stress: in a process of its own, which shares its CPUs with no model.

mod classics_stress;
mod condvar_2003_stress;
mod policy_stress;
mod restartable;
mod spin_queue_stress;
