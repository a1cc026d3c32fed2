//! Debug files from debuginfod servers, by elfutils' own client.
//!
//! `libdebuginfod.so.1` comes with what sets `DEBUGINFOD_URLS` on Debian, Fedora and others, and with gdb. It
//! is loaded when it is needed first, so there is one cache, one set of variables (`DEBUGINFOD_CACHE_PATH`,
//! `DEBUGINFOD_TIMEOUT`, …) and one list of trusted certificates for gdb, perf and this command.

use std::cell::RefCell;
use std::env;
use std::ffi::{CStr, CString, OsStr, c_char, c_int, c_long, c_void};
use std::io::{self, IsTerminal, Write};
use std::mem;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::ptr;
use std::time::{Duration, Instant};

/// A download that brings nothing for so long is given up.
const PATIENCE: Duration = Duration::from_secs(10);
const VARIABLE: &str = "DEBUGINFOD_URLS";

type Begin = unsafe extern "C" fn() -> *mut c_void;
type Find = unsafe extern "C" fn(*mut c_void, *const u8, c_int, *mut *mut c_char) -> c_int;
type Progress = unsafe extern "C" fn(*mut c_void, c_long, c_long) -> c_int;
type SetProgress = unsafe extern "C" fn(*mut c_void, Progress);

/// The client, or what is known of it.
#[derive(Default)]
pub(super) enum Debuginfod {
    /// Not asked for.
    #[default]
    Off,
    /// Not needed so far.
    Unused,
    Client(Client),
    /// It was tried, and is not tried again.
    Failed,
}

pub(super) struct Client {
    handle: *mut c_void,
    find: Find,
}

/// The download in progress, for the library's callback.
struct Download {
    /// What has come, and when more came last.
    last: (c_long, Instant),
    /// The file's name, until it is shown on a terminal.
    name: Option<String>,
}

thread_local! {
    static DOWNLOAD: RefCell<Option<Download>> = const { RefCell::new(None) };
}

/// Called by the library about once a second. Other than 0: it gives up.
extern "C" fn progress(_client: *mut c_void, done: c_long, _all: c_long) -> c_int {
    DOWNLOAD.with_borrow_mut(|download| {
        let Some(download) = download else { return 0 };
        if let Some(name) = download.name.take() {
            let _ = writeln!(io::stderr(), "Asking debuginfod for the symbols of {name} ...");
        }
        if done > download.last.0 {
            download.last = (done, Instant::now());
        }
        c_int::from(download.last.1.elapsed() > PATIENCE)
    })
}

impl Debuginfod {
    /// As the environment has it: no server unless one is named there.
    pub(super) fn of_environment() -> Self {
        if env::var_os(VARIABLE).is_some_and(|urls| !urls.is_empty()) { Self::Unused } else { Self::Off }
    }

    /// The debug file of a build, from the cache or a server. `path`: whose it is, for the line that reports
    /// it.
    pub(super) fn debug_info(&mut self, build_id: &str, path: &Path) -> Option<PathBuf> {
        if let Self::Unused = self {
            *self = Client::load().map_or(Self::Failed, Self::Client);
        }
        let Self::Client(client) = self else { return None };
        match client.find(build_id, path) {
            Ok(found) => Some(found),
            Err(libc::ENOENT) => None,
            Err(_) => {
                // A server that cannot be reached is not asked for the other files, either.
                *self = Self::Failed;
                None
            }
        }
    }

    /// Whether servers are named, but could not be asked.
    pub(super) fn has_failed(&self) -> bool {
        matches!(self, Self::Failed)
    }
}

impl Client {
    fn load() -> Option<Self> {
        // SAFETY: a library whose initialisers may run at any time.
        let library =
            unsafe { libc::dlopen(c"libdebuginfod.so.1".as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
        if library.is_null() {
            return None;
        }
        let symbol = |name: &CStr| {
            // SAFETY: a library that stays loaded.
            let found = unsafe { libc::dlsym(library, name.as_ptr()) };
            (!found.is_null()).then_some(found)
        };
        let begin = symbol(c"debuginfod_begin")?;
        let find = symbol(c"debuginfod_find_debuginfo")?;
        let set_progress = symbol(c"debuginfod_set_progressfn")?;
        // SAFETY: the function of this name has this type since elfutils 0.178.
        let begin = unsafe { mem::transmute::<*mut c_void, Begin>(begin) };
        // SAFETY: as above.
        let find = unsafe { mem::transmute::<*mut c_void, Find>(find) };
        // SAFETY: as above.
        let set_progress = unsafe { mem::transmute::<*mut c_void, SetProgress>(set_progress) };
        // SAFETY: no preconditions.
        let handle = unsafe { begin() };
        if handle.is_null() {
            return None;
        }
        // SAFETY: a client that was begun, and a function of that type.
        unsafe { set_progress(handle, progress) };
        Some(Self { handle, find })
    }

    fn find(&mut self, build_id: &str, path: &Path) -> Result<PathBuf, c_int> {
        let text = CString::new(build_id).map_err(|_| libc::ENOENT)?;
        let name = path.file_name().unwrap_or_default().to_string_lossy().escape_debug().to_string();
        let name = io::stderr().is_terminal().then_some(name);
        DOWNLOAD.set(Some(Download { last: (0, Instant::now()), name }));
        let mut found = ptr::null_mut();
        // SAFETY: a client; length 0 means that the build id is a string of digits; space for a pointer.
        let file = unsafe { (self.find)(self.handle, text.as_ptr().cast(), 0, &raw mut found) };
        DOWNLOAD.set(None);
        if file < 0 {
            return Err(-file);
        }
        // SAFETY: an open file that is ours.
        unsafe { libc::close(file) };
        if found.is_null() {
            return Err(libc::ENOENT);
        }
        // SAFETY: a string that is ours.
        let found_text = unsafe { CStr::from_ptr(found) };
        let found_path = PathBuf::from(OsStr::from_bytes(found_text.to_bytes()));
        // SAFETY: made by malloc.
        unsafe { libc::free(found.cast()) };
        Ok(found_path)
    }
}
