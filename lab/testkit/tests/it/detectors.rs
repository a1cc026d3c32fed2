//! Under tools that find data races by watching pthread calls, the drop-in and the recorder switch themselves
//! off and say so; AddressSanitizer, which watches memory, runs with both.

use std::path::{Path, PathBuf};

use spinpark_testkit::{Configuration, Run, compile_c, find_program};

/// What preloading adds to a run.
const LIBRARIES: [(Configuration, bool); 3] =
    [(Configuration::Spinpark, false), (Configuration::Glibc, true), (Configuration::Spinpark, true)];
/// What the drop-in and the recorder say.
const OFF: &str = "spinpark: off: ";
const NOTHING: &str = "spinpark: nothing is recorded";

/// A command in front of the program, or nothing.
type Tool<'a> = &'a [&'a str];

fn run(tool: Tool<'_>, program: &Path, (configuration, is_profiled): (Configuration, bool)) -> Run {
    let mut words = tool.iter().map(Path::new).chain([program]);
    let run = Run::new(words.next().expect("a program")).args(words).configuration(configuration);
    if is_profiled { run.profiled(tempfile::tempdir().expect("a directory").keep(), "full") } else { run }
}

/// The compiler of that name with a sanitizer: none where either is missing.
fn sanitized(compiler: &str, sanitizer: &str) -> Option<PathBuf> {
    let compiler = find_program(compiler).or_else(|| {
        eprintln!("skipped: {compiler} is not installed");
        None
    })?;
    let program =
        tempfile::NamedTempFile::new().expect("scratch space").into_temp_path().keep().expect("a path");
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/posix/race_free.c");
    let flags = ["-O1", "-g", "-pthread", "-D_GNU_SOURCE", sanitizer, "-o"];
    let outcome = Run::new(compiler).args(flags).arg(&program).arg(source).outcome();
    if !outcome.success() {
        eprintln!(
            "skipped: no {sanitizer} here: {}",
            outcome.stderr_text().lines().next().unwrap_or_default()
        );
        return None;
    }
    let plain = Run::new(&program).outcome();
    if plain.stderr_text().contains("unexpected memory mapping") {
        eprintln!("skipped: ThreadSanitizer cannot run with the kernel's vm.mmap_rnd_bits");
        return None;
    }
    plain.assert_success();
    Some(program)
}

/// The tool sees the program's locks: it exits with another status else.
fn sees_the_locks(tool: Tool<'_>, program: &Path) {
    for libraries @ (configuration, is_profiled) in LIBRARIES {
        let outcome = run(tool, program, libraries).succeed();
        let said = outcome.stderr_text();
        assert_eq!(said.contains(OFF), configuration == Configuration::Spinpark, "{}", outcome.report());
        assert_eq!(said.contains(NOTHING), is_profiled, "{}", outcome.report());
    }
    // Forced on, or switched off by the user: nothing is to be said.
    let forced =
        LIBRARIES.map(|libraries| run(tool, program, libraries).env("SPINPARK_FORCE", "1").outcome());
    let disabled = run(tool, program, (Configuration::Disabled, false)).succeed();
    for outcome in forced.iter().chain([&disabled]) {
        assert!(!outcome.stderr_text().contains("spinpark: "), "{}", outcome.report());
    }
}

mod thread_sanitizer {
    use super::*;

    fn of(compiler: &str) {
        if let Some(program) = sanitized(compiler, "-fsanitize=thread") {
            // A condition variable that the sanitizer does not see is found in one run of three.
            for _ in 0..4 {
                sees_the_locks(&[], &program);
            }
            let report = tempfile::NamedTempFile::new().expect("a file");
            run(&[], &program, LIBRARIES[0]).env("SPINPARK_REPORT", report.path()).succeed();
            let report = std::fs::read_to_string(report.path()).expect("a report");
            let words: Vec<_> = report.lines().filter_map(|line| line.split(' ').next()).collect();
            assert_eq!(words, ["loaded", "off", "used"]);
            std::fs::remove_file(program).expect("the program");
        }
    }

    /// Its library intercepts behind the drop-in.
    #[test]
    fn gcc() {
        of("gcc");
    }

    /// The program itself intercepts, before the drop-in.
    #[test]
    fn clang() {
        of(if find_program("clang").is_some() { "clang" } else { "clang-14" });
    }
}

mod valgrind {
    use super::*;

    fn tool(name: &str) {
        let Some(valgrind) = find_program("valgrind") else {
            assert!(
                std::env::var_os("SPINPARK_REQUIRE_PROGRAMS").is_none_or(|value| value != "1"),
                "valgrind is not installed"
            );
            return eprintln!("skipped: valgrind is not installed");
        };
        let valgrind = valgrind.to_str().expect("a path in UTF-8");
        let name = format!("--tool={name}");
        let program = compile_c("posix/race_free.c", &[]);
        sees_the_locks(&[valgrind, "--quiet", "--error-exitcode=9", &name], &program);
    }

    #[test]
    fn helgrind() {
        tool("helgrind");
    }

    #[test]
    fn drd() {
        tool("drd");
    }
}

mod address_sanitizer {
    use super::*;

    /// GCC's refuses libraries before its own with a sentence, unless it is told not to.
    #[test]
    fn gcc() {
        let Some(program) = sanitized("gcc", "-fsanitize=address") else { return };
        for libraries in LIBRARIES {
            let refused = run(&[], &program, libraries).outcome();
            assert!(!refused.success() && !refused.timed_out(), "{}", refused.report());
            assert!(
                refused.stderr_text().contains("ASan runtime does not come first"),
                "{}",
                refused.report()
            );
            run(&[], &program, libraries).env("ASAN_OPTIONS", "verify_asan_link_order=0").succeed();
        }
        std::fs::remove_file(program).expect("the program");
    }

    #[test]
    fn clang() {
        let compiler = if find_program("clang").is_some() { "clang" } else { "clang-14" };
        let Some(program) = sanitized(compiler, "-fsanitize=address,undefined") else { return };
        for libraries in LIBRARIES {
            run(&[], &program, libraries).succeed();
        }
        std::fs::remove_file(program).expect("the program");
    }
}

/// A program's `.preinit_array` may call lock functions before libc knows the environment (ThreadSanitizer
/// does).
#[test]
fn environment_is_known_before_libc() {
    let library = compile_c("posix/before_main_lib.c", &["-shared", "-fPIC"]);
    let program = compile_c("posix/before_main.c", &[library.to_str().expect("a path in UTF-8")]);
    let outcome =
        Run::new(program).configuration(Configuration::Disabled).env("SPINPARK_VERBOSE", "1").succeed();
    assert!(outcome.stderr_text().contains("spinpark: disabled"), "{}", outcome.report());
}
