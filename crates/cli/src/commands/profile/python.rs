//! Names of Python's functions: from 3.12 on, CPython writes them to a perf map if it is asked to, which costs
//! its calls little. The file would stay in `/tmp`.

use std::path::Path;
use std::process::Command;
use std::time::SystemTime;
use std::{env, fs};

const ASKS: &str = "PYTHONPERFSUPPORT";

/// Asks for names. The user's own choice stays.
pub(super) fn ask_for_names(command: &mut Command) {
    if env::var_os(ASKS).is_none() {
        command.env(ASKS, "1");
    }
}

/// Removes the perf maps that were asked for here, once their names are known: those of processes that have
/// ended since.
pub(super) fn remove_maps(started: SystemTime) {
    if env::var_os(ASKS).is_none() {
        remove_from(Path::new("/tmp"), started);
    }
}

fn remove_from(directory: &Path, started: SystemTime) {
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let pid = name.to_str().and_then(|name| name.strip_prefix("perf-")?.strip_suffix(".map"));
        let Some(pid) = pid.filter(|pid| pid.parse::<u32>().is_ok()) else { continue };
        let is_new = entry
            .metadata()
            .and_then(|file| file.modified().map(|time| file.is_file() && time >= started))
            .unwrap_or(false);
        let is_pythons = || fs::read(entry.path()).is_ok_and(|map| contains(&map, b" py::"));
        if is_new && !Path::new("/proc").join(pid).exists() && is_pythons() {
            let _ = fs::remove_file(entry.path());
        }
    }
}

fn contains(text: &[u8], part: &[u8]) -> bool {
    text.windows(part.len()).any(|window| window == part)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_python_wrote_since_is_removed() {
        let scratch = tempfile::tempdir().expect("a directory");
        let started = SystemTime::now() - std::time::Duration::from_secs(60);
        let own = std::process::id();
        // No process has such a number.
        let (python, java, living) = ("perf-4194999.map", "perf-4194998.map", format!("perf-{own}.map"));
        let text = "7f00 20 py::work:/srv/shop.py\n";
        for (name, text) in
            [(python, text), (java, "7f00 20 Shop.work()\n"), (&living, text), ("other", text)]
        {
            fs::write(scratch.path().join(name), text).expect("a file");
        }
        remove_from(scratch.path(), SystemTime::now() + std::time::Duration::from_secs(60));
        assert!(scratch.path().join(python).exists(), "an older one");
        remove_from(scratch.path(), started);
        let is_there = |name: &str| scratch.path().join(name).exists();
        assert!(!is_there(python) && is_there(java) && is_there(&living) && is_there("other"));
    }
}
