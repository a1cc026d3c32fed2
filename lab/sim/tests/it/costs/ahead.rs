//! What a core does ahead while it waits for memory, and what of that is for nothing.

use std::rc::Rc;

use spinpark_platform::{AtomicPtr as _, AtomicU32 as _, Ordering::Relaxed};
use spinpark_sim::machine::Machine;
use spinpark_sim::{AtomicPtr, AtomicU32, Object, Simulation, here};

use super::{about, add, after_writes, line, times};

#[test]
fn work_after_an_atomic_operation_is_done_meanwhile() {
    let mut machine = Machine::plain(2);
    machine.cpu.window_ns = 30.0;
    let (near, rmw) = (machine.memory.near_ns, machine.memory.rmw_ns);
    let took = after_writes(&machine, 1, |lines| {
        add(lines);
        here::compute(20);
        here::compute(100);
    });
    // All that it can hold is done; the operation on the line itself comes after. The core has asked for the
    // line 1 ns before `step` begins (and its first instructions), as nothing before was in the way.
    about(took, near - 1.0 + rmw + 120.0 - 30.0);
}

/// A core goes on as it thinks that an exchange will end. At first it thinks that it will fail; a swap fails
/// if it finds anything.
#[test]
fn work_after_an_exchange_is_done_meanwhile_if_the_guess_is_right() {
    let mut machine = Machine::plain(2);
    machine.cpu.window_ns = 30.0;
    let (near, rmw) = (machine.memory.near_ns, machine.memory.rmw_ns);
    // The line holds 1.
    let fails = |word: &AtomicU32| assert_eq!(word.compare_exchange(5, 6, Relaxed, Relaxed), Err(1));
    let succeeds = |word: &AtomicU32| assert_eq!(word.compare_exchange(1, 2, Relaxed, Relaxed), Ok(1));
    let finds_some = |word: &AtomicU32| assert_eq!(word.swap(2, Relaxed), 1);
    let took = |exchange: fn(&AtomicU32)| {
        after_writes(&machine, 1, move |lines| {
            exchange(&lines[0]);
            here::compute(100);
        })
    };
    let all = near - 1.0 + rmw + 100.0;
    about(took(fails), all - 30.0);
    about(took(succeeds), all);
    about(took(finds_some), all - 30.0);
}

/// An exchange of a pointer is guessed as one of a number is: null is what 0 is there.
#[test]
fn pointers_are_guessed_too() {
    let mut machine = Machine::plain(2);
    machine.cpu.window_ns = 30.0;
    let mut end = 0_u32;
    let some: *mut u32 = &raw mut end;
    let took = |first: *mut u32, exchange: fn(&AtomicPtr<u32>, *mut u32)| {
        let pointer = Object::new(AtomicPtr::new(std::ptr::null_mut()));
        let written = Rc::clone(&pointer);
        let write = move || written.store(first, Relaxed);
        let step = move || {
            exchange(&pointer, first);
            here::compute(100);
        };
        times(&machine, vec![(0, Box::new(write)), (1, Box::new(step))])[1]
    };
    let swap =
        |pointer: &AtomicPtr<u32>, first| assert_eq!(pointer.swap(std::ptr::null_mut(), Relaxed), first);
    about(took(std::ptr::null_mut(), swap) - took(some, swap), 30.0);
    let succeeds = |pointer: &AtomicPtr<u32>, first: *mut u32| {
        assert_eq!(pointer.compare_exchange(first, std::ptr::null_mut(), Relaxed, Relaxed), Ok(first));
    };
    let fails = |pointer: &AtomicPtr<u32>, first: *mut u32| {
        let other = first.wrapping_add(1);
        assert_eq!(pointer.compare_exchange(other, std::ptr::null_mut(), Relaxed, Relaxed), Err(first));
    };
    about(took(some, succeeds) - took(some, fails), 30.0);
}

#[test]
fn lines_that_are_needed_soon_come_side_by_side() {
    let mut machine = Machine::plain(2);
    machine.memory.rmw_ns = 0.0;
    machine.memory.serial = 0.0;
    let near = machine.memory.near_ns;
    let in_a_row = 12;
    machine.cpu.window_ns = 0.0;
    let one_by_one = after_writes(&machine, in_a_row, add);
    assert!(one_by_one > in_a_row as f64 * near);
    machine.cpu.window_ns = 100.0;
    let together = after_writes(&machine, in_a_row, add);
    assert!((2.0 * near..5.0 * near).contains(&together), "{together} ns, {one_by_one} one by one");
    // A load and an operation on one line are one transfer.
    let both = after_writes(&machine, 1, |lines| {
        assert_eq!(lines[0].load(Relaxed), 1);
        add(lines);
    });
    assert!(both < 1.3 * near, "{both} ns");
}

/// Two cores that change the same few lines take them away from each other before they are used: what was
/// done ahead is for nothing then. With many lines that is rare.
#[test]
fn lines_that_are_lost_are_asked_for_again() {
    let per_change = |lines: u64| {
        let mut simulation = Simulation::new(&Machine::plain(2));
        let all: Rc<Vec<_>> = Rc::new((0..lines).map(|_| line()).collect());
        for cpu in 0..2 {
            let all = Rc::clone(&all);
            simulation.thread_on(cpu..cpu + 1, move || {
                for _ in 0..4_000 {
                    let chosen = here::random(lines) as usize;
                    all[chosen].fetch_add(1, Relaxed);
                }
            });
        }
        simulation.run().unwrap().elapsed_ns as f64 / 4_000.0
    };
    let (few, many) = (per_change(4), per_change(256));
    assert!(few > 1.5 * many, "{few} ns with few lines, {many} with many");
}
