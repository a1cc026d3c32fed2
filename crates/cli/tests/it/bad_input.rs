//! Every impossible request has its own message that says what to do.

use std::fs;
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::Path;

use spinpark_fixtures::command::{Said, compile_to as compile, drop_in, program, said};

use crate::fixtures::spinpark;

/// `compare` of a program with arguments, at the least number of rounds.
fn compare(program: &Path, args: &[&str]) -> Said {
    said(spinpark(["compare", "--rounds", "6", "--"]).arg(program).args(args))
}

#[test]
fn program_not_found() {
    compare(Path::new("no-such-program"), &[])
        .fails(2, &["no program `no-such-program` in PATH", "check the spelling"]);
    compare(Path::new("/no/such"), &[]).fails(2, &["no program `/no/such`", "check the path"]);
}

#[test]
fn program_in_this_directory_but_not_in_path() {
    let directory = tempfile::tempdir().unwrap();
    fs::copy(program(), directory.path().join("here-only")).unwrap();
    let result = said(spinpark(["compare", "here-only"]).current_dir(directory.path()));
    result.fails(2, &["in this directory: write ./here-only"]);
}

#[test]
fn not_a_program() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("file");
    fs::write(&file, "echo hello\n").unwrap();
    compare(&file, &[]).fails(2, &["is not executable", "chmod +x"]);
    fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).unwrap();
    compare(&file, &[]).fails(2, &["neither an ELF program nor a script", "sh "]);
    compare(directory.path(), &[]).fails(2, &["is a directory"]);
}

#[test]
fn statically_linked() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("static");
    if let Err(error) = compile("program.c", &path, &["-static", "-pthread"]) {
        eprintln!("skipped statically_linked: no static C library: {error}");
        return;
    }
    compare(&path, &[]).fails(2, &["is statically linked", "Link it dynamically"]);
    said(spinpark(["run", "--"]).arg(&path)).fails(125, &["is statically linked"]);
    // The same behind a script.
    let script = directory.path().join("script");
    fs::write(&script, format!("#!{}\n", path.display())).unwrap();
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
    compare(&script, &[])
        .fails(2, &["is a script, and its interpreter cannot be used", "is statically linked"]);
}

/// A shell script whose only work is done by a static program: the shell loads the drop-in, but no process
/// locks.
#[test]
fn no_process_uses_locks() {
    compare(&program(), &["no-locks"]).fails(2, &["uses no pthread locks", "Go, Rust's std::sync"]);
    compare(Path::new("sh"), &["-c", "exit 0"]).fails(2, &["uses no pthread locks"]);
}

/// `env -i` would start a process without the drop-in; a drop-in that no process loads is distinguished from
/// one that does not lock.
#[test]
fn drop_in_is_not_loaded() {
    let directory = tempfile::tempdir().unwrap();
    let silent = directory.path().join("libspinpark_preload.so");
    let source = directory.path().join("empty.c");
    fs::write(&source, "int spinpark_nothing;\n").unwrap();
    let compiled =
        std::process::Command::new("cc").args(["-shared", "-fPIC", "-o"]).arg(&silent).arg(&source).status();
    assert!(compiled.unwrap().success());
    let mut command = spinpark(["compare", "--rounds", "6", "--"]);
    said(command.arg(program()).env("SPINPARK_PRELOAD", &silent)).fails(2, &["the drop-in was not loaded"]);
}

#[test]
fn setuid() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("setuid");
    fs::copy(program(), &path).unwrap();
    if chown(&path, Some(65534), None).is_err() {
        eprintln!("skipped setuid: only the superuser can give files away");
        return;
    }
    fs::set_permissions(&path, fs::Permissions::from_mode(0o4755)).unwrap();
    compare(&path, &[])
        .fails(2, &["is setuid (it runs as user 65534)", "ignores LD_PRELOAD", "run the copy"]);
}

#[test]
fn built_for_another_libc() {
    let directory = tempfile::tempdir().unwrap();
    let source = directory.path().join("start.c");
    let path = directory.path().join("foreign");
    fs::write(&source, "void _start(void) { for (;;); }\n").unwrap();
    let mut cc = std::process::Command::new("cc");
    cc.args([
        "-nostdlib",
        "-nostartfiles",
        "-pie",
        "-fPIC",
        "-Wl,--dynamic-linker=/lib/ld-musl-x86_64.so.1",
        "-o",
    ]);
    assert!(cc.arg(&path).arg(&source).status().unwrap().success());
    compare(&path, &[]).fails(2, &["built for another C library", "ld-musl-x86_64.so.1"]);
}

#[test]
fn program_fails_by_itself() {
    compare(&program(), &["exit", "3"])
        .fails(1, &["exited with status 3 on glibc's locks (configuration `glibc`)", "| no such database"]);
}

#[test]
fn program_crashes_on_our_locks_only() {
    compare(&program(), &["crash-on-spinpark"]).fails(
        1,
        &["was killed by SIGSEGV (segmentation fault)", "on spinpark's locks (configuration `spinpark`)"],
    );
}

#[test]
fn program_fails_half_way() {
    let log = tempfile::NamedTempFile::new().unwrap();
    let result = compare(&program(), &["fail-in-run", log.path().to_str().unwrap(), "15"]);
    result.fails(1, &["exited with status 5"]);
    assert!(result.stdout.contains("wall time"), "what was measured so far: {}", result.stdout);
}

#[test]
fn program_takes_too_long() {
    let log = tempfile::NamedTempFile::new().unwrap();
    let mut command = spinpark(["compare", "--timeout", "200ms", "--"]);
    let result = said(command.arg(program()).args(["hang-in-run", log.path().to_str().unwrap(), "1"]));
    result.fails(1, &["`glibc`: the program still ran after 0.2 s"]);
}

#[test]
fn expressions() {
    let with = |expression: &str| {
        let mut command = spinpark(["compare", "--rounds", "6", "--metric-from-output", expression, "--"]);
        said(command.arg(program()))
    };
    with("score: (").fails(2, &["does not compile", "open group without closing"]);
    with("score: [0-9]+").fails(2, &["has no capture group", "parentheses"]);
    with("tps: ([0-9]+)").fails(1, &["matches nothing", "| score: 3000.5"]);
    with("speed: (.*)").fails(1, &["captured `fast`, which is not a number"]);
}

#[test]
fn options_that_need_another() {
    said(spinpark(["compare", "--higher-is-better"]).arg(program())).fails(2, &["--metric-from-output"]);
    said(&mut spinpark(["compare", "--metric-from-output", "x(y)"])).fails(2, &["needs a program"]);
    said(&mut spinpark(["compare", "--no-such-option", "x"])).fails(2, &["--no-such-option"]);
}

#[test]
fn too_few_rounds() {
    said(spinpark(["compare", "--rounds", "5"]).arg(program()))
        .fails(2, &["--rounds 5 is too few", "Use --rounds 6"]);
    // The laboratory's commands are named where somebody looks for them here.
    said(&mut spinpark(["bench", "locks"]))
        .fails(2, &["`spinpark-lab bench`", "cargo install --locked --path lab/cli"]);
}

/// An error about a number is a sentence with an example.
#[test]
fn numbers() {
    let whole = "write a whole number, as in ";
    for (line, words) in [
        ("compare --rounds abc -- true", [whole, "10"]),
        ("report -n 0 x", ["must be at least 1, as in", "20"]),
    ] {
        said(spinpark([]).args(line.split(' '))).fails(2, &words);
    }
}

#[test]
fn json_file_is_checked_before_anything_runs() {
    let log = tempfile::NamedTempFile::new().unwrap();
    let mut command = spinpark(["compare", "--json", "/no/such/directory/x.json", "--"]);
    let result = said(command.arg(program()).args(["fail-in-run", log.path().to_str().unwrap(), "0"]));
    result.fails(2, &["cannot write /no/such/directory/x.json", "directory that exists"]);
    assert_eq!(fs::read_to_string(log.path()).unwrap(), "", "the program ran");
}

#[test]
fn input_file_is_missing() {
    said(spinpark(["compare", "--input", "/no/such/file"]).arg(program()))
        .fails(2, &["--input: cannot read /no/such/file"]);
}

#[test]
fn drop_in_is_missing() {
    let preload = |value: &str| said(spinpark(["compare"]).arg(program()).env("SPINPARK_PRELOAD", value));
    preload("/no/such/drop-in.so").fails(2, &["SPINPARK_PRELOAD is /no/such/drop-in.so", "unset it"]);
    preload("/etc/passwd").fails(2, &["is not an ELF shared library"]);
    preload(program().to_str().unwrap()).fails(2, &["is not an ELF shared library"]);
}

#[test]
fn drop_in_for_another_architecture() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("libspinpark_preload.so");
    let mut bytes = fs::read(drop_in()).unwrap();
    const E_MACHINE: usize = 18;
    bytes[E_MACHINE] = 21; // PowerPC64, on which no test runs
    fs::write(&path, bytes).unwrap();
    let mut command = spinpark(["compare"]);
    said(command.arg(program()).env("SPINPARK_PRELOAD", &path))
        .fails(2, &["is for PowerPC64", "but the program is for"]);
}

#[test]
fn drop_in_in_a_path_that_the_variable_cannot_hold() {
    let directory = tempfile::tempdir().unwrap();
    let blank = directory.path().join("with blank");
    fs::create_dir(&blank).unwrap();
    let path = blank.join("libspinpark_preload.so");
    fs::copy(drop_in(), &path).unwrap();
    said(spinpark(["compare"]).arg(program()).env("SPINPARK_PRELOAD", &path))
        .fails(2, &["contains a blank, a colon, or a word that the loader replaces"]);
}

#[test]
fn a_program_in_the_place_of_a_command() {
    let answer = ["`/bin/true` is a program", "spinpark profile -- /bin/true"];
    said(&mut spinpark(["/bin/true"])).fails(2, &answer);
    said(&mut spinpark(["--", "/bin/true", "--quick"])).fails(2, &answer);
    said(&mut spinpark(["./no-such-file"])).fails(2, &["unrecognized subcommand"]);
}

/// What a program prints is quoted, and does not steer the terminal.
#[test]
fn output_that_is_quoted_is_harmless() {
    let script = "printf '\\033]0;title\\007\\033[2Jgone\\342\\200\\256\\n'; exit 3";
    let result = said(&mut spinpark(["compare", "--", "sh", "-c", script]));
    result.fails(1, &[r"| \u{1b}]0;title\u{7}\u{1b}[2Jgone\u{202e}"]);
    said(&mut spinpark(["run", "--", "no\u{1b}[2Jprogram"]))
        .fails(127, &[r"no program `no\u{1b}[2Jprogram`"]);
}
