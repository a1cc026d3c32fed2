//! Workloads whose lock is the kernel's: what the four documents ran, with the work around the lock as a
//! model.
//!
//! The lock is a [`Mode::Kernel`](super::Mode::Kernel) one. Everything else of a system call is computation
//! and a few cache lines that all CPUs write; each constant of it says where it comes from.

use std::rc::Rc;

use spinpark_platform::Ordering::Relaxed;
use spinpark_platform::{AtomicU32 as _, SpinPolicy};

use crate::here;
use crate::platform::{AtomicU32, Sim};
use crate::workload::{Plan, SettingError, Workload};
use crate::world::memory::object::Object;

/// A counter on a cache line of its own.
type Count = Rc<Object<AtomicU32>>;

fn count() -> Count {
    Object::new(AtomicU32::new(0))
}

/// The kernel's spin lock of 2008 to 2014: tickets. A waiter polls the line that the holder has to write.
#[derive(Debug)]
struct SpinLock {
    next: AtomicU32,
    serving: AtomicU32,
}

impl SpinLock {
    fn new() -> Rc<Object<Self>> {
        Object::new(Self { next: AtomicU32::new(0), serving: AtomicU32::new(0) })
    }

    /// Runs `section` under the lock. Within [`in_kernel`](crate::here::in_kernel): a waiter is not
    /// preempted.
    fn with(&self, section: impl FnOnce()) {
        let Self { next, serving } = self;
        let mine = next.fetch_add(1, Relaxed);
        while serving.load(Relaxed) != mine {
            Sim::<crate::LinuxTuning>::spin_hint();
        }
        section();
        serving.store(mine.wrapping_add(1), Relaxed);
    }
}

/// Under the directory's mutex: permission, a look-up by name in the directory cache, cycles. An estimate:
/// three dependent misses of the second level, and some instructions.
const LOOK_UP_CYCLES: f64 = 500.0;
/// The same in the first round, which makes the file: entry, inode, the directory's block; a guess, and 80
/// times as much. With it all tasks begin at the mutex, not at the list of open files: see the page on the
/// documents in the simulator.
const CREATE_CYCLES: f64 = 40_000.0;
/// The rest of `creat`, without what follows: name, path, descriptor, file, own inode's truncation, cycles.
/// An estimate: with `close`, 2 µs on an idle machine of that age.
const OPEN_CYCLES: f64 = 3_500.0;
/// `close`, cycles. As above.
const CLOSE_CYCLES: f64 = 1_500.0;
/// A section under a spin lock, beside the lines that it writes: a few dependent loads and compares, cycles.
const SECTION_CYCLES: f64 = 60.0;

/// What all tasks' system calls write besides the mutex.
#[derive(Clone)]
struct Tree {
    /// The root directory's entry: counted on the way.
    root: Count,
    /// The mount: counted for the path, and for the open file.
    mount: Count,
    /// The directory's entry, with its lock in the line of its count.
    directory: Rc<Object<SpinLock>>,
    /// The lock of the directory cache.
    cache: Rc<Object<SpinLock>>,
    /// The lock of the list of open files.
    files: Rc<Object<SpinLock>>,
    /// The head of that list.
    head: Count,
    /// Each task's open file, whose links neighbours in the list write.
    links: Rc<[Count]>,
    section_ns: f64,
}

impl Tree {
    fn new(tasks: u32, section_ns: f64) -> Self {
        Self {
            root: count(),
            mount: count(),
            directory: SpinLock::new(),
            cache: SpinLock::new(),
            files: SpinLock::new(),
            head: count(),
            links: (0..tasks).map(|_| count()).collect(),
            section_ns,
        }
    }

    fn work(&self) {
        here::compute_f64(self.section_ns);
    }

    /// From the root to the directory.
    fn walk(&self) {
        self.mount.fetch_add(1, Relaxed);
        self.root.fetch_add(1, Relaxed);
        self.directory.with(|| self.work());
        self.root.fetch_add(1, Relaxed);
    }

    /// The file goes to the head of the list; the path is given back.
    fn open(&self, me: u32) {
        self.files.with(|| {
            self.neighbour().store(1, Relaxed);
            self.links[me as usize].store(1, Relaxed);
            self.head.store(1, Relaxed);
        });
        self.directory.with(|| {});
    }

    /// The file leaves the list; it was the last who used its entry.
    fn close(&self, me: u32) {
        self.files.with(|| {
            self.neighbour().store(1, Relaxed);
            self.neighbour().store(1, Relaxed);
            self.links[me as usize].store(1, Relaxed);
        });
        self.cache.with(|| self.work());
        self.mount.fetch_add(1, Relaxed);
    }

    /// A task's file.
    fn neighbour(&self) -> &Count {
        &self.links[here::random(self.links.len() as u64) as usize]
    }
}

/// `creat`: tasks that create and close a file of their own, all in one directory: document 001's "V".
///
/// From the second round on the file exists, so a round is, in the kernel of 2010: walk to the directory,
/// look the name up under the directory's mutex, open and truncate the file, close it.
///
/// What else all tasks write on that way is known: a study of Linux 2.6.35 on 48 cores (Boyd-Wickizer et al.,
/// OSDI 2010) names the counts of directory entries and mounts, an entry's lock during look-up, and the list
/// of open files; and the last reference to an entry is given back under the lock of the whole directory
/// cache.
fn creat(plan: &mut Plan<'_>) -> Result<(), SettingError> {
    let directory = plan.mutex("directory")?;
    let cycle = 1.0 / plan.machine().ghz;
    let syscall = plan.machine().kernel.syscall_ns;
    let tree = Tree::new(plan.setting().threads, cycle * SECTION_CYCLES);
    plan.workers(move |worker| {
        let mut inside = CREATE_CYCLES; // and from the second round on it is there
        worker.repeat(|| {
            here::in_kernel(|| {
                here::compute_f64(syscall + cycle * OPEN_CYCLES / 2.0);
                tree.walk();
                directory.with(|| {
                    here::compute_f64(cycle * std::mem::replace(&mut inside, LOOK_UP_CYCLES));
                });
                tree.open(worker.number);
                here::compute_f64(cycle * OPEN_CYCLES / 2.0);
            });
            here::in_kernel(|| {
                here::compute_f64(syscall + cycle * CLOSE_CYCLES);
                tree.close(worker.number);
            });
        });
    });
    Ok(())
}

/// Under the directory's mutex, cycles. Fitted: document 001's gain of 63 % in jobs per minute.
const HOLD_CYCLES: f64 = 17_500.0;
/// The rest of the call that makes the file, cycles. An estimate, as for `creat`.
const CALL_CYCLES: f64 = 5_000.0;
/// The computation, on the average, ns: short enough that the mutex limits with either kernel. An assumption:
/// the document does not say how many users share how many directories.
const COMPUTATION_NS: f64 = 500_000.0;

/// `fserver`: a file server's mix, reduced to what meets at one directory's mutex: a computation, then a file
/// that is made.
fn fserver(plan: &mut Plan<'_>) -> Result<(), SettingError> {
    let directory = plan.mutex("directory")?;
    let cycle = 1.0 / plan.machine().ghz;
    let syscall = plan.machine().kernel.syscall_ns;
    plan.workers(move |worker| {
        worker.repeat(|| {
            here::in_kernel(|| {
                here::compute_f64(syscall + cycle * CALL_CYCLES / 2.0);
                directory.with(|| here::compute_f64(cycle * HOLD_CYCLES));
                here::compute_f64(cycle * CALL_CYCLES / 2.0);
            });
            let part = 0.5 + here::random(1_000) as f64 / 1_000.0;
            here::compute_f64(COMPUTATION_NS * part);
        });
    });
    Ok(())
}

/// Under the mutex: a message is copied to a socket's buffer, or from it, cycles. An estimate: some hundred
/// instructions of a CPU that issues about one a cycle, with its misses left to the line below.
const COPY_CYCLES: f64 = 800.0;
/// Between two sections, on the average: the rest of the call, and this side's part of a query, cycles.
/// Fitted: document 004's gain of 17 % by back-off.
const BETWEEN_CYCLES: f64 = 19_500.0;

/// `select`: a database's clients and servers talk over sockets of the machine, which have one mutex:
/// document 004's select-smack on FreeBSD of 2006, where every send and every receive of a local socket takes
/// `unp`.
///
/// `between`: cycles from one section to the next, on the average.
fn select(plan: &mut Plan<'_>, between: f64) -> Result<(), SettingError> {
    /// Sends and receives of a query and its answer.
    const SECTIONS: u32 = 4;
    let unp = plan.mutex("unp")?;
    let counts = count(); // what the mutex protects besides the socket
    let cycle = 1.0 / plan.machine().ghz;
    let syscall = plan.machine().kernel.syscall_ns;
    plan.workers(move |worker| {
        worker.repeat(|| {
            for _ in 0..SECTIONS {
                here::in_kernel(|| {
                    here::compute_f64(syscall);
                    unp.with(|| {
                        counts.store(1, Relaxed);
                        here::compute_f64(cycle * COPY_CYCLES);
                    });
                });
                let part = 0.5 + here::random(1_000) as f64 / 1_000.0;
                here::compute_f64(cycle * between * part);
            }
        });
    });
    Ok(())
}

/// Prefix of the names with a number.
const SELECT: &str = "select-";

/// The cycles of `select-CYCLES`.
fn cycles(name: &str) -> Option<u32> {
    name.strip_prefix(SELECT)?.parse().ok()
}

/// The workload of a name with any number.
pub(super) fn of_number(name: &str) -> Option<&'static Workload> {
    const ANY: Workload =
        Workload::kernel("select-…", "as select, with this number of cycles between two sections", |plan| {
            let name = &plan.setting().workload;
            let Some(between) = cycles(name) else {
                return Err(SettingError::Unfit(format!("{name} has no length: write select-19500")));
            };
            select(plan, between.into())
        });
    cycles(name).is_some().then_some(&ANY)
}

/// What to say of a name that begins as those.
pub(super) fn wrong_number(name: &str) -> Option<String> {
    name.starts_with(SELECT).then(|| {
        String::from(
            ": write select-CYCLES, as in select-19500, in cycles between two sections, less than 2^32",
        )
    })
}

/// All of them.
pub(super) const WORKLOADS: &[Workload] = &[
    Workload::kernel(
        "creat",
        "create and close a file of one's own, all in one directory: its mutex is the kernel's",
        creat,
    ),
    Workload::kernel(
        "fserver",
        "jobs of a file server's mix: a computation, then a file made in a common directory",
        fserver,
    ),
    Workload::kernel("select", "queries over local sockets, all under one mutex of the kernel's", |plan| {
        select(plan, BETWEEN_CYCLES)
    }),
];
