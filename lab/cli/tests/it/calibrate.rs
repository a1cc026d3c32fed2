//! `spinpark-lab sim calibrate`.

use spinpark_experiments::calibrate::Measure;

use spinpark_fixtures::command::said;

use crate::fixtures::spinpark;

#[test]
fn a_debug_build_is_refused_and_a_release_build_measures() {
    let directory = tempfile::tempdir().unwrap();
    let out = directory.path().join("here.toml");
    let result = said(spinpark(["sim", "calibrate", "--rounds", "1", "--output"]).arg(&out));
    if cfg!(debug_assertions) {
        result.fails(2, &["debug build", "Build with --release"]);
        return;
    }
    let text = std::fs::read_to_string(&out).unwrap();
    assert!(text.starts_with("name = \"here\""), "{text}");
    assert!(text.contains(Measure::Hit.how()), "{text}");
}

#[test]
fn rounds_are_checked() {
    said(&mut spinpark(["sim", "calibrate", "--rounds", "0"])).fails(2, &["--rounds", "from 1 to 1000"]);
}
