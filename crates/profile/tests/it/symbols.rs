//! Stacks of programs in C, C++ and Rust get the names that their sources have.

use std::env;
use std::ffi::OsStr;
use std::fs;
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use spinpark_profile::model::CallSite;
use spinpark_profile::read::Maps;
use spinpark_profile::symbols::Symbols;
use tempfile::TempDir;

const PROGRAMS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/programs");

/// What a program printed of itself.
struct Printed {
    stack: Vec<u64>,
    locks: Vec<u64>,
    text: String,
    maps: Maps,
}

fn succeeds(command: &mut Command) -> Output {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    output
}

fn run(program: &Path) -> Printed {
    let output = succeeds(&mut Command::new(program));
    let text = String::from_utf8(output.stdout).expect("it prints text");
    let numbers = |word: &str| {
        let lines = text.lines().filter_map(|line| line.strip_prefix(word));
        lines.map(|digits| u64::from_str_radix(digits, 16).expect("a number")).collect()
    };
    let maps = Maps::new(format!("@ 0 1\n{text}").as_bytes());
    Printed { stack: numbers("frame "), locks: numbers("lock "), maps, text }
}

fn compile(directory: &Path, source: &str, name: &str, flags: &[&str]) -> PathBuf {
    let program = directory.join(name);
    let (variable, default) = if name.starts_with("cpp") { ("CXX", "c++") } else { ("CC", "cc") };
    let compiler = env::var(variable).unwrap_or_else(|_| default.to_owned());
    let mut words = compiler.split_whitespace();
    let mut command = Command::new(words.next().expect("a compiler"));
    command.args(words).args(["-O2", "-g", "-Wl,--build-id=sha1", "-pthread", "-o"]).arg(&program);
    if name.starts_with("cpp") {
        command.args(["-x", "c++"]);
    }
    succeeds(command.arg(Path::new(PROGRAMS).join(source)).args(flags));
    program
}

/// Whether a tool is here; required where everything is.
fn has(tool: &str) -> bool {
    let is_here = Command::new(tool).arg("--version").output().is_ok();
    let is_required = env::var("SPINPARK_REQUIRE_PROGRAMS").is_ok_and(|value| value == "1");
    assert!(is_here || !is_required, "{tool} is required and not installed");
    if !is_here {
        println!("skipped: {tool} is not installed");
    }
    is_here
}

fn call_site(symbols: &mut Symbols, printed: &Printed) -> CallSite {
    symbols.call_site(&printed.maps, 0, &printed.stack, false)
}

/// The first functions of a call site, inlined ones with a mark.
fn functions(call_site: &CallSite, count: usize) -> Vec<String> {
    let shown = call_site.frames.iter().map(|frame| {
        let mark = if frame.is_inlined { " (inlined)" } else { "" };
        format!("{}{mark}", frame.short())
    });
    shown.take(count).collect()
}

/// The line with this text.
fn line(source: &str, text: &str) -> u32 {
    let source = fs::read_to_string(Path::new(PROGRAMS).join(source)).expect("it is here");
    u32::try_from(source.lines().position(|line| line.contains(text)).expect("it has the text") + 1)
        .expect("short")
}

const C: [&str; 5] = ["dump", "locked (inlined)", "store_update", "call", "main"];

#[test]
fn c_with_debug_information() {
    let scratch = tempfile::tempdir().expect("scratch space");
    for (name, flags) in [("pie", ["-pie", "-fPIE"].as_slice()), ("fixed", &["-no-pie", "-fno-pie"])] {
        let printed = run(&compile(scratch.path(), "stack.c", name, flags));
        let mut symbols = Symbols::new();
        let call_site = call_site(&mut symbols, &printed);
        assert_eq!(functions(&call_site, 5), C, "{name}");
        let lines: Vec<u32> =
            call_site.frames[1..3].iter().map(|frame| frame.source.as_ref().expect("-g").1).collect();
        assert_eq!(lines, [line("stack.c", "line of locked"), line("stack.c", "line of store_update")]);
        assert_eq!(call_site.frames[1].position(), format!("stack.c:{}", lines[0]));
        assert!(call_site.frames.iter().take(5).all(|frame| frame.module == name));
        assert!(
            call_site.frames.last().is_some_and(|frame| frame.function.as_deref() == Some("_start")),
            "{call_site:?}"
        );

        let variables: Vec<Option<String>> =
            printed.locks.iter().map(|address| symbols.variable(&printed.maps, *address)).collect();
        assert_eq!(variables, [Some(String::from("cache_lock")), Some(String::from("shards[1]"))], "{name}");
        assert_eq!(symbols.variable(&printed.maps, 0x10), None);
        let modules = symbols.modules(std::slice::from_ref(&call_site));
        assert!(
            modules.iter().any(|module| module.path.ends_with(name) && module.build_id.is_some()),
            "{modules:?}"
        );
    }
}

#[test]
fn c_with_separate_debug_information() {
    let scratch = tempfile::tempdir().expect("scratch space");
    let program = compile(scratch.path(), "stack.c", "split", &[]);
    let debug = scratch.path().join("split.debug");
    succeeds(
        Command::new("objcopy")
            .arg("--only-keep-debug")
            .arg("--compress-debug-sections")
            .args([&program, &debug]),
    );
    succeeds(Command::new("strip").arg(&program));

    let printed = run(&program);
    let stripped = call_site(&mut Symbols::with_debug_directories(&[]), &printed);
    assert!(stripped.frames[0].function.is_none(), "{stripped:?}");
    // Its unwind tables know where the function begins.
    let start = stripped.frames[0].start.expect("it can be unwound");
    assert!(start < stripped.frames[0].offset, "{stripped:?}");
    assert_eq!(stripped.frames[0].short(), format!("split+{start:#x}"));
    assert!(!stripped.frames.iter().any(|frame| frame.is_inlined));

    // By build id.
    let directories = tempfile::tempdir().expect("scratch space");
    let modules = {
        let mut symbols = Symbols::new();
        let call_site = call_site(&mut symbols, &printed);
        symbols.modules(&[call_site])
    };
    let id =
        modules.iter().find_map(|module| module.build_id.clone().filter(|_| module.path.ends_with("split")));
    let id = id.expect("the linker was asked for it");
    let by_id = directories.path().join(".build-id").join(&id[..2]);
    fs::create_dir_all(&by_id).expect("a directory");
    fs::copy(&debug, by_id.join(format!("{}.debug", &id[2..]))).expect("a copy");
    let found = call_site(&mut Symbols::with_debug_directories(&[directories.path().to_owned()]), &printed);
    assert_eq!(functions(&found, 5), C);
    assert!(found.frames[0].source.is_some());

    // By name.
    let named = tempfile::tempdir().expect("scratch space");
    succeeds(Command::new("objcopy").arg(format!("--add-gnu-debuglink={}", debug.display())).arg(&program));
    fs::rename(&debug, named.path().join("split.debug")).expect("a rename");
    let found = call_site(&mut Symbols::with_debug_directories(&[named.path().to_owned()]), &run(&program));
    assert_eq!(functions(&found, 5), C);
}

#[test]
fn stripped_files_have_their_dynamic_symbols() {
    let scratch = tempfile::tempdir().expect("scratch space");
    let program = compile(scratch.path(), "stack.c", "exported", &["-rdynamic", "-s"]);
    let printed = run(&program);
    let mut symbols = Symbols::new();
    let call_site = call_site(&mut symbols, &printed);
    assert_eq!(functions(&call_site, 4), ["dump", "store_update", "call", "main"]);
    assert_eq!(symbols.variable(&printed.maps, printed.locks[0]).as_deref(), Some("cache_lock"));
    assert_eq!(symbols.variable(&printed.maps, printed.locks[1]), None, "not exported");
}

const MEMBERS: [&str; 6] =
    ["audit.counters.io", "audit.either", "table[3].parts[1].lock", "grid[1][2]", "plain", "inner.io"];

/// What the locks of a program are called that are inside of variables.
fn variables(printed: &Printed, symbols: &mut Symbols) -> Vec<String> {
    let locks = printed.locks.iter();
    locks.map(|address| symbols.variable(&printed.maps, *address).unwrap_or_default()).collect()
}

#[test]
fn members_of_variables() {
    let scratch = tempfile::tempdir().expect("scratch space");
    for (name, flag) in [("v4", "-gdwarf-4"), ("v5", "-gdwarf-5"), ("packed", "-gz")] {
        let printed = run(&compile(scratch.path(), "members.c", name, &[flag]));
        assert_eq!(variables(&printed, &mut Symbols::new()), MEMBERS, "{name}");
    }
    // Without types, the distance from the start.
    let printed = run(&compile(scratch.path(), "members.c", "none", &["-g0"]));
    let plain = variables(&printed, &mut Symbols::new());
    assert_eq!((plain[0].as_str(), plain[4].as_str()), ("audit+0x18", "plain"), "{plain:?}");

    if !has("c++") {
        return;
    }
    for (name, flag) in [("cpp4", "-gdwarf-4"), ("cpp5", "-gdwarf-5")] {
        let printed = run(&compile(scratch.path(), "members.c", name, &[flag]));
        let names = variables(&printed, &mut Symbols::new());
        let methods = ["shop::store.base_lock", "shop::store.mutex_", "shop::store.last"];
        assert_eq!(names[..5], MEMBERS[..5], "{name}");
        assert_eq!(names[6..], methods, "{name}");
    }
}

#[test]
fn members_by_a_separate_debug_file() {
    if !has("objcopy") {
        return;
    }
    let scratch = tempfile::tempdir().expect("scratch space");
    let program = compile(scratch.path(), "members.c", "split", &[]);
    let debug = scratch.path().join("split.debug");
    succeeds(Command::new("objcopy").arg("--only-keep-debug").arg(&program).arg(&debug));
    succeeds(Command::new("objcopy").arg("--strip-all").arg(&program));
    succeeds(Command::new("objcopy").arg(format!("--add-gnu-debuglink={}", debug.display())).arg(&program));
    let printed = run(&program);
    assert_eq!(variables(&printed, &mut Symbols::new()), MEMBERS);
}

#[test]
fn cpp() {
    if !has("c++") {
        return;
    }
    let scratch = tempfile::tempdir().expect("scratch space");
    let printed = run(&compile(scratch.path(), "stack.c", "cpp", &[]));
    let mut symbols = Symbols::new();
    let call_site = call_site(&mut symbols, &printed);
    // A function without linkage has no more of a name than this in DWARF.
    let expected = ["dump", "locked (inlined)", "store::Cache<int>::update", "call", "main"];
    assert_eq!(functions(&call_site, 5), expected);
    assert_eq!(symbols.variable(&printed.maps, printed.locks[0]).as_deref(), Some("cache_lock"));
}

#[test]
fn rust() {
    let scratch = tempfile::tempdir().expect("scratch space");
    for mangling in ["legacy", "v0"] {
        let program = scratch.path().join(mangling);
        let rustc = env::var("RUSTC").unwrap_or_else(|_| String::from("rustc"));
        let mut command = Command::new(rustc);
        command.args(["--edition", "2024", "-O", "-g", "-o"]).arg(&program);
        if mangling == "v0" {
            command.args(["-C", "symbol-mangling-version=v0"]);
        }
        succeeds(command.arg(Path::new(PROGRAMS).join("stack.rs")));
        let printed = run(&program);
        let mut symbols = Symbols::new();
        let call_site = call_site(&mut symbols, &printed);
        let shown = functions(&call_site, 4);
        assert_eq!(shown[0], "stack::dump", "{shown:?}");
        assert!(shown[1].contains("locked") && shown[1].ends_with("(inlined)"), "{shown:?}");
        assert!(shown[2].contains("store::Cache") && shown[2].contains("update"), "{shown:?}");
        assert_eq!(shown[3], "stack::main");
        assert_eq!(
            call_site.frames[1].source.as_ref().map(|source| source.1),
            Some(line("stack.rs", "line of locked"))
        );
        let variable = symbols.variable(&printed.maps, printed.locks[0]);
        assert_eq!(variable, Some(String::from("stack::CACHE_LOCK")));
    }
}

/// The warnings about the programs of a recording that began then.
fn warnings(program: &Path, printed: &Printed, started: u64) -> Vec<String> {
    use spinpark_profile::read::{Recording, profile};
    let mut file = spinpark_fixtures::recordings::Builder::new();
    file.header().start_realtime = started;
    let lines = printed.text.lines().filter(|line| line.contains('-'));
    let maps = file.maps(&lines.map(|line| format!("{line}\n")).collect::<String>());
    let stack = file.stack(maps, &printed.stack);
    let lock = file.lock(spinpark_recorder::format::Kind::Mutex, printed.locks[0], stack, false);
    let thread = file.thread(1, "t", 0, 0, 0);
    file.uses(thread, lock, spinpark_recorder::format::Role::Write, |stats| stats.acquisitions = 1.into());
    let directory: TempDir = tempfile::tempdir().expect("scratch space");
    let path = file.write(directory.path()).expect("it is written");
    let profile = profile(&Recording::open(&path).expect("a recording"), &mut Symbols::new());
    let name = program.display().to_string();
    profile.notes().filter(|warning| warning.contains(&name)).map(str::to_owned).collect()
}

#[test]
fn programs_that_changed_since() {
    let scratch = tempfile::tempdir().expect("scratch space");
    let program = compile(scratch.path(), "stack.c", "changed", &[]);
    let printed = run(&program);
    assert_eq!(warnings(&program, &printed, u64::MAX), [""; 0]);
    let changed = warnings(&program, &printed, 1);
    assert!(changed.len() == 1 && changed[0].contains("was replaced after it was loaded"), "{changed:?}");
    fs::remove_file(&program).expect("it is ours");
    let gone = warnings(&program, &printed, u64::MAX);
    assert!(gone.len() == 1 && gone[0].contains("was deleted after it was loaded"), "{gone:?}");
}

#[test]
fn split_debug_information() {
    let scratch = tempfile::tempdir().expect("scratch space");
    let program = compile(scratch.path(), "stack.c", "dwo", &["-gsplit-dwarf"]);
    let is_dwo = |path: &PathBuf| path.extension().is_some_and(|extension| extension == "dwo");
    let entries = || fs::read_dir(scratch.path()).expect("it is there").flatten().map(|entry| entry.path());
    let Some(dwo) = entries().find(is_dwo) else {
        println!("skipped: the compiler puts no .dwo beside the program");
        return;
    };
    let printed = run(&program);
    let whole = call_site(&mut Symbols::new(), &printed);
    assert_eq!(functions(&whole, 5), C);
    assert_eq!(
        whole.frames[1].source.as_ref().map(|source| source.1),
        Some(line("stack.c", "line of locked"))
    );
    fs::remove_file(dwo).expect("it is ours");
    let without = call_site(&mut Symbols::new(), &printed);
    assert_eq!(functions(&without, 4), ["dump", "store_update", "call", "main"]);
}

#[test]
fn compressed_sections() {
    let scratch = tempfile::tempdir().expect("scratch space");
    let program = compile(scratch.path(), "stack.c", "packed", &[]);
    for how in ["zlib", "zlib-gnu", "zstd"] {
        let packed = scratch.path().join(how);
        let mut objcopy = Command::new("objcopy");
        objcopy.arg(format!("--compress-debug-sections={how}")).args([&program, &packed]);
        if !objcopy.output().is_ok_and(|output| output.status.success()) {
            println!("skipped: objcopy does not compress with {how}");
            continue;
        }
        assert_eq!(functions(&call_site(&mut Symbols::new(), &run(&packed)), 5), C, "{how}");
    }
}

#[test]
fn debug_files_beside_the_program() {
    let scratch = tempfile::tempdir().expect("scratch space");
    let program = compile(scratch.path(), "stack.c", "beside", &[]);
    fs::create_dir(scratch.path().join(".debug")).expect("a directory");
    let debug = scratch.path().join(".debug/beside.debug");
    succeeds(Command::new("objcopy").arg("--only-keep-debug").args([&program, &debug]));
    succeeds(Command::new("strip").arg(&program));
    succeeds(Command::new("objcopy").arg(format!("--add-gnu-debuglink={}", debug.display())).arg(&program));
    let printed = run(&program);
    let symbols = || Symbols::with_debug_directories(&[]);
    assert_eq!(functions(&call_site(&mut symbols(), &printed), 5), C);
    // Another build's has another checksum.
    fs::OpenOptions::new()
        .append(true)
        .open(&debug)
        .and_then(|mut file| file.write_all(b"more"))
        .expect("ours");
    assert!(call_site(&mut symbols(), &printed).frames[0].function.is_none());
}

#[test]
fn mini_debug_information() {
    if !has("xz") {
        return;
    }
    let scratch = tempfile::tempdir().expect("scratch space");
    let program = compile(scratch.path(), "stack.c", "mini", &[]);
    let symbols = scratch.path().join("symbols");
    succeeds(Command::new("objcopy").arg("--strip-debug").args([&program, &symbols]));
    succeeds(Command::new("xz").arg(&symbols));
    succeeds(Command::new("strip").arg(&program));
    let packed = format!("--add-section=.gnu_debugdata={}.xz", symbols.display());
    succeeds(Command::new("objcopy").arg(packed).arg(&program));
    let call_site = call_site(&mut Symbols::with_debug_directories(&[]), &run(&program));
    assert_eq!(functions(&call_site, 4), ["dump", "store_update", "call", "main"]);
}

#[test]
fn paths_that_are_not_utf8() {
    let scratch = tempfile::tempdir().expect("scratch space");
    let directory = scratch.path().join(OsStr::from_bytes(b"caf\xe9"));
    fs::create_dir(&directory).expect("a directory");
    let program = compile(&directory, "stack.c", "latin", &[]);
    let output = succeeds(&mut Command::new(&program)).stdout;
    let text = String::from_utf8_lossy(&output).into_owned();
    let numbers = text.lines().filter_map(|line| line.strip_prefix("frame "));
    let stack: Vec<u64> = numbers.map(|digits| u64::from_str_radix(digits, 16).expect("a number")).collect();
    let maps = Maps::new(&[b"@ 0 1\n", &output[..]].concat());
    let call_site = Symbols::new().call_site(&maps, 0, &stack, false);
    assert_eq!(functions(&call_site, 5), C);
}
