//! The program never dies of the recorder, nor waits for it: what programs do that a recorder may stumble
//! over.

use std::path::{Path, PathBuf};

use spinpark_recorder::format::{HolderId, Kind, Role};
use spinpark_testkit::profiled::{Recording, read_all, recordings};
use spinpark_testkit::{Configuration, Run, both_configurations, compile_c};

both_configurations! {
    an_allocator_with_a_mutex_starts = |directory, configuration| {
        let program = compile_c("profile/allocator.c", &["-fno-builtin"]);
        let outcome = Run::new(program).configuration(configuration).profiled(directory, "full").succeed();
        let mutex = outcome.stdout_text().trim().parse().expect("an address");
        let recording = Recording::read(&recordings(directory)[0]);
        assert!(recording.use_of(mutex, Role::Write).acquisitions > 0);
    };
    jemalloc_starts = |directory, configuration| {
        let Some(library) = jemalloc() else {
            assert!(std::env::var_os("SPINPARK_REQUIRE_PROGRAMS").is_none(), "libjemalloc.so.2 is not installed");
            eprintln!("skipped: libjemalloc.so.2 is not installed (Debian: libjemalloc2)");
            return;
        };
        Run::new("sh")
            .args(["-c", "LD_PRELOAD=\"$LD_PRELOAD:$1\" exec \"$2\" fork", "sh"])
            .args([library, compile_c("profile/life.c", &["-rdynamic"])])
            .configuration(configuration)
            .profiled(directory, "contended")
            .succeed();
    };
}

both_configurations! {
    a_child_without_fork_handlers_is_not_in_its_parent_s_file = |directory, configuration| {
        let (mutex, times) = safe(directory, configuration, "full", "children bare-clone");
        let read = read_all(directory);
        assert_eq!(read.len(), 1);
        assert_eq!(read[0].use_of(mutex, Role::Write).acquisitions, times);
    };
    a_child_goes_on_with_what_a_handler_interrupted = |directory, configuration| {
        safe(directory, configuration, "full", "children fork-in-handler");
        read_all(directory);
    };
}

both_configurations! {
    coroutines_are_left_alone = |directory, configuration| {
        for detail in ["contended", "full"] {
            safe(directory, configuration, detail, "stacks coroutines");
        }
        let read = read_all(directory);
        let waits: u64 = read.iter().flat_map(|one| one.uses.values()).map(|it| it.contended).sum();
        assert!(waits >= 8, "{waits}");
    };
    made_code_is_followed_on_the_own_stack_only = |directory, configuration| {
        for detail in ["contended", "full"] {
            let directory = directory.join(detail);
            std::fs::create_dir(&directory).expect("a directory");
            let (mutex, times) = safe(&directory, configuration, detail, "stacks made-code");
            // With `contended` the first one, before any wait, is not seen.
            let seen = read_all(&directory)[0].use_of(mutex, Role::Write).acquisitions;
            assert_eq!(seen, times - u64::from(detail == "contended"));
        }
    };
    a_handler_over_a_fiber_that_is_gone = |directory, configuration| {
        let (mutex, _) = safe(directory, configuration, "full", "stacks handler-over-fiber");
        assert_eq!(read_all(directory)[0].use_of(mutex, Role::Write).acquisitions, 4);
    };
    small_stacks_are_large_enough = |directory, configuration| {
        // The one keeps all acquisitions, the other one slow waits, with their holders.
        safe(directory, configuration, "contended", "stacks small-stacks");
        let directory = directory.join("full");
        std::fs::create_dir(&directory).expect("a directory");
        let (mutex, _) = safe(&directory, configuration, "full", "stacks small-stacks");
        assert_eq!(read_all(&directory)[0].use_of(mutex, Role::Write).acquisitions, 4);
    };
    a_time_that_is_none_is_not_looked_at = |directory, configuration| {
        safe(directory, configuration, "full", "memory null-time");
    };
    who_holds_is_told_through_a_function_that_locks = |directory, configuration| {
        for detail in ["contended", "full"] {
            let directory = directory.join(detail);
            std::fs::create_dir(&directory).expect("a directory");
            let numbers = numbers(&directory, configuration, detail, "holders wrapper");
            let (quick, slow) = (numbers[2], numbers[3]);
            let recording = &read_all(&directory)[0];
            let mut known = 0;
            for ((_, _, _, holder), (waits, _)) in &recording.pairs {
                // `take`, which locks, has two callers; where its acquisition was left out, `slow` was seen
                // to unlock.
                let (stack, at) = match HolderId::from_number(*holder) {
                    HolderId::TookAt(stack) => (stack, 1),
                    HolderId::ReleasedAt(stack) => (stack, 0),
                    HolderId::Table(_) | HolderId::OutOfSight(_) | HolderId::Unknown => continue,
                };
                known += waits;
                // The function whose start is the nearest below.
                let caller = recording.stacks[&stack][at];
                assert!(caller > slow && (quick < slow || caller < quick), "{caller:x}: {quick:x} {slow:x}");
            }
            assert!(known >= 35, "{known} of 40");
        }
    };
    who_holds_no_more_is_blamed_once = |directory, configuration| {
        let stale = numbers(directory, configuration, "contended", "holders stale-reader")[2];
        let recording = &read_all(directory)[0];
        let is_stale = |stack: &u32| {
            recording.stacks.get(stack).is_some_and(|frames| (stale..stale + 64).contains(&frames[0]))
        };
        let blamed = recording.pairs.iter().filter(|((_, _, _, holder), _)| is_stale(holder));
        let waits: u64 = blamed.map(|(_, (waits, _))| waits).sum();
        assert!(waits <= 1, "{waits} of 40");
    };
    a_shared_mutex_that_is_free_is_not_waited_for = |directory, configuration| {
        let numbers = numbers(directory, configuration, "full", "memory shared-mutexes");
        let recording = &read_all(directory)[0];
        for (number, mutex) in numbers[2..].iter().enumerate() {
            let found = recording.use_of(*mutex, Role::Write);
            let times = if number == 1 { 200 } else { 100 };
            assert_eq!((found.acquisitions, found.contended), (times, 0), "{number}");
        }
    };
    another_kind_at_the_same_address_is_another_lock = |directory, configuration| {
        let address = numbers(directory, configuration, "full", "memory memory-used-again")[2];
        let recording = &read_all(directory)[0];
        let locks = recording.locks.iter().filter(|lock| lock.address == address);
        let found: Vec<_> = locks
            .map(|lock| (lock.kind, recording.uses[&(lock.number, Role::Write as u32)].acquisitions))
            .collect();
        assert_eq!(found, [(Kind::Mutex, 10), (Kind::RwLock, 20)]);
    };
    a_program_that_locks_its_memory_locks_what_is_used = |directory, configuration| {
        let numbers = numbers(directory, configuration, "full", "memory locked-memory");
        if numbers[2] == 0 {
            eprintln!("skipped: so much memory may not be locked here");
            return;
        }
        assert!(numbers[3] < 200_000, "{} kB", numbers[3]);
    };
    a_program_with_few_addresses_keeps_them = |directory, configuration| {
        let program = compile_c("profile/safe_memory.c", &[]);
        Run::new("sh")
            .args(["-c", "ulimit -v 600000; exec \"$0\" few-addresses"])
            .arg(program)
            .configuration(configuration)
            .profiled(directory, "full")
            .succeed();
        // `sh`, and the program, of which there is room for what it does.
        let uses_in_each: Vec<_> = read_all(directory).iter().map(|one| one.uses.len()).collect();
        assert!(uses_in_each.contains(&1), "{uses_in_each:?}");
    };
    the_unwinder_s_own_mutex_is_not_waited_for_twice = |directory, configuration| {
        let program = compile_c("profile/unwinder.cpp", &[]);
        let outcome = Run::new(program).configuration(configuration).profiled(directory, "contended").succeed();
        assert_eq!(outcome.stdout_text().trim(), "caught");
    };
}

/// Runs a scene, `PROGRAM SCENE`; the mutex that it told of, and how often it was taken.
fn safe(directory: &Path, configuration: Configuration, detail: &str, scene: &str) -> (u64, u64) {
    let numbers = numbers(directory, configuration, detail, scene);
    (numbers[0], numbers[1])
}

/// Runs a scene; what it printed.
fn numbers(directory: &Path, configuration: Configuration, detail: &str, scene: &str) -> Vec<u64> {
    let (program, scene) = scene.split_once(' ').expect("a program and its scene");
    let program = compile_c(format!("profile/safe_{program}.c"), &[]);
    let outcome =
        Run::new(program).arg(scene).configuration(configuration).profiled(directory, detail).succeed();
    let text = outcome.stdout_text();
    text.split_whitespace().map(|word| word.parse().expect("a number")).collect()
}

fn jemalloc() -> Option<PathBuf> {
    let directories = ["/usr/lib/x86_64-linux-gnu", "/usr/lib64", "/usr/lib"];
    directories.iter().map(|it| Path::new(it).join("libjemalloc.so.2")).find(|it| it.exists())
}
