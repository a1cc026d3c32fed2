//! Names that a reader knows, of programs that were recorded: stripped libraries, plugins that come and go,
//! files that vanish.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use spinpark_fixtures::{Configuration, Run, compile_c};
use spinpark_profile::keeper::Keeper;
use spinpark_profile::load;
use spinpark_profile::model::{Profile, Unnamed};
use spinpark_profile::summary::summary;
use spinpark_profile::symbols::Symbols;

fn run(program: &Path, directory: &Path) -> Run {
    Run::new(program).configuration(Configuration::Glibc).profiled(directory, "contended")
}

fn load(directory: &Path, symbols: &mut Symbols) -> Profile {
    let mut loaded = load::load(directory, symbols).expect("a recording");
    assert_eq!((loaded.profiles.len(), loaded.broken.len()), (1, 0));
    loaded.profiles.remove(0)
}

/// The program that waits in `move_money`, as a file of its own.
fn copy_to(directory: &Path) -> PathBuf {
    let copy = directory.join("bank");
    fs::copy(compile_c("names_threads.c", &[]), &copy).expect("a copy");
    copy
}

fn wait_total(profile: &Profile, function: &str) -> u64 {
    let is_it = |waiter: usize| profile.call_sites[waiter].function() == function;
    profile.pairs.iter().filter(|pair| is_it(pair.waiter)).map(|pair| pair.wait_total).sum()
}

#[test]
fn a_stripped_library_is_named_by_what_calls_it() {
    let scratch = tempfile::tempdir().expect("scratch space");
    let library = scratch.path().join("libshelf.so.1.2.3");
    let built = compile_c("names_library.c", &["-shared", "-fPIC", "-s", "-Wl,-soname,libshelf.so.1.2.3"]);
    fs::copy(built, &library).expect("a copy");
    let place = format!("-Wl,-rpath,{}", scratch.path().display());
    let linked = library.display().to_string();
    let program = compile_c("names_threads.c", &["-DCALL=shelf_put", &linked, &place]);
    let recording = scratch.path().join("recording");
    run(&program, &recording).succeed();
    let profile = load(&recording, &mut Symbols::with_debug_directories(&[]));
    assert!(wait_total(&profile, "shelf_put → libshelf.so") > 0, "{:?}", profile.call_sites);
    let summary = summary(&profile);
    assert!(summary.headline.contains("`shelf_put`, called by `copier`"), "{summary:?}");
    let hint = summary.details.iter().find(|detail| detail.contains("stripped"));
    assert!(hint.is_some_and(|hint| hint.contains("`libshelf.so.1.2.3`")), "{summary:?}");
}

#[test]
fn plugins_at_the_same_addresses_are_told_apart() {
    let scratch = tempfile::tempdir().expect("scratch space");
    let plugin = |name: &str| {
        let (update, lock) = (format!("-DUPDATE={name}_update"), format!("-DLOCK={name}_lock"));
        compile_c("names_plugin.c", &["-shared", "-fPIC", &update, &lock])
    };
    let host = compile_c("names_host.c", &["-ldl"]);
    let outcome = run(&host, scratch.path()).args([plugin("alpha"), plugin("omega")]).succeed();
    let text = outcome.stdout_text();
    let places: Vec<&str> = text.lines().collect();
    if places[0] != places[1] {
        println!("skipped: the plugins got different addresses: {places:?}");
        return;
    }
    let profile = load(scratch.path(), &mut Symbols::new());
    let locks: BTreeMap<&str, u64> =
        profile.locks.iter().map(|lock| (lock.label.as_str(), lock.lock_wait())).collect();
    for plugin in ["alpha", "omega"] {
        assert!(wait_total(&profile, &format!("{plugin}_update")) > 0, "{:?}", profile.call_sites);
        assert!(locks.get(&*format!("{plugin}_lock")).is_some_and(|waited| *waited > 0), "{locks:?}");
    }
}

#[test]
fn a_program_that_was_removed_has_the_names_of_its_open_file() {
    let scratch = tempfile::tempdir().expect("scratch space");
    let program = copy_to(scratch.path());
    let recording = scratch.path().join("recording");
    let keeper = Keeper::start(&recording);
    let is_ready = scratch.path().join("ready");
    let running = run(&program, &recording).arg(&is_ready).spawn();
    while !is_ready.exists() {
        assert!(!running.has_ended(), "it stays");
        std::thread::sleep(Duration::from_millis(5));
    }
    let kept = keeper.stop();
    fs::remove_file(&program).expect("it is ours");
    drop(running);
    let profile = load(&recording, &mut Symbols::new().with_kept(kept));
    assert!(wait_total(&profile, "move_money") > 0, "{:?}", profile.call_sites);
    assert_eq!(profile.locks[0].label, "account_lock");
    // Without that file, the true reason.
    let profile = load(&recording, &mut Symbols::new());
    assert_eq!(wait_total(&profile, "move_money"), 0);
    let bank = profile.modules.iter().find(|module| module.path.ends_with("/bank")).expect("it is named");
    assert_eq!(bank.unnamed, Some(Unnamed::Gone));
    let details = summary(&profile).details;
    assert!(details.iter().any(|detail| detail.contains("deleted before the report")), "{details:?}");
    assert!(!details.iter().any(|detail| detail.contains("stripped")), "{details:?}");
}

#[test]
fn the_file_that_replaced_a_program_does_not_name_it() {
    let scratch = tempfile::tempdir().expect("scratch space");
    let program = copy_to(scratch.path());
    let recording = scratch.path().join("recording");
    run(&program, &recording).succeed();
    // A package upgrade: another build takes the name, and is as old as its package says.
    let next = scratch.path().join("next");
    fs::copy(compile_c("names_threads.c", &["-Dmove_money=paint_zebra"]), &next).expect("a copy");
    fs::rename(&next, &program).expect("it is ours");
    let profile = load(&recording, &mut Symbols::new());
    assert_eq!(wait_total(&profile, "move_money") + wait_total(&profile, "paint_zebra"), 0);
    let bank = profile.modules.iter().find(|module| module.path.ends_with("/bank")).expect("it is named");
    assert_eq!(bank.unnamed, Some(Unnamed::Replaced));
    assert!(bank.build_id.is_some(), "the build that ran");
}

#[test]
fn calls_that_an_auditor_traces_come_from_the_program() {
    let scratch = tempfile::tempdir().expect("scratch space");
    let auditor = compile_c("names_audit.c", &["-shared", "-fPIC", "-Wno-unused"]);
    // Bound at the first call, or there is no PLT to trace.
    let program = compile_c("names_threads.c", &["-Wl,-z,lazy"]);
    run(&program, scratch.path()).env("LD_AUDIT", auditor).succeed();
    let profile = load(scratch.path(), &mut Symbols::new());
    assert!(wait_total(&profile, "move_money") > 0, "{:?}", profile.call_sites);
    let names = profile.call_sites.iter().map(|call_site| call_site.function());
    assert!(names.clone().all(|name| !name.starts_with("_dl_")), "{:?}", names.collect::<Vec<_>>());
}
