//! The records of this repository can be read.

use std::fs;
use std::path::Path;

use spinpark_lockbench::locks::definitions::Role;
use spinpark_lockbench::locks::experiment::Measured;
use spinpark_lockbench::report::document::{Record, VersionedImplementation};

fn check(implementations: &[VersionedImplementation], measured: &[Measured]) {
    let names: Vec<&str> = implementations.iter().map(|one| one.implementation.name.as_str()).collect();
    assert!(implementations.iter().any(|one| one.implementation.role == Role::Ours));
    assert!(implementations.iter().all(|one| !one.implementation.adapter.is_empty()));
    for Measured { cell, runs, .. } in measured {
        assert!(!cell.workload.is_empty() && !runs.is_empty());
        assert!(cell.implementations.iter().all(|name| names.contains(&name.as_str())), "{}", cell.workload);
        assert!(
            runs.iter().all(|run| cell.implementations.contains(&run.implementation)),
            "{}",
            cell.workload
        );
    }
}

#[test]
fn all_records_are_read() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../records");
    let mut of_planes = Vec::new();
    for file in fs::read_dir(directory).unwrap() {
        let path = file.unwrap().path();
        if path.extension().is_none_or(|extension| extension != "json") {
            continue;
        }
        let record = Record::parse(&fs::read_to_string(&path).unwrap()).unwrap();
        check(&record.implementations, &record.cells);
        let planes: Vec<&str> = record.planes.iter().map(|plane| plane.name.as_str()).collect();
        assert!(record.cells.iter().all(|cell| planes.contains(&cell.plane()) || planes.is_empty()));
        of_planes.push(!planes.is_empty());
    }
    assert!(of_planes.contains(&true) && of_planes.contains(&false), "{of_planes:?}");
}

/// An older record is refused with what to do.
#[test]
fn an_older_schema_is_refused() {
    let text = r#"{"format":"spinpark bench grid","schema":2}"#;
    let said = Record::parse(text).unwrap_err();
    assert!(said.contains("`spinpark bench grid` of schema 2") && said.contains("measure again"), "{said}");
}
