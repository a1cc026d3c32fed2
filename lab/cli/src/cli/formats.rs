//! `--format`, applied to the options of each command.

use spinpark_cli::line::format::{to_csv, to_json};

use super::{Bench, Command, Sim, Swept};

impl Swept {
    fn apply_format(&mut self) -> Result<(), String> {
        to_csv(self.format, &mut self.csv).and_then(|()| to_json(self.format, &mut self.json))
    }
}

impl Command {
    /// Carries out `--format` where it means an output that has an option of its own.
    pub(crate) fn apply_formats(&mut self) -> Result<(), String> {
        match self {
            Self::Bench(bench) => match bench {
                Bench::Locks(it) => to_json(it.locks.format, &mut it.locks.json),
                Bench::Grid(it) => {
                    to_csv(it.format, &mut it.shown.csv).and_then(|()| to_json(it.format, &mut it.json))
                }
                Bench::Show(it) => to_csv(it.format, &mut it.grid.csv),
                Bench::List(_) => Ok(()),
            },
            Self::Sim(sim) => match sim {
                Sim::Machine(it) => to_json(it.format, &mut it.json),
                Sim::Run(it) => to_json(it.out.format, &mut it.out.json),
                Sim::Sweep(it) => it.shown.apply_format(),
                Sim::Merge(it) => it.shown.apply_format(),
                Sim::Replay(it) => to_json(it.out.format, &mut it.out.json),
                Sim::Tables(it) => to_json(it.out.format, &mut it.out.json),
                Sim::Native(it) => to_json(it.out.format, &mut it.out.json),
                Sim::List | Sim::Calibrate(_) => Ok(()),
            },
            Self::Documents(documents) => match documents.output() {
                Some((format, json)) => to_json(format, json),
                None => Ok(()),
            },
            _ => Ok(()),
        }
    }
}
