//! The recorder's beginning and end.

use core::ffi::CStr;
use core::sync::atomic::Ordering::{Relaxed, Release};
use core::sync::atomic::{AtomicU32, AtomicU64};

use spinpark_linux::{raw, Linux};
use spinpark_platform::Platform;

use super::clock::monotonic;
use super::{Failure, Recorder};
use crate::format::{Detail, Header, Locks, MAGIC, VERSION};

/// Files of a process: a program that becomes another keeps its number.
const MOST_FILES: u32 = 100;
const EEXIST: i32 = libc::EEXIST;

/// What to record, and where.
#[derive(Clone, Copy, Debug)]
pub struct Settings<'a> {
    /// The directory in which the file is created.
    pub directory: &'a CStr,
    /// How much.
    pub detail: Detail,
    /// Whose locks.
    pub locks: Locks,
    /// One in so many uncontended acquisitions is timed, with [`Detail::Sampled`].
    pub sample_every: u32,
}

impl Recorder {
    /// Finds what captures stacks, and measures the clock. Allocates, and takes half a millisecond; once, before
    /// [`Recorder::start`].
    pub fn prepare(&self) {
        self.unwinder.start();
        self.main_stack.start();
        self.ticks.start();
    }

    /// Creates the file and begins. No thread records meanwhile.
    pub fn start(&self, settings: &Settings<'_>) -> Result<(), Failure> {
        if !self.alive.prepare() || !self.side.renew() {
            return Err(Failure::NoRoom);
        }
        let mut number = 1;
        loop {
            let path = path(settings.directory, number);
            let path = CStr::from_bytes_until_nul(&path).map_err(|_| Failure::Create(libc::ENAMETOOLONG))?;
            match self.file.create(path) {
                Err(Failure::Create(EEXIST)) if number < MOST_FILES => number += 1,
                result => break result?,
            }
        }
        self.sample_every.store(settings.sample_every, Relaxed);
        self.detail.store(settings.detail as u32, Relaxed);
        self.started.store(self.ticks.now(), Relaxed);
        let header: *mut Header = self.file.at_start();
        let (start_monotonic, start_realtime) = (monotonic(), Linux::now(spinpark_platform::Clock::Realtime));
        macro_rules! set {
            ($($field:ident = $value:expr;)*) => {$(
                // SAFETY: the first page of the file, which nobody else knows yet.
                unsafe { (*header).$field = $value };
            )*};
        }
        set! {
            version = VERSION;
            exited = AtomicU32::new(0);
            pid = raw::process_id();
            parent = raw::parent_id();
            detail = AtomicU32::new(settings.detail as u32);
            locks = settings.locks as u32;
            clock = self.ticks.kind() as u32;
            sample_every = settings.sample_every;
            cpus = raw::cpus();
            tick = self.ticks.tick();
            start = self.started();
            start_monotonic = start_monotonic;
            start_realtime = start_realtime;
            last = AtomicU64::new(0);
            last_monotonic = AtomicU64::new(0);
            ended_monotonic = AtomicU64::new(0);
            nested = AtomicU64::new(0);
        }
        // SAFETY: as above; the last byte stays a zero.
        raw::read_link(c"/proc/self/exe", unsafe { &mut (&mut (*header).program)[..511] });
        let file = raw::open_read(c"/proc/self/cmdline");
        if file >= 0 {
            // SAFETY: as above.
            raw::read(file, unsafe { &mut (&mut (*header).arguments)[..1023] });
            raw::close(file);
        }
        self.snapshot_for(&[]);
        // SAFETY: as above; written last.
        unsafe { &(*header).magic }.store(MAGIC, Release);
        self.alive.set(true);
        Ok(())
    }

    /// The process ends in order.
    pub fn finish(&self) {
        if !self.is_on() {
            return;
        }
        if let Some(own) = self.enter_fast() {
            self.write_pending(own);
            self.leave();
        }
        self.mark_ended();
        self.note_time();
        if let Some(header) = self.file.header() {
            header.exited.store(1, Release);
        }
    }

    /// Notes both clocks, for readers.
    pub fn note_time(&self) {
        if let Some(header) = self.file.header() {
            header.last.store(self.ticks.now(), Relaxed);
            header.last_monotonic.store(monotonic(), Release);
        }
    }

    /// The detail that somebody wants: that of the file, where others may write it.
    pub fn wanted(&self) -> Detail {
        let header =
            self.file.header().filter(|header| self.alive.get() && header.magic.load(Relaxed) == MAGIC);
        let wanted = header.map_or(0, |header| header.detail.load(Relaxed));
        let known = [Detail::Contended, Detail::Sampled, Detail::Full];
        known.into_iter().find(|detail| *detail as u32 == wanted).unwrap_or(Detail::Off)
    }

    /// That is what is recorded from now on.
    pub fn set_detail(&self, detail: Detail) {
        self.changed.store(self.now(), Relaxed);
        self.detail.store(detail as u32, Relaxed);
    }
}

/// `DIRECTORY/PID.spinprof`, or `DIRECTORY/PID-2.spinprof` for the second of a process, ended by a zero; no zero if it is
/// too long.
fn path(directory: &CStr, number: u32) -> [u8; 4096] {
    let mut path = [1; 4096];
    let mut length = 0;
    let mut put = |bytes: &[u8]| {
        for byte in bytes {
            if let Some(free) = path.get_mut(length) {
                *free = *byte;
                length += 1;
            }
        }
    };
    put(directory.to_bytes());
    put(b"/");
    decimal(raw::process_id(), &mut put);
    if number > 1 {
        put(b"-");
        decimal(number, &mut put);
    }
    put(b".spinprof\0");
    path
}

fn decimal(number: u32, put: &mut dyn FnMut(&[u8])) {
    if number >= 10 {
        decimal(number / 10, put);
    }
    put(&[b'0' + (number % 10) as u8]);
}
