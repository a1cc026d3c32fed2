//! Where and when a measurement was made. A number without this is a rumour.

use std::ffi::CStr;
use std::fs;
use std::thread;
use std::time::SystemTime;

use serde::{Deserialize, Serialize};

/// The machine, the software and the date.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Environment {
    /// Version of this command.
    pub spinpark: String,
    /// Version of the compiler that built it.
    #[serde(default)]
    pub rustc: String,
    /// Kernel release.
    pub kernel: String,
    /// glibc of this process, which is that of the programs too.
    pub glibc: String,
    /// CPU model, as the kernel names it.
    pub cpu: String,
    /// CPUs that this process may use.
    pub cpus: usize,
    /// Whether this is a virtual machine.
    pub virtual_machine: bool,
    /// Frequency governor, where there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub governor: Option<String>,
    /// Start of the measurement, UTC, ISO 8601.
    pub date: String,
}

impl Environment {
    /// Reads it all.
    #[must_use]
    pub fn read() -> Self {
        let cpuinfo = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let governor = fs::read_to_string("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor").ok();
        Self {
            spinpark: env!("CARGO_PKG_VERSION").to_owned(),
            rustc: env!("SPINPARK_RUSTC").to_owned(),
            kernel: rustix::system::uname().release().to_string_lossy().into_owned(),
            glibc: glibc_version(),
            cpu: cpu_model(&cpuinfo).unwrap_or(std::env::consts::ARCH).to_owned(),
            cpus: thread::available_parallelism().map_or(1, usize::from),
            virtual_machine: has_flag(&cpuinfo, "hypervisor"),
            governor: governor.map(|name| name.trim().to_owned()),
            date: crate::text::date::iso(unix_time()),
        }
    }

    /// One line for the foot of a table.
    #[must_use]
    pub fn line(&self) -> String {
        let Self { cpu, cpus, kernel, glibc, spinpark, date, .. } = self;
        let machine = if self.virtual_machine { ", virtual machine" } else { "" };
        let day = date.get(..10).unwrap_or(date);
        format!("{cpu}, {cpus} CPUs{machine}, Linux {kernel}, glibc {glibc}, spinpark {spinpark}, {day}")
    }

    /// "2026-01-02-some-cpu-2cpus-vm": what the file of a dated record is called after.
    #[must_use]
    pub fn record_name(&self) -> String {
        let Self { cpu, cpus, virtual_machine, date, .. } = self;
        let day = date.get(..10).unwrap_or(date);
        let words: String = cpu
            .chars()
            .map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { ' ' })
            .collect();
        let cpu = words.split_whitespace().collect::<Vec<_>>().join("-");
        let machine = if *virtual_machine { "-vm" } else { "" };
        format!("{day}-{cpu}-{cpus}cpus{machine}")
    }
}

fn glibc_version() -> String {
    // SAFETY: no preconditions; returns a pointer to a static string.
    let version = unsafe { libc::gnu_get_libc_version() };
    // SAFETY: a static, NUL-terminated string, as documented.
    unsafe { CStr::from_ptr(version) }.to_string_lossy().into_owned()
}

fn field<'a>(cpuinfo: &'a str, name: &str) -> Option<&'a str> {
    let mut fields = cpuinfo.lines().filter_map(|line| line.split_once(':'));
    fields.find(|(key, _)| key.trim() == name).map(|(_, value)| value.trim())
}

fn cpu_model(cpuinfo: &str) -> Option<&str> {
    field(cpuinfo, "model name").or_else(|| field(cpuinfo, "Model")).or_else(|| field(cpuinfo, "cpu"))
}

fn has_flag(cpuinfo: &str, flag: &str) -> bool {
    field(cpuinfo, "flags").is_some_and(|flags| flags.split(' ').any(|f| f == flag))
}

fn unix_time() -> u64 {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpuinfo_fields() {
        let text = "processor\t: 0\nmodel name\t: Some CPU @ 2 GHz\nflags\t\t: fpu hypervisor sse\n";
        assert_eq!(cpu_model(text), Some("Some CPU @ 2 GHz"));
        assert!(has_flag(text, "hypervisor") && !has_flag(text, "hyper"));
        assert_eq!(cpu_model(""), None);
    }

    #[test]
    fn this_machine() {
        let environment = Environment::read();
        assert!(environment.cpus >= 1 && environment.glibc.starts_with("2."));
    }
}
