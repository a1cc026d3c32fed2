//! `plain-N`: a machine of N cores in one socket, with round figures, for tests and examples.

use std::sync::LazyLock;

use super::sheet::CPUS;
use super::sheet::Sheet;
use super::{Machine, MachineError, assemble};

/// What its name begins with.
pub(super) const PREFIX: &str = "plain-";

/// Its file, in which it has one core.
pub(super) static SHEET: LazyLock<Sheet> = LazyLock::new(|| {
    let sheet = Sheet::parse("plain.toml", include_str!("../../machines/plain.toml"));
    sheet.expect("the file is part of the program, and tests read it")
});

static ONE_CORE: LazyLock<Machine> = LazyLock::new(|| {
    let machine = assemble::machine(&SHEET);
    machine.expect("the file is part of the program, and tests read it")
});

impl Machine {
    /// A plain machine of `cpus` cores in one socket, with round figures: for tests and examples.
    #[must_use]
    pub fn plain(cpus: u32) -> Self {
        let mut machine = ONE_CORE.clone();
        machine.name = format!("{PREFIX}{cpus}");
        (machine.shape.cores, machine.shape.usable) = (cpus, cpus);
        machine
    }
}

/// The plain machine of that name, if it is one.
pub(super) fn named(name: &str) -> Option<Result<Machine, MachineError>> {
    let cores = name.strip_prefix(PREFIX)?;
    let cores = cores.parse().ok().filter(|cores| CPUS.contains(cores));
    Some(
        cores
            .map(Machine::plain)
            .ok_or_else(|| MachineError::Plain { name: name.to_owned(), most: *CPUS.end() }),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_has_so_many_cores() {
        let machine = Machine::plain(1000);
        assert_eq!(
            (machine.name.as_str(), machine.cpus(), machine.shape.all_cpus()),
            ("plain-1000", 1000, 1000)
        );
        assert_eq!((machine.memory.near_ns, machine.kernel.deep_idle), (50.0, None));
        assert!(named("up").is_none());
    }
}
