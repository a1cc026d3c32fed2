//! The records of this repository, whatever schema wrote them, can be read.

use std::fs;
use std::path::Path;

use spinpark_lockbench::locks::definitions::Role;
use spinpark_lockbench::locks::experiment::Measured;
use spinpark_lockbench::report::grid::document as of_grid;
use spinpark_lockbench::report::locks::document as of_locks;
use spinpark_measure::report::reading::Header;

fn check(implementations: &[of_locks::VersionedImplementation], measured: &[&Measured]) {
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
    let mut formats = Vec::new();
    for file in fs::read_dir(directory).unwrap() {
        let path = file.unwrap().path();
        if path.extension().is_none_or(|extension| extension != "json") {
            continue;
        }
        let text = fs::read_to_string(&path).unwrap();
        let header = Header::parse(&text).unwrap();
        if header.format == of_grid::FORMAT {
            let record = of_grid::Record::parse(&text).unwrap();
            check(
                &record.implementations,
                &record.cells.iter().map(|cell| &cell.measured).collect::<Vec<_>>(),
            );
        } else {
            let record = of_locks::Record::parse(&text).unwrap();
            check(&record.implementations, &record.cells.iter().collect::<Vec<_>>());
            assert!(record.bound_definitions.iter().all(|bound| !bound.workload.is_empty()));
        }
        formats.push(header.format);
    }
    for format in [of_grid::FORMAT, of_locks::FORMAT] {
        assert!(formats.contains(&format.to_owned()), "no record of {format}: {formats:?}");
    }
}
