//! What the summary says besides: what the time waited was, and how to get names.

use spinpark_fixtures::recordings::{named, relabel, store};
use spinpark_profile::model::{
    Detail, LocksOf, Module, Observed, Profile, Rest, Role, Split, Threads, Unnamed,
};
use spinpark_profile::summary::summary;
use spinpark_profile::text::{self, Style};

fn profile() -> Profile {
    let scratch = tempfile::tempdir().expect("scratch space");
    named(store(), scratch.path())
}

const MS: u64 = 1_000_000;

/// A mutex that was held for `held` ms of 10 s, of which all was measured, and waited for 3 s: for `free` ms
/// of these it was free.
fn waited(held: u64, free: u64) -> Profile {
    let mut profile = profile();
    profile.detail = Detail::Full;
    let duration = profile.duration as f64;
    let stats = &mut profile.locks[0].roles[0];
    (stats.acquisitions, stats.contended) = (400, 200);
    (stats.wait.count, stats.wait.total) = (200, 3_000 * MS);
    stats.split = Split { held: (3_000 - free) * MS, free: free * MS, ..Split::default() };
    stats.hold.measured.count = 400;
    (stats.hold.measured.total, stats.hold.total, stats.hold.total_error) = (held * MS, held * MS, 0);
    stats.utilisation = Some((held * MS) as f64 / duration);
    profile
}

fn says(profile: &Profile) -> String {
    summary(profile).details.join(" ")
}

#[test]
fn a_busy_machine_is_not_too_many_threads() {
    let mut profile = waited(7_000, 2_000);
    let observed = |cpu_of_others| Observed {
        duration: profile.duration,
        interval: 20 * MS,
        cost: 0,
        cpu: 0,
        cpu_seen: 0,
        cpu_of_others: Some(cpu_of_others),
        seen: profile.duration,
        is_left: false,
        threads: Threads::default(),
        others: Vec::new(),
        rest: Rest::default(),
    };
    let (idle, busy) = (observed(100 * MS), observed(13_000 * MS));
    profile.observed = Some(idle);
    assert!(says(&profile).contains("(3 threads, 2 CPUs)"), "{}", says(&profile));
    profile.observed = Some(busy);
    let said = says(&profile);
    let words = ["(other programs used 65 % of the 2 CPUs)", "Record again while the machine is idle."];
    assert!(words.iter().all(|words| said.contains(words)), "{said}");
    assert!(!said.contains("Run fewer threads"), "{said}");
}

#[test]
fn the_time_waited_is_split() {
    let said = says(&waited(7_000, 60));
    let split = "Another thread held the lock for 98 % of this time. For 2.0 % it was free, while its next owner woke up.";
    assert!(said.contains(split), "{said}");
    assert!(!said.contains("of the run"), "{said}");
    let mut profile = waited(7_000, 0);
    assert!(
        says(&profile).contains("Another thread held the lock for all of this time."),
        "{}",
        says(&profile)
    );
    let split = &mut profile.locks[0].roles[0].split;
    (split.held, split.free, split.unknown) = (1_500 * MS, 900 * MS, 600 * MS);
    let said = says(&profile);
    assert!(
        said.contains("for 50 % of this time. For 30 % it was free")
            && said.contains("; for 20 % that is not known."),
        "{said}"
    );
    let split = &mut profile.locks[0].roles[0].split;
    (split.held, split.free, split.unknown) = (0, 900 * MS, 2_100 * MS);
    let said = says(&profile);
    assert!(
        said.contains("For 70 % of this time it is not known whether the lock was held or free."),
        "{said}"
    );
    assert!(!said.contains("woken"), "{said}");
}

#[test]
fn a_lock_that_is_free_while_threads_wait() {
    let said = says(&waited(4, 2_988));
    let free = "For more than 99 % of this time (2.988 s) no thread held the lock: its next owners woke late (2.5 % of the waits \
                slept), or had no CPU (3 threads, 2 CPUs). For 0.40 % another thread held it. Run fewer threads; `spinpark \
                compare` shows whether other locks help.";
    assert!(said.contains(free), "{said}");
}

#[test]
fn a_lock_that_is_always_held() {
    let limit = "of the run: no more throughput without shorter sections.";
    let mut profile = waited(9_800, 60);
    assert!(says(&profile).contains(&format!("It was held 98 % {limit}")), "{}", says(&profile));
    // Some holds were not measured.
    profile.detail = Detail::Contended;
    profile.locks[0].roles[0].hold.measured.count = 300;
    assert!(says(&profile).contains(&format!("It was held at least 98 % {limit}")), "{}", says(&profile));
    profile.detail = Detail::Sampled;
    profile.locks[0].roles[0].hold.measured.total = 150 * MS;
    assert!(says(&profile).contains(&format!("It was held about 98 % {limit}")), "{}", says(&profile));
    assert!(!says(&waited(8_900, 60)).contains(limit));
}

#[test]
fn holders_without_a_cpu() {
    let mut profile = waited(7_000, 600);
    let split = &mut profile.locks[0].roles[0].split;
    (split.watched, split.no_cpu) = (300 * MS, 150 * MS);
    let said = says(&profile);
    let part = "For about 40 % of this time the holder was ready to run, but had no CPU (3 threads, 2 CPUs).";
    assert!(said.contains(part), "{said}");
    // Every wait was watched.
    let split = &mut profile.locks[0].roles[0].split;
    (split.watched, split.no_cpu) = (2_400 * MS, 1_200 * MS);
    assert!(says(&profile).contains("For 40 % of this time the holder"), "{}", says(&profile));
    // Little, or not known.
    for (watched, no_cpu) in [(2_400, 100), (2, 2), (0, 0)] {
        let split = &mut profile.locks[0].roles[0].split;
        (split.watched, split.no_cpu) = (watched * MS, no_cpu * MS);
        assert!(!says(&profile).contains("had no CPU"), "{}", says(&profile));
    }
}

#[test]
fn what_is_not_known_is_not_reported() {
    let changes: [fn(&mut Profile); 3] = [
        |profile| profile.locks_of = LocksOf::Library,
        |profile| profile.dropped = 1,
        |profile| profile.locks[0].roles[0].split = Split::default(),
    ];
    for change in changes {
        let mut profile = waited(9_800, 60);
        change(&mut profile);
        assert!(!says(&profile).contains("Another thread held"), "{}", says(&profile));
    }
}

#[test]
fn where_a_lock_was_released_stands_in_for_where_it_was_taken() {
    let mut profile = profile();
    profile.pairs.iter_mut().for_each(|pair| pair.is_release = true);
    let said = summary(&profile).headline;
    assert!(said.contains(", released in `store_update`"), "{said}");
    let table = text::blocking(&profile, Style::PLAIN);
    assert!(table.contains("(release)"), "{table}");
}

fn stripped() -> Profile {
    let mut profile = profile();
    for frame in profile.call_sites.iter_mut().flat_map(|call_site| &mut call_site.frames) {
        (frame.function, frame.source) = (None, None);
        frame.module = String::from("a_server_with_a_rather_long_name_of_its_own");
        frame.offset += 0x12_3000;
    }
    let path = String::from("/opt/a_server_with_a_rather_long_name_of_its_own");
    profile.modules = vec![Module { path, build_id: None, unnamed: Some(Unnamed::Stripped) }];
    relabel(&mut profile);
    profile
}

#[test]
fn code_without_names() {
    let hint =
        |profile: &Profile| summary(profile).details.iter().find(|detail| detail.contains("-g")).cloned();
    assert_eq!(hint(&profile()), None);
    let mut profile = stripped();
    assert_eq!(
        hint(&profile).expect("all of it"),
        "Functions in `a_server_with_a_rather_long_name_of_its_own` have no names, because it is stripped. Install its debug \
         package (`-dbgsym`, `-debuginfo`), or set `DEBUGINFOD_URLS`, and report the recording's file \
         `4242-1795305600000.spinprof` again; or build your own program with -g, unstripped, and record it again."
    );
    // Addresses are whole, however narrow it is.
    for width in [80, 100] {
        let report = text::report(&profile, Style { width, ..Style::PLAIN });
        assert!(report.lines().all(|line| line.chars().count() <= width), "{report}");
        for address in ["+0x124110", "+0x124220", "+0x124330", "+0x124550"] {
            assert!(report.contains(address), "{address} at {width}: {report}");
        }
    }
    insta::assert_snapshot!(text::blocking(&profile, Style { width: 80, ..Style::PLAIN }));
    // Not for a little, and not of code that is in no file.
    let flush = profile.pairs.iter().find(|pair| pair.role == Role::Write).expect("it waited").waiter;
    profile.modules[0].path = String::from("[anonymous]");
    assert_eq!(hint(&profile), None);
    // The true reason.
    for (why, says) in [
        (Unnamed::Gone, "deleted before the report"),
        (Unnamed::Replaced, "replaced by another build"),
        (Unnamed::Unreadable(String::from("Permission denied")), "not readable: Permission denied"),
        (Unnamed::NotElf, "no ELF file"),
        (Unnamed::NoSymbol, "none for this code"),
    ] {
        let mut profile = stripped();
        profile.modules[0].unnamed = Some(why);
        let details = summary(&profile).details;
        let told = details.iter().filter(|detail| detail.contains(says)).count();
        assert_eq!(
            (told, details.iter().any(|detail| detail.contains("stripped"))),
            (1, false),
            "{details:?}"
        );
    }
    let mut little = self::profile();
    let lookup = little.pairs.iter().find(|pair| pair.role == Role::Read).expect("it waited").waiter;
    assert_ne!(flush, lookup);
    little.call_sites[lookup].frames[0].function = None;
    little.modules = vec![Module {
        path: String::from("/opt/store/store"),
        build_id: None,
        unnamed: Some(Unnamed::Stripped),
    }];
    assert_eq!(hint(&little), None);
}

#[test]
fn locks_that_differ_by_their_line_look_different() {
    let mut profile = profile();
    let long = "make_the_locks_of_a_session";
    for (number, lock) in profile.locks.iter_mut().filter(|lock| lock.label.contains("shard_new")).enumerate()
    {
        lock.label = format!("mutex of {long} (session.c:{})", 100 + number);
    }
    for width in [80, 100] {
        let style = Style { width, ..Style::PLAIN };
        let tables = [text::locks, text::sites, text::freebsd].map(|table| table(&profile, style));
        assert!(tables[..2].iter().flat_map(|table| table.lines()).all(|line| line.chars().count() <= width));
        for table in tables {
            for line in ["100", "101", "102"] {
                let has = |row: &&str| row.contains(&format!(":{line}"));
                assert_eq!(table.lines().filter(has).count(), 1, "{line}: {table}");
            }
        }
    }
    insta::assert_snapshot!(text::locks(&profile, Style { width: 80, ..Style::PLAIN }));
}
