//! The observer: samples all processes of a run, one after the other, and adds up what it sees.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fs::{self, File};
use std::io::Read;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use rustix::process::{Pid, WaitOptions};
use rustix::time::ClockId;

use super::image::{self, Image};
use super::lock_waits::At;
use super::observation::{self, Observation, Program, Programs};
use super::task::{self, Doing, Sched, Stat, Task};
use crate::model::Recorder;

/// The observer takes at most this share of a CPU,
const SHARE: f64 = 0.01;
/// and this much more, so that a short run is seen well.
const ALLOWANCE: Duration = Duration::from_millis(3);
/// The part of both for the number of threads alone.
const COUNTING: f64 = 0.25;
/// Time between samples at the beginning, and later: a long run needs fewer.
const OFTEN: Duration = Duration::from_millis(5);
const LATER: Duration = Duration::from_millis(20);
const BEGINNING: Duration = Duration::from_secs(2);
/// The most processes whose threads are counted between samples.
const COUNTED: usize = 16;
/// A process that is about to end when the program has ended is not one that was left behind.
const ENDING: Duration = Duration::from_millis(20);

#[derive(Debug)]
struct Process {
    /// Clock ticks since boot: with the number it is a process.
    started: u64,
    /// As [`Stat::image`], of the program that it is.
    signature: Option<(u64, u64)>,
    name: String,
    images: Vec<Image>,
    /// What its thread had when it became the program that it is.
    base: Sched,
    is_alive: bool,
    count: Count,
}

/// How many threads a process has, over the time since the last sample.
#[derive(Debug, Default)]
struct Count {
    /// When they were counted last, ns after the beginning of the run, and how many there were.
    at: u64,
    number: u32,
    /// ns × threads.
    time: u64,
}

impl Count {
    /// Notes their number at `at`; in between, it is the average of this and the last.
    fn add(&mut self, at: u64, number: u32) {
        self.time += at.saturating_sub(self.at) * u64::from(self.number + number) / 2;
        (self.at, self.number) = (at, number);
    }
}

impl Process {
    /// The threads of the program before ended with it, but for the one that goes on.
    fn become_other(&mut self, pid: u32, image: Image) {
        if let Some(before) = self.images.last_mut() {
            let tasks = std::mem::take(&mut before.tasks);
            self.base = tasks.get(&pid).map(|task| task.sched).unwrap_or_default();
            tasks.iter().for_each(|(id, task)| before.end(*id, task));
        }
        self.images.push(image);
    }
}

#[derive(Debug)]
pub(super) struct Observer {
    root: u32,
    /// When that one began, clock ticks since boot: its number may come again.
    root_started: Option<u64>,
    /// The recorder's file name.
    library: String,
    /// Children of this process that are not the run's.
    strangers: BTreeSet<u32>,
    begun: Instant,
    started: u64,
    /// Children that had ended before the run, ns of CPU time.
    cpu_before: u64,
    /// CPU time of all programs on the CPUs that this process may use, ns.
    machine_before: Option<u64>,
    /// Nanoseconds after the beginning of the last sample, and how many there were.
    last: u64,
    snapshots: u64,
    /// CPU time of this thread.
    cost: Duration,
    /// The part of it that went into [`Observer::count`].
    counting: Duration,
    processes: BTreeMap<u32, Process>,
    /// Programs of processes that ended: their numbers may come again.
    past: Programs,
    buffer: Vec<u8>,
    /// ns of a clock tick.
    tick: u64,
    random: u32,
}

impl Observer {
    pub(super) fn new(root: u32, library: String, strangers: BTreeSet<u32>) -> Self {
        let started = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Self {
            root,
            root_started: None,
            library,
            strangers,
            begun: Instant::now(),
            started: ns(started),
            cpu_before: cpu_of_children(),
            machine_before: cpu_of_machine(),
            last: 0,
            snapshots: 0,
            cost: Duration::ZERO,
            counting: Duration::ZERO,
            processes: BTreeMap::new(),
            past: Programs::default(),
            buffer: Vec::new(),
            tick: 1_000_000_000 / rustix::param::clock_ticks_per_second().max(1),
            random: root | 1,
        }
    }

    /// Waits until the next sample, by `wait`, which reports whether to go on. All together takes [`SHARE`]
    /// of the time. Where a sample of many threads takes long, threads are counted in between, for
    /// [`COUNTING`] of that: many of them may live so briefly that no sample has them.
    pub(super) fn pause(&mut self, wait: impl Fn(Duration) -> bool) -> bool {
        let until = self.begun.elapsed() + self.until_next();
        loop {
            let left = until.saturating_sub(self.begun.elapsed());
            let usual = self.usual();
            if left <= usual.mul_f64(1.5) || self.processes.len() > COUNTED {
                return wait(left);
            }
            if !wait(usual) {
                return false;
            }
            let affordable = self.begun.elapsed().mul_f64(SHARE) + ALLOWANCE;
            if self.counting < affordable.mul_f64(COUNTING) {
                self.count();
            }
        }
    }

    fn usual(&self) -> Duration {
        if self.begun.elapsed() < BEGINNING { OFTEN } else { LATER }
    }

    /// Counts the threads of the processes that are known.
    fn count(&mut self) {
        let before = cpu_of_this_thread();
        for pid in self.processes.keys().copied().collect::<Vec<_>>() {
            let Some(stat) = self.read(&format!("/proc/{pid}/stat")).and_then(Stat::parse) else { continue };
            let at = ns(self.begun.elapsed());
            if let Some(process) = self.processes.get_mut(&pid).filter(|known| known.started == stat.started)
            {
                process.count.add(at, stat.living());
            }
        }
        let cost = cpu_of_this_thread().saturating_sub(before);
        self.cost += cost;
        self.counting += cost;
    }

    /// How long until the next sample: not in step with what the program does.
    fn until_next(&mut self) -> Duration {
        let elapsed = self.begun.elapsed();
        // xorshift: 0.75 to 1.25 times as long.
        self.random ^= self.random << 13;
        self.random ^= self.random >> 17;
        self.random ^= self.random << 5;
        let wanted = self.usual().mul_f64(0.75 + f64::from(self.random % 1024) / 2048.0);
        let paid_at = self.cost.saturating_sub(ALLOWANCE).div_f64(SHARE);
        wanted.max(paid_at.saturating_sub(elapsed))
    }

    /// Samples all processes of the run. Whether one may be alive: the child of an adopted one that has
    /// ended comes to light at the next sample.
    pub(super) fn sample(&mut self) -> bool {
        let before = cpu_of_this_thread();
        let at = ns(self.begun.elapsed());
        let mut queue = VecDeque::from([self.root]);
        let adopted: Vec<u32> =
            own_children().into_iter().filter(|pid| !self.strangers.contains(pid)).collect();
        queue.extend(&adopted);
        let mut seen = BTreeSet::new();
        while let Some(pid) = queue.pop_front() {
            if seen.insert(pid) {
                queue.extend(self.process(pid, at));
            }
        }
        let gone: Vec<u32> = self.processes.keys().copied().filter(|pid| !seen.contains(pid)).collect();
        gone.into_iter().for_each(|pid| self.end(pid));
        let mut has_reaped = false;
        for pid in adopted.into_iter().filter(|pid| *pid != self.root) {
            // Adopted children are reaped here; the program itself by the command, which wants its status.
            if self.processes.get(&pid).is_none_or(|process| !process.is_alive)
                && let Some(pid) = i32::try_from(pid).ok().and_then(Pid::from_raw)
            {
                has_reaped = true;
                let _ = rustix::process::waitpid(Some(pid), WaitOptions::NOHANG);
            }
        }
        self.last = at;
        self.snapshots += 1;
        self.cost += cpu_of_this_thread().saturating_sub(before);
        has_reaped || self.processes.values().any(|process| process.is_alive)
    }

    /// Samples a process; returns its children.
    fn process(&mut self, pid: u32, at: u64) -> Vec<u32> {
        let Some(mut main) = self.read(&format!("/proc/{pid}/task/{pid}/stat")).and_then(Stat::parse) else {
            self.end(pid);
            return Vec::new();
        };
        if pid == self.root && *self.root_started.get_or_insert(main.started) != main.started {
            self.end(pid);
            return Vec::new();
        }
        if self.processes.get(&pid).is_some_and(|known| known.started != main.started) {
            self.end(pid);
        }
        let mut tasks = numbers_in(&format!("/proc/{pid}/task"));
        let is_first_ended = matches!(main.state, b'Z' | b'X');
        if is_first_ended {
            tasks.retain(|id| *id != pid);
        }
        let is_over = tasks.is_empty();
        let since = self.last;
        // A thread that was not there at the last sample came after it; before the first sample, when the run
        // began.
        let start_of = |started: u64, sched: Sched, observer: &Self| {
            let age = boot_time().saturating_sub(started.saturating_mul(observer.tick));
            at.saturating_sub(age.max(sched.ran + sched.waited)).max(since).min(at)
        };
        if is_over {
            if let Some(process) = self.processes.get_mut(&pid) {
                process.is_alive = false;
            }
            return Vec::new();
        }
        let mut process = self.processes.remove(&pid).unwrap_or_else(|| Process {
            started: main.started,
            signature: None,
            name: String::new(),
            images: Vec::new(),
            base: Sched::default(),
            is_alive: true,
            count: Count::default(),
        });
        self.image(pid, at, &mut main, &mut process);
        let mut children = Vec::new();
        let base = process.base;
        if let Some(image) = process.images.last_mut() {
            let is_first = image.until == at;
            image.until = at;
            let gone: Vec<u32> =
                image.tasks.keys().copied().filter(|id| tasks.binary_search(id).is_err()).collect();
            let stayed = image.tasks.len() - gone.len();
            let come = tasks.len().saturating_sub(stayed);
            // What threads that were there at both samples do not explain is the time of those that came and
            // went, seen or not.
            process.count.add(at, u32::try_from(tasks.len()).unwrap_or(u32::MAX));
            let stayed_time = at.saturating_sub(self.last) * stayed as u64;
            let moved_time = std::mem::take(&mut process.count.time).saturating_sub(stayed_time);
            let each = (gone.len() + come) as u64;
            let part = (!is_first && each > 0).then(|| moved_time / each);
            for id in gone {
                if let Some(mut task) = image.tasks.remove(&id) {
                    task.is_gone(part.unwrap_or(0));
                    image.end(id, &task);
                }
            }
            let known = image.tasks.len();
            for id in &tasks {
                let base = if *id == pid { base } else { Sched::default() };
                self.task((pid, &main), *id, at, &tasks, image, &|started, sched, observer| {
                    let begun =
                        part.map_or_else(|| start_of(started, sched, observer), |part| at - part.min(at));
                    (begun.min(at.saturating_sub(sched.ran + sched.waited)).max(since.min(at)), base)
                });
                children
                    .extend(image.tasks.get(id).into_iter().flat_map(|task| task.children.iter().copied()));
            }
            // The time of those that were not seen at all, and of those that ended while this looked.
            let unseen = come.saturating_sub(image.tasks.len() - known) as u64;
            image.ended.time.unknown += match part {
                Some(part) => part * unseen,
                None if is_first => 0,
                None => moved_time,
            };
        }
        self.processes.insert(pid, process);
        children
    }

    /// Notices another program, and whether the recorder is in it.
    ///
    /// What belongs together is read from several files: all of it is of the program of `main` only if that
    /// is still there afterwards. A process that is another one each time waits for the next sample.
    fn image(&mut self, pid: u32, at: u64, main: &mut Stat, process: &mut Process) {
        const ATTEMPTS: u32 = 4;
        for _ in 0..ATTEMPTS {
            let path = || image::program(pid);
            let is_changed = match (process.signature, main.image) {
                (Some(known), Some(seen)) => known != seen,
                _ => false,
            };
            let is_other = process.images.is_empty()
                || is_changed
                || process.name != main.name && path() != process.images.last().map(|it| it.program.clone());
            let is_unknown = || process.images.last().is_some_and(|it| it.recorder == Recorder::Unknown);
            if is_other || is_unknown() {
                let program = path().unwrap_or_else(|| main.name.clone());
                let inner_pid = image::inner_number(pid).unwrap_or(pid);
                let recorder = image::recorder(pid, &self.library);
                let now = self.read(&format!("/proc/{pid}/task/{pid}/stat")).and_then(Stat::parse);
                // One that ends has no image either, and no path: what was read of it stays.
                let is_other_now = |now: &Stat| {
                    now.image != main.image && (now.image.is_some() || path().is_some())
                        || now.name != main.name
                };
                if let Some(now) = now.filter(is_other_now) {
                    *main = now;
                    continue;
                }
                if is_other {
                    process.become_other(pid, Image::new(program, inner_pid, at, recorder));
                } else if let Some(image) = process.images.last_mut() {
                    image.recorder = recorder;
                }
            }
            process.signature = main.image.or(process.signature.filter(|_| !is_other));
            process.name.clone_from(&main.name);
            return;
        }
    }

    /// Samples a thread.
    fn task(
        &mut self,
        (pid, main): (u32, &Stat),
        id: u32,
        at: u64,
        tasks: &[u32],
        image: &mut Image,
        start_of: &dyn Fn(u64, Sched, &Self) -> (u64, Sched),
    ) {
        let file = |name: &str| format!("/proc/{pid}/task/{id}/{name}");
        let sched = self.read(&file("schedstat")).and_then(Sched::parse);
        let known = image.tasks.get_mut(&id);
        if let (Some(task), Some(sched)) = (known, sched)
            && task.sched == sched
            && task.doing != Doing::Running
        {
            task.stay(at);
            return;
        }
        // Its own line is needed only for a thread that is new, or where less can be read.
        let is_thread = |number: u32| {
            // It may have begun since the threads were listed.
            tasks.binary_search(&number).is_ok() || Path::new(&format!("/proc/{pid}/task/{number}")).exists()
        };
        let text = self.read(&file("syscall"));
        let sleeps_at = text.and_then(At::parse);
        let call = text.and_then(|text| task::blocked_in(text, is_thread));
        let stat = if id == pid {
            Some(main.clone())
        } else if call.is_none() || sched.is_none() || !image.tasks.contains_key(&id) {
            match self.read(&file("stat")).and_then(Stat::parse) {
                None => return,
                some => some,
            }
        } else {
            None
        };
        let state = stat.as_ref().map_or(main.state, |stat| stat.state);
        let doing = match (state, call) {
            // It has ended.
            (b'Z' | b'X', _) if stat.is_some() => return,
            (b'T' | b't', _) => Doing::Stopped,
            (_, Some(doing)) => doing,
            (b'R', None) => Doing::Running,
            _ => self.read(&file("wchan")).map_or(Doing::Unknown, task::blocked_at),
        };
        let sleeps_at = sleeps_at.filter(|_| doing == Doing::Futex && image.recorder == Recorder::Loaded);
        let wait = sleeps_at.and_then(|word| image.lock_waits.note((pid, id), word));
        // Without `schedstat`, CPU time is known in ticks.
        let ticks = stat.as_ref().map_or(0, |stat| stat.ticks);
        let sched = sched.unwrap_or(Sched { ran: ticks * self.tick, waited: 0, slices: u64::MAX });
        let children: Vec<u32> = self.read(&file("children")).map(numbers).unwrap_or_default();
        let started = stat.map_or(main.started, |stat| stat.started);
        let (begun, base) = start_of(started, sched, self);
        let task = match image.tasks.entry(id) {
            Entry::Occupied(known) => {
                let task = known.into_mut();
                task.sample(at, sched, (doing, wait));
                task
            }
            Entry::Vacant(new) => new.insert(Task::new(at, begun, base, sched, (doing, wait))),
        };
        task.children = children;
    }

    /// A process is there no longer.
    fn end(&mut self, pid: u32) {
        if let Some(process) = self.processes.remove(&pid) {
            self.past.extend(process.images.into_iter().map(|image| Program::new(pid, image, false)));
        }
    }

    /// A file's content; none if it cannot be read.
    fn read(&mut self, path: &str) -> Option<&[u8]> {
        /// A file of less than this comes whole.
        const WHOLE: usize = 2048;
        let mut file = File::open(path).ok()?;
        let mut length = 0;
        loop {
            if self.buffer.len() < length + 2 * WHOLE {
                self.buffer.resize(length + 2 * WHOLE, 0);
            }
            let read = file.read(&mut self.buffer[length..]).ok()?;
            length += read;
            if read < WHOLE {
                return Some(&self.buffer[..length]);
            }
        }
    }

    /// The last samples, and the result.
    pub(super) fn finish(mut self) -> Observation {
        let mut is_one_left = self.sample();
        let deadline = Instant::now() + ENDING;
        while is_one_left && Instant::now() < deadline {
            thread::sleep(ENDING / 4);
            is_one_left = self.sample();
        }
        let duration = ns(self.begun.elapsed());
        for (pid, process) in std::mem::take(&mut self.processes) {
            let last = process.images.len().saturating_sub(1);
            let images = process.images.into_iter().enumerate();
            let is_alive = process.is_alive;
            self.past
                .extend(images.map(|(index, image)| Program::new(pid, image, is_alive && index == last)));
        }
        let snapshots = self.snapshots;
        Observation {
            format: String::from(observation::FORMAT),
            version: observation::VERSION,
            started: self.started,
            duration,
            snapshots,
            cost: ns(self.cost),
            cpu: cpu_of_children().saturating_sub(self.cpu_before),
            machine: cpu_of_machine()
                .zip(self.machine_before)
                .map(|(now, before)| now.saturating_sub(before)),
            programs: self.past,
        }
    }
}

/// The children of this process.
pub(super) fn own_children() -> Vec<u32> {
    let lists = numbers_in("/proc/self/task")
        .into_iter()
        .filter_map(|id| fs::read(format!("/proc/self/task/{id}/children")).ok());
    lists.flat_map(|list| numbers(&list)).collect()
}

/// The numbers that name what is in a directory, in order.
fn numbers_in(directory: &str) -> Vec<u32> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    let mut numbers: Vec<u32> =
        entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect();
    numbers.sort_unstable();
    numbers
}

fn numbers(text: &[u8]) -> Vec<u32> {
    String::from_utf8_lossy(text).split_ascii_whitespace().filter_map(|word| word.parse().ok()).collect()
}

fn ns(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

fn time_of(clock: ClockId) -> Duration {
    let time = rustix::time::clock_gettime(clock);
    Duration::try_from(time).unwrap_or_default()
}

/// ns since boot.
fn boot_time() -> u64 {
    ns(time_of(ClockId::Boottime))
}

fn cpu_of_this_thread() -> Duration {
    time_of(ClockId::ThreadCPUTime)
}

/// CPU time of children that have ended and were waited for, and of theirs, ns.
fn cpu_of_children() -> u64 {
    // SAFETY: `rusage` is plain integers; all zero is a value of it.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: the pointer is to a live local of the right type.
    if unsafe { libc::getrusage(libc::RUSAGE_CHILDREN, &raw mut usage) } != 0 {
        return 0;
    }
    let of = |time: libc::timeval| {
        time.tv_sec.unsigned_abs() * 1_000_000_000 + time.tv_usec.unsigned_abs() * 1_000
    };
    of(usage.ru_utime) + of(usage.ru_stime)
}

/// CPU time of all programs since boot, on the CPUs that this process may use, ns.
fn cpu_of_machine() -> Option<u64> {
    let own = rustix::thread::sched_getaffinity(None).ok()?;
    let tick = 1_000_000_000 / rustix::param::clock_ticks_per_second().max(1);
    let stat = fs::read_to_string("/proc/stat").ok()?;
    let busy = stat.lines().filter_map(|line| {
        let (cpu, times) = line.strip_prefix("cpu")?.split_once(' ')?;
        let number: usize = cpu.parse().ok()?;
        let times: Vec<u64> = times.split_ascii_whitespace().filter_map(|time| time.parse().ok()).collect();
        // Of user, nice, system, idle, iowait, irq, softirq and steal, neither the fourth nor the fifth.
        let is_busy = |at: usize| !matches!(at, 3 | 4) && at < 8;
        let busy = times.iter().enumerate().filter(|(at, _)| is_busy(*at)).map(|(_, time)| time).sum::<u64>();
        (number < rustix::thread::CpuSet::MAX_CPU && own.is_set(number)).then_some(busy)
    });
    Some(busy.sum::<u64>() * tick)
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn threads_are_counted_over_time() {
        let mut count = Count { at: 100, number: 4, time: 0 };
        count.add(200, 4);
        count.add(300, 8);
        assert_eq!((count.time, count.at, count.number), (400 + 600, 300, 8));
    }

    /// Children that become another program are watched all the time, also while the kernel replaces the
    /// program.
    #[test]
    fn a_program_is_seen_once() {
        let script = "i=0; while [ $i -lt 15 ]; do env nice true; i=$((i + 1)); done";
        for _ in 0..40 {
            let mut shell = Command::new("sh").args(["-c", script]).spawn().expect("a shell");
            let mut observer = Observer::new(shell.id(), String::from("no such library"), BTreeSet::new());
            while observer.sample() {}
            shell.wait().expect("it ends");
            let seen = observer.finish().programs.kept;
            let of = |it: &Program| (it.pid, it.program.clone());
            let distinct: BTreeSet<(u32, String)> = seen.iter().map(of).collect();
            assert_eq!(seen.len(), distinct.len(), "{seen:#?}");
        }
    }
}
