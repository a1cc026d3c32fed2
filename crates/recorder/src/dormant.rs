//! Recordings of one process, one after the other, in one file; between them the process is *asleep*: it
//! records nothing.
//!
//! The file, its mapping and the shared tables stay where they are. A recording begins with all of them empty
//! ([`Recorder::awake`]), so no thread may use them then. Whoever enters the recorder says so first, and looks
//! then whether the recording is still the one that it knows ([`Recorder::epoch`]); whoever ends all
//! recordings changes the epoch first, and looks then whether any thread is in the recorder:
//!
//! ```text
//!     a thread that enters          the thread that begins a recording
//!     at_work = 1                   epoch += 1
//!     ── fence of the other ──      ── membarrier ──
//!     epoch is mine? go on          at_work of all = 0? go on
//! ```
//!
//! So one of the two sees the other. The thread that enters has only a compiler's fence; the barrier makes one
//! of it. A thread without a table has no `at_work`: it is counted in `entering`, in one order (SeqCst) with
//! the state. If a thread is in the recorder, no recording begins, and the caller tries again later: no thread
//! waits for another.
//!
//! A wait that began in another recording, or while the process was asleep, has another epoch, or the recorder
//! has nothing of it: it is not counted. What a thread has noted (its table, the locks that it holds) is of
//! its epoch, and thrown away when it enters the recorder in another one.
//!
//! | operation                     | order           | pairs with       | because                                   |
//! |-------------------------------|-----------------|------------------|-------------------------------------------|
//! | `at_work`: store of 1         | Relaxed, fence  | the barrier      | as above                                  |
//! | `at_work`: store of 0; load   | Release, Acquire | each other      | what the thread wrote comes before what is written next |
//! | `epoch`: add                  | SeqCst          | load after `at_work` | as above                              |
//! | `entering`: add; load         | SeqCst          | state            | a thread that enters sees the state, or is seen |
//! | state: changes                | SeqCst          | `is_on_in_order` | the same                                  |

use core::ffi::CStr;
use core::sync::atomic::Ordering::{Relaxed, Release, SeqCst};
use core::sync::atomic::{compiler_fence, AtomicU64};

use spinpark_linux::{raw, Linux};
use spinpark_platform::Clocks;

use super::clock::monotonic;
use super::fork::{ASLEEP, BEGINNING, ON};
use super::thread_state::{here, Facts, ThreadState};
use super::{Failure, Recorder};
use crate::format::{Detail, Header, RegionId, CONTROL_FILE, MAGIC, QUOTA_FILE};

impl Recorder {
    /// Whether this process is asleep at times, or was forked by one that is.
    #[must_use]
    pub fn is_dormant(&self) -> bool {
        self.dormant.load(Relaxed) != 0
    }

    /// Whether a recording is under way, of a process that is asleep otherwise.
    #[must_use]
    pub fn is_awake(&self) -> bool {
        self.is_dormant() && self.alive.get()
    }

    /// For how long it has been since then (ticks), ns.
    #[must_use]
    pub fn ns_since(&self, then: u64) -> u64 {
        self.ticks.ns(self.now().saturating_sub(then))
    }

    /// After [`Recorder::begin`] with [`Detail::Off`]: nothing is recorded until [`Recorder::awake`].
    pub fn sleep(&self) {
        self.dormant.store(1, Relaxed);
        self.detail.store(Detail::Off as u32, Relaxed);
        self.alive.change(ON, ASLEEP);
    }

    /// A recording begins, with the detail `contended`. [`Failure::NotNow`]: perhaps the next time, soon; any
    /// other failure is that of this process.
    #[cold]
    #[inline(never)]
    pub fn awake(&self, slower_than: u64) -> Result<(), Failure> {
        let local = here();
        if local.is_busy.get() != 0 || !self.alive.change(ASLEEP, BEGINNING) {
            return Err(Failure::NotNow);
        }
        local.is_busy.set(1);
        compiler_fence(SeqCst); // as in `enter`
        let mut begun = self.end_all();
        if begun.is_ok() && !self.file.has_room_still() {
            begun = Err(Failure::DiskFull);
        }
        if begun.is_ok() {
            self.begin_anew(slower_than);
        }
        self.alive.change(BEGINNING, if begun.is_ok() { ON } else { ASLEEP });
        compiler_fence(SeqCst);
        local.is_busy.set(0);
        begun
    }

    /// The recording ends. What threads have noted of locks that they hold still is written down, as far as
    /// they are not in the recorder just now.
    #[cold]
    #[inline(never)]
    pub fn fall_asleep(&self) {
        let local = here();
        if local.is_busy.get() != 0 || !self.alive.change(ON, BEGINNING) {
            return;
        }
        local.is_busy.set(1);
        compiler_fence(SeqCst); // as in `enter`
        let mine = self.epoch();
        let is_known = self.end_all() != Err(Failure::Sandbox);
        // If a thread is in the recorder, or that cannot be known, what it has noted is left as it is. One that
        // enters for the first time may be taking over any: from here on, none does.
        if is_known && self.entering.load(SeqCst) == 0 {
            for own in self.states().filter(|own| own.is_of(mine) && !own.is_at_work()) {
                own.count_held(|facts| self.write(own, &Facts { since: 0, ..facts }, 0));
            }
        }
        if is_known {
            self.mark_ended();
        }
        self.note_rates();
        self.note_time();
        if let Some(header) = self.file.header() {
            header.ended_monotonic.store(monotonic(), Release);
        }
        self.detail.store(Detail::Off as u32, Relaxed);
        self.spans.forget();
        self.alive.change(BEGINNING, ASLEEP);
        compiler_fence(SeqCst);
        local.is_busy.set(0);
    }

    /// The process ends, and was dormant: removes its files, those of `directory`. What has them open or mapped
    /// keeps them.
    pub fn remove_files(&self, directory: &CStr) {
        // As at the start: a filter might end the process.
        if raw::sandbox() != self.sandbox.load(Relaxed) {
            return;
        }
        // SAFETY: the only recording of this process has begun long ago.
        if let Some(path) = unsafe { self.path.last() } {
            raw::remove(path);
        }
        // SAFETY: the same; the path before is not used any more.
        if let Some(path) = unsafe { self.path.join(directory, |put| put(QUOTA_FILE.to_bytes())) } {
            raw::remove(path);
        }
        // SAFETY: the same.
        if let Some(path) = unsafe { self.path.join(directory, |put| put(CONTROL_FILE.to_bytes())) } {
            raw::remove(path);
        }
        raw::remove_directory(directory);
    }

    /// No thread enters the recorder from now on with what it has of an earlier recording; `Ok` if none is
    /// in it.
    fn end_all(&self) -> Result<(), Failure> {
        self.epoch.fetch_add(1, SeqCst);
        // A filter of system calls that came since the start may end the process for one that it does not
        // expect, such as the barrier: it may have come while this recording went on.
        if raw::sandbox() != self.sandbox.load(Relaxed) {
            return Err(Failure::Sandbox);
        }
        if self.states().next().is_some() && !raw::order_all_threads() {
            // Only the first recording of a process needs no barrier.
            return Err(Failure::Sandbox);
        }
        // A thread may have ended in the recorder: by a signal handler that does not return, say.
        let is_out = |own: &ThreadState| !own.is_at_work() || raw::has_ended(own.id());
        let is_quiet = self.entering.load(SeqCst) == 0 && self.states().all(is_out);
        if is_quiet {
            Ok(())
        } else {
            Err(Failure::NotNow)
        }
    }

    /// Empties everything, and writes the header of a new recording. No thread is in the recorder.
    fn begin_anew(&self, slower_than: u64) {
        let header: *mut Header = self.file.at_start();
        let Some(seen) = self.file.header() else { return };
        seen.magic.store(0, SeqCst);
        // Without `/proc`, as after chroot(2), what was there at an earlier snapshot is better than nothing.
        let maps = raw::open_read(c"/proc/self/maps");
        if maps >= 0 {
            // At once: a program that closes all descriptors may have another file by this number later.
            raw::close(maps);
        }
        self.file.clear((maps < 0).then_some(RegionId::Maps));
        self.shared.clear();
        self.hot.iter().chain(&self.semaphores).for_each(|byte| byte.store(0, Relaxed));
        self.spans.clear();
        self.candidate.store(0, Relaxed);
        self.alive.begin_now();
        self.slower_than.store(slower_than, Relaxed);
        self.detail.store(Detail::Contended as u32, Relaxed);
        self.cpu_before.store(raw::process_cpu_time(), Relaxed);
        let now = self.now();
        self.started.store(now, Relaxed);
        self.changed.store(now, Relaxed);
        macro_rules! set {
            ($($field:ident = $value:expr;)*) => {$(
                // SAFETY: the first page of the file; no other thread of this process uses it, and to readers
                // it is no recording now.
                unsafe { (*header).$field = $value };
            )*};
        }
        set! {
            start = now;
            start_monotonic = monotonic();
            start_realtime = Linux::now(spinpark_platform::Clock::Realtime);
            last = AtomicU64::new(0);
            last_monotonic = AtomicU64::new(0);
            ended_monotonic = AtomicU64::new(0);
        }
        seen.detail.store(Detail::Contended as u32, Relaxed);
        self.snapshot_for(&[]);
        seen.magic.store(MAGIC, Release);
    }
}

#[cfg(test)]
mod tests {
    extern crate std;

    use std::ffi::CString;
    use std::os::unix::ffi::OsStrExt;
    use std::time::{Duration, Instant};

    use super::*;
    use crate::format::{Kind, Locks, Role};
    use crate::{LockCall, Settings, Site, MOST};

    fn asleep() -> &'static Recorder {
        let recorder: &Recorder = std::boxed::Box::leak(std::boxed::Box::new(Recorder::new()));
        let directory = tempfile::tempdir().expect("a directory");
        let path = CString::new(directory.path().as_os_str().as_bytes()).expect("a path");
        recorder.prepare();
        let (detail, locks) = (Detail::Off, Locks::Glibc);
        let settings = Settings {
            directory: &path,
            detail,
            locks,
            sample_every: 1,
            slower_than: u64::MAX,
            most: MOST,
            is_idle: true,
        };
        recorder.idle(detail);
        recorder.begin(&settings).expect("a file");
        recorder.sleep();
        recorder
    }

    #[test]
    fn what_is_left_of_an_earlier_recording() {
        let recorder = asleep();
        recorder.awake(u64::MAX).expect("it may");
        recorder.enter().expect("a table");
        recorder.leave();
        // A wait, in which the thread is cancelled after the recording.
        let here = LockCall {
            address: 64,
            role: Role::Write,
            kind: |_| Kind::Mutex,
            site: Site { stack: core::ptr::null(), frame: core::ptr::null() },
        };
        assert_eq!(recorder.queue(here.address, 1), 1);
        recorder.fall_asleep();
        recorder.awake(u64::MAX).expect("it may");
        recorder.cancel_wait(&here, true);
        assert_eq!(recorder.queue(here.address, 0), 0, "it is not one of this recording's");
        recorder.cancel_signal_wait(&here, true);
        assert_eq!(recorder.queue(here.address, 0), 0, "nor is that");
        // There was no room for it.
        super::here().refused.set(100);
        super::here().refused_in.set(recorder.epoch());
        assert!(recorder.enter().is_none());
        recorder.fall_asleep();
        recorder.awake(u64::MAX).expect("it may");
        assert!(recorder.enter().is_some(), "there may be now");
        recorder.leave();
    }

    #[test]
    fn a_thread_in_a_sandbox() {
        let recorder = asleep();
        recorder.awake(u64::MAX).expect("it may");
        std::thread::scope(|scope| {
            scope.spawn(|| {
                // SAFETY: of this thread alone.
                assert_eq!(unsafe { libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) }, 0);
                assert!(recorder.enter().is_none());
            });
        });
        assert!(recorder.enter().is_some());
        recorder.leave();
    }

    #[test]
    fn a_thread_in_the_recorder() {
        let recorder = asleep();
        recorder.awake(u64::MAX).expect("it may");
        let (inside, out) = (std::sync::Barrier::new(2), std::sync::Barrier::new(2));
        std::thread::scope(|scope| {
            scope.spawn(|| {
                recorder.enter().expect("a table");
                inside.wait();
                out.wait();
                // It ends there.
            });
            inside.wait();
            recorder.fall_asleep();
            assert_eq!(recorder.awake(u64::MAX), Err(Failure::NotNow));
            out.wait();
        });
        let begun = Instant::now();
        // The kernel may need a moment after it has said that the thread has ended.
        while let Err(failure) = recorder.awake(u64::MAX) {
            assert_eq!(failure, Failure::NotNow);
            assert!(begun.elapsed() < Duration::from_secs(60), "it is gone, and in nobody's way");
        }
    }
}
