//! The slow paths of the read-write lock, one function each: see [`slow`](crate::slow).

use spinpark_linux::Linux;
use spinpark_locks::{Policy, Preference, RawRwLock};
use spinpark_platform::{Deadline, Threads};
use spinpark_recorder::format::{Kind, Role};
use spinpark_recorder::{LockCall, Site};

use crate::linux::slow::{self, Acquisition};

/// A reader passes waiting writers, until they have starved.
pub(crate) const READERS: Preference = Preference::Readers;

/// The mode in which a read-write lock is requested.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mode {
    Read,
    ReadAgain,
    Write,
    Upgradable,
    Upgrade,
}

impl Mode {
    /// In which role it is counted: an exclusive acquisition, also an upgradable one, counts as a write.
    fn role(self) -> Role {
        match self {
            Self::Read | Self::ReadAgain => Role::Read,
            Self::Write | Self::Upgradable | Self::Upgrade => Role::Write,
        }
    }
}

/// The rest of an acquisition that did not succeed at once.
#[inline(always)]
pub(crate) fn acquire<Q: Policy<Linux>>(
    lock: &RawRwLock<Linux, Q>,
    want: Mode,
    deadline: Option<Deadline>,
) -> bool {
    let path = match want {
        Mode::Read => read::<Q>,
        Mode::ReadAgain => read_again::<Q>,
        Mode::Write => write::<Q>,
        Mode::Upgradable => upgradable::<Q>,
        Mode::Upgrade => upgrade_contended::<Q>,
    };
    // SAFETY: for a read-write lock.
    unsafe { slow::slow(lock, deadline.as_ref(), path) }
}

/// From upgradable to alone.
#[inline(always)]
pub(crate) fn upgrade<Q: Policy<Linux>>(lock: &RawRwLock<Linux, Q>, deadline: Option<Deadline>) -> bool {
    match slow::watcher() {
        None => lock.upgrade(deadline),
        Some(_) => acquire(lock, Mode::Upgrade, deadline),
    }
}

pub(crate) fn call<Q: Policy<Linux>>(lock: &RawRwLock<Linux, Q>, role: Role, site: Site) -> LockCall {
    let address: *const RawRwLock<Linux, Q> = lock;
    LockCall { address: address as usize, role, kind: |_| Kind::RwLock, site }
}

struct Lock<'a, Q: Policy<Linux>> {
    lock: &'a RawRwLock<Linux, Q>,
    want: Mode,
    deadline: Option<Deadline>,
}

impl<Q: Policy<Linux>> Acquisition for Lock<'_, Q> {
    fn at_once(&self) -> bool {
        match self.want {
            Mode::Read => self.lock.try_read_simply(READERS),
            Mode::ReadAgain => self.lock.read_recursive_at_once(),
            Mode::Write => self.lock.write_at_once(Linux::thread_token()),
            Mode::Upgradable => self.lock.upgradable_at_once(),
            Mode::Upgrade => self.lock.upgrade_at_once(),
        }
    }

    fn block(&self) -> bool {
        match self.want {
            Mode::Read => self.lock.read_until(READERS, self.deadline),
            Mode::ReadAgain => self.lock.read_recursive(self.deadline),
            Mode::Write => self.lock.write_until(self.deadline),
            Mode::Upgradable => self.lock.upgradable(self.deadline),
            Mode::Upgrade => self.lock.upgrade(self.deadline),
        }
    }

    fn owner(&self) -> u32 {
        self.lock.owner()
    }

    fn is_timed(&self) -> bool {
        self.deadline.is_some()
    }

    fn force_slow_release(&self) -> bool {
        let is_alone = matches!(self.want, Mode::Write | Mode::Upgrade);
        if is_alone {
            self.lock.force_slow_release();
        }
        is_alone
    }
}

/// Declares slow ways in.
macro_rules! ways_in {
    ($($name:ident = $want:ident;)*) => {$(
        unsafe extern "C" fn $name<Q: Policy<Linux>>(lock: *const (), deadline: *const (), site: Site) -> bool {
            // SAFETY: the caller's lock.
            let lock = unsafe { &*lock.cast::<RawRwLock<Linux, Q>>() };
            // SAFETY: the caller's deadline, or null.
            let deadline = unsafe { slow::deadline(deadline) };
            let acquisition = Lock { lock, want: Mode::$want, deadline };
            match slow::watcher() {
                None => acquisition.block(),
                Some(watcher) => (watcher.acquire)(&call(lock, Mode::$want.role(), site), &acquisition),
            }
        }
    )*};
}

ways_in! {
    read = Read;
    read_again = ReadAgain;
    write = Write;
    upgradable = Upgradable;
    upgrade_contended = Upgrade;
}

/// Declares slow ways out, in a role.
macro_rules! ways_out {
    ($($name:ident = $role:ident, $method:ident;)*) => {$(
        pub(crate) unsafe extern "C" fn $name<Q: Policy<Linux>>(lock: *const (), _: *const (), site: Site) -> bool {
            // SAFETY: the caller's lock, until it is released.
            let lock = unsafe { &*lock.cast::<RawRwLock<Linux, Q>>() };
            match slow::watcher() {
                None => lock.$method(),
                Some(watcher) => (watcher.release)(&call(lock, Role::$role, site), &|| lock.$method()),
            }
            true
        }
    )*};
}

ways_out! {
    unlock_read = Read, unlock_read_contended;
    unlock_write = Write, unlock_write_contended;
    unlock_read_fair = Read, unlock_read_fair;
    unlock_write_fair = Write, unlock_write_fair;
    downgrade = Write, downgrade;
    downgrade_to_upgradable = Write, downgrade_to_upgradable;
}
