//! What the summary says besides: that holders are not why, and how to get names.

use spinpark_profile::model::{Detail, LocksOf, Module, Profile, Role, Unnamed};
use spinpark_profile::summary::summary;
use spinpark_profile::text::{self, Style};
use spinpark_testkit::recordings::{named, relabel, store};

fn profile() -> Profile {
    let scratch = tempfile::tempdir().expect("scratch space");
    named(store(), scratch.path())
}

const MS: u64 = 1_000_000;

/// A mutex that was held 400 times for 10 µs each and waited for 200 times, 15 ms each.
fn late(detail: Detail) -> Profile {
    let mut profile = profile();
    profile.detail = detail;
    let stats = &mut profile.locks[0].roles[0];
    (stats.acquisitions, stats.contended, stats.longest_queue) = (400, 200, 3);
    (stats.wait.count, stats.wait.total) = (200, 3_000 * MS);
    stats.hold.measured.count = 400;
    (stats.hold.measured.total, stats.hold.total, stats.hold.total_error) = (4 * MS, 4 * MS, 0);
    profile
}

fn sentence(profile: &Profile) -> Option<String> {
    let is_it = |detail: &&String| detail.contains("lock was free");
    summary(profile).details.iter().find(is_it).cloned()
}

#[test]
fn holders_do_not_explain_the_waiting() {
    // Holders explain at most 3 × (4 ms + 400 × 200 ns).
    let said = sentence(&late(Detail::Full)).expect("it is clear");
    assert_eq!(
        said,
        "Its holders explain at most 12.2 ms of this waiting: it was held for 4.00 ms (plus 0.2 µs per acquisition, not \
         measured), with at most 3 threads waiting. For the other 2.988 s or more, the lock was free: its next owners woke late \
         (2.5 % of the waits slept), or had no CPU (3 threads, 2 CPUs). Run fewer threads; `spinpark compare` shows whether other \
         locks help."
    );
}

#[test]
fn holders_may_explain_the_waiting() {
    // As recorded: seven seconds held.
    assert_eq!(sentence(&profile()), None);
    let changes: [fn(&mut Profile); 8] = [
        |profile| profile.locks[0].roles[0].hold.total = 600 * MS,
        // The other holds are not known.
        |profile| profile.locks[0].roles[0].hold.measured.count = 300,
        |profile| {
            profile.locks[0].roles[0].hold.measured.count = 399;
            profile.locks[0].roles[0].outcomes.timed_out = 1;
        },
        |profile| profile.locks_of = LocksOf::Library,
        |profile| profile.dropped = 1,
        |profile| profile.locks[0].roles[0].outcomes.still_waiting = 1,
        |profile| profile.locks[0].roles[0].longest_queue = 0,
        // Many short sections.
        |profile| {
            let stats = &mut profile.locks[0].roles[0];
            (stats.acquisitions, stats.hold.measured.count) = (4_000_000, 4_000_000);
        },
    ];
    for (number, change) in changes.into_iter().enumerate() {
        let mut profile = late(Detail::Full);
        change(&mut profile);
        assert_eq!(sentence(&profile), None, "change {number}");
    }
}

/// A holder that lost its CPU is rarely in a sample.
#[test]
fn without_all_holds_both_causes_are_possible() {
    let mut profile = late(Detail::Contended);
    profile.locks[0].roles[0].hold.measured.count = 200;
    profile.locks[0].roles[0].hold.measured.total = 2 * MS;
    assert_eq!(
        sentence(&profile).expect("it is much"),
        "The measured holds explain at most 12.2 ms of this waiting (10.0 µs on average, at most 3 threads waiting). Either \
         unmeasured holds were long, for example because holders lost their CPU (3 threads, 2 CPUs), or the lock was free and \
         threads woke late (2.5 % of the waits slept). Record with `--detail full` to find out which."
    );
    // All of them had waited.
    profile.locks[0].roles[0].acquisitions = 200;
    assert!(sentence(&profile).expect("it is clear").starts_with("Its holders explain at most"));
    // The upper end of an estimate counts.
    let mut sampled = late(Detail::Sampled);
    let hold = &mut sampled.locks[0].roles[0].hold;
    (hold.measured.count, hold.total_error) = (20, 6 * MS);
    assert!(
        sentence(&sampled).expect("it is much").starts_with("The measured holds explain at most 30.2 ms of")
    );
    sampled.locks[0].roles[0].hold.total_error = 600 * MS;
    assert_eq!(sentence(&sampled), None);
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
         package (`-dbgsym`, `-debuginfo`) and run `spinpark report DIR/4242-1795305600000.spinprof`; or build your own program with -g, \
         unstripped, and record it again."
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
