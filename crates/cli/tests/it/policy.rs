//! `spinpark run --policy`, and what the drop-in makes of its table: a program that prints the policy of each of its
//! locks, as the drop-in has noted it there.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use spinpark_fixtures::command::said;
use spinpark_fixtures::{compile_c, dropin};
use tempfile::TempDir;

use crate::fixtures::spinpark;

fn program() -> PathBuf {
    compile_c("policies.c", &[])
}

/// What the program prints if no table names a lock.
const PLAIN: &str =
    "made 0, other 0\nobject 0\nshards[1] 0, shards[0] 0\nheap 0\ntable 0, flags 0\ncounted 0\nagain 0 0 0\n";
/// And with [`policies`]: the order of names in the drop-in's `policy.rs`.
const CHOSEN: &str =
    "made 1, other 0\nobject 3\nshards[1] 2, shards[0] 0\nheap 4\ntable 6, flags 2\ncounted 5\nagain 0 0 0\n";

/// A file of policies for the program; `build_id` is a line of its module.
fn policies(directory: &Path, build_id: &str) -> PathBuf {
    let sites = said(Command::new(program()).arg("sites")).stdout;
    let (lock, init) = sites.trim().split_once(' ').unwrap();
    let path = program();
    let lock_of = |name: &str, policy: &str, place: &str| {
        format!("[[lock]]\nname = '{name}'\npolicy = '{policy}'\nplaces = [{{ module = 0, {place} }}]\n")
    };
    let text = [
        format!(
            "format = 'spinpark-policy'\nformat_version = 1\n[[module]]\npath = '{}'\n{build_id}\n",
            path.display()
        ),
        lock_of("object", "park", "variables = ['object']"),
        lock_of("shards", "back-off", "variables = ['shards']"),
        lock_of("table", "writers-first", "variables = ['table']"),
        lock_of("counted", "no-bias", "variables = ['counted']"),
        lock_of("heap", "in-order", &format!("sites = ['{lock}']")),
        lock_of("made", "eager", &format!("sites = ['{init}']")),
    ];
    let file = directory.join("policies.toml");
    fs::write(&file, text.concat()).unwrap();
    file
}

fn run(file: &Path) -> Command {
    let mut command = spinpark(["run", "--policy"]);
    command.arg(file).env("SPINPARK_PRELOAD", dropin());
    command
}

/// By variable, by the call that creates a lock, and by the one that first waits; memory that is used again has none.
#[test]
fn each_lock_has_its_policy() {
    let directory = TempDir::new().unwrap();
    let result = said(run(&policies(directory.path(), "")).arg("--").arg(program()));
    assert_eq!((result.code, result.stdout.as_str()), (Some(0), CHOSEN), "{:?}", result.stderr);
    assert_eq!(result.stderr, "");
}

#[test]
fn without_a_table_nothing_is_noted() {
    let result = said(Command::new(program()).arg("plain").env("LD_PRELOAD", dropin()));
    assert_eq!((result.code, result.stdout.as_str()), (Some(0), PLAIN));
}

/// The printed table does the same without the command, as text and as a file.
#[test]
fn the_table_for_the_environment() {
    let directory = TempDir::new().unwrap();
    let file = policies(directory.path(), "");
    let table = said(run(&file).arg("--print-table").arg("--").arg(program()));
    assert_eq!(table.code, Some(0), "{:?}", table.stderr);
    assert!(table.stdout.as_str().starts_with("spinpark-policy 1\nmodule "), "{:?}", table.stdout);
    let saved = directory.path().join("table");
    fs::write(&saved, table.stdout.as_str()).unwrap();
    for value in [saved.into_os_string(), table.stdout.as_str().into()] {
        let result = said(Command::new(program()).env("LD_PRELOAD", dropin()).env("SPINPARK_POLICY", value));
        assert_eq!((result.code, result.stdout.as_str()), (Some(0), CHOSEN), "{:?}", result.stderr);
    }
}

#[test]
fn another_build_is_refused() {
    let directory = TempDir::new().unwrap();
    let file = policies(directory.path(), "build_id = '00112233'");
    let result = said(run(&file).arg("--").arg(program()));
    result.fails(125, &["it is for another build of", "00112233", "Run `spinpark tune` again"]);
    assert_eq!(result.stdout, "");
}

/// The drop-in ignores what is for another build, and says so once.
#[test]
fn the_drop_in_ignores_another_build() {
    let name = program().file_name().unwrap().to_str().unwrap().to_owned();
    for (name, message) in [(name.as_str(), "for another build of a module of that name"), ("other", "")] {
        let table = format!("spinpark-policy 1;module 00ff {name};object 0 0 ffffffff park");
        let result = said(
            Command::new(program()).arg("plain").env("LD_PRELOAD", dropin()).env("SPINPARK_POLICY", table),
        );
        assert_eq!((result.code, result.stdout.as_str()), (Some(0), PLAIN));
        assert!(
            result.stderr.contains(message) && result.stderr.as_str().lines().count() <= 1,
            "{:?}",
            result.stderr
        );
        assert_eq!(result.stderr.as_str().is_empty(), message.is_empty());
    }
}

/// A table that is none is reported, and no lock has a policy; also one that is cut short, and a pipe without a writer.
#[test]
fn what_is_no_table_is_reported() {
    let directory = TempDir::new().unwrap();
    let pipe = directory.path().join("pipe");
    rustix::fs::mknodat(
        rustix::fs::CWD,
        &pipe,
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::from_raw_mode(0o600),
        0,
    )
    .unwrap();
    let long = format!("spinpark-policy 1;module 00 x{}", ";object 0 1 1 park".repeat(257));
    let values = [
        "/nowhere",
        pipe.to_str().unwrap(),
        "/proc/self/cmdline",
        "spinpark-policy 2",
        "spinpark-policy 1;module 0 x",
        "spinpark-policy 1;module zz x",
        "spinpark-policy 1;object 0 1 1 park",
        "spinpark-policy 1;module 00 x;object 0 1 1",
        "spinpark-policy 1;module 00 x;object 0 1 1 fast",
        "spinpark-policy 1;module 00 x;object 0 10000000000000000 1 park",
        &long,
    ];
    for value in values {
        let result = said(
            Command::new(program()).arg("plain").env("LD_PRELOAD", dropin()).env("SPINPARK_POLICY", value),
        );
        assert_eq!((result.code, result.stdout.as_str()), (Some(0), PLAIN), "{value}");
        assert!(
            result.stderr.contains("spinpark: SPINPARK_POLICY is neither a table"),
            "{value}: {:?}",
            result.stderr
        );
    }
}

#[test]
fn what_is_wrong_with_a_file_is_said() {
    let directory = TempDir::new().unwrap();
    let file = policies(directory.path(), "");
    let missing = directory.path().join("missing.toml");
    said(run(&missing).arg("--").arg(program())).fails(125, &["--policy: cannot read"]);
    let text = fs::read_to_string(&file).unwrap();
    fs::write(&file, text.replace("'object'", "'no_such'")).unwrap();
    said(run(&file).arg("--").arg(program())).fails(125, &["has no variable `no_such`"]);
    fs::write(&file, "[[lock]]\n").unwrap();
    said(run(&file).arg("--").arg(program())).fails(125, &["is no file of policies"]);
}

/// A thread that ends in a handler, while it revokes a bias that the table forbids, leaves the lock to others.
#[test]
fn a_thread_that_ends_as_it_forbids_a_bias() {
    let program = compile_c("policy_exit.c", &["-Wl,--build-id=0x51ab90c7"]);
    let site = said(Command::new(&program).arg("site")).stdout;
    let table = format!("spinpark-policy 1;module 51ab90c7 policy_exit;site 0 {} no-bias", site.trim());
    let result = said(Command::new(&program).env("LD_PRELOAD", dropin()).env("SPINPARK_POLICY", table));
    assert_eq!((result.code, result.stdout.as_str(), result.stderr.as_str()), (Some(0), "free\n", ""));
}
