//! Recordings of waits that are none for libc's own locks: futexes of runtimes, semaphores, barriers, joins.
//! Each program waits a known number of times and measures for how long; the report says what for.
//!
//! A library that is not installed is skipped and named; with `SPINPARK_REQUIRE_PROGRAMS=1` its test fails.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Once;

use spinpark_profile::load;
use spinpark_profile::model::{CallSiteId, Kind, Lock, Pair, Profile, RecordingEnd, Role, RoleStats};
use spinpark_profile::summary::summary;
use spinpark_profile::symbols::Symbols;
use spinpark_testkit::profiled::{Recording, recordings};
use spinpark_testkit::programs::skipped;
use spinpark_testkit::{Configuration, Run, compile_c, find_program, scratch_dir};

/// What a program said of its waits.
#[derive(Clone, Copy, Debug)]
struct Truth {
    waits: u64,
    /// The waiter was seen asleep for so long, ns.
    least: f64,
    /// Its calls took so long: it may not sleep at once, and has to get a CPU.
    most: f64,
}

/// A scene of a program, recorded and read.
struct Scene {
    profile: Profile,
    truth: Truth,
}

/// Runs a scene; none if its program says that the machine has no such call.
fn record(run: Run, configuration: Configuration, detail: &str) -> Option<Scene> {
    let directory = tempfile::tempdir().expect("a directory");
    let outcome = run.configuration(configuration).profiled(directory.path(), detail).succeed();
    let text = outcome.stdout_text();
    if text == "absent\n" {
        eprintln!("skipped: this kernel has no such call");
        return None;
    }
    let words: Vec<&str> = text.split_whitespace().collect();
    let ["waits", waits, least, most] = words[..] else { panic!("not what it measured: {text}") };
    let number = |word: &str| word.parse::<u64>().expect("a number");
    let truth = Truth { waits: number(waits), least: number(least) as f64, most: number(most) as f64 };
    let loaded = load::load(directory.path(), &mut Symbols::new()).expect("a recording");
    assert_eq!((loaded.profiles.len(), loaded.broken.len()), (1, 0));
    let profile = loaded.profiles.into_iter().next().expect("one");
    assert_eq!((profile.ended, profile.dropped, profile.nested), (RecordingEnd::Exited, 0, 0));
    Some(Scene { profile, truth })
}

/// What a scene's waits are for.
#[derive(Clone, Copy, Debug)]
struct Expected<'a> {
    kind: Kind,
    role: Role,
    /// What the object is called, if only its stack tells what it is.
    name: Option<&'a str>,
    objects: Objects,
    /// The function that waits.
    waits: &'a str,
    /// The function that ends the wait.
    lets_go: &'a str,
    is_known: Known,
}

/// How many objects there are.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Objects {
    One,
    /// A new one each round, or some of the library's own.
    Several,
}

/// Of how many waits it is known which function ended them.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Known {
    All,
    Some,
    No,
}

/// By function.
fn sums(counts: impl Iterator<Item = (String, u64)>) -> BTreeMap<String, u64> {
    let mut sums = BTreeMap::new();
    for (function, count) in counts.filter(|(_, count)| *count > 0) {
        *sums.entry(function).or_default() += count;
    }
    sums
}

impl Scene {
    #[track_caller]
    fn check(&self, expected: &Expected<'_>) {
        let found = self.waited_for(expected);
        let shown = || format!("{expected:?}\n{:?}\n{}", self.truth, self.shown());
        assert!(expected.objects == Objects::Several || found.len() == 1, "{}", shown());
        let contended: u64 = found.iter().map(|(_, stats)| stats.contended).sum();
        let count: u64 = found.iter().map(|(_, stats)| stats.wait.count).sum();
        assert_eq!((contended, count), (self.truth.waits, self.truth.waits), "{}", shown());
        let waited = found.iter().map(|(_, stats)| stats.wait.total).sum::<u64>() as f64;
        // Of waits that end at their deadlines, the other thread's measure is no bound: it may run late.
        let least = self.truth.least.min(self.truth.most);
        let is_true = (0.95 * least..=1.05 * self.truth.most).contains(&waited);
        assert!(is_true, "{waited} ns: {}", shown());
        let sites = found.iter().flat_map(|(_, stats)| &stats.sites);
        let sites = sums(sites.map(|site| (self.function(site.call_site), site.contended)));
        let one = |function: &str| BTreeMap::from([(function.to_owned(), self.truth.waits)]);
        assert_eq!(sites, one(expected.waits), "{}", shown());
        let is_of_one = |pair: &&Pair| found.iter().any(|(lock, _)| lock.id == pair.lock);
        let holder = |holder: Option<CallSiteId>| holder.map_or_else(String::new, |it| self.function(it));
        let pairs = self.profile.pairs.iter().filter(is_of_one);
        let mut pairs = sums(pairs.map(|pair| (holder(pair.holder), pair.count)));
        match expected.is_known {
            Known::All => assert_eq!(pairs, one(expected.lets_go), "{}", shown()),
            Known::Some => {
                pairs.retain(|function, _| !function.is_empty() && function != expected.lets_go);
                assert_eq!(pairs, BTreeMap::new(), "{}", shown());
            }
            Known::No => {}
        }
        self.check_summary(expected);
    }

    /// The first sentence names both functions of a lock, and calls nothing else one.
    #[track_caller]
    fn check_summary(&self, expected: &Expected<'_>) {
        let summary = summary(&self.profile);
        let headline = &summary.headline;
        let is_unclear = headline.contains("for locks or for work");
        assert_eq!(is_unclear, expected.role == Role::Wake, "{headline}\n{}", self.shown());
        let is_lock = matches!(expected.role, Role::Write | Role::Read);
        // A barrier of Rust's has a mutex, which its threads may wait for.
        let is_much = self.profile.lock_wait() as f64 > 0.05 * self.truth.least;
        assert_eq!(is_much, is_lock, "{headline}\n{}", self.shown());
        if is_lock {
            assert!(headline.contains(&format!("`{}` waits", expected.waits)), "{headline}");
            let is_named = headline.contains(&format!("`{}`", expected.lets_go));
            assert!(is_named || expected.is_known != Known::All, "{headline}");
        }
    }

    fn waited_for(&self, expected: &Expected<'_>) -> Vec<(&Lock, &RoleStats)> {
        let is_it = |lock: &&Lock| lock.kind == expected.kind && lock.type_name.as_deref() == expected.name;
        let locks = self.profile.locks.iter().filter(is_it);
        let of_one = self.truth.least / self.truth.waits as f64;
        locks
            .filter_map(|lock| Some((lock, lock.role(expected.role)?)))
            .filter(|(_, stats)| stats.contended > 0)
            // A queue may have a lock of its own, which is waited for shortly.
            .filter(|(_, stats)| stats.wait.total as f64 > 0.5 * stats.contended as f64 * of_one)
            .collect()
    }

    /// The innermost function of a call site, without what follows its name, and the library without names
    /// that it called.
    fn function(&self, call_site: CallSiteId) -> String {
        let function = self.profile.call_sites[call_site].function();
        let function = function.split(" → ").next().unwrap_or_default();
        let end = function.rfind('(').filter(|at| *at > 0).unwrap_or(function.len());
        function[..end].to_owned()
    }

    fn shown(&self) -> String {
        let mut text = format!("{:#?}\n", summary(&self.profile));
        for lock in self.profile.locks.iter().take(3) {
            for stats in &lock.roles {
                text += &format!(
                    "{} {:?} {:?} {:?}: {} waits, {} ns\n",
                    lock.label, lock.kind, lock.type_name, stats.role, stats.contended, stats.wait.total
                );
                for site in &stats.sites {
                    text += &format!("    {} in {}\n", site.contended, self.stack(site.call_site));
                }
            }
            for pair in self.profile.pairs.iter().filter(|pair| pair.lock == lock.id) {
                let holder = pair.holder.map_or("not known".to_owned(), |holder| self.stack(holder));
                text += &format!("    {} for {holder}\n", pair.count);
            }
        }
        text
    }

    fn stack(&self, call_site: CallSiteId) -> String {
        let frames = &self.profile.call_sites[call_site].frames;
        let functions = frames.iter().take(8).map(|frame| frame.function.as_deref().unwrap_or("?"));
        functions.collect::<Vec<_>>().join(" < ")
    }
}

/// A program built in one way.
type Build = fn(BuildStyle) -> Option<PathBuf>;

/// How a program is built: what its stacks look like.
#[derive(Clone, Copy, Debug, PartialEq)]
enum BuildStyle {
    /// With debug information, which has inlined functions.
    Optimised,
    /// Without: inlined functions are not seen.
    WithoutDebugInformation,
    /// Inlined functions have names without modules and types.
    LineTables,
    /// Nothing is inlined.
    Plain,
}

impl BuildStyle {
    /// For a compiler of C or C++, after `-O2 -g`.
    fn flag(self) -> &'static str {
        match self {
            BuildStyle::Optimised => "-O2",
            BuildStyle::WithoutDebugInformation => "-g0",
            BuildStyle::LineTables => "-g1",
            BuildStyle::Plain => "-O0",
        }
    }
}

/// A scene in all ways, as recordings are by default, and with all that can be recorded; with the drop-in
/// beside it.
fn in_all_ways(build: Build, scene: &str, check: impl Fn(&Scene)) {
    for (way, configuration, detail) in [
        (BuildStyle::Optimised, Configuration::Glibc, "contended"),
        (BuildStyle::WithoutDebugInformation, Configuration::Glibc, "contended"),
        (BuildStyle::LineTables, Configuration::Glibc, "full"),
        (BuildStyle::Plain, Configuration::Spinpark, "full"),
    ] {
        let Some(program) = build(way) else { return };
        eprintln!("{way:?}");
        if let Some(scene) = record(Run::new(program).arg(scene), configuration, detail) {
            check(&scene);
        }
    }
}

/// Scenes of a program: `scene = kind, role, name, whether it is known who ends its waits;`
macro_rules! scenes {
    ($program:ident, $prefix:literal, $separator:literal, $waits:literal: $($scene:ident = $kind:ident, $role:ident, $name:expr, $objects:ident, $known:ident;)*) => {$(
        #[test]
        fn $scene() {
            let name: Option<&str> = $name;
            let function = |what: &str| format!("{}{}{}{what}", $prefix, stringify!($scene), $separator);
            let expected = Expected {
                kind: Kind::$kind,
                role: Role::$role,
                name,
                objects: Objects::$objects,
                waits: &function($waits),
                lets_go: &function("lets_go"),
                is_known: Known::$known,
            };
            in_all_ways($program, stringify!($scene), |scene| scene.check(&expected));
        }
    )*};
}

mod posix {
    use super::*;

    fn program(way: BuildStyle) -> Option<PathBuf> {
        Some(compile_c("waits/posix.c", &[way.flag()]))
    }

    scenes! { program, "", "_", "waits":
        semaphore = Semaphore, Wake, None, One, All;
        timed_semaphore = Semaphore, Wake, None, One, No;
        barrier = Barrier, Signal, None, One, All;
        join = Join, Signal, None, One, No;
        thrd_join = Join, Signal, None, One, No;
        once = Once, Write, None, Several, Some;
        call_once = Once, Write, None, Several, Some;
        spin = Spin, Write, None, One, All;
        futex = Futex, Wake, None, One, All;
        bitset = Futex, Wake, None, One, All;
        neighbours = Futex, Wake, None, Several, All;
        late = Futex, Wake, None, One, No;
        pi = Futex, Wake, None, One, All;
        requeue = Futex, Wake, None, One, All;
        waitv = Futex, Wake, None, One, No;
        futex2 = Futex, Wake, None, One, All;
    }
}

#[test]
fn what_ends_by_its_time_was_not_woken() {
    let run = Run::new(compile_c("waits/posix.c", &[])).arg("late");
    let scene = record(run, Configuration::Glibc, "full").expect("a futex");
    let [lock] = &scene.profile.locks[..] else { panic!("{}", scene.shown()) };
    let outcomes = &lock.role(Role::Wake).expect("waits").outcomes;
    assert_eq!((outcomes.timed_out, outcomes.parked), (scene.truth.waits, 0), "{}", scene.shown());
}

mod rust_std {
    use super::*;

    fn program(way: BuildStyle) -> Option<PathBuf> {
        static MADE: [Once; 4] = [const { Once::new() }; 4];
        let program = scratch_dir().join(format!("rust_std-{}-{}", std::process::id(), way.flag()));
        MADE[way as usize].call_once(|| {
            let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
            let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("waits/rust_std.rs");
            let mut rustc = Command::new(rustc);
            rustc.args(["--edition", "2024"]).args((way != BuildStyle::Plain).then_some("-O"));
            rustc.args(match way {
                BuildStyle::Optimised | BuildStyle::Plain => Some("-g"),
                BuildStyle::LineTables => Some("-Cdebuginfo=line-tables-only"),
                BuildStyle::WithoutDebugInformation => None,
            });
            rustc.arg("-o").arg(&program);
            assert!(rustc.arg(source).status().expect("a Rust compiler").success());
        });
        Some(program)
    }

    scenes! { program, "rust_std::", "::", "comes":
        mutex = Mutex, Write, Some("std Mutex"), One, All;
        read = RwLock, Read, Some("std RwLock"), One, All;
        write = RwLock, Write, Some("std RwLock"), One, All;
        condvar = Condvar, Signal, Some("std Condvar"), One, All;
        timed_condvar = Condvar, Signal, Some("std Condvar"), One, All;
        channel = Channel, Signal, Some("std channel"), One, All;
        narrow_channel = Channel, Signal, Some("std channel"), One, All;
        barrier = Barrier, Signal, Some("std Barrier"), One, All;
        once = Once, Write, Some("std Once"), Several, All;
        once_lock = Once, Write, Some("std Once"), Several, All;
        park = Futex, Wake, Some("std thread::park"), One, All;
        scope = Job, Signal, Some("std scope"), One, No;
        join = Join, Signal, None, One, No;
    }
}

/// Crates, as this crate's own program has them: without debug information of theirs, and nothing of its own
/// inlined.
mod crates {
    use super::*;

    fn program(way: BuildStyle) -> Option<PathBuf> {
        (way == BuildStyle::Optimised).then(|| PathBuf::from(env!("CARGO_BIN_EXE_library_waits")))
    }

    scenes! { program, "library_waits::", "::", "comes":
        mutex = Mutex, Write, Some("parking_lot Mutex"), One, All;
        read = RwLock, Read, Some("parking_lot RwLock"), One, All;
        write = RwLock, Write, Some("parking_lot RwLock"), One, All;
        condvar = Condvar, Signal, Some("parking_lot Condvar"), One, All;
        once = Once, Write, Some("parking_lot Once"), One, All;
        channel = Channel, Signal, Some("crossbeam channel"), One, All;
        job = Job, Signal, Some("rayon job"), One, No;
        blocking = Mutex, Write, Some("tokio Mutex"), One, All;
        block_on = Job, Signal, Some("tokio block_on"), One, No;
    }
}

fn has_cpp_compiler() -> bool {
    let compiler = std::env::var("CXX").unwrap_or_else(|_| String::from("c++"));
    let is_there = find_program(&compiler).is_some();
    if !is_there {
        skipped(&format!("no C++ compiler: {compiler} (apt-get install g++)"));
    }
    is_there
}

/// Compiles a program with a library that may not be there, as `pkg-config` says.
fn with_library(source: &str, library: &str, package: &str, flags: &[&str]) -> Option<PathBuf> {
    let asked = Command::new("pkg-config").args(["--cflags", "--libs", library]).output().ok();
    let Some(answer) = asked.filter(|output| output.status.success()) else {
        skipped(&format!("no {library} (apt-get install pkg-config {package})"));
        return None;
    };
    if source.ends_with(".cpp") && !has_cpp_compiler() {
        return None;
    }
    let answer = String::from_utf8(answer.stdout).expect("flags");
    let flags: Vec<&str> = flags.iter().copied().chain(answer.split_whitespace()).collect();
    Some(compile_c(source, &flags))
}

mod cxx20 {
    use super::*;

    fn program(way: BuildStyle) -> Option<PathBuf> {
        has_cpp_compiler().then(|| compile_c("waits/cxx20.cpp", &["-std=c++20", way.flag()]))
    }

    scenes! { program, "(anonymous namespace)::", "_", "waits":
        atomic = Futex, Wake, Some("std::atomic"), One, All;
        wide_atomic = Futex, Wake, Some("std::atomic"), One, All;
        flag = Futex, Wake, Some("std::atomic"), One, All;
        semaphore = Semaphore, Wake, Some("std::counting_semaphore"), One, All;
        latch = Job, Signal, Some("std::latch"), Several, All;
        barrier = Barrier, Signal, Some("std::barrier"), One, All;
        future = Job, Signal, Some("std::future"), One, All;
        once = Once, Write, None, Several, Some;
        turnstile = Futex, Wake, Some("std::atomic"), One, All;
    }
}

mod glib {
    use super::*;

    fn program(way: BuildStyle) -> Option<PathBuf> {
        with_library("waits/glib.c", "glib-2.0", "libglib2.0-dev", &[way.flag()])
    }

    scenes! { program, "", "_", "waits":
        mutex = Mutex, Write, Some("GMutex"), One, All;
        bit_lock = Mutex, Write, Some("GBitLock"), One, All;
        cond = Condvar, Signal, Some("GCond"), One, All;
        timed_cond = Condvar, Signal, Some("GCond"), One, All;
        queue = Channel, Signal, Some("GAsyncQueue"), One, All;
        join = Join, Signal, Some("GThread"), One, No;
    }
}

mod qt {
    use super::*;

    fn program(way: BuildStyle) -> Option<PathBuf> {
        with_library("waits/qt.cpp", "Qt5Core", "qtbase5-dev", &["-fPIC", way.flag()])
    }

    scenes! { program, "(anonymous namespace)::", "_", "waits":
        mutex = Mutex, Write, Some("QMutex"), One, All;
        recursive = Mutex, Write, Some("QMutex"), One, All;
        semaphore = Semaphore, Wake, Some("QSemaphore"), One, All;
    }
}

mod abseil {
    use super::*;

    fn program(way: BuildStyle) -> Option<PathBuf> {
        with_library("waits/abseil.cpp", "absl_synchronization", "libabsl-dev", &["-std=c++17", way.flag()])
    }

    scenes! { program, "(anonymous namespace)::", "_", "waits":
        mutex = RwLock, Write, Some("absl::Mutex"), One, All;
        reader = RwLock, Read, Some("absl::Mutex"), One, All;
        condvar = Condvar, Signal, Some("absl::CondVar"), One, All;
        condition = Condvar, Signal, Some("absl::Mutex::Await"), One, All;
        notification = Condvar, Signal, Some("absl::Mutex::Await"), One, All;
    }
}

/// The lock of a language whose functions are not on the stack: only what the interpreter calls is known.
#[test]
fn python() {
    let python = find_program("python3");
    // What is found may be a script that looks for the program.
    let asked = python.and_then(|python| {
        Command::new(python).args(["-c", "import sys; print(sys.executable)"]).output().ok()
    });
    let Some(answer) = asked.filter(|output| output.status.success()) else {
        return skipped("no python3 (apt-get install python3)");
    };
    let python = String::from_utf8(answer.stdout).expect("a path");
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("waits/python.py");
    let scene =
        record(Run::new(python.trim()).arg(script), Configuration::Glibc, "contended").expect("waits");
    let is_it = |lock: &&Lock| lock.type_name.as_deref() == Some("Python lock");
    let stats = scene.profile.locks.iter().filter(is_it).filter_map(|lock| lock.role(Role::Wake));
    let found = stats.max_by_key(|stats| stats.wait.total).unwrap_or_else(|| panic!("{}", scene.shown()));
    assert_eq!(found.contended, scene.truth.waits, "{}", scene.shown());
    let waited = found.wait.total as f64;
    // Until it sleeps for the lock, a thread may wait for the interpreter's.
    assert!((0.9 * scene.truth.least..=1.05 * scene.truth.most).contains(&waited), "{}", scene.shown());
}

/// Programs that use futexes as no sane program does: see `waits/odd.c`. They get the answers that they get
/// without a recorder.
mod odd {
    use super::*;

    fn check(scene: &str) {
        let program = match scene {
            "own_syscall" => compile_c("waits/own_syscall.c", &["-rdynamic"]),
            "fortified" => {
                compile_c("waits/fortified.c", &["-O2", "-U_FORTIFY_SOURCE", "-D_FORTIFY_SOURCE=2"])
            }
            _ => compile_c("waits/odd.c", &[]),
        };
        for (configuration, detail) in [
            (Configuration::Glibc, "contended"),
            (Configuration::Spinpark, "contended"),
            (Configuration::Glibc, "full"),
            (Configuration::Spinpark, "sampled"),
        ] {
            let directory = tempfile::tempdir().expect("a directory");
            let run = Run::new(&program).arg(scene).configuration(configuration);
            let outcome = run.profiled(directory.path(), detail).succeed();
            let is_confined = scene.starts_with("confined");
            assert_eq!(outcome.stdout_text().ends_with("ok\n"), !is_confined, "{}", outcome.report());
            assert_eq!(outcome.stderr_text(), "", "{detail}");
            let files = recordings(directory.path());
            assert!(!files.is_empty());
            for file in files {
                Recording::read(&file);
            }
            let loaded = load::load(directory.path(), &mut Symbols::new()).expect("recordings");
            assert!(loaded.broken.is_empty(), "{:?}", loaded.broken);
            for profile in &loaded.profiles {
                let waited = profile.locks.iter().flat_map(|lock| &lock.roles);
                let longest = waited.map(|stats| stats.wait.longest).max().unwrap_or(0);
                assert!(longest <= profile.duration, "{longest} of {}", profile.duration);
                assert!(!summary(profile).headline.is_empty());
            }
        }
    }

    macro_rules! scenes {
        ($($scene:ident)*) => {$(
            #[test]
            fn $scene() {
                check(stringify!($scene));
            }
        )*};
    }

    scenes! {
        unmapped wild mixed processes forked vforked executed cancelled signalled arguments
        confined_at_start confined_later own_syscall fortified
    }
}
