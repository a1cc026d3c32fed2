//! Padding in a lock for an interface that prescribes where its fields are.

/// The fields in a lock that are not its own state. The algorithms do not touch them.
pub trait Layout: Sized + Send + Sync + 'static {
    /// Padding between a lock's word and the rest of its state: nothing, or fields of an interface that keeps
    /// them there. All zero by default. The algorithms do not touch it.
    type Room: Default + Send + Sync;

    /// The same, between the queue lock and the head of the queue.
    type Gap: Default + Send + Sync;
}
