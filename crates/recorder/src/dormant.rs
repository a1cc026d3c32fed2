//! Recordings of one process, one after the other, in one file; between them the process is *asleep*: it
//! records nothing.
//!
//! The file, its mapping and the shared tables stay where they are. A recording begins with all of them empty
//! ([`Recorder::awake`]), so no thread may use them then: [`presence`] says how that is known. If a thread is
//! in the recorder, no recording begins, and the caller tries again later: no thread waits for another.
//!
//! A forked child has nothing of its own until it is asked to record ([`Recorder::begin_forked`]). Its
//! recording is then in memory, since it may have given up the right to create a file; its descriptor stays
//! open, for commands.
//!
//! A wait that began in another recording, or while the process was asleep, has another epoch, or the recorder
//! has nothing of it: it is not counted. What a thread has noted (its table, the locks that it holds) is of
//! its epoch, and thrown away when it enters the recorder in another one.

use core::ffi::CStr;
use core::ptr;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release, SeqCst};
use core::sync::atomic::{compiler_fence, fence, AtomicU64};

use spinpark_linux::{raw, Linux};
use spinpark_platform::Clocks;

use super::clock::monotonic;
use super::fork::{ASLEEP, BEGINNING, FORKED, ON};
use super::maps::has_maps;
use super::thread_state::{here, Facts, ThreadState};
use super::{presence, Failure, Recorder, Settings};
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
        // Now: a filter of system calls that the program installs later may end the process for it.
        self.has_barrier.store(raw::prepare_order().into(), Relaxed);
        self.dormant.store(1, Relaxed);
        self.detail.store(Detail::Off as u32, Relaxed);
        self.alive.change(ON, ASLEEP);
    }

    /// Whether this process was forked by a dormant one, and has not been asked to record.
    #[must_use]
    pub fn is_forked(&self) -> bool {
        self.alive.is(FORKED)
    }

    /// In a process that [`is_forked`](Recorder::is_forked): makes it one that is asleep, with a recording in
    /// memory, beside nothing of its parent's. The directory in the settings is not used.
    #[cold]
    #[inline(never)]
    pub fn begin_forked(&self, settings: &Settings<'_>) -> Result<(), Failure> {
        let local = here();
        if local.is_busy.get() != 0 || !self.alive.change(FORKED, BEGINNING) {
            return Err(Failure::NotNow);
        }
        local.is_busy.set(1);
        // As in `enter`.
        compiler_fence(SeqCst);
        // The parent's threads, and those that were entering, are not here. No other thread looks for them:
        // nothing was ever recorded in this process.
        self.newest.store(ptr::null_mut(), Relaxed);
        self.entering.store(0, Relaxed);
        self.epoch.fetch_add(1, Relaxed);
        let begun = self.start_in_memory(settings);
        self.alive.change(BEGINNING, if begun.is_ok() { ASLEEP } else { FORKED });
        compiler_fence(SeqCst);
        local.is_busy.set(0);
        begun
    }

    /// The descriptor of a recording in memory.
    #[must_use]
    pub fn memory_file(&self) -> Option<i32> {
        self.file.descriptor().filter(|_| self.is_child())
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
        let mut begun = match self.has_barrier.load(Relaxed) {
            0 => Err(Failure::NoBarrier),
            _ => self.end_all(),
        };
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
        let is_known = matches!(self.end_all(), Ok(()) | Err(Failure::NotNow));
        // If a thread is in the recorder, or that cannot be known, what it has noted is left as it is. One that
        // enters for the first time may be taking over any: from here on, none does.
        if is_known && self.entering.load(Acquire) == 0 {
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

    /// The process ends, and was dormant: removes its files, those of `directory`, unless it was forked: they
    /// are its parent's; or `has_forked` and has children that need them. What has them open or mapped keeps
    /// them.
    pub fn remove_files(&self, directory: &CStr, has_forked: bool) {
        // As at the start: a filter might end the process.
        if self.is_sandboxed() || self.is_child() {
            return;
        }
        if has_forked && raw::has_children() {
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
        let barrier = || {
            // A filter of system calls that came since the start may end the process for one that it does not
            // expect, such as the barrier: it may have come while this recording went on.
            if self.is_sandboxed() {
                return Err(Failure::Sandbox);
            }
            fence(SeqCst);
            // Before the first recording of a process, no thread has a table.
            if self.states().next().is_some() && !raw::order_all_threads() {
                return Err(Failure::NoBarrier);
            }
            Ok(())
        };
        // A thread may have ended in the recorder: by a signal handler that does not return, say.
        let is_out = |own: &ThreadState| !own.is_at_work() || raw::has_ended(own.id());
        match presence::end_all(&self.epoch, &self.entering, barrier, || self.states().all(is_out)) {
            Ok(true) => Ok(()),
            Ok(false) => Err(Failure::NotNow),
            Err(failure) => Err(failure),
        }
    }

    /// Empties everything, and writes the header of a new recording. No thread is in the recorder.
    fn begin_anew(&self, slower_than: u64) {
        let header: *mut Header = self.file.at_start();
        let Some(seen) = self.file.header() else { return };
        seen.magic.store(0, SeqCst);
        // Without `/proc`, as after chroot(2), what was there at an earlier snapshot is better than nothing.
        self.file.clear((!has_maps()).then_some(RegionId::Maps));
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

    use std::time::{Duration, Instant};

    use super::*;
    use crate::format::{Kind, Role};
    use crate::test_recorder::{settings, started};
    use crate::{LockCall, Site};

    fn asleep() -> &'static Recorder {
        let recorder = started(Detail::Off);
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

    /// A child of which a thread was in the recorder, in the parent, and another one about to be.
    #[test]
    fn a_forked_child() {
        let recorder = asleep();
        recorder.awake(u64::MAX).expect("it may");
        let (inside, out) = (std::sync::Barrier::new(2), std::sync::Barrier::new(2));
        std::thread::scope(|scope| {
            scope.spawn(|| {
                recorder.enter().expect("a table");
                inside.wait();
                out.wait();
                recorder.leave();
            });
            inside.wait();
            recorder.entering.fetch_add(1, SeqCst);
            // SAFETY: the child calls nothing that needs another thread, and ends.
            let child = unsafe { libc::fork() };
            if child == 0 {
                let begun = recorder.forked().then(|| {
                    let was_none = !recorder.is_awake() && recorder.is_forked();
                    let begun = recorder.begin_forked(&settings(c"", Detail::Off));
                    let file = recorder.memory_file();
                    let awake = recorder.awake(u64::MAX);
                    let is_in = recorder.enter().is_some();
                    was_none && begun.is_ok() && file.is_some() && awake.is_ok() && is_in
                });
                // SAFETY: ends the child.
                unsafe { libc::_exit(i32::from(begun != Some(true))) };
            }
            let mut status = -1;
            // SAFETY: the place is live.
            assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
            assert_eq!(status, 0, "it records");
            recorder.entering.fetch_sub(1, SeqCst);
            out.wait();
        });
    }
}
