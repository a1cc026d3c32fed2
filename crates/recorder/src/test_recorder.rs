//! A recorder for tests: with a file in a directory that is gone already.

extern crate std;

use std::ffi::CString;
use std::os::unix::ffi::OsStrExt;

use crate::format::{Detail, Locks};
use crate::{Recorder, Settings, MOST};

/// One that records.
pub(crate) fn started(detail: Detail) -> &'static Recorder {
    let recorder: &Recorder = std::boxed::Box::leak(std::boxed::Box::new(Recorder::new()));
    let directory = tempfile::tempdir().expect("a directory");
    let path = CString::new(directory.path().as_os_str().as_bytes()).expect("a path");
    recorder.prepare();
    recorder.idle(detail);
    recorder.begin(&settings(&path, detail)).expect("a recording");
    recorder
}

pub(crate) fn settings(directory: &core::ffi::CStr, detail: Detail) -> Settings<'_> {
    Settings {
        directory,
        detail,
        locks: Locks::Glibc,
        sample_every: 1,
        slower_than: u64::MAX,
        most: MOST,
        is_idle: false,
    }
}
