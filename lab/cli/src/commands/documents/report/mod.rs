//! `spinpark-lab documents run`: many workloads, one report.

mod files;
mod part;

use std::process::ExitCode;

use spinpark_documents::documents::{Definition, RunReport, What, documents};
use spinpark_documents::report::documents::page::{self, Page};
use spinpark_measure::text::units::counted;

use self::files::Files;
use self::part::Part;
use crate::cli::DocumentsRun;
use spinpark_cli::exit::BatchEnd;
use spinpark_cli::own;
use spinpark_cli::progress::{Progress, about};
use spinpark_cli::say::{self, Say};
use spinpark_cli::session::Session;

/// A document with what is to be run.
struct Planned {
    number: &'static str,
    definition: Definition,
    parts: Vec<Part>,
}

/// Checks all parts, measures one after the other, writes the report.
pub(super) fn run(wanted: &DocumentsRun) -> anyhow::Result<ExitCode> {
    let documents = documents(&wanted.only)?;
    let files = Files::open(wanted)?;
    let say = Say::apart_from(&[&wanted.json]);
    let session = Session::start(wanted.seed)?;
    let plan = |(number, definition): (&'static str, Definition)| {
        let part = |run| Part::new(run, wanted.quick, wanted.rounds);
        let parts = definition.runs.iter().map(part).collect();
        Planned { number, definition, parts }
    };
    let planned: Vec<Planned> = documents.into_iter().map(plan).collect();
    intro(&planned, &session, say);
    say::check()?;

    let parts = || planned.iter().flat_map(|document| &document.parts);
    let mut progress = Progress::new(parts().map(Part::runs).sum(), Some(parts().map(Part::seconds).sum()));
    let mut state = State { session: &session, is_interrupted: false, has_failed: false };
    let (mut sections, mut outcomes) = (Vec::new(), Vec::new());
    for Planned { number, definition, parts } in planned {
        let of_document: Vec<RunReport> =
            parts.into_iter().map(|part| state.outcome(part, &mut progress)).collect();
        sections.push(page::section(number, &definition, &of_document, &session.environment));
        outcomes.push(of_document);
    }
    drop(progress);
    let page = Page {
        environment: session.environment.clone(),
        command: own::command_line(),
        end: state.end().name().to_owned(),
        is_quick: wanted.quick,
        documents: sections,
    };
    files.write(&page, &outcomes, say)?;
    Ok(state.end().code(false))
}

fn intro(planned: &[Planned], session: &Session, say: Say) {
    let parts: Vec<&Part> = planned.iter().flat_map(|document| &document.parts).collect();
    let seconds: f64 = parts.iter().map(|part| part.seconds()).sum();
    let runs: usize = parts.iter().map(|part| part.runs()).sum();
    say.wrapped(
        &format!(
            "{}, {}, {runs} runs in shuffled order (seed {}), about {}. Ctrl-C: the report so far.",
            counted(planned.len(), "document"),
            counted(parts.len(), "part"),
            session.seed,
            about(seconds),
        ),
        2,
    );
    for part in parts {
        if let Some(obstacle) = part.obstacle() {
            say.wrapped(&format!("Not here: {} ({})", part.name(), obstacle.replace('\n', ". ")), 2);
        }
    }
}

/// How far it is.
struct State<'a> {
    session: &'a Session,
    is_interrupted: bool,
    has_failed: bool,
}

impl State<'_> {
    fn outcome(&mut self, part: Part, progress: &mut Progress) -> RunReport {
        if self.is_interrupted {
            return part.nothing(String::from("Not run: interrupted before."));
        }
        let outcome = part.run(self.session, progress);
        let end = match &outcome.what {
            What::Workload { record, .. } => record.head.end.as_str(),
            What::Locks { record, .. } => record.head.end.as_str(),
            What::Nothing(_) => "",
        };
        self.is_interrupted |= end == "interrupted";
        self.has_failed |= outcome.failure.is_some();
        outcome
    }

    fn end(&self) -> BatchEnd {
        match (self.is_interrupted, self.has_failed) {
            (true, _) => BatchEnd::Interrupted,
            (false, true) => BatchEnd::Failed,
            (false, false) => BatchEnd::Complete,
        }
    }
}
