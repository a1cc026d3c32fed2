//! `spinpark-lab documents`: the workloads of the four documents, one at a time or all in one report.

pub(in crate::commands) mod delays;
mod report;
pub(in crate::commands) mod workloads;

use std::process::ExitCode;

use spinpark_documents::report::workloads::list;

use super::bench::measure_locks;
use crate::cli::{Documents, PresetChoice, Show};
use spinpark_cli::say::Say;

/// Carries out a subcommand; `show` reads an earlier result.
pub(crate) fn run(
    documents: &Documents,
    show: fn(&Show) -> anyhow::Result<ExitCode>,
) -> anyhow::Result<ExitCode> {
    match documents {
        Documents::Run(wanted) => report::run(wanted),
        Documents::List => {
            let say = Say { on_stderr: false };
            say.line(list(say.style()));
            Ok(ExitCode::SUCCESS)
        }
        Documents::Show(wanted) => show(&Show::from(wanted)),
        Documents::Creat(creat) => workloads::measure(&creat.common, workloads::creat(creat)?),
        Documents::Mmap(mmap) => workloads::measure(&mmap.common, workloads::mmap(mmap)?),
        Documents::Faults(faults) => workloads::measure(&faults.common, workloads::faults(faults)?),
        Documents::Scan(scan) => workloads::measure(&scan.common, workloads::scan(scan)?),
        Documents::Jobs(jobs) => workloads::measure(&jobs.common, workloads::jobs(jobs)?),
        Documents::Condvar(condvar) => workloads::measure(&condvar.common, workloads::condvar(condvar)?),
        Documents::Mail(mail) => workloads::measure(&mail.common, workloads::mail(mail)?),
        Documents::Select(select) => workloads::measure(&select.common, workloads::select(select)?),
        Documents::Mtx(locks) => measure_locks(locks, PresetChoice::Mtx),
        Documents::Delays(wanted) => delays::run(wanted),
    }
}
