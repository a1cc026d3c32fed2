//! Where a program hangs.

use std::path::Path;
use std::time::{Duration, Instant};

use rustix::process::Pid;

use super::Run;
use super::program_result::tail;
use crate::find_program;

/// The stacks of all threads of all processes in the group, if `gdb` is there to tell.
pub(super) fn stacks_of_group(group: Pid) -> String {
    let Some(gdb) = find_program("gdb") else { return "--- install gdb to see where it hung".to_owned() };
    let mut text = String::new();
    for pid in processes_of_group(group) {
        text += &format!("--- stacks of process {pid}\n");
        text += &gdb_stacks(&gdb, pid);
    }
    text
}

fn gdb_stacks(gdb: &Path, pid: u32) -> String {
    let stacks = Run::new(gdb)
        .args(["-p", &pid.to_string(), "-batch", "-nx", "-ex", "set pagination off"])
        .args(["-ex", "thread apply all bt 24"])
        // The one place where a hang must not lead to another stack trace.
        .spawn_without_stacks(Duration::from_secs(60));
    tail(&stacks).to_owned()
}

impl Run {
    fn spawn_without_stacks(self, timeout: Duration) -> String {
        let mut running = self.spawn();
        let deadline = Instant::now() + timeout;
        while !running.has_ended() && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(20));
        }
        running.end();
        running.wait(Duration::ZERO).stdout_text()
    }
}

fn processes_of_group(group: Pid) -> Vec<u32> {
    let Ok(entries) = std::fs::read_dir("/proc") else {
        return vec![group.as_raw_nonzero().get().cast_unsigned()];
    };
    entries
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .filter(|pid: &u32| {
            // "pid (name) state parent group …", where a name may hold anything.
            std::fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|stat| {
                let after_name = stat.rsplit(") ").next().unwrap_or_default();
                after_name.split(' ').nth(2) == Some(&group.to_string())
            })
        })
        .collect()
}
