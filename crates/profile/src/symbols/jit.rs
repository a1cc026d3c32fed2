//! Names of code that was made at run time, as its compiler wrote them down for `perf`.
//!
//! A perf map, `/tmp/perf-PID.map`, has a line `START SIZE NAME` for each function (Node, JVMs, .NET,
//! CPython, LuaJIT). A jitdump, `jit-PID.dump`, is a file of records, which the program maps, so that its
//! place is known. Code moves and is written over: of several functions at an address, the last one is the
//! one.
//!
//! Of a process that runs, both are looked for where it has them: in its own mount namespace, by its number in its
//! own PID namespace. All users may make files in `/tmp`: a map counts if it is the process' user's, or root's.

use std::collections::BTreeSet;
use std::fs::{self, File, OpenOptions};
use std::io::Read;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
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

/// Where a process writes the names down.
#[derive(Clone, Debug)]
pub(super) struct Places {
    /// Of its files.
    root: PathBuf,
    perf_map: PathBuf,
    /// Whose the map has to be; none if that is not known any more.
    users: Option<BTreeSet<u32>>,
}

impl Places {
    /// Of a process that may have ended, and had this machine's files.
    pub(super) fn recorded(pid: u32) -> Self {
        let perf_map = PathBuf::from(format!("/tmp/perf-{pid}.map"));
        Self { root: PathBuf::from("/"), perf_map, users: None }
    }

    /// Of a process that runs.
    pub(super) fn running(pid: u32) -> Self {
        let process = Path::new("/proc").join(pid.to_string());
        let status = fs::read_to_string(process.join("status")).unwrap_or_default();
        let numbers = |name: &str| -> Vec<u32> {
            let line = status.lines().find_map(|line| line.strip_prefix(name));
            line.unwrap_or("").split_ascii_whitespace().filter_map(|word| word.parse().ok()).collect()
        };
        let own = numbers("NSpid:").last().copied().unwrap_or(pid);
        let root = process.join("root");
        let perf_map = root.join(format!("tmp/perf-{own}.map"));
        let users = numbers("Uid:").into_iter().chain([0]).collect();
        Self { root, perf_map, users: Some(users) }
    }
}

/// The functions of one process.
#[derive(Debug, Default)]
pub(super) struct Jit {
    /// By start, with their order in the files.
    functions: Vec<(usize, Function)>,
    /// How long the files were of which they are.
    read: Vec<(PathBuf, u64)>,
}

#[derive(Clone, Debug)]
struct Function {
    start: u64,
    end: u64,
    name: String,
}

impl Jit {
    /// What a process has written: `dumps` are the jitdumps that it has mapped.
    pub(super) fn of(places: &Places, dumps: &BTreeSet<PathBuf>) -> Self {
        let mut jit = Self::default();
        let mut functions = Vec::new();
        let mut read = |path: &Path, users: Option<&BTreeSet<u32>>, parse: fn(&[u8]) -> Vec<Function>| {
            let mut bytes = Vec::new();
            let count = open(path, users).map(|file| file.take(LARGEST).read_to_end(&mut bytes).unwrap_or(0));
            jit.read.push((path.to_owned(), count.unwrap_or(0) as u64));
            functions.extend(parse(&bytes));
        };
        read(&places.perf_map, places.users.as_ref(), from_map);
        for dump in dumps {
            read(&places.root.join(dump.strip_prefix("/").unwrap_or(dump)), None, from_dump);
        }
        jit.functions = functions.into_iter().enumerate().collect();
        jit.functions.sort_by_key(|(order, function)| (function.start, *order));
        jit
    }

    /// Whether there is more by now.
    pub(super) fn has_grown(&self) -> bool {
        let length = |path: &PathBuf| fs::metadata(path).map_or(0, |file| file.len());
        self.read.iter().any(|(path, read)| length(path) != *read)
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

/// Opens a file of names: not a pipe, which would wait for its writer, and none of another user, if there are
/// `users`.
fn open(path: &Path, users: Option<&BTreeSet<u32>>) -> Option<File> {
    let follow = if users.is_some() { libc::O_NOFOLLOW } else { 0 };
    let file = OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK | follow).open(path).ok()?;
    let metadata = file.metadata().ok()?;
    let is_theirs = users.is_none_or(|users| users.contains(&metadata.uid()));
    (metadata.is_file() && is_theirs).then_some(file)
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
    use std::io::Write;

    use super::*;

    #[test]
    fn perf_maps() {
        let scratch = tempfile::tempdir().expect("scratch space");
        let map = scratch.path().join("perf-1.map");
        fs::write(&map, "1000 10 LazyCompile:~add a.js:1\njunk\n0x1008 8 later one\n2000 4 f")
            .expect("it is written");
        let of = |perf_map: &Path, users: Option<&[u32]>| {
            let users = users.map(|users| users.iter().copied().collect());
            let places = Places { root: PathBuf::from("/"), perf_map: perf_map.to_owned(), users };
            Jit::of(&places, &BTreeSet::new())
        };
        let jit = of(&map, None);
        assert_eq!(jit.name(0x1007), Some("LazyCompile:~add a.js:1"));
        assert_eq!(jit.name(0x100f), Some("later one"), "what was written later");
        assert_eq!((jit.name(0x1010), jit.name(0xfff), jit.name(0x2003)), (None, None, Some("f")));
        assert_eq!(of(&scratch.path().join("none"), None).name(0x1000), None);
        // Only its user's, and more of it.
        let own = rustix::process::geteuid().as_raw();
        assert_eq!(of(&map, Some(&[own, 0])).name(0x1007), jit.name(0x1007));
        assert_eq!(of(&map, Some(&[own + 1])).name(0x1007), None);
        assert!(!jit.has_grown());
        fs::OpenOptions::new().append(true).open(&map).expect("it is there").write_all(b"\n").expect("more");
        assert!(jit.has_grown());
        // A pipe of which nobody writes, and a link.
        let [pipe, link] = ["pipe", "link"].map(|name| scratch.path().join(name));
        rustix::fs::mkfifoat(rustix::fs::CWD, &pipe, rustix::fs::Mode::RUSR).expect("a pipe");
        std::os::unix::fs::symlink(&map, &link).expect("a link");
        assert_eq!((of(&pipe, None).name(0x1000), of(&link, Some(&[own])).name(0x1000)), (None, None));
    }

    /// By its own number, below its own root.
    #[test]
    fn places_of_a_process_that_runs() {
        let pid = std::process::id();
        let places = Places::running(pid);
        let status = fs::read_to_string("/proc/self/status").expect("it is there");
        let line = status.lines().find(|line| line.starts_with("NSpid:")).expect("it has numbers");
        let own = line.split_ascii_whitespace().last().expect("one");
        assert_eq!(places.perf_map, PathBuf::from(format!("/proc/{pid}/root/tmp/perf-{own}.map")));
        assert!(places.users.is_some_and(|users| users.contains(&rustix::process::geteuid().as_raw())));
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
