//! A profile of this crate's locks: recorded on x86-64 Linux only. Elsewhere a program that asks for one is told so.

use std::path::{Path, PathBuf};
use std::{error, fmt, io};

use lock_api::{Mutex, ReentrantMutex, RwLock};

use super::{Condvar, RawMutex, RawRwLock, RawThreadId};

/// The environment variable that [`start_from_environment`] looks for.
pub const VARIABLE: &str = "SPINPARK_PROFILE_DIR";

/// Why nothing is recorded.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// Not here.
    Again,
    /// Not here.
    Create(PathBuf, io::Error),
    /// Not here.
    NoRoom,
    /// On this system profiles are not recorded.
    Unsupported,
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "profiles are recorded on x86-64 Linux only")
    }
}

impl error::Error for Error {}

/// A profile that is being recorded: never, here.
#[derive(Debug)]
#[must_use = "a profile that is dropped has ended"]
pub struct Profile(());

impl Profile {
    /// Ends the profile.
    pub fn stop(self) {}

    /// Lets it be recorded until the program exits.
    pub fn keep(self) {}
}

/// # Errors
///
/// Always [`Error::Unsupported`].
pub fn start(_directory: impl AsRef<Path>) -> Result<Profile, Error> {
    Err(Error::Unsupported)
}

/// `None`: whoever sets the variable does so for all programs.
///
/// # Errors
///
/// None, here.
pub fn start_from_environment() -> Result<Option<Profile>, Error> {
    Ok(None)
}

/// Does nothing.
pub fn name<L: Named + ?Sized>(_lock: &L, _name: &str) {}

/// A lock that can have a name.
pub trait Named: sealed::Lock {}

impl<L: sealed::Lock + ?Sized> Named for L {}

mod sealed {
    pub trait Lock {}
}

impl<T: ?Sized> sealed::Lock for Mutex<RawMutex, T> {}
impl<T: ?Sized> sealed::Lock for ReentrantMutex<RawMutex, RawThreadId, T> {}
impl<T: ?Sized> sealed::Lock for RwLock<RawRwLock, T> {}
impl sealed::Lock for Condvar {}
