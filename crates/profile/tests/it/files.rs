//! What other programs read: folded stacks, pprof, JSON.

use std::env;
use std::fs;
use std::path::Path;
use std::process::Command;

use flate2::read::GzDecoder;
use prost::Message as _;
use spinpark_fixtures::recordings::{Builder, named, store};
use spinpark_profile::folded::{Options, folded};
use spinpark_profile::model::Warning;
use spinpark_profile::model::{Module, Profile};
use spinpark_profile::pprof::{self, Message};
use spinpark_profile::read::ReadError;
use spinpark_profile::symbols::Symbols;
use spinpark_profile::{json, load, saved};

fn profile() -> Profile {
    let scratch = tempfile::tempdir().expect("scratch space");
    let mut profile = named(store(), scratch.path());
    profile.modules = vec![Module {
        path: String::from("/opt/store/store"),
        build_id: Some(String::from("c0ffee")),
        unnamed: None,
    }];
    profile
}

#[test]
fn folded_stacks() {
    let profile = profile();
    insta::assert_snapshot!(folded(&profile, Options::default()));
    let all = Options { holder: true, signals: true };
    insta::assert_snapshot!("folded_stacks_with_holders_and_signals", folded(&profile, all));
}

#[test]
fn folded_stacks_of_odd_names() {
    let mut profile = profile();
    let call_site = profile.pairs[0].waiter;
    profile.call_sites[call_site].is_cut = true;
    profile.call_sites[call_site].frames[0].is_inlined = true;
    profile.call_sites[call_site].frames[0].function = Some(String::from("a;b"));
    assert!(
        folded(&profile, Options::default()).starts_with("[…];flusher;a:b_[i];[lock: cache_lock] 3500000\n")
    );
    // One line is one stack, whatever a lock is called.
    profile.locks[0].label = String::from("a;b\n#1");
    let text = folded(&profile, Options::default());
    assert!(text.contains(";[lock: a:b #1] 3500000\n"), "{text}");
}

#[test]
fn pprof_message() {
    let profile = profile();
    let mut bytes = Vec::new();
    pprof::write(std::slice::from_ref(&profile), &mut bytes).expect("memory can be written to");
    assert_eq!(bytes[..2], [0x1f, 0x8b], "gzip");
    let mut plain = Vec::new();
    std::io::Read::read_to_end(&mut GzDecoder::new(&bytes[..]), &mut plain).expect("gzip");
    let message = Message::decode(&plain[..]).expect("a message");
    assert_eq!(message, pprof::message(std::slice::from_ref(&profile)));

    let string = |index: i64| message.string_table[index as usize].as_str();
    assert_eq!(message.string_table[0], "");
    let types: Vec<_> =
        message.sample_type.iter().map(|kind| (string(kind.r#type), string(kind.unit))).collect();
    assert_eq!(types, [("contentions", "count"), ("delay", "nanoseconds")]);
    assert_eq!(string(message.default_sample_type), "delay");
    assert_eq!(message.sample.iter().map(|sample| sample.value[1]).sum::<i64>() as u64, profile.waited());
    let first = &message.sample[0];
    assert_eq!(first.value, [4, 3_500_000_000]);
    let labels: Vec<_> =
        first.label.iter().map(|label| (string(label.key), string(label.str), label.num)).collect();
    assert_eq!(
        labels,
        [
            ("lock", "cache_lock", 0),
            ("address", "0x501000", 0),
            ("kind", "mutex", 0),
            ("role", "write", 0),
            ("pid", "", 4242)
        ]
    );
    let names: Vec<_> = first
        .location_id
        .iter()
        .map(|id| {
            let location = &message.location[*id as usize - 1];
            let line = &location.line[0];
            (string(message.function[line.function_id as usize - 1].name), line.line)
        })
        .collect();
    assert_eq!(names, [("flush", 131), ("flusher", 70)]);
    let mapping = &message.mapping[0];
    assert_eq!((string(mapping.filename), string(mapping.build_id)), ("/opt/store/store", "c0ffee"));
    assert!(mapping.has_functions && mapping.has_line_numbers);
}

#[test]
fn inlined_frames_are_one_location() {
    let mut profile = profile();
    let call_site = profile.pairs[0].waiter;
    let mut inlined = profile.call_sites[call_site].frames[0].clone();
    inlined.is_inlined = true;
    inlined.function = Some(String::from("inner"));
    profile.call_sites[call_site].frames.insert(0, inlined);
    let message = pprof::message(&[profile]);
    let sample = &message.sample[0];
    assert_eq!(sample.location_id.len(), 2);
    assert_eq!(message.location[sample.location_id[0] as usize - 1].line.len(), 2);
}

/// The real tool reads it.
#[test]
fn go_tool_pprof() {
    let is_required = env::var("SPINPARK_REQUIRE_PROGRAMS").is_ok_and(|value| value == "1");
    if Command::new("go").arg("version").output().is_err() {
        assert!(!is_required, "go is required and not installed (Debian: golang-go)");
        println!("skipped: go is not installed (Debian: golang-go)");
        return;
    }
    let scratch = tempfile::tempdir().expect("scratch space");
    let file = scratch.path().join("profile.pb.gz");
    pprof::write(&[profile()], fs::File::create(&file).expect("a file")).expect("it is written");
    let pprof = |arguments: &[&str]| {
        let mut command = Command::new("go");
        command.args(["tool", "pprof"]).args(arguments).arg(&file);
        // Nothing is fetched, and no file is left in the home directory.
        command.env("PPROF_TMPDIR", scratch.path()).env("GOPROXY", "off");
        let output = command.output().expect("go runs");
        let (out, error) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert!(output.status.success(), "go tool pprof {arguments:?}: {error}");
        out.into_owned()
    };
    let top = pprof(&["-top"]);
    assert!(top.contains("Type: delay") && top.contains("flush"), "{top}");
    let row = top.lines().find(|line| line.ends_with(" flush")).expect("a row");
    assert!(row.trim_start().starts_with("3500ms"), "{row}");
    let counts = pprof(&["-top", "-sample_index=contentions"]);
    assert!(
        counts.lines().any(|line| line.trim_start().starts_with("4 ") && line.ends_with(" flush")),
        "{counts}"
    );
    let focused = pprof(&["-top", "-tagfocus=lock=rwlock"]);
    assert!(focused.contains("lookup") && !focused.contains("flush"), "{focused}");
    let tags = pprof(&["-tags"]);
    assert!(tags.contains("cache_lock") && tags.contains("0x501000"), "{tags}");
    let only = pprof(&["-top", "-tagfocus=lock=^cache_lock$"]);
    assert!(only.contains("flush") && !only.contains("lookup"), "{only}");
    // Which lock is a leaf, if that is wanted.
    let leaves = pprof(&["-traces", "-tagleaf=lock"]);
    let flush = leaves.lines().position(|line| line.trim_end().ends_with(" flush")).expect("a stack");
    assert!(leaves.lines().nth(flush - 1).is_some_and(|line| line.contains("cache_lock")), "{leaves}");
    let roots = pprof(&["-top", "-cum", "-tagroot=lock"]);
    let row = roots.lines().find(|line| line.ends_with(" cache_lock")).expect("a row");
    assert!(row.contains("3800ms"), "{row}");
    let raw = pprof(&["-raw"]);
    assert!(raw.contains("/opt/store/store c0ffee"), "{raw}");
}

#[test]
fn json_round_trip() {
    let scratch = tempfile::tempdir().expect("scratch space");
    let profile = profile();
    let text = json::text(std::slice::from_ref(&profile));
    assert!(
        text.starts_with("[\n  {\n    \"format\": \"spinpark-profile\",\n    \"version\": 3,"),
        "{}",
        &text[..80]
    );
    let path = saved::save(scratch.path(), &[profile], u64::MAX).expect("it is written");
    let again = json::read(&path).expect("it is ours");
    assert_eq!(json::text(&again), text);
    assert_eq!(fs::read_dir(scratch.path()).expect("a directory").count(), 1, "nothing else is left");
    // One process alone is read too.
    let one = path.with_file_name("one.json");
    fs::write(&one, serde_json::to_string(&again[0]).expect("text")).expect("it is written");
    assert_eq!(json::text(&json::read(&one).expect("it is ours")), text);
}

#[test]
fn losses_are_warnings_of_a_kind() {
    let (lost, noted) = (String::from("7 records are gone."), String::from("Names may be wrong."));
    let mut profile = profile();
    profile.warnings = vec![Warning::Loss(lost.clone()), Warning::Note(noted.clone())];
    assert!(profile.is_partial());
    let mut json = serde_json::to_value(&profile).expect("JSON");
    assert_eq!(json["warnings"], serde_json::json!([lost, noted]), "all of them, as sentences");
    assert_eq!(json["losses"], serde_json::json!([lost]));
    let again =
        |json: &serde_json::Value| serde_json::from_value::<Profile>(json.clone()).expect("a profile");
    assert_eq!(again(&json).warnings, profile.warnings);
    // The words do not matter.
    json["losses"] = serde_json::json!([]);
    json["warnings"] = serde_json::json!(["The disk was cut short, and cables were left out."]);
    assert!(!again(&json).is_partial());
    json.as_object_mut().expect("an object").remove("losses");
    assert_eq!(again(&json).warnings.len(), 1);
}

#[test]
fn other_json_is_refused() {
    let scratch = tempfile::tempdir().expect("scratch space");
    let path = scratch.path().join("x.json");
    let error = |text: &str| {
        fs::write(&path, text).expect("it is written");
        load::load(&path, &mut Symbols::none()).expect_err("it is refused")
    };
    assert!(matches!(error("{"), ReadError::Json(..)));
    assert!(matches!(error("3"), ReadError::Foreign(_)));
    assert!(matches!(error("{\"a\": 1}"), ReadError::Foreign(_)));
    assert!(matches!(error("[{\"format\": \"other\", \"version\": 1}]"), ReadError::Foreign(_)));
    assert!(matches!(error("[{\"format\": \"spinpark-profile\"}]"), ReadError::Version(_, 0)));
    let version = error("[{\"format\": \"spinpark-profile\", \"version\": 7}]");
    assert!(
        matches!(version, ReadError::Version(_, 7)) && version.to_string().contains("spinpark report --json")
    );
    assert!(matches!(
        error("[{\"format\": \"spinpark-profile\", \"version\": 2}]"),
        ReadError::Version(_, 2)
    ));
    assert!(matches!(error("[{\"format\": \"spinpark-profile\", \"version\": 3}]"), ReadError::Json(..)));
}

#[test]
fn a_directory_is_read_from_its_json_where_that_has_the_process() {
    let scratch = tempfile::tempdir().expect("scratch space");
    let mut saved = named(store(), scratch.path());
    saved.program = String::from("from JSON");
    let mut child = Builder::new();
    child.header().pid = 4300;
    child.header().start_realtime += 5;
    child.write(scratch.path()).expect("it is written");
    saved::save(scratch.path(), &[saved.clone()], u64::MAX).expect("it is written");
    let programs = || {
        let loaded = load::load(scratch.path(), &mut Symbols::none()).expect("it can be read");
        assert!(loaded.broken.is_empty());
        loaded.profiles.into_iter().map(|profile| (profile.pid, profile.program)).collect::<Vec<_>>()
    };
    let store = String::from("/opt/store/store");
    assert_eq!(programs(), [(4242, String::from("from JSON")), (4300, store.clone())]);
    saved.ended = spinpark_profile::model::RecordingEnd::Running;
    saved::save(scratch.path(), &[saved], u64::MAX).expect("it is written");
    assert_eq!(programs(), [(4242, store.clone()), (4300, store)], "it is read again");
    // Without recordings the JSON is all there is.
    for pid in [4242, 4300] {
        let files =
            fs::read_dir(scratch.path()).expect("a directory").map(|entry| entry.expect("an entry").path());
        let start = format!("{pid}-");
        let is_of = |path: &Path| path.file_name().is_some_and(|it| it.to_string_lossy().starts_with(&start));
        files.filter(|path| is_of(path)).for_each(|path| fs::remove_file(path).expect("it is there"));
    }
    assert_eq!(programs().len(), 1);
    fs::write(scratch.path().join("profile.json"), "junk").expect("it is written");
    assert!(load::load(scratch.path(), &mut Symbols::none()).is_err());
}
