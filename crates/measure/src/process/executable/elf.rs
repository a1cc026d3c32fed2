//! The few facts of an ELF file that decide what the dynamic loader does with it.

use std::fmt;
use std::fs::File;
use std::io::Read;
use std::path::Path;

use object::elf;
use object::read::elf::{FileHeader, ProgramHeader};
use object::{Endianness, Object, ObjectSymbol, ReadCache, ReadRef};

/// Machine and word size: a process has one, and loads libraries of the same one only.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Machine {
    bits: u8,
    machine: u16,
}

impl Machine {
    /// That of the libraries, which are for the machine of this command.
    pub const OWN: Self = Self { bits: 64, machine: if cfg!(target_arch = "aarch64") { 183 } else { 62 } };
}

impl fmt::Display for Machine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = match self.machine {
            3 => "x86",
            62 => "x86-64",
            183 => "AArch64",
            40 => "ARM",
            243 => "RISC-V",
            21 => "PowerPC64",
            22 => "S390",
            other => return write!(f, "machine {other} ({} bits)", self.bits),
        };
        write!(f, "{name} ({} bits)", self.bits)
    }
}

/// What an ELF file states about itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Elf {
    /// What it runs on.
    pub machine: Machine,
    /// The loader that it asks for; none in libraries and static programs.
    pub interpreter: Option<String>,
    /// The libraries that it names, if it has a section table.
    pub needed: Vec<String>,
    /// Its own name as a library, likewise.
    pub soname: Option<String>,
}

/// What a file is, by its first bytes.
#[derive(Debug, PartialEq, Eq)]
pub enum Kind {
    /// An ELF file.
    Elf(Elf),
    /// A script, with what follows the `#!`.
    Script(String),
    /// Something else.
    Other,
}

impl Kind {
    /// Looks into `path`.
    ///
    /// # Errors
    ///
    /// If the file cannot be read. A malformed ELF file is [`Kind::Other`].
    pub fn of(path: &Path) -> std::io::Result<Self> {
        let mut file = File::open(path)?;
        let mut head = Vec::new();
        file.by_ref().take(256).read_to_end(&mut head)?;
        if let Some(line) = head.strip_prefix(b"#!") {
            let line = line.split(|byte| *byte == b'\n').next().unwrap_or_default();
            return Ok(Self::Script(String::from_utf8_lossy(line).trim().to_owned()));
        }
        let cache = ReadCache::new(file);
        let parsed = match head.get(..5) {
            Some([0x7f, b'E', b'L', b'F', 1]) => parse::<elf::FileHeader32<Endianness>, _>(&cache, 32),
            Some([0x7f, b'E', b'L', b'F', 2]) => parse::<elf::FileHeader64<Endianness>, _>(&cache, 64),
            _ => return Ok(Self::Other),
        };
        Ok(parsed.map_or(Self::Other, Self::Elf))
    }
}

/// Whether the ELF file at `path` defines or needs the dynamic symbol `name`.
#[must_use]
pub fn has_dynamic_symbol(path: &Path, name: &str) -> bool {
    let Ok(file) = File::open(path) else { return false };
    let cache = ReadCache::new(file);
    let Ok(file) = object::File::parse(&cache) else { return false };
    file.dynamic_symbols().any(|symbol| symbol.name() == Ok(name))
}

fn parse<'data, H, R>(data: R, bits: u8) -> object::read::Result<Elf>
where
    H: FileHeader<Endian = Endianness>,
    R: ReadRef<'data>,
{
    let header = H::parse(data)?;
    let endian = header.endian()?;
    let machine = Machine { bits, machine: header.e_machine(endian).0 };
    let mut interpreter = None;
    for segment in header.program_headers(endian, data)? {
        if let Some(name) = segment.interpreter(endian, data)? {
            interpreter = Some(String::from_utf8_lossy(name).into_owned());
        }
    }
    let needed = names::<H, R>(header, endian, data, elf::DT_NEEDED).unwrap_or_default();
    let soname = names::<H, R>(header, endian, data, elf::DT_SONAME).unwrap_or_default().pop();
    Ok(Elf { machine, interpreter, needed, soname })
}

/// The names that the dynamic section has under `tag`.
fn names<'data, H, R>(
    header: &'data H,
    endian: Endianness,
    data: R,
    tag: elf::DynamicTag,
) -> object::read::Result<Vec<String>>
where
    H: FileHeader<Endian = Endianness>,
    R: ReadRef<'data>,
{
    let table = header.sections(endian, data)?.dynamic_table(endian, data)?;
    let names = table.iter().filter(|entry| entry.tag == tag).filter_map(|entry| table.string(entry).ok());
    Ok(names.map(|name| String::from_utf8_lossy(name).into_owned()).collect())
}
