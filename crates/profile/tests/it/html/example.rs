//! Profiles with every kind of thing in them, to be shown.

use spinpark_profile::model::Warning;
use spinpark_profile::model::*;

/// A name that a page must not run.
pub(crate) const SCRIPT: &str = "evil<script>document.title='run'</script>&\"'`";

fn frame(function: &str, line: u32) -> Frame {
    Frame {
        function: Some(function.to_owned()),
        source: Some((String::from("/home/user/cachesim/src/cache.cc"), line)),
        module: String::from("cachesim"),
        offset: 0x1200 + u64::from(line),
        ..Frame::default()
    }
}

fn call_site(functions: &[(&str, u32)]) -> CallSite {
    let mut frames: Vec<Frame> = functions.iter().map(|(function, line)| frame(function, *line)).collect();
    frames.push(frame("worker(unsigned)", 310));
    frames.push(frame("main", 402));
    CallSite { frames, is_cut: false }
}

fn times(count: u64, mean: u64, longest: u64) -> Times {
    if count * mean == 0 {
        return Times::default();
    }
    let mut histogram = vec![0; longest.max(1).ilog2() as usize + 1];
    let middle = mean.max(1).ilog2() as usize;
    for (bin, part) in
        [(middle.saturating_sub(2), 10), (middle.saturating_sub(1), 4), (middle, 3), (middle + 1, 8)]
    {
        if let Some(slot) = histogram.get_mut(bin) {
            *slot += count / part;
        }
    }
    if let Some(last) = histogram.last_mut() {
        *last += 1;
    }
    Times { count, total: count * mean, longest, histogram }
}

fn strip(total: u64, parts: u64) -> Strip {
    let waited =
        (0..64).map(|part| if part < parts { total / parts * (2 + part % 5) / 4 } else { 0 }).collect();
    Strip { part: 65_536_000, waited }
}

struct Use {
    role: Role,
    taken: u64,
    contended: u64,
    mean_wait: u64,
    mean_hold: u64,
    sites: Vec<CallSiteId>,
}

fn stats(of: Use) -> RoleStats {
    let Use { role, taken, contended, mean_wait, mean_hold, sites } = of;
    let share = sites.len().max(1) as u64;
    let site = |call_site| SiteStats {
        call_site,
        acquisitions: taken / share,
        contended: contended / share,
        wait_total: contended * mean_wait / share,
        wait_longest: mean_wait * 30,
        hold: Held {
            measured: times(taken / share, mean_hold, mean_hold * 9),
            total: taken * mean_hold / share,
            total_error: 0,
            while_waited: 0,
        },
        blocked: contended / share,
        blocked_total: contended * mean_wait / share,
        is_release: false,
    };
    RoleStats {
        role,
        acquisitions: taken,
        contended,
        failed_tries: contended / 50,
        wait: times(contended, mean_wait, mean_wait * 30),
        hold: Held {
            measured: times(taken / 64, mean_hold, mean_hold * 9),
            total: taken * mean_hold,
            total_error: taken * mean_hold / 40,
            while_waited: 0,
        },
        non_critical: Times::default(),
        split: Split {
            held: contended * mean_wait / 4 * 3,
            free: contended * mean_wait / 5,
            unknown: contended * mean_wait / 20,
            watched: contended * mean_wait / 2,
            no_cpu: contended * mean_wait / 10,
        },
        utilisation: (role == Role::Write).then_some(0.25),
        outcomes: Outcomes {
            spun: contended / 2,
            parked: contended / 3,
            unknown: contended / 10,
            timed_out: 3,
            ..Default::default()
        },
        wake_ups: contended / 3,
        longest_queue: 7,
        strip: strip(contended * mean_wait, 48),
        sites: sites.into_iter().map(site).collect(),
        error: SampleError::default(),
    }
}

fn lock(id: u32, label: &str, kind: Kind, call_site: Option<CallSiteId>, roles: Vec<RoleStats>) -> Lock {
    Lock {
        id,
        label: label.to_owned(),
        name: None,
        place: None,
        address: 0x5581_0a2c_4000 + u64::from(id) * 64,
        kind,
        type_name: None,
        is_several: false,
        is_made: false,
        sampled: None,
        creation_site: call_site,
        is_created: id.is_multiple_of(2),
        is_destroyed: id == 4,
        roles,
    }
}

fn pair(
    lock: u32,
    role: Role,
    waiter: CallSiteId,
    holder: Option<CallSiteId>,
    count: u64,
    mean: u64,
) -> Pair {
    let wait_total = count * mean;
    Pair {
        lock,
        role,
        waiter,
        holder,
        is_release: lock == 4,
        out_of_sight: None,
        count,
        wait_total,
        wait_longest: mean * 30,
        free: wait_total / 5,
    }
}

fn held_wait(outer: u32, lock: u32, role: Role, count: u64, mean: u64) -> HeldWait {
    HeldWait {
        outer,
        outer_role: Role::Write,
        lock,
        role,
        is_timed: false,
        thread: None,
        count,
        wait_total: count * mean,
        wait_longest: mean * 30,
        time_blocked: count * mean,
    }
}

/// One of everything.
pub(crate) fn sample() -> Profile {
    let mut inlined = call_site(&[("store_update(Store&, Key)", 120), ("handle(Request&)", 200)]);
    inlined.frames[0].is_inlined = true;
    let mut unknown = call_site(&[("flush_all()", 77)]);
    unknown.frames.truncate(2);
    unknown.frames[1].function = None;
    unknown.frames[1].source = None;
    unknown.is_cut = true;
    let call_sites = vec![
        inlined,
        unknown,
        call_site(&[("index_lookup(std::string const&)", 33), ("handle(Request&)", 204)]),
        call_site(&[("index_insert(std::string const&)", 48), ("handle(Request&)", 211)]),
        call_site(&[("queue_pop()", 91)]),
        call_site(&[("queue_push(Job)", 99)]),
        call_site(&[(SCRIPT, 1)]),
        CallSite { frames: Vec::new(), is_cut: false },
        call_site(&[("make_store()", 15)]),
    ];
    let using = |role, taken, contended, mean_wait, mean_hold, sites| {
        stats(Use { role, taken, contended, mean_wait, mean_hold, sites })
    };
    let locks = vec![
        lock(
            0,
            "cache_lock",
            Kind::Mutex,
            Some(8),
            vec![using(Role::Write, 812_345, 90_123, 84_000, 9_100, vec![0, 1])],
        ),
        lock(
            1,
            "index (make_store)",
            Kind::RwLock,
            Some(8),
            vec![
                using(Role::Read, 2_400_000, 12_000, 40_000, 800, vec![2]),
                using(Role::Write, 31_000, 9_000, 101_000, 5_200, vec![3]),
            ],
        ),
        lock(
            2,
            "queue.ready",
            Kind::Condvar,
            None,
            vec![
                using(Role::Signal, 40_000, 40_000, 600_000, 0, vec![4]),
                using(Role::Back, 40_000, 40_000, 9_000, 0, vec![4]),
            ],
        ),
        lock(
            3,
            "queue.lock",
            Kind::Adaptive,
            Some(7),
            vec![using(Role::Write, 120_000, 4_000, 3_000, 400, vec![4, 5])],
        ),
        lock(4, SCRIPT, Kind::Recursive, Some(6), vec![using(Role::Write, 90, 2, 1_500, 100, vec![6, 7])]),
        lock(
            5,
            "never waited for",
            Kind::ErrorChecking,
            Some(8),
            vec![using(Role::Write, 1_000, 0, 0, 300, vec![])],
        ),
    ];
    let pairs = vec![
        pair(0, Role::Write, 1, Some(0), 60_000, 90_000),
        pair(0, Role::Write, 0, Some(0), 20_000, 60_000),
        pair(0, Role::Write, 0, Some(1), 10_000, 97_000),
        pair(1, Role::Write, 3, Some(2), 8_000, 101_000),
        pair(1, Role::Read, 2, Some(3), 12_000, 40_000),
        pair(2, Role::Signal, 4, None, 40_000, 600_000),
        pair(2, Role::Back, 4, Some(5), 40_000, 9_000),
        pair(3, Role::Write, 5, Some(4), 3_000, 3_000),
        pair(3, Role::Write, 4, None, 1_000, 3_000),
        pair(4, Role::Write, 6, Some(7), 2, 1_500),
    ];
    let thread = |id: u32| Thread {
        id: 4242 + id,
        name: if id == 0 { String::from("cachesim") } else { format!("worker {id}") },
        users: if id == 3 { 900 } else { 1 },
        time: 4_000_000_000,
        has_ended: false,
        waits: 20_000 + u64::from(id) * 77,
        waited: 1_100_000_000 + u64::from(id) * 50_000_000,
        signals: 0,
        others: 0,
        unclear: Vec::new(),
        activity: Activity::default(),
    };
    Profile {
        format: FORMAT.to_owned(),
        version: VERSION,
        program: String::from("/usr/local/bin/cachesim"),
        arguments: ["cachesim", "--threads", "8", SCRIPT].map(str::to_owned).to_vec(),
        pid: 4242,
        parent: 4100,
        recording: String::from("4242-1795305600000"),
        namespace: 0,
        born: 0,
        started: 1_795_340_000_000_000_000,
        duration: 4_100_000_000,
        ended: RecordingEnd::Exited,
        ended_by: None,
        detail: Detail::Sampled,
        sample_every: 64,
        locks_of: LocksOf::Glibc,
        cpus: 8,
        threads: (0..9).map(thread).collect(),
        call_sites,
        modules: vec![Module {
            path: String::from("/usr/local/bin/cachesim"),
            build_id: None,
            unnamed: None,
        }],
        locks,
        pairs,
        thread_waits: Vec::new(),
        nests: Vec::new(),
        held_waits: vec![
            held_wait(0, 1, Role::Write, 2_000, 150_000),
            held_wait(0, 2, Role::Signal, 10, 700_000),
            held_wait(5, 0, Role::Write, 10, 700_000),
        ],
        waiting: Vec::new(),
        slow_waits: Vec::new(),
        deadlocks: Vec::new(),
        strip: Strip::default(),
        dropped: 12,
        nested: 3,
        recorder: RecorderCost::default(),
        cost: Some(Cost {
            is_measured: true,
            ratio: 1.031,
            interval: Some((1.012, 1.052)),
            noise: Some(0.011),
            sentence: String::from("Recording made the program 3 % slower."),
        }),
        observed: None,
        sampling: None,
        host: None,
        merged: None,
        measured: Vec::new(),
        warnings: vec![
            Warning::Note(String::from("`cachesim` changed after it was recorded: functions may be wrong.")),
            Warning::Loss(String::from("3 records of the file are damaged and were left out.")),
        ],
    }
}

/// This number of locks, which are waited for from many call sites.
pub(crate) fn many(count: u32) -> Profile {
    let mut profile = sample();
    for number in 0..100 {
        let function = format!("shard_{number}::update(Key const&, Value&&)");
        profile.call_sites.push(call_site(&[
            (&function, 500 + number),
            ("apply(Batch&)", 61),
            ("handle(Request&)", 220),
        ]));
    }
    profile.locks.clear();
    profile.pairs.clear();
    for id in 0..count {
        let call_sites: Vec<CallSiteId> =
            (0..8).map(|call_site| 9 + (id as usize * 7 + call_site * 13) % 100).collect();
        profile.pairs.extend(
            call_sites
                .windows(2)
                .map(|ends| pair(id, Role::Write, ends[0], Some(ends[1]), 40, 9_000 + u64::from(id))),
        );
        let of = Use {
            role: Role::Write,
            taken: 10_000 + u64::from(id),
            contended: 300,
            mean_wait: 9_000 + u64::from(id) * 3,
            mean_hold: 900,
            sites: call_sites,
        };
        profile.locks.push(lock(id, &format!("shard {id:04}"), Kind::Mutex, Some(8), vec![stats(of)]));
    }
    profile
}

/// Nothing was used.
pub(crate) fn nothing() -> Profile {
    let mut profile = sample();
    profile.locks.clear();
    profile.pairs.clear();
    profile.call_sites.clear();
    profile.threads.clear();
    profile
}
