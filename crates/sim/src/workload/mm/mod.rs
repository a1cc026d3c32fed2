//! Document 002's workloads on the lock of an address space, `mmap_sem`: mapping, page faults, unmapping.
//!
//! | what | where |
//! |---|---|
//! | what is done under which lock | [`space`] |
//! | what that costs | [`costs`] |
//!
//! The chosen lock is the kernel's. A mutex of the program around an iteration is glibc's of three states.
//! Each thread has a CPU of its own, the first ones on the first socket, as will-it-scale has it, from which
//! the document's test comes.
//!
//! Not modelled: locks of page tables (split, and a mapping has its own but for the neighbour's half),
//! accounting by control group, and everything that a machine does besides.

mod costs;
mod space;

use self::space::{PAGES, Space, Zones};
use super::{Mode, Plan, SettingError, Workload};

/// The program's mutex.
const MUTEX: &str = "classic-mutex-2003";

/// What the mutex is held for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Serialize {
    None,
    Iteration,
    Calls,
}

fn mmap(plan: &mut Plan<'_>, pages: u32, serialize: Serialize) -> Result<(), SettingError> {
    let zones = Zones::new(plan);
    let space = Space::new(plan, &zones)?;
    let mutex = plan.mutex_in(Mode::User, MUTEX, "mutex")?;
    for cpu in cpus(plan)? {
        let (space, mutex) = (space.clone(), mutex.clone());
        plan.worker_on(cpu..cpu + 1, move |worker| {
            space.enter();
            let touch = || (0..pages).for_each(|page| space.fault(page));
            worker.repeat(|| match serialize {
                Serialize::None => {
                    space.map();
                    touch();
                    space.unmap(pages);
                }
                Serialize::Iteration => mutex.with(|| {
                    space.map();
                    touch();
                    space.unmap(pages);
                }),
                Serialize::Calls => {
                    mutex.with(|| space.map());
                    touch();
                    mutex.with(|| space.unmap(pages));
                }
            });
        });
    }
    Ok(())
}

/// Faults in threads, which share an address space, or in processes, which do not.
fn faults(plan: &mut Plan<'_>, are_processes: bool) -> Result<(), SettingError> {
    let zones = Zones::new(plan);
    let shared = Space::new(plan, &zones)?;
    for cpu in cpus(plan)? {
        let space = if are_processes { Space::new(plan, &zones)? } else { shared.clone() };
        plan.worker_on(cpu..cpu + 1, move |worker| {
            space.enter();
            while !crate::here::is_over() {
                space.map();
                for page in 0..PAGES {
                    space.fault(page);
                    worker.did_one();
                }
                space.unmap(PAGES);
            }
        });
    }
    Ok(())
}

/// A CPU for each thread.
fn cpus(plan: &Plan<'_>) -> Result<std::ops::Range<u32>, SettingError> {
    let (threads, cpus) = (plan.setting().threads, plan.machine().cpus());
    if threads > cpus {
        let workload = &plan.setting().workload;
        return Err(SettingError::Unfit(format!(
            "{workload} has each thread on a CPU of its own, and {} has {cpus}: `--threads {cpus}` or fewer",
            plan.machine().name
        )));
    }
    Ok(0..threads)
}

macro_rules! mapping {
    ($name:literal, $about:literal, $pages:expr, $serialize:ident) => {
        Workload {
            name: $name,
            about: $about,
            mode: Mode::Kernel,
            build: |plan| mmap(plan, $pages, Serialize::$serialize),
        }
    };
}

/// All of them.
pub(super) const WORKLOADS: &[Workload] = &[
    mapping!("mmap-untouched", "map 1 MB and unmap it, one address space (document 002)", 0, None),
    mapping!("mmap-untouched-mutex", "the same, a mutex around both calls", 0, Iteration),
    mapping!("mmap-untouched-calls", "the same, a mutex around each call", 0, Calls),
    mapping!(
        "mmap-touched",
        "map 1 MB, write each page, unmap it, one address space (document 002)",
        PAGES,
        None
    ),
    mapping!("mmap-touched-mutex", "the same, a mutex around all of it", PAGES, Iteration),
    mapping!("mmap-touched-calls", "the same, a mutex around each call", PAGES, Calls),
    Workload {
        name: "faults-threads",
        about: "page faults in threads, which share an address space and its lock",
        mode: Mode::Kernel,
        build: |plan| faults(plan, false),
    },
    Workload {
        name: "faults-processes",
        about: "page faults in processes, each with an address space",
        mode: Mode::Kernel,
        build: |plan| faults(plan, true),
    },
];
