//! A machine as a command line names it.

use super::catalogue::{Complete, complete, is_path};
use super::describe::Description;
use super::{Machine, MachineError, assemble, plain};

impl Machine {
    /// `NAME`, a file, or `plain-N`, the machine of N cores in round figures; each with `:CPUS` if only so
    /// many of its CPUs are to be used, and with `:CPUS/QUOTA` if the threads have a quota of CPU time
    /// besides: `plain-64:64/4`, four CPUs' time.
    ///
    /// # Errors
    ///
    /// As [`Machine::load`]; or it does not have so many CPUs.
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
        if let Some(machine) = plain::named(wanted.name) {
            return Ok(Description::new(wanted.limited(machine?)?, &plain::SHEET, Vec::new()));
        }
        let Complete { sheet, bases } = complete(wanted.name)?;
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
        plain::named(self.name).unwrap_or_else(|| Machine::load(self.name))
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
            (Ok(cpus), _) if (1..=most).contains(&cpus) => Err(MachineError::Quota {
                name: self.words.to_owned(),
                least: LEAST_QUOTA,
                example: format!("{}:{cpus}/{}", self.name, cpus.div_ceil(4)),
            }),
            _ => Err(MachineError::Cpus {
                name: self.words.to_owned(),
                most,
                example: format!("{}:{most}", self.name),
            }),
        }
    }
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
}
