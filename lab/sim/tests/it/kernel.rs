//! The simulated kernel: which threads run when, and which are woken.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use spinpark_classics::{RawLock, SpinLock};
use spinpark_platform::Ordering::Relaxed;
use spinpark_platform::{AsymmetricBarrier, AtomicU32 as _, Futex, OnCpu, Owners, SpinPolicy, Wait};
use spinpark_sim::machine::Machine;
use spinpark_sim::{AtomicU32, Chaos, Failure, Object, Order, Simulation, here};

type Sim = spinpark_sim::Sim;

#[test]
fn threads_of_one_cpu_take_turns() {
    let mut simulation = Simulation::new(&Machine::plain(1));
    for _ in 0..3 {
        simulation.thread(|| here::compute(30_000_000));
    }
    let outcome = simulation.run().unwrap();
    let run = outcome.threads.iter().map(|thread| thread.on_cpu_ns);
    assert!(run.clone().all(|ns| (30_000_000..31_000_000).contains(&ns)), "{:?}", run.collect::<Vec<_>>());
    // 90 ms in slices of about 3 ms.
    assert!((20..45).contains(&outcome.counts.preemptions), "{}", outcome.counts.preemptions);
}

#[test]
fn idle_cpus_take_waiting_threads() {
    let mut simulation = Simulation::new(&Machine::plain(4));
    for _ in 0..4 {
        // All start where the first one is, so to speak: they sleep there, and wake one after the other.
        simulation.thread(|| {
            here::sleep(1_000_000);
            here::compute(20_000_000);
        });
    }
    let outcome = simulation.run().unwrap();
    assert!(outcome.elapsed_ns < 25_000_000, "{} ns", outcome.elapsed_ns);
}

#[test]
fn a_quota_is_what_all_cpus_may_give_in_a_period() {
    let elapsed = |machine: &str, threads: usize| {
        let mut simulation = Simulation::new(&Machine::choose(machine).unwrap());
        (0..threads).for_each(|_| {
            simulation.thread(|| here::compute(99_000_000));
        });
        let outcome = simulation.run().unwrap();
        let ran: u64 = outcome.threads.iter().map(|thread| thread.on_cpu_ns).sum();
        assert!((ran as f64 / 99e6 - threads as f64).abs() < 0.05 * threads as f64, "{machine}: {ran}");
        outcome.elapsed_ns as f64 / 1e6
    };
    // 200 ms a period, used up after 25 ms of it; what CPUs keep comes on top.
    let eight = elapsed("plain-8:8/2", 8);
    assert!((305.0..330.0).contains(&eight), "{eight} ms");
    let two = elapsed("plain-8:8/2", 2);
    assert!((99.0..101.0).contains(&two), "two threads have what they want: {two} ms");
    let one = elapsed("plain-8:8/0.5", 1);
    assert!((149.0..150.0).contains(&one), "{one} ms");
}

#[test]
fn a_wake_up_of_a_throttled_cpu_waits_for_the_next_period() {
    let mut simulation = Simulation::new(&Machine::choose("plain-1:1/0.5").unwrap());
    let woken = Rc::new(Cell::new(0.0));
    let at = woken.clone();
    simulation.thread(|| here::compute(80_000_000));
    simulation.thread(move || {
        here::sleep(60_000_000); // until the quota is used up
        at.set(here::now());
    });
    simulation.run().unwrap();
    assert!((100e6..101e6).contains(&woken.get()), "{} ns", woken.get());
}

#[test]
fn kernel_code_is_not_preempted_where_the_machine_says_so() {
    for preempts_kernel in [false, true] {
        let mut machine = Machine::plain(1);
        machine.scheduler.preempts_kernel = preempts_kernel;
        let mut simulation = Simulation::new(&machine);
        let longest = Rc::new(Cell::new(0.0_f64));
        let result = longest.clone();
        simulation.thread(move || {
            here::in_kernel(|| {
                let start = here::now();
                here::compute(40_000_000);
                result.set(here::now() - start);
            });
        });
        simulation.thread(|| here::compute(40_000_000));
        simulation.run().unwrap();
        let is_preempted = longest.get() > 41_000_000.0;
        assert_eq!(is_preempted, preempts_kernel, "{} ns", longest.get());
    }
}

/// Sleeps on the word while it holds `value`.
fn sleep_while(word: &AtomicU32, value: u32) {
    while word.load(Relaxed) == value {
        Sim::futex_wait(word, value, None);
    }
}

#[test]
fn sleepers_are_woken_in_their_order() {
    let mut simulation = Simulation::new(&Machine::plain(4));
    let words = Object::new([AtomicU32::new(0), AtomicU32::new(0)]);
    let order = Rc::new(RefCell::new(Vec::new()));
    for me in 0..3 {
        let (words, order) = (words.clone(), order.clone());
        simulation.thread(move || {
            here::sleep(1_000_000 * (3 - me)); // the last one sleeps first
            assert_eq!(Sim::futex_wait(&words[0], 0, None), Wait::Woken);
            order.borrow_mut().push(me);
        });
    }
    simulation.thread(move || {
        here::sleep(10_000_000);
        assert_eq!(Sim::futex_requeue(&words[0], Some(1), 1, &words[1], 1), None);
        assert_eq!(Sim::futex_requeue(&words[0], Some(0), 1, &words[1], 1), Some(2));
        here::sleep(1_000_000);
        assert_eq!(Sim::futex_wake(&words[1], 9), 1);
        here::sleep(1_000_000);
        assert_eq!(Sim::futex_wake(&words[0], 9), 1);
    });
    assert_eq!(simulation.run().unwrap().failure, None);
    assert_eq!(*order.borrow(), [2, 1, 0]);
}

#[test]
fn a_thread_that_sleeps_for_ever_is_a_deadlock() {
    let mut simulation = Simulation::new(&Machine::plain(2));
    simulation.thread(|| sleep_while(&AtomicU32::new(0), 0));
    simulation.thread(|| here::compute(10));
    let failure = simulation.run().unwrap().failure.unwrap();
    assert_eq!(failure, spinpark_sim::Failure::Deadlock { threads: vec![0] });
}

#[test]
fn the_oracle_knows_who_runs() {
    let mut simulation = Simulation::new(&Machine::plain(2));
    let stop = Rc::new(Cell::new(false));
    let stopped = stop.clone();
    simulation.thread(move || {
        here::compute(5_000_000);
        while !stopped.get() {
            here::sleep(20_000_000);
        }
    });
    simulation.thread(move || {
        let token = 1; // of the first thread
        let mut sample = 0;
        here::compute(1_000_000);
        assert_eq!(Sim::owner_on_cpu(token, &mut sample), OnCpu::Unknown, "the first question");
        here::compute(1_000_000);
        assert_eq!(Sim::owner_on_cpu(token, &mut sample), OnCpu::Running);
        here::compute(10_000_000);
        Sim::owner_on_cpu(token, &mut sample);
        here::compute(1_000_000);
        assert_eq!(Sim::owner_on_cpu(token, &mut sample), OnCpu::Off);
        stop.set(true);
    });
    assert_eq!(simulation.run().unwrap().failure, None);
}

/// A thread that polls costs events when what it polls changes, not when it polls.
#[test]
fn polling_is_cheap() {
    let mut simulation = Simulation::new(&Machine::plain(2));
    let word = Object::new(AtomicU32::new(0));
    let polled = word.clone();
    let (polls, written) = (Rc::new(Cell::new(0_u64)), Rc::new(Cell::new(0.0)));
    let (count, seen) = (polls.clone(), written.clone());
    simulation.thread(move || {
        while polled.load(Relaxed) == 0 {
            count.set(count.get() + u64::from(Sim::spin_hint()));
        }
        let late = here::now() - seen.get();
        assert!((0.0..1_000.0).contains(&late), "{late} ns after the change");
    });
    simulation.thread(move || {
        here::compute(100_000_000);
        written.set(here::now());
        word.store(1, Relaxed);
    });
    let outcome = simulation.run().unwrap();
    // The other thread's CPU has its ticks: a hundred, and what each puts off.
    assert!(outcome.counts.events < 1_000, "{} events", outcome.counts.events);
    assert!(polls.get() > 1_000_000, "{} polls", polls.get());
}

#[test]
fn a_asymmetric_barrier_restarts_steps() {
    // A release between whose look and store another thread sets the guard and fences must not release.
    let mut caught = 0;
    for seed in 0..200 {
        let mut simulation = Simulation::new(&Machine::plain(2)).seed(seed);
        let words = Object::new([AtomicU32::new(0), AtomicU32::new(1)]);
        let (theirs, released) = (words.clone(), Rc::new(Cell::new(None)));
        let result = released.clone();
        simulation.thread(move || {
            here::compute(here::random(1_000));
            result.set(Some(Sim::release_unless::<1>(&theirs[0], &theirs[1], || 1)));
        });
        let fenced = Rc::new(Cell::new(0));
        let seen = fenced.clone();
        simulation.thread(move || {
            here::compute(here::random(1_000));
            words[0].store(1, Relaxed);
            Sim::asymmetric_barrier();
            seen.set(words[1].load(Relaxed));
        });
        assert_eq!(simulation.run().unwrap().failure, None);
        // A thread that looks after the fence sees the release, or there is none.
        assert_eq!(released.get(), Some(fenced.get() == 0), "seed {seed}");
        caught += u32::from(released.get() == Some(false));
    }
    assert!(caught > 20, "{caught}");
}

#[test]
fn thousands_of_threads() {
    let mut simulation = Simulation::new(&Machine::plain(512));
    let lock = Object::new(spinpark_locks::RawMutex::<Sim>::new());
    let inside = Rc::new(Cell::new(0));
    for _ in 0..4_096 {
        let (lock, inside) = (lock.clone(), inside.clone());
        simulation.thread(move || {
            lock.lock();
            inside.set(inside.get() + 1);
            here::compute(100);
            lock.unlock();
        });
    }
    assert_eq!(simulation.run().unwrap().failure, None);
    assert_eq!(inside.get(), 4_096);
}

#[test]
fn a_panic_of_simulated_code_leaves_the_simulator_usable() {
    let panics = std::panic::catch_unwind(|| {
        let mut simulation = Simulation::new(&Machine::plain(1));
        simulation.thread(|| here::sleep(1_000));
        simulation.thread(|| panic!("as the test wants it"));
        simulation.run()
    });
    assert!(panics.is_err());
    let mut simulation = Simulation::new(&Machine::plain(1));
    simulation.thread(|| here::compute(1_000));
    assert_eq!(simulation.run().unwrap().failure, None);
}

#[test]
fn kernel_code_leaves_its_cpu_where_it_asks_to() {
    let mut machine = Machine::plain(1);
    machine.scheduler.preempts_kernel = false;
    let mut simulation = Simulation::new(&machine);
    let longest = Rc::new(Cell::new(0.0));
    let result = longest.clone();
    simulation.thread(move || {
        here::in_kernel(|| {
            here::compute(20_000_000);
            let before = here::now();
            here::cond_resched();
            result.set(here::now() - before);
            here::compute(20_000_000);
        });
    });
    simulation.thread(|| here::compute(1_000_000));
    assert_eq!(simulation.run().unwrap().failure, None);
    assert!(longest.get() > 900_000.0, "{} ns", longest.get());
}

fn by_rank() -> Chaos {
    Chaos { order: Order::Rank, steps_between_changes: 7, ..Chaos::default() }
}

/// A loop that no other thread is there to interrupt.
#[test]
fn a_loop_without_an_end_is_one() {
    for chaos in [Chaos::default(), by_rank()] {
        let mut simulation = Simulation::new(&Machine::plain(2)).chaos(chaos).most_steps(10_000);
        simulation.thread(|| {
            let word = AtomicU32::new(0);
            while word.load(Relaxed) == 0 {}
        });
        let failure = simulation.run().unwrap().failure;
        assert!(matches!(failure, Some(Failure::Endless { .. })), "{failure:?}");
    }
}

/// Looks become rarer, and time goes on: until there is no more of it.
#[test]
fn polling_for_what_does_not_come_ends() {
    for chaos in [Chaos::default(), by_rank()] {
        let mut simulation = Simulation::new(&Machine::plain(2)).chaos(chaos);
        simulation.thread(|| {
            let word = AtomicU32::new(0);
            while word.load(Relaxed) == 0 {
                Sim::spin_hint();
            }
        });
        let failure = simulation.run().unwrap().failure;
        assert!(matches!(failure, Some(Failure::Endless { .. })), "{failure:?}");
    }
}

/// A thread that goes on by rank before its time, and wakes another one that takes its CPU, is not lost.
#[test]
fn by_rank_no_thread_is_lost() {
    for seed in 0..500 {
        let mut machine = Machine::plain(1);
        machine.scheduler.wakeup_ns = Some(0.0);
        let chaos = Chaos { preempt: 0.05, late: 0.3, delay_ns: 1_000.0, ..by_rank() };
        let mut simulation = Simulation::new(&machine).seed(seed).chaos(chaos).most_steps(100_000);
        let word = Object::new(AtomicU32::new(0));
        for mine in 0..3 {
            let word = Rc::clone(&word);
            simulation.thread(move || {
                for round in 0..5 {
                    let turn = round * 3 + mine;
                    loop {
                        match word.load(Relaxed) {
                            now if now == turn => break,
                            now => Sim::futex_wait(&word, now, None),
                        };
                    }
                    here::compute(2_000);
                    word.store(turn + 1, Relaxed);
                    Sim::futex_wake(&raw const **word, u32::MAX);
                }
            });
        }
        assert_eq!(simulation.run().unwrap().failure, None, "seed {seed}");
    }
}

/// The end of a slice that was planned, on a CPU with two threads, does not come any more.
#[test]
fn a_run_is_over_when_its_last_thread_is() {
    let mut simulation = Simulation::new(&Machine::plain(1));
    (0..2).for_each(|_| simulation.thread(|| here::compute(1_000)));
    let outcome = simulation.run().unwrap();
    assert_eq!(outcome.failure, None);
    assert!(outcome.elapsed_ns < 10_000, "{} ns", outcome.elapsed_ns);
}

#[test]
fn a_cpu_that_is_interrupted_computes_for_longer() {
    let machine = Machine::plain(2);
    let mut simulation = Simulation::new(&machine);
    let (waited, computed) = (Rc::new(Cell::new(0.0)), Rc::new(Cell::new(0.0)));
    let (sender, receiver) = (Rc::clone(&waited), Rc::clone(&computed));
    let took = |act: &dyn Fn()| {
        let start = here::now();
        act();
        here::now() - start
    };
    simulation.thread_on(0..1, move || {
        here::compute(50_000);
        sender.set(took(&here::interrupt_others));
    });
    simulation.thread_on(1..2, move || receiver.set(took(&|| here::compute(100_000))));
    assert_eq!(simulation.run().unwrap().failure, None);
    assert!((waited.get() - machine.kernel.kick_ns - machine.kernel.interrupt_ns).abs() < 1.0);
    assert!((computed.get() - 100_000.0 - machine.kernel.interrupt_ns).abs() < 1.0, "{}", computed.get());
}

/// The last CPU that it interrupts has served that when it is over.
#[test]
fn a_asymmetric_barrier_waits_for_who_is_interrupted() {
    let mut machine = Machine::plain(2);
    machine.kernel.interrupt_ns = 10_000.0;
    for others in 0..2 {
        let took = Rc::new(Cell::new(0.0));
        let result = Rc::clone(&took);
        let mut simulation = Simulation::new(&machine);
        simulation.thread_on(0..1, move || {
            here::compute(50_000);
            let start = here::now();
            Sim::asymmetric_barrier();
            result.set(here::now() - start);
        });
        (0..others).for_each(|_| simulation.thread_on(1..2, || here::compute(200_000)));
        assert_eq!(simulation.run().unwrap().failure, None);
        let wait = f64::from(others) * machine.kernel.interrupt_ns;
        let wanted = machine.kernel.syscall_ns + machine.kernel.membarrier_ns + wait;
        assert!((took.get() - wanted).abs() < 1.0, "{} ns, not {wanted} ns", took.get());
    }
}

/// A ticket lock, where no thread is preempted around it.
#[test]
fn a_spin_lock_of_the_kernel_is_first_come_first_served() {
    let lock = Object::new(SpinLock::<spinpark_sim::Sim<spinpark_sim::workload::KernelTuning>>::new());
    let order = Rc::new(RefCell::new(Vec::new()));
    let mut simulation = Simulation::new(&Machine::plain(8));
    for number in 0..8_u32 {
        let (lock, order) = (Rc::clone(&lock), Rc::clone(&order));
        simulation.thread_on(number..number + 1, move || {
            here::compute(u64::from(7 - number) * 1_000);
            here::in_kernel(|| {
                lock.lock();
                here::compute(20_000);
                order.borrow_mut().push(number);
                lock.unlock();
            });
        });
    }
    assert_eq!(simulation.run().unwrap().failure, None);
    assert_eq!(*order.borrow(), [7, 6, 5, 4, 3, 2, 1, 0]);
}
