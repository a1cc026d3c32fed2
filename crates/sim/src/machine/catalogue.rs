//! Machines by name: those of this repository are part of the program; others are files.

use std::fs;
use std::path::Path;

use super::Machine;
use super::assemble;
use super::error::MachineError;
use super::keys::nearest;
use super::sheet::Sheet;

macro_rules! embedded {
    ($($name:literal),* $(,)?) => {
        [$(($name, include_str!(concat!("../../machines/", $name, ".toml")))),*]
    };
}

/// The machines of this repository, from small to large within an age.
const EMBEDDED: [(&str, &str); 11] = embedded![
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
        assemble::machine(&complete(name_or_path)?.sheet)
    }

    /// The machine that `text` describes, as if it stood in `file`.
    ///
    /// # Errors
    ///
    /// As [`Machine::load`].
    pub fn parse(file: &str, text: &str) -> Result<Self, MachineError> {
        assemble::machine(&inherit(Sheet::parse(file, text)?)?.sheet)
    }
}

/// A sheet to which nothing has to be added.
pub(super) struct Complete {
    pub(super) sheet: Sheet,
    /// The machines that it is based on, nearest first.
    pub(super) bases: Vec<String>,
}

pub(super) fn complete(name_or_path: &str) -> Result<Complete, MachineError> {
    inherit(read(name_or_path, None)?)
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
        return Err(MachineError::Unknown {
            name: name.to_owned(),
            nearest: nearest(name, machines()).map(str::to_owned),
            known: machines().join(", "),
        });
    }
    let folder = named_in.and_then(|file| Path::new(file).parent()).unwrap_or(Path::new(""));
    let path = folder.join(name);
    let file = path.display().to_string();
    let unreadable = |error| {
        let known = machines().join(", ");
        MachineError::Unreadable { file: file.clone(), error, known }
    };
    let text = fs::read_to_string(&path).map_err(unreadable)?;
    Sheet::parse(&file, &text)
}

fn inherit(mut sheet: Sheet) -> Result<Complete, MachineError> {
    let mut way = vec![sheet.file.clone()];
    let mut bases = Vec::new();
    let mut next = sheet.based_on.clone();
    let mut named_in = sheet.file.clone();
    while let Some(name) = next {
        let base = read(&name, Some(&named_in))?;
        let is_circle = way.contains(&base.file);
        way.push(base.file.clone());
        if is_circle {
            return Err(MachineError::Circle { file: sheet.file, way: way.join(" → ") });
        }
        sheet.complete_from(&base);
        bases.push(base.name);
        (next, named_in) = (base.based_on, base.file);
    }
    Ok(Complete { sheet, bases })
}
