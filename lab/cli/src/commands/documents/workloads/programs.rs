//! Workloads that are programs with clients: a mail server, a database.

use std::env;
use std::net::TcpStream;
use std::time::Duration;

use anyhow::Context;
use spinpark_documents::mariadb::{Files, Programs};
use spinpark_documents::mtx_2006::select::Request;
use spinpark_documents::workloads::directory::Place;
use spinpark_documents::workloads::locks::each;
use spinpark_documents::{mtx_2006::select as select_workload, rwsem_2013::mail as mail_workload};
use spinpark_lockbench::locks::definitions::{Definitions, Implementation};
use spinpark_lockbench::locks::implementations;
use spinpark_measure::process::executable::preload_list::{prepend, without_drop_in};
use spinpark_measure::process::executable::{self, Library};

use super::before::Before;
use super::experiment::Experiment;
use crate::cli::{Mail, Select, millis};
use spinpark_cli::libraries;

/// A mail server that takes longer to answer counts as missing.
const PATIENCE: Duration = Duration::from_secs(10);

/// The adapter of locks that every program has.
const ADAPTER: &str = "pthread";

/// `spinpark-lab documents mail`.
pub(crate) fn mail(mail: &Mail) -> anyhow::Result<Experiment<'_>> {
    if let Some(server) = mail.server {
        let answers = TcpStream::connect_timeout(&server, PATIENCE);
        answers.with_context(|| {
            format!("--server {server}: there is no answer; start the mail server first, or check HOST:PORT")
        })?;
    }
    let millis = millis(mail.duration);
    Ok(Experiment {
        workload: &mail_workload::WORKLOAD,
        cells: mail_workload::cells(mail.server, &mail.threads, millis),
        millis,
        dir: mail.dir.as_deref(),
        before: Before::default(),
    })
}

/// `spinpark-lab documents select`.
pub(crate) fn select(select: &Select) -> anyhow::Result<Experiment<'_>> {
    let programs = Programs::find()?;
    let locks = locks(&select.locks)?;
    let server = executable::Executable::find(programs.server.as_os_str())?;
    let drop_in =
        locks.iter().any(|lock| lock.preload).then(|| libraries::find(Library::DropIn)).transpose()?;
    if let Some(drop_in) = &drop_in {
        drop_in.check_machine(server.machine)?;
    }
    let inherited = without_drop_in(&env::var_os("LD_PRELOAD").unwrap_or_default());
    let preload = |lock: &Implementation| {
        let usual = drop_in.as_ref().map(|drop_in| drop_in.path.as_path());
        let list = match lock.file(Library::DropIn, usual) {
            Some(path) => prepend(path, &inherited),
            None => inherited.clone(),
        };
        (!list.is_empty()).then(|| list.to_string_lossy().into_owned())
    };
    let request = Request {
        clients: &select.threads,
        rounds: select.per_client,
        rows: select.rows,
        updates: select.update,
        options: &select.server_option,
        locks: &locks,
    };
    // It is here until the last run has ended.
    let template = Place::find(select.dir.as_deref())?.create()?;
    // The directories of runs are next to it, with names as long as this one's.
    Files::at(template.path()).check_socket()?;
    // An implementation with variables of its own may not write the drop-in's report.
    let trial = locks.iter().find(|lock| lock.preload && lock.env.is_empty()).map(|lock| lock.name.clone());
    let cells = request.cells(&programs, template.path(), preload);
    let first = Some(request.preparation(&programs, template.path()));
    Ok(Experiment {
        workload: &select_workload::WORKLOAD,
        cells,
        millis: 0,
        dir: select.dir.as_deref(),
        before: Before { first, drop_in, trial, template: Some(template) },
    })
}

/// The implementations that `words` mean: whatever a program's pthread locks can be.
fn locks(words: &[String]) -> anyhow::Result<Vec<Implementation>> {
    let of = |definitions: &Definitions, word: &str| {
        let implementation = implementations::not_recorded(implementations::parse(definitions, word)?)?;
        match implementation.adapter.as_str() {
            ADAPTER => Ok(implementation),
            _ => Err(format!(
                "--locks {word}: a program as it is has pthread locks only\n\
                 Use glibc, drop-in, drop-in-disabled, or one of them with +VARIABLE=VALUE"
            )),
        }
    };
    each(words, of).map_err(anyhow::Error::msg)
}
