//! Profiles of programs whose use of locks is known: what the recorder wrote is read as what happened, with
//! the names that the program's source has.

mod names;

use spinpark_fixtures::{Configuration, Run, compile_c};
use spinpark_profile::load;
use spinpark_profile::model::{LocksOf, Profile, RecordingEnd, Role};
use spinpark_profile::summary::summary;
use spinpark_profile::symbols::Symbols;

/// What the program says about a lock: it measured its times itself.
#[derive(Debug)]
struct Truth {
    role: Role,
    address: u64,
    acquisitions: u64,
    contended: u64,
    waited: u64,
    longest: u64,
    held: u64,
}

fn run(scene: &str, configuration: Configuration, detail: &str) -> (Profile, Vec<Truth>) {
    let directory = tempfile::tempdir().expect("a directory");
    let program = compile_c("truth.c", &[]);
    let outcome = Run::new(program)
        .arg(scene)
        .configuration(configuration)
        .profiled(directory.path(), detail)
        .succeed();
    let text = outcome.stdout_text().to_owned();
    let truths = text.lines().filter_map(|line| {
        let words: Vec<&str> = line.strip_prefix("lock ")?.split(' ').collect();
        let number = |at: usize| words[at].parse::<i64>().expect("a number").cast_unsigned();
        let role = match words[0] {
            "write" => Role::Write,
            "read" => Role::Read,
            "signal" => Role::Signal,
            _ => Role::Back,
        };
        Some(Truth {
            role,
            address: number(1),
            acquisitions: number(2),
            contended: number(3),
            waited: number(5),
            longest: number(6),
            held: number(7),
        })
    });
    let truths = truths.collect();
    let mut loaded = load::load(directory.path(), &mut Symbols::new()).expect("a recording");
    assert_eq!((loaded.profiles.len(), loaded.broken.len()), (1, 0));
    let profile = loaded.profiles.remove(0);
    assert_eq!(profile.ended, RecordingEnd::Exited);
    assert_eq!(profile.warnings, []);
    (profile, truths)
}

/// Within 5 %; 50 µs are nothing.
#[track_caller]
fn assert_near(what: &str, found: u64, truth: u64) {
    let allowed = found.max(truth) / 20 + 50_000;
    assert!(found.abs_diff(truth) <= allowed, "{what}: {found} ns in the profile, {truth} ns in truth");
}

fn check(profile: &Profile, truths: &[Truth]) {
    assert!(!truths.is_empty());
    for truth in truths {
        let lock = profile.locks.iter().find(|lock| lock.address == truth.address).expect("it was used");
        let stats = lock.role(truth.role).expect("in that role");
        assert_eq!(stats.acquisitions, truth.acquisitions, "{truth:?}");
        assert_eq!(stats.contended, truth.contended, "{truth:?}");
        assert_near("waited", stats.wait.total, truth.waited);
        assert_near("longest", stats.wait.longest, truth.longest);
        if truth.held > 0 {
            assert_near("held", stats.hold.total, truth.held);
            assert_eq!(stats.hold.total_error, 0, "everything was measured");
        }
        let at_sites: u64 = stats.sites.iter().map(|site| site.contended).sum();
        assert_eq!(at_sites, truth.contended, "every wait has a call site");
    }
}

#[track_caller]
fn check_blocking(profile: &Profile, role: Role, label: &str, waits: u64) {
    let name = |call_site: Option<usize>| call_site.map(|call_site| profile.call_sites[call_site].function());
    let pairs: Vec<_> = profile
        .pairs
        .iter()
        .filter(|pair| pair.role == role)
        .map(|pair| (name(Some(pair.waiter)), name(pair.holder), pair.count))
        .collect();
    assert_eq!(pairs, [(Some(String::from("waiter_site")), Some(String::from("holder_site")), waits)]);
    let lock = profile.lock(profile.pairs[0].lock).expect("it is in the profile");
    assert_eq!(lock.label, label, "the variable");
    let sites: u64 = lock.roles.iter().flat_map(|stats| &stats.sites).map(|site| site.blocked).sum();
    assert_eq!(sites, waits, "cnt_hold is real");
}

#[test]
fn mutexes() {
    for configuration in [Configuration::Glibc, Configuration::Spinpark] {
        let (profile, truths) = run("mutex", configuration, "full");
        check(&profile, &truths);
        check_blocking(&profile, Role::Write, "mutex", 20);
        let of =
            if matches!(configuration, Configuration::Glibc) { LocksOf::Glibc } else { LocksOf::Spinpark };
        assert_eq!(profile.locks_of, of);
        let summary = summary(&profile);
        let expected =
            "All waiting is on one mutex, `mutex`, held by `holder_site` while `waiter_site` waits.";
        assert_eq!(summary.headline, expected);
    }
}

#[test]
fn readers_and_writers() {
    let (profile, truths) = run("reader", Configuration::Glibc, "full");
    check(&profile, &truths);
    check_blocking(&profile, Role::Read, "rwlock", 20);
    let (profile, truths) = run("writer", Configuration::Glibc, "full");
    check(&profile, &truths);
    check_blocking(&profile, Role::Write, "rwlock", 20);
}

#[test]
fn condition_variables() {
    let (profile, truths) = run("cond", Configuration::Glibc, "full");
    for truth in truths.iter().filter(|truth| truth.role == Role::Signal) {
        assert_near("signals", profile.signal_wait(), truth.waited);
    }
    assert!(
        !summary(&profile).headline.contains("All waiting is on one mutex"),
        "waiting for work is not contention"
    );
}

#[test]
fn samples() {
    let (profile, truths) = run("samples", Configuration::Glibc, "sampled");
    let lock = profile.locks.iter().find(|lock| lock.address == truths[0].address).expect("it was used");
    let stats = lock.role(Role::Write).expect("it was locked");
    assert_eq!(stats.acquisitions, truths[0].acquisitions);
    // Whether the truth is inside the interval is chance, one time in twenty or more where a few holds were
    // preempted; that intervals cover is tested with times that are made. Here: that it is an estimate, of
    // all, and says so.
    assert!(stats.hold.is_estimate() && stats.hold.total_error > 0);
    assert!(stats.hold.measured.count < stats.acquisitions / 32);
    let mean = stats.hold.measured.total / stats.hold.measured.count;
    assert_near("mean", stats.hold.total / stats.acquisitions, mean);
}
