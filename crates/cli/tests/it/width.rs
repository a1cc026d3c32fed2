//! Lines are as long as the terminal is wide.

use std::fs::File;
use std::io::Read;
use std::process::{Command, Stdio};

use rustix::fs::{Mode, OFlags, open};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcgetwinsize, tcsetwinsize};

use spinpark_fixtures::command::{lines_fit, program, said};

use crate::fixtures::spinpark;

/// The output of a command on a terminal of `columns` columns, and its exit code.
fn on_a_terminal(command: &mut Command, columns: u16) -> (String, Option<i32>) {
    let terminal = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    grantpt(&terminal).unwrap();
    unlockpt(&terminal).unwrap();
    let path = ptsname(&terminal, Vec::new()).unwrap();
    let end = open(path, OFlags::RDWR | OFlags::NOCTTY, Mode::empty()).unwrap();
    let size = tcgetwinsize(&end).unwrap();
    tcsetwinsize(&end, Winsize { ws_row: 50, ws_col: columns, ..size }).unwrap();
    let copy = || Stdio::from(end.try_clone().unwrap());
    command.env("NO_COLOR", "1").stdin(Stdio::null()).stdout(copy()).stderr(copy());
    let mut child = command.spawn().unwrap();
    // No other end is left open: the last bytes are followed by EIO.
    drop(end);
    command.stdout(Stdio::null()).stderr(Stdio::null());
    let (mut bytes, mut part) = (Vec::new(), [0; 4096]);
    let mut terminal = File::from(terminal);
    while let Ok(read @ 1..) = terminal.read(&mut part) {
        bytes.extend_from_slice(&part[..read]);
    }
    (String::from_utf8(bytes).unwrap().replace('\r', ""), child.wait().unwrap().code())
}

#[test]
fn help() {
    for columns in [80, 100] {
        for args in [&["--help"][..], &["-h"], &["compare", "--help"], &["profile", "--help"]] {
            let (text, code) = on_a_terminal(spinpark([]).args(args), columns);
            assert_eq!(code, Some(0), "{text}");
            assert!(text.contains("Usage: "), "{text}");
            lines_fit(&text, columns);
        }
    }
    let (wide, _) = on_a_terminal(&mut spinpark(["compare", "--help"]), 200);
    lines_fit(&wide, 100);
}

#[test]
fn errors() {
    let wrong = ["compare", "--rounds", "2", "--", "true"];
    let (text, code) = on_a_terminal(&mut spinpark(wrong), 80);
    assert_eq!(code, Some(2), "{text}");
    assert!(text.starts_with("spinpark: --rounds 2 is too few") && text.lines().count() > 2, "{text}");
    lines_fit(&text, 80);
    // A log has the message on a line, which can be searched for.
    let said = said(&mut spinpark(wrong));
    said.fails(2, &["even with five, chance alone puts all of them on the same side in 6 % of cases\n"]);
}

#[test]
fn tables() {
    let narrow = |args: &[&str]| {
        let said = said(spinpark([]).args(args).env("COLUMNS", "80"));
        lines_fit(&said.stdout, 80);
        lines_fit(&said.stderr, 80);
        said
    };
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("result.json");
    let file = file.to_str().unwrap();
    // Its first line has the program's path, which may be longer.
    said(spinpark(["compare", "--rounds", "6", "--json", file, "--"]).arg(program()))
        .succeeds(&["context switches"]);
    narrow(&["report", file]).succeeds(&["context", "95 %"]);
}

/// `LC_ALL=C` asks for ASCII: in tables, in sentences and in the help.
#[test]
fn a_locale_without_utf_8() {
    let run = |args: &[&str]| said(spinpark([]).args(args).env("LC_ALL", "C"));
    for args in [&["profile", "--help"], &["compare", "--help"]] {
        let result = run(args);
        assert!(result.code == Some(0) && result.stdout.is_ascii(), "{args:?}: {result:#?}");
        let usual = said(spinpark([]).args(args));
        assert!(!usual.stdout.is_ascii(), "{args:?}");
    }
    let program = program();
    let result = run(&["compare", "--rounds", "6", "--", program.to_str().unwrap()]);
    result.succeeds(&["median of runs", "95 % interval", "+-"]);
    assert!(result.stdout.is_ascii() && result.stderr.is_ascii(), "{result:#?}");
}
