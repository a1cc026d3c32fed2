//! Locks where another library shows another time than the kernel's: a year ahead, a year behind, standing
//! still; before our library and behind it. `posix/clock_moved.c` says what holds.

use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use spinpark_testkit::profiled::read_all;
use spinpark_testkit::{Configuration, ProgramResult, Run, compile_c};

/// A machine with other work to do needs several times what a quiet one does.
const WATCHDOG: Duration = Duration::from_secs(120);

/// Where the library that moves the clock stands.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    Before,
    Behind,
}

/// A library that moves the clock, what tells it how, and whether it also converts deadlines.
struct Mover {
    library: PathBuf,
    variable: &'static str,
    converts: bool,
}

impl Mover {
    fn ours() -> Mover {
        let library = compile_c("posix/clock_mover.c", &["-shared", "-fPIC"]);
        Mover { library, variable: "CLOCK_MOVER", converts: false }
    }

    /// Debian's libfaketime; named when it is skipped, and required if `SPINPARK_REQUIRE_PROGRAMS=1`.
    fn faketime() -> Option<Mover> {
        let directories = ["/usr/lib/x86_64-linux-gnu", "/usr/lib64", "/usr/lib"];
        let libraries = directories.map(|it| Path::new(it).join("faketime/libfaketimeMT.so.1"));
        let Some(library) = libraries.into_iter().find(|it| it.exists()) else {
            let is_required = std::env::var_os("SPINPARK_REQUIRE_PROGRAMS").is_some_and(|value| value == "1");
            assert!(!is_required, "libfaketime is not installed");
            eprintln!("skipped: libfaketime is not installed (Debian: faketime)");
            return None;
        };
        Some(Mover { library, variable: "FAKETIME", converts: true })
    }

    fn run(
        &self,
        how: &str,
        place: Place,
        configuration: Configuration,
        set_up: impl FnOnce(Run) -> Run,
    ) -> ProgramResult {
        let preload = match place {
            Place::Before => "LD_PRELOAD=\"$1:$LD_PRELOAD\"",
            Place::Behind => "LD_PRELOAD=\"$LD_PRELOAD:$1\"",
        };
        // It converts what it is asked for: not what the drop-in in front of it serves.
        let converts = self.converts && (configuration != Configuration::Spinpark || place == Place::Before);
        let run = Run::new("sh")
            .args(["-c", &format!("export {}=\"$3\"; {preload} exec \"$2\" \"$4\"", self.variable), "sh"])
            .args([&self.library, &compile_c("posix/clock_moved.c", &[])])
            .args([how, if converts { "converts" } else { "moved" }])
            .configuration(configuration)
            .timeout(WATCHDOG);
        set_up(run).succeed()
    }
}

/// One test for each library, each time and each place of the library.
macro_rules! moved {
    ($($library:ident: $($name:ident = $how:literal),*;)*) => {$(
        mod $library {
            use super::*;
            $(mod $name {
                use super::*;
                const HOW: &str = $how;
                #[test] fn glibc() { $library(HOW, Place::Before, Configuration::Glibc); }
                #[test] fn spinpark_before() { $library(HOW, Place::Behind, Configuration::Spinpark); }
                #[test] fn spinpark_behind() { $library(HOW, Place::Before, Configuration::Spinpark); }
            })*
        }
    )*};
}

moved! {
    interposed: ahead = "+31536000", behind = "-31536000", frozen = "frozen";
    faketime: ahead = "+365d", behind = "-365d", frozen = "2020-02-02 02:02:02";
}

fn interposed(how: &str, place: Place, configuration: Configuration) {
    Mover::ours().run(how, place, configuration, |run| run);
}

fn faketime(how: &str, place: Place, configuration: Configuration) {
    if let Some(mover) = Mover::faketime() {
        mover.run(how, place, configuration, |run| run);
    }
}

/// A recording of such a program has the kernel's time, too.
#[test]
fn a_recording_has_the_kernel_s_time() {
    const DAY: u64 = 86_400_000_000_000;
    let clock = || SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970").as_nanos() as u64;
    for how in ["+31536000", "-31536000", "frozen"] {
        for (place, configuration) in
            [(Place::Before, Configuration::Glibc), (Place::Behind, Configuration::Spinpark)]
        {
            let directory = tempfile::tempdir().expect("a directory");
            let outcome =
                Mover::ours().run(how, place, configuration, |run| run.profiled(directory.path(), "full"));
            // Another is the shell's, which uses no locks.
            let recordings = read_all(directory.path()).into_iter().filter(|it| !it.uses.is_empty());
            let recordings: Vec<_> = recordings.collect();
            assert_eq!(recordings.len(), 1, "{how}");
            for recording in recordings {
                assert!(recording.start_realtime.abs_diff(clock()) < DAY, "{how}: {recording:?}");
                let longest = recording.uses.values().map(|it| it.longest_wait).fold(0.0, f64::max);
                assert!(longest > 0.0 && longest < outcome.elapsed.as_nanos() as f64, "{how}: {longest}");
            }
        }
    }
}
