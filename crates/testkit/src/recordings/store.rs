//! A recording with records of every kind: a store with a cache, a table and a queue, which ran for 10 s.

use std::path::Path;

use spinpark_profile::model::{Frame, Profile};
use spinpark_profile::read::{Recording, profile};
use spinpark_profile::symbols::Symbols;
use spinpark_recorder::format::{Detail, Held, Kind, LockStats, NONE, Role, SiteStats, WaitOutcome};

use super::Builder;

const MS: u64 = 1_000_000;

/// Return addresses of the program, less the address at which it was mapped.
const FUNCTIONS: [(u64, &str, &str, u32); 13] = [
    (0x1110, "store_update", "cache.c", 88),
    (0x1220, "flush", "cache.c", 131),
    (0x1330, "lookup", "table.c", 40),
    (0x1440, "insert", "table.c", 61),
    (0x1550, "take", "queue.c", 17),
    (0x1660, "put", "queue.c", 29),
    (0x1770, "cache_new", "cache.c", 12),
    (0x1880, "table_new", "table.c", 9),
    (0x1990, "queue_new", "queue.c", 8),
    (0x1aa0, "worker", "main.c", 50),
    (0x1bb0, "main", "main.c", 90),
    (0x1cc0, "flusher", "main.c", 70),
    (0x1dd0, "shard_new", "shard.c", 21),
];
const START: u64 = 0x0040_0000;

fn address(function: &str) -> u64 {
    FUNCTIONS
        .iter()
        .find(|entry| entry.1 == function)
        .map(|entry| START + entry.0)
        .expect("it is in the table")
}

fn held(held: &mut Held, times: &[u64]) {
    held.count = (times.len() as u64).into();
    held.total = times.iter().sum::<u64>().into();
    held.longest = times.iter().copied().max().unwrap_or(0).into();
    held.squares = times.iter().map(|time| (*time as f64).powi(2)).sum::<f64>().to_bits().into();
}

/// Waits of these lengths: count, sum, longest, histogram, and the strip with parts of 2^18 µs.
fn waits(stats: &mut LockStats, part: usize, times: &[u64]) {
    stats.contended = (times.len() as u64).into();
    stats.waited = times.iter().sum::<u64>().into();
    stats.free = (times.iter().sum::<u64>() / 10).into();
    stats.longest_wait = times.iter().copied().max().unwrap_or(0).into();
    for time in times {
        *stats.waits[time.ilog2() as usize].get_mut() += 1;
    }
    stats.strip.shift = 18.into();
    stats.strip.waited[part] = u32::try_from(times.iter().sum::<u64>() / 1_000).expect("it fits").into();
}

fn at_site(stats: &mut SiteStats, acquisitions: u64, times: &[u64]) {
    stats.acquisitions = acquisitions.into();
    stats.contended = (times.len() as u64).into();
    stats.waited = times.iter().sum::<u64>().into();
    stats.longest_wait = times.iter().copied().max().unwrap_or(0).into();
}

/// The recording of the store.
#[must_use]
pub fn store() -> Builder {
    let mut file = Builder::new();
    file.header().detail = (Detail::Sampled as u32).into();
    file.header().locks = 1;
    let maps = file.maps("00400000-00500000 r-xp 00000000 fe:01 77         /opt/store/store\n");
    let mut stack = |names: &[&str]| {
        let addresses: Vec<u64> = names.iter().map(|name| address(name)).collect();
        file.stack(maps, &addresses)
    };
    let update = stack(&["store_update", "worker"]);
    let flush = stack(&["flush", "flusher"]);
    let lookup = stack(&["lookup", "worker"]);
    let insert = stack(&["insert", "worker"]);
    let take = stack(&["take", "worker"]);
    let put = stack(&["put", "main"]);
    let [cache_new, table_new, queue_new, shard_new] =
        ["cache_new", "table_new", "queue_new", "shard_new"].map(|name| stack(&[name, "main"]));

    let cache = file.lock(Kind::Mutex, 0x50_1000, cache_new, true);
    file.name(cache, "cache_lock");
    let table = file.lock(Kind::RwLock, 0x50_2000, table_new, true);
    let queue = file.lock(Kind::Mutex, 0x50_3000, take, false);
    let ready = file.lock(Kind::Condvar, 0x50_3040, queue_new, true);
    let shards: Vec<u32> =
        (0..3).map(|number| file.lock(Kind::Mutex, 0x50_4000 + number * 64, shard_new, true)).collect();

    let worker = file.thread(4243, "worker", 0, 6, 1_405 * MS);
    let flusher = file.thread(4244, "flusher", 1_000 * MS, 4, 3_500 * MS);
    let main = file.thread(4242, "main", 0, 0, 0);

    let update_waits = [100 * MS, 200 * MS];
    let flush_waits = [1_000 * MS, 2_000 * MS, 400 * MS, 100 * MS];
    file.uses(worker, cache, Role::Write, |stats| {
        stats.acquisitions = 6_402.into();
        stats.longest_queue = 2.into();
        stats.wake_ups = 4.into();
        stats.outcomes[WaitOutcome::Parked as usize] = 2.into();
        waits(stats, 3, &update_waits);
        held(&mut stats.held_after_wait, &[2 * MS, 4 * MS]);
        held(&mut stats.held, &[[MS, MS + 200_000].as_slice(); 50].concat());
    });
    file.site(worker, cache, Role::Write, update, |stats| {
        at_site(stats, 102, &update_waits);
        held(&mut stats.held_after_wait, &[2 * MS, 4 * MS]);
    });
    file.uses(flusher, cache, Role::Write, |stats| {
        stats.acquisitions = 4.into();
        stats.longest_queue = 3.into();
        stats.failed_tries = 1.into();
        stats.outcomes[WaitOutcome::Spun as usize] = 1.into();
        stats.outcomes[WaitOutcome::HandedOver as usize] = 3.into();
        stats.outcomes[WaitOutcome::OffCpu as usize] = 2.into();
        waits(stats, 5, &flush_waits);
        held(&mut stats.held_after_wait, &[100 * MS; 4]);
    });
    file.site(flusher, cache, Role::Write, flush, |stats| at_site(stats, 4, &flush_waits));
    file.pair(worker, cache, Role::Write, (update, flush), (2, 300 * MS, 200 * MS));
    file.pair(flusher, cache, Role::Write, (flush, update), (3, 3_400 * MS, 2_000 * MS));
    file.pair(flusher, cache, Role::Write, (flush, NONE), (1, 100 * MS, 100 * MS));

    file.uses(worker, table, Role::Read, |stats| {
        stats.acquisitions = 90_000.into();
        stats.longest_queue = 1.into();
        stats.outcomes[WaitOutcome::Parked as usize] = 1.into();
        waits(stats, 3, &[5 * MS]);
        held(&mut stats.held_after_wait, &[4_000]);
        held(&mut stats.held, &[1_000; 200]);
    });
    file.site(worker, table, Role::Read, lookup, |stats| at_site(stats, 201, &[5 * MS]));
    file.uses(main, table, Role::Write, |stats| {
        stats.acquisitions = 10.into();
        held(&mut stats.held, &[3 * MS]);
    });
    file.pair(worker, table, Role::Read, (lookup, insert), (1, 5 * MS, 5 * MS));

    file.uses(worker, queue, Role::Write, |stats| stats.acquisitions = 800.into());
    file.uses(worker, ready, Role::Signal, |stats| {
        stats.acquisitions = 3.into();
        stats.outcomes[WaitOutcome::TimedOut as usize] = 1.into();
        waits(stats, 7, &[1_000 * MS, 500 * MS, 2_500 * MS]);
    });
    file.site(worker, ready, Role::Signal, take, |stats| {
        at_site(stats, 3, &[1_000 * MS, 500 * MS, 2_500 * MS]);
    });
    file.uses(worker, ready, Role::Back, |stats| {
        stats.acquisitions = 3.into();
        waits(stats, 7, &[50_000, 60_000, 90_000]);
    });
    file.site(worker, ready, Role::Back, take, |stats| at_site(stats, 3, &[50_000, 60_000, 90_000]));
    file.pair(worker, ready, Role::Back, (take, put), (2, 150_000, 90_000));
    file.uses(main, ready, Role::Signal, |stats| stats.wake_ups = 2.into());
    for shard in shards {
        file.uses(worker, shard, Role::Write, |stats| {
            stats.acquisitions = (1_000 * u64::from(shard)).into();
            waits(stats, 1, &[u64::from(shard) * 1_000]);
        });
        file.site(worker, shard, Role::Write, insert, |stats| at_site(stats, 1, &[u64::from(shard) * 1_000]));
    }
    file
}

/// The profile of a recording of programs like [`store`], with the names of its functions.
///
/// # Panics
/// If the file cannot be written or read.
#[must_use]
pub fn named(file: Builder, directory: &Path) -> Profile {
    let path = file.write(directory).expect("a place to write to");
    let recording = Recording::open(&path).expect("it is a recording");
    let mut profile = profile(&recording, &mut Symbols::none());
    for frame in profile.call_sites.iter_mut().flat_map(|call_site| &mut call_site.frames) {
        name(frame);
    }
    relabel(&mut profile);
    profile
}

/// Calls locks without a name by what their call sites are called now.
pub fn relabel(profile: &mut Profile) {
    let labels: Vec<(usize, String)> = profile
        .locks
        .iter()
        .enumerate()
        .filter_map(|(index, lock)| {
            let (label, number) = lock.label.split_once(" #").unwrap_or((&lock.label, ""));
            let (noun, _) = label.split_once(" of ").or_else(|| label.split_once(" in "))?;
            let word = if lock.is_created { "of" } else { "in" };
            let number = if number.is_empty() { String::new() } else { format!(" #{number}") };
            Some((index, format!("{noun} {word} {}{number}", profile.call_site_label(lock.creation_site?))))
        })
        .collect();
    for (index, label) in labels {
        profile.locks[index].label = label;
    }
}

fn name(frame: &mut Frame) {
    if let Some((_, function, file, line)) = FUNCTIONS.iter().find(|entry| entry.0 == frame.offset) {
        frame.function = Some((*function).to_owned());
        frame.source = Some((format!("/src/store/{file}"), *line));
    }
}
