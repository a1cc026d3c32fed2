//! Places from stacks: functions, source lines, inlined frames.
//!
//! | module        | what it has                                                       |
//! |---------------|-------------------------------------------------------------------|
//! | `module`      | a program or library: segments, build id, symbols, DWARF           |
//! | `debug_files` | where separate debug files are                                     |
//! | `debuginfod`  | debug files from servers                                           |
//! | `frame_pointer` | the caller of code without unwind tables                          |
//! | `jit`         | code made at run time: perf maps, jitdumps                         |
//! | `kept`        | files of a running program, opened before they vanish               |
//! | `cut`         | which frames are the lock's own and not the program's              |
//! | `members`     | members of variables, by DWARF                                     |
//! | [`elf_file`]  | which build a file is, and where it has a variable                 |
//! | `demangle`    | names as the source has them                                       |
//! | `unwind`      | the call chain of a blocked thread, from a copy of its stack        |
//!
//! A file has names only if it is the build that was recorded: the recorder notes build ids from the
//! program's memory. Code without a name is module + offset, and [`Symbols::modules`] has the reason.

mod aarch64;
mod cut;
mod debug_files;
mod debuginfod;
mod demangle;
pub mod elf_file;
mod frame_pointer;
mod jit;
mod kept;
mod members;
mod module;
mod unwind;

use std::collections::{BTreeSet, HashMap};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

pub(crate) use self::debug_files::hexadecimal;
pub use self::kept::Kept;
pub(crate) use self::unwind::Blocked;

use self::debug_files::Sought;
use self::debuginfod::Debuginfod;
use self::jit::{Jit, Places};
use self::module::{Inlined, Module as File};
use self::unwind::Code;
use crate::glibc_locks::{self, Place};
use crate::maps::{Mapping, Maps};
use crate::model::{CallSite, Frame, LockPlace, Module, Role, Unnamed};
use crate::waits::{WaitTarget, Waits};

/// A place in a variable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Part {
    /// Its name.
    pub(crate) variable: String,
    /// How long it is.
    pub(crate) bytes: u64,
    /// How far from its start.
    pub(crate) offset: u64,
    /// The member there, `.io` or `[3].lock`, empty if it is the variable itself; none if its type is not
    /// known.
    pub(crate) member: Option<String>,
    /// File name of the program or library.
    pub(crate) module: String,
    /// The address in that file.
    pub(crate) address: u64,
    /// Path and build id of that file.
    pub(crate) file: (String, Option<String>),
}

impl Part {
    /// Where the lock there is, for those that know the file.
    pub(crate) fn place(&self) -> LockPlace {
        let (path, build_id) = self.file.clone();
        LockPlace { path, build_id, address: self.address }
    }

    /// `cache_lock`, `audit.io`; without types `audit+0x40`.
    pub(crate) fn label(&self) -> String {
        match (self.offset, &self.member) {
            (_, Some(member)) => format!("{}{member}", self.variable),
            (0, None) => self.variable.clone(),
            (offset, None) => format!("{}+{offset:#x}", self.variable),
        }
    }
}

/// A file as it was mapped: another build of the same name is another one.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Identity {
    path: PathBuf,
    inode: u64,
    build_id: Option<String>,
}

impl Identity {
    fn of(mapping: &Mapping) -> Self {
        Self { path: mapping.path.clone(), inode: mapping.inode, build_id: mapping.build_id.clone() }
    }
}

/// The process that is read.
#[derive(Debug)]
struct Process {
    /// When its recording began, ns since 1970.
    started: u64,
    /// Where it writes the names of code that it makes at run time.
    places: Places,
    /// The functions that it made at run time; read when the first of them is asked for.
    jit: Option<Jit>,
    /// It has code that was made at run time, and no names for it.
    is_jit_unnamed: bool,
    /// The files that its frames lie in.
    used: BTreeSet<(PathBuf, Option<String>)>,
}

impl Process {
    fn new(places: Places, started: u64) -> Self {
        Self { started, places, jit: None, is_jit_unnamed: false, used: BTreeSet::new() }
    }
}

/// Looks symbols up. Files are opened once and kept.
pub struct Symbols {
    /// No names: modules and offsets only.
    is_off: bool,
    waits: Waits,
    sought: Sought,
    kept: Kept,
    files: HashMap<Identity, Result<File, Unnamed>>,
    frames: HashMap<(Identity, u64), Vec<Frame>>,
    process: Process,
    code: Code,
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

    /// With this table of what stacks wait for.
    #[must_use]
    pub fn with_waits(self, waits: Waits) -> Self {
        Self { waits, ..self }
    }

    /// The entries of the user's table of which no stack had a function.
    #[must_use]
    pub fn unmet_waits(&self) -> Vec<&str> {
        self.waits.unmet()
    }

    /// Whether that is a user's.
    pub(crate) fn has_users_waits(&self) -> bool {
        self.waits.is_users()
    }

    /// With debug files in these directories.
    #[must_use]
    pub fn with_debug_directories(directories: &[PathBuf]) -> Self {
        Self {
            is_off: false,
            waits: Waits::default(),
            sought: Sought { directories: directories.to_owned(), debuginfod: Debuginfod::default() },
            kept: Kept::default(),
            files: HashMap::new(),
            frames: HashMap::new(),
            // No recording: files are what they are now.
            process: Process::new(Places::recorded(0), u64::MAX),
            code: Code::default(),
            warnings: BTreeSet::new(),
        }
    }

    /// No symbols: modules and offsets only. No file is opened.
    #[must_use]
    pub fn none() -> Self {
        Self { is_off: true, ..Self::with_debug_directories(&[]) }
    }

    /// The same, which also asks the debuginfod servers of the environment (`DEBUGINFOD_URLS`).
    #[must_use]
    pub fn with_debuginfod(mut self) -> Self {
        self.sought.debuginfod = Debuginfod::of_environment();
        self
    }

    /// The same, with files that were opened while the program ran.
    #[must_use]
    pub fn with_kept(mut self, kept: Kept) -> Self {
        self.kept = kept;
        self
    }

    /// From here on, it is about the recording of process `pid`, which began then, ns since 1970.
    pub(crate) fn begin(&mut self, pid: u32, started: u64) {
        self.process = Process::new(Places::recorded(pid), started);
        self.code = Code::default();
    }

    /// The same of a process that runs.
    pub(crate) fn begin_running(&mut self, pid: u32, started: u64) {
        self.process = Process::new(Places::running(pid), started);
        self.code = Code::default();
    }

    /// Forgets the names of code that was made at run time, if there is more of it by now.
    pub(crate) fn renew_made_code(&mut self) {
        self.process.jit.take_if(|jit| jit.has_grown());
    }

    /// What readers of the recording should know; each once.
    pub(crate) fn take_warnings(&mut self) -> Vec<String> {
        if self.sought.debuginfod.has_failed() {
            let text = "debuginfod could not be asked (`DEBUGINFOD_URLS`): `libdebuginfod.so.1` is missing, or a server did not \
                        answer. Functions of stripped files may lack their names.";
            self.warnings.insert(text.to_owned());
        }
        std::mem::take(&mut self.warnings).into_iter().collect()
    }

    /// The call site of a stack: return addresses, the innermost first, to be looked up in snapshot `number`.
    ///
    /// The frames of the lock functions themselves are cut off. A function that ends with the call of one has
    /// jumped there, and is not on the stack: it is what its caller calls.
    #[must_use]
    pub fn call_site(&mut self, maps: &Maps, number: u32, stack: &[u64], is_cut: bool) -> CallSite {
        self.call_site_and_wait(maps, number, stack, is_cut).0
    }

    /// The same, and what a thread with this stack waits for, if the functions tell; and the method of a
    /// lock's class that it is in.
    pub(crate) fn call_site_and_wait(
        &mut self,
        maps: &Maps,
        number: u32,
        stack: &[u64],
        is_cut: bool,
    ) -> (CallSite, Option<WaitTarget>, Option<(String, Role)>) {
        let jumped = stack.first().and_then(|address| self.called(maps, number, *address));
        let frames = self.frames(maps, number, stack);
        let mut frames: Vec<Frame> = jumped.into_iter().chain(frames).collect();
        demangle::name_lambdas(&mut frames);
        let (wait, known) = self.waits.find(&frames, cut::is_wrapper);
        let method = cut::method(&frames);
        let all = frames.len();
        let mut frames = cut::own_frames(frames, known);
        self.mark_halves(maps, number, all - frames.len(), &mut frames);
        (CallSite { frames, is_cut }, wait, method)
    }

    /// Marks the functions from the innermost one on that take locks and release none, or the other way
    /// around. `inner`: how many frames were below them, of which the lock is made.
    fn mark_halves(&mut self, maps: &Maps, number: u32, inner: usize, frames: &mut [Frame]) {
        /// Wrappers of wrappers.
        const MOST: usize = 4;
        for (at, frame) in frames.iter_mut().enumerate().take(MOST) {
            let mapping = maps.snapshot(number).iter().find(|mapping| {
                mapping.is_executable && mapping.is_file() && file_name(&mapping.path) == frame.module
            });
            // A function that was inlined has no code of its own.
            let Some(mapping) = mapping.filter(|_| !frame.is_inlined) else { return };
            // What releases the lock is called as deep as what takes it; compilers may have inlined one of
            // them.
            let depth = inner + at + 1;
            let is_half = self.file(mapping).and_then(|file| {
                let start = file.beginning(frame.offset.checked_sub(1)?)?;
                Some(file.lock_calls(start, depth)?.is_half())
            });
            if is_half != Some(true) {
                return;
            }
            frame.is_half = true;
        }
    }

    /// All frames of a stack, the innermost first.
    pub(crate) fn frames(&mut self, maps: &Maps, number: u32, stack: &[u64]) -> Vec<Frame> {
        let mut groups: Vec<Vec<Frame>> =
            stack.iter().map(|address| self.lookup(maps, number, *address)).collect();
        self.name_entries(maps, number, stack, &mut groups);
        let mut frames: Vec<Frame> = groups.into_iter().flatten().collect();
        demangle::name_lambdas(&mut frames);
        frames
    }

    /// The function of glibc that the program called on this stack, if its code shows it.
    pub(crate) fn called_of_glibc(&mut self, maps: &Maps, stack: &[u64]) -> Option<String> {
        let is_glibcs = |address: &u64| {
            let mapping = maps.find(u32::MAX, address.wrapping_sub(1));
            mapping.is_some_and(|mapping| glibc_locks::is_glibc(&file_name(&mapping.path)))
        };
        let caller = stack.iter().copied().find(|address| !is_glibcs(address))?;
        self.imported(maps, u32::MAX, caller)
    }

    /// Where the word of a lock is that may be glibc's own.
    pub(crate) fn glibc_place(&mut self, maps: &Maps, address: u64) -> Place {
        /// Of the pointer to its lock in a `FILE`, by the ABI of programs that were linked statically.
        const LOCK: u64 = 0x88;
        const STREAMS: [(&str, &str); 3] =
            [("_IO_2_1_stdin_", "stdin"), ("_IO_2_1_stdout_", "stdout"), ("_IO_2_1_stderr_", "stderr")];
        let Some((path, at)) = self.in_data(maps, u32::MAX, address) else { return Place::Elsewhere };
        let name = file_name(&path);
        if glibc_locks::is_loader(&name) {
            return Place::Loader;
        }
        if !glibc_locks::is_libc(&name) {
            return Place::Elsewhere;
        }
        let mapping = maps.from(u32::MAX).flatten().find(|mapping| mapping.path == path);
        let Some(file) = mapping.and_then(|mapping| self.file(mapping)) else { return Place::Libc };
        let lock = |symbol| file.pointer(file.exported(symbol)? + LOCK);
        let stream = STREAMS.into_iter().find(|(symbol, _)| lock(symbol) == Some(at));
        stream.map_or(Place::Libc, |(_, stream)| Place::Stream(stream))
    }

    /// Where that is, in memory, which other files know by this name in the file of a mapping.
    pub(crate) fn exported(&mut self, maps: &Maps, mapping: &Mapping, name: &str) -> Option<u64> {
        let file = self.file(mapping)?;
        let (at, (offset, first)) = (file.exported(name)?, file.first()?);
        let is_first = |other: &&Mapping| {
            other.path == mapping.path && other.offset == offset && other.start <= mapping.start
        };
        let start = maps.snapshot(u32::MAX).iter().rev().find(is_first)?.start;
        start.checked_add(at.checked_sub(first)?)
    }

    /// The file that has `address` in its data, and the address there.
    fn in_data(&mut self, maps: &Maps, number: u32, address: u64) -> Option<(PathBuf, u64)> {
        maps.from(number).find_map(|snapshot| {
            let mapping = module_before(snapshot, address)?;
            let file = self.file(mapping)?;
            let (offset, first) = file.first()?;
            let mut start = snapshot.iter().rev().filter(|other| other.path == mapping.path);
            let start = start.find(|other| other.offset == offset && other.start <= mapping.start)?.start;
            Some((mapping.path.clone(), address.checked_sub(start)?.checked_add(first)?))
        })
    }

    /// The variable that `address` is part of, in the latest snapshot: `cache_lock`, `tables+0x40`.
    #[must_use]
    pub fn variable(&mut self, maps: &Maps, address: u64) -> Option<String> {
        self.part(maps, u32::MAX, address).map(|part| part.label())
    }

    /// The same in snapshot `number`, with its size.
    pub(crate) fn part(&mut self, maps: &Maps, number: u32, address: u64) -> Option<Part> {
        if self.is_off {
            return None;
        }
        maps.from(number).find_map(|snapshot| {
            let mapping = module_before(snapshot, address)?;
            let file = self.file(mapping)?;
            let (offset, first) = file.first()?;
            let mut start = snapshot.iter().rev().filter(|other| other.path == mapping.path);
            let start = start.find(|other| other.offset == offset && other.start <= mapping.start)?.start;
            let part = file.variable(address.checked_sub(start)?.checked_add(first)?)?;
            let build_id = mapping.build_id.clone().or_else(|| file.build_id.clone());
            let file = (shown_path(&mapping.path), build_id);
            Some(Part { module: file_name(&mapping.path), file, ..part })
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
        let files = &self.files;
        let of_process = |identity: &Identity| {
            self.process.used.contains(&(identity.path.clone(), identity.build_id.clone()))
        };
        let mut modules: Vec<Module> = files
            .iter()
            .filter(|(identity, _)| of_process(identity) && used.contains(&*file_name(&identity.path)))
            .map(|(identity, file)| Module {
                path: shown_path(&identity.path),
                build_id: identity.build_id.clone().or_else(|| file.as_ref().ok()?.build_id.clone()),
                unnamed: Some(file.as_ref().map_or_else(Clone::clone, |file| file.unnamed.clone())),
            })
            .collect();
        if self.process.is_jit_unnamed && used.contains(ANONYMOUS) {
            let unnamed = Some(Unnamed::Jit);
            modules.push(Module { path: ANONYMOUS.to_owned(), build_id: None, unnamed });
        }
        modules.sort_by(|one, other| (&one.path, &one.build_id).cmp(&(&other.path, &other.build_id)));
        modules.dedup();
        modules
    }

    /// Files that were asked for and cannot be read, or are other builds than those that were mapped.
    pub(crate) fn missing(&self) -> Vec<String> {
        let missing = self.files.iter().filter(|(_, file)| file.is_err());
        let missing: BTreeSet<String> = missing.map(|(identity, _)| shown_path(&identity.path)).collect();
        missing.into_iter().collect()
    }

    /// The file of a mapping, if it is the one that was mapped.
    fn file(&mut self, mapping: &Mapping) -> Option<&File> {
        if self.is_off || !mapping.is_file() {
            return None;
        }
        let identity = Identity::of(mapping);
        self.process.used.insert((identity.path.clone(), identity.build_id.clone()));
        if !self.files.contains_key(&identity) {
            let file = self.open(mapping);
            self.files.insert(identity.clone(), file);
        }
        self.files.get(&identity)?.as_ref().ok()
    }

    /// Opens the file of a mapping: as it was kept, or as it is now if that is the same build.
    fn open(&mut self, mapping: &Mapping) -> Result<File, Unnamed> {
        let path = &mapping.path;
        let kept = self.kept.path(mapping);
        let opened = match &kept {
            Some(kept) => File::open(kept, &mut self.sought),
            None => fs::metadata(path)
                .map_err(|error| Unnamed::of_error(&error))
                .and_then(|file| if self.is_it(mapping, &file) { Ok(()) } else { Err(Unnamed::Replaced) })
                .and_then(|()| File::open(path, &mut self.sought)),
        };
        let is_it = |file: &File| mapping.build_id.is_none() || file.build_id == mapping.build_id;
        let why = match opened {
            Ok(file) if is_it(&file) => return Ok(file),
            Ok(_) => Unnamed::Replaced,
            Err(why) => why,
        };
        // Its debug file may still be there.
        let debug_file = mapping.build_id.as_deref().and_then(|id| {
            self.sought.by_build_id(id).or_else(|| self.sought.debuginfod.debug_info(id, path))
        });
        if let Some(file) = debug_file.and_then(|path| File::open(&path, &mut self.sought).ok()) {
            return Ok(file);
        }
        self.warnings.insert(format!("{}: {}", shown_path(path), why.sentence()));
        Err(why)
    }

    /// Whether the file that has the name now is the one that was mapped, as far as its build id does not
    /// tell.
    fn is_it(&self, mapping: &Mapping, file: &fs::Metadata) -> bool {
        if mapping.build_id.is_some() {
            return true;
        }
        let ns = |seconds: i64, rest: i64| {
            seconds.unsigned_abs().saturating_mul(1_000_000_000) + rest.unsigned_abs()
        };
        let is_later = ns(file.mtime(), file.mtime_nsec()) > self.process.started;
        // Packages keep the build time as modification time; but replacing a file creates a new inode, with a
        // new change time.
        let is_another =
            mapping.inode != file.ino() && ns(file.ctime(), file.ctime_nsec()) > self.process.started;
        !is_later && !is_another && !mapping.is_deleted
    }

    /// The function of the same module that is called before a return address.
    fn called(&mut self, maps: &Maps, number: u32, address: u64) -> Option<Frame> {
        let mapping = maps.find(number, address.wrapping_sub(1)).filter(|mapping| mapping.is_file())?;
        let file = self.file(mapping)?;
        let at = file.address(address - 1 - mapping.start + mapping.offset)? + 1;
        let start = file.called(at)?;
        symbolize(Some(file), &mapping.path, start).pop()
    }

    /// Where code without a name was called from another file, it has the name of the function that was
    /// called there: that has jumped to it, or it is a part of that.
    fn name_entries(&mut self, maps: &Maps, number: u32, stack: &[u64], groups: &mut [Vec<Frame>]) {
        for at in 1..groups.len() {
            let (Some(code), Some(caller)) = (groups[at - 1].last(), groups[at].first()) else { continue };
            if code.function.is_some() || code.module == caller.module {
                continue;
            }
            let name = self.imported(maps, number, stack[at]);
            let mut is_there = |name: &String| {
                let mapping = maps.find(number, stack[at - 1].wrapping_sub(1))?;
                Some(self.file(mapping)?.exports(name))
            };
            let name = name.filter(|name| is_there(name) == Some(true));
            if let (Some(name), Some(code)) = (name, groups[at - 1].last_mut()) {
                code.function = Some(demangle::shown(&name));
            }
        }
    }

    /// The function of another file that is called before a return address.
    fn imported(&mut self, maps: &Maps, number: u32, address: u64) -> Option<String> {
        let mapping = maps.find(number, address.wrapping_sub(1)).filter(|mapping| mapping.is_file())?;
        let file = self.file(mapping)?;
        let at = file.address(address - 1 - mapping.start + mapping.offset)? + 1;
        file.imported(at).map(str::to_owned)
    }

    /// The frames of a return address, the innermost first.
    fn lookup(&mut self, maps: &Maps, number: u32, address: u64) -> Vec<Frame> {
        // The call is before the address to which it returns, maybe at the end of another line or function.
        let before = address.wrapping_sub(1);
        let Some(mapping) = maps.find(number, before) else {
            return vec![bare("?", address)];
        };
        if !mapping.is_file() || is_marker(&mapping.path) {
            return vec![self.outside_of_files(maps, mapping, address)];
        }
        let in_file = address - mapping.start + mapping.offset;
        // In the file's own addresses, if it can be read. A debug file has no place for its code, but the
        // same addresses.
        let offset = self.file(mapping).and_then(|file| {
            let by_segment = file.address(in_file - 1);
            by_segment.or_else(|| maps.start(number, mapping)?.address_in(file, before))
        });
        let Some(at) = offset else { return vec![bare(&file_name(&mapping.path), in_file)] };
        let key = (Identity::of(mapping), at);
        if let Some(known) = self.frames.get(&key) {
            return known.clone();
        }
        let frames = symbolize(self.files.get(&key.0).and_then(|file| file.as_ref().ok()), &mapping.path, at);
        self.frames.insert(key, frames.clone());
        frames
    }

    /// Code that was made at run time, or the kernel's.
    fn outside_of_files(&mut self, maps: &Maps, mapping: &Mapping, address: u64) -> Frame {
        if mapping.path == Path::new("[vdso]") {
            return bare("[vdso]", address - mapping.start);
        }
        let name = match mapping.path.to_string_lossy() {
            path if path.is_empty() || is_marker(&mapping.path) => ANONYMOUS.to_owned(),
            path => path.into_owned(),
        };
        if self.is_off {
            return bare(&name, address);
        }
        let Process { jit, places, .. } = &mut self.process;
        let jit = jit.get_or_insert_with(|| {
            let snapshots = maps.snapshots().flatten();
            let dumps = snapshots.map(|mapping| &mapping.path).filter(|path| is_marker(path)).cloned();
            Jit::of(places, &dumps.collect())
        });
        let found = jit.name(address.wrapping_sub(1)).map(jit::shown);
        self.process.is_jit_unnamed |= found.is_none();
        let (function, source) = found.unzip();
        // Not `shown`: `.cold` in a name is no compiler's suffix here.
        let function = function.map(|name| demangle::demangled(&name).unwrap_or(name));
        Frame { function, source: source.flatten(), ..bare(&name, address) }
    }
}

/// Code in no file.
pub(crate) const ANONYMOUS: &str = "[anonymous]";

/// A jitdump: mapped to be found, and not for its contents.
fn is_marker(path: &Path) -> bool {
    let name = file_name(path);
    name.starts_with("jit-") && name.ends_with(".dump")
}

/// The frames at an address of a file.
fn symbolize(file: Option<&File>, path: &Path, at: u64) -> Vec<Frame> {
    let module = file_name(path);
    let symbol = file.and_then(|file| file.function(at));
    let mut inlined = file.map(|file| file.inlined(at)).unwrap_or_default();
    name_closures(&mut inlined);
    let outer = inlined.pop().unwrap_or(Inlined { name: None, source: None });
    let frame = |function: Option<String>, source, is_inlined| Frame {
        start: if function.is_none() { file.and_then(|file| file.start(at)) } else { None },
        function,
        source,
        module: module.clone(),
        offset: at + 1,
        is_inlined,
        is_half: false,
    };
    let shown = |name: &str| demangle::shown(name);
    let inner = inlined.into_iter().map(|inner| frame(inner.name.as_deref().map(shown), inner.source, true));
    let mut frames: Vec<Frame> = inner.filter(|frame| frame.function.is_some()).collect();
    // Line tables alone have names without namespaces and classes; symbols have what compilers add to names
    // of C.
    let name = match (outer.name.as_deref(), symbol) {
        (Some(name), Some(symbol)) if !demangle::is_mangled(name) && demangle::is_mangled(symbol) => {
            Some(symbol)
        }
        (Some(name), _) => Some(name),
        (None, symbol) => symbol,
    };
    let name = name.filter(|name| !demangle::is_scrambled(name));
    frames.push(frame(name.map(shown), outer.source, false));
    frames
}

/// Line tables alone call an inlined closure of Rust `{closure#0}`: what it is a closure of stands in the
/// types of its callers, `spawn<shop::worker::{closure_env#0}, ()>`, or is the caller itself.
fn name_closures(frames: &mut [Inlined]) {
    for at in 0..frames.len() {
        let (inner, outer) = frames[at..].split_at_mut(1);
        let closure = &mut inner[0];
        let Some(name) = closure.name.as_deref().filter(|name| name.starts_with("{closure#")) else {
            continue;
        };
        let marker = name.replace("{closure#", "{closure_env#");
        let in_type = outer.iter().filter_map(|frame| frame.name.as_deref()).find_map(|caller| {
            let before = &caller[..caller.find(&marker)?];
            let start = before.rfind(|c: char| "<, (&*".contains(c)).map_or(0, |at| at + 1);
            Some(before[start..].to_owned())
        });
        let file = closure.source.as_ref().map(|(path, _)| path);
        let of_caller = || {
            let same =
                |frame: &&Inlined| file.is_some() && frame.source.as_ref().map(|(path, _)| path) == file;
            Some(format!("{}::", outer.iter().find(same)?.name.as_deref()?))
        };
        if let Some(parent) = in_type.or_else(of_caller) {
            closure.name = Some(format!("{parent}{name}"));
        }
    }
}

fn bare(module: &str, offset: u64) -> Frame {
    Frame { module: module.to_owned(), offset, ..Frame::default() }
}

fn file_name(path: &Path) -> String {
    shown_path(path.file_name().map_or(path, Path::new))
}

/// A path in text: what is not UTF-8 is marked.
fn shown_path(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

/// Where a module starts, and the offset in its file there.
struct Start(u64, u64);

impl Start {
    fn address_in(&self, file: &File, address: u64) -> Option<u64> {
        let (offset, first) = file.first()?;
        (offset == self.1).then_some(())?;
        address.checked_sub(self.0)?.checked_add(first)
    }
}

impl Maps {
    /// The start of the module that a mapping is part of.
    fn start(&self, number: u32, mapping: &Mapping) -> Option<Start> {
        let snapshot = self.from(number).find(|snapshot| snapshot.contains(mapping))?;
        let mut before =
            snapshot.iter().rev().filter(|other| other.path == mapping.path && other.start <= mapping.start);
        before.find(|other| other.offset == 0).map(|start| Start(start.start, start.offset))
    }
}

/// The mapping of a file that has `address`, or the one before it: the zeros that follow the file's data are
/// not the file's.
fn module_before(snapshot: &[Mapping], address: u64) -> Option<&Mapping> {
    let at = snapshot.iter().position(|mapping| (mapping.start..mapping.end).contains(&address))?;
    let (mapping, before) = (&snapshot[at], at.checked_sub(1).map(|before| &snapshot[before]));
    let is_rest = |mapping: &Mapping, before: &&Mapping| {
        before.end == mapping.start && mapping.path.as_os_str().is_empty()
    };
    let candidates = [Some(mapping), before.filter(|before| is_rest(mapping, before))];
    // Files without code are none: the recording's own, memory that processes share.
    let has_code =
        |mapping: &Mapping| snapshot.iter().any(|other| other.is_executable && other.path == mapping.path);
    candidates.into_iter().flatten().find(|mapping| mapping.is_file() && has_code(mapping))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn closures_of_line_tables_have_their_function() {
        let frame = |&(name, path): &(&str, &str)| Inlined {
            name: Some(name.to_owned()),
            source: Some((path.to_owned(), 1)),
        };
        let named = |frames: &[(&str, &str)]| {
            let mut frames: Vec<Inlined> = frames.iter().map(frame).collect();
            name_closures(&mut frames);
            frames.swap_remove(0).name.expect("it had one")
        };
        let spawned = [
            ("{closure#1}", "main.rs"),
            ("__rust_begin_short_backtrace<shop::worker::{closure_env#1}, ()>", "backtrace.rs"),
        ];
        assert_eq!(named(&spawned), "shop::worker::{closure#1}");
        assert_eq!(named(&[("{closure#0}", "main.rs"), ("main", "main.rs")]), "main::{closure#0}");
        assert_eq!(named(&[("{closure#0}", "main.rs"), ("call_once", "function.rs")]), "{closure#0}");
    }
}
