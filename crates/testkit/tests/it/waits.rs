//! Recordings of waits that are none for libc's own locks: futexes of runtimes, semaphores, barriers, joins. Each program waits a known
//! number of times and measures for how long; the report says what for.
//!
//! A library that is not installed is skipped and named; with `SPINPARK_REQUIRE_PROGRAMS=1` its test fails.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Once;

use spinpark_profile::json;
use spinpark_profile::model::{CallSiteId, Ended, Kind, Lock, Profile, Role, RoleStats};
use spinpark_profile::summary::summary;
use spinpark_profile::symbols::Symbols;
use spinpark_testkit::programs::skipped;
use spinpark_testkit::{Configuration, Run, compile_c, find_program, scratch_dir};

/// What a program said of its waits.
#[derive(Clone, Copy, Debug)]
struct Truth {
    waits: u64,
    /// ns.
    waited: f64,
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
    let ["waits", waits, waited] = words[..] else { panic!("not what it measured: {text}") };
    let truth = Truth { waits: waits.parse().expect("a number"), waited: waited.parse().expect("a time") };
    let loaded = json::load(directory.path(), &mut Symbols::new()).expect("a recording");
    assert_eq!((loaded.profiles.len(), loaded.broken.len()), (1, 0));
    let profile = loaded.profiles.into_iter().next().expect("one");
    assert_eq!((profile.ended, profile.dropped, profile.nested), (Ended::Exited, 0, 0));
    Some(Scene { profile, truth })
}

/// What a scene's waits are for.
#[derive(Clone, Copy, Debug)]
struct Expected<'a> {
    kind: Kind,
    role: Role,
    /// What the object is called, if only its stack tells what it is.
    name: Option<&'a str>,
    /// The function that waits.
    waits: &'a str,
    /// The function that ends the wait, if it is recorded.
    lets_go: Option<&'a str>,
}

impl Scene {
    /// All waits of this kind were for one object; returns it.
    #[track_caller]
    fn check(&self, expected: &Expected<'_>) -> &Lock {
        let mut found = self.waited_for(expected);
        let context = || format!("{expected:?}\n{:?}\n{}", self.truth, self.shown());
        assert_eq!(found.len(), 1, "{}", context());
        let (lock, stats) = found.remove(0);
        assert_eq!((stats.contended, stats.wait.count), (self.truth.waits, self.truth.waits), "{}", context());
        let waited = stats.wait.total as f64;
        // A thread may lose its CPU between its own look at the clock and the recorder's.
        let allowed = 0.05 * self.truth.waited.max(waited) + 5e6;
        assert!((waited - self.truth.waited).abs() <= allowed, "{}", context());
        let [site] = &stats.sites[..] else { panic!("{}", context()) };
        assert_eq!(site.contended, self.truth.waits, "{}", context());
        assert_eq!(self.function(site.call_site), expected.waits, "{}", context());
        if let Some(lets_go) = expected.lets_go {
            let pairs = self.profile.pairs.iter().filter(|pair| pair.lock == lock.id);
            let pairs: Vec<_> = pairs
                .map(|pair| (pair.holder.map_or_else(String::new, |holder| self.function(holder)), pair.count))
                .collect();
            assert_eq!(pairs, [(lets_go.to_owned(), self.truth.waits)], "{}", context());
        }
        self.check_summary(expected);
        lock
    }

    /// The first sentence names both functions of a lock, and calls nothing else one.
    #[track_caller]
    fn check_summary(&self, expected: &Expected<'_>) {
        let summary = summary(&self.profile);
        let headline = &summary.headline;
        if expected.role == Role::Wake {
            assert!(headline.contains("for locks or for work"), "{headline}\n{}", self.shown());
        }
        let is_lock = matches!(expected.role, Role::Write | Role::Read);
        assert_eq!(self.profile.lock_wait() > 0, is_lock, "{headline}\n{}", self.shown());
        if is_lock {
            let waits = format!("`{}` waits", expected.waits);
            assert!(headline.contains(&waits), "{headline}");
            if let Some(lets_go) = expected.lets_go {
                assert!(headline.contains(&format!("`{lets_go}`")), "{headline}");
            }
        }
    }

    fn waited_for(&self, expected: &Expected<'_>) -> Vec<(&Lock, &RoleStats)> {
        let is_it = |lock: &&Lock| lock.kind == expected.kind && lock.type_name.as_deref() == expected.name;
        let locks = self.profile.locks.iter().filter(is_it);
        locks
            .filter_map(|lock| Some((lock, lock.role(expected.role)?)))
            .filter(|(_, stats)| stats.contended > 0)
            .collect()
    }

    /// The innermost function of a call site, without what follows its name.
    fn function(&self, call_site: CallSiteId) -> String {
        let function = self.profile.call_sites[call_site].function();
        function.split('(').next().unwrap_or_default().to_owned()
    }

    fn shown(&self) -> String {
        let mut text = format!("{:#?}\n", summary(&self.profile));
        for lock in &self.profile.locks {
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
        let functions = frames.iter().map(|frame| frame.function.as_deref().unwrap_or("?"));
        functions.collect::<Vec<_>>().join(" < ")
    }
}

/// Each scene with glibc's locks as recordings are by default, and with all that can be: with the drop-in beside it.
fn in_both_ways(run: impl Fn() -> Run, check: impl Fn(&Scene)) {
    for (configuration, detail) in [(Configuration::Glibc, "contended"), (Configuration::Spinpark, "full")] {
        if let Some(scene) = record(run(), configuration, detail) {
            check(&scene);
        }
    }
}

/// Scenes of a program: `scene = kind, role, name, whether it is known who ends its waits;`
macro_rules! scenes {
    ($program:ident, $separator:literal: $($scene:ident = $kind:ident, $role:ident, $name:expr, $lets_go:literal;)*) => {$(
        #[test]
        fn $scene() {
            let Some(program) = $program() else { return };
            let name: Option<&str> = $name;
            let function = |what: &str| format!("{}{}{what}", stringify!($scene), $separator);
            let (waits, lets_go) = (function("waits"), function("lets_go"));
            let expected = Expected {
                kind: Kind::$kind,
                role: Role::$role,
                name,
                waits: &waits,
                lets_go: $lets_go.then_some(lets_go.as_str()),
            };
            in_both_ways(|| Run::new(&program).arg(stringify!($scene)), |scene| { scene.check(&expected); });
        }
    )*};
}

mod posix {
    use super::*;

    fn posix() -> Option<PathBuf> {
        Some(compile_c("waits/posix.c", &[]))
    }

    scenes! { posix, "_":
        semaphore = Semaphore, Wake, None, true;
        timed_semaphore = Semaphore, Wake, None, false;
        barrier = Barrier, Signal, None, true;
        join = Join, Signal, None, false;
        thrd_join = Join, Signal, None, false;
        once = Once, Write, None, true;
        call_once = Once, Write, None, true;
        spin = Spin, Write, None, true;
        futex = Futex, Wake, None, true;
        bitset = Futex, Wake, None, true;
        late = Futex, Wake, None, false;
        pi = Futex, Wake, None, true;
        requeue = Futex, Wake, None, false;
        waitv = Futex, Wake, None, false;
        futex2 = Futex, Wake, None, true;
    }
}

mod rust_std {
    use super::*;

    fn program() -> Option<PathBuf> {
        let program = scratch_dir().join(format!("rust_std-{}", std::process::id()));
        static IS_MADE: Once = Once::new();
        IS_MADE.call_once(|| {
            let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
            let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("waits/rust_std.rs");
            let mut rustc = Command::new(rustc);
            rustc.args(["--edition", "2024", "-O", "-g", "-o"]).arg(&program).arg(source);
            assert!(rustc.status().expect("a Rust compiler").success());
        });
        Some(program)
    }

    scenes! { program, "::":
        mutex = Mutex, Write, Some("std Mutex"), true;
        read = RwLock, Read, Some("std RwLock"), true;
        write = RwLock, Write, Some("std RwLock"), true;
        condvar = Condvar, Signal, Some("std Condvar"), true;
        timed_condvar = Condvar, Signal, Some("std Condvar"), true;
        channel = Channel, Signal, Some("std channel"), true;
        narrow_channel = Channel, Signal, Some("std channel"), true;
        barrier = Barrier, Signal, Some("std Barrier"), true;
        once = Once, Write, Some("std Once"), true;
        once_lock = Once, Write, Some("std Once"), true;
        park = Futex, Wake, Some("std thread::park"), true;
        scope = Join, Signal, Some("std scope"), false;
        join = Join, Signal, None, false;
    }
}

mod cxx20 {
    use super::*;

    fn program() -> Option<PathBuf> {
        let compiler = std::env::var("CXX").unwrap_or_else(|_| String::from("c++"));
        if find_program(&compiler).is_none() {
            skipped(&format!("no C++ compiler: {compiler} (apt-get install g++)"));
            return None;
        }
        Some(compile_c("waits/cxx20.cpp", &["-std=c++20"]))
    }

    scenes! { program, "_":
        atomic = Futex, Wake, Some("std::atomic"), true;
        wide_atomic = Futex, Wake, Some("std::atomic"), true;
        flag = Futex, Wake, Some("std::atomic"), true;
        semaphore = Semaphore, Wake, Some("std::counting_semaphore"), true;
        latch = Join, Signal, Some("std::latch"), true;
        barrier = Barrier, Signal, Some("std::barrier"), true;
        future = Join, Signal, Some("std::future"), true;
        once = Once, Write, None, true;
        turnstile = Futex, Wake, Some("std::atomic"), true;
    }
}
