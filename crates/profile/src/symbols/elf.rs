//! What is read of a program or library.

use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

use object::{Object, ObjectSegment, ObjectSymbol, SymbolKind};

use super::Part;
use super::demangle::demangled;

/// A program or library.
#[derive(Debug)]
pub(super) struct Elf {
    /// In hexadecimal digits.
    pub(super) build_id: Option<String>,
    /// Its separate debug file, found by build id. What `.gnu_debuglink` names is blazesym's to find.
    pub(super) debug_file: Option<PathBuf>,
    segments: Vec<Segment>,
    /// By address.
    variables: Vec<Variable>,
}

#[derive(Debug)]
struct Segment {
    offset: u64,
    bytes: u64,
    address: u64,
}

#[derive(Debug)]
struct Variable {
    address: u64,
    bytes: u64,
    name: String,
}

impl Elf {
    /// Opens it; looks for its debug file in `directories`. None if it cannot be read or is none.
    pub(super) fn open(path: &Path, directories: &[PathBuf]) -> Option<Self> {
        let file = Mapped::open(path)?;
        let object = file.object()?;
        let segments = object.segments().map(|segment| {
            let (offset, bytes) = segment.file_range();
            Segment { offset, bytes, address: segment.address() }
        });
        let segments = segments.collect();
        let build_id = object.build_id().ok().flatten().map(hexadecimal);
        let is_complete = object.section_by_name(".debug_info").is_some();
        let debug_file = build_id.as_deref().filter(|_| !is_complete).and_then(|id| find(id, directories));
        let mut variables = variables(&object);
        if let Some(file) = debug_file.as_deref().and_then(Mapped::open) {
            variables = file.object().map_or(variables, |object| self::variables(&object));
        }
        Some(Self { build_id, debug_file, segments, variables })
    }

    /// The address in the file, as its symbols have it, of what is at this place of it.
    pub(super) fn address(&self, offset: u64) -> Option<u64> {
        let inside =
            |segment: &&Segment| offset.checked_sub(segment.offset).is_some_and(|at| at < segment.bytes);
        let segment = self.segments.iter().find(inside)?;
        segment.address.checked_add(offset)?.checked_sub(segment.offset)
    }

    /// Where the first page is, in the file and in the addresses of its symbols. What is mapped of it first starts there.
    pub(super) fn first(&self) -> Option<(u64, u64)> {
        const PAGE: u64 = 4096;
        let first = self.segments.iter().min_by_key(|segment| segment.address)?;
        Some((first.offset / PAGE * PAGE, first.address / PAGE * PAGE))
    }

    /// The variable that an address is part of.
    pub(super) fn variable(&self, address: u64) -> Option<Part> {
        let after = self.variables.partition_point(|variable| variable.address <= address);
        let mut candidates = self.variables[..after].iter().rev().take(8);
        let variable = candidates.find(|variable| address - variable.address < variable.bytes)?;
        Some(Part {
            variable: variable.name.clone(),
            bytes: variable.bytes,
            offset: address - variable.address,
        })
    }
}

struct Mapped(memmap2::Mmap);

impl Mapped {
    fn open(path: &Path) -> Option<Self> {
        let file = fs::File::open(path).ok()?;
        // SAFETY: programs and libraries are replaced, not rewritten, since others have them mapped too.
        let map = unsafe { memmap2::Mmap::map(&file) };
        map.ok().map(Self)
    }

    fn object(&self) -> Option<object::File<'_>> {
        object::File::parse(&*self.0).ok()
    }
}

fn variables(object: &object::File<'_>) -> Vec<Variable> {
    let data = |symbol: &object::Symbol<'_, '_>| {
        symbol.kind() == SymbolKind::Data && symbol.is_definition() && symbol.size() > 0
    };
    let mut variables: Vec<Variable> = object
        .symbols()
        .filter(data)
        .chain(object.dynamic_symbols().filter(data))
        .filter_map(|symbol| {
            let name = symbol.name().ok()?;
            Some(Variable { address: symbol.address(), bytes: symbol.size(), name: shown(name) })
        })
        .collect();
    variables.sort_by(|one, other| (one.address, &one.name).cmp(&(other.address, &other.name)));
    variables.dedup_by(|later, earlier| later.address == earlier.address && later.bytes == earlier.bytes);
    variables
}

/// The name as the source has it.
fn shown(name: &str) -> String {
    if let Some(shown) = demangled(name) {
        return shown;
    }
    // The compiler's number of a static variable of a function: `lock.0`.
    match name.rsplit_once('.') {
        Some((base, number)) if !base.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit()) => {
            base.to_owned()
        }
        _ => name.to_owned(),
    }
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// Where packages put the symbols of a stripped file.
fn find(build_id: &str, directories: &[PathBuf]) -> Option<PathBuf> {
    let (directory, name) = build_id.split_at_checked(2)?;
    let path = format!(".build-id/{directory}/{name}.debug");
    directories.iter().map(|start| start.join(&path)).find(|path| path.exists())
}
