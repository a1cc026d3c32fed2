//! A thread as `/proc` shows it: how long it ran and waited for a CPU, and what it is blocked in.
//!
//! `schedstat` has exact times; what a thread is blocked in is sampled. A thread whose `schedstat` has not
//! changed since the last sample has been in the same wait all the time, so that an idle thread costs one
//! read of a file.

use crate::machine;
use crate::model::ThreadTime;

/// What a thread does at a sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Doing {
    /// It runs, or waits for a CPU.
    Running,
    Futex,
    Semaphore,
    Io,
    Sleep,
    /// It waits for a thread or a process to end.
    End,
    Stopped,
    /// It is blocked; in what cannot be read.
    Unknown,
}

/// The fields of `/proc/PID/task/TID/stat` that matter.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Stat {
    pub(crate) name: String,
    pub(crate) state: u8,
    pub(crate) parent: u32,
    /// User and system time, clock ticks.
    pub(crate) ticks: u64,
    /// How many threads its process has.
    pub(crate) threads: u32,
    /// When it started, clock ticks since boot.
    pub(crate) started: u64,
    /// Start of the code and of the stack: another program has others. None where they may not be read (the
    /// kernel then shows 1 and 0), and while the kernel still sets the program up (0 for what it does not
    /// know yet).
    pub(crate) image: Option<(u64, u64)>,
}

impl Stat {
    pub(crate) fn parse(text: &[u8]) -> Option<Self> {
        // The name may have blanks and parentheses.
        let open = text.iter().position(|byte| *byte == b'(')?;
        let close = text.iter().rposition(|byte| *byte == b')')?;
        let name = String::from_utf8_lossy(text.get(open + 1..close)?).into_owned();
        let rest = std::str::from_utf8(text.get(close + 1..)?).ok()?;
        let fields: Vec<&str> = rest.split_ascii_whitespace().collect();
        // The first one here is field 3 of proc(5).
        let number = |field: usize| fields.get(field - 3)?.parse::<u64>().ok();
        Some(Self {
            name,
            state: *fields.first()?.as_bytes().first()?,
            parent: u32::try_from(number(4)?).ok()?,
            ticks: number(14)? + number(15)?,
            threads: u32::try_from(number(20)?).ok()?,
            started: number(22)?,
            image: Some((number(26)?, number(28)?)).filter(|(code, stack)| *code > 1 && *stack > 0),
        })
    }
}

impl Stat {
    /// Whether all that is left of it is how it ended.
    pub(crate) fn has_ended(&self) -> bool {
        matches!(self.state, b'Z' | b'X')
    }

    /// Whether a signal or a debugger has stopped it.
    pub(crate) fn is_stopped(&self) -> bool {
        matches!(self.state, b'T' | b't')
    }

    /// How many threads the process has, of which the first one is this; it stays until the others have
    /// ended.
    pub(crate) fn living(&self) -> u32 {
        self.threads.saturating_sub(u32::from(self.has_ended()))
    }
}

/// `/proc/PID/task/TID/schedstat`: ns on a CPU, ns ready without one, and how often it got one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Sched {
    pub(crate) ran: u64,
    pub(crate) waited: u64,
    pub(crate) slices: u64,
}

impl Sched {
    pub(crate) fn parse(text: &[u8]) -> Option<Self> {
        let mut numbers = std::str::from_utf8(text).ok()?.split_ascii_whitespace().map(str::parse::<u64>);
        let mut next = || numbers.next()?.ok();
        Some(Self { ran: next()?, waited: next()?, slices: next()? })
    }
}

/// What a blocked thread is in, by `/proc/PID/task/TID/syscall`. `is_thread`: whether the process has a
/// thread of that number.
pub(super) fn blocked_in(syscall: &[u8], is_thread: impl Fn(u32) -> bool) -> Option<Doing> {
    /// Without it, a futex is shared between processes; `pthread_join` waits in such a one for the number of
    /// the thread.
    const PRIVATE: u64 = libc::FUTEX_PRIVATE_FLAG as u64;
    let text = std::str::from_utf8(syscall).ok()?;
    let mut fields = text.split_ascii_whitespace();
    let number: i64 = match fields.next()? {
        "running" => return Some(Doing::Running),
        number => number.parse().ok()?,
    };
    let mut argument = || u64::from_str_radix(fields.next()?.strip_prefix("0x")?, 16).ok();
    /// Newer than the crate's list.
    const FUTEX_WAIT: i64 = 455;
    Some(match number {
        libc::SYS_futex => {
            let (_, operation, value) = (argument()?, argument()?, argument()?);
            let is_join = operation & PRIVATE == 0 && u32::try_from(value).is_ok_and(is_thread);
            if is_join { Doing::End } else { Doing::Futex }
        }
        libc::SYS_futex_waitv | FUTEX_WAIT => Doing::Futex,
        libc::SYS_semop | libc::SYS_semtimedop | libc::SYS_flock | libc::SYS_fcntl => Doing::Semaphore,
        libc::SYS_nanosleep | libc::SYS_clock_nanosleep => Doing::Sleep,
        // For a signal.
        number if machine::SLEEPS.contains(&number) => Doing::Sleep,
        number if machine::ENDS.contains(&number) => Doing::End,
        // Other calls, and -1: a page fault.
        _ => Doing::Io,
    })
}

/// The same by `/proc/PID/task/TID/wchan`, which more observers may read.
pub(super) fn blocked_at(wchan: &[u8]) -> Doing {
    let name = String::from_utf8_lossy(wchan);
    match name.trim_end_matches('\0').trim() {
        "" | "0" => Doing::Unknown,
        name if name.contains("futex") => Doing::Futex,
        name if name.contains("nanosleep") => Doing::Sleep,
        name if name.starts_with("do_wait") || name.contains("vfork") => Doing::End,
        name if name.contains("semtimedop") || name.contains("lock_inode") => Doing::Semaphore,
        _ => Doing::Io,
    }
}

/// What was seen of a thread so far.
#[derive(Clone, Debug)]
pub(super) struct Task {
    /// ns since the run began.
    pub(super) at: u64,
    pub(super) sched: Sched,
    /// What it had when it began: a thread keeps its time over `exec`.
    base: Sched,
    pub(super) doing: Doing,
    /// The number of its [`SleepSite`](super::lock_waits::SleepSite), if it sleeps at what may be a lock of
    /// glibc.
    wait: Option<u32>,
    /// ns in each of these waits, as sampled: a part of `blocked`.
    waited: Vec<(u32, u64)>,
    /// ns that it has been there.
    pub(super) life: u64,
    /// ns of it after the last sample, which found it running: taken for time on a CPU, and not measured.
    unseen: u64,
    pub(super) samples: u64,
    /// Its first sample, ns since the run began.
    first: u64,
    /// Since when it has not run, and the longest such time.
    asleep_since: u64,
    longest: u64,
    /// ns blocked by what in, as sampled; scaled to the exact sum in the end.
    blocked: ThreadTime,
    /// Children of this thread at the last sample in which it had run.
    pub(super) children: Vec<u32>,
}

impl Task {
    /// A thread at its first sample, at `at`, which came at `since` with the times `base`.
    pub(super) fn new(
        at: u64,
        since: u64,
        base: Sched,
        sched: Sched,
        (doing, wait): (Doing, Option<u32>),
    ) -> Self {
        let mut task = Self {
            at: since,
            sched: base,
            base,
            doing: Doing::Running,
            wait: None,
            waited: Vec::new(),
            life: 0,
            unseen: 0,
            samples: 0,
            first: at,
            asleep_since: at,
            longest: 0,
            blocked: ThreadTime::default(),
            children: Vec::new(),
        };
        task.sample(at, sched, (doing, wait));
        task
    }

    /// A further sample in which nothing has changed.
    pub(super) fn stay(&mut self, at: u64) {
        self.sample(at, self.sched, (self.doing, self.wait));
    }

    /// A further sample.
    pub(super) fn sample(&mut self, at: u64, sched: Sched, (doing, wait): (Doing, Option<u32>)) {
        let passed = at.saturating_sub(self.at);
        let on_cpu =
            sched.ran.saturating_sub(self.sched.ran) + sched.waited.saturating_sub(self.sched.waited);
        let blocked = passed.saturating_sub(on_cpu);
        // In what it was before and after. What it was in between two samples that found it running is as the
        // other times.
        let (was, is) = ((self.doing, self.wait), (doing, wait));
        let parts = match (self.doing, doing) {
            (Doing::Running, Doing::Running) => None,
            (Doing::Running, _) => Some((is, is)),
            (_, Doing::Running) => Some((was, was)),
            _ => Some((was, is)),
        };
        if let Some((before, after)) = parts {
            self.add(before, blocked / 2);
            self.add(after, blocked - blocked / 2);
        }
        if doing == Doing::Running {
            // It slept on after the last sample, if it was woken only once since.
            if self.doing != Doing::Running && sched.slices <= self.sched.slices + 1 {
                self.longest = self.longest.max((self.at + blocked).saturating_sub(self.asleep_since));
            }
            self.asleep_since = at;
        } else if sched != self.sched {
            // It ran, and has slept since.
            self.asleep_since = (self.at + on_cpu).min(at);
        }
        self.longest = self.longest.max(at.saturating_sub(self.asleep_since));
        self.life += passed;
        self.samples += 1;
        (self.at, self.sched, self.doing, self.wait) = (at, sched, doing, wait);
    }

    /// Adds what it was blocked in.
    fn add(&mut self, (doing, wait): (Doing, Option<u32>), time: u64) {
        *part(&mut self.blocked, doing) += time;
        let Some(wait) = wait else { return };
        match self.waited.iter_mut().find(|(number, _)| *number == wait) {
            Some((_, waited)) => *waited += time,
            None => self.waited.push((wait, time)),
        }
    }

    /// Its waits at what may be locks of glibc: their numbers, and ns. They are part of its time in futexes.
    pub(super) fn lock_waits(&self) -> impl Iterator<Item = (u32, u64)> {
        let (sampled, exact) = (u128::from(self.blocked.futexes.max(1)), u128::from(self.time().futexes));
        let scaled = move |waited: u64| u64::try_from(u128::from(waited) * exact / sampled).unwrap_or(waited);
        self.waited.iter().map(move |(number, waited)| (*number, scaled(*waited)))
    }

    /// It has ended since the last sample, after `more` ns.
    pub(super) fn is_gone(&mut self, more: u64) {
        self.life += more;
        match self.doing {
            Doing::Running => {
                self.sched.ran += more;
                self.unseen = more;
            }
            doing => {
                self.add((doing, self.wait), more);
                self.longest = self.longest.max((self.at + more).saturating_sub(self.asleep_since));
            }
        }
    }

    /// ns on a CPU, ns ready without one, and how often it got one.
    fn since_base(&self) -> Sched {
        Sched {
            ran: self.sched.ran.saturating_sub(self.base.ran),
            waited: self.sched.waited.saturating_sub(self.base.waited),
            slices: self.sched.slices.saturating_sub(self.base.slices),
        }
    }

    /// Its whole time. `schedstat` is exact, so the rest is what it was blocked; sampling shows in what.
    pub(super) fn time(&self) -> ThreadTime {
        let Sched { ran, waited, .. } = self.since_base();
        let running = ran.min(self.life);
        let runnable = waited.min(self.life - running);
        let mut time = scaled(&self.blocked, self.life - running - runnable);
        (time.running, time.runnable) = (running, runnable);
        time
    }

    /// Whether it is a worker without work, or waits for the workers to end: no CPU time to speak of, and in
    /// one wait nearly all the time, or rarely woken. `program`: for how long that was seen, ns; of a thread
    /// that lived for a moment it is not known.
    pub(super) fn is_idle(&self, program: u64) -> bool {
        /// ns.
        const MOMENT: u64 = 100_000_000;
        // What it lived before and after that may be the time of others that were not seen.
        if self.at.saturating_sub(self.first) < MOMENT.min(program / 2) {
            return false;
        }
        /// ns; what a thread needs to start, and a process to load its libraries.
        const START: u64 = 10_000_000;
        /// Wake-ups a second.
        const RARE: f64 = 2.0;
        /// A thread that sleeps for a lock for more than this part of its time is not idle.
        const FEW: u64 = 20;
        let Sched { ran, waited, slices } = self.since_base();
        if self.lock_waits().map(|(_, waited)| waited).sum::<u64>() > self.life / FEW {
            return false;
        }
        let life = self.life as f64;
        // Of a worker that was asked to end, a rare sample finds the beginning of that, and not its end. If
        // samples are so rare that it may as well have worked, that counts.
        let unseen = if self.unseen <= MOMENT.min(self.life / 10) { self.unseen } else { 0 };
        let ran = ran.saturating_sub(unseen);
        // A thread without a CPU is not idle, but does not choose to be awake either.
        let nearly_all = 0.9 * self.life.saturating_sub(waited + unseen) as f64;
        let is_little = ran <= START.max(self.life / 100);
        let is_unbroken = is_little && self.longest as f64 >= nearly_all;
        let is_joining = is_little && self.time().ends as f64 >= nearly_all;
        let is_rare = slices as f64 <= RARE * life / 1e9 && ran <= self.life / 100;
        // One that was asked to end is awake at its last sample.
        let is_awake = self.doing == Doing::Running;
        self.doing != Doing::Stopped && (is_unbroken || is_joining || is_rare && !is_awake)
    }
}

fn part(time: &mut ThreadTime, doing: Doing) -> &mut u64 {
    match doing {
        Doing::Running | Doing::Unknown => &mut time.unknown,
        Doing::Futex => &mut time.futexes,
        Doing::Semaphore => &mut time.semaphores,
        Doing::Io => &mut time.io,
        Doing::Sleep => &mut time.sleep,
        Doing::End => &mut time.ends,
        Doing::Stopped => &mut time.stopped,
    }
}

/// The parts in proportion, so that they add up to `sum`. What is not known takes its share of what is, if
/// enough is known.
fn scaled(parts: &ThreadTime, sum: u64) -> ThreadTime {
    let mut parts = *parts;
    if parts.unknown <= parts.total() / 2 {
        parts.unknown = 0;
    }
    let whole = parts.total();
    if whole == 0 {
        return ThreadTime { unknown: sum, ..ThreadTime::default() };
    }
    let of = |part: u64| u64::try_from(u128::from(part) * u128::from(sum) / u128::from(whole)).unwrap_or(sum);
    let mut scaled = ThreadTime {
        futexes: of(parts.futexes),
        semaphores: of(parts.semaphores),
        io: of(parts.io),
        sleep: of(parts.sleep),
        ends: of(parts.ends),
        stopped: of(parts.stopped),
        unknown: of(parts.unknown),
        ..ThreadTime::default()
    };
    // Rounding leaves some ns; they go where the most is.
    let left = sum - scaled.total();
    let most = [
        &mut scaled.futexes,
        &mut scaled.semaphores,
        &mut scaled.io,
        &mut scaled.sleep,
        &mut scaled.ends,
        &mut scaled.stopped,
        &mut scaled.unknown,
    ];
    if let Some(most) = most.into_iter().max_by_key(|part| **part) {
        *most += left;
    }
    scaled
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    #[test]
    fn files_of_proc() {
        let text = b"18536 (a (b) c) S 18530 18530 13648 0 -1 4194304 126 0 1 0 7 5 0 0 20 0 1 0 136270 2990080 387 \
            18446744073709551615 94671974346752 94671974364681 140735807722576 0 0 0";
        let stat = Stat::parse(text).expect("a line of proc");
        assert_eq!((stat.name.as_str(), stat.state, stat.parent, stat.ticks), ("a (b) c", b'S', 18530, 12));
        assert_eq!((stat.started, stat.image), (136_270, Some((94_671_974_346_752, 140_735_807_722_576))));
        let text = String::from_utf8_lossy(text);
        for (code, stack) in [("0", "140735807722576"), ("0", "0"), ("1", "0")] {
            let text = text.replace("94671974346752", code).replace("140735807722576", stack);
            let stat = Stat::parse(text.as_bytes()).expect("a line of proc");
            assert_eq!(stat.image, None, "{code} {stack}");
        }
        assert_eq!(Stat::parse(b"1 (x"), None);
        assert_eq!(
            Sched::parse(b"1680904 425082 4\n"),
            Some(Sched { ran: 1_680_904, waited: 425_082, slices: 4 })
        );
        assert_eq!(Sched::parse(b"1 2"), None);
    }

    #[test]
    fn system_calls() {
        let of = |text: &str| blocked_in(text.as_bytes(), |number| number == 77);
        assert_eq!(of("running\n"), Some(Doing::Running));
        assert_eq!(of("202 0x7f00 0x189 0x0 0x0 0x0 0xffffffff 0x1 0x2\n"), Some(Doing::Futex));
        // `pthread_join` of thread 77, and another shared futex.
        assert_eq!(of("202 0x7f00 0x109 0x4d 0x0 0x0 0xffffffff 0x1 0x2\n"), Some(Doing::End));
        assert_eq!(of("202 0x7f00 0x109 0x2 0x0 0x0 0xffffffff 0x1 0x2\n"), Some(Doing::Futex));
        assert_eq!(of("230 0x0 0x0 0x7fff 0x7fff 0x0 0x0 0x1 0x2\n"), Some(Doing::Sleep));
        assert_eq!(of("232 0x4 0x0 0x7fff 0x7fff 0x0 0x0 0x1 0x2\n"), Some(Doing::Io));
        assert_eq!(of("-1 0x7fff 0x2\n"), Some(Doing::Io));
        assert_eq!(of(""), None);
        assert_eq!(blocked_at(b"futex_do_wait"), Doing::Futex);
        assert_eq!(blocked_at(b"hrtimer_nanosleep"), Doing::Sleep);
        assert_eq!(blocked_at(b"do_epoll_wait"), Doing::Io);
        assert_eq!(blocked_at(b"0"), Doing::Unknown);
    }

    #[test]
    fn times_add_up() {
        let sched = |ran, waited, slices| Sched { ran: ran * MS, waited: waited * MS, slices };
        let mut task = Task::new(10 * MS, 0, Sched::default(), sched(10, 0, 1), (Doing::Running, None));
        task.sample(20 * MS, sched(14, 1, 2), (Doing::Futex, None));
        task.sample(30 * MS, sched(15, 2, 3), (Doing::Io, None));
        task.sample(40 * MS, sched(25, 2, 4), (Doing::Running, None));
        let time = task.time();
        assert_eq!(time.total(), 40 * MS);
        assert_eq!((time.running, time.runnable), (25 * MS, 2 * MS));
        // 5 ms in the futex, then 8 ms in either.
        assert_eq!((time.futexes, time.io, time.unknown), (9 * MS, 4 * MS, 0));
        // A clock that is late: never more than the whole.
        let late = Task::new(10 * MS, 0, Sched::default(), sched(14, 3, 1), (Doing::Running, None));
        assert_eq!((late.time().total(), late.time().running), (10 * MS, 10 * MS));
    }

    #[test]
    fn waits_for_locks_are_a_part_of_the_time_in_futexes() {
        let sched = |ran| Sched { ran: ran * MS, waited: 0, slices: 1 };
        let mut task = Task::new(10 * MS, 0, Sched::default(), sched(0), (Doing::Futex, Some(3)));
        task.sample(30 * MS, sched(0), (Doing::Futex, Some(1)));
        task.sample(40 * MS, sched(10), (Doing::Running, None));
        task.stay(40 * MS);
        task.sample(50 * MS, sched(10), (Doing::Futex, None));
        let waits: Vec<(u32, u64)> = task.lock_waits().collect();
        assert_eq!(waits, [(3, 20 * MS), (1, 10 * MS)]);
        assert_eq!(task.time().futexes, 40 * MS);
        assert!(!task.is_idle(0));
    }

    #[test]
    fn idle_threads() {
        let sched = |ran, slices| Sched { ran, waited: 0, slices };
        // Waits for the others to end.
        let mut main = Task::new(5 * MS, 0, Sched::default(), sched(3 * MS, 4), (Doing::End, None));
        // Woken every 20 ms: a lock, or work.
        let mut waiter = Task::new(5 * MS, 0, Sched::default(), sched(MS / 10, 1), (Doing::Futex, None));
        for step in 1..60 {
            main.sample((5 + step * 5) * MS, sched(3 * MS, 4), (Doing::End, None));
            waiter.sample(
                (5 + step * 5) * MS,
                sched(MS / 10 + step * 1_000, 1 + step / 4),
                (Doing::Futex, None),
            );
        }
        assert!(main.is_idle(0) && !waiter.is_idle(0), "{main:?} {waiter:?}");
        // A worker that is woken in order to end, and has no CPU at its last sample.
        let mut worker = Task::new(5 * MS, 0, Sched::default(), sched(MS / 10, 1), (Doing::Futex, None));
        for step in 1..60 {
            worker.sample((5 + step * 5) * MS, sched(MS / 10, 1), (Doing::Futex, None));
        }
        worker.sample(305 * MS, Sched { waited: 3 * MS, ..sched(MS / 10, 1) }, (Doing::Running, None));
        assert!(worker.is_idle(0), "{worker:?}");
        // The same with a sample each 72 ms: what it did after the last one is not known.
        for (state, slices, woken) in [(Doing::Running, 2, 4 * MS), (Doing::Futex, 1, 0)] {
            let mut worker = Task::new(70 * MS, 0, Sched::default(), sched(MS / 10, 1), (Doing::Futex, None));
            for step in 1..12 {
                worker.sample((70 + step * 72) * MS, sched(MS / 10, 1), (Doing::Futex, None));
            }
            let last = Sched { waited: woken, ..sched(MS / 5, slices) };
            worker.sample((70 + 12 * 72) * MS, last, (state, None));
            worker.is_gone(36 * MS);
            assert!(worker.is_idle(0), "{worker:?}");
        }
        // With a sample each five seconds, it may have worked since.
        let mut worker = Task::new(5_000 * MS, 0, Sched::default(), sched(MS / 10, 1), (Doing::Futex, None));
        worker.sample(10_000 * MS, sched(50 * MS, 2), (Doing::Running, None));
        worker.is_gone(2_500 * MS);
        assert!(!worker.is_idle(0), "{worker:?}");
        // One that worked for a part of the time is not.
        let mut worked = Task::new(5 * MS, 0, Sched::default(), sched(MS / 10, 1), (Doing::Futex, None));
        worked.sample(200 * MS, sched(MS / 10, 1), (Doing::Futex, None));
        worked.sample(305 * MS, sched(100 * MS, 2), (Doing::Running, None));
        assert!(!worked.is_idle(0), "{worked:?}");
        // A timer that ticks once a second.
        let mut timer = Task::new(5 * MS, 0, Sched::default(), sched(MS / 10, 1), (Doing::Sleep, None));
        for second in 1..20 {
            timer.sample(
                second * 1_000 * MS,
                sched(MS / 10 + second * 1_000, 1 + second),
                (Doing::Sleep, None),
            );
        }
        assert!(timer.is_idle(0), "{timer:?}");
    }
}
