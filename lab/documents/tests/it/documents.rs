//! The report of the four documents, from fixed runs: without a clock and without a process.

use spinpark_documents::documents::{Definition, Run, RunReport, What, documents};
use spinpark_documents::published::PUBLISHED;
use spinpark_documents::report::documents::forms::{html, markdown};
use spinpark_documents::report::documents::json::Document;
use spinpark_documents::report::documents::page::{self, Mark, Page};
use spinpark_documents::workloads::experiment::{Cell, Configuration, Measured};
use spinpark_documents::workloads::job::Report;
use spinpark_documents::workloads::resources::Requirements;
use spinpark_documents::workloads::result::CellResult;
use spinpark_documents::workloads::{self, Workload, result};
use spinpark_documents::{mutex_2010, rwsem_2013, wake_op_2005};
use spinpark_lockbench::locks::definitions::Definitions;
use spinpark_lockbench::locks::experiment as of_locks;
use spinpark_lockbench::locks::load::Placement;
use spinpark_lockbench::report;
use spinpark_measure::report::Head;
use spinpark_measure::rounds::cells::{Plan, measure};
use spinpark_measure::rounds::environment::Environment;
use spinpark_measure::rounds::failure::RunError;
use spinpark_measure::rounds::machine::Noise;
use spinpark_measure::rounds::warnings::Warning;

const SEED: u64 = 1;

/// A machine with two CPUs.
fn environment() -> Environment {
    Environment {
        spinpark: String::from("0.1.0"),
        rustc: String::from("rustc 1.95.0"),
        kernel: String::from("6.18.1"),
        glibc: String::from("2.36"),
        cpu: String::from("Some <fast> & cheap CPU"),
        cpus: 2,
        virtual_machine: true,
        governor: None,
        date: String::from("2026-01-02T03:04:05Z"),
    }
}

/// A number between -1 and 1 that looks like noise.
fn noise(plan: &Plan, place: usize) -> f64 {
    ((plan.round * 7 + place * 3 + usize::from(plan.again)) as f64 * 12.9898).sin()
}

/// Runs of the cells: each configuration is half as fast again as the one before it.
fn outcome(workload: &'static Workload, cells: &[(&str, usize)], configurations: &[&str]) -> What {
    let configurations: Vec<Configuration> =
        configurations.iter().map(|name| Configuration::new(*name, &())).collect();
    let cell = |&(variant, tasks): &(&str, usize)| {
        let needs = Requirements::default();
        Measured::new(Cell {
            variant: variant.to_owned(),
            tasks,
            configurations: configurations.clone(),
            needs,
        })
    };
    let mut run = |measured: &Measured, plan: &Plan| -> Result<Report, RunError> {
        let place = measured
            .cell
            .configurations
            .iter()
            .position(|configuration| configuration.name == plan.configuration)
            .unwrap();
        let speed = 1.5_f64.powi(place as i32) * (1.0 + 0.004 * noise(plan, place));
        let columns = [("user_s", 0.2), ("system_s", 0.3), ("futex_calls", 3.0)];
        let columns = columns.map(|(key, value)| (key.to_owned(), value / speed));
        let is_timed = workload.figure.more_is_better();
        Ok(Report {
            operations: if is_timed { (1e5 * speed) as u64 } else { 100_000 },
            elapsed_s: if is_timed { 0.5 } else { 0.5 / speed },
            columns: columns.into(),
            ..Report::default()
        })
    };
    let (cells, end) = measure(cells.iter().map(cell).collect(), 8, SEED, &mut run);
    let results = cells.iter().filter_map(|cell| CellResult::new(cell, workload.figure, SEED)).collect();
    let record = result::Record {
        head: Head {
            format: result::FORMAT.to_owned(),
            schema: result::SCHEMA,
            end: end.name().to_owned(),
            command: String::from("spinpark-lab bench"),
            rounds: 8,
            millis: 0,
            seed: SEED,
            environment: environment(),
        },
        workload: workload.name.to_owned(),
        figure: workload.figure.header(),
        file_system: None,
        cells,
    };
    What::Workload { workload, record: Box::new(record), results, noise: Noise::default() }
}

/// Runs of FreeBSD's mutex: back-off needs two thirds of the time, the rest makes no difference.
fn hot_lock() -> What {
    let definitions = Definitions::built_in().unwrap();
    let names = definitions.preset("mtx").unwrap().implementations.clone();
    let workload = definitions.workload("hot-lock").unwrap();
    let cell = |threads| {
        of_locks::Measured::new(of_locks::Cell {
            workload: workload.name.clone(),
            place: None,
            load: workload.load.clone(),
            threads,
            cpus: Placement::Any,
            at_least_millis: 0,
            implementations: names.clone(),
            skipped: Vec::new(),
        })
    };
    let (cells, end) = measure([2, 16].map(cell).to_vec(), 8, SEED, &mut |_: &of_locks::Measured, plan| {
        let time = if plan.configuration.ends_with("backoff") { 100.0 } else { 150.0 };
        let time = time * (1.0 + 0.002 * noise(plan, 0));
        Ok(spinpark_lockbench::locks::workloads::Report {
            operations: 1_000_000,
            elapsed_s: time * 1e-3,
            ..Default::default()
        })
    });
    let implementation = |name: &String| report::document::VersionedImplementation {
        implementation: definitions.implementation(name).unwrap().clone(),
        version: None,
    };
    let results =
        cells.iter().filter_map(|cell| spinpark_lockbench::locks::result::CellResult::new(cell, SEED));
    let results = results.collect();
    let record = report::document::Record {
        head: Head {
            format: report::document::FORMAT.to_owned(),
            schema: report::document::SCHEMA,
            end: end.name().to_owned(),
            command: String::from("spinpark-lab documents mtx"),
            rounds: 8,
            millis: 40,
            seed: SEED,
            environment: environment(),
        },
        implementations: names.iter().map(implementation).collect(),
        planes: Vec::new(),
        bound_definitions: Vec::new(),
        calibrations: Vec::new(),
        cells,
    };
    What::Locks { record: Box::new(record), results, noise: Noise::default() }
}

fn what(run: &Run) -> What {
    let mmap = [("untouched", 1), ("untouched", 5), ("touched", 2), ("touched", 40)];
    match run.name.as_str() {
        "creat" => outcome(
            &mutex_2010::creat::WORKLOAD,
            &[("files removed again", 2), ("files removed again", 256)],
            &["threads classic-mutex-2.6.34", "threads classic-mutex-fixed", "processes"],
        ),
        "mmap" => outcome(&rwsem_2013::mmap::WORKLOAD, &mmap, &["plain", "mutex glibc", "mutex spinpark"]),
        "mmap-classic" => {
            let configurations =
                ["calls classic-rwsem-3.12", "calls classic-rwsem-nospin", "calls classic-rwsem-full"];
            outcome(&rwsem_2013::mmap::WORKLOAD, &mmap, &configurations)
        }
        "mixes" => outcome(&workloads::jobs::WORKLOAD, &[("shared", 2), ("short", 2)], &["users"]),
        "condvar" => outcome(
            &wake_op_2005::condvar::WORKLOAD,
            &[("one CPU, waiter first", 2)],
            &["classic-condvar-orig", "classic-condvar-requeue", "classic-condvar-wake-op"],
        ),
        "mtx" => hot_lock(),
        "select" => What::Nothing(String::from("MariaDB is not here <yet>\nInstall `mariadb-server`")),
        _ => What::Nothing(String::from("left out")),
    }
}

fn outcomes(definition: &Definition) -> Vec<RunReport> {
    let of = |run: &Run| RunReport {
        name: run.name.clone(),
        title: run.title.clone(),
        command: format!("spinpark-lab documents {}", run.words(true, None).join(" ")),
        what: what(run),
        failure: None,
        warnings: if run.name == "creat" { vec![Warning::DebugBuild] } else { Vec::new() },
    };
    definition.runs.iter().map(of).collect()
}

fn page() -> (Page, Vec<Vec<RunReport>>) {
    let documents = documents(&[]).unwrap();
    let outcomes: Vec<Vec<RunReport>> = documents.iter().map(|(_, document)| outcomes(document)).collect();
    let sections = documents.iter().zip(&outcomes);
    let sections = sections
        .map(|((number, document), outcomes)| page::section(number, document, outcomes, &environment()));
    let page = Page {
        environment: environment(),
        command: String::from("spinpark-lab documents run --quick"),
        end: String::from("complete"),
        is_quick: true,
        documents: sections.collect(),
    };
    (page, outcomes)
}

#[test]
fn as_markdown() {
    insta::assert_snapshot!(markdown(&page().0));
}

#[test]
fn rows_are_marked_by_the_cpus_that_they_need() {
    let (page, _) = page();
    let marks = |name: &str| -> Vec<Mark> {
        let mut tables = page.documents.iter().flat_map(|section| &section.tables);
        tables.find(|table| table.name == name).unwrap().rows.iter().map(|row| row.mark).collect()
    };
    use Mark::{Beyond, Here, Published};
    assert_eq!(marks("rwsem_mmap_untouched"), [Here, Beyond, Published, Published, Published]);
    assert_eq!(marks("rwsem_mmap_touched")[1], Here);
    assert_eq!(marks("rwsem_mmap_touched")[7], Beyond);
    // On one CPU, two threads are what the document had.
    assert_eq!(marks("condvar_signal"), [Here, Published, Here, Published, Here, Published]);
    assert!(marks("mutex_acquisition_histogram").iter().all(|mark| *mark == Published));
}

#[test]
fn every_row_has_a_cell_per_column() {
    let (page, _) = page();
    for table in page.documents.iter().flat_map(|section| &section.tables) {
        assert!(table.rows.iter().all(|row| row.cells.len() == table.columns.len()), "{}", table.name);
    }
}

#[test]
fn html_is_well_formed_and_needs_nothing_else() {
    let (page, _) = page();
    let text = html(&page).unwrap();
    let options = roxmltree::ParsingOptions { allow_dtd: true, ..Default::default() };
    let document = roxmltree::Document::parse_with_options(&text, options).unwrap();
    let links: Vec<&str> = page.documents.iter().filter_map(|section| section.link.as_deref()).collect();
    for node in document.descendants().filter(roxmltree::Node::is_element) {
        assert!(!["script", "link", "img", "iframe", "object"].contains(&node.tag_name().name()));
        for attribute in node.attributes() {
            let is_link = node.tag_name().name() == "a" && links.contains(&attribute.value());
            assert!(is_link || !attribute.value().contains("http"), "{attribute:?}");
        }
    }
    assert!(!text.contains("@import") && !text.contains("url("));
    for published in &PUBLISHED {
        let table = document.descendants().find(|node| node.attribute("id") == Some(published.name));
        assert!(table.is_some(), "{} is missing", published.name);
    }
    let count = |name: &str| document.descendants().filter(|node| node.tag_name().name() == name).count();
    // creat, mmap and mmap-classic touched and not; the hot lock. Others have one number of tasks.
    assert_eq!(count("svg"), 6);
    assert!(count("table") >= PUBLISHED.len() + 6);
    assert!(text.contains("MariaDB is not here &lt;yet&gt;") && text.contains("<code>mariadb-server</code>"));
    assert!(text.contains("Some &lt;fast&gt; &amp; cheap CPU"));
}

#[test]
fn json_has_what_each_command_would_write() {
    let (page, outcomes) = page();
    let document = serde_json::to_value(Document::new(&page, &outcomes)).unwrap();
    let runs = &document["documents"][0]["runs"];
    assert_eq!((&runs[0]["name"], &runs[0]["result"]["workload"]), (&"creat".into(), &"creat".into()));
    assert_eq!(runs[1]["obstacle"], "left out");
    let creat = serde_json::to_string(&runs[0]["result"]).unwrap();
    assert_eq!(result::Record::parse(&creat).unwrap().cells.len(), 2);
    let mtx = serde_json::to_string(&document["documents"][3]["runs"][0]["result"]).unwrap();
    assert_eq!(report::document::Record::parse(&mtx).unwrap().implementations.len(), 12);
}

/// What a run measured before it failed stays, with the reason.
#[test]
fn a_failure_is_said_in_its_place() {
    let (_, mut outcomes) = page();
    let creat = &mut outcomes[0][0];
    let What::Workload { record, .. } = &mut creat.what else { panic!() };
    record.head.end = String::from("failed");
    creat.failure = Some(String::from("the lock under test does not exclude"));
    let (number, definition) = documents(&[String::from("001")]).unwrap().remove(0);
    let section = page::section(number, &definition, &outcomes[0], &environment());
    let said = section.runs[0].obstacle.as_deref().unwrap();
    assert!(said.contains("rounds before it") && said.contains("does not exclude"), "{said}");
    assert_eq!(section.tables[0].rows[0].mark, Mark::Beyond);
}
