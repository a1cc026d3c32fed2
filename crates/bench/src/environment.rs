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
            date: iso_date(unix_time()),
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

/// Seconds since 1970 as `2026-11-21T22:06:00Z`, with the days-to-civil algorithm of Howard Hinnant.
fn iso_date(unix: u64) -> String {
    let (days, seconds) = (unix / 86_400, unix % 86_400);
    let shifted = days + 719_468; // since 0000-03-01
    let era = shifted / 146_097;
    let day_of_era = shifted % 146_097;
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * day_of_year + 2) / 153; // March is 0
    let day = day_of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 { shifted_month + 3 } else { shifted_month - 9 };
    let year = year_of_era + era * 400 + u64::from(month <= 2);
    let (hour, minute, second) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates() {
        assert_eq!(iso_date(0), "1970-01-01T00:00:00Z");
        assert_eq!(iso_date(951_782_400), "2000-02-29T00:00:00Z");
        assert_eq!(iso_date(1_735_689_599), "2024-12-31T23:59:59Z");
        assert_eq!(iso_date(1_772_323_200), "2026-03-01T00:00:00Z");
    }

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
