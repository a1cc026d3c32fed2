//! Native stress of the queue of spinners: its head is alone, whichever threads leave.
//!
//! `SPINPARK_STRESS_SECONDS` says how long in all (default 3), for 2, 16 and 64 threads.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

use spinpark_linux::Linux;
use spinpark_locks::{Behind, Entered, SpinQueue};
use spinpark_platform::{Owners, Threads};
use spinpark_verify::SpinLines;

const THREADS: [u32; 3] = [2, 16, 64];
const SLOTS: usize = 48;

#[test]
fn one_head_at_a_time_and_the_position_is_not_lost() {
    let seconds: f64 =
        std::env::var("SPINPARK_STRESS_SECONDS").ok().and_then(|text| text.parse().ok()).unwrap_or(3.0);
    let lines = SpinLines::<Linux, SLOTS>::new();
    for threads in THREADS {
        let end = Instant::now() + Duration::from_secs_f64(seconds / THREADS.len() as f64);
        // Plain numbers, but for the type: if there are two heads, one's visit is lost, or seen.
        let data = [AtomicU64::new(0), AtomicU64::new(0)];
        let visit = || {
            let old = data[0].load(Relaxed);
            assert_eq!(old, data[1].load(Relaxed), "another head is inside");
            data[0].store(old + 1, Relaxed);
            std::hint::spin_loop();
            data[1].store(old + 1, Relaxed);
        };
        let work = |token: u32| {
            let queue = SpinQueue::<Linux>::new(lines.of(1));
            let (mut random, mut visits) = (u64::from(token) + 1, 0);
            while Instant::now() < end {
                random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                let mut polls = random >> 53;
                queue.has((random >> 40) as u32 % (threads + 1));
                let stays = |_| {
                    polls = polls.saturating_sub(1);
                    polls > 0
                };
                if let Entered::Head(_head) = queue.enter(token, stays) {
                    visit();
                    visits += 1;
                }
            }
            visits
        };
        let visits: u64 = thread::scope(|scope| {
            let work = &work;
            let workers: Vec<_> = (0..threads).map(|token| scope.spawn(move || work(token))).collect();
            workers.into_iter().map(|worker| worker.join().expect("one head at a time")).sum()
        });
        assert_eq!(data[1].load(Relaxed), visits, "{threads} threads: a visit was lost");
        assert!(visits > 0);
        let queue = SpinQueue::<Linux>::new(lines.of(1));
        assert!(matches!(queue.enter(0, |_| false), Entered::Head(_)), "{threads} threads: no head any more");
    }
}

/// Y4: a thread that ends in the queue leaves nothing behind, at its head or not.
#[test]
fn a_thread_that_ends_is_taken_over() {
    let lines = SpinLines::<Linux, SLOTS>::new();
    let queue = || SpinQueue::<Linux>::new(lines.of(7));
    let after = |before| if Linux::has_ended(before) { Behind::TakesOver } else { Behind::Stays };
    let becomes_head = || matches!(queue().enter(Linux::thread_token(), after), Entered::Head(_head));
    std::thread::scope(|scope| {
        let ends_as_head = scope.spawn(|| match queue().enter(Linux::thread_token(), |_| true) {
            Entered::Head(head) => std::mem::forget(head),
            _ => panic!("no thread was there"),
        });
        ends_as_head.join().expect("it does not panic");
        assert!(becomes_head(), "behind a head that has ended");

        let queue = queue();
        let Entered::Head(head) = queue.enter(Linux::thread_token(), after) else {
            panic!("it was passed on")
        };
        let ends_behind = scope.spawn(|| {
            let queue = SpinQueue::<Linux>::new(lines.of(7));
            // As if a handler had left by `pthread_exit`.
            queue.enter(Linux::thread_token(), |_| -> bool { std::panic::resume_unwind(Box::new(())) });
        });
        assert!(ends_behind.join().is_err());
        let waits = scope.spawn(becomes_head);
        std::thread::sleep(Duration::from_millis(2));
        assert!(!waits.is_finished(), "the head has not gone");
        drop(head);
        assert!(waits.join().expect("it does not panic"));
    });
}
