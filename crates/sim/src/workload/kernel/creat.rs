//! `creat`: tasks that create and close a file of their own, all in one directory: document 001's "V".
//!
//! From the second round on the file exists, so a round is, in the kernel of 2010: walk to the directory,
//! look the name up under the directory's mutex, open and truncate the file, close it.
//!
//! What else all tasks write on that way is known: a study of Linux 2.6.35 on 48 cores (Boyd-Wickizer et al.,
//! OSDI 2010) names the counts of directory entries and mounts, an entry's lock during look-up, and the list
//! of open files; and the last reference to an entry is given back under the lock of the whole directory
//! cache.

use std::rc::Rc;

use super::shared::{Count, SpinLock};
use crate::here;
use crate::workload::{Mode, Plan, SettingError, Workload};

pub(super) const CREAT: Workload = Workload {
    name: "creat",
    about: "create and close a file of one's own, all in one directory: its mutex is the kernel's",
    mode: Mode::Kernel,
    build,
};

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
    directory: SpinLock,
    /// The lock of the directory cache.
    cache: SpinLock,
    /// The lock of the list of open files.
    files: SpinLock,
    /// The head of that list.
    head: Count,
    /// Each task's open file, whose links neighbours in the list write.
    links: Rc<[Count]>,
    section_ns: f64,
}

impl Tree {
    fn new(tasks: u32, section_ns: f64) -> Self {
        Self {
            root: Count::new(),
            mount: Count::new(),
            directory: SpinLock::new(),
            cache: SpinLock::new(),
            files: SpinLock::new(),
            head: Count::new(),
            links: (0..tasks).map(|_| Count::new()).collect(),
            section_ns,
        }
    }

    fn work(&self) {
        here::compute_f64(self.section_ns);
    }

    /// From the root to the directory.
    fn walk(&self) {
        self.mount.change();
        self.root.change();
        self.directory.with(|| self.work());
        self.root.change();
    }

    /// The file goes to the head of the list; the path is given back.
    fn open(&self, me: u32) {
        self.files.with(|| {
            self.neighbour().write();
            self.links[me as usize].write();
            self.head.write();
        });
        self.directory.with(|| {});
    }

    /// The file leaves the list; it was the last who used its entry.
    fn close(&self, me: u32) {
        self.files.with(|| {
            self.neighbour().write();
            self.neighbour().write();
            self.links[me as usize].write();
        });
        self.cache.with(|| self.work());
        self.mount.change();
    }

    /// A task's file.
    fn neighbour(&self) -> &Count {
        &self.links[here::random(self.links.len() as u64) as usize]
    }
}

fn build(plan: &mut Plan<'_>) -> Result<(), SettingError> {
    let directory = plan.mutex("directory")?;
    let cycle = 1.0 / plan.machine().ghz;
    let syscall = plan.machine().kernel.syscall_ns;
    let tree = Tree::new(plan.setting().threads, cycle * SECTION_CYCLES);
    for _ in 0..plan.setting().threads {
        let (directory, tree) = (directory.clone(), tree.clone());
        plan.worker(move |worker| {
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
    }
    Ok(())
}
