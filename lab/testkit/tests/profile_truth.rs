//! Recordings of programs whose use of locks is known: counts are exact, times are what the program measured
//! itself.

use std::collections::BTreeMap;

use spinpark_recorder::format::{HolderId, NONE, Role, WaitOutcome};
use spinpark_testkit::profiled::{Recording, Use, recordings};
use spinpark_testkit::{Configuration, Run};

/// What a scene says about a lock in a role.
#[derive(Clone, Debug)]
struct Truth {
    role: Role,
    address: u64,
    acquisitions: u64,
    /// `None`: not known.
    contended: Option<u64>,
    failed: u64,
    waited: f64,
    longest: f64,
    held: f64,
    holds: u64,
    /// For how long threads were preempted between their own reading of the clock and the recorder's.
    unsure: f64,
}

struct Scene {
    recording: Recording,
    truths: Vec<Truth>,
    functions: BTreeMap<String, u64>,
    lines: Vec<String>,
}

fn run(scene: &str, configuration: Configuration, detail: &str) -> Scene {
    let directory = tempfile::tempdir().expect("a directory");
    let program = spinpark_fixtures::compile_c("truth.c", &[]);
    let outcome = Run::new(program)
        .arg(scene)
        .configuration(configuration)
        .profiled(directory.path(), detail)
        .succeed();
    let files = recordings(directory.path());
    assert_eq!(files.len(), 1, "one process: {files:?}");
    let recording = Recording::read(&files[0]);
    assert!(recording.exited);
    // The program may use what we may; a quota can make that less.
    assert!(recording.cpus as usize >= std::thread::available_parallelism().map_or(1, usize::from));
    assert_eq!((recording.dropped, recording.nested), (0, 0), "{:?}", recording.dropped_by_region);
    let lines: Vec<String> = outcome.stdout_text().lines().map(str::to_owned).collect();
    let words = |line: &String| line.split(' ').map(str::to_owned).collect::<Vec<_>>();
    let truths = lines.iter().map(words).filter(|words| words[0] == "lock").map(|words| {
        let number = |at: usize| words[at].parse::<i64>().expect("a number");
        Truth {
            role: match words[1].as_str() {
                "write" => Role::Write,
                "read" => Role::Read,
                "signal" => Role::Signal,
                "back" => Role::Back,
                other => panic!("a role: {other}"),
            },
            address: number(2).cast_unsigned(),
            acquisitions: number(3).cast_unsigned(),
            contended: u64::try_from(number(4)).ok(),
            failed: number(5).cast_unsigned(),
            waited: number(6) as f64,
            longest: number(7) as f64,
            held: number(8) as f64,
            holds: number(9).cast_unsigned(),
            unsure: number(10) as f64,
        }
    });
    let functions = lines.iter().map(words).filter(|words| words[0] == "function");
    let functions = functions.map(|words| (words[1].clone(), words[2].parse().expect("an address")));
    Scene { truths: truths.collect(), functions: functions.collect(), recording, lines }
}

/// Both within 5 % of the larger one, and what is unsure; 50 µs are nothing.
#[track_caller]
fn assert_near(what: &str, found: f64, truth: f64, unsure: f64) {
    let allowed = 0.05 * truth.max(found) + unsure + 50_000.0;
    assert!((found - truth).abs() <= allowed, "{what}: {found} ns recorded, {truth} ± {unsure} ns in truth");
}

impl Scene {
    fn use_of(&self, truth: &Truth) -> Use {
        self.recording.use_of(truth.address, truth.role)
    }

    /// Everything that every scene can have checked.
    fn check(&self) {
        assert!(!self.truths.is_empty());
        for truth in &self.truths {
            let found = self.use_of(truth);
            let context = format!("{truth:?}\n{found:?}");
            assert_eq!(found.acquisitions, truth.acquisitions, "{context}");
            assert_eq!(found.failed_tries, truth.failed, "{context}");
            if let Some(contended) = truth.contended {
                assert_eq!(found.contended, contended, "{context}");
            }
            assert_eq!(found.waits, found.contended, "a histogram has every wait: {context}");
            assert_eq!(found.outcomes[..5].iter().sum::<u64>(), found.contended, "{context}");
            assert_near("strip", found.strip as f64 * 1e3, found.waited, 0.0);
            if truth.waited > 0.0 || truth.contended.is_some() {
                assert_near("waits", found.waited, truth.waited, truth.unsure);
            }
            if truth.contended.is_some() {
                assert_near("longest wait", found.longest_wait, truth.longest, truth.unsure);
            }
            if truth.holds > 0 {
                assert_eq!(found.held.count + found.held_after_wait.count, truth.holds, "{context}");
                assert_eq!(found.holds, truth.holds, "{context}");
                let total = found.held.total + found.held_after_wait.total;
                assert_near("holds", total, truth.held, truth.unsure);
                // From before the call that takes the lock returned until after the one began that releases
                // it.
                assert!(total >= truth.held - 50_000.0, "{context}");
            }
        }
    }

    /// Of a sample of the acquisitions: their number, and how many of them are seen at least.
    fn check_number(&self, least: f64) {
        let (truth, found) = (&self.truths[0], self.use_of(&self.truths[0]));
        let ratio = found.acquisitions as f64 / truth.acquisitions as f64;
        assert!((least..1.25).contains(&ratio), "{ratio} of {truth:?}\n{found:?}");
    }

    /// The function that a stack begins in.
    fn function_of(&self, stack: u32) -> &str {
        let address = self.recording.stacks[&stack][0];
        let before = self.functions.iter().filter(|(_, start)| **start < address);
        before.max_by_key(|(_, start)| **start).map_or("?", |(name, _)| name)
    }

    /// All waits were at one place for another, and counted at the first.
    fn check_pair(&self, waiter: Role) {
        let truth = self.truths.iter().find(|truth| truth.role == waiter).expect("a truth");
        let mut pairs = BTreeMap::new();
        // Waits for the ends of threads have another role.
        let mutual = self.recording.pairs.iter().filter(|((_, role, ..), _)| *role != Role::Wake as u32);
        for ((_, role, waiter, holder), (count, waited)) in mutual {
            let holder = if *holder == NONE { "unknown" } else { self.function_of(*holder) };
            let pair = pairs.entry((*role, self.function_of(*waiter), holder)).or_insert((0, 0.0));
            pair.0 += count;
            pair.1 += waited;
        }
        let (count, waited) = pairs[&(waiter as u32, "waiter_site", "holder_site")];
        assert_eq!((pairs.len(), count), (1, truth.contended.expect("a count")), "{pairs:?}");
        assert_near("pair", waited, truth.waited, truth.unsure);
        let sites = self.recording.sites.iter().filter(|((_, role, _), _)| *role != Role::Wake as u32);
        for ((_, _, stack), site) in sites {
            let expected = if self.function_of(*stack) == "waiter_site" { count } else { 0 };
            assert_eq!(site.contended, expected);
        }
    }
}

/// One module per scene, one test per configuration: the check that all have, then its own.
macro_rules! scenes {
    ($($name:ident = $scene:literal, $detail:literal, $check:expr;)*) => {$(
        mod $name {
            use super::*;
            fn check(configuration: Configuration) {
                let check: fn(&Scene, Configuration) = $check;
                check(&run($scene, configuration, $detail), configuration);
            }
            #[test] fn glibc() { check(Configuration::Glibc); }
            #[test] fn spinpark() { check(Configuration::Spinpark); }
        }
    )*};
}

scenes! {
    mutex = "mutex", "full", |scene, configuration| {
        scene.check();
        scene.check_pair(Role::Write);
        let found = scene.use_of(&scene.truths[0]);
        assert_eq!((found.longest_queue, found.held_after_wait.count), (1, 20));
        // Its holder slept meanwhile, longer than any thread spins.
        let slept = found.outcomes[WaitOutcome::Parked as usize] + found.outcomes[WaitOutcome::HandedOver as usize];
        assert_eq!(slept, 20, "{found:?}");
        assert_eq!(scene.recording.locks_of, u32::from(configuration == Configuration::Spinpark));
        if configuration == Configuration::Spinpark {
            assert_eq!(found.wake_ups, 20);
        }
    };
    c11 = "c11", "full", |scene, _| { scene.check(); scene.check_pair(Role::Write); };
    reader_waits = "reader", "full", |scene, _| { scene.check(); scene.check_pair(Role::Read); };
    writer_waits = "writer", "full", |scene, _| { scene.check(); scene.check_pair(Role::Write); };
    condvar = "cond", "full", |scene, _| {
        scene.check();
        let signals = scene.use_of(&scene.truths[0]);
        assert_eq!((signals.wake_ups, signals.longest_queue), (20, 1));
        let words: Vec<&str> = scene.lines.last().expect("lines").split(' ').collect();
        let mutex = scene.recording.use_of(words[1].parse().expect("an address"), Role::Write);
        assert_eq!((mutex.acquisitions, mutex.contended), (words[2].parse().expect("a count"), 0));
    };
    condvar_timed = "cond-timed", "full", |scene, _| {
        scene.check();
        assert_eq!(scene.use_of(&scene.truths[0]).outcomes[WaitOutcome::TimedOut as usize], 20);
        // The way back is not waiting for the mutex.
        let address = scene.truths[0].address;
        let [back, late] = [Role::Back, Role::Late].map(|role| scene.recording.use_of(address, role).contended);
        assert_eq!((back, late), (0, 20));
    };
    recursive = "recursive", "full", |scene, _| scene.check();
    // Every other time the outer one is released first.
    nested = "nested", "full", |scene, _| {
        scene.check();
        let [inner, outer] = [&scene.truths[0], &scene.truths[1]];
        let number = |truth: &Truth| scene.recording.locks.iter().find(|it| it.address == truth.address).expect("it").number;
        let (held, all) = (scene.use_of(inner), inner.acquisitions);
        let found: Vec<_> = scene.recording.nests.iter().collect();
        let [(which, (count, nested))] = found[..] else { panic!("{found:?}") };
        assert_eq!((*which, *count), ((number(inner), Role::Write as u32, number(outer)), all / 2));
        let within = scene.lines.iter().find_map(|line| line.strip_prefix("within ")).expect("the program says it");
        assert_near("within the other one", *nested, within.parse().expect("ns"), inner.unsure);
        // Before the first one it is not known; between two nothing happens.
        let (number, total) = scene.use_of(outer).non_critical;
        assert_eq!((number, held.non_critical.0), (outer.acquisitions - 1, 0));
        assert!(total < 0.05 * inner.held, "{total} ns between");
        assert_eq!(scene.recording.activity, 2 * all);
    };
    // All waits for one lock were with the other one held, and none the other way round.
    chain = "chain", "full", |scene, _| {
        scene.check();
        let [inner, outer] = [&scene.truths[0], &scene.truths[1]];
        let number = |truth: &Truth| scene.recording.locks.iter().find(|it| it.address == truth.address).expect("it").number;
        let key = (number(inner), Role::Write as u32, number(outer));
        let is_call = |which: &(u32, u32, u32)| which.1 == Role::Wake as u32;
        let found: Vec<_> = scene.recording.held_waits.iter().filter(|(which, _)| !is_call(which)).collect();
        let [(which, (count, waited, made))] = found[..] else { panic!("{found:?}") };
        assert_eq!((*which, Some(*count)), (key, inner.contended));
        assert_near("with another lock held", *waited, inner.waited, inner.unsure);
        // The holder of the inner one sleeps for 10 ms each time, and the outer one's holder does not. The
        // rest of a wait, until its thread has a CPU, is in no call.
        let calls: Vec<_> = scene.recording.held_waits.iter().filter(|(which, _)| is_call(which)).collect();
        assert!(calls.iter().any(|((.., outer), (count, waited, _))| {
            *outer == number(inner) && *count == 20 && (0.95 * 200e6..=1.05 * inner.waited).contains(waited)
        }), "{calls:?} of {inner:?}, {}", number(inner));
        // The other thread waits for the outer one from before the 10 ms on for which the inner one is held
        // then, 20 times.
        assert!((0.95 * 200e6..=*waited).contains(made), "others meanwhile: {made} of {inner:?}");
    };
    chain_contended = "chain", "contended", |scene, _| {
        // The first time no thread had waited for the outer one.
        let of_locks = scene.recording.held_waits.iter().filter(|(which, _)| which.1 != Role::Wake as u32);
        let counts: Vec<u64> = of_locks.map(|(_, waits)| waits.0).collect();
        assert!(counts == [19] || counts == [20], "{counts:?}");
    };
    timed = "timed", "full", |scene, _| {
        scene.check();
        assert_eq!(scene.use_of(&scene.truths[0]).outcomes[WaitOutcome::TimedOut as usize], 20);
    };
    many_locks = "many-locks", "full", |scene, _| {
        scene.check();
        assert_eq!(scene.recording.locks.iter().filter(|lock| lock.is_created).count(), 1000);
    };
    many_locks_sampled = "many-locks", "sampled", |scene, _| scene.check();
    many_threads = "many-threads", "full", |scene, _| {
        scene.check();
        assert!(scene.recording.threads.len() >= 2, "{:?}", scene.recording.threads);
    };
    short_threads = "short-threads", "full", |scene, _| {
        scene.check();
        let users: u32 = scene.recording.threads.iter().map(|(_, _, users)| users).sum();
        // The main thread waits for the ends of the others.
        assert_eq!(users, 10_001);
        assert!(scene.recording.threads.len() < 1_000, "tables are used again");
        // Some of the last ones may just be ending.
        assert!(scene.recording.ended > 0 && scene.recording.ended <= scene.recording.threads.len());
    };
    // Contended: waits and pairs as in full; what is not waited for is not seen.
    contended = "mutex", "contended", |scene, _| {
        let (truth, found) = (&scene.truths[0], scene.use_of(&scene.truths[0]));
        assert_eq!(Some(found.contended), truth.contended);
        assert_near("waits", found.waited, truth.waited, truth.unsure);
        assert_near("longest wait", found.longest_wait, truth.longest, truth.unsure);
        assert_eq!(found.held_after_wait.count, 20);
        // The first holder took it before the first wait for it.
        assert_eq!(found.acquisitions, truth.acquisitions - 1);
        let of = |wanted: fn(HolderId) -> bool| -> u64 {
            let pairs = scene.recording.pairs.iter();
            pairs.filter(|(pair, _)| wanted(HolderId::from_number(pair.3))).map(|(_, pair)| pair.0).sum()
        };
        // Where it was released, or (if that was new then) by which thread.
        assert_eq!(of(|holder| matches!(holder, HolderId::ReleasedAt(_) | HolderId::Table(_))), 1);
        assert_eq!(of(|holder| matches!(holder, HolderId::TookAt(_))), 19);
    };
    uncontended = "nested", "contended", |scene, _| {
        assert!(scene.recording.locks.is_empty() && scene.recording.uses.is_empty());
    };
    off = "mutex", "off", |scene, _| {
        assert!(scene.recording.locks.is_empty() && scene.recording.uses.is_empty());
    };
    // Most is left out of these, and their number is an estimate.
    often = "often", "contended", |scene, _| scene.check_number(0.8);
    // Those before the first wait are not seen.
    queue = "queue", "contended", |scene, _| scene.check_number(0.0);
    sampled = "samples", "sampled", |scene, _| {
        let (truth, found) = (&scene.truths[0], scene.use_of(&scene.truths[0]));
        assert_eq!((found.acquisitions, found.contended), (truth.acquisitions, 0));
        let (count, all) = (found.held.count as f64, found.acquisitions as f64);
        assert!((2_500.0..4_000.0).contains(&count), "one in 64 of 200,000: {count}");
        // Each hold is in a sample with the same chance, so of the long ones there are as many as there
        // should be; four standard errors are exceeded once in ten thousand runs. (Not their sum: a few
        // preemptions would be most of it.)
        let words: Vec<&str> = scene.lines.last().expect("lines").split(' ').collect();
        let part = words[1].parse::<f64>().expect("a count") / all;
        let found_part = found.hold_bins[13..].iter().sum::<u64>() as f64 / count;
        let error = (part * (1.0 - part) / count).sqrt();
        assert!((found_part - part).abs() < 4.0 * error, "{found_part}, {part} ± {error}");
        // And what readers estimate from has what it should have.
        let mean = found.held.total / count;
        assert!(found.held.squares / count >= mean * mean && mean > 3_000.0 * 0.7 + 12_000.0 * 0.25, "{found:?}");
    };
}
