//! The drop-in as a file: what it exports, what it needs, and how large it is.

use std::collections::BTreeSet;

use object::elf::{
    DF_1_NODELETE, DF_TEXTREL, DT_FLAGS, DT_FLAGS_1, DT_NEEDED, DT_TEXTREL, DynamicTag, FileHeader64, PF_X,
    PT_GNU_STACK, SHN_ABS, SHN_UNDEF, VER_FLG_WEAK,
};
use object::read::elf::{Dyn, FileHeader, ProgramHeader, SectionTable, Sym, SymbolTable, VersionTable};
use object::{LittleEndian, SymbolIndex};
use spinpark_testkit::{Configuration, Run, compile_c, dropin};

type Header = FileHeader64<LittleEndian>;
const LITTLE: LittleEndian = LittleEndian;

/// It is built for speed, and has about 130 KB. As large as this it has something by accident: std, a table.
const MAX_SIZE: usize = 192 * 1024;
/// The oldest glibc that it loads on.
const OLDEST_GLIBC: [u32; 2] = [2, 31];

struct Library {
    bytes: Vec<u8>,
}

/// A symbol of the dynamic table, with its version.
struct Symbol {
    name: String,
    /// `@GLIBC_2.2.5`, `@@GLIBC_2.34`, or nothing.
    version: String,
    is_defined: bool,
    is_weak: bool,
}

impl Library {
    fn dropin() -> Library {
        Library { bytes: std::fs::read(dropin()).expect("the drop-in is readable") }
    }

    fn header(&self) -> &Header {
        Header::parse(self.bytes.as_slice()).expect("an ELF file")
    }

    fn sections(&self) -> SectionTable<'_, Header> {
        self.header().sections(LITTLE, self.bytes.as_slice()).expect("sections")
    }

    fn dynamic_symbols(&self) -> Vec<Symbol> {
        let sections = self.sections();
        let table: SymbolTable<'_, Header> = sections
            .symbols(LITTLE, self.bytes.as_slice(), object::elf::SHT_DYNSYM)
            .expect("dynamic symbols");
        let versions: VersionTable<'_, Header> =
            sections.versions(LITTLE, self.bytes.as_slice()).expect("versions").expect("versions");
        (1..table.len())
            .map(SymbolIndex)
            .filter_map(|index| {
                let symbol = table.symbol(index).expect("a symbol of the table");
                let section = symbol.st_shndx(LITTLE);
                // The version nodes themselves are listed as absolute symbols.
                (section != SHN_ABS).then(|| {
                    let name = text(table.symbol_name(LITTLE, symbol).expect("a name"));
                    let index = versions.version_index(LITTLE, index);
                    let version = versions.version(index.index()).expect("a version");
                    let is_defined = section != SHN_UNDEF;
                    let at = if is_defined && !index.is_hidden() { "@@" } else { "@" };
                    Symbol {
                        name,
                        version: version
                            .map_or_else(String::new, |version| format!("{at}{}", text(version.name()))),
                        is_defined,
                        is_weak: symbol.is_weak(),
                    }
                })
            })
            .collect()
    }

    /// The entries of the dynamic section, as tag and value.
    fn dynamic(&self) -> Vec<(DynamicTag, u64)> {
        let sections = self.sections();
        let (entries, _) =
            sections.dynamic(LITTLE, self.bytes.as_slice()).expect("readable").expect("dynamic section");
        entries.iter().map(|entry| (entry.d_tag(LITTLE), entry.d_val(LITTLE))).collect()
    }

    fn needed(&self) -> BTreeSet<String> {
        let sections = self.sections();
        let (entries, link) =
            sections.dynamic(LITTLE, self.bytes.as_slice()).expect("readable").expect("a dynamic section");
        let strings = sections.strings(LITTLE, self.bytes.as_slice(), link).expect("strings");
        entries
            .iter()
            .filter(|entry| entry.d_tag(LITTLE) == DT_NEEDED)
            .map(|entry| {
                let offset = u32::try_from(entry.d_val(LITTLE)).expect("a small file");
                text(strings.get(offset).expect("a string"))
            })
            .collect()
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// `GLIBC_2.3.2` as numbers.
fn glibc_version(version: &str) -> Option<Vec<u32>> {
    version.trim_start_matches('@').strip_prefix("GLIBC_")?.split('.').map(|part| part.parse().ok()).collect()
}

#[test]
#[cfg_attr(not(target_arch = "x86_64"), ignore = "the table is that of x86-64")]
fn exports_what_glibc_exports_and_nothing_else() {
    let expected: BTreeSet<String> = include_str!("abi_symbols.txt")
        .lines()
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
        .map(str::to_owned)
        .collect();
    let exported: BTreeSet<String> = Library::dropin()
        .dynamic_symbols()
        .into_iter()
        .filter(|symbol| symbol.is_defined)
        .map(|symbol| symbol.name + &symbol.version)
        .collect();
    let missing: Vec<_> = expected.difference(&exported).collect();
    let unexpected: Vec<_> = exported.difference(&expected).collect();
    assert!(
        missing.is_empty() && unexpected.is_empty(),
        "missing: {missing:#?}\nunexpected: {unexpected:#?}"
    );
}

#[test]
fn needs_nothing_newer_than_glibc_2_31() {
    for symbol in Library::dropin().dynamic_symbols() {
        if symbol.is_defined || symbol.is_weak {
            continue;
        }
        let version = glibc_version(&symbol.version);
        assert!(
            version.as_deref().is_some_and(|version| version <= OLDEST_GLIBC.as_slice()),
            "{}{} is not in every glibc since 2.31",
            symbol.name,
            symbol.version,
        );
    }
}

/// A version that a library is said to need must exist there, even if only weak symbols use it, unless it is
/// itself marked weak; so no version beyond 2.31 may be asked for firmly.
#[test]
fn asks_for_no_version_that_an_old_glibc_lacks() {
    let library = Library::dropin();
    let sections = library.sections();
    let (mut needed, link) =
        sections.gnu_verneed(LITTLE, library.bytes.as_slice()).expect("readable").expect("version needs");
    let strings = sections.strings(LITTLE, library.bytes.as_slice(), link).expect("strings");
    while let Some((_, mut versions)) = needed.next().expect("readable") {
        while let Some(version) = versions.next().expect("readable") {
            let name = text(version.name(LITTLE, strings).expect("a name"));
            let known =
                glibc_version(&name).is_some_and(|version| version.as_slice() <= OLDEST_GLIBC.as_slice());
            assert!(known || version.vna_flags.get(LITTLE).0 & VER_FLG_WEAK.0 != 0, "needs {name}");
        }
    }
}

#[test]
fn needs_only_libc() {
    let needed = Library::dropin().needed();
    let allowed = |name: &String| name == "libc.so.6" || name == "libdl.so.2" || name.starts_with("ld-linux");
    assert!(needed.iter().all(allowed), "{needed:?}");
}

#[test]
fn is_small() {
    let size = Library::dropin().bytes.len();
    assert!(size < MAX_SIZE, "{size} bytes");
}

#[test]
fn has_no_text_relocations_and_no_executable_stack() {
    let library = Library::dropin();
    for (tag, value) in library.dynamic() {
        assert_ne!(tag, DT_TEXTREL);
        assert!(tag != DT_FLAGS || value & DF_TEXTREL.0 == 0);
    }
    let header = library.header();
    for segment in header.program_headers(LITTLE, library.bytes.as_slice()).expect("program headers") {
        assert!(segment.p_type(LITTLE) != PT_GNU_STACK || segment.p_flags(LITTLE).0 & PF_X.0 == 0);
    }
}

/// The kernel keeps pointers into it, however often it is opened and closed.
#[test]
fn stays_loaded() {
    let mut flags = Library::dropin().dynamic().into_iter().filter(|(tag, _)| *tag == DT_FLAGS_1);
    assert!(flags.any(|(_, value)| value & DF_1_NODELETE.0 != 0));
}

/// The loader resolves every symbol when the program starts, and has nothing to say about it.
#[test]
fn every_symbol_is_resolved_at_the_start() {
    let program = compile_c("posix/symbols.c", &[]);
    let outcome = Run::new(program)
        .configuration(Configuration::Spinpark)
        .env("LD_BIND_NOW", "1")
        .env("LD_WARN", "1")
        .succeed();
    assert_eq!(outcome.stderr_text(), "");
}
