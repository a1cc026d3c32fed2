//! `spinpark run`: the program, with nothing changed but its locks.

use std::path::Path;

use spinpark_fixtures::command::{drop_in, program, said, waits};

use crate::fixtures::spinpark;
use crate::profile::recording;

#[test]
fn passes_arguments_output_and_status() {
    let result = said(&mut spinpark([
        "run",
        "--",
        "sh",
        "-c",
        "echo \"$1|$2\"; echo error >&2; exit 7",
        "x",
        "a b",
        "--c",
    ]));
    assert_eq!(result.code, Some(7));
    assert_eq!(result.stdout, "a b|--c\n");
    assert_eq!(result.stderr, "error\n");
}

#[test]
fn options_after_the_program_are_the_programs() {
    let result = said(&mut spinpark(["run", "echo", "--help", "-x", "--", "y"]));
    assert_eq!(result.stdout, "--help -x -- y\n");
}

#[test]
fn becomes_the_program() {
    let mut child =
        spinpark(["run", "sh", "-c", "echo $$"]).stdout(std::process::Stdio::piped()).spawn().unwrap();
    let id = child.id();
    let mut output = String::new();
    std::io::Read::read_to_string(&mut child.stdout.take().unwrap(), &mut output).unwrap();
    child.wait().unwrap();
    assert_eq!(output.trim(), id.to_string());
}

#[test]
fn preloads_in_front_of_what_is_there() {
    let show = ["run", "sh", "-c", "echo $LD_PRELOAD"];
    let own = drop_in().canonicalize().unwrap().display().to_string();
    assert_eq!(said(&mut spinpark(show)).stdout.trim(), own);
    let result = said(spinpark(show).env("LD_PRELOAD", "libc.so.6"));
    assert_eq!(result.stdout.trim(), format!("{own}:libc.so.6"));
    let result = said(spinpark(show).env("LD_PRELOAD", &own));
    assert_eq!(result.stdout.trim(), own, "not twice");
}

#[test]
fn proves_that_it_is_active() {
    let result = said(spinpark(["run", "--"]).arg(program()).env("SPINPARK_VERBOSE", "1"));
    result.succeeds(&["score: 3000.5"]);
    assert!(result.stderr.starts_with("spinpark: active"), "{}", result.stderr);
    assert_eq!(said(spinpark(["run", "--"]).arg(program())).stderr, "");
}

#[test]
fn failures_of_its_own_have_the_codes_of_env() {
    said(&mut spinpark(["run", "no-such-program"])).fails(127, &["no program `no-such-program`"]);
    said(&mut spinpark(["run", "/etc/passwd"])).fails(126, &["is not executable"]);
    said(spinpark(["run", "true"]).env("SPINPARK_PRELOAD", "/no/such")).fails(125, &["SPINPARK_PRELOAD"]);
    said(&mut spinpark(["run"])).fails(2, &["<PROG>"]);
}

/// As bundles and containers start programs: the loader is executed, and loads the program.
#[test]
fn a_loader_with_its_program() {
    let Some(loader) = ["/lib64/ld-linux-x86-64.so.2", "/lib/ld-linux-aarch64.so.1"]
        .into_iter()
        .find(|path| Path::new(path).exists())
    else {
        return eprintln!("skipped: no loader of glibc's where it usually is");
    };
    for command in [&["run"][..], &["compare", "--rounds", "6"]] {
        let mut command_line = spinpark([]);
        said(command_line.args(command).args(["--", loader]).arg(program())).succeeds(&[]);
    }
    let result = said(spinpark(["run", "--", loader]).arg(program()).env("SPINPARK_VERBOSE", "1"));
    result.succeeds(&["score: 3000.5"]);
    assert!(result.stderr.starts_with("spinpark: active"), "{}", result.stderr);
    said(&mut spinpark(["run", "--", loader, "/no/such/app"])).fails(127, &["no program `/no/such/app`"]);
    let directory = tempfile::tempdir().unwrap();
    let result = said(recording(directory.path(), ["profile", "--", loader]).arg(waits()).arg("store"));
    assert_eq!((result.code, result.stdout.as_str()), (Some(0), "stored\n"), "{result:#?}");
    assert!(result.stderr.contains("`cache_lock`"), "{}", result.stderr);
}
