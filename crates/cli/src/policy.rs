//! Files of policies, `spinpark-policy.toml`: which lock has which policy, and why. `spinpark tune` writes them, people
//! may, and `spinpark run --policy` makes of one the table that the drop-in reads (docs/tune.md).
//!
//! A file names locks by addresses, which hold for one build of a program; so it names the build, and is refused for
//! another.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail, ensure};
use serde::Deserialize;
use spinpark_profile::symbols::elf_file::ElfFile;

/// The first field of a file.
pub(crate) const FORMAT: &str = "spinpark-policy";
/// Changes when a field changes its meaning or goes.
pub(crate) const VERSION: u32 = 1;

/// What the drop-in has room for: `MOST_MODULES`, `MOST_LOCKS` and `LONGEST_NAME` of its `policy.rs`.
const MOST_MODULES: usize = 16;
const MOST_PLACES: usize = 256;
const LONGEST_NAME: usize = 64;

/// A policy: how threads share a lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Policy {
    Default,
    Eager,
    BackOff,
    Park,
    InOrder,
    NoBias,
    WritersFirst,
}

impl Policy {
    /// Those of a mutex that differ from the default.
    pub(crate) const OF_MUTEX: [Self; 4] = [Self::Eager, Self::BackOff, Self::Park, Self::InOrder];
    /// Those of a read-write lock; without [`Policy::WritersFirst`], with which a reader that waits for another thread's
    /// read waits for ever if a writer comes between: only who knows the program can ask for that.
    pub(crate) const OF_RWLOCK: [Self; 5] =
        [Self::Eager, Self::BackOff, Self::Park, Self::InOrder, Self::NoBias];

    /// Its name in files.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Default => "default",
            Self::Eager => "eager",
            Self::BackOff => "back-off",
            Self::Park => "park",
            Self::InOrder => "in-order",
            Self::NoBias => "no-bias",
            Self::WritersFirst => "writers-first",
        }
    }
}

/// A program or library.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Module {
    pub(crate) path: PathBuf,
    /// None, by hand: of whatever build the file is.
    pub(crate) build_id: Option<String>,
}

impl Module {
    /// The name of the file.
    pub(crate) fn name(&self) -> String {
        self.path.file_name().unwrap_or_default().to_string_lossy().into_owned()
    }
}

/// Where a lock is, or what creates it: in one module.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Place {
    /// An index of the file's modules.
    pub(crate) module: usize,
    /// The addresses of locks that are variables.
    #[serde(default)]
    pub(crate) addresses: Vec<Hex>,
    /// All locks in these variables.
    #[serde(default)]
    pub(crate) variables: Vec<String>,
    /// Where calls return to that create it, or first wait for it.
    #[serde(default)]
    pub(crate) sites: Vec<Hex>,
}

/// A number, `"0x4060"`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(try_from = "String")]
pub(crate) struct Hex(pub(crate) u64);

impl TryFrom<String> for Hex {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let digits = text.strip_prefix("0x").unwrap_or("");
        let number = u64::from_str_radix(digits, 16);
        number.map(Self).map_err(|_| format!("`{text}` is no address: write \"0x4060\""))
    }
}

/// A lock with its policy.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Lock {
    /// As in reports.
    pub(crate) name: String,
    pub(crate) policy: Policy,
    pub(crate) places: Vec<Place>,
    /// What was measured, for people.
    #[serde(default)]
    pub(crate) evidence: Option<Evidence>,
}

/// What was measured when the lock got its policy.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Evidence {
    pub(crate) metric: String,
    pub(crate) change: String,
    pub(crate) interval: String,
    pub(crate) noise: String,
    pub(crate) rounds: usize,
    pub(crate) date: String,
    pub(crate) machine: String,
    pub(crate) command: String,
}

/// A file of policies.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct PolicyFile {
    pub(crate) format: String,
    pub(crate) format_version: u32,
    #[serde(default, rename = "module")]
    pub(crate) modules: Vec<Module>,
    #[serde(default, rename = "lock")]
    pub(crate) locks: Vec<Lock>,
}

impl PolicyFile {
    /// Of these modules and locks.
    pub(crate) fn new(modules: Vec<Module>, locks: Vec<Lock>) -> Self {
        Self { format: FORMAT.to_owned(), format_version: VERSION, modules, locks }
    }

    /// Reads one.
    pub(crate) fn read(path: &Path) -> Result<Self> {
        let text =
            fs::read_to_string(path).with_context(|| format!("--policy: cannot read {}", path.display()))?;
        Self::parse(&text).with_context(|| {
            format!("--policy: {} is no file of policies; `spinpark tune` writes one", path.display())
        })
    }

    fn parse(text: &str) -> Result<Self> {
        let file: Self = toml::from_str(text)?;
        ensure!(file.format == FORMAT, "its format is `{}`", file.format);
        ensure!(
            file.format_version == VERSION,
            "its format_version is {}, and this command reads {VERSION}",
            file.format_version
        );
        for lock in &file.locks {
            for place in &lock.places {
                ensure!(
                    place.module < file.modules.len(),
                    "lock `{}`: there is no module {}; they count from 0",
                    lock.name,
                    place.module
                );
            }
        }
        Ok(file)
    }

    /// As text; `comment` are its first lines.
    pub(crate) fn to_toml(&self, comment: &str) -> String {
        let mut text = String::new();
        comment.lines().for_each(|line| writeln!(text, "# {line}").unwrap_or_default());
        let mut field = |name: &str, value: String| writeln!(text, "{name} = {value}").unwrap_or_default();
        field("format", quoted(&self.format));
        field("format_version", self.format_version.to_string());
        for module in &self.modules {
            let _ = write!(text, "\n[[module]]\npath = {}\n", quoted(&module.path.to_string_lossy()));
            if let Some(id) = &module.build_id {
                let _ = writeln!(text, "build_id = {}", quoted(id));
            }
        }
        for Lock { name, policy, places, evidence } in &self.locks {
            let _ = write!(text, "\n[[lock]]\nname = {}\npolicy = {}\n", quoted(name), quoted(policy.name()));
            let places: Vec<String> = places.iter().map(Place::to_toml).collect();
            let _ = writeln!(text, "places = [{}]", places.join(", "));
            if let Some(it) = evidence {
                let _ = writeln!(text, "\n[lock.evidence]");
                for (name, value) in [
                    ("metric", &it.metric),
                    ("change", &it.change),
                    ("interval", &it.interval),
                    ("noise", &it.noise),
                    ("date", &it.date),
                    ("machine", &it.machine),
                    ("command", &it.command),
                ] {
                    let _ = writeln!(text, "{name} = {}", quoted(value));
                }
                let _ = writeln!(text, "rounds = {}", it.rounds);
            }
        }
        text
    }

    /// The table that the drop-in reads in `program`, whose file is `executable`. Refuses another build than the one that
    /// the policies are for.
    pub(crate) fn table(&self, executable: &Path) -> Result<String> {
        let mut files = Vec::new();
        for module in &self.modules {
            files.push(module.file(executable)?);
        }
        ensure!(
            files.len() <= MOST_MODULES,
            "it names {} modules; at most {MOST_MODULES} are possible",
            files.len()
        );
        let mut text = String::from("spinpark-policy 1");
        for (module, file) in self.modules.iter().zip(&files) {
            let name = module.name();
            let is_plain = |c: char| !c.is_whitespace() && !c.is_control() && c != ';';
            ensure!(
                name.len() <= LONGEST_NAME && name.chars().all(is_plain),
                "the name of {} is longer than {LONGEST_NAME} bytes, or has blanks or semicolons",
                module.path.display()
            );
            let id = file.build_id.as_deref().unwrap_or_default();
            let _ = write!(text, ";module {id} {name}");
        }
        let mut count = 0;
        for lock in &self.locks {
            let policy = lock.policy.name();
            for (module, place) in lock.places.iter().map(|place| (place.module, place)) {
                let mut ranges: Vec<(u64, u64)> =
                    place.addresses.iter().map(|address| (address.0, 1)).collect();
                for variable in &place.variables {
                    let found = files.get(module).map(|file| file.variables(variable)).unwrap_or_default();
                    ensure!(
                        !found.is_empty(),
                        "lock `{}`: {} has no variable `{variable}`; `nm -C` lists its names",
                        lock.name,
                        self.modules.get(module).map(Module::name).unwrap_or_default()
                    );
                    ranges.extend(found);
                }
                for (start, length) in &ranges {
                    let _ = write!(text, ";object {module} {start:x} {length:x} {policy}");
                }
                for site in &place.sites {
                    let _ = write!(text, ";site {module} {:x} {policy}", site.0);
                }
                count += ranges.len() + place.sites.len();
            }
        }
        ensure!(count <= MOST_PLACES, "it names {count} places; at most {MOST_PLACES} are possible");
        Ok(text)
    }
}

impl Module {
    /// Its file, if that is the build that is meant: the program itself, if it has the name.
    fn file(&self, executable: &Path) -> Result<ElfFile> {
        let resolved = executable.canonicalize().unwrap_or_else(|_| executable.to_owned());
        let is_program = resolved.file_name() == self.path.file_name();
        let path = if is_program { resolved.as_path() } else { self.path.as_path() };
        let file = ElfFile::open(path)?;
        let shown = path.display();
        let Some(found) = &file.build_id else {
            bail!("{shown} has no build id, by which the drop-in would know it\nLink it with -Wl,--build-id")
        };
        if let Some(wanted) = self.build_id.as_ref().filter(|wanted| *wanted != found) {
            bail!(
                "it is for another build of {shown}: build id {wanted}, not {found}\nRun `spinpark tune` again: addresses change with \
                 each build"
            );
        }
        Ok(file)
    }
}

impl Place {
    fn to_toml(&self) -> String {
        let hex = |numbers: &[Hex]| {
            numbers.iter().map(|number| format!("\"{:#x}\"", number.0)).collect::<Vec<_>>().join(", ")
        };
        let mut fields = vec![format!("module = {}", self.module)];
        if !self.addresses.is_empty() {
            fields.push(format!("addresses = [{}]", hex(&self.addresses)));
        }
        if !self.variables.is_empty() {
            let names: Vec<String> = self.variables.iter().map(|name| quoted(name)).collect();
            fields.push(format!("variables = [{}]", names.join(", ")));
        }
        if !self.sites.is_empty() {
            fields.push(format!("sites = [{}]", hex(&self.sites)));
        }
        format!("{{ {} }}", fields.join(", "))
    }
}

/// A string of TOML: as one of JSON, but for one character.
fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string().replace('\u{7f}', "\\u007f")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn example() -> PolicyFile {
        let places = vec![Place {
            module: 0,
            addresses: vec![Hex(0x4060), Hex(0x40a0)],
            variables: vec![String::from("a \"b\"\u{7f}\n")],
            sites: vec![Hex(0x11c9)],
        }];
        let text = || String::from("x");
        let evidence = Evidence {
            metric: text(),
            change: String::from("−12.3 %"),
            interval: text(),
            noise: text(),
            rounds: 10,
            date: text(),
            machine: text(),
            command: text(),
        };
        let module = Module { path: PathBuf::from("/x/server"), build_id: Some(String::from("00ff")) };
        let name = String::from("mutex in `f`");
        let lock = Lock { name, policy: Policy::InOrder, places, evidence: Some(evidence) };
        let other = Lock { evidence: None, places: Vec::new(), policy: Policy::Default, name: text() };
        PolicyFile::new(vec![module], vec![lock, other])
    }

    #[test]
    fn what_is_written_is_read_again() {
        let text = example().to_toml("written by\na test");
        let read = PolicyFile::parse(&text).unwrap_or_else(|error| panic!("{error:#}\n{text}"));
        assert_eq!(read.modules, example().modules);
        assert_eq!(read.locks[0].places, example().locks[0].places);
        assert_eq!(read.locks[0].policy, Policy::InOrder);
        assert_eq!(read.locks[0].evidence.as_ref().unwrap().change, "−12.3 %");
        assert_eq!(read.to_toml("written by\na test"), text);
    }

    #[test]
    fn every_policy_has_its_name_in_files() {
        let by_hand = [Policy::Default, Policy::WritersFirst];
        for policy in Policy::OF_RWLOCK.into_iter().chain(Policy::OF_MUTEX).chain(by_hand) {
            let mut file = example();
            file.locks[0].policy = policy;
            assert_eq!(PolicyFile::parse(&file.to_toml("")).unwrap().locks[0].policy, policy);
        }
    }

    #[test]
    fn what_is_wrong_is_said() {
        let refused = |change: fn(String) -> String| {
            let text = change(example().to_toml(""));
            format!("{:#}", PolicyFile::parse(&text).unwrap_err())
        };
        assert!(refused(|text| text.replace("in-order", "fast")).contains("fast"));
        assert!(refused(|text| text.replace("format_version = 1", "format_version = 2")).contains("reads 1"));
        assert!(refused(|text| text.replace("0x4060", "4060")).contains("is no address"));
        assert!(refused(|text| text.replace("module = 0", "module = 7")).contains("no module 7"));
        assert!(refused(|text| text.replace("policy = ", "polcy = ")).contains("polcy"));
    }
}
