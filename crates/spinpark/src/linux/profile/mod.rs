//! A profile of this crate's locks: which of them threads wait for, where, for how long, and behind which
//! holder.
//!
//! ```no_run
//! use spinpark::{profile, Mutex};
//!
//! static STORE: Mutex<Vec<u64>> = Mutex::new(Vec::new());
//!
//! fn main() -> Result<(), profile::Error> {
//!     let profile = profile::start("profiles")?;
//!     profile::name(&STORE, "store");
//!     // The work.
//!     STORE.lock().push(1);
//!     profile.stop();
//!     Ok(())
//! }
//! ```
//!
//! Then `spinpark report profiles` shows it, and `spinpark top` while the program runs. There is no feature
//! to enable, and a profile that is not started costs nothing: fast paths are the same, slow ones load a
//! pointer more.
//!
//! # What is recorded
//!
//! Locks watch themselves on their slow paths, so only calls that had to wait are seen (the detail
//! `contended`).
//!
//! | of                      | is recorded                                                                                |
//! |-------------------------|--------------------------------------------------------------------------------------------|
//! | each wait               | its length, its outcome, the waiter's stack, how many waited with it                         |
//! | its holder              | the stack that took the lock, if that had to wait as well; else the one that released it     |
//! | holds                   | how long, after an acquisition that waited: of [`Mutex`](crate::Mutex), and of a writer      |
//! | releases                | how many woke a waiter                                                                     |
//! | [`Condvar`]             | the wait for a notification, without the re-acquisition; notifications that found a waiter   |
//!
//! Not recorded: acquisitions that had not to wait, and tries that fail. The hold of a reader, or of an
//! upgradable reader, is not measured. An upgradable reader and an upgrade are counted as writers; a
//! [`ReentrantMutex`] as the mutex that it is made of. If a waiter gives up at its deadline, the hold that it
//! waited for is not measured.
//!
//! A lock is identified by its address. The end of a dropped lock is not seen: a later lock at its address is
//! counted with it, unless it is [named](name).
//!
//! # With the profiler
//!
//! `spinpark profile PROG` watches the program's pthread locks. This module has tables and a file of its own,
//! so both may run, and neither records the other's locks. Both files may be in one directory, and `spinpark
//! report` shows both.
//!
//! # Forks, threads, ends
//!
//! A forked child begins a file of its own when one of its locks first has to wait; it must name them again.
//! Threads need not know of the profile, and may end at any time. A program that is killed leaves what it had
//! recorded. The hold of a lock at that time is missing, as it is after [`Profile::stop`].

mod watch;

use std::error;
use std::ffi::CString;
use std::fmt;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use spinpark_recorder::Failure;

use crate::linux::raw_mutex::{self, RawMutex, RawMutexWith};
use crate::linux::raw_rwlock::RawRwLockWith;
use crate::linux::{condvar, slow_rwlock, Condvar, RawThreadId};
use crate::policy::Policy;

/// The environment variable that [`start_from_environment`] looks for.
pub const VARIABLE: &str = "SPINPARK_PROFILE_DIR";

/// Why nothing is recorded.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// A process records once, and this one does or did.
    Again,
    /// The file could not be created in this directory.
    Create(PathBuf, io::Error),
    /// There is no space for the file, or no memory, or files of this process may not be as long, or the
    /// recordings of the directory would exceed their quota (`SPINPARK_PROFILE_MAX_SIZE`, in bytes; 256 MiB
    /// without it).
    NoRoom,
    /// On this processor profiles are not recorded.
    Unsupported,
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Again => write!(f, "this process records its locks already, or did: a process does that once"),
            Self::Create(directory, error) => write!(
                f,
                "no profile can be created in {}: {error}; name a directory that can be written",
                directory.display()
            ),
            Self::NoRoom => write!(
                f,
                "there is no room for a profile: free some memory or disk, or raise the limit of the length of files \
                 (`ulimit -f`)"
            ),
            Self::Unsupported => write!(f, "profiles are recorded on x86-64 only"),
        }
    }
}

impl error::Error for Error {
    fn source(&self) -> Option<&(dyn error::Error + 'static)> {
        match self {
            Self::Create(_, error) => Some(error),
            _ => None,
        }
    }
}

/// A profile that is being recorded, until this is dropped or the program exits.
#[derive(Debug)]
#[must_use = "a profile that is dropped has ended"]
pub struct Profile(());

impl Profile {
    /// Ends the profile.
    pub fn stop(self) {}

    /// Lets it be recorded until the program exits.
    pub fn keep(self) {
        std::mem::forget(self);
    }
}

impl Drop for Profile {
    fn drop(&mut self) {
        watch::stop();
    }
}

/// Records what the locks of this process do from now on, in a file `PID-START.spinprof` of `directory`,
/// which is created if it is not there.
///
/// It takes about a millisecond, and memory for the tables as they fill. Waits that have begun before are not
/// recorded.
///
/// # Errors
///
/// See [`Error`].
pub fn start(directory: impl AsRef<Path>) -> Result<Profile, Error> {
    let directory = directory.as_ref();
    let failed = |error| Error::Create(directory.to_owned(), error);
    std::fs::create_dir_all(directory).map_err(failed)?;
    // A forked child may be somewhere else.
    let path = std::path::absolute(directory).map_err(failed)?;
    let path = CString::new(path.as_os_str().as_bytes()).map_err(|error| failed(error.into()))?;
    match watch::start(path) {
        Ok(()) => Ok(Profile(())),
        Err(None) if cfg!(target_arch = "x86_64") => Err(Error::Again),
        Err(None) => Err(Error::Unsupported),
        Err(Some(Failure::Create(error))) => Err(failed(io::Error::from_raw_os_error(error))),
        // Only dormant processes need the barrier.
        Err(Some(Failure::NotNow | Failure::NoBarrier)) => Err(Error::Again),
        Err(Some(Failure::Sandbox)) => Err(failed(io::ErrorKind::PermissionDenied.into())),
        Err(Some(Failure::TooLong | Failure::DiskFull | Failure::Memory | Failure::Bound)) => {
            Err(Error::NoRoom)
        }
    }
}

/// As [`start`], if the environment variable `SPINPARK_PROFILE_DIR` names a directory; `None` if it does not,
/// or is empty.
///
/// A program that is started by `spinpark profile` has that variable: then its library locks are recorded as
/// well as its pthread locks.
///
/// ```
/// fn main() -> Result<(), spinpark::profile::Error> {
///     let _profile = spinpark::profile::start_from_environment()?;
///     Ok(())
/// }
/// ```
///
/// # Errors
///
/// As [`start`].
pub fn start_from_environment() -> Result<Option<Profile>, Error> {
    match std::env::var_os(VARIABLE).filter(|directory| !directory.is_empty()) {
        Some(directory) => start(directory).map(Some),
        None => Ok(None),
    }
}

/// Gives a lock a name, which the profile shows. Without one it shows the lock's static variable, or the
/// place that first waited for it.
///
/// The name belongs to the lock's address: name it where it stays. A new name says that the lock there is
/// another one now. While nothing is recorded, this does nothing. The name ends at its first zero byte.
pub fn name<L: Named + ?Sized>(lock: &L, name: &str) {
    watch::name(lock, name);
}

/// A lock that can have a name: [`Mutex`](crate::Mutex), [`ReentrantMutex`], [`RwLock`](crate::RwLock),
/// [`Condvar`].
pub trait Named: sealed::Lock {}

impl<L: sealed::Lock + ?Sized> Named for L {}

mod sealed {
    use spinpark_recorder::{LockCall, Site};

    pub trait Lock {
        /// What it is called for.
        #[doc(hidden)]
        fn call(&self, site: Site) -> LockCall;
    }
}

use sealed::Lock;
use spinpark_recorder::format::Role;
use spinpark_recorder::{LockCall, Site};

#[allow(unused_imports)] // for the documentation
use crate::linux::ReentrantMutex;

impl<P: Policy, T: ?Sized> Lock for lock_api::Mutex<RawMutexWith<P>, T> {
    fn call(&self, site: Site) -> LockCall {
        // SAFETY: only its address is taken.
        raw_mutex::call(unsafe { self.raw() }, site)
    }
}

impl<T: ?Sized> Lock for lock_api::ReentrantMutex<RawMutex, RawThreadId, T> {
    fn call(&self, site: Site) -> LockCall {
        // SAFETY: only its address is taken.
        raw_mutex::call(unsafe { self.raw() }, site)
    }
}

impl<P: Policy, T: ?Sized> Lock for lock_api::RwLock<RawRwLockWith<P>, T> {
    fn call(&self, site: Site) -> LockCall {
        // SAFETY: only its address is taken.
        slow_rwlock::call(&unsafe { self.raw() }.0, Role::Write, site)
    }
}

impl Lock for Condvar {
    fn call(&self, site: Site) -> LockCall {
        condvar::call(self, site)
    }
}
