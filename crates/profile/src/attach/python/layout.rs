//! Where CPython keeps what is read of it: in tables for 3.8 to 3.12, and, from 3.13 on, as the interpreter
//! itself describes it at the start of `_PyRuntime` (`_Py_DebugOffsets`).
//!
//! The tables are what `offsetof` gives with the headers of 3.8.18, 3.9.18, 3.10.13, 3.11.2, 3.11.7 and 3.12.1
//! on x86-64, with `Py_BUILD_CORE`. Of what
//! `_Py_DebugOffsets` lacks (tables of lines and handlers, the GIL's condition variable) the same holds for
//! 3.13.0 and 3.14.8. Debug builds, and those without the GIL, are laid out otherwise.

/// Where things are, in bytes from the start of what has them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Layout {
    /// The 3.`minor` that this is of.
    pub(super) minor: u8,
    /// Of the runtime: the first interpreter.
    pub(super) interpreters: u64,
    /// Of an interpreter: the next one, and its first thread.
    pub(super) next_interpreter: u64,
    pub(super) threads: u64,
    pub(super) gil: Gil,
    pub(super) thread: Thread,
    pub(super) frame: Frame,
    pub(super) code: Code,
    pub(super) text: Text,
}

/// Where the GIL is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Gil {
    /// In the runtime.
    InRuntime(u64),
    /// Here in an interpreter is its address.
    OfInterpreter(u64),
}

/// The GIL itself, which no version has changed.
pub(super) mod gil {
    /// The thread that has it, or had it last.
    pub(in super::super) const HOLDER: usize = 8;
    /// Whether it is taken, an `int`.
    pub(in super::super) const LOCKED: usize = 16;
    /// How often another thread took it.
    pub(in super::super) const SWITCHES: usize = 24;
    /// Where threads wait for it: a condition variable, and its mutex behind it.
    pub(in super::super) const WAITS: std::ops::Range<u64> = 32..120;
}

/// Of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Thread {
    pub(super) next: u64,
    pub(super) interpreter: u64,
    /// What `pthread_self` returns there.
    pub(super) id: u64,
    /// What `gettid` returns there; before 3.11 it is not kept.
    pub(super) native: Option<u64>,
    /// The innermost frame, or what has its address.
    pub(super) frame: u64,
    /// Where in that, if it is not the frame itself.
    pub(super) by: Option<u64>,
    /// So much of it has all of that.
    pub(super) bytes: usize,
}

/// Of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Frame {
    pub(super) previous: u64,
    pub(super) code: u64,
    /// The instruction.
    pub(super) at: At,
    /// Who owns it. From that value on it is none of Python.
    pub(super) owner: Option<(u64, u8)>,
    pub(super) values: Values,
    /// So much of it has all of that.
    pub(super) bytes: usize,
}

/// The instruction of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum At {
    /// Its number in the code, in units of this number of bytes.
    Index(u64, u32),
    /// Its address.
    Address(u64),
}

/// Where a frame has what its code works on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Values {
    /// The address of their stack, the number of blocks that are open, and the blocks: of each, the height of the
    /// stack is at 8 of 12 bytes.
    Blocks { stack: u64, number: u64, blocks: u64 },
    /// They are at the end of the frame, behind the variables; what is open, the code's table of handlers has.
    Handlers(u64),
}

/// Of the code of a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Code {
    pub(super) file: u64,
    pub(super) name: u64,
    /// With its classes; the same as `name` before 3.11.
    pub(super) full_name: u64,
    pub(super) first_line: u64,
    /// The table of lines.
    pub(super) lines: u64,
    pub(super) format: Lines,
    /// Where the instructions begin, if they are in it.
    pub(super) instructions: u64,
    /// The number of variables, and the table of handlers.
    pub(super) variables: u64,
    pub(super) handlers: u64,
    /// So much of it has all of that but the instructions.
    pub(super) bytes: usize,
}

/// How lines are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Lines {
    /// `co_lnotab`, until 3.9.
    Lnotab,
    /// PEP 626, 3.10.
    Table,
    /// Locations, from 3.11 on.
    Locations,
}

/// Of strings: where their characters begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Text {
    pub(super) ascii: u64,
    pub(super) other: u64,
}

/// Of all objects, types, strings and arrays of bytes.
pub(super) mod object {
    pub(in super::super) const TYPE: u64 = 8;
    pub(in super::super) const TYPE_NAME: u64 = 24;
    pub(in super::super) const LENGTH: usize = 16;
    pub(in super::super) const STRING_STATE: usize = 32;
    pub(in super::super) const BYTES: u64 = 32;
}

/// Why frames of an interpreter are not read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Unknown {
    /// Its version: `3.7`.
    Version(String),
    /// It runs without the GIL.
    FreeThreaded(String),
    /// Its version is not to be found.
    NoVersion,
    /// It is not laid out as its version should be.
    Layout(String),
}

impl Unknown {
    /// Why Python's frames are missing, a sentence.
    pub(super) fn sentence(&self) -> String {
        let native = "so that frames are the interpreter's own, not Python's";
        match self {
            Self::Version(version) => {
                format!("It is CPython {version}, which this does not know (3.8 to 3.14 it does), {native}.")
            }
            Self::FreeThreaded(version) => {
                format!("It is CPython {version} built without the GIL, which this does not know, {native}.")
            }
            Self::NoVersion => {
                format!("It has a Python interpreter whose version cannot be found, {native}.")
            }
            Self::Layout(version) => format!(
                "It has CPython {version}, but not laid out as releases of that are (a debug build?), {native}."
            ),
        }
    }
}

impl Layout {
    /// That of 3.`minor`, if there is a table for it.
    pub(super) fn of(minor: u8) -> Option<Self> {
        const OLD_TEXT: Text = Text { ascii: 48, other: 72 };
        const NEW_TEXT: Text = Text { ascii: 40, other: 56 };
        let old_thread =
            Thread { next: 8, interpreter: 16, id: 176, native: None, frame: 24, by: None, bytes: 184 };
        let old_code = |lines| Code {
            file: 104,
            name: 112,
            full_name: 112,
            first_line: 40,
            lines: 120,
            format: lines,
            instructions: 0,
            variables: 0,
            handlers: 0,
            bytes: 128,
        };
        let old_frame = |at: u64, unit, number, blocks| Frame {
            previous: 24,
            code: 32,
            at: At::Index(at, unit),
            owner: None,
            values: Values::Blocks { stack: 64, number, blocks },
            bytes: 368,
        };
        let old = |minor, gil, frame, lines| Self {
            minor,
            interpreters: 32,
            next_interpreter: 0,
            threads: 8,
            gil: Gil::InRuntime(gil),
            thread: old_thread,
            frame,
            code: old_code(lines),
            text: OLD_TEXT,
        };
        Some(match minor {
            8 => old(8, 1152, old_frame(104, 1, 112, 120), Lines::Lnotab),
            9 => old(9, 352, old_frame(104, 1, 112, 120), Lines::Lnotab),
            10 => old(10, 352, old_frame(96, 2, 104, 112), Lines::Table),
            11 => Self {
                minor,
                interpreters: 40,
                next_interpreter: 0,
                threads: 16,
                gil: Gil::InRuntime(360),
                thread: Thread {
                    next: 8,
                    interpreter: 16,
                    id: 152,
                    native: Some(160),
                    frame: 56,
                    by: Some(8),
                    bytes: 168,
                },
                frame: Frame {
                    previous: 48,
                    code: 32,
                    at: At::Address(56),
                    owner: None,
                    values: Values::Handlers(72),
                    bytes: 72,
                },
                code: Code {
                    file: 112,
                    name: 120,
                    full_name: 128,
                    first_line: 72,
                    lines: 136,
                    format: Lines::Locations,
                    instructions: 184,
                    variables: 76,
                    handlers: 40,
                    bytes: 144,
                },
                text: OLD_TEXT,
            },
            12 => Self {
                minor,
                interpreters: 40,
                next_interpreter: 0,
                threads: 72,
                gil: Gil::OfInterpreter(384),
                thread: Thread {
                    next: 8,
                    interpreter: 16,
                    id: 136,
                    native: Some(144),
                    frame: 56,
                    by: Some(0),
                    bytes: 152,
                },
                frame: Frame {
                    previous: 8,
                    code: 0,
                    at: At::Address(56),
                    owner: Some((70, 3)),
                    values: Values::Handlers(72),
                    bytes: 72,
                },
                code: Code { instructions: 192, ..NEW_CODE },
                text: NEW_TEXT,
            },
            _ => return None,
        })
    }

    /// As the runtime that begins with these bytes describes itself; nothing if it does not.
    pub(super) fn described(bytes: &[u8; DESCRIPTION]) -> Option<Result<Self, Unknown>> {
        if !bytes.starts_with(b"xdebugpy") {
            return None;
        }
        let word = |index: usize| {
            let word = bytes.get(8 * index..8 * index + 8).unwrap_or(&[u8::MAX; 8]);
            u64::from_ne_bytes(word.try_into().unwrap_or_default())
        };
        let (major, minor) = (word(1) >> 24, (word(1) >> 16) & 0xff);
        let version = format!("{major}.{minor}");
        let (minor, index) = match (major, minor) {
            (3, 13) => (13, DESCRIPTION_13),
            (3, 14) => (14, DESCRIPTION_14),
            _ => return Some(Err(Unknown::Version(version))),
        };
        if word(2) != 0 {
            return Some(Err(Unknown::FreeThreaded(version)));
        }
        let Index { gil, thread, frame, code, object, kind, bytes, text } = index;
        let described = Self {
            minor,
            interpreters: word(5),
            next_interpreter: word(8),
            threads: word(9),
            gil: Gil::OfInterpreter(word(gil)),
            thread: Thread {
                next: word(thread + 2),
                interpreter: word(thread + 3),
                frame: word(thread + 4),
                id: word(thread + 5),
                native: Some(word(thread + 6)),
                by: None,
                bytes: 256,
            },
            frame: Frame {
                previous: word(frame + 1),
                code: word(frame + 2),
                at: At::Address(word(frame + 3)),
                // 3.13: on C's stack. 3.14: the interpreter's, or on C's stack.
                owner: Some((word(frame + 5), 3)),
                values: Values::Handlers(word(frame + 4)),
                bytes: 96,
            },
            code: Code {
                file: word(code + 1),
                name: word(code + 2),
                full_name: word(code + 3),
                lines: word(code + 4),
                first_line: word(code + 5),
                instructions: word(code + 9),
                ..NEW_CODE
            },
            text: Text { ascii: word(text + 3), other: word(text + 3).saturating_add(16) },
        };
        let is_as = |index: usize, value: u64| word(index) == value;
        let is_usual = is_as(object, object::TYPE)
            && is_as(kind, object::TYPE_NAME)
            && is_as(bytes + 1, object::LENGTH as u64)
            && is_as(bytes + 2, object::BYTES)
            && is_as(text + 1, object::STRING_STATE as u64)
            && is_as(text + 2, object::LENGTH as u64)
            // Of the GIL that is part of an interpreter.
            && word(gil + 3).checked_sub(word(gil + 1)) == Some(gil::LOCKED as u64)
            && word(gil + 4).checked_sub(word(gil + 1)) == Some(gil::HOLDER as u64);
        // What is read of them at once, has it.
        let is_within = |from: usize, to: usize, bytes: usize| {
            (from..=to).all(|index| word(index).checked_add(8).is_some_and(|end| end <= bytes as u64))
        };
        let is_near = [5, 8, 9, gil].iter().all(|index| word(*index) < FAR)
            && is_within(thread + 2, thread + 6, described.thread.bytes)
            && is_within(frame + 1, frame + 5, described.frame.bytes)
            && is_within(code + 1, code + 5, described.code.bytes)
            && is_within(code + 9, code + 9, 1024)
            && is_within(text + 3, text + 3, 128);
        Some(if is_usual && is_near { Ok(described) } else { Err(Unknown::Layout(version)) })
    }
}

/// Which word of `_Py_DebugOffsets` has what.
struct Index {
    /// The address of an interpreter's GIL; behind it, where the GIL is that is part of one, whether there is one,
    /// whether it is locked, and the holder.
    gil: usize,
    /// Where the parts begin that describe threads, frames and code: each with its size.
    thread: usize,
    frame: usize,
    code: usize,
    /// An object's type, and the name of a type.
    object: usize,
    kind: usize,
    /// Where the parts of arrays of bytes, and of strings begin.
    bytes: usize,
    text: usize,
}

const DESCRIPTION_13: Index =
    Index { gil: 14, thread: 19, frame: 28, code: 34, object: 45, kind: 47, bytes: 64, text: 67 };
const DESCRIPTION_14: Index =
    Index { gil: 15, thread: 22, frame: 31, code: 39, object: 51, kind: 53, bytes: 74, text: 77 };

/// What is read of the runtime's start.
pub(super) const DESCRIPTION: usize = 800;
/// No structure is as large.
const FAR: u64 = 1 << 24;

/// From 3.12 on.
const NEW_CODE: Code = Code {
    file: 112,
    name: 120,
    full_name: 128,
    first_line: 68,
    lines: 136,
    format: Lines::Locations,
    instructions: 0,
    variables: 72,
    handlers: 40,
    bytes: 144,
};
