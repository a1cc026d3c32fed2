//! Lines are as long as the terminal is wide.

use spinpark_fixtures::command::{lines_fit, said};

use crate::fixtures::spinpark;

#[test]
fn tables() {
    let narrow = |args: &[&str]| {
        let said = said(spinpark([]).args(args).env("COLUMNS", "80"));
        lines_fit(&said.stdout, 80);
        lines_fit(&said.stderr, 80);
        said
    };
    narrow(&["bench", "list"]).succeeds(&["condvar-ping-pong", "An iteration is", "mutex-bursts"]);
    narrow(&["documents", "list"]).succeeds(&["create and close", "--mix"]);
    let record = concat!(env!("CARGO_MANIFEST_DIR"), "/../../records/2026-11-22-intel-xeon-2cpus-vm.json");
    narrow(&["bench", "show", record]).succeeds(&["bounds:"]);
    let grid = concat!(env!("CARGO_MANIFEST_DIR"), "/../../records/2026-11-23-amd-epyc-2cpus-vm-grid.json");
    narrow(&["bench", "show", grid]).succeeds(&["mutex, 16 threads", "Noise: "]);
}

/// `LC_ALL=C` asks for ASCII.
#[test]
fn a_locale_without_utf_8() {
    for args in [&["--help"][..], &["bench", "list"], &["sim", "list"]] {
        let result = said(spinpark([]).args(args).env("LC_ALL", "C"));
        assert!(result.code == Some(0) && result.stdout.is_ascii(), "{args:?}: {result:#?}");
        let usual = said(spinpark([]).args(args));
        assert!(!usual.stdout.is_ascii(), "{args:?}");
    }
}
