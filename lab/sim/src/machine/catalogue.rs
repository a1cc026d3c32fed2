//! Machines by name: those of this repository are part of the program; others are files.
//!
//! `plain-N` is a machine of N cores in one socket, with round figures, for tests and examples.

use std::fs;
use std::path::Path;
use std::sync::LazyLock;

use crate::machine::describe::Description;
use crate::machine::keys::nearest;
use crate::machine::sheet::{CPUS, Sheet};
use crate::machine::{Machine, MachineError, assemble};

macro_rules! embedded {
    ($($name:literal),* $(,)?) => {
        [$(($name, include_str!(concat!("../../machines/", $name, ".toml")))),*]
    };
}

/// The machines of this repository, from small to large within an age.
const EMBEDDED: &[(&str, &str)] = &embedded![
    "this-2",
    "up",
    "core2-4",
    "westmere-12",
    "nehalem-ex-64",
    "westmere-ex-40",
    "westmere-ex-80",
    "e4500-12",
    "sapphire-rapids-112",
    "epyc-7r13-96",
    "big-512",
];

/// The names of the machines that are known without a file.
#[must_use]
pub fn machines() -> Vec<&'static str> {
    EMBEDDED.iter().map(|(name, _)| *name).collect()
}

impl Machine {
    /// The machine of that name, or the one in the file at that path: what has a `/` in it or ends in `.toml`
    /// is a path.
    ///
    /// # Errors
    ///
    /// No such machine or file, or a file that is wrong: the message says where, and what to do.
    pub fn load(name_or_path: &str) -> Result<Self, MachineError> {
        assemble::machine(&complete(read(name_or_path, None)?)?.0)
    }

    /// The machine that `text` describes, as if it stood in `file`.
    ///
    /// # Errors
    ///
    /// As [`Machine::load`].
    pub fn parse(file: &str, text: &str) -> Result<Self, MachineError> {
        assemble::machine(&complete(Sheet::parse(file, text)?)?.0)
    }
}

/// Whether a machine is named by the path of its file.
pub(super) fn is_path(name: &str) -> bool {
    name.contains('/') || Path::new(name).extension().is_some_and(|extension| extension == "toml")
}

/// The sheet of that name. A relative path begins where the file lies that names it.
fn read(name: &str, named_in: Option<&str>) -> Result<Sheet, MachineError> {
    if let Some((_, text)) = EMBEDDED.iter().find(|(known, _)| *known == name) {
        return Sheet::parse(&format!("{name}.toml"), text);
    }
    if !is_path(name) {
        return Err(MachineError::unknown(name, nearest(name, machines()), &machines().join(", ")));
    }
    let folder = named_in.and_then(|file| Path::new(file).parent()).unwrap_or(Path::new(""));
    let path = folder.join(name);
    let file = path.display().to_string();
    let unreadable = |error| {
        MachineError(format!(
            "cannot read the machine file {file}: {error}. Write the path of a file that `spinpark-lab sim calibrate --output` has \
             written, or a machine by its name: {}, or plain-N, of N cores",
            machines().join(", ")
        ))
    };
    let text = fs::read_to_string(&path).map_err(unreadable)?;
    Sheet::parse(&file, &text)
}

/// The sheet with all that it takes from others, and the machines that it is based on, nearest first.
fn complete(mut sheet: Sheet) -> Result<(Sheet, Vec<String>), MachineError> {
    let mut way = vec![sheet.file.clone()];
    let mut bases = Vec::new();
    let mut next = sheet.based_on.clone();
    let mut named_in = sheet.file.clone();
    while let Some(name) = next {
        let base = read(&name, Some(&named_in))?;
        let is_circle = way.contains(&base.file);
        way.push(base.file.clone());
        if is_circle {
            let way = way.join(" → ");
            return Err(MachineError(format!(
                "{}: `based_on` leads back to where it began: {way}. Take `based_on` out of one of them",
                sheet.file
            )));
        }
        sheet.complete_from(&base);
        bases.push(base.name);
        (next, named_in) = (base.based_on, base.file);
    }
    Ok((sheet, bases))
}

impl Machine {
    /// `NAME`, a file, or `plain-N`, the machine of N cores in round figures; each with `:CPUS` if only so
    /// many of its CPUs are to be used, and with `:CPUS/QUOTA` if the threads have a quota of CPU time
    /// besides: `plain-64:64/4`, four CPUs' time.
    ///
    /// # Errors
    ///
    /// As [`Machine::load`]; or it does not have this number of CPUs.
    pub fn choose(words: &str) -> Result<Self, MachineError> {
        let wanted = Wanted::from(words);
        wanted.limited(wanted.whole()?)
    }

    /// A machine, named as for [`Machine::choose`], and where each of its figures comes from.
    ///
    /// # Errors
    ///
    /// As [`Machine::choose`].
    pub fn describe(words: &str) -> Result<Description, MachineError> {
        let wanted = Wanted::from(words);
        if let Some(machine) = plain_named(wanted.name) {
            return Ok(Description::new(wanted.limited(machine?)?, &PLAIN, Vec::new()));
        }
        let (sheet, bases) = complete(read(wanted.name, None)?)?;
        Ok(Description::new(wanted.limited(assemble::machine(&sheet)?)?, &sheet, bases))
    }
}

/// The kernel takes no less: 1 ms of 100 ms.
const LEAST_QUOTA: f64 = 0.01;

/// What a command line asks for.
struct Wanted<'a> {
    words: &'a str,
    name: &'a str,
    /// How many of its CPUs, if not all.
    cpus: Option<&'a str>,
    /// How many CPUs' time.
    quota: Option<&'a str>,
}

impl<'a> From<&'a str> for Wanted<'a> {
    fn from(words: &'a str) -> Self {
        // A path may have a colon in it; a name has none.
        let is_count = |cpus: &str| {
            !is_path(words.split(':').next().unwrap_or_default())
                || cpus.chars().all(|c| c.is_ascii_digit() || "/.".contains(c))
        };
        match words.rsplit_once(':').filter(|(_, cpus)| is_count(cpus)) {
            Some((name, cpus)) => {
                let (cpus, quota) =
                    cpus.split_once('/').map_or((cpus, None), |(cpus, quota)| (cpus, Some(quota)));
                Self { words, name, cpus: Some(cpus), quota }
            }
            None => Self { words, name: words, cpus: None, quota: None },
        }
    }
}

impl Wanted<'_> {
    fn whole(&self) -> Result<Machine, MachineError> {
        plain_named(self.name).unwrap_or_else(|| Machine::load(self.name))
    }

    fn limited(&self, machine: Machine) -> Result<Machine, MachineError> {
        let Some(cpus) = self.cpus else { return Ok(machine) };
        let most = machine.cpus();
        let quota = self.quota.map(str::parse::<f64>).transpose();
        let is_quota = |quota: &f64| *quota >= LEAST_QUOTA && *quota <= f64::from(most);
        match (cpus.parse(), quota) {
            (Ok(cpus), Ok(quota)) if (1..=most).contains(&cpus) && quota.is_none_or(|it| is_quota(&it)) => {
                let name = match quota {
                    Some(quota) => format!("{}:{cpus}/{quota}", machine.name),
                    None => format!("{}:{cpus}", machine.name),
                };
                let mut machine = Machine { name, ..machine.limited_to(cpus) };
                machine.shape.quota = quota;
                Ok(machine)
            }
            (Ok(cpus), _) if (1..=most).contains(&cpus) => Err(MachineError(format!(
                "there is no machine `{}`: it has a quota of {LEAST_QUOTA} CPUs at least, and of as many as it has at most: \
                 {}:{cpus}/{}",
                self.words,
                self.name,
                cpus.div_ceil(4)
            ))),
            _ => Err(MachineError(format!(
                "there is no machine `{}`: it has 1 CPU at least and {most} CPUs at most: {}:{most}",
                self.words, self.name
            ))),
        }
    }
}

/// What its name begins with.
pub(super) const PLAIN_PREFIX: &str = "plain-";

/// Its file, in which it has one core.
pub(super) static PLAIN: LazyLock<Sheet> = LazyLock::new(|| {
    let sheet = Sheet::parse("plain.toml", include_str!("../../machines/plain.toml"));
    sheet.expect("the file is part of the program, and tests read it")
});

static ONE_CORE: LazyLock<Machine> = LazyLock::new(|| {
    let machine = assemble::machine(&PLAIN);
    machine.expect("the file is part of the program, and tests read it")
});

impl Machine {
    /// A plain machine of `cpus` cores in one socket, with round figures: for tests and examples.
    #[must_use]
    pub fn plain(cpus: u32) -> Self {
        let mut machine = ONE_CORE.clone();
        machine.name = format!("{PLAIN_PREFIX}{cpus}");
        (machine.shape.cores, machine.shape.usable) = (cpus, cpus);
        machine
    }
}

/// The plain machine of that name, if it is one.
pub(super) fn plain_named(name: &str) -> Option<Result<Machine, MachineError>> {
    let cores = name.strip_prefix(PLAIN_PREFIX)?;
    let cores = cores.parse().ok().filter(|cores| CPUS.contains(cores));
    let unknown = || {
        let most = CPUS.end();
        MachineError(format!(
            "there is no machine `{name}`: write plain-N, with a number of cores from 1 to {most}, as in plain-8"
        ))
    };
    Some(cores.map(Machine::plain).ok_or_else(unknown))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_in_words() {
        let machine = Machine::choose("plain-16:3").unwrap();
        assert_eq!((machine.name.as_str(), machine.cpus()), ("plain-16:3", 3));
        assert_eq!(Machine::choose("plain-1024").unwrap().cpus(), 1024);
        let limited = Machine::choose("plain-16:8/2.5").unwrap();
        assert_eq!((limited.name.as_str(), limited.cpus()), ("plain-16:8/2.5", 8));
        assert_eq!((limited.shape.quota, limited.counted_cpus()), (Some(2.5), 3));
        let wrong = |words: &str| {
            let said = Machine::choose(words).unwrap_err().to_string();
            assert_eq!(Machine::describe(words).unwrap_err().to_string(), said);
            said
        };
        assert!(wrong("plain-16:17").contains("16 CPUs at most: plain-16:16"), "{}", wrong("plain-16:17"));
        for quota in ["0", "x", "17", "-1", ""] {
            let words = format!("plain-16:8/{quota}");
            assert!(
                wrong(&words).contains("a quota of 0.01 CPUs at least")
                    && wrong(&words).contains("plain-16:8/2")
            );
        }
        assert!(wrong("plain-16:0").contains("1 CPU at least"));
        assert!(wrong("big-512:x").contains("512 CPUs at most: big-512:512"), "{}", wrong("big-512:x"));
        for none in ["plain-2000", "plain-", "plain-x", "plain-0", "plain--1", "plain-1.5"] {
            assert!(wrong(none).contains("from 1 to 1024, as in plain-8"), "{}", wrong(none));
        }
        assert!(wrong("plain").contains("plain-N, of N cores"), "{}", wrong("plain"));
        assert!(wrong("this-3").contains("this-2"));
        assert!(wrong("./none.toml:4").contains("cannot read the machine file ./none.toml:"));
        assert!(wrong("./a:b.toml").contains("./a:b.toml"));
    }

    #[test]
    fn a_machine_is_described_as_it_is_chosen() {
        let described = |words: &str| {
            let description = Machine::describe(words).unwrap();
            let machine = Machine::choose(words).unwrap();
            assert_eq!((&description.name, description.cpus), (&machine.name, machine.cpus()));
            description
        };
        let plain = described("plain-8");
        assert_eq!((plain.name.as_str(), plain.shape.as_str()), ("plain-8", "1 socket × 8 cores"));
        let limited = described("big-512:64");
        assert!(
            limited.shape.ends_with("64 cores, of which the first 64 CPUs are used"),
            "{}",
            limited.shape
        );
        assert_eq!(limited.figures, described("big-512").figures);
        assert_eq!(described("plain-8:1").cpus, 1);
        assert_eq!(described("nehalem-ex-64").cpus, 128);
    }

    #[test]
    fn it_has_so_many_cores() {
        let machine = Machine::plain(1000);
        assert_eq!(
            (machine.name.as_str(), machine.cpus(), machine.shape.all_cpus()),
            ("plain-1000", 1000, 1000)
        );
        assert_eq!((machine.memory.near_ns, machine.kernel.deep_idle), (50.0, None));
        assert!(plain_named("up").is_none());
    }
}
