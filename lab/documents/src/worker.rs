//! A process that runs one configuration of a workload.

use spinpark_lockbench::locks::adapters::{self, Adapter};

use crate::registry;
use crate::workloads::job::{Job, JobError, Report, Request};

/// Carries out a request, with the locks of one of `adapters`.
pub fn run(adapters: &[Adapter], request: &str) -> Result<Report, JobError> {
    let request: Request = serde_json::from_str(request)?;
    let unknown = |kind: &str, name: &str| JobError::Refused(format!("there is no {kind} `{name}` here"));
    let workload =
        registry::by_name(&request.workload).ok_or_else(|| unknown("workload", &request.workload))?;
    let adapter = match &request.adapter {
        Some(name) => {
            Some(*adapters::by_name(adapters, name).ok_or_else(|| unknown("adapter of locks", name))?)
        }
        None => None,
    };
    if request.tasks == 0 {
        return Err(JobError::Refused(format!("the number of {} is 0", workload.tasks)));
    }
    (workload.run)(&Job::new(request, adapter))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_there_is_named() {
        let said = |request: &str| run(&[], request).unwrap_err().to_string();
        assert!(said("{}").contains("cannot be read"));
        assert!(said(r#"{"workload":"x","tasks":1,"millis":1}"#).contains("no workload `x`"));
        assert!(said(r#"{"workload":"mmap","tasks":0,"millis":1}"#).contains("threads is 0"));
        assert!(said(r#"{"workload":"mmap","tasks":1,"millis":1,"adapter":"x"}"#).contains("locks `x`"));
    }
}
