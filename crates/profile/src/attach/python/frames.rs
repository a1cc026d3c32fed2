//! The frames of a thread of Python: read link by link, each link checked.
//!
//! A thread that runs changes its frames while they are read. What is taken for code has CPython's type of code,
//! and a chain counts only if its first link is the same before and after; it ends where a link is none.

use std::collections::HashMap;
use std::rc::Rc;

use super::layout::{At, Layout, Values, object};
use super::lines;
use crate::attach::target::Target;
use crate::model::Frame;

/// More frames are not followed.
const MOST: usize = 256;
/// Strings are read to this length, in characters.
const LONGEST: usize = 4096;
/// Tables that are longer are none.
const LARGEST: usize = 1 << 20;
/// Values on the stack of a frame; more are none.
const VALUES: usize = 1024;

/// A frame of Python.
#[derive(Clone, Debug)]
pub(super) struct PythonFrame {
    pub(super) code: Rc<Code>,
    /// The line that it is at, or else at which its function begins.
    line: u32,
    /// Values that are on its stack for sure: the address of the first, and how many there are.
    pub(super) values: (u64, usize),
}

/// The code of a function.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Code {
    /// Its name: `Store.load`; before 3.11 `load`.
    pub(super) function: String,
    /// The path of its file.
    pub(super) file: String,
    first_line: u32,
    lines: Vec<u8>,
    handlers: Vec<u8>,
    variables: u64,
    /// What it was read by: addresses of its parts. Another code at its address has others.
    parts: [u64; 4],
}

/// Codes that were read, by their addresses.
#[derive(Debug, Default)]
pub(super) struct Codes {
    /// The type of code objects.
    kind: Option<u64>,
    known: HashMap<u64, Rc<Code>>,
}

/// The numbers in a copy of memory.
pub(super) struct Copy {
    bytes: [u8; Self::MOST],
    length: usize,
}

impl Copy {
    const MOST: usize = 512;

    pub(super) fn read(target: &Target, address: u64, bytes: usize) -> Option<Self> {
        let mut copy = Self { bytes: [0; Self::MOST], length: bytes.min(Self::MOST) };
        let is_place = address != 0 && address.is_multiple_of(4);
        (is_place && target.read_to(&mut copy.bytes[..copy.length], address)).then_some(copy)
    }

    fn get<const N: usize>(&self, at: u64) -> Option<[u8; N]> {
        let at = usize::try_from(at).ok()?;
        self.bytes[..self.length].get(at..at.checked_add(N)?)?.try_into().ok()
    }

    pub(super) fn word(&self, at: u64) -> Option<u64> {
        self.get(at).map(u64::from_ne_bytes)
    }

    pub(super) fn number(&self, at: u64) -> Option<u32> {
        self.get(at).map(u32::from_ne_bytes)
    }

    fn byte(&self, at: u64) -> Option<u8> {
        self.get(at).map(|[byte]| byte)
    }
}

/// The frames of the thread whose state is at `thread`, the innermost first. None if it goes on too fast to tell.
pub(super) fn frames(
    target: &Target,
    layout: &Layout,
    codes: &mut Codes,
    thread: u64,
) -> Option<Vec<PythonFrame>> {
    /// Times that one is looked at that goes on meanwhile.
    const TRIES: usize = 3;
    for _ in 0..TRIES {
        let first = innermost(target, layout, thread)?;
        let code = || target.pointer(first.checked_add(layout.frame.code)?);
        let before = (first, code());
        let found = chain(target, layout, codes, first);
        if innermost(target, layout, thread) == Some(first) && (first, code()) == before {
            return Some(found);
        }
    }
    None
}

/// The address of the innermost frame; 0 if there is none.
fn innermost(target: &Target, layout: &Layout, thread: u64) -> Option<u64> {
    let frame = target.pointer(thread.checked_add(layout.thread.frame)?)?;
    match layout.thread.by {
        Some(offset) if frame != 0 => target.pointer(frame.checked_add(offset)?),
        _ => Some(frame),
    }
}

fn chain(target: &Target, layout: &Layout, codes: &mut Codes, first: u64) -> Vec<PythonFrame> {
    /// Of addresses with marks in them.
    const MARKS: u64 = 3;
    let mut found = Vec::new();
    let mut next = first;
    // Frames that are none of Python lie in between.
    for _ in 0..2 * MOST {
        if next == 0 || found.len() == MOST {
            break;
        }
        let Some(copy) = Copy::read(target, next, layout.frame.bytes) else { break };
        let address = next;
        let Some(previous) = copy.word(layout.frame.previous) else { break };
        next = previous;
        let owner = layout.frame.owner.and_then(|(at, foreign)| Some(copy.byte(at)? >= foreign));
        if owner == Some(true) {
            continue;
        }
        let Some(code_at) = copy.word(layout.frame.code).map(|word| word & !MARKS) else { break };
        let Some(code) = codes.at(target, layout, code_at) else { break };
        let offset = match layout.frame.at {
            // Before the first instruction it is below 0.
            At::Index(at, unit) => copy.number(at).and_then(|index| index.checked_mul(unit)),
            At::Address(at) => copy.word(at).and_then(|instruction| {
                let first = code_at.checked_add(layout.code.instructions)?;
                u32::try_from(instruction.checked_sub(first)?).ok()
            }),
        };
        let offset = offset.unwrap_or(0);
        let line = lines::line(layout.code.format, &code.lines, code.first_line, offset);
        let values = values(layout, &copy, address, &code, offset).unwrap_or_default();
        found.push(PythonFrame { line: line.unwrap_or(code.first_line), code, values });
    }
    found
}

/// Where the values are that the innermost open block or handler of a frame leaves on the stack.
fn values(layout: &Layout, frame: &Copy, address: u64, code: &Code, offset: u32) -> Option<(u64, usize)> {
    let (first, number) = match layout.frame.values {
        Values::Handlers(at) => {
            let variables = code.variables.checked_mul(8)?;
            let first = address.checked_add(at)?.checked_add(variables)?;
            (first, lines::open_values(&code.handlers, offset)?)
        }
        Values::Blocks { stack, number, blocks } => {
            const BLOCK: u64 = 12;
            const HEIGHT: u64 = 8;
            const BLOCKS: u32 = 20;
            let last = frame.number(number)?.checked_sub(1).filter(|last| *last < BLOCKS)?;
            let height = frame.number(blocks + BLOCK * u64::from(last) + HEIGHT)?;
            (frame.word(stack)?, usize::try_from(height).ok()?)
        }
    };
    (number <= VALUES).then_some((first, number))
}

impl Codes {
    /// The code at an address, if it is code.
    fn at(&mut self, target: &Target, layout: &Layout, address: u64) -> Option<Rc<Code>> {
        let of = &layout.code;
        let copy = Copy::read(target, address, of.bytes)?;
        let kind = copy.word(object::TYPE)?;
        let parts = [of.file, of.full_name, of.lines, of.first_line].map(|at| copy.word(at));
        let [Some(file), Some(name), Some(lines), Some(_)] = parts else { return None };
        let parts = parts.map(Option::unwrap_or_default);
        if let Some(known) = self.known.get(&address)
            && known.parts == parts
            && self.kind == Some(kind)
        {
            return Some(Rc::clone(known));
        }
        if self.kind.is_none() && type_name(target, kind).as_deref() == Some("code") {
            self.kind = Some(kind);
        }
        if self.kind != Some(kind) {
            return None;
        }
        let has_handlers = of.handlers != 0;
        let handlers = if has_handlers { bytes(target, copy.word(of.handlers)?)? } else { Vec::new() };
        let variables = if has_handlers { copy.number(of.variables)? } else { 0 };
        let code = Rc::new(Code {
            function: shown(&string(target, layout, name)?),
            file: string(target, layout, file)?,
            first_line: copy.number(of.first_line)?,
            lines: bytes(target, lines)?,
            handlers,
            variables: variables.into(),
            parts,
        });
        self.known.insert(address, Rc::clone(&code));
        Some(code)
    }
}

/// A name without the signs around what has none of its own: `load.lambda` of `load.<locals>.<lambda>`.
fn shown(name: &str) -> String {
    name.replace("<locals>.", "").replace(['<', '>'], "")
}

/// What a type is called.
pub(super) fn type_name(target: &Target, kind: u64) -> Option<String> {
    c_string(target, target.pointer(kind.checked_add(object::TYPE_NAME)?)?)
}

/// The type of an object.
pub(super) fn type_of(target: &Target, object: u64) -> Option<u64> {
    target.pointer(object.checked_add(object::TYPE)?)
}

/// A short text that ends with a 0.
pub(super) fn c_string(target: &Target, address: u64) -> Option<String> {
    const BYTES: usize = 32;
    let bytes = target.read::<BYTES>(address)?;
    let end = bytes.iter().position(|byte| *byte == 0)?;
    std::str::from_utf8(&bytes[..end]).ok().map(str::to_owned)
}

/// An array of bytes.
fn bytes(target: &Target, address: u64) -> Option<Vec<u8>> {
    let length = target.pointer(address.checked_add(object::LENGTH as u64)?)?;
    let length = usize::try_from(length).ok().filter(|length| *length <= LARGEST)?;
    let mut bytes = vec![0; length];
    target.read_to(&mut bytes, address.checked_add(object::BYTES)?).then_some(bytes)
}

/// A string: its characters have one, two or four bytes.
fn string(target: &Target, layout: &Layout, address: u64) -> Option<String> {
    const KIND: u32 = 2;
    const COMPACT: u32 = 1 << 5;
    const ASCII: u32 = 1 << 6;
    let length = target.pointer(address.checked_add(object::LENGTH as u64)?)?;
    let length = usize::try_from(length).ok()?.min(LONGEST);
    let state = target.word(address.checked_add(object::STRING_STATE as u64)?)?;
    if state & COMPACT == 0 {
        return None;
    }
    let start = if state & ASCII != 0 { layout.text.ascii } else { layout.text.other };
    let width = (state >> KIND & 7) as usize;
    let mut bytes = vec![0; length * width];
    if !matches!(width, 1 | 2 | 4) || !target.read_to(&mut bytes, address.checked_add(start)?) {
        return None;
    }
    let character = |bytes: &[u8]| {
        let number = bytes.iter().rev().fold(0_u32, |number, byte| number << 8 | u32::from(*byte));
        char::from_u32(number).unwrap_or(char::REPLACEMENT_CHARACTER)
    };
    Some(bytes.chunks_exact(width).map(character).collect())
}

impl PythonFrame {
    /// As all frames are.
    pub(super) fn frame(&self) -> Frame {
        let file = self.code.file.rsplit('/').next().unwrap_or_default();
        Frame {
            function: Some(self.code.function.clone()),
            source: Some((self.code.file.clone(), self.line)),
            module: file.to_owned(),
            offset: self.line.into(),
            start: None,
            is_inlined: false,
            is_half: false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::shown;

    #[test]
    fn names_without_signs() {
        assert_eq!(shown("Store.load.<locals>.<lambda>"), "Store.load.lambda");
        assert_eq!(shown("<module>"), "module");
    }
}
