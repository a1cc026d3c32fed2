//! What the blocking locks here wait with: a list of nodes on waiters' stacks under a spin lock, a word to
//! sleep on in each node, and the question whether an owner runs.
//!
//! # Invariants
//!
//! - **L1** A node in a list is alive and does not move: its thread returns only after it has removed the
//!   node itself, or has seen that the thread that took it out has woken it.
//! - **L2** Ends and links of a list are touched under its spin lock only.
//! - **L3** Waking is the last access to a node that was taken out; the wake call that follows uses its
//!   address as a key.

mod list;
mod oracle;
mod poll_budget;
mod spin;
mod ticket;

pub use list::Ends;
pub(crate) use list::{Locked, Node, WaitList};
pub(crate) use oracle::Oracle;
pub(crate) use poll_budget::{Behind, MOST_POLL_NS, PollBudget, linked, window_polls};
pub use spin::{Barging, Order, SpinLock, Tickets};
pub use ticket::TicketLock;
