//! Questions to the system.

use std::ffi::CStr;
use std::mem::MaybeUninit;

use super::Context;
use crate::workloads::job::{JobError, expect};

/// Ten times: where am I, who am I, who is that, how long have I run, what is this machine.
pub(super) fn questions(_: &mut Context) -> Result<(), JobError> {
    let me = rustix::process::getuid();
    for _ in 0..10 {
        let here = std::env::current_dir().map_err(JobError::failed("getcwd"))?;
        expect(here.is_absolute(), || format!("the current directory is {}", here.display()))?;
        expect(rustix::process::getuid() == me && rustix::process::geteuid().as_raw() < u32::MAX, || {
            String::from("the user has changed")
        })?;
        look_up_root()?;
        let mut times = MaybeUninit::<libc::tms>::uninit();
        // SAFETY: a live local of the right type.
        let ticks = unsafe { libc::times(times.as_mut_ptr()) };
        expect(ticks != -1, || String::from("times fails"))?;
        let system = rustix::system::uname();
        expect(system.sysname() == c"Linux", || format!("the system is {:?}", system.sysname()))?;
        expect(rustix::process::getppid().is_some() || rustix::process::getpid().is_init(), || {
            String::from("there is no parent")
        })?;
    }
    Ok(())
}

/// Looks user 0 up, as long as there is a list of users.
fn look_up_root() -> Result<(), JobError> {
    // SAFETY: a string that ends with NUL. The result is static; users have one thread.
    let entry = unsafe { libc::getpwnam(c"root".as_ptr()) };
    if entry.is_null() {
        return Ok(());
    }
    // SAFETY: not null, and valid until the next call.
    let entry = unsafe { &*entry };
    // SAFETY: a string of the entry.
    let name = unsafe { CStr::from_ptr(entry.pw_name) };
    expect(entry.pw_uid == 0 && name == c"root", || format!("root is {name:?} with number {}", entry.pw_uid))
}
