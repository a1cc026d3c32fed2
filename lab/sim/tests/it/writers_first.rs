//! A read-write lock that prefers writers, in the microseconds after a writer has come.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use spinpark_locks::{Preference, RawRwLock, TryRwLock as _};
use spinpark_platform::{Clock, Clocks as _, Deadline};
use spinpark_sim::machine::Machine;
use spinpark_sim::{Object, Simulation, here};

type Sim = spinpark_sim::Sim;
type Lock = RawRwLock<Sim>;
type Log = RefCell<Vec<&'static str>>;

/// Runs the threads on a machine with as many CPUs, and more; the names that they log, in order.
fn order(cpus: u32, threads: Vec<fn(&Lock, &Log)>) -> Vec<&'static str> {
    let mut simulation = Simulation::new(&Machine::plain(cpus));
    let lock = Object::new(Lock::new());
    let log = Rc::new(Log::default());
    for (cpu, body) in (0..).zip(threads) {
        let (lock, log) = (Rc::clone(&lock), Rc::clone(&log));
        simulation.thread_on(cpu..cpu + 1, move || body(&lock, &log));
    }
    assert_eq!(simulation.run().unwrap().failure, None);
    Rc::into_inner(log).unwrap().into_inner()
}

fn read(lock: &Lock, log: &Log, name: &'static str, kind: Preference, span: u64) {
    lock.read(kind);
    log.borrow_mut().push(name);
    here::compute(span);
    lock.unlock_read();
}

fn write(lock: &Lock, log: &Log) {
    lock.write_until_as(Preference::Writers, None);
    log.borrow_mut().push("writer");
    here::compute(1_000);
    lock.unlock_write();
}

/// Three threads: one reads for long, a writer comes meanwhile, and eight microseconds after that a reader.
fn a_reader_comes_next(cpus: u32, next: fn(&Lock, &Log)) -> Vec<&'static str> {
    let first: fn(&Lock, &Log) = |lock, log| read(lock, log, "first", Preference::Writers, 200_000);
    let writer: fn(&Lock, &Log) = |lock, log| {
        here::compute(20_000);
        write(lock, log);
    };
    order(cpus, vec![first, writer, next])
}

/// A writer is waited for from the moment at which it comes, not once it has spun.
#[test]
fn no_reader_joins_readers_past_a_writer_that_has_just_come() {
    for cpus in [3, 4, 16] {
        let next = a_reader_comes_next(cpus, |lock, log| {
            here::compute(28_000);
            assert!(!lock.try_read(Preference::Writers), "a try passes the writer");
            read(lock, log, "next", Preference::Writers, 1_000);
        });
        assert_eq!(next, ["first", "writer", "next"], "{cpus} CPUs");
        let heedless = a_reader_comes_next(cpus, |lock, log| {
            here::compute(28_000);
            read(lock, log, "next", Preference::Readers, 1_000);
        });
        assert_eq!(heedless, ["first", "next", "writer"], "{cpus} CPUs: a reader of the other kind");
    }
}

/// The last reader leaves the lock to a writer that is awake, and does not take it again before that.
#[test]
fn a_reader_that_comes_back_at_once_comes_after_the_writer() {
    for cpus in [2, 4, 16] {
        let order = order(
            cpus,
            vec![
                |lock, log| {
                    read(lock, log, "first", Preference::Writers, 10_000);
                    read(lock, log, "again", Preference::Writers, 1_000);
                },
                |lock, log| {
                    here::compute(5_000);
                    write(lock, log);
                },
            ],
        );
        assert_eq!(order, ["first", "writer", "again"], "{cpus} CPUs");
    }
}

/// From the deadline of twenty writers, which expire together behind a reader, until the first of `readers` behind
/// them is in, ns.
fn expiry(readers: u32) -> f64 {
    const DEADLINE: u64 = 50_000_000;
    let mut simulation = Simulation::new(&Machine::plain(4));
    let lock = Object::new(Lock::new());
    let first_in = Rc::new(Cell::new(f64::INFINITY));
    let holder = Rc::clone(&lock);
    simulation.thread(move || {
        holder.read(Preference::Writers);
        here::sleep(2 * DEADLINE);
        holder.unlock_read();
    });
    for _ in 0..20 {
        let lock = Rc::clone(&lock);
        simulation.thread(move || {
            here::sleep(100_000);
            let at = Sim::now(Clock::Monotonic) + DEADLINE - here::now() as u64;
            let deadline = Deadline { clock: Clock::Monotonic, at };
            assert!(!lock.write_until_as(Preference::Writers, Some(deadline)));
        });
    }
    for _ in 0..readers {
        let (lock, first_in) = (Rc::clone(&lock), Rc::clone(&first_in));
        simulation.thread(move || {
            here::sleep(1_000_000);
            lock.read(Preference::Writers);
            first_in.set(first_in.get().min(here::now()));
            lock.unlock_read();
        });
    }
    assert_eq!(simulation.run().unwrap().failure, None);
    let after = first_in.get() - DEADLINE as f64;
    assert!(after > 0.0, "the readers waited behind the writers");
    after
}

/// A writer that leaves does not look at each reader behind it.
#[test]
fn writers_that_expire_together_do_not_walk_the_queue() {
    let (few, many) = (expiry(10), expiry(400));
    assert!(many < 1.5 * few, "{few} ns with 10 readers behind, {many} ns with 400");
}

/// A writer that waits awake behind another one is announced, and is not passed once that has let a reader in.
#[test]
fn no_reader_joins_the_one_that_came_in_before_a_writer_that_spins() {
    for cpus in [4, 8] {
        let order = order(
            cpus,
            vec![
                |lock, _| {
                    lock.write_until_as(Preference::Writers, None);
                    here::compute(200_000);
                    lock.unlock_write();
                },
                |lock, log| {
                    here::compute(5_000);
                    read(lock, log, "first", Preference::Writers, 60_000);
                },
                |lock, log| {
                    here::compute(190_000);
                    write(lock, log);
                },
                |lock, log| {
                    here::compute(215_000);
                    read(lock, log, "next", Preference::Writers, 1_000);
                },
            ],
        );
        assert_eq!(order, ["first", "writer", "next"], "{cpus} CPUs");
    }
}

/// Holders that come in upgradably join readers past any writer, and turn into readers: it requests the lock.
#[test]
fn upgradable_holders_do_not_starve_a_writer() {
    for preference in [Preference::Writers, Preference::Readers] {
        let mut simulation = Simulation::new(&Machine::plain(4));
        let lock = Object::new(Lock::new());
        let waited = Rc::new(Cell::new(f64::INFINITY));
        for thread in 0..2 {
            let (lock, waited) = (Rc::clone(&lock), Rc::clone(&waited));
            simulation.thread(move || {
                here::compute(thread * 5_000);
                while here::now() < 50_000_000.0 && waited.get().is_infinite() {
                    lock.upgradable(None);
                    lock.downgrade_upgradable();
                    here::compute(9_000);
                    lock.unlock_read();
                    here::compute(500);
                }
            });
        }
        let result = Rc::clone(&waited);
        simulation.thread(move || {
            here::compute(50_000);
            let began = here::now();
            lock.write_until_as(preference, None);
            result.set(here::now() - began);
            lock.unlock_write();
        });
        assert_eq!(simulation.run().unwrap().failure, None);
        assert!(waited.get() < 5_000_000.0, "{preference:?}: the writer waited {} ns", waited.get());
    }
}
