//! Tasks that are threads.

use std::thread;
use std::time::Duration;

use super::board::Board;
use super::conduct;
use crate::workloads::job::JobError;

/// Runs `work(number)` in a thread for each slot.
pub(super) fn run(
    board: &Board,
    duration: Duration,
    work: impl Fn(usize) -> Result<(), JobError> + Sync,
) -> Result<(Duration, Vec<u64>), JobError> {
    let work = &work;
    thread::scope(|scope| {
        let mut handles = Vec::new();
        for number in 0..board.slots().len() {
            let spawned = thread::Builder::new().spawn_scoped(scope, move || {
                // A thread that fails stops the others.
                work(number).inspect_err(|_| board.stop())
            });
            match spawned {
                Ok(handle) => handles.push(handle),
                Err(error) => {
                    board.stop();
                    return Err(JobError::failed(format!("cannot start thread {number}"))(error));
                }
            }
        }
        // A thread that ends before the start has failed.
        while !board.are_all_ready() && !handles.iter().any(thread::ScopedJoinHandle::is_finished) {
            thread::sleep(Duration::from_micros(100));
        }
        let failed_early = handles.iter().any(thread::ScopedJoinHandle::is_finished);
        let counted = if failed_early { <_>::default() } else { conduct(board, duration) };
        for handle in handles {
            handle.join().unwrap_or_else(|_| std::process::abort())?;
        }
        Ok(counted)
    })
}
