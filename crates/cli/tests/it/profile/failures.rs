//! Recordings that cannot be made, written or read, and their messages.

use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use spinpark_fixtures::profiler;

use super::{entries, profile, recording};
use spinpark_fixtures::command::{Said, compile_to as compile, flat, program, said, waits};

#[test]
fn programs_that_cannot_be_recorded() {
    let directory = tempfile::tempdir().unwrap();
    let profile = |path: &Path| said(recording(directory.path(), ["profile", "--"]).arg(path));
    profile(Path::new("no-such-program")).fails(2, &["no program `no-such-program`"]);
    profile(Path::new("4711")).fails(2, &["there is no program `4711`", "spinpark top 4711"]);
    profile(Path::new("/etc/passwd")).fails(2, &["is not executable"]);
    let fixed = directory.path().join("static");
    match compile("waits.c", &fixed, &["-static", "-pthread"]) {
        Ok(()) => {
            profile(&fixed).fails(2, &["is statically linked"]);
            fs::remove_file(&fixed).unwrap();
        }
        Err(error) => eprintln!("skipped: no static C library: {error}"),
    }
    assert_eq!(entries(directory.path()), [""; 0], "nothing is left");
}

/// Options after the program are the program's; a note says so if they may have been meant otherwise.
#[test]
fn options_after_the_program() {
    let directory = tempfile::tempdir().unwrap();
    let run = |before: &[&str], after: &[&str]| {
        let mut command = recording(directory.path(), ["profile"]);
        said(command.args(before).arg(waits()).args(after))
    };
    let result = run(&[], &["briefly", "--html", "x.html"]);
    assert_eq!((result.code, result.stdout.as_str()), (Some(0), "stored\n"), "{result:#?}");
    assert!(result.stderr.contains("Note: --html was passed to"), "{}", result.stderr);
    assert!(!directory.path().join("x.html").exists());
    for (before, after) in [(&["--"][..], &["briefly", "--html"][..]), (&[], &["briefly", "-n", "3"])] {
        let result = run(before, after);
        assert!(!result.stderr.contains("Note: -"), "{before:?} {after:?}: {}", result.stderr);
    }
}

/// A program that its loader gives up, before the recorder can start.
#[test]
fn a_program_that_dies_at_once() {
    let directory = tempfile::tempdir().unwrap();
    let at = |name: &str| directory.path().join(name);
    fs::write(at("part.c"), "int part(void) { return 1; }\n").unwrap();
    fs::write(at("whole.c"), "int part(void);\nint main(void) { return part(); }\n").unwrap();
    let cc = |args: &[&str]| {
        assert!(Command::new("cc").args(args).current_dir(directory.path()).status().unwrap().success());
    };
    cc(&["-shared", "-fPIC", "-o", "libpart.so", "part.c"]);
    cc(&["-o", "whole", "whole.c", "-L.", "-lpart"]);
    fs::remove_file(at("libpart.so")).unwrap();
    let result = said(&mut recording(directory.path(), ["profile", "--", "./whole"]));
    assert_eq!(result.code, Some(127), "{result:#?}");
    for words in ["libpart.so", "Nothing was recorded: the program ended before"] {
        assert!(result.stderr.contains(words), "no `{words}` in {}", result.stderr);
    }
    assert!(!at("spinpark-profile").exists(), "an empty directory is of no use");
}

#[test]
fn recordings_that_cannot_be_read() {
    let directory = tempfile::tempdir().unwrap();
    let at = |name: &str| directory.path().join(name);
    assert_eq!(profile(directory.path(), &["--output", "good"], &["briefly"]).code, Some(0));
    let report = |path: &str| said(&mut recording(directory.path(), ["report", path]));
    let file = entries(&at("good")).into_iter().find(|name| name.ends_with(".spinprof")).unwrap();
    let bytes = fs::read(at("good").join(&file)).unwrap();
    report("nowhere").fails(2, &["nowhere does not exist"]);
    fs::create_dir(at("empty")).unwrap();
    report("empty")
        .fails(2, &["there is no recording in empty\nName a directory", "spinpark profile --output empty"]);
    for (name, content, words) in [
        ("short.spinprof", &bytes[..100], "too short"),
        ("none.spinprof", &[][..], "too short"),
        ("foreign.spinprof", &[b'x'; 1 << 16][..], "is not a recording"),
        ("foreign.json", b"{}".as_slice(), "is not a profile in JSON"),
        ("broken.json", b"[{".as_slice(), "is not a profile in JSON"),
    ] {
        fs::write(at(name), content).unwrap();
        report(name).fails(2, &[name, words]);
    }
    // A part of a file: its data is shown, with a message that something is missing.
    fs::write(at("part.spinprof"), &bytes[..bytes.len() / 2]).unwrap();
    let part = report("part.spinprof");
    assert_eq!(part.code, Some(0), "{part:#?}");
    assert!(part.stdout.contains("Warning"), "{part:#?}");
    // One of several is damaged: the others are shown.
    fs::write(at("good/1.spinprof"), "junk").unwrap();
    let result = report("good");
    result.succeeds(&["cache_lock"]);
    assert!(result.stderr.contains("Warning") && result.stderr.contains("1.spinprof"), "{}", result.stderr);
}

#[test]
fn a_directory_that_is_closed() {
    if rustix::process::geteuid().is_root() {
        eprintln!("skipped a_directory_that_is_closed: nothing is closed to the superuser");
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let closed = directory.path().join("closed");
    fs::create_dir(&closed).unwrap();
    fs::set_permissions(&closed, fs::Permissions::from_mode(0o000)).unwrap();
    said(&mut recording(directory.path(), ["report", "closed"]))
        .fails(2, &["cannot read", "Permission denied"]);
    fs::set_permissions(&closed, fs::Permissions::from_mode(0o500)).unwrap(); // to be in there
    let result = said(recording(&closed, ["profile", "--"]).arg(waits()));
    result.fails(2, &["cannot create the directory", "--output"]);
}

/// A full disk: the program does not notice, and the report names the reason.
#[test]
fn a_full_disk() {
    let directory = tempfile::tempdir().unwrap();
    let disk = directory.path().join("disk");
    fs::create_dir(&disk).unwrap();
    let mounted = Command::new("mount").args(["-t", "tmpfs", "-o", "size=16k", "none"]).arg(&disk).output();
    if !mounted.is_ok_and(|output| output.status.success()) {
        eprintln!("skipped a_full_disk: only the superuser can make a small one");
        return;
    }
    let result = profile(directory.path(), &["--output", "disk/one", "--detail", "full"], &["all"]);
    assert!(Command::new("umount").arg("-l").arg(&disk).status().unwrap().success());
    // Nothing was recorded: that is no success.
    assert_eq!((result.code, result.stdout.as_str()), (Some(1), "stored\n"), "{result:#?}");
    let text = flat(&result.stderr);
    assert!(text.contains("Nothing was recorded: the disk of ") && text.contains("is full"), "{text}");
}

#[test]
fn a_library_that_is_missing() {
    let directory = tempfile::tempdir().unwrap();
    let mut command = recording(directory.path(), ["profile", "--"]);
    let result = said(command.arg(program()).env("SPINPARK_PROFILER", "/no/such.so"));
    result.fails(2, &["SPINPARK_PROFILER is /no/such.so"]);
    // A path that the loader would read as two.
    let blank = directory.path().join("a b.so");
    fs::copy(profiler(), &blank).unwrap();
    let mut command = recording(directory.path(), ["profile", "--"]);
    said(command.arg(program()).env("SPINPARK_PROFILER", &blank)).fails(2, &["blank"]);
}

/// The recorder stays off under ThreadSanitizer, and that is the reason that is given.
#[test]
fn under_thread_sanitizer() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("checked");
    if let Err(error) = compile("waits.c", &path, &["-g", "-pthread", "-fsanitize=thread"]) {
        return eprintln!("skipped: no ThreadSanitizer: {error}");
    }
    let result = said(recording(directory.path(), ["profile", "--", "./checked"]).arg("briefly"));
    if result.code != Some(0) {
        return eprintln!("skipped: ThreadSanitizer does not run here: {}", result.stderr);
    }
    let text = flat(&result.stderr);
    assert!(text.contains("Nothing was recorded: the program is built with ThreadSanitizer"), "{text}");
    assert!(!text.contains("ended before the recorder was loaded"), "{text}");
}

/// Runs a script in a mount namespace of its own, in `directory`, with a file system of 64 KiB at `full`; `$0`
/// is the command, `$1` a program that waits.
fn with_full_disk(directory: &Path, script: &str) -> Option<Said> {
    fs::create_dir(directory.join("full")).unwrap();
    let mut command = recording(directory, []);
    let spinpark = command.get_program().to_owned();
    let script =
        format!("mount -t tmpfs -o size=64k none full; head -c 65536 /dev/zero > full/data || :; {script}");
    let environment: Vec<_> = command
        .get_envs()
        .map(|(name, value)| (name.to_owned(), value.map(Into::<OsString>::into)))
        .collect();
    command = Command::new("unshare");
    command.args(["--mount", "sh", "-c", &script]).arg(spinpark).arg(waits()).current_dir(directory);
    for (name, value) in environment {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    let mut is_allowed = Command::new("unshare");
    is_allowed.args(["--mount", "mount", "-t", "tmpfs", "none", "full"]).current_dir(directory);
    if !is_allowed.status().is_ok_and(|status| status.success()) {
        eprintln!("skipped: this process cannot mount file systems in a namespace of its own");
        return None;
    }
    Some(said(&mut command))
}

/// Nothing was recorded: that is no success, and a page of nothing is no page.
#[test]
fn a_full_disk_for_the_recording() {
    let directory = tempfile::tempdir().unwrap();
    let script = "cd full; \"$0\" profile --html r.html -- \"$1\" briefly; code=$?; ls; exit $code";
    let Some(result) = with_full_disk(directory.path(), script) else { return };
    assert_eq!(result.code, Some(1), "{result:#?}");
    assert_eq!(result.stdout, "stored\ndata\n", "no page, no directory: {result:#?}");
    let text = flat(&result.stderr);
    assert!(text.contains("Nothing was recorded: the disk of ") && text.contains("is full"), "{text}");
}

/// What can be written is, and an older page stays.
#[test]
fn a_full_disk_for_the_page() {
    let directory = tempfile::tempdir().unwrap();
    let script = "echo old > full/old.html 2> /dev/null || { truncate -s 60000 full/data; echo old > full/old.html; head -c 65536 /dev/zero >> full/data; }; \
                  \"$0\" profile --output kept --html full/old.html --pprof x.pb.gz --json x.json -- \"$1\" briefly; code=$?; \
                  cat full/old.html; ls full; exit $code";
    let Some(result) = with_full_disk(directory.path(), script) else { return };
    assert_eq!(result.code, Some(2), "{result:#?}");
    assert!(result.stdout.ends_with("old\ndata\nold.html\n"), "{result:#?}");
    let text = flat(&result.stderr);
    for words in
        ["All waiting is on", "Wrote x.pb.gz", "Kept in ", "full/old.html", "No space left on device"]
    {
        assert!(text.contains(words), "no `{words}` in {text}");
    }
    assert!(directory.path().join("x.json").exists());
}
