//! Members of variables, as DWARF describes their types: `audit.io` is what lies at `audit+0x30`.
//!
//! Variables are found by their addresses, once per file; functions are passed over unless a variable is not
//! found otherwise, since few hold a `static` one with a lock inside. Files with more entries than [`MOST`]
//! have the variables of the first ones only. Types that are described in another unit, or another file, are
//! not followed: such a place keeps its distance from the variable's start.

use std::cell::RefCell;
use std::collections::HashMap;
use std::path::Path;

use addr2line::gimli::{
    AttributeValue, DebugInfoOffset, DebuggingInformationEntry, Dwarf, EndianSlice, Error, NativeEndian,
    Operation, SectionId, Unit, UnitOffset, constants,
};
use object::{Object, ObjectSection};

use super::debug_files::Mapped;
use crate::function_names::without_arguments;

/// Entries that are read of a file, in both passes together: less than a second.
const MOST: usize = 2_000_000;
/// How deep types may be nested.
const DEEPEST: usize = 24;

type Slice<'a> = EndianSlice<'a, NativeEndian>;
type Entry<'a> = DebuggingInformationEntry<Slice<'a>>;

/// The DWARF of a file.
pub(super) struct Members {
    file: Mapped,
    /// Sections that had to be unpacked.
    unpacked: HashMap<&'static str, Vec<u8>>,
    index: RefCell<Index>,
}

/// The variables of a file: by address, the unit and the type.
#[derive(Default)]
struct Index {
    types: HashMap<u64, (DebugInfoOffset, UnitOffset)>,
    /// Passes that were made.
    passes: usize,
    read: usize,
}

/// What lies at a place of a type.
#[derive(Default)]
struct At {
    /// Members and elements on the way, as they are written: `.table`, `[3]`.
    path: Vec<String>,
    /// It ends at a lock.
    is_lock: bool,
}

impl At {
    /// The way without its end in types of libc and libstdc++, whose members mean nothing to users: `.m` for the
    /// `._M_impl._M_rwlock` of a `std::shared_mutex`.
    fn known_to_users(self) -> Vec<String> {
        let Self { mut path, is_lock } = self;
        if !is_lock {
            let own = path.iter().position(|part| part.starts_with(".__")).unwrap_or(path.len());
            path.truncate(own);
        }
        // Names that programs may not use.
        let is_reserved = |part: &String| {
            let name = part.strip_prefix("._").unwrap_or_default();
            name.starts_with(|first: char| first == '_' || first.is_ascii_uppercase())
        };
        while path.last().is_some_and(is_reserved) {
            path.pop();
        }
        path
    }
}

impl Members {
    /// Of a file with DWARF.
    pub(super) fn open(path: &Path) -> Option<Self> {
        let file = Mapped::open(path).ok()?;
        let object = file.object()?;
        let mut unpacked = HashMap::new();
        for id in SECTIONS {
            let section = object.section_by_name(id.name());
            if let Some(section) =
                section.filter(|section| section.compressed_file_range().is_ok_and(is_packed))
            {
                unpacked.insert(id.name(), section.uncompressed_data().ok()?.into_owned());
            }
        }
        Some(Self { file, unpacked, index: RefCell::default() })
    }

    /// The place in the variable that begins at `address`: `.io`, `[3].lock`; empty if it is the variable
    /// itself. None if that is not described.
    pub(super) fn place(&self, address: u64, offset: u64) -> Option<String> {
        let object = self.file.object()?;
        let dwarf = self.dwarf(&object)?;
        let mut index = self.index.borrow_mut();
        while !index.types.contains_key(&address) && index.passes < 2 && index.read < MOST {
            index.read(&dwarf).ok()?;
        }
        let (unit, of) = *index.types.get(&address)?;
        let unit = dwarf.unit(dwarf.debug_info.header_from_offset(unit).ok()?).ok()?;
        let at = Types { dwarf: &dwarf, unit: &unit }.at(of, offset, DEEPEST)?;
        Some(at.known_to_users().concat())
    }

    fn dwarf<'a>(&'a self, object: &object::File<'a>) -> Option<Dwarf<Slice<'a>>> {
        let section = |id: SectionId| {
            let unpacked = self.unpacked.get(id.name()).map(Vec::as_slice);
            let plain = || object.section_by_name(id.name())?.data().ok();
            Ok::<_, Error>(EndianSlice::new(unpacked.or_else(plain).unwrap_or_default(), NativeEndian))
        };
        Dwarf::load(section).ok()
    }
}

const SECTIONS: [SectionId; 9] = [
    SectionId::DebugAbbrev,
    SectionId::DebugAddr,
    SectionId::DebugInfo,
    SectionId::DebugLine,
    SectionId::DebugLineStr,
    SectionId::DebugStr,
    SectionId::DebugStrOffsets,
    SectionId::DebugRngLists,
    SectionId::DebugTypes,
];

fn is_packed(range: object::CompressedFileRange) -> bool {
    range.format != object::CompressionFormat::None
}

impl Index {
    /// Reads the variables outside of functions, and at the second time those inside of them.
    fn read(&mut self, dwarf: &Dwarf<Slice<'_>>) -> Result<(), Error> {
        let is_deep = self.passes > 0;
        self.passes += 1;
        let mut units = dwarf.units();
        while let Some(header) = units.next()? {
            let Some(start) = header.debug_info_offset() else { continue };
            let unit = dwarf.unit(header)?;
            let mut entries = unit.entries();
            let mut is_left = entries.next_dfs()?.is_some();
            while is_left {
                self.read += 1;
                if self.read > MOST {
                    return Ok(());
                }
                let Some(entry) = entries.current() else { break };
                let tag = entry.tag();
                if tag == constants::DW_TAG_variable
                    && let Some(address) = static_address(dwarf, &unit, entry)
                    && let Some(of) = type_of(&unit, entry)
                {
                    self.types.entry(address).or_insert((start, of));
                }
                let is_passed = !is_deep && tag == constants::DW_TAG_subprogram
                    || TYPES.contains(&tag)
                    || tag == constants::DW_TAG_enumeration_type;
                // Where the next sibling is not noted, reading all in between is the only way to it.
                let is_passed = is_passed && entry.attr_value(constants::DW_AT_sibling).is_some();
                is_left = match is_passed && entry.has_children() {
                    // The last of its siblings has none after it; what follows is its parent's sibling.
                    true => entries.next_sibling()?.is_some() || entries.next_dfs()?.is_some(),
                    false => entries.next_dfs()?.is_some(),
                };
            }
        }
        Ok(())
    }
}

const TYPES: [constants::DwTag; 3] =
    [constants::DW_TAG_structure_type, constants::DW_TAG_class_type, constants::DW_TAG_union_type];

/// Where a variable is, if it has one place for all threads.
fn static_address<'a>(dwarf: &Dwarf<Slice<'a>>, unit: &Unit<Slice<'a>>, entry: &Entry<'a>) -> Option<u64> {
    let place = entry.attr_value(constants::DW_AT_location)?.exprloc_value()?;
    let mut operations = place.operations(unit.encoding());
    let address = match operations.next().ok()?? {
        Operation::Address { address } => address,
        Operation::AddressIndex { index } => dwarf.address(unit, index).ok()?,
        _ => return None,
    };
    operations.next().ok()?.is_none().then_some(address)
}

/// The type of a variable or member, which may stand at its declaration.
fn type_of<'a>(unit: &Unit<Slice<'a>>, entry: &Entry<'a>) -> Option<UnitOffset> {
    let refers = |entry: &Entry<'a>, name| match entry.attr_value(name)? {
        AttributeValue::UnitRef(offset) => Some(offset),
        AttributeValue::DebugInfoRef(offset) => offset.to_unit_offset(unit),
        _ => None,
    };
    if let Some(of) = refers(entry, constants::DW_AT_type) {
        return Some(of);
    }
    let declared = refers(entry, constants::DW_AT_specification)
        .or_else(|| refers(entry, constants::DW_AT_abstract_origin))?;
    refers(&unit.entry(declared).ok()?, constants::DW_AT_type)
}

/// The types of a unit.
struct Types<'a, 'b> {
    dwarf: &'b Dwarf<Slice<'a>>,
    unit: &'b Unit<Slice<'a>>,
}

impl<'a> Types<'a, '_> {
    /// What lies `offset` bytes from the start of a type.
    fn at(&self, of: UnitOffset, offset: u64, depth: usize) -> Option<At> {
        let depth = depth.checked_sub(1)?;
        let entry = self.unit.entry(of).ok()?;
        let is_lock = self.name(&entry).is_some_and(|name| is_lock(&name));
        let inside = match entry.tag() {
            constants::DW_TAG_typedef
            | constants::DW_TAG_const_type
            | constants::DW_TAG_volatile_type
            | constants::DW_TAG_atomic_type => self.at(type_of(self.unit, &entry)?, offset, depth)?,
            tag if TYPES.contains(&tag) => self.in_structure(of, &entry, offset, depth)?,
            constants::DW_TAG_array_type => self.in_array(of, &entry, offset, depth)?,
            _ => At::default(),
        };
        // A class that is called a lock is made of the one inside of it; what a lock protects may have
        // others.
        Some(match is_lock && (!inside.is_lock || inside.path.len() <= 1) {
            true => At { path: Vec::new(), is_lock },
            false => inside,
        })
    }

    /// In the member that has the place; of several, in a union, in one that has a lock there.
    fn in_structure(&self, of: UnitOffset, entry: &Entry<'a>, offset: u64, depth: usize) -> Option<At> {
        if entry.attr_value(constants::DW_AT_declaration).is_some() {
            return None;
        }
        let mut found: Option<At> = None;
        let mut tree = self.unit.entries_tree(Some(of)).ok()?;
        let mut members = tree.root().ok()?.children();
        while let Ok(Some(member)) = members.next() {
            let member = member.entry();
            let is_base = member.tag() == constants::DW_TAG_inheritance;
            let is_static = member.attr_value(constants::DW_AT_external).is_some()
                || member.attr_value(constants::DW_AT_declaration).is_some();
            if !is_base && member.tag() != constants::DW_TAG_member || is_static {
                continue;
            }
            let start = match member.attr_value(constants::DW_AT_data_member_location) {
                None => 0,
                Some(place) => match place.udata_value() {
                    Some(place) => place,
                    // Of a virtual base.
                    None => continue,
                },
            };
            let Some(of) = type_of(self.unit, member) else { continue };
            let bytes = self.bytes(of, depth).unwrap_or(0);
            let Some(inside) = offset.checked_sub(start).filter(|inside| *inside < bytes) else { continue };
            let Some(mut at) = self.at(of, inside, depth) else { continue };
            if let Some(name) = self.name(member).filter(|_| !is_base) {
                let is_place = |rest: &str| rest.bytes().all(|byte| byte.is_ascii_digit());
                // The first field of a tuple of Rust.
                let name = name.strip_prefix("__").filter(|rest| is_place(rest)).unwrap_or(&name);
                at.path.insert(0, format!(".{name}"));
            }
            if at.is_lock {
                return Some(at);
            }
            found.get_or_insert(at);
        }
        found.or_else(|| Some(At::default()))
    }

    fn in_array(&self, of: UnitOffset, entry: &Entry<'a>, offset: u64, depth: usize) -> Option<At> {
        let element = type_of(self.unit, entry)?;
        let bytes = self.bytes(element, depth).filter(|bytes| *bytes > 0)?;
        let mut at = self.at(element, offset % bytes, depth)?;
        let mut number = offset / bytes;
        // Elements of the last dimension are next to each other.
        for length in self.lengths(of)?.into_iter().rev() {
            at.path.insert(0, format!("[{}]", number % length.max(1)));
            number /= length.max(1);
        }
        Some(at)
    }

    /// How many elements each dimension of an array has.
    fn lengths(&self, of: UnitOffset) -> Option<Vec<u64>> {
        let mut tree = self.unit.entries_tree(Some(of)).ok()?;
        let mut ranges = tree.root().ok()?.children();
        let mut lengths = Vec::new();
        while let Ok(Some(range)) = ranges.next() {
            let range = range.entry();
            if range.tag() == constants::DW_TAG_subrange_type {
                let number = |name| range.attr_value(name)?.udata_value();
                let last = || number(constants::DW_AT_upper_bound)?.checked_add(1);
                lengths.push(number(constants::DW_AT_count).or_else(last)?);
            }
        }
        Some(lengths).filter(|lengths| !lengths.is_empty())
    }

    /// How long a type is.
    fn bytes(&self, of: UnitOffset, depth: usize) -> Option<u64> {
        let depth = depth.checked_sub(1)?;
        let entry = self.unit.entry(of).ok()?;
        if let Some(bytes) = entry.attr_value(constants::DW_AT_byte_size) {
            return bytes.udata_value();
        }
        match entry.tag() {
            constants::DW_TAG_pointer_type
            | constants::DW_TAG_reference_type
            | constants::DW_TAG_rvalue_reference_type => Some(8),
            constants::DW_TAG_array_type => {
                let element = self.bytes(type_of(self.unit, &entry)?, depth)?;
                self.lengths(of)?.into_iter().try_fold(element, u64::checked_mul)
            }
            _ => self.bytes(type_of(self.unit, &entry)?, depth),
        }
    }

    fn name(&self, entry: &Entry<'a>) -> Option<String> {
        let name = entry.attr_value(constants::DW_AT_name)?;
        let name = self.dwarf.attr_string(self.unit, name).ok()?;
        Some(name.to_string_lossy().into_owned())
    }
}

/// Whether a type is nothing but a lock, or what threads wait at, by its name: `pthread_mutex_t`, `Mutex<T>`,
/// `my_lock`; not `block`.
fn is_lock(name: &str) -> bool {
    const ENDS: [&str; 12] = [
        "mutex",
        "lock",
        "sem",
        "semaphore",
        "cond",
        "condvar",
        "condition_variable",
        "once",
        "once_flag",
        "latch",
        "barrier",
        "futex",
    ];
    const OTHERS: [&str; 6] = ["block", "clock", "flock", "second", "nonce", "glock"];
    let name = without_arguments(name).to_ascii_lowercase();
    let name = name.split('<').next().unwrap_or_default();
    let name = name.strip_suffix("_t").unwrap_or(name);
    ENDS.iter().any(|end| name.ends_with(end)) && !OTHERS.iter().any(|end| name.ends_with(end))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ways_end_where_users_know_them() {
        let known = |path: &[&str], is_lock| {
            let path = path.iter().map(|part| (*part).to_owned()).collect();
            At { path, is_lock }.known_to_users().concat()
        };
        assert_eq!(known(&[".m", "._M_impl", "._M_rwlock"], true), ".m");
        assert_eq!(known(&["._M_impl", "._M_rwlock"], true), "", "the variable itself");
        assert_eq!(known(&["[3]", "._own", ".__lock_", ".m_"], true), "[3]._own.__lock_.m_");
        assert_eq!(known(&[".io", ".__data", ".__lock"], false), ".io");
        assert_eq!(known(&["[3]", "._own"], true), "[3]._own");
    }

    #[test]
    fn types_that_are_locks() {
        for name in
            ["pthread_mutex_t", "mutex", "Mutex<alloc::vec::Vec<u8>>", "my_lock", "RwLock<T>", "sem_t"]
        {
            assert!(is_lock(name), "{name}");
        }
        for name in ["audit", "block_t", "clock_t", "second", "nonce", "Vec<std::mutex>", "locks"] {
            assert!(!is_lock(name), "{name}");
        }
    }
}
