//! The layout of locks: without padding, or with padding for fields of an interface.

use core::marker::PhantomData;

use spinpark_platform::Layout;

/// This machine: Linux, with everything private to the process.
pub type Linux = LinuxWith<()>;

/// [`Linux`], with padding in its locks for fields of an interface.
pub struct LinuxWith<R>(PhantomData<R>);

/// What an interface keeps in the locks: see [`Layout::Room`] and [`Layout::Gap`].
pub trait Rooms: Send + Sync + 'static {
    /// Behind the lock word.
    type Room: Default + Send + Sync;
    /// Before the head of the queue.
    type Gap: Default + Send + Sync;
}

impl Rooms for () {
    type Room = ();
    type Gap = ();
}

impl<R: Rooms> Layout for LinuxWith<R> {
    type Room = R::Room;
    type Gap = R::Gap;
}
