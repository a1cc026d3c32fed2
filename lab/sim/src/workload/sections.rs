//! The shapes of `spinpark-lab bench locks`: sections under a lock, with work outside. They do what those do:
//! `spinpark-lab sim native` compares them.
//!
//! As there: work is steps of a random number generator; the protected data is one cache line, or several, on
//! lines of its own, or on the lock's own.
//!
//! Beside them, document 003's benchmark: a signaller and a waiter in strict alternation under one mutex, on
//! one CPU. As `spinpark-lab documents condvar`: two condition variables, one for each direction, and each signal
//! is made after the mutex is given up, or under it.

use std::cell::Cell;
use std::rc::Rc;

use spinpark_platform::AtomicU32 as _;
use spinpark_platform::Ordering::Relaxed;

use crate::here;
use crate::platform::AtomicU32;
use crate::workload::{Plan, Setting, SettingError, Worker, Workload};
use crate::world::memory::Access;
use crate::world::memory::object::Object;

/// A change of a word beside a lock, whatever is there: a load and a store.
fn count_at(address: usize) {
    here::touch(address, Access::Load);
    here::touch(address, Access::Store);
}

/// The time of a step of work, ns.
#[derive(Clone, Copy)]
struct Step(f64);

impl Step {
    fn of(plan: &Plan<'_>) -> Self {
        Self(plan.machine().cpu.work_ns)
    }

    fn work(self, steps: u32) {
        if steps > 0 {
            here::compute_f64(self.0 * f64::from(steps));
        }
    }

    /// A random number, which takes a step.
    fn random(self, bound: u64) -> u64 {
        self.work(1);
        here::random(bound)
    }
}

/// Steps of work under the lock, and between two sections.
#[derive(Clone, Copy)]
struct Load {
    inside: u32,
    outside: u32,
}

/// What threads do.
#[derive(Clone, Copy)]
struct Section {
    locks: u64,
    /// How many cache lines are changed; 0: the lock's own, before and after the work.
    lines: usize,
    load: Load,
    /// The load during the second third of the run's time.
    meanwhile: Load,
}

impl Section {
    /// The load at this moment.
    fn load(&self) -> Load {
        let third = here::end_ns() / 3.0;
        if (third..2.0 * third).contains(&here::now()) { self.meanwhile } else { self.load }
    }
}

fn sections(plan: &mut Plan<'_>, shape: Section) -> Result<(), SettingError> {
    let step = Step::of(plan);
    let all = (0..shape.locks).map(|_| Ok((plan.mutex("lock")?, data())));
    let all: Rc<[_]> = all.collect::<Result<_, SettingError>>()?;
    plan.workers(move |worker| {
        worker.repeat(|| {
            let chosen = if all.len() > 1 { step.random(shape.locks) } else { 0 };
            let (lock, data) = &all[chosen as usize];
            lock.with(|| {
                let is_beside = shape.lines == 0;
                if is_beside {
                    count_at(lock.address());
                }
                change(&data.0[..shape.lines]);
                step.work(shape.load().inside);
                if is_beside {
                    count_at(lock.address());
                }
            });
            step.work(shape.load().outside);
        });
    });
    Ok(())
}

fn pair(plan: &mut Plan<'_>) -> Result<(), SettingError> {
    let lock = plan.mutex("lock")?;
    if plan.setting().threads != 1 {
        return Err(SettingError::Unfit("pair-threaded is for one thread: `--threads 1`".to_owned()));
    }
    let data = data();
    plan.worker(move |worker| worker.repeat(|| lock.with(|| change(&data.0[..1]))));
    Ok(())
}

/// `writes` in `of` operations write.
fn shared(plan: &mut Plan<'_>, writes: u64, of: u64) -> Result<(), SettingError> {
    let step = Step::of(plan);
    let lock = plan.rwlock("lock")?;
    let data = data();
    plan.workers(move |worker| {
        worker.repeat(|| {
            if step.random(of) < writes {
                lock.write(|| change(&data.0[..1]));
            } else {
                lock.read(|| read_line(&data.0[0]));
            }
        });
    });
    Ok(())
}

/// Two threads in strict alternation.
#[derive(Default)]
struct Table {
    turn: Cell<usize>,
    is_over: Cell<bool>,
}

fn check_two_threads(plan: &Plan<'_>) -> Result<(), SettingError> {
    let Setting { workload, threads, .. } = plan.setting();
    match threads {
        2 => Ok(()),
        _ => Err(SettingError::Unfit(format!("{workload} needs two threads: `--threads 2`"))),
    }
}

fn ping_pong(plan: &mut Plan<'_>) -> Result<(), SettingError> {
    let condvar = plan.condvar("mutex")?;
    check_two_threads(plan)?;
    let (table, data) = (Rc::new(Table::default()), data());
    for me in 0..2 {
        let (condvar, table, data) = (condvar.clone(), Rc::clone(&table), Rc::clone(&data));
        plan.worker(move |worker: Worker| {
            let other = 1 - me;
            while !here::is_over() {
                let is_done = condvar.with(|| {
                    while table.turn.get() != me && !table.is_over.get() {
                        condvar.wait(me);
                    }
                    if table.is_over.get() {
                        return false;
                    }
                    change(&data.0[..1]);
                    table.turn.set(other);
                    condvar.signal(other);
                    true
                });
                if is_done {
                    worker.did_one();
                }
            }
            condvar.with(|| table.is_over.set(true));
            condvar.signal(other);
        });
    }
    Ok(())
}

/// One load all the time.
fn section(plan: &mut Plan<'_>, locks: u64, lines: usize, load: [u32; 2]) -> Result<(), SettingError> {
    let [inside, outside] = load;
    let load = Load { inside, outside };
    sections(plan, Section { locks, lines, load, meanwhile: load })
}

/// The numbers of a name: `PREFIX-N-…`.
fn numbers<const N: usize>(prefix: &str, name: &str) -> Option<[u32; N]> {
    let numbers = name.strip_prefix(prefix)?.split('-').map(|number| number.parse().ok());
    numbers.collect::<Option<Vec<u32>>>()?.try_into().ok()
}

/// Prefixes of names with numbers.
const PLANE: &str = "plane-";
const MOVES: &str = "moves-";

/// The workload of a name with any numbers.
pub(super) fn of_numbers(name: &str) -> Option<&'static Workload> {
    const ANY: Workload = Workload::user("plane-… or moves-…", "one mutex, with the load of its name", named);
    let is_one = numbers::<2>(PLANE, name).is_some() || numbers::<4>(MOVES, name).is_some();
    is_one.then_some(&ANY)
}

/// What to say of a name that begins as one of those.
pub(super) fn wrong_numbers(name: &str) -> Option<String> {
    let usual = if name.starts_with(PLANE) {
        "plane-INSIDE-OUTSIDE, as in plane-150-700"
    } else if name.starts_with(MOVES) {
        "moves-INSIDE-OUTSIDE-INSIDE-OUTSIDE, as in moves-0-0-150-700"
    } else {
        return None;
    };
    Some(format!(": write {usual}, in iterations, each less than 2^32"))
}

/// One mutex, with the load that the workload's name says, or both of them.
fn named(plan: &mut Plan<'_>) -> Result<(), SettingError> {
    let name = &plan.setting().workload;
    let plane = || numbers(PLANE, name).map(|[inside, outside]| [inside, outside, inside, outside]);
    let Some([inside, outside, then_inside, then_outside]) = numbers(MOVES, name).or_else(plane) else {
        return Err(SettingError::Unfit(format!("{name} has no lengths: write plane-300-30")));
    };
    let load = Load { inside, outside };
    let meanwhile = Load { inside: then_inside, outside: then_outside };
    sections(plan, Section { locks: 1, lines: 1, load, meanwhile })
}

/// One mutex.
pub(super) const SHAPES: &[Workload] = &[
    Workload::user("pair-threaded", "one thread, one mutex: lock, change a cache line, unlock", pair),
    Workload::user(
        "saturated",
        "one mutex, a section that changes one cache line, 16 iterations outside",
        |plan| section(plan, 1, 1, [0, 16]),
    ),
    Workload::user("hot-lock", "one mutex among its data, 20 iterations inside, 40 outside", |plan| {
        section(plan, 1, 0, [20, 40])
    }),
    Workload::user(
        "five-lines",
        "one mutex, 100 iterations inside over five cache lines, 1000 outside",
        |plan| section(plan, 1, 5, [100, 1000]),
    ),
    Workload::user("medium", "one mutex, 500 iterations inside (about 1 µs), 500 outside", |plan| {
        section(plan, 1, 1, [500, 500])
    }),
    Workload::user("long", "one mutex, 5000 iterations inside (about 10 µs), 5000 outside", |plan| {
        section(plan, 1, 1, [5000, 5000])
    }),
];

/// Cells of the plane of `bench grid`; and some that become another one in between.
pub(super) fn planes() -> Vec<Workload> {
    const ITERATIONS: [u32; 4] = [0, 30, 300, 3000];
    const MOVING: [[u32; 4]; 4] = [[0, 0, 300, 300], [300, 30, 0, 30], [30, 0, 300, 300], [3000, 0, 30, 30]];
    let plane = |inside, outside| {
        let name = format!("{PLANE}{inside}-{outside}");
        let about = format!("one mutex and its cache line, {inside} iterations inside, {outside} outside");
        Workload::user(name.leak(), about.leak(), named)
    };
    let moves = |[inside, outside, then_inside, then_outside]: [u32; 4]| {
        let name = format!("{MOVES}{inside}-{outside}-{then_inside}-{then_outside}");
        let about = format!(
            "as plane-{inside}-{outside}, but as plane-{then_inside}-{then_outside} in the second third of the time"
        );
        Workload::user(name.leak(), about.leak(), named)
    };
    let planes = ITERATIONS.into_iter().flat_map(|inside| ITERATIONS.map(|outside| plane(inside, outside)));
    planes.chain(MOVING.map(moves)).collect()
}

/// Several locks, and other kinds.
pub(super) const OTHER_SHAPES: &[Workload] = &[
    Workload::user("random-32", "32 mutexes, one of them at random, no work outside", |plan| {
        section(plan, 32, 1, [0, 0])
    }),
    Workload::user("readers", "one read-write lock, only reading", |plan| shared(plan, 0, 100)),
    Workload::user("mixed-0.1", "one read-write lock, 0.1 % writes", |plan| shared(plan, 1, 1000)),
    Workload::user("mixed-1", "one read-write lock, 1 % writes", |plan| shared(plan, 1, 100)),
    Workload::user("mixed-10", "one read-write lock, 10 % writes", |plan| shared(plan, 10, 100)),
    Workload::user("mixed-50", "one read-write lock, 50 % writes", |plan| shared(plan, 50, 100)),
    Workload::user(
        "condvar-ping-pong",
        "two threads in strict alternation, signal under the mutex",
        ping_pong,
    ),
];

/// Cache lines of protected data.
#[derive(Debug)]
pub(super) struct Data(pub(super) [Line; 8]);

#[derive(Debug)]
#[repr(align(64))]
pub(super) struct Line(AtomicU32);

pub(super) fn data() -> Rc<Object<Data>> {
    Object::new(Data(std::array::from_fn(|_| Line(AtomicU32::new(0)))))
}

/// A change of each line, as `+= 1` under a lock: a load and a store. None needs another one, so they come
/// side by side.
pub(super) fn change(lines: &[Line]) {
    for Line(word) in lines {
        word.store(word.load(Relaxed), Relaxed);
    }
}

/// A reader's access to a line.
pub(super) fn read_line(Line(word): &Line) -> u32 {
    word.load(Relaxed)
}

/// The program's own work for a turn, cycles: its loop, the library's entry and exit, the check whose turn it
/// is. The document's program is lost.
///
/// Fitted: with it, `wake-op` is 1.72 times as fast as `orig` on the document's machine (switches between
/// threads: 400 ns).
const TURN: f64 = 700.0;

fn alternate(plan: &mut Plan<'_>, is_under_lock: bool) -> Result<(), SettingError> {
    check_two_threads(plan)?;
    let step = TURN / plan.machine().ghz;
    let condvar = plan.condvar("mutex")?;
    let turns = Rc::new(Cell::new(0_u64));
    // The waiter comes first: it waits before the first signal.
    for me in [1, 0_usize] {
        let (condvar, turns) = (condvar.clone(), Rc::clone(&turns));
        plan.worker_on(0..1, move |worker| {
            let is_mine = || turns.get() % 2 == me as u64;
            let mut is_over = false;
            while !is_over {
                condvar.with(|| {
                    here::compute_f64(step);
                    while !is_mine() {
                        condvar.wait(me);
                    }
                    // A thread that finds it over takes this turn, so that the other one finds that too.
                    is_over = here::is_over();
                    turns.set(turns.get() + 1);
                    if is_under_lock {
                        condvar.signal(1 - me);
                    }
                });
                if !is_under_lock {
                    condvar.signal(1 - me);
                }
                if me == 0 {
                    worker.did_one();
                }
            }
        });
    }
    Ok(())
}

/// All of them.
pub(super) const ALTERNATIONS: &[Workload] = &[
    Workload::user(
        "condvar",
        "a signaller and a waiter take turns on one CPU, signal after the unlock (document 003)",
        |plan| alternate(plan, false),
    ),
    Workload::user("condvar-under-lock", "the same, signal under the mutex", |plan| alternate(plan, true)),
];

#[cfg(test)]
mod tests {
    use crate::machine::Machine;
    use crate::workload::Setting;

    #[test]
    fn any_cell_of_the_plane_has_a_name() {
        let throughput = |name: &str| {
            let mut setting = Setting::new(Machine::plain(2), "spinpark", name, 1);
            setting.for_ns = 1_000_000;
            setting.run().map(|report| report.throughput())
        };
        let [short, long] = ["plane-150-700", "plane-1500-7000"].map(|name| throughput(name).unwrap());
        assert!((8.0..11.0).contains(&(short / long)), "{short} {long}");
        assert!(throughput("moves-10-20-1000-2000").unwrap() < throughput("plane-10-20").unwrap());
        for wrong in
            ["plane-150", "plane-1-2-3", "plane--1-2", "plane-a-b", "moves-1-2", "plane-1-99999999999"]
        {
            let said = throughput(wrong).unwrap_err().to_string();
            assert!(said.contains("no workload") && said.contains("-INSIDE-OUTSIDE"), "{said}");
        }
    }
}
