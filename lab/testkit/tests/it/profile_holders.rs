//! The holders of locks, where they are known by construction: what pairs, splits and sentences say.

use std::collections::BTreeMap;
use std::path::Path;

use spinpark_profile::model::{Detail, Pair, Profile, Role};
use spinpark_profile::read;
use spinpark_profile::summary::summary;
use spinpark_profile::symbols::Symbols;
use spinpark_testkit::profiled::recordings;
use spinpark_testkit::{Configuration, Run, both_configurations, compile_c};

/// What the program has measured itself, ns.
struct Truth {
    waited: f64,
    /// By function.
    held: BTreeMap<String, f64>,
    used: f64,
    /// For how long threads were preempted between their own reading of the clock and the recorder's.
    unsure: f64,
}

fn run(directory: &Path, scene: &str, configuration: Configuration, detail: &str) -> (Profile, Truth) {
    let program = compile_c("profile/holders.c", &[]);
    let outcome =
        Run::new(program).arg(scene).configuration(configuration).profiled(directory, detail).succeed();
    let mut truth = Truth { waited: 0.0, held: BTreeMap::new(), used: 0.0, unsure: 0.0 };
    for line in outcome.stdout_text().lines() {
        let words: Vec<&str> = line.split(' ').collect();
        let ns: f64 = words[words.len() - 1].parse().expect("a number");
        match words[0] {
            "waited" => truth.waited = ns,
            "held" => *truth.held.entry(words[1].to_owned()).or_default() += ns,
            "used" => truth.used = ns,
            "unsure" => truth.unsure = ns,
            other => panic!("a line: {other}"),
        }
    }
    let files = recordings(directory);
    assert_eq!(files.len(), 1, "{files:?}");
    let file = read::Recording::open(&files[0]).expect("a recording");
    (read::profile(&file, &mut Symbols::new()), truth)
}

/// Both within 5 % of the larger one, 5 ms, and what is unsure.
#[track_caller]
fn assert_near(what: &str, found: f64, truth: f64, unsure: f64, context: &str) {
    let allowed = 0.05 * truth.max(found) + 5e6 + unsure;
    assert!(
        (found - truth).abs() <= allowed,
        "{what}: {found} ns recorded, {truth} ± {unsure} ns in truth\n{context}"
    );
}

fn function(profile: &Profile, pair: &Pair) -> String {
    let site = pair.holder.map(|holder| profile.call_sites[holder].function());
    site.unwrap_or_else(|| String::from("not known"))
}

/// Pairs, splits and the utilisation say what the program has measured.
fn check_truth(profile: &Profile, truth: &Truth) {
    let context = format!("{:?}\n{:#?}\n{:?}", summary(profile), profile.pairs, truth.held);
    let locks = || profile.locks.iter().flat_map(|lock| &lock.roles).filter(|stats| stats.role.is_lock());
    let waited: u64 = locks().map(|stats| stats.wait.total).sum();
    assert_near("waited", waited as f64, truth.waited, truth.unsure, &context);
    let mut held: BTreeMap<String, f64> = BTreeMap::new();
    for pair in profile.pairs.iter().filter(|pair| pair.role.is_lock()) {
        *held.entry(function(profile, pair)).or_default() += (pair.wait_total - pair.free) as f64;
    }
    for (name, ns) in &truth.held {
        assert_near(name, held.get(name).copied().unwrap_or_default(), *ns, truth.unsure, &context);
    }
    for name in held.keys().filter(|name| !truth.held.contains_key(*name)) {
        assert_near(name, held[name], 0.0, truth.unsure, &context);
    }
    // The parts are the whole.
    for stats in locks() {
        let split = stats.split;
        let parts = split.held + split.free + split.unknown;
        assert!(parts.abs_diff(stats.wait.total) <= 3, "{split:?} {}", stats.wait.total);
        assert_near("not known", split.unknown as f64, 0.0, truth.unsure, &context);
        if stats.wait.total == 0 {
            continue; // a lock that no thread waited for has no pairs
        }
        let of_role = |pair: &&Pair| pair.role == stats.role;
        let pairs: u64 = profile.pairs.iter().filter(of_role).map(|pair| pair.wait_total).sum();
        assert_near("pairs", pairs as f64, stats.wait.total as f64, truth.unsure, &context);
    }
    let split_held: u64 = locks().map(|stats| stats.split.held).sum();
    assert_near("held", split_held as f64, truth.held.values().sum(), truth.unsure, &context);
    let used: f64 = locks().filter_map(|stats| stats.utilisation).sum::<f64>() * profile.duration as f64;
    if profile.detail == Detail::Full {
        assert_near("used", used, truth.used, truth.unsure, &context);
    } else {
        assert!(
            used <= 1.05 * truth.used + 5e6 + truth.unsure,
            "a lower bound: {used} of {}\n{context}",
            truth.used
        );
    }
}

/// The scene with these details, the sentence with `contended` and that with `full`.
fn check_scene(directory: &Path, scene: &str, configuration: Configuration, says: [&str; 2]) {
    for (detail, says) in ["contended", "full"].into_iter().zip(says) {
        let directory = directory.join(detail);
        let (profile, truth) = run(&directory, scene, configuration, detail);
        check_truth(&profile, &truth);
        let summary = summary(&profile);
        assert!(summary.headline.contains(says), "{says}: {summary:#?}");
        let split = summary.details.iter().any(|text| text.starts_with("Another thread held the lock for"));
        assert!(split, "{summary:#?}");
    }
}

both_configurations! {
    taken_before_the_first_wait = |directory, configuration| check_scene(directory, "first-wait", configuration, [
        "All waiting is on one mutex, `mutex`, released in `first_holder` while `waiter` waits",
        "All waiting is on one mutex, `mutex`, held by `first_holder` while `waiter` waits",
    ]);
    taken_for_writing_before_the_first_wait = |directory, configuration| check_scene(directory, "first-write", configuration, [
        "All waiting is on one rwlock, `rwlock`, released in `first_writer` while `reader` waits",
        "All waiting is on one rwlock, `rwlock`, held by `first_writer` while `reader` waits",
    ]);
    taken_for_reading_before_the_first_wait = |directory, configuration| check_scene(directory, "first-read", configuration, [
        "All waiting is on one rwlock, `rwlock`, released in `first_reader` while `writer` waits",
        "All waiting is on one rwlock, `rwlock`, held by `first_reader` while `writer` waits",
    ]);
    a_writer_waits_for_the_last_of_the_readers = |directory, configuration| check_scene(directory, "readers", configuration, [
        "All waiting is on one rwlock, `rwlock`, released in `late_reader` while `writer` waits",
        "All waiting is on one rwlock, `rwlock`, held by `late_reader` while `writer` waits",
    ]);
    a_round_in_which_each_waits_for_all_before_it = |directory, configuration| {
        for detail in ["sampled", "contended", "full"] {
            let (profile, truth) = run(&directory.join(detail), "round", configuration, detail);
            check_truth(&profile, &truth);
            // On a busy machine the starter has it for longer, perhaps, while it awaits the others.
            let (longest, _) = truth.held.iter().max_by(|a, b| a.1.total_cmp(b.1)).expect("a holder");
            let says = format!("All waiting is on one mutex, `mutex`, held by `{longest}`");
            let summary = summary(&profile);
            assert!(summary.headline.contains(&says), "{says}: {summary:#?}");
        }
    };
    released_by_another_thread = |directory, configuration| {
        for detail in ["contended", "full"] {
            let (profile, truth) = run(&directory.join(detail), "given-away", configuration, detail);
            let waited: u64 = profile.pairs.iter().filter(|pair| pair.role == Role::Write).map(|pair| pair.wait_total).sum();
            assert_near("waited", waited as f64, truth.waited, truth.unsure, &format!("{:#?}", profile.pairs));
            // Where it was taken, or where it was released: either is true.
            let first = function(&profile, &profile.pairs[0]);
            assert!(["taker", "releaser"].contains(&first.as_str()), "{first}");
        }
    };
}
