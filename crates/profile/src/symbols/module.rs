//! A program or library: its segments, its build id, and the names of its functions and variables.
//!
//! Names come from all symbol tables that gdb would find: the file's own, that of its separate debug file,
//! the compressed one of MiniDebugInfo (`.gnu_debugdata`), and the dynamic one. Functions that were inlined,
//! and lines, come from DWARF by [addr2line](https://docs.rs/addr2line), which also reads split DWARF
//! (`.dwo`, `.dwp`) and compressed sections.

use std::cell::OnceCell;
use std::collections::{BTreeSet, VecDeque};
use std::io::{Cursor, Read};
use std::path::{Path, PathBuf};

use addr2line::Loader;
use addr2line::gimli::{
    BaseAddresses, CfaRule, CieOrFde, EhFrame, EhFrameHdr, NativeEndian, Register, RegisterRule,
    UnwindContext, UnwindSection, Vendor,
};
use object::{Object, ObjectSection, ObjectSegment, ObjectSymbol, ObjectSymbolTable, SymbolKind};

use super::Part;
use super::aarch64::{self, Instruction};
use super::debug_files::{Mapped, Sought, alternative, hexadecimal};
use super::demangle::demangled;
use super::members::Members;
use crate::model::Unnamed;

/// MiniDebugInfo that is larger when it is unpacked is none.
const LARGEST_MINI: u64 = 1 << 30;
/// `call` and `jmp` to what an address relative to its end has.
const CALL: [u8; 2] = [0xff, 0x15];
const JUMP: [u8; 2] = [0xff, 0x25];
/// How many symbols may begin between an address and the start of the one that it is in.
const NESTED: usize = 16;

/// A program or library.
pub(super) struct Module {
    /// In hexadecimal digits.
    pub(super) build_id: Option<String>,
    /// Why functions of it may have no names.
    pub(super) unnamed: Unnamed,
    segments: Vec<Segment>,
    /// By address.
    functions: Vec<Symbol>,
    /// By address.
    variables: Vec<Symbol>,
    /// Where the addresses of other files' functions are kept, by address.
    imports: Vec<(u64, String)>,
    /// What other files know: addresses and names.
    exports: Vec<(u64, String)>,
    /// DWARF, if there is any.
    lines: Option<Loader>,
    /// The same for the types of variables; read when one is first asked for.
    members: OnceCell<Option<Members>>,
    /// The file that has it.
    described_in: Option<PathBuf>,
    /// Start and end of each function, by address, as the unwind tables have them; read when they are first
    /// asked for.
    unwound: OnceCell<Vec<(u64, u64)>>,
    /// The file, with its code if it is no debug file.
    file: Mapped,
    /// Its code is AArch64's; else x86-64's.
    is_aarch64: bool,
}

struct Segment {
    offset: u64,
    bytes: u64,
    address: u64,
}

struct Symbol {
    address: u64,
    bytes: u64,
    /// Of several at one address, the one with the lowest rank is shown.
    rank: (u8, usize, usize),
    name: String,
}

/// A function at an address, as DWARF has it.
pub(super) struct Inlined {
    /// Mangled, or as the source has it.
    pub(super) name: Option<String>,
    pub(super) source: Option<(String, u32)>,
}

/// What a function does with locks, by the functions that it calls.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct LockCalls {
    takes: bool,
    releases: bool,
}

impl LockCalls {
    fn add(&mut self, function: &str) {
        let name = function.to_ascii_lowercase().replace("clock", "").replace("block", "");
        let has = |words: &[&str]| words.iter().any(|word| name.contains(word));
        let releases = has(&["unlock", "release", "leave"]);
        self.releases |= releases;
        self.takes |= !releases && has(&["lock", "acquire", "enter"]);
    }

    /// Whether a lock outlives the call: it is taken and not released, or released and not taken.
    pub(super) fn is_half(self) -> bool {
        self.takes != self.releases
    }
}

/// Of System V's numbers of registers on x86-64.
const FRAME: u16 = 6;
/// The registers of which callers need the value.
const KEPT: [u16; 6] = [3, FRAME, 12, 13, 14, 15];
/// The return address, as if it were a register.
const RETURN: u16 = 16;
/// Where it is, from the end of the frame.
const PUSHED: i64 = -8;

/// How to leave a function at one of its instructions, as its unwind table has it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Rules {
    /// Where the function begins.
    pub(super) start: u64,
    /// The register, and what to add to it, where the caller's frame ends; none if that takes a computation.
    pub(super) end: Option<(u16, i64)>,
    /// Where the return address is, from there; none if it is in its register.
    pub(super) return_at: Option<i64>,
    /// Where registers are saved, from there.
    pub(super) saved: Vec<(u16, i64)>,
}

impl Module {
    /// Opens `path`, or only the separate debug file if the file itself is gone.
    ///
    /// # Errors
    /// Why there are no names: it cannot be read, or is no ELF file.
    pub(super) fn open(path: &Path, sought: &mut Sought) -> Result<Self, Unnamed> {
        let file = Mapped::open(path)?;
        let object = file.object().ok_or(Unnamed::NotElf)?;
        let build_id = object.build_id().ok().flatten().map(hexadecimal);
        let segments = object.segments().map(|segment| {
            let (offset, bytes) = segment.file_range();
            Segment { offset, bytes, address: segment.address() }
        });
        let segments = segments.collect();
        let mut module = Self {
            build_id,
            unnamed: Unnamed::Stripped,
            segments,
            functions: Vec::new(),
            variables: Vec::new(),
            imports: imports(&object),
            exports: exports(&object),
            lines: None,
            members: OnceCell::new(),
            described_in: None,
            unwound: OnceCell::new(),
            file: Mapped::open(path)?,
            is_aarch64: object.architecture() == object::Architecture::Aarch64,
        };
        let has_lines = |object: &object::File<'_>| {
            let has = |name| object.section_by_name(name).is_some();
            has(".debug_info") || has(".zdebug_info") || has(".debug_line")
        };
        let mut lines = has_lines(&object).then(|| path.to_owned());
        if lines.is_none() {
            let debug_file = sought.debug_file(path, &object, module.build_id.as_deref());
            if let Some(debug_file) = debug_file.as_deref().and_then(|path| Mapped::open(path).ok())
                && let Some(object) = debug_file.object()
            {
                module.add_symbols(object.symbols());
                lines = has_lines(&object).then_some(debug_file.path);
            }
        }
        module.add_symbols(object.symbols());
        if let Some(mini) = mini_debug_info(&object) {
            object::File::parse(&*mini).into_iter().for_each(|object| module.add_symbols(object.symbols()));
        }
        if !module.functions.is_empty() {
            module.unnamed = Unnamed::NoSymbol;
        }
        module.add_symbols(object.dynamic_symbols());
        module.sort();
        module.described_in.clone_from(&lines);
        module.lines = lines.and_then(|path| {
            let alternative =
                Mapped::open(&path).ok().and_then(|file| alternative(&path, &file.object()?, sought));
            Loader::new_with_sup(path, alternative).ok()
        });
        Ok(module)
    }

    fn add_symbols<'data: 'file, 'file>(
        &mut self,
        symbols: impl Iterator<Item = object::Symbol<'data, 'file>>,
    ) {
        for symbol in symbols.filter(ObjectSymbol::is_definition) {
            let list = match symbol.kind() {
                SymbolKind::Text => &mut self.functions,
                SymbolKind::Data if symbol.size() > 0 => &mut self.variables,
                _ => continue,
            };
            let Ok(name) = symbol.name_bytes() else { continue };
            let name = String::from_utf8_lossy(name).into_owned();
            let underscores = name.len() - name.trim_start_matches('_').len();
            let rank = (u8::from(!symbol.is_global()) + u8::from(symbol.is_weak()), underscores, name.len());
            list.push(Symbol { address: symbol.address(), bytes: symbol.size(), rank, name });
        }
    }

    fn sort(&mut self) {
        for list in [&mut self.functions, &mut self.variables] {
            list.sort_by(|one, other| {
                (one.address, one.bytes, one.rank, &one.name).cmp(&(
                    other.address,
                    other.bytes,
                    other.rank,
                    &other.name,
                ))
            });
            list.dedup_by(|later, earlier| later.address == earlier.address && later.bytes == earlier.bytes);
        }
    }

    /// The address in the file, as its symbols have it, of what is at this place of it.
    pub(super) fn address(&self, offset: u64) -> Option<u64> {
        let inside =
            |segment: &&Segment| offset.checked_sub(segment.offset).is_some_and(|at| at < segment.bytes);
        let segment = self.segments.iter().find(inside)?;
        segment.address.checked_add(offset)?.checked_sub(segment.offset)
    }

    /// Where the first page is, in the file and in the addresses of its symbols. What is mapped of it first
    /// starts there.
    pub(super) fn first(&self) -> Option<(u64, u64)> {
        const PAGE: u64 = 4096;
        let first = self.segments.iter().min_by_key(|segment| segment.address)?;
        Some((first.offset / PAGE * PAGE, first.address / PAGE * PAGE))
    }

    /// The variable that an address is part of.
    pub(super) fn variable(&self, address: u64) -> Option<Part> {
        let variable = containing(&self.variables, address)?;
        let offset = address - variable.address;
        let open = || Members::open(self.described_in.as_deref()?);
        let members = self.members.get_or_init(open).as_ref();
        Some(Part {
            variable: shown_variable(&variable.name),
            bytes: variable.bytes,
            offset,
            member: members.and_then(|members| members.place(variable.address, offset)),
            module: String::new(),
            address,
            file: Default::default(),
        })
    }

    /// The symbol of the function that an address is in: mangled.
    pub(super) fn function(&self, address: u64) -> Option<&str> {
        let after = self.functions.partition_point(|function| function.address <= address);
        // Assembly may have symbols without sizes: those reach to the next one.
        let unsized_one = || self.functions[..after].last().filter(|function| function.bytes == 0);
        containing(&self.functions, address).or_else(unsized_one).map(|function| function.name.as_str())
    }

    /// Where the function begins that an address is in, if it has no symbol but can be unwound.
    pub(super) fn start(&self, address: u64) -> Option<u64> {
        let functions = self.unwind_ranges();
        let after = functions.partition_point(|(start, _)| *start <= address);
        functions[..after].last().filter(|(_, end)| address < *end).map(|(start, _)| *start)
    }

    fn unwind_ranges(&self) -> &[(u64, u64)] {
        self.unwound.get_or_init(|| {
            let mut functions = self.file.object().map(|object| unwound(&object)).unwrap_or_default();
            functions.sort_unstable();
            functions
        })
    }

    /// The start of the function of this module that a direct call before `address` calls, if that has a
    /// symbol.
    pub(super) fn called(&self, address: u64) -> Option<u64> {
        let target = self.target(address)?;
        let first = self.functions.partition_point(|function| function.address < target);
        let mut there = self.functions[first..].iter().take_while(|function| function.address == target);
        there.any(|function| function.bytes > 0).then_some(target)
    }

    /// The function of another file that a call before `address` calls: by way of a stub, or of its address
    /// alone.
    pub(super) fn imported(&self, address: u64) -> Option<&str> {
        let by_stub = || {
            let target = self.target(address)?;
            self.stub(target).or_else(|| self.jumps_to(target))
        };
        by_stub().or_else(|| {
            if self.is_aarch64 {
                return None;
            }
            let [first, second, relative @ ..] = self.code::<6>(address.checked_sub(6)?)?;
            ([first, second] == CALL).then(|| self.import(address, relative)).flatten()
        })
    }

    /// The function of another file at which the short function at `address` ends, by a jump: a wrapper of it has left
    /// nothing else on the stack.
    fn jumps_to(&self, address: u64) -> Option<&str> {
        /// Bytes of a function that does no more than to prepare the arguments.
        const SHORT: u64 = 48;
        const JUMP: u8 = 0xe9;
        let bytes = self.end(address)?.checked_sub(address).filter(|bytes| *bytes <= SHORT)?;
        let code = self.bytes(address, bytes)?;
        let jumps =
            code.windows(5).enumerate().filter(|(_, code)| code[0] == JUMP).filter_map(|(at, code)| {
                let relative = i32::from_le_bytes(code[1..].try_into().ok()?);
                self.stub((address + at as u64 + 5).wrapping_add_signed(relative.into()))
            });
        let mut found: Vec<&str> = jumps.collect();
        found.dedup();
        if found.len() == 1 { found.pop() } else { None }
    }

    /// The function of another file that a stub at `address` jumps to.
    fn stub(&self, address: u64) -> Option<&str> {
        /// Where an indirect branch to another function is allowed.
        const MARK: [u8; 4] = [0xf3, 0x0f, 0x1e, 0xfa];
        /// In front of a jump, for bounds of memory.
        const BOUNDS: u8 = 0xf2;
        if self.is_aarch64 {
            return self.import_at(aarch64::stubs_pointer(address, |at| self.code(at))?);
        }
        let mut stub = address;
        stub += if self.code(stub)? == MARK { 4 } else { 0 };
        stub += u64::from(self.code(stub)? == [BOUNDS]);
        let [first, second, relative @ ..] = self.code::<6>(stub)?;
        ([first, second] == JUMP).then(|| self.import(stub + 6, relative)).flatten()
    }

    /// The function of another file of which the address is kept at this distance from `end`.
    fn import(&self, end: u64, relative: [u8; 4]) -> Option<&str> {
        self.import_at(end.wrapping_add_signed(i32::from_le_bytes(relative).into()))
    }

    /// The function of another file of which the address is kept there.
    fn import_at(&self, place: u64) -> Option<&str> {
        let at = self.imports.binary_search_by_key(&place, |(place, _)| *place).ok()?;
        Some(&self.imports[at].1)
    }

    /// Whether the function that begins at `start` takes locks, and whether it releases any: itself, or by way of
    /// `depth` functions of this file. None if its code is not known, or too much.
    pub(super) fn lock_calls(&self, start: u64, depth: usize) -> Option<LockCalls> {
        /// Functions that are read,
        const MOST: usize = 64;
        /// and bytes of each.
        const LONGEST: u64 = 1 << 16;
        let mut calls = LockCalls::default();
        let mut known = BTreeSet::from([start]);
        let mut left = VecDeque::from([(start, depth)]);
        while let Some((start, depth)) = left.pop_front() {
            let end = self.end(start)?;
            let code = self.bytes(start, end.checked_sub(start).filter(|bytes| *bytes <= LONGEST)?)?;
            for (import, target) in self.branches(start, code) {
                match (import, target) {
                    (Some(import), _) => calls.add(import),
                    (None, Some(target))
                        if depth > 0 && self.end(target).is_some() && known.insert(target) =>
                    {
                        left.push_back((target, depth - 1));
                    }
                    _ => {}
                }
            }
            if known.len() > MOST {
                return None;
            }
        }
        Some(calls)
    }

    /// Calls and jumps of the code at `start`: to functions of other files, and to places of this one.
    fn branches(&self, start: u64, code: &[u8]) -> Vec<(Option<&str>, Option<u64>)> {
        if self.is_aarch64 {
            let at = (start..).step_by(aarch64::LENGTH as usize);
            let instructions = code.chunks_exact(4).map(|bytes| bytes.try_into().unwrap_or_default());
            let targets =
                at.zip(instructions).filter_map(|(at, bytes)| Instruction::new(bytes).target_from(at));
            return targets.map(|target| (self.stub(target), Some(target))).collect();
        }
        let mut branches = Vec::new();
        // The last instruction may be a jump to another function, of two bytes.
        let padded = [code, &[0; 4]].concat();
        for (at, instruction) in padded.windows(6).enumerate() {
            let behind = |bytes: u64| start + at as u64 + bytes;
            let (import, target) = match instruction {
                [0xff, 0x15 | 0x25, relative @ ..] => {
                    (self.import(behind(6), relative.try_into().unwrap_or_default()), None)
                }
                [0xe8 | 0xe9, relative @ .., _] | [0x0f, 0x80..=0x8f, relative @ ..] => {
                    let bytes = if instruction[0] == 0x0f { 6 } else { 5 };
                    let relative = i32::from_le_bytes(relative.try_into().unwrap_or_default());
                    let target = behind(bytes).wrapping_add_signed(relative.into());
                    (self.stub(target), Some(target))
                }
                [0xeb, relative, ..] => {
                    let target = behind(2).wrapping_add_signed(relative.cast_signed().into());
                    (self.stub(target), Some(target))
                }
                _ => continue,
            };
            branches.push((import, target));
        }
        branches
    }

    /// Where the function begins that an address is in, by its symbol or its unwind table.
    pub(super) fn beginning(&self, address: u64) -> Option<u64> {
        containing(&self.functions, address).map(|function| function.address).or_else(|| self.start(address))
    }

    /// Where the function ends that begins at `start`; none if none does.
    fn end(&self, start: u64) -> Option<u64> {
        let first = self.functions.partition_point(|function| function.address < start);
        let there = self.functions[first..].iter().take_while(|function| function.address == start);
        let bytes = there.map(|function| function.bytes).max().filter(|bytes| *bytes > 0);
        bytes.map(|bytes| start + bytes).or_else(|| {
            let functions = self.unwind_ranges();
            let at = functions.binary_search_by_key(&start, |(start, _)| *start).ok()?;
            Some(functions[at].1)
        })
    }

    fn bytes(&self, start: u64, bytes: u64) -> Option<&[u8]> {
        let inside = |segment: &&Segment| {
            let at = start.checked_sub(segment.address);
            at.is_some_and(|at| at.saturating_add(bytes) <= segment.bytes)
        };
        let segment = self.segments.iter().find(inside)?;
        let at = usize::try_from(start - segment.address + segment.offset).ok()?;
        self.file.bytes().get(at..at.checked_add(usize::try_from(bytes).ok()?)?)
    }

    /// Whether other files can call a function of this name here.
    pub(super) fn exports(&self, name: &str) -> bool {
        self.functions.iter().any(|function| function.name == name)
    }

    /// Whether a function of this name begins at an address, for other files.
    pub(super) fn begins(&self, name: &str, start: u64) -> bool {
        let first = self.functions.partition_point(|function| function.address < start);
        let there = || self.functions[first..].iter().take_while(|function| function.address == start);
        // Of several names at one place only one is kept.
        there().any(|function| function.name == name)
            || self.exports.iter().any(|(address, other)| *address == start && other == name)
    }

    /// The address of what other files know by this name.
    pub(super) fn exported(&self, name: &str) -> Option<u64> {
        self.exports.iter().find(|(_, other)| other == name).map(|(address, _)| *address)
    }

    /// What the pointer at an address of the file's data points to when the file is loaded, in its own
    /// addresses.
    pub(super) fn pointer(&self, address: u64) -> Option<u64> {
        let object = self.file.object()?;
        let relocation =
            object.dynamic_relocations().into_iter().flatten().find(|(place, _)| *place == address);
        match relocation {
            Some((_, relocation)) if relocation.target() == object::RelocationTarget::Absolute => {
                u64::try_from(relocation.addend()).ok()
            }
            Some(_) => None,
            // Packed ones (`DT_RELR`) have what they add to in their place.
            None => self.code(address).map(u64::from_le_bytes).filter(|pointer| *pointer != 0),
        }
    }

    /// Whether some call ends at an address: a direct one, or one by a register or by memory.
    pub(super) fn is_behind_call(&self, address: u64) -> bool {
        if self.is_aarch64 {
            let before = address.checked_sub(aarch64::LENGTH).and_then(|at| self.code(at));
            return before.is_some_and(|bytes| Instruction::new(bytes).is_call());
        }
        let Some(before) = address.checked_sub(LONGEST_CALL as u64).and_then(|at| self.code(at)) else {
            return false;
        };
        ends_with_call(&before)
    }

    /// How to leave the function at an address.
    pub(super) fn rules(&self, address: u64) -> Option<Rules> {
        let object = self.file.object()?;
        let section = |name| {
            let section = object.section_by_name(name)?;
            Some((section.address(), section.data().ok()?))
        };
        let (frames, frames_data) = section(".eh_frame")?;
        let header = section(".eh_frame_hdr");
        let mut bases = BaseAddresses::default().set_eh_frame(frames);
        if let Some((header, _)) = header {
            bases = bases.set_eh_frame_hdr(header);
        }
        if let Some((text, _)) = section(".text") {
            bases = bases.set_text(text);
        }
        if let Some((got, _)) = section(".got") {
            bases = bases.set_got(got);
        }
        let mut frames = EhFrame::new(frames_data, NativeEndian);
        if self.is_aarch64 {
            // Return addresses may be signed.
            frames.set_vendor(Vendor::AArch64);
        }
        let entry = match header {
            Some((_, data)) => {
                let header = EhFrameHdr::new(data, NativeEndian).parse(&bases, 8).ok()?;
                header.table()?.fde_for_address(&frames, &bases, address, EhFrame::cie_from_offset).ok()?
            }
            // Programs that are linked statically have no index.
            None => frames.fde_for_address(&bases, address, EhFrame::cie_from_offset).ok()?,
        };
        let mut context = UnwindContext::new();
        let row = entry.unwind_info_for_address(&frames, &bases, &mut context, address).ok()?;
        let (returns, kept) = match self.is_aarch64 {
            true => (aarch64::RETURN, &aarch64::KEPT[..]),
            false => (RETURN, &KEPT[..]),
        };
        let return_at = match row.register(Register(returns)) {
            // It is still where the call has put it.
            None | Some(RegisterRule::SameValue) if self.is_aarch64 => None,
            // The first function of a thread has no caller.
            None | Some(RegisterRule::Undefined) => return None,
            _ if !self.is_aarch64 => Some(PUSHED),
            Some(RegisterRule::Offset(offset)) => Some(offset),
            Some(_) => return None,
        };
        let end = match row.cfa() {
            CfaRule::RegisterAndOffset { register, offset } => Some((register.0, *offset)),
            CfaRule::Expression(_) => None,
        };
        let saved = kept.iter().filter_map(|&number| match row.register(Register(number)) {
            Some(RegisterRule::Offset(offset)) => Some((number, offset)),
            _ => None,
        });
        Some(Rules { start: entry.initial_address(), end, return_at, saved: saved.collect() })
    }

    /// Where a direct call before `address` goes.
    pub(super) fn target(&self, address: u64) -> Option<u64> {
        if self.is_aarch64 {
            let call = address.checked_sub(aarch64::LENGTH)?;
            return Instruction::new(self.code(call)?).called_from(call);
        }
        // `call` and 32 bits, relative to its end.
        const CALL: u8 = 0xe8;
        let [CALL, relative @ ..] = self.code::<5>(address.checked_sub(5)?)? else { return None };
        Some(address.wrapping_add_signed(i32::from_le_bytes(relative).into()))
    }

    /// The bytes at an address.
    fn code<const BYTES: usize>(&self, start: u64) -> Option<[u8; BYTES]> {
        let inside = |segment: &&Segment| {
            let at = start.checked_sub(segment.address);
            at.is_some_and(|at| at.saturating_add(BYTES as u64) <= segment.bytes)
        };
        let segment = self.segments.iter().find(inside)?;
        let at = usize::try_from(start - segment.address + segment.offset).ok()?;
        self.file.bytes().get(at..at.checked_add(BYTES)?)?.try_into().ok()
    }

    /// What DWARF has at an address, the innermost function first.
    pub(super) fn inlined(&self, address: u64) -> Vec<Inlined> {
        let mut found = Vec::new();
        let Some(mut frames) = self.lines.as_ref().and_then(|lines| lines.find_frames(address).ok()) else {
            return found;
        };
        while let Ok(Some(frame)) = frames.next() {
            let name = frame.function.and_then(|function| Some(function.raw_name().ok()?.into_owned()));
            let source = frame.location.and_then(|place| Some((place.file?.to_owned(), place.line?)));
            found.push(Inlined { name, source });
        }
        found
    }
}

/// Of an indirect call, without its prefix.
const LONGEST_CALL: usize = 7;

/// Whether these bytes of code end with a call.
fn ends_with_call(code: &[u8; LONGEST_CALL]) -> bool {
    /// With four bytes of the distance.
    const DIRECT: u8 = 0xe8;
    const INDIRECT: u8 = 0xff;
    let at = |before: usize| code[LONGEST_CALL - before];
    // `FF /2`, the place of the pointer, and how far it is from there.
    let is_indirect = |length: usize| {
        let (mode, rest) = (at(length - 1), at(length.max(3) - 2));
        let (kind, register) = (mode >> 6, mode & 7);
        let has_scale = kind != 3 && register == 4;
        let distance = match kind {
            0 if register == 5 || has_scale && rest & 7 == 5 => 4,
            1 => 1,
            2 => 4,
            _ => 0,
        };
        at(length) == INDIRECT && mode & 0x38 == 0x10 && length == 2 + usize::from(has_scale) + distance
    };
    at(5) == DIRECT || (2..=LONGEST_CALL).any(is_indirect)
}

/// Start and end of each function that `.eh_frame` describes: stripped files have it.
fn unwound(object: &object::File<'_>) -> Vec<(u64, u64)> {
    let section = |name| object.section_by_name(name);
    let Some((frames, data)) =
        section(".eh_frame").and_then(|frames| Some((frames.address(), frames.data().ok()?)))
    else {
        return Vec::new();
    };
    let mut bases = BaseAddresses::default().set_eh_frame(frames);
    if let Some(text) = section(".text") {
        bases = bases.set_text(text.address());
    }
    if let Some(got) = section(".got") {
        bases = bases.set_got(got.address());
    }
    let frames = EhFrame::new(data, NativeEndian);
    let mut entries = frames.entries(&bases);
    let mut found = Vec::new();
    while let Ok(Some(entry)) = entries.next() {
        let CieOrFde::Fde(entry) = entry else { continue };
        if let Ok(function) = entry.parse(EhFrame::cie_from_offset) {
            let start = function.initial_address();
            found.push((start, start.saturating_add(function.len())));
        }
    }
    found
}

/// The innermost symbol that has this address.
fn containing(symbols: &[Symbol], address: u64) -> Option<&Symbol> {
    let after = symbols.partition_point(|symbol| symbol.address <= address);
    let mut candidates = symbols[..after].iter().rev().take(NESTED);
    candidates.find(|symbol| address - symbol.address < symbol.bytes)
}

/// The names of other files' functions, by where the loader writes their addresses.
fn imports(object: &object::File<'_>) -> Vec<(u64, String)> {
    let Some(symbols) = object.dynamic_symbol_table() else { return Vec::new() };
    let name = |relocation: &object::Relocation| match relocation.target() {
        object::RelocationTarget::Symbol(index) => {
            let symbol = symbols.symbol_by_index(index).ok()?;
            symbol.name().ok().filter(|name| !name.is_empty()).map(str::to_owned)
        }
        _ => None,
    };
    let all = object.dynamic_relocations().into_iter().flatten();
    let mut imports: Vec<(u64, String)> =
        all.filter_map(|(place, relocation)| Some((place, name(&relocation)?))).collect();
    imports.sort();
    imports
}

/// Addresses and names of what other files can use.
fn exports(object: &object::File<'_>) -> Vec<(u64, String)> {
    let name = |symbol: &object::Symbol<'_, '_>| symbol.name().ok().map(str::to_owned);
    let defined = object.dynamic_symbols().filter(ObjectSymbol::is_definition);
    defined.filter_map(|symbol| Some((symbol.address(), name(&symbol)?))).collect()
}

/// The symbols of `.gnu_debugdata`: an ELF file of its own, packed with xz.
fn mini_debug_info(object: &object::File<'_>) -> Option<Vec<u8>> {
    let packed = object.section_by_name(".gnu_debugdata")?.data().ok()?;
    let mut unpacked = Vec::new();
    let reader = lzma_rust2::XzReader::new(Cursor::new(packed), true);
    reader.take(LARGEST_MINI).read_to_end(&mut unpacked).ok()?;
    Some(unpacked)
}

/// A variable's name as the source has it.
fn shown_variable(name: &str) -> String {
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

#[cfg(test)]
mod tests {
    use super::ends_with_call;

    #[test]
    fn calls_by_their_bytes() {
        let is_call = |code: &[u8]| {
            let mut bytes = [0x90; 7];
            bytes[7 - code.len()..].copy_from_slice(code);
            ends_with_call(&bytes)
        };
        // A function's, a register's, and by memory at a register, a distance from it, a table, this place.
        let calls: [&[u8]; 9] = [
            &[0xe8, 1, 2, 3, 4],
            &[0xff, 0xd0],
            &[0x41, 0xff, 0xd7],
            &[0xff, 0x10],
            &[0xff, 0x50, 8],
            &[0xff, 0x14, 0xc8],
            &[0xff, 0x54, 0x24, 8],
            &[0xff, 0x15, 1, 2, 3, 4],
            &[0xff, 0x14, 0xc5, 1, 2, 3, 4],
        ];
        for code in calls {
            assert!(is_call(code), "{code:x?}");
        }
        // What follows a call that does not return; a jump; half a call.
        let others: [&[u8]; 5] = [
            &[0xff, 0x15, 1, 2, 3, 4, 0xcc],
            &[0xff, 0xd0, 0xcc],
            &[0xff, 0xe0],
            &[0xff, 0x15, 1, 2],
            &[0xe8, 1, 2, 3],
        ];
        for code in others {
            assert!(!is_call(code), "{code:x?}");
        }
    }
}
