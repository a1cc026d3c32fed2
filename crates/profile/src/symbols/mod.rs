//! Places from stacks: functions, source lines, inlined frames.
//!
//! | module   | what it has                                                          |
//! |----------|----------------------------------------------------------------------|
//! | `elf`    | what is read of a program or library: segments, build id, variables   |
//! | `cut`    | which frames are the lock's own and not the program's                 |
//! | `demangle` | names as the source has them                                       |
//!
//! [blazesym](https://docs.rs/blazesym) reads symbols and DWARF, of the file itself or of its separate debug file (by build id
//! or `.gnu_debuglink`, in `/usr/lib/debug`). A file without symbols has its dynamic ones; where those do not
//! reach, a frame is module + offset.

mod cut;
mod demangle;
mod elf;

use std::collections::{BTreeSet, HashMap};
use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use blazesym::symbolize::source::{Elf as ElfSource, Source};
use blazesym::symbolize::{CodeInfo, Input, Symbolizer};

use self::elf::Elf;
use crate::maps::{Mapping, Maps};
use crate::model::{CallSite, Frame, Module};

/// A place in a variable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Part {
    /// Its name.
    pub(crate) variable: String,
    /// How long it is.
    pub(crate) bytes: u64,
    /// How far from its start.
    pub(crate) offset: u64,
}

impl Part {
    /// `cache_lock`, `tables+0x40`.
    pub(crate) fn label(&self) -> String {
        match self.offset {
            0 => self.variable.clone(),
            offset => format!("{}+{offset:#x}", self.variable),
        }
    }
}

/// Looks symbols up. Files are opened once and kept.
pub struct Symbols {
    /// None: modules and offsets only.
    symbolizer: Option<Symbolizer>,
    /// Where separate debug files are.
    directories: Vec<PathBuf>,
    files: HashMap<String, Option<Elf>>,
    frames: HashMap<(String, u64), Vec<Frame>>,
    /// When the recording at hand began, ns since 1970.
    recorded: u64,
    warnings: BTreeSet<String>,
}

impl std::fmt::Debug for Symbols {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Symbols").field("files", &self.files.len()).finish_non_exhaustive()
    }
}

impl Default for Symbols {
    fn default() -> Self {
        Self::new()
    }
}

impl Symbols {
    /// With debug files in the usual directories.
    #[must_use]
    pub fn new() -> Self {
        Self::with_debug_directories(&["/usr/lib/debug", "/lib/debug"].map(PathBuf::from))
    }

    /// With debug files in these directories.
    #[must_use]
    pub fn with_debug_directories(directories: &[PathBuf]) -> Self {
        let symbolizer = Symbolizer::builder().set_debug_dirs(Some(directories));
        // It takes names of C for types of C++.
        let symbolizer = symbolizer.enable_demangling(false).build();
        Self::with(Some(symbolizer), directories)
    }

    /// No symbols: modules and offsets only. No file is opened.
    #[must_use]
    pub fn none() -> Self {
        Self::with(None, &[])
    }

    fn with(symbolizer: Option<Symbolizer>, directories: &[PathBuf]) -> Self {
        Self {
            symbolizer,
            directories: directories.to_owned(),
            files: HashMap::new(),
            frames: HashMap::new(),
            recorded: 0,
            warnings: BTreeSet::new(),
        }
    }

    /// From here on, it is about a recording that began then, ns since 1970.
    pub(crate) fn recorded(&mut self, started: u64) {
        self.recorded = started;
    }

    /// What readers of the recording should know; each once.
    pub(crate) fn take_warnings(&mut self) -> Vec<String> {
        std::mem::take(&mut self.warnings).into_iter().collect()
    }

    /// The call site of a stack: return addresses, the innermost first, to be looked up in snapshot `number`.
    ///
    /// The frames of the lock functions themselves are cut off.
    #[must_use]
    pub fn call_site(&mut self, maps: &Maps, number: u32, stack: &[u64], is_cut: bool) -> CallSite {
        let frames = stack.iter().flat_map(|address| self.lookup(maps, number, *address)).collect();
        CallSite { frames: cut::own_frames(frames), is_cut }
    }

    /// The variable that `address` is part of: `cache_lock`, `tables+0x40`.
    #[must_use]
    pub fn variable(&mut self, maps: &Maps, address: u64) -> Option<String> {
        self.part(maps, address).map(|part| part.label())
    }

    /// The same, with its size.
    pub(crate) fn part(&mut self, maps: &Maps, address: u64) -> Option<Part> {
        self.symbolizer.as_ref()?;
        maps.snapshots().rev().find_map(|snapshot| {
            let mapping = module_before(snapshot, address)?;
            self.check(mapping);
            let elf = self.file(&mapping.path)?;
            let (offset, first) = elf.first()?;
            let mut start = snapshot.iter().rev().filter(|other| other.path == mapping.path);
            let start = start.find(|other| other.offset == offset && other.start <= mapping.start)?.start;
            elf.variable(address.checked_sub(start)?.checked_add(first)?)
        })
    }

    /// The modules that call sites are in.
    #[must_use]
    pub fn modules(&mut self, call_sites: &[CallSite]) -> Vec<Module> {
        let used: BTreeSet<&str> = call_sites
            .iter()
            .flat_map(|call_site| &call_site.frames)
            .map(|frame| frame.module.as_str())
            .collect();
        let mut modules: Vec<Module> = self
            .files
            .iter()
            .filter(|(path, _)| used.contains(file_name(path)))
            .map(|(path, elf)| Module {
                path: path.clone(),
                build_id: elf.as_ref().and_then(|elf| elf.build_id.clone()),
            })
            .collect();
        modules.sort_by(|one, other| one.path.cmp(&other.path));
        modules
    }

    fn file(&mut self, path: &str) -> Option<&Elf> {
        let is_used = self.symbolizer.is_some() && path.starts_with('/');
        let open = || is_used.then(|| Elf::open(Path::new(path), &self.directories)).flatten();
        self.files.entry(path.to_owned()).or_insert_with(open).as_ref()
    }

    /// Warns if the file is not the one that was mapped.
    fn check(&mut self, mapping: &Mapping) {
        if self.symbolizer.is_none() || !mapping.path.starts_with('/') {
            return;
        }
        let path = &mapping.path;
        let ns = |seconds: i64, rest: i64| {
            seconds.unsigned_abs().saturating_mul(1_000_000_000) + rest.unsigned_abs()
        };
        let warning = match fs::metadata(path) {
            Err(error) => format!("{path} cannot be read ({error}): its functions have no names."),
            Ok(file) => {
                let is_later = ns(file.mtime(), file.mtime_nsec()) > self.recorded;
                // Packages keep the build time as modification time; but replacing a file creates a new inode, with a new
                // change time.
                let is_another =
                    mapping.inode != file.ino() && ns(file.ctime(), file.ctime_nsec()) > self.recorded;
                if !is_later && !is_another && !mapping.is_deleted {
                    return;
                }
                format!(
                    "{path} was changed after it was recorded: names and lines of its functions may be wrong; record again."
                )
            }
        };
        self.warnings.insert(warning);
    }

    /// The frames of a return address, the innermost first.
    fn lookup(&mut self, maps: &Maps, number: u32, address: u64) -> Vec<Frame> {
        let Some(mapping) = maps.find(number, address.wrapping_sub(1)) else {
            return vec![bare("?", address)];
        };
        let in_file = address - mapping.start + mapping.offset;
        if !mapping.path.starts_with('/') {
            let name = if mapping.path.is_empty() { "[anonymous]" } else { &mapping.path };
            return vec![bare(
                name,
                if mapping.path == "[vdso]" { address - mapping.start } else { address },
            )];
        }
        self.check(mapping);
        // In the file's own addresses, if it can be read.
        let offset =
            self.file(&mapping.path).and_then(|elf| elf.address(in_file - 1)).map(|before| before + 1);
        let Some(offset) = offset else { return vec![bare(file_name(&mapping.path), in_file)] };
        let key = (mapping.path.clone(), offset);
        if let Some(known) = self.frames.get(&key) {
            return known.clone();
        }
        let frames = self.symbolize(&mapping.path, offset);
        self.frames.insert(key, frames.clone());
        frames
    }

    fn symbolize(&self, path: &str, offset: u64) -> Vec<Frame> {
        let module = file_name(path);
        let file = self.files.get(path).and_then(Option::as_ref);
        let debug_file = file.and_then(|elf| elf.debug_file.as_deref());
        let source = Source::Elf(ElfSource::new(debug_file.unwrap_or(Path::new(path))));
        // The call is before the address to which it returns, maybe at the end of another line or function.
        let input = Input::VirtOffset(offset - 1);
        let found =
            self.symbolizer.as_ref().and_then(|symbolizer| symbolizer.symbolize_single(&source, input).ok());
        let Some(symbol) = found.as_ref().and_then(|found| found.as_sym()) else {
            return vec![bare(module, offset)];
        };
        let frame = |name: &str, source: Option<&CodeInfo<'_>>, is_inlined| Frame {
            function: Some(demangle::demangled(name).unwrap_or_else(|| name.to_owned())),
            source: source.and_then(|info| Some((info.to_path().to_string_lossy().into_owned(), info.line?))),
            module: module.to_owned(),
            offset,
            is_inlined,
        };
        let inlined = symbol.inlined.iter().rev();
        let mut frames: Vec<Frame> =
            inlined.map(|inner| frame(&inner.name, inner.code_info.as_ref(), true)).collect();
        frames.push(frame(&symbol.name, symbol.code_info.as_deref(), false));
        frames
    }
}

fn bare(module: &str, offset: u64) -> Frame {
    Frame { function: None, source: None, module: module.to_owned(), offset, is_inlined: false }
}

fn file_name(path: &str) -> &str {
    Path::new(path).file_name().and_then(OsStr::to_str).unwrap_or(path)
}

/// The mapping of a file that has `address`, or the one before it: the zeros that follow the file's data are not the file's.
fn module_before(snapshot: &[Mapping], address: u64) -> Option<&Mapping> {
    let at = snapshot.iter().position(|mapping| (mapping.start..mapping.end).contains(&address))?;
    let (mapping, before) = (&snapshot[at], at.checked_sub(1).map(|before| &snapshot[before]));
    let candidates =
        [Some(mapping), before.filter(|before| before.end == mapping.start && mapping.path.is_empty())];
    candidates.into_iter().flatten().find(|mapping| mapping.path.starts_with('/'))
}
