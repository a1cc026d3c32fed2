//! Names of code that was made at run time, as its compiler wrote them down for `perf`.
//!
//! A perf map, `/tmp/perf-PID.map`, has a line `START SIZE NAME` for each function (Node, JVMs, .NET,
//! CPython, LuaJIT). A jitdump, `jit-PID.dump`, is a file of records, which the program maps, so that its
//! place is known. Code moves and is written over: of several functions at an address, the last one is the
//! one.

use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

/// No map is larger.
const LARGEST: u64 = 1 << 30;

/// `JiTD`, as the program's own machine writes it.
const MAGIC: u32 = 0x4A69_5444;
/// A record: code was loaded.
const LOAD: u32 = 0;
/// A record: code was moved.
const MOVE: u32 = 1;

/// How JavaScript's engine begins the names of functions; behind that is a mark of the compiler.
const JAVASCRIPT: [&str; 5] = ["JS:", "LazyCompile:", "Function:", "Script:", "Eval:"];
/// How the names of its sources begin, behind a blank.
const SOURCES: [&str; 5] = [" /", " node:", " file:", " internal/", " evalmachine."];

/// The functions of one process.
#[derive(Debug, Default)]
pub(super) struct Jit {
    /// By start, with their order in the files.
    functions: Vec<(usize, Function)>,
}

#[derive(Clone, Debug)]
struct Function {
    start: u64,
    end: u64,
    name: String,
}

impl Jit {
    /// What a process has written: `dumps` are the jitdumps that it has mapped.
    pub(super) fn of(perf_map: &Path, dumps: &[PathBuf]) -> Self {
        let read = |path: &Path| {
            let mut bytes = Vec::new();
            fs::File::open(path).ok()?.take(LARGEST).read_to_end(&mut bytes).ok()?;
            Some(bytes)
        };
        let mut functions = read(perf_map).map_or_else(Vec::new, |text| from_map(&text));
        functions.extend(dumps.iter().filter_map(|path| read(path)).flat_map(|bytes| from_dump(&bytes)));
        let mut functions: Vec<(usize, Function)> = functions.into_iter().enumerate().collect();
        functions.sort_by_key(|(order, function)| (function.start, *order));
        Self { functions }
    }

    /// The function at an address.
    pub(super) fn name(&self, address: u64) -> Option<&str> {
        /// How many older functions may have begun in between.
        const OLDER: usize = 64;
        let after = self.functions.partition_point(|(_, function)| function.start <= address);
        let candidates = self.functions[..after].iter().rev().take(OLDER);
        let found = candidates.filter(|(_, function)| address < function.end).max_by_key(|(order, _)| *order);
        found.map(|(_, function)| function.name.as_str())
    }
}

/// A function as people know it, with its source file and line if the name has them.
///
/// JavaScript's engine writes `JS:^add /srv/a.js:12:5`, a JVM the type of the result before the method's
/// name.
pub(super) fn shown(name: &str) -> (String, Option<(String, u32)>) {
    if let Some(rest) = JAVASCRIPT.iter().find_map(|tag| name.strip_prefix(tag)) {
        let rest = rest.trim_start_matches(['*', '~', '^', '+', '\'']);
        // Names may have blanks (`get value`), and so may paths.
        let at = SOURCES.iter().filter_map(|begin| rest.find(begin)).min().or_else(|| rest.rfind(' '));
        let (function, place) = at.map_or((rest, ""), |at| (&rest[..at], &rest[at + 1..]));
        return match source(place) {
            // One that has no name is known by its place.
            Some((file, line)) if function.is_empty() => {
                let last = file.rsplit('/').next().unwrap_or_default();
                let column = place.rsplit(':').next().unwrap_or_default();
                (format!("JS:anonymous {last}:{line}:{column}"), Some((file, line)))
            }
            Some(source) => (format!("JS:{function}"), Some(source)),
            None => (name.to_owned(), None),
        };
    }
    if let Some((method, parameters)) = name.split_once('(')
        && let Some((kind, method)) = method.split_once(' ')
        && parameters.ends_with(')')
        && !kind.is_empty()
        && !kind.contains(':')
        && method.contains('.')
        && !method.contains(' ')
    {
        return (format!("{method}({parameters}"), None);
    }
    (name.to_owned(), None)
}

/// `FILE:LINE` or `FILE:LINE:COLUMN`.
fn source(place: &str) -> Option<(String, u32)> {
    let (before, last) = place.rsplit_once(':')?;
    let last: u32 = last.parse().ok()?;
    let two = before.rsplit_once(':').and_then(|(file, line)| Some((file, line.parse().ok()?)));
    let (file, line) = two.unwrap_or((before, last));
    (!file.is_empty()).then(|| (file.to_owned(), line))
}

fn from_map(text: &[u8]) -> Vec<Function> {
    let text = String::from_utf8_lossy(text);
    let function = |line: &str| {
        let mut words = line.splitn(3, ' ');
        let mut number = || {
            let word = words.next()?;
            u64::from_str_radix(word.strip_prefix("0x").unwrap_or(word), 16).ok()
        };
        let (start, bytes) = (number()?, number()?);
        let name = words.next()?.trim().to_owned();
        Some(Function { start, end: start.checked_add(bytes)?, name })
    };
    text.lines().filter_map(function).collect()
}

fn from_dump(bytes: &[u8]) -> Vec<Function> {
    let u32_at = |at: usize| Some(u32::from_ne_bytes(bytes.get(at..at + 4)?.try_into().ok()?));
    let u64_at = |at: usize| Some(u64::from_ne_bytes(bytes.get(at..at + 8)?.try_into().ok()?));
    let mut functions: Vec<Function> = Vec::new();
    // Magic, version, and the size of the header.
    let Some((MAGIC, header)) = u32_at(0).zip(u32_at(8)) else { return functions };
    let mut at = header as usize;
    // A record: its kind, its size, a time; then process and thread, and two addresses.
    while let Some((kind, size)) = u32_at(at).zip(u32_at(at + 4)).filter(|(_, size)| *size >= 16) {
        let record = || match kind {
            LOAD => {
                let (start, length) = (u64_at(at + 32)?, u64_at(at + 40)?);
                let name = bytes.get(at + 56..at + size as usize)?.split(|byte| *byte == 0).next()?;
                let name = String::from_utf8_lossy(name).into_owned();
                Some(Function { start, end: start.checked_add(length)?, name })
            }
            MOVE => {
                let (old, new, length) = (u64_at(at + 32)?, u64_at(at + 40)?, u64_at(at + 48)?);
                let name = functions.iter().rev().find(|function| function.start == old)?.name.clone();
                Some(Function { start: new, end: new.checked_add(length)?, name })
            }
            _ => None,
        };
        let record = record();
        functions.extend(record);
        at = at.saturating_add(size as usize);
    }
    functions
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn perf_maps() {
        let scratch = tempfile::tempdir().expect("scratch space");
        let map = scratch.path().join("perf-1.map");
        fs::write(&map, "1000 10 LazyCompile:~add a.js:1\njunk\n0x1008 8 later one\n2000 4 f")
            .expect("it is written");
        let jit = Jit::of(&map, &[]);
        assert_eq!(jit.name(0x1007), Some("LazyCompile:~add a.js:1"));
        assert_eq!(jit.name(0x100f), Some("later one"), "what was written later");
        assert_eq!((jit.name(0x1010), jit.name(0xfff), jit.name(0x2003)), (None, None, Some("f")));
        assert_eq!(Jit::of(&scratch.path().join("none"), &[]).name(0x1000), None);
    }

    #[test]
    fn names_of_languages() {
        let of = |name: &str| {
            let (function, source) = shown(name);
            (function, source.map_or_else(String::new, |(file, line)| format!("{file}:{line}")))
        };
        let texts = |function: &str, source: &str| (function.to_owned(), source.to_owned());
        assert_eq!(of("JS:^lock /srv/my files/a.js:9:16"), texts("JS:lock", "/srv/my files/a.js:9"));
        assert_eq!(of("LazyCompile:~add a.js:1"), texts("JS:add", "a.js:1"));
        let anonymous = texts("JS:anonymous timers:7:3", "node:internal/timers:7");
        assert_eq!(of("JS:* node:internal/timers:7:3"), anonymous);
        assert_eq!(of("JS:*get value /srv/n.js:1:20"), texts("JS:get value", "/srv/n.js:1"));
        assert_eq!(of("JS:~x y /srv/my n.js:2:5"), texts("JS:x y", "/srv/my n.js:2"));
        assert_eq!(
            of("void Accounts.deposit(java.io.File, int)"),
            texts("Accounts.deposit(java.io.File, int)", "")
        );
        for as_it_is in [
            "Function:*wasm-function[12]",
            "RegExp:^fo a.b(c)",
            "StubRoutines (1)",
            "Interpreter",
            "operator new(unsigned long)",
            "later one",
            "py::f:/a.py",
        ] {
            assert_eq!(of(as_it_is), texts(as_it_is, ""));
        }
    }

    #[test]
    fn jitdumps() {
        let mut dump = Vec::new();
        let header = [MAGIC, 1, 40, 62, 0, 7, 0, 0, 0, 0];
        header.iter().for_each(|word| dump.extend(word.to_ne_bytes()));
        let mut record = |kind: u32, numbers: &[u64], rest: &[u8]| {
            let size = (16 + numbers.len() * 8 + rest.len()) as u32;
            dump.extend(kind.to_ne_bytes());
            dump.extend(size.to_ne_bytes());
            dump.extend(9_u64.to_ne_bytes());
            numbers.iter().for_each(|number| dump.extend(number.to_ne_bytes()));
            dump.extend(rest);
        };
        // Process and thread in one word; the address twice, the size, a number.
        record(LOAD, &[7, 0x1000, 0x1000, 0x10, 1], b"sum\0\x90\x90");
        record(LOAD, &[7, 0x2000, 0x2000, 0x20, 2], b"fold\0");
        record(MOVE, &[7, 0x1000, 0x1000, 0x3000, 0x10, 1], b"");
        let names = |functions: Vec<Function>| {
            functions
                .into_iter()
                .map(|function| (function.start, function.end, function.name))
                .collect::<Vec<_>>()
        };
        let expected = [(0x1000, 0x1010, "sum"), (0x2000, 0x2020, "fold"), (0x3000, 0x3010, "sum")];
        let expected = expected.map(|(start, end, name)| (start, end, name.to_owned()));
        assert_eq!(names(from_dump(&dump)), expected);
        assert_eq!(names(from_dump(&dump[..dump.len() - 60])).len(), 2, "half a record is none");
        assert_eq!(names(from_dump(b"JiTD")), []);
    }
}
