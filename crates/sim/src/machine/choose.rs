//! A machine as a command line names it.

use super::{Machine, MachineError};

/// The most CPUs of a machine.
const MOST_CPUS: u32 = 1024;

impl Machine {
    /// `NAME`, a file, or `plain-N`, the machine of N cores in round figures; each with `:CPUS` if only so many of its CPUs
    /// are to be used.
    ///
    /// # Errors
    ///
    /// As [`Machine::load`]; or it does not have so many CPUs.
    pub fn choose(words: &str) -> Result<Self, MachineError> {
        let limited = words.rsplit_once(':').filter(|(_, cpus)| cpus.chars().all(|c| c.is_ascii_digit()));
        let Some((name, cpus)) = limited else { return Self::load_or_plain(words) };
        let machine = Self::load_or_plain(name)?;
        let has = machine.cpus();
        match cpus.parse() {
            Ok(cpus) if (1..=has).contains(&cpus) => {
                let name = format!("{}:{cpus}", machine.name);
                Ok(Self { name, ..machine.limited_to(cpus) })
            }
            _ => Err(MachineError::Cpus {
                name: words.to_owned(),
                most: has,
                example: format!("{name}:{has}"),
            }),
        }
    }

    fn load_or_plain(name: &str) -> Result<Self, MachineError> {
        let Some(cpus) = name.strip_prefix("plain-") else { return Self::load(name) };
        match cpus.parse() {
            Ok(cpus) if (1..=MOST_CPUS).contains(&cpus) => Ok(Self::plain(cpus)),
            _ => {
                let example = format!("plain-{MOST_CPUS}");
                Err(MachineError::Cpus { name: name.to_owned(), most: MOST_CPUS, example })
            }
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
        let wrong = |words: &str| Machine::choose(words).unwrap_err().to_string();
        assert!(wrong("plain-16:17").contains("16 CPUs at most: plain-16:16"), "{}", wrong("plain-16:17"));
        assert!(wrong("plain-16:0").contains("1 CPU at least"));
        assert!(wrong("plain-2000").contains("plain-1024"));
        assert!(wrong("plain-").contains("plain-1024"));
        assert!(wrong("this-3").contains("this-2"));
    }
}
