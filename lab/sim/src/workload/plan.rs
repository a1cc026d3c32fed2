//! A workload being set up: its locks and its threads.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use super::meter::{Condvar, Meter, Mutex, Place, RwLock};
use crate::locks;
use crate::machine::Machine;
use crate::platform::{LinuxTuning, Tuned};
use crate::simulation::Simulation;
use crate::workload::{Setting, SettingError};
use crate::world::memory::object::Object;
use spinpark_platform::{SpinLocks, Tuning};

/// Locks of the kernel: whether the owner runs is one load there, so it is asked at each poll; and no thread
/// is preempted around a spin lock, which is a ticket lock.
#[derive(Debug)]
pub enum KernelTuning {}

impl Tuned for KernelTuning {
    const TUNING: Tuning = Tuning { owner_probe_ns: 1, spin_locks: SpinLocks::Kept, ..Tuning::LINUX };
}

/// Where the locks of a workload live.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// In user space: they make system calls.
    User,
    /// In the kernel, inside of [`here::in_kernel`](crate::here::in_kernel).
    Kernel,
}

/// How many operations of all workers ended in each span of the run's time, if that is recorded.
#[derive(Clone, Debug, Default)]
struct Spans {
    /// The length of a span, ns; 0: not recorded.
    ns: u64,
    done: Rc<RefCell<Vec<u64>>>,
}

impl Spans {
    fn count(&self) {
        if self.ns > 0 {
            let span = (crate::here::now() / self.ns as f64) as usize;
            let mut done = self.done.borrow_mut();
            if done.len() <= span {
                done.resize(span + 1, 0);
            }
            done[span] += 1;
        }
    }
}

/// A worker counts its operations here.
#[derive(Clone, Debug)]
pub struct Worker {
    done: Rc<Cell<u64>>,
    /// Those of them that ended within the run's time.
    in_time: Rc<Cell<u64>>,
    spans: Spans,
    /// Its number, from 0.
    pub number: u32,
}

impl Worker {
    /// It has done one operation.
    pub fn did_one(&self) {
        self.done.set(self.done.get() + 1);
        if !crate::here::is_over() {
            self.in_time.set(self.in_time.get() + 1);
            self.spans.count();
        }
    }

    /// Works until the run's time is over.
    pub fn repeat(&self, mut operation: impl FnMut()) {
        while !crate::here::is_over() {
            operation();
            self.did_one();
        }
    }
}

/// Makes the lock of a name, if there is one.
type Make<L> = fn(&str) -> Option<Rc<Object<L>>>;

/// The set-up.
pub struct Plan<'a> {
    setting: &'a Setting,
    mode: Mode,
    simulation: Simulation,
    meters: Vec<Rc<Meter>>,
    workers: Vec<Worker>,
    spans: Spans,
}

impl<'a> Plan<'a> {
    pub(super) fn new(setting: &'a Setting, mode: Mode) -> Self {
        let simulation = Simulation::new(&setting.machine)
            .seed(setting.seed)
            .until(setting.for_ns)
            .chaos(setting.chaos.clone())
            .record(setting.record)
            .most_steps(setting.most_steps);
        let spans = Spans { ns: setting.record.span_ns, ..Spans::default() };
        Self { setting, mode, simulation, meters: Vec::new(), workers: Vec::new(), spans }
    }

    /// What was asked for.
    #[must_use]
    pub fn setting(&self) -> &Setting {
        self.setting
    }

    /// The machine.
    #[must_use]
    pub fn machine(&self) -> &Machine {
        &self.setting.machine
    }

    fn meter(&mut self, name: &str) -> Rc<Meter> {
        let meter = Rc::new(Meter::new(name, self.setting.machine.ghz));
        self.meters.push(Rc::clone(&meter));
        meter
    }

    /// The lock of kind `kind` for a mode, of those that `make` makes for either.
    fn make<L: ?Sized>(
        &self,
        make: [Make<L>; 2],
        (mode, kind): (Mode, &str),
        wanted: &'static str,
    ) -> Result<Rc<Object<L>>, SettingError> {
        make[mode as usize](kind).ok_or_else(|| SettingError::WrongKind {
            lock: self.setting.lock.clone(),
            kind: wanted,
            workload: self.setting.workload.clone(),
        })
    }

    /// A mutex of the chosen kind, by this name in the report.
    ///
    /// # Errors
    ///
    /// The chosen lock is no mutex.
    pub fn mutex(&mut self, name: &str) -> Result<Mutex, SettingError> {
        self.mutex_in(self.mode, &self.setting.lock, name)
    }

    /// A mutex of kind `kind` in this mode, whatever the workload's is.
    ///
    /// # Errors
    ///
    /// There is no such mutex.
    pub fn mutex_in(&mut self, mode: Mode, kind: &str, name: &str) -> Result<Mutex, SettingError> {
        let make = [locks::mutex::<LinuxTuning>, locks::mutex::<KernelTuning>];
        Ok(Mutex { lock: self.make(make, (mode, kind), locks::MUTEX)?, meter: self.meter(name) })
    }

    /// A read-write lock of the chosen kind.
    ///
    /// # Errors
    ///
    /// The chosen lock is no read-write lock.
    pub fn rwlock(&mut self, name: &str) -> Result<RwLock, SettingError> {
        self.rwlock_of(&self.setting.lock, name)
    }

    /// A read-write lock of kind `kind`.
    ///
    /// # Errors
    ///
    /// There is no such read-write lock.
    pub fn rwlock_of(&mut self, kind: &str, name: &str) -> Result<RwLock, SettingError> {
        let make = [locks::rwlock::<LinuxTuning>, locks::rwlock::<KernelTuning>];
        Ok(RwLock { lock: self.make(make, (self.mode, kind), locks::RWLOCK)?, meter: self.meter(name) })
    }

    /// A condition variable of the chosen kind, with its mutex.
    ///
    /// # Errors
    ///
    /// The chosen lock is no condition variable.
    pub fn condvar(&mut self, name: &str) -> Result<Condvar, SettingError> {
        let make = [locks::condvar::<LinuxTuning>, locks::condvar::<KernelTuning>];
        let pair = self.make(make, (self.mode, &self.setting.lock), locks::CONDVAR)?;
        Ok(Condvar { pair, meter: self.meter(name) })
    }

    /// Adds as many threads as were asked for, which do the same.
    pub fn workers(&mut self, body: impl FnOnce(Worker) + Clone + 'static) {
        for _ in 0..self.setting.threads {
            self.worker(body.clone());
        }
    }

    /// Adds a thread.
    pub fn worker(&mut self, body: impl FnOnce(Worker) + 'static) {
        let worker = self.next_worker();
        self.simulation.thread(move || body(worker));
    }

    /// Adds a thread that may use these CPUs only.
    pub fn worker_on(&mut self, cpus: std::ops::Range<u32>, body: impl FnOnce(Worker) + 'static) {
        let worker = self.next_worker();
        self.simulation.thread_on(cpus, move || body(worker));
    }

    fn next_worker(&mut self) -> Worker {
        let worker = Worker {
            done: Rc::default(),
            in_time: Rc::default(),
            spans: self.spans.clone(),
            number: self.workers.len() as u32,
        };
        self.workers.push(worker.clone());
        worker
    }

    pub(super) fn run(self) -> std::io::Result<Ran> {
        let outcome = self.simulation.run()?;
        Ok(Ran {
            outcome,
            places: Place::by_name(self.meters.iter().flat_map(|meter| meter.places()), Place::merge),
            done: self.workers.iter().map(|worker| worker.done.get()).collect(),
            in_time: self.workers.iter().map(|worker| worker.in_time.get()).sum(),
            spans: self.spans.done.take(),
        })
    }
}

/// What a plan gave.
pub(super) struct Ran {
    pub(super) outcome: crate::SimulationResult,
    pub(super) places: Vec<Place>,
    pub(super) done: Vec<u64>,
    pub(super) in_time: u64,
    pub(super) spans: Vec<u64>,
}
