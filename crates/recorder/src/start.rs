//! The recorder's beginning and end.

use core::cell::UnsafeCell;
use core::ffi::CStr;
use core::sync::atomic::Ordering::{Relaxed, Release};
use core::sync::atomic::{AtomicU32, AtomicU64};

use spinpark_linux::{raw, Linux};
use spinpark_platform::Clocks;

use super::clock::monotonic;
use super::maps::{has_maps, put_digits};
use super::{Failure, Recorder};
use crate::format::{Detail, Header, Locks, RegionId, MAGIC, QUOTA_FILE, VERSION};

/// Files of processes with one number that begin in one millisecond.
const MOST_FILES: u32 = 100;
const EEXIST: i32 = libc::EEXIST;

/// The default quota of a directory's recordings, bytes.
pub const MOST: u64 = 256 << 20;

/// What to record, and where.
#[derive(Clone, Copy, Debug)]
pub struct Settings<'a> {
    /// The directory in which the file is created.
    pub directory: &'a CStr,
    /// How much.
    pub detail: Detail,
    /// Whose locks.
    pub locks: Locks,
    /// One in this number of uncontended acquisitions is timed, with [`Detail::Sampled`].
    pub sample_every: u32,
    /// Waits of this length, ns, are kept whole, besides the longest of each thread.
    pub slower_than: u64,
    /// The quota of the directory's recordings, bytes.
    pub most: u64,
    /// The process has not waited for a lock, and others that do come first.
    pub is_idle: bool,
}

/// A moment by two clocks, ns.
struct Beginning {
    monotonic: u64,
    realtime: u64,
}

impl Recorder {
    /// Finds what captures stacks, and measures the clock. Allocates, and takes half a millisecond; once,
    /// before [`Recorder::idle`].
    pub fn prepare(&self) {
        self.unwinder.start();
        self.main_stack.start();
        self.ticks.start();
        self.sandbox.store(raw::sandbox(), Relaxed);
        self.alive.prepare();
    }

    /// Creates the file and begins. No thread records meanwhile.
    ///
    /// Only the thread that begins calls this: one at a time.
    pub(super) fn start(&self, settings: &Settings<'_>) -> Result<(), Failure> {
        // A filter may end the process for a system call that it does not expect.
        if self.is_sandboxed() {
            return Err(Failure::Sandbox);
        }
        raw::make_directory(settings.directory);
        // SAFETY: this is the thread that begins; no other calls this.
        let count = unsafe { self.path.join(settings.directory, |put| put(QUOTA_FILE.to_bytes())) };
        let count = count.ok_or(Failure::Create(libc::ENAMETOOLONG))?;
        self.file.quota.open(count, settings.most, settings.is_idle)?;
        if !self.file.quota.is_there() {
            return Err(Failure::Bound);
        }
        if !self.shared.renew() {
            return Err(Failure::Memory);
        }
        let start = self.beginning();
        let mut number = 1;
        loop {
            // SAFETY: this is the thread that begins.
            let path = unsafe { self.path.of_recording(settings.directory, start.realtime, number) };
            let path = path.ok_or(Failure::Create(libc::ENAMETOOLONG))?;
            match self.file.create(Some(path)) {
                Err(Failure::Create(EEXIST)) if number < MOST_FILES => number += 1,
                result => break result?,
            }
        }
        self.fill_in(settings, &start);
        self.alive.set_on();
        Ok(())
    }

    /// The same with a file in memory, and the shared tables of the parent, which the child's threads may be
    /// reading: they look for hints there. The state stays as it is.
    pub(super) fn start_in_memory(&self, settings: &Settings<'_>) -> Result<(), Failure> {
        if self.is_sandboxed() {
            return Err(Failure::Sandbox);
        }
        let maps = self.file.text(RegionId::Maps);
        self.file.forget();
        self.file.quota.open_in_memory(settings.most)?;
        self.shared.clear();
        // SAFETY: this is the thread that begins.
        unsafe { self.path.forget() };
        self.file.create(None).inspect_err(|_| self.file.quota.forget())?;
        if !has_maps() {
            // As after chroot(2): the parent's code is this process', too.
            self.file.append_text(RegionId::Maps, &maps);
        }
        // The parent's registration is a child's, too. To register again might be what a filter does not
        // expect.
        let has_barrier = raw::order_all_threads() || raw::prepare_order();
        self.has_barrier.store(has_barrier.into(), Relaxed);
        self.fill_in(settings, &self.beginning());
        Ok(())
    }

    /// When the process began.
    fn beginning(&self) -> Beginning {
        let now = self.ticks.now();
        self.started.store(self.alive.begun().unwrap_or(now), Relaxed);
        let ago = |time: u64| time.saturating_sub(self.ticks.ns(now.saturating_sub(self.started())));
        Beginning {
            monotonic: ago(monotonic()),
            realtime: ago(Linux::now(spinpark_platform::Clock::Realtime)),
        }
    }

    /// Writes the header of the file, which no other thread knows yet, and what is in each recording.
    fn fill_in(&self, settings: &Settings<'_>, began: &Beginning) {
        self.sample_every.store(settings.sample_every, Relaxed);
        self.slower_than.store(settings.slower_than, Relaxed);
        self.detail.store(settings.detail as u32, Relaxed);
        let header: *mut Header = self.file.at_start();
        macro_rules! set {
            ($($field:ident = $value:expr;)*) => {$(
                // SAFETY: the first page of the file, which no other thread knows yet.
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
            bounded = AtomicU32::new(0);
            tick = self.ticks.tick();
            start = self.started();
            start_monotonic = began.monotonic;
            start_realtime = began.realtime;
            last = AtomicU64::new(0);
            last_monotonic = AtomicU64::new(0);
            ended_monotonic = AtomicU64::new(0);
            nested = AtomicU64::new(0);
            namespace = namespace();
            born = born();
        }
        // SAFETY: the same page; the last byte stays a zero.
        raw::read_link(c"/proc/thread-self/exe", unsafe { &mut (&mut (*header).program)[..511] });
        let file = raw::open_read(c"/proc/thread-self/cmdline");
        if file >= 0 {
            // SAFETY: the same page.
            raw::read(file, unsafe { &mut (&mut (*header).arguments)[..1023] });
            raw::close(file);
        }
        self.snapshot_for(&[]);
        self.write_early();
        // SAFETY: the same page; written last.
        unsafe { &(*header).magic }.store(MAGIC, Release);
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
        self.note_rates();
        self.note_time();
        if let Some(header) = self.file.header() {
            header.exited.store(1, Release);
        }
        // As at the start: a filter might end the process.
        if !self.is_sandboxed() {
            // SAFETY: the recording has begun, and no other begins in this process.
            if let Some(path) = unsafe { self.path.last() } {
                self.file.close(path);
            }
        }
    }

    /// Whether this thread has entered a sandbox since the start: it has a filter of system calls, say.
    #[must_use]
    pub fn is_sandboxed(&self) -> bool {
        raw::sandbox() != self.sandbox.load(Relaxed)
    }

    /// Notes both clocks, for readers.
    pub fn note_time(&self) {
        if let Some(header) = self.file.header() {
            header.last.store(self.ticks.now(), Relaxed);
            header.last_monotonic.store(monotonic(), Release);
        }
    }

    /// The detail that is wanted now: that of the file, where other processes may write it.
    pub fn wanted(&self) -> Detail {
        let header =
            self.file.header().filter(|header| self.alive.get() && header.magic.load(Relaxed) == MAGIC);
        header.map_or(Detail::Off, |header| Detail::of(header.detail.load(Relaxed)))
    }

    /// Sets the detail that is recorded from now on.
    pub fn set_detail(&self, detail: Detail) {
        self.changed.store(self.now(), Relaxed);
        self.detail.store(detail as u32, Relaxed);
        self.spans.forget();
    }
}

/// A buffer for a path, which is not on the stack: a thread that waits may have little.
pub(super) struct Path(UnsafeCell<[u8; 4096]>);
// SAFETY: only the thread that begins a recording uses it, and there is one at a time.
unsafe impl Sync for Path {}

impl Path {
    pub(super) const fn new() -> Self {
        Self(UnsafeCell::new([0; 4096]))
    }

    /// A file in a directory; none if its path is too long.
    ///
    /// # Safety
    ///
    /// The caller is the thread that begins a recording, and uses no path that it made before.
    pub(super) unsafe fn join(
        &self,
        directory: &CStr,
        name: impl FnOnce(&mut dyn FnMut(&[u8])),
    ) -> Option<&CStr> {
        // SAFETY: the caller's promise.
        let path = unsafe { &mut *self.0.get() };
        let mut length = 0;
        let mut put = |bytes: &[u8]| {
            for byte in bytes {
                if let Some(free) = path.get_mut(length) {
                    *free = *byte;
                }
                length += 1;
            }
        };
        put(directory.to_bytes());
        put(b"/");
        name(&mut put);
        put(b"\0");
        CStr::from_bytes_with_nul(path.get(..length)?).ok()
    }

    /// There is no path.
    ///
    /// # Safety
    ///
    /// As [`Path::join`].
    unsafe fn forget(&self) {
        // SAFETY: the caller's promise.
        unsafe { (*self.0.get())[0] = 0 };
    }

    /// The path that was made last; none if there is none, or it was too long.
    ///
    /// # Safety
    ///
    /// No thread makes one meanwhile.
    pub(super) unsafe fn last(&self) -> Option<&CStr> {
        // SAFETY: the caller's promise.
        CStr::from_bytes_until_nul(unsafe { &*self.0.get() }).ok().filter(|path| !path.is_empty())
    }

    /// `DIRECTORY/PID-START.spinprof`, START in ms since 1970, or `DIRECTORY/PID-START-2.spinprof` for
    /// another process with this number in its own name space.
    ///
    /// # Safety
    ///
    /// As [`Path::join`].
    unsafe fn of_recording(&self, directory: &CStr, start: u64, number: u32) -> Option<&CStr> {
        // SAFETY: the caller's promise.
        unsafe {
            self.join(directory, |put| {
                put_digits(raw::process_id().into(), 10, 1, put);
                put(b"-");
                put_digits(start / 1_000_000, 10, 1, put);
                if number > 1 {
                    put(b"-");
                    put_digits(number.into(), 10, 1, put);
                }
                put(b".spinprof");
            })
        }
    }
}

/// The number of the PID namespace of this process: the link is `pid:[NUMBER]`. 0 if there is no such file.
#[must_use]
pub fn namespace() -> u32 {
    let mut link = [0; 32];
    let length = usize::try_from(raw::read_link(c"/proc/self/ns/pid", &mut link)).unwrap_or(0);
    digits(link.get(..length).and_then(|link| link.strip_prefix(b"pid:[")).unwrap_or(&[])) as u32
}

/// When the kernel started this process, in its ticks; 0 if it does not tell.
#[inline(never)]
fn born() -> u64 {
    /// Of the fields of `stat` behind the name, which ends with the last `)`.
    const FIELD: usize = 20;
    let file = raw::open_read(c"/proc/self/stat");
    if file < 0 {
        return 0;
    }
    let mut stat = [0; 512];
    let length = usize::try_from(raw::read(file, &mut stat)).unwrap_or(0);
    raw::close(file);
    let stat = stat.get(..length).unwrap_or(&[]);
    let name = stat.iter().rposition(|byte| *byte == b')').unwrap_or(stat.len());
    stat[name..].split(|byte| *byte == b' ').nth(FIELD).map_or(0, digits)
}

/// The number with which a text begins.
fn digits(text: &[u8]) -> u64 {
    let digits = text.iter().take_while(|byte| byte.is_ascii_digit());
    digits.fold(0, |number, digit| number.wrapping_mul(10).wrapping_add(u64::from(digit - b'0')))
}
