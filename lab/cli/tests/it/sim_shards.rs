//! `spinpark-lab sim sweep --shard` and `spinpark-lab sim merge`: parts that become the whole, byte by byte.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use spinpark_fixtures::command::{Said, said};

use crate::fixtures::spinpark;

/// A sweep of 12 runs.
fn sweep(args: &[&str], directory: &Path) -> Said {
    let mut command = spinpark(["sim", "sweep", "--machine", "plain-2,plain-4", "--duration", "100us"]);
    command.args([
        "--locks",
        "spinpark,classic-mutex-nospin,classic-tas",
        "--threads",
        "1,5",
        "--seeds",
        "1",
    ]);
    said(command.args(args).current_dir(directory))
}

fn merge(args: &[&str], directory: &Path) -> Said {
    said(spinpark(["sim", "merge"]).args(args).current_dir(directory))
}

fn read(directory: &Path, name: &str) -> String {
    fs::read_to_string(directory.join(name)).unwrap()
}

#[test]
fn shards_merge_to_the_bytes_of_the_whole() {
    let at = tempfile::tempdir().unwrap();
    let at = at.path();
    let whole = sweep(&["--json-lines", "whole", "--csv", "whole.csv", "--details"], at);
    whole.succeeds(&["4 cells × 3 locks × 1 seed: 12 runs"]);
    for shard in ["1", "2", "3", "4", "5"] {
        let part = sweep(&["--shard", &format!("{shard}/5"), "--json-lines", shard], at);
        part.succeeds(&[&format!("shard {shard}/5: ")]);
    }
    let lines = |name: &str| read(at, name).lines().count();
    assert_eq!((lines("whole"), lines("1"), lines("3")), (13, 4, 3));
    // The order of files is of no account, nor that one is there twice.
    let out = ["--json-lines", "merged", "--csv", "merged.csv", "--details"];
    let merged = merge(&[&["4", "2", "5", "1", "3", "2"], &out[..]].concat(), at);
    merged.succeeds(&["hot-lock on plain-4: longest wait by threads"]);
    assert!(read(at, "merged") == read(at, "whole"), "the lines differ");
    assert_eq!(read(at, "merged.csv"), read(at, "whole.csv"));
    let table = whole.stdout.split_once("\n\n").unwrap().1;
    assert_eq!(merged.stdout.trim(), table.trim());
    // A sweep that was made in one go is merged, too; and several in one file.
    let stream: String = ["3", "1", "5", "4", "2"].map(|shard| read(at, shard)).concat();
    fs::write(at.join("all"), stream).unwrap();
    let mut command = spinpark(["sim", "merge", "-", "whole", "--json-lines", "again"]);
    command.stdin(Stdio::from(fs::File::open(at.join("all")).unwrap())).current_dir(at);
    said(&mut command).succeeds(&["hot-lock on plain-2"]);
    assert!(read(at, "again") == read(at, "whole"));
    // A shard that has none of the runs is one as well.
    sweep(&["--shard", "40/50", "--json-lines", "-"], at).succeeds(&["\"shard\":[40,50]"]);
}

#[test]
fn what_cannot_be_merged() {
    let at = tempfile::tempdir().unwrap();
    let at = at.path();
    for shard in ["1", "2", "3"] {
        sweep(&["--shard", &format!("{shard}/3"), "--json-lines", shard], at).succeeds(&[]);
    }
    fs::write(at.join("old"), "old").unwrap();
    let fails = |files: &[&str], words: &[&str]| {
        merge(&[files, &["--json-lines", "old"]].concat(), at).fails(2, words);
        assert_eq!(read(at, "old"), "old");
    };
    fails(&["1", "3"], &["4 of 12 runs are missing: those of --shard 2/3", "merge again"]);
    let two = read(at, "2");
    fs::write(at.join("cut"), two.lines().take(3).collect::<Vec<_>>().join("\n")).unwrap();
    fails(&["1", "cut", "3"], &["2 of 12 runs are missing: those of --shard 2/3"]);
    fs::write(at.join("cut"), &two[..two.len() - 20]).unwrap();
    fails(&["1", "cut", "3"], &["cut, line 5: the line is cut off or damaged", "Simulate that shard again"]);
    fs::write(at.join("other"), two.replacen("\"for_ns\":100000", "\"for_ns\":100001", 1)).unwrap();
    fails(&["1", "other", "3"], &["1 and other are shards of different sweeps: they differ in --duration"]);
    let build = two.split("\"build\":\"").nth(1).unwrap().split('"').next().unwrap();
    fs::write(at.join("other"), two.replacen(build, "0.0.1 abc", 1)).unwrap();
    fails(&["1", "other", "3"], &["1 and other were made by different builds of spinpark", "0.0.1 abc"]);
    let changed = two.replacen("\"in_time\":", "\"in_time\":1", 1);
    fs::write(at.join("other"), changed).unwrap();
    fails(&["1", "2", "other", "3"], &["differs between 2 and other"]);
    fs::write(at.join("other"), "{\"format\":\"spinpark-lab sim run\",\"schema\":2}\n").unwrap();
    fails(&["1", "other"], &["other, line 1: this is no line of a sweep", "--json-lines FILE"]);
    fs::write(at.join("other"), "").unwrap();
    fails(&["other"], &["other is empty"]);
    fails(&["none"], &["cannot read none", "--json-lines FILE"]);
    merge(&[], at).fails(2, &["<FILE>..."]);
}

#[test]
fn no_such_shard() {
    let at = tempfile::tempdir().unwrap();
    let fails = |shard: &str, more: &[&str], words: &[&str]| {
        sweep(&[&["--shard", shard], more].concat(), at.path()).fails(2, words);
    };
    let lines = &["--json-lines", "x"];
    fails("4/3", lines, &["there is no shard 4 of 3: the last one is 3/3"]);
    fails("0/3", lines, &["shards count from 1: 1/3 … 3/3"]);
    fails("3", lines, &["write K/N, as in 3/8"]);
    fails("1/3", &[], &["--json-lines <FILE>"]);
    fails(
        "1/3",
        &["--json-lines", "x", "--html", "y"],
        &["--html is about a whole sweep", "spinpark-lab sim merge"],
    );
    assert_eq!(fs::read_dir(at.path()).unwrap().count(), 0, "nothing was simulated");
}

/// GNU parallel keeps the lines of a job together; Slurm writes a file each.
#[test]
fn interrupted_shards_are_told() {
    let at = tempfile::tempdir().unwrap();
    let mut command =
        spinpark(["sim", "sweep", "--machine", "plain-4", "--duration", "100s", "--threads", "4"]);
    command.args(["--shard", "1/2", "--json-lines", "1", "--seeds", "2", "--locks", "spinpark"]);
    let mut child =
        command.current_dir(at.path()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut first = [0; 1];
    std::io::Read::read_exact(child.stdout.as_mut().unwrap(), &mut first).unwrap();
    assert!(Command::new("kill").args(["-s", "INT", &child.id().to_string()]).status().unwrap().success());
    assert_eq!(child.wait().unwrap().code(), Some(130));
    merge(&["1"], at.path()).fails(2, &["2 of 2 runs are missing: those of --shard 1/2, 2/2"]);
}
