//! Machine files out of measurements. Nothing here asserts a time.

use spinpark_experiments::calibrate::cpus::Place;
use spinpark_experiments::calibrate::{CalibrateError, Calibration, Cpus, Measure, Watcher, machine_file};
use spinpark_measure::rounds::environment::Environment;
use spinpark_sim::machine::keys::KEYS;
use spinpark_sim::machine::{Distance, Machine};

/// `sockets` sockets of two cores with two hardware threads each.
fn cpus(sockets: usize) -> Cpus {
    let place = |cpu: usize| {
        let core = cpu % (2 * sockets);
        Place { cpu, socket: core / 2, cache: core / 2 * 2, core }
    };
    Cpus { places: (0..4 * sockets).map(place).collect(), own_cache: 1 << 20 }
}

fn environment() -> Environment {
    Environment {
        spinpark: "0.1.0".to_owned(),
        rustc: String::new(),
        kernel: "6.18.0".to_owned(),
        glibc: "2.36".to_owned(),
        cpu: "Some CPU".to_owned(),
        cpus: 8,
        virtual_machine: false,
        governor: None,
        date: "2026-11-22T08:00:00Z".to_owned(),
    }
}

/// What a machine might have measured, in three rounds.
fn measured() -> Calibration {
    let mut calibration = Calibration::default();
    for (number, &measure) in Measure::ALL.iter().enumerate() {
        let value = match measure {
            Measure::Ghz => 2.5,
            Measure::Smt | Measure::Preempts => 0.7,
            Measure::SystemCall => 100.0,
            Measure::FutexWait => 190.0,
            Measure::WakeSame => 400.0,
            Measure::WakeOther => 900.0,
            Measure::Runs20us => 3_000.0,
            Measure::Runs200us => 3_100.0,
            Measure::Runs2ms => 9_000.0,
            Measure::Runs20ms => 20_000.0,
            Measure::HandOver => 1_500.0,
            Measure::Clock => 20.0,
            Measure::MembarrierRunning => 2_000.0,
            Measure::Lateness => 53_500.0,
            Measure::Slice => 4e6,
            _ => 5.0 * (number + 1) as f64,
        };
        calibration.values.insert(measure, vec![value, 1.01 * value, 0.99 * value]);
    }
    calibration
}

#[test]
fn figures_follow_from_measurements() {
    let sheet = machine_file::sheet(&measured(), &cpus(2), &environment(), "mine");
    let machine = Machine::parse("mine.toml", &sheet.to_string()).unwrap();
    let kernel = &machine.kernel;
    assert_eq!(machine.shape.all_cpus(), 8);
    assert_eq!(machine.shape.distance(0, 2), Distance::Hops(1));
    assert_eq!((kernel.syscall_ns, kernel.kick_ns), (100.0, 500.0));
    // 190 less the call and two operations on the bucket's lock, 15 each.
    assert_eq!(kernel.futex_ns, 60.0);
    assert_eq!(kernel.wake_ns, 400.0 - 100.0 - 60.0 - 20.0);
    assert_eq!(kernel.switch_ns, 1_500.0 - 2.0 * (100.0 + 60.0 + 20.0) - 220.0);
    // The waker is busy for 850 ns before the interrupt goes out.
    assert_eq!(kernel.idle_exit_ns, 2_150.0);
    // Between 200 µs and 2 ms, it falls into a deeper sleep.
    let deep = kernel.deep_idle.unwrap();
    assert_eq!((deep.after_ns, deep.exit_ns), (632e3, 19_200.0));
    assert_eq!(machine.scheduler.wakeup_ns, Some(0.0));
}

#[test]
fn a_machine_file_is_written() {
    // What the kernel of the machine says that runs this test is left out.
    let sheet = machine_file::sheet(&measured(), &cpus(1), &environment(), "mine").to_string();
    let end = sheet.find("[scheduler]").unwrap();
    let lines = sheet[..end].lines().filter(|line| !line.starts_with("futex_buckets"));
    insta::assert_snapshot!(lines.collect::<Vec<_>>().join("\n"));
}

#[test]
fn what_cannot_be_measured_is_a_guess_that_says_so() {
    let sheet = machine_file::sheet(&Calibration::default(), &cpus(1), &environment(), "mine");
    assert_eq!(sheet.figures.len(), KEYS.len());
    Machine::parse("mine.toml", &sheet.to_string()).unwrap();
    let source = |name| &sheet.figures[&("kernel", name)].source;
    assert!(source("syscall").contains("guess") && source("kick").contains("no other CPU"));
}

#[test]
fn rounds_that_differ_are_named() {
    let mut calibration = measured();
    assert_eq!(calibration.noisy(), []);
    calibration.values.insert(Measure::Near, vec![50.0, 100.0, 150.0]);
    assert_eq!(calibration.noisy(), [Measure::Near]);
    calibration.others = 0.3;
    let sheet = machine_file::sheet(&calibration, &cpus(1), &environment(), "mine");
    assert!(sheet.notes.contains("The rounds differ much in: Near."), "{}", sheet.notes);
    assert!(sheet.notes.contains("Other programs took 30 %"), "{}", sheet.notes);
}

/// Counts, and stops after this number.
struct Count(usize, usize);

impl Watcher for Count {
    fn starting(&mut self, _round: usize, _measure: Measure) {
        self.0 += 1;
    }

    fn is_over(&self) -> bool {
        self.0 == self.1
    }
}

#[test]
fn it_can_be_stopped() {
    let cpus = Cpus::read().unwrap();
    let mut count = Count(0, 2);
    assert!(matches!(Calibration::run(&cpus, 9, &mut count), Err(CalibrateError::Interrupted)));
    assert_eq!(count.0, 2);
}

#[test]
fn this_machine_gives_a_machine() {
    let cpus = Cpus::read().unwrap();
    let mut count = Count(0, usize::MAX);
    let calibration = match Calibration::run(&cpus, 1, &mut count) {
        Err(CalibrateError::Refused(what, error)) => {
            eprintln!("skipped: the kernel does not allow us to {what}: {error}");
            return;
        }
        other => other.unwrap(),
    };
    assert_eq!(count.0, Measure::ALL.len());
    let values = calibration.values.values().flatten();
    assert!(values.clone().all(|value| value.is_finite()), "{calibration:?}");
    let text = machine_file::sheet(&calibration, &cpus, &Environment::read(), "here").to_string();
    let machine = Machine::parse("here.toml", &text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    assert_eq!(machine.shape.all_cpus() as usize, cpus.places.len());
}
