//! A machine file out of what was measured: what follows from it, and how.

use spinpark_measure::rounds::environment::Environment;

use super::measure::IDLE;
use super::{Calibration, Cpus, Measure, kernel_says};
use spinpark_sim::machine::figure::{Figure, Quantity};
use spinpark_sim::machine::keys;
use spinpark_sim::machine::sheet::{Sheet, Topology};

/// How far single transfers and calls differ, and why.
const SPREAD: f64 = 0.2;
const NO_STEP: &str =
    "a guess, so that nothing falls into step: no published figure was found for the spread of single ones";

/// Parts of the machine file that the measured machine gets.
struct Draft<'a> {
    sheet: Sheet,
    calibration: &'a Calibration,
    day: &'a str,
}

/// The machine file of this machine.
#[must_use]
pub fn sheet(calibration: &Calibration, cpus: &Cpus, environment: &Environment, name: &str) -> Sheet {
    let day = environment.date.get(..10).unwrap_or(&environment.date);
    let sheet = Sheet {
        file: format!("{name}.toml"),
        name: name.to_owned(),
        about: about(cpus, environment),
        notes: notes(calibration, environment, day),
        ..Sheet::default()
    };
    let mut draft = Draft { sheet, calibration, day };
    draft.shape(cpus);
    draft.memory(cpus);
    draft.processor();
    draft.kernel(cpus);
    draft.scheduler(cpus);
    draft.sheet
}

fn about(cpus: &Cpus, environment: &Environment) -> String {
    let [sockets, caches, cores, threads] = cpus.counts();
    let machine = if environment.virtual_machine { ", virtual machine" } else { "" };
    let Environment { cpu, kernel, .. } = environment;
    format!("{sockets} × {caches} × {cores} × {threads} CPUs, {cpu}{machine}, Linux {kernel}")
}

fn notes(calibration: &Calibration, environment: &Environment, day: &str) -> String {
    let rounds = calibration.values.values().map(Vec::len).max().unwrap_or(0);
    let noisy = calibration.noisy();
    let mut notes = format!(
        "Measured by `spinpark-lab sim calibrate` on {day}, {rounds} rounds: {}. Primitives only; nothing was fitted to any lock.",
        environment.line()
    );
    let others = 100.0 * calibration.others;
    if others >= 1.0 {
        notes.push_str(&format!(" Other programs took {others:.0} % of the CPUs meanwhile."));
    }
    if !noisy.is_empty() {
        let names: Vec<String> = noisy.iter().map(|measure| format!("{measure:?}")).collect();
        notes.push_str(&format!(" The rounds differ much in: {}.", names.join(", ")));
    }
    notes
}

impl Draft<'_> {
    fn put(&mut self, path: &str, quantity: Quantity, source: impl Into<String>) {
        let key = keys::find(path).expect("a key of a machine file");
        let figure = Figure { quantity, source: source.into(), file: self.sheet.file.clone() };
        self.sheet.figures.insert((key.table, key.name), figure);
    }

    fn put_number(&mut self, path: &str, number: f64, source: impl Into<String>) {
        self.put(path, Quantity::Number(number), source);
    }

    /// A time, with three digits.
    fn put_ns(&mut self, path: &str, ns: f64, source: impl Into<String>) {
        let quantity = match ns.max(0.0) {
            ns if ns >= 1e6 => Quantity::Time(rounded(ns / 1e6), "ms"),
            ns if ns >= 1e4 => Quantity::Time(rounded(ns / 1e3), "us"),
            ns => Quantity::ns(rounded(ns)),
        };
        self.put(path, quantity, source);
    }

    fn of(&self, measure: Measure) -> f64 {
        self.calibration.of(measure).unwrap_or(0.0)
    }

    /// "measured on …: how; median of 5 rounds, 1.8 to 2.1".
    fn measured(&self, measure: Measure) -> String {
        let how = measure.how();
        let Some(spread) = self.calibration.spread(measure) else {
            return format!("could not be measured: {how}");
        };
        let rounds = match self.calibration.values.get(&measure).map_or(0, Vec::len) {
            1 => "one round".to_owned(),
            rounds => {
                format!("median of {rounds} rounds, {} to {}", rounded(spread.least), rounded(spread.most))
            }
        };
        format!("measured on {}: {how}; {rounds}", self.day)
    }

    /// "derived on …: `what` takes 812 ns, less …".
    fn derived(&self, measure: Measure, less: &str) -> String {
        format!("derived on {}: {} takes {} ns{less}", self.day, measure.how(), rounded(self.of(measure)))
    }

    /// A time of which a measure is a part.
    fn put_derived(&mut self, path: &str, ns: f64, measure: Measure, less: &str) {
        self.put_ns(path, ns, self.derived(measure, less));
    }

    /// A time that is a measure as it is; `otherwise`, and why, if it could not be measured.
    fn put_measure(&mut self, path: &str, measure: Measure, otherwise: f64, why: &str) {
        match self.calibration.of(measure) {
            Some(ns) => self.put_ns(path, ns, self.measured(measure)),
            None => self.put_ns(path, otherwise, why),
        }
    }

    fn shape(&mut self, cpus: &Cpus) {
        let counts = cpus.counts();
        let shape = &mut self.sheet.shape;
        for (name, count) in ["sockets", "caches", "cores", "threads"].into_iter().zip(counts) {
            shape.counts.insert(name, u32::try_from(count).unwrap_or(u32::MAX));
        }
        shape.source = "/sys/devices/system/cpu, of the CPUs that the process may use".to_owned();
        if counts[0] > 1 {
            shape.topology = Some(Topology::Named("full".to_owned()));
            shape.source.push_str("; that all sockets are linked to each other is an assumption");
        }
    }

    fn memory(&mut self, cpus: &Cpus) {
        let [sockets, caches, ..] = cpus.counts();
        self.put_measure("memory.hit", Measure::Hit, 1.5, "a guess");
        self.put_measure("memory.rmw", Measure::Rmw, 6.0, "a guess");
        self.put_measure("memory.shared", Measure::Shared, 20.0, "a guess");
        let shared = self.of(Measure::Shared);
        self.put_ns(
            "memory.shared_busy",
            shared / 6.0,
            "a guess: a sixth of `shared`; it takes many cores to measure",
        );
        match self.calibration.of(Measure::Near) {
            Some(near) => {
                let rmw = format!(
                    "{}; an atomic operation instead of a load: {} ns",
                    self.measured(Measure::Near),
                    rounded(self.of(Measure::NearRmw))
                );
                self.put_ns("memory.near", near, rmw);
            }
            None => self.put_ns("memory.near", shared, "as `shared`: no other core may be used"),
        }
        let near = self.calibration.of(Measure::Near).unwrap_or(shared);
        self.put_measure(
            "memory.socket",
            Measure::Socket,
            near,
            "as `near`: a socket has one last-level cache",
        );
        let hops = self.calibration.of(Measure::Hop).map(rounded).into_iter().collect();
        let source = match self.calibration.of(Measure::Hop) {
            Some(_) => self.measured(Measure::Hop),
            None => "there is one socket".to_owned(),
        };
        self.put("memory.hop", Quantity::Times(hops, "ns"), source);
        self.put_measure(
            "memory.dram",
            Measure::Dram,
            110.0,
            "a guess: lines cannot be flushed on this architecture",
        );
        if sockets * caches == 1 {
            self.put_ns("memory.invalidate", 0.0, "there is one last-level cache");
            self.put_number(
                "memory.nearness",
                1.0,
                "there is one last-level cache: all are equally far apart",
            );
        } else {
            self.put_ns("memory.invalidate", 5.0, "a guess: invalidations are sent at the same time");
            self.put_number("memory.nearness", 2.0, "a guess: arbitration is known to favour near cores");
        }
        let serial = "contended atomic operations are done about every 70 cycles at the best (Downs), half of a transfer";
        self.put_number("memory.serial", 0.5, format!("not measured: {serial}"));
        self.put_number("memory.spread", SPREAD, NO_STEP);
    }

    fn processor(&mut self) {
        match self.calibration.of(Measure::Ghz) {
            Some(ghz) => self.put_number("clock.ghz", rounded(ghz), self.measured(Measure::Ghz)),
            None => {
                self.put_number("clock.ghz", 2.5, "a guess; nothing here is given in cycles but `step`");
            }
        }
        self.put_measure("cpu.pause", Measure::Pause, 40.0, "a guess");
        self.put(
            "cpu.step",
            Quantity::Time(1.0, "cycles"),
            "a guess: four or five instructions, of which a core does as many in a cycle",
        );
        self.put_measure("cpu.work", Measure::Work, 2.0, "a guess");
        let guess = "a guess: lines cannot be flushed on this architecture";
        self.put_measure("cpu.window", Measure::Window, 50.0, guess);
        self.put_measure("cpu.fence", Measure::Fence, 10.0, "a guess");
        let stores = "not measured: between Skylake's 56 and Golden Cove's 112; Zen 3 has 64 (from memory of the manuals)";
        self.put_number("cpu.stores", 64.0, stores);
        match self.calibration.of(Measure::Smt) {
            Some(smt) => self.put_number("cpu.smt", rounded(smt), self.measured(Measure::Smt)),
            None => self.put_number("cpu.smt", 1.0, "no core has a sibling that may be used"),
        }
    }

    fn kernel(&mut self, cpus: &Cpus) {
        let call = self.of(Measure::SystemCall);
        let futex = (self.of(Measure::FutexWait) - call - 2.0 * self.of(Measure::Rmw)).max(0.0);
        // The calls of a turn are timed one by one.
        let clock = self.of(Measure::Clock);
        let wake = (self.of(Measure::WakeSame) - call - futex - clock).max(0.0);
        self.put_measure("kernel.syscall", Measure::SystemCall, 100.0, "a guess");
        let waking = rounded(self.of(Measure::FutexWake));
        let less = format!(
            ", less `syscall` and its bucket's lock (2 × `rmw`); a wake without sleepers takes {waking} ns"
        );
        self.put_derived("kernel.futex", futex, Measure::FutexWait, &less);
        let buckets = kernel_says::futex_buckets(cpus.places.len());
        self.put_number("kernel.futex_buckets", buckets.value, buckets.source);
        self.put_derived("kernel.wake", wake, Measure::WakeSame, ", less `syscall`, `futex` and `clock`");
        self.idle(call, wake);
        let switch = self.of(Measure::HandOver) - 2.0 * (call + futex + clock) - wake;
        let less = ", less `wake` and two times each of `syscall`, `futex` and `clock`";
        self.put_derived("kernel.switch", switch, Measure::HandOver, less);
        self.put_measure("kernel.clock", Measure::Clock, 25.0, "a guess");
        self.put_measure("kernel.cpu_clock", Measure::CpuClock, 300.0, "a guess");
        self.put_measure("kernel.membarrier", Measure::MembarrierAsleep, 200.0, "a guess: not allowed here");
        self.interrupt();
        let none = "there is no other core to move to";
        self.put_measure("kernel.migrate_core", Measure::MigrateCore, 0.0, none);
        let core = self.of(Measure::MigrateCore);
        self.put_measure(
            "kernel.migrate_socket",
            Measure::MigrateSocket,
            core,
            "as `migrate_core`: there is one socket",
        );
        self.put_ns("kernel.kick_socket", 0.0, "an assumption: as within the socket");
        self.put_number("kernel.spread", SPREAD, NO_STEP);
    }

    /// Waking a thread of another CPU, and timers, which do that too.
    fn idle(&mut self, call: f64, wake: f64) {
        // The waker's part until the interrupt is sent; what is left of its system call comes after that.
        let waker = self.of(Measure::WakeOther) - call / 2.0;
        let late = self.of(Measure::Lateness);
        if self.calibration.of(Measure::WakeOther).is_none() {
            let none = "there is no other CPU; not used";
            self.put_ns("kernel.kick", 0.0, none);
            self.put_ns("kernel.idle_exit", wake, none);
            self.put("kernel.deep_idle_after", Quantity::Never, none);
            self.put("kernel.deep_idle_exit", Quantity::Never, none);
            self.put_derived("kernel.timer_slack", late - call, Measure::Lateness, ", less `syscall`");
            return;
        }
        let same = self.of(Measure::WakeSame);
        let less = format!(", on the waker's own CPU {} ns", rounded(same));
        let kick = self.of(Measure::WakeOther) - same;
        self.put_derived("kernel.kick", kick, Measure::WakeOther, &less);
        let exit = (self.of(Measure::Runs20us) - waker).max(0.0);
        let less = format!(", less the waker's part of {} ns", rounded(waker));
        self.put_derived("kernel.idle_exit", exit, Measure::Runs20us, &less);
        match self.deeper() {
            Some(after) => {
                let times: Vec<String> =
                    IDLE.iter().map(|(it, _)| rounded(self.of(*it)).to_string()).collect();
                let source = format!(
                    "derived on {}: FUTEX_WAKE until the thread runs takes {} ns after 20 µs, 200 µs, 2 ms, 20 ms",
                    self.day,
                    times.join(", ")
                );
                self.put_ns("kernel.deep_idle_after", after, source);
                let deep = self.of(Measure::Runs20ms) - waker;
                self.put_derived("kernel.deep_idle_exit", deep, Measure::Runs20ms, &less);
            }
            None => {
                let source =
                    format!("measured on {}: waking takes no longer after 20 ms than after 20 µs", self.day);
                self.put("kernel.deep_idle_after", Quantity::Never, source.clone());
                self.put("kernel.deep_idle_exit", Quantity::Never, source);
            }
        }
        let less = ", less `syscall` and `idle_exit`";
        self.put_derived("kernel.timer_slack", late - call - exit, Measure::Lateness, less);
    }

    /// After how long an idle CPU takes clearly longer to wake: between the last duration at which it does
    /// not, and the first one at which it does.
    fn deeper(&self) -> Option<f64> {
        const CLEARLY: f64 = 1.4;
        let first = self.of(IDLE[0].0);
        let deep = IDLE.iter().position(|(measure, _)| self.of(*measure) > CLEARLY * first)?;
        let ns = |number: usize| IDLE[number].1.as_nanos() as f64;
        Some((ns(deep - 1) * ns(deep)).sqrt())
    }

    fn interrupt(&mut self) {
        let barrier = self.of(Measure::MembarrierRunning) - self.of(Measure::MembarrierAsleep);
        match (self.calibration.of(Measure::Interrupt), self.calibration.of(Measure::MembarrierRunning)) {
            (Some(ns), _) => {
                let source = format!(
                    "{}; the caller waits {} ns for it",
                    self.measured(Measure::Interrupt),
                    rounded(barrier)
                );
                self.put_ns("kernel.interrupt", ns, source);
            }
            (None, Some(_)) => {
                let source = self.derived(
                    Measure::MembarrierRunning,
                    ", less `membarrier`; the gaps were too few to tell",
                );
                self.put_ns("kernel.interrupt", barrier, source);
            }
            (None, None) => self.put_ns("kernel.interrupt", 1000.0, "a guess: could not be measured"),
        }
    }

    fn scheduler(&mut self, cpus: &Cpus) {
        let fair = kernel_says::fair(cpus.places.len());
        let tick = kernel_says::tick();
        self.put_ns("scheduler.latency", fair.latency.value, fair.latency.source);
        let mut source = fair.slice.source;
        if let Some(seen) = self.calibration.of(Measure::Slice) {
            let seen = rounded(seen / 1e6);
            source.push_str(&format!("; seen on {}: {}, {seen} ms", self.day, Measure::Slice.how()));
        }
        self.put_ns("scheduler.min_slice", fair.slice.value, source);
        match self.calibration.of(Measure::Preempts) {
            Some(part) if part >= 0.5 => {
                self.put_ns("scheduler.wakeup", 0.0, self.measured(Measure::Preempts));
            }
            Some(_) => self.put("scheduler.wakeup", Quantity::Never, self.measured(Measure::Preempts)),
            None => self.put_ns("scheduler.wakeup", 0.0, "could not be measured; as EEVDF"),
        }
        self.put_number("scheduler.sleeper_credit", fair.credit.value, fair.credit.source);
        let balance = "a busy CPU balances at ticks, ever more rarely; idle ones do at once";
        self.put_ns("scheduler.balance", tick.value, balance);
        self.put_ns("scheduler.tick", tick.value, tick.source);
        let preempts = kernel_says::preempts_kernel();
        self.put("scheduler.preempts_kernel", Quantity::Flag(preempts.value), preempts.source);
    }
}

/// Three digits.
fn rounded(value: f64) -> f64 {
    if value == 0.0 || !value.is_finite() {
        return 0.0;
    }
    let scale = 10_f64.powi(2 - value.abs().log10().floor() as i32);
    // Powers of ten below 1 are not exact, so divide by one above.
    if scale >= 1.0 {
        (value * scale).round() / scale
    } else {
        (value * scale).round() * (1.0 / scale).round()
    }
}
