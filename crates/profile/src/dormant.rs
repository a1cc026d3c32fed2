//! A dormant process: one that has the recorder in it and records when it is asked to.
//!
//! The request goes through a page that the process has mapped ([`Control`]); its maps say where that file is.
//! Here it is read and written by calls, and not mapped: so whatever another process does to the file is an
//! error, and no signal. The file of the recording is opened before, and read after it: the process may end
//! meanwhile, and remove its files. A forked child has the page of its parent, and its recording in memory:
//! that is opened through its descriptor, once there is one.

mod left_over;

use std::fs::{self, File};
use std::io::{self, ErrorKind};
use std::mem::offset_of;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{CWD, FlockOperation, Mode, OFlags, flock, openat};
use rustix::process::{Pid, PidfdFlags, geteuid, pidfd_open};
use spinpark_recorder::format::{
    CLOSED, CONTROL_BYTES, CONTROL_FILE, CONTROL_MAGIC, CONTROL_VERSION, Control, HEADER_BYTES, Header,
    MEMORY_FILE, MOST_PAGES, NO_BARRIER, PAGE, REQUESTS, Request,
};
use thiserror::Error;

pub use self::left_over::remove_left_over;
use crate::attach::{Refused, as_root, hidden, of_program};
use crate::live_process;
use crate::read::{EXTENSION, note_end};

/// How long after the end was wished the process may take to fulfil that, before its recording is read as it
/// is then.
const PATIENCE: Duration = Duration::from_secs(1);
/// What records such a process.
const COMMAND: &str = "spinpark record";
/// Between two looks.
const STEP: Duration = Duration::from_millis(2);

/// Why a process cannot be recorded.
#[derive(Debug, Error)]
pub enum DormantError {
    /// There is none.
    #[error("there is no process {0}\n`ps -e` lists those that run")]
    Missing(u32),
    /// It is none of a program, or may not be read.
    #[error(transparent)]
    Refused(#[from] Refused),
    /// It is not for this user to say.
    #[error(
        "process {pid} is another user's (uid {owner}): only that user and root may record it\nTry: {}",
        as_root(COMMAND, *pid)
    )]
    Forbidden {
        /// The process.
        pid: u32,
        /// Whose it is.
        owner: u32,
    },
    /// It has no recorder.
    #[error(
        "process {pid} is not dormant: it was started without the recorder\nAs it is, it can be sampled: spinpark profile --pid {pid}\n\
         {advice}"
    )]
    NotLoaded {
        /// The process.
        pid: u32,
        /// How it could be recorded.
        advice: &'static str,
    },
    /// It has the recorder, which records from the start on.
    #[error("process {0} is not dormant: it is recorded from its start on\nWatch it: spinpark top {0}")]
    Recorded(u32),
    /// It has the recorder, which could not make its files, or was not asked to.
    #[error(
        "process {0} has the recorder in it, but is not dormant: without SPINPARK_PROFILE_DORMANT it does nothing, and if it could not \
         make its files there, it said so on standard error at its start\nAs it is, it can be sampled: spinpark profile --pid {0}"
    )]
    NotDormant(u32),
    /// Its files cannot be opened.
    #[error("process {pid} is dormant, but its file {path} cannot be opened: {error}\n{advice}")]
    Unreachable {
        /// The process.
        pid: u32,
        /// The file.
        path: String,
        /// What the system says.
        error: io::Error,
        /// What to do.
        advice: String,
    },
    /// Another version wrote it.
    #[error(
        "process {0} has the recorder of another version of spinpark\nUse the command that it was started with"
    )]
    Version(u32),
    /// Another command records it.
    #[error("process {0} is being recorded by another `spinpark record`\nTry again when that has ended")]
    Busy(u32),
    /// Commands record as many processes of its family as can be.
    #[error(
        "process {0} cannot be recorded now: {REQUESTS} processes are, which were forked from one, or that one is\nTry again when one \
         of these commands has ended"
    )]
    Full(u32),
    /// Something else.
    #[error("process {0} cannot be recorded: {1}")]
    Other(u32, io::Error),
}

/// What became of a wish.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// It is fulfilled.
    Done,
    /// It cannot be: a [`Cause`](crate::read::Cause), by its number.
    Failed(u32),
    /// The kernel does not order the memory of its threads (`membarrier`).
    NoBarrier,
    /// No thread of the process has made an intercepted call since.
    Silent,
    /// The process has ended, or is another program.
    Gone,
}

/// A dormant process, which no other command records meanwhile.
#[derive(Debug)]
pub struct Dormant {
    pid: u32,
    process: OwnedFd,
    control: File,
    recording: File,
    /// The directory of its files, as this process sees it.
    directory: PathBuf,
    /// What its maps have of the control file.
    inode: u64,
    /// The process' own number for itself: another one in a container.
    own_number: u32,
    /// Where its request is in the page.
    request: u64,
    /// The latest wish of this command; 0: none.
    wish: u32,
    beat: u32,
}

/// A file that a process has mapped for writing.
struct Mapped {
    range: String,
    inode: u64,
    path: String,
}

impl Mapped {
    fn of(line: &str) -> Option<Self> {
        let mut fields = line.split_ascii_whitespace();
        let (range, access) = (fields.next()?, fields.next()?);
        let inode = fields.nth(2)?.parse().ok()?;
        let path = &line[line.find('/')?..];
        let path = path.strip_suffix(" (deleted)").unwrap_or(path).to_owned();
        access.ends_with('s').then(|| Self { range: range.to_owned(), inode, path })
    }

    fn name(&self) -> &str {
        self.path.rsplit('/').next().unwrap_or("")
    }

    fn parent(&self) -> &Path {
        Path::new(&self.path).parent().unwrap_or(Path::new("/"))
    }

    /// Opens it, wherever this process finds it: it may have another root, or the file may have lost its name.
    /// Returns the path, too.
    fn open(&self, directory: &Path) -> io::Result<(File, PathBuf)> {
        let below_root = directory.join("root").join(self.path.trim_start_matches('/'));
        self.open_at(&[below_root, PathBuf::from(&self.path), directory.join("map_files").join(&self.range)])
    }

    /// The same, from the first of these places that has it.
    fn open_at(&self, places: &[PathBuf]) -> io::Result<(File, PathBuf)> {
        let mut first = None;
        for place in places {
            // What is there may be a device by now, or whatever the process has put there for root to open: it is
            // looked at first, and opened only if it is the file.
            let found = openat(CWD, place, OFlags::PATH | OFlags::CLOEXEC, Mode::empty()).map(File::from);
            match found.map_err(io::Error::from).and_then(|file| Ok((file.metadata()?, file))) {
                // Of the device the maps say another thing on some file systems.
                Ok((metadata, file)) if metadata.is_file() && metadata.ino() == self.inode => {
                    let found = format!("/proc/self/fd/{}", file.as_raw_fd());
                    match File::options().read(true).write(true).open(found) {
                        Ok(file) => return Ok((file, place.clone())),
                        Err(error) => first = first.or(Some(error)),
                    }
                }
                Ok(_) => {}
                Err(error) => first = first.or(Some(error)),
            }
        }
        Err(first.unwrap_or_else(|| ErrorKind::NotFound.into()))
    }
}

impl Dormant {
    /// Finds a dormant process, and takes it for this command.
    ///
    /// # Errors
    ///
    /// [`DormantError`]: it is none, or may not be recorded by this one.
    pub fn open(pid: u32) -> Result<Self, DormantError> {
        of_program(pid, COMMAND).map_err(|refused| match refused {
            Refused::Missing(_) | Refused::Ended(_) => DormantError::Missing(pid),
            refused => refused.into(),
        })?;
        let directory = live_process::directory(pid);
        let owner = match fs::metadata(&directory) {
            Ok(metadata) => metadata.uid(),
            Err(_) => return Err(DormantError::Missing(pid)),
        };
        let handle = i32::try_from(pid).ok().and_then(Pid::from_raw).ok_or(DormantError::Missing(pid))?;
        let process = pidfd_open(handle, PidfdFlags::empty()).map_err(|error| match error {
            rustix::io::Errno::SRCH | rustix::io::Errno::INVAL => DormantError::Missing(pid),
            error => DormantError::Other(pid, error.into()),
        })?;
        let maps = fs::read(directory.join("maps")).map_err(|error| match error.kind() {
            ErrorKind::NotFound => DormantError::Missing(pid),
            _ if owner != geteuid().as_raw() && owner != 0 => DormantError::Forbidden { pid, owner },
            ErrorKind::PermissionDenied => match status_user(&directory) {
                Some(owner) if owner != geteuid().as_raw() => DormantError::Forbidden { pid, owner },
                _ => DormantError::Refused(hidden(pid, &directory, COMMAND)),
            },
            _ => DormantError::Other(pid, error),
        })?;
        let maps = String::from_utf8_lossy(&maps);
        let mapped: Vec<Mapped> = maps.lines().filter_map(Mapped::of).collect();
        let is_recording = |mapped: &&Mapped| {
            Path::new(mapped.name()).extension().is_some_and(|extension| extension == EXTENSION)
        };
        let control_name = CONTROL_FILE.to_str().unwrap_or_default();
        let Some(control) = mapped.iter().find(|mapped| mapped.name() == control_name) else {
            return Err(match mapped.iter().find(is_recording) {
                _ if has_ended(&process) => DormantError::Missing(pid),
                Some(_) => DormantError::Recorded(pid),
                None if maps.contains("spinpark_profiler") => DormantError::NotDormant(pid),
                None => DormantError::NotLoaded { pid, advice: how_to_load(pid, &maps) },
            });
        };
        let recording = mapped.iter().filter(is_recording).find(|mapped| mapped.parent() == control.parent());
        let recording = recording.ok_or(DormantError::NotDormant(pid))?;
        let open = |mapped: &Mapped| {
            mapped.open(&directory).map_err(|error| unreachable(pid, mapped, &directory, error))
        };
        let (control_file, path) = open(control)?;
        let (recording, _) = open(recording)?;
        // The files' permissions have said so already, unless somebody has changed them.
        let (user, owner) =
            (geteuid().as_raw(), control_file.metadata().map_or(0, |metadata| metadata.uid()));
        if user != 0 && user != owner {
            return Err(DormantError::Forbidden { pid, owner });
        }
        let mut dormant = Self {
            pid,
            process,
            control: control_file,
            recording,
            directory: path.parent().unwrap_or(Path::new("/")).to_owned(),
            inode: control.inode,
            own_number: own_number(&directory).unwrap_or(pid),
            request: 0,
            wish: 0,
            beat: 0,
        };
        dormant.check()?;
        dormant.request = dormant.take_request(namespace(&directory))?;
        dormant.beat = dormant.word(offset_of!(Request, beat)).unwrap_or(0);
        Ok(dormant)
    }

    /// Takes a request for the process: the one that it has already, a free one, or one that no command has.
    fn take_request(&self, namespace: u32) -> Result<u64, DormantError> {
        let error = |error: io::Error| DormantError::Other(self.pid, error);
        let _choosing = self.alone().map_err(error)?;
        let mut page = [0; CONTROL_BYTES];
        self.control.read_exact_at(&mut page, 0).map_err(error)?;
        let number = |at: u64, field: usize| {
            let at = usize::try_from(at).unwrap_or(0) + field;
            page.get(at..at + 4).map_or(0, |bytes| u32::from_le_bytes(bytes.try_into().unwrap_or_default()))
        };
        let requests = (0..REQUESTS)
            .map(|number| (offset_of!(Control, requests) + number * size_of::<Request>()) as u64);
        let process = |at: u64| number(at, offset_of!(Request, process));
        let is_own = |at: u64| {
            let of = number(at, offset_of!(Request, namespace));
            process(at) == self.own_number && (of == namespace || of == 0 || namespace == 0)
        };
        let is_taken = |at: u64| lock_bytes(&self.control, at, size_of::<Request>() as u64);
        let own = requests.clone().find(|at| is_own(*at));
        let taken = match own {
            Some(own) => is_taken(own).map_err(error)?.then_some(own).ok_or(DormantError::Busy(self.pid))?,
            None => {
                let free = requests.clone().filter(|at| process(*at) == 0);
                let left = requests.filter(|at| process(*at) != 0);
                let taken = free.chain(left).find(|at| matches!(is_taken(*at), Ok(true)));
                taken.ok_or(DormantError::Full(self.pid))?
            }
        };
        if own.is_none() {
            // No process' at first, and nothing is wished.
            let done = number(taken, offset_of!(Request, wish));
            for (field, word) in [
                (offset_of!(Request, process), 0),
                (offset_of!(Request, done), done),
                (offset_of!(Request, file), 0),
                (offset_of!(Request, namespace), namespace),
                (offset_of!(Request, process), self.own_number),
            ] {
                self.set_at(taken + field as u64, word).map_err(error)?;
            }
        }
        Ok(taken)
    }

    /// Until the result is dropped, no other command chooses a request or rings. For a moment: it waits for
    /// others.
    fn alone(&self) -> io::Result<Alone<'_>> {
        flock(&self.control, FlockOperation::LockExclusive)?;
        Ok(Alone(&self.control))
    }

    /// Whether the control file is one, and of this version.
    fn check(&self) -> Result<(), DormantError> {
        let length = self.control.metadata().map_or(0, |metadata| metadata.len());
        let mut magic = [0; 8];
        let at = offset_of!(Control, magic) as u64;
        let is_one =
            self.control.read_exact_at(&mut magic, at).is_ok() && magic == CONTROL_MAGIC.to_le_bytes();
        match self.word_at(offset_of!(Control, version) as u64) {
            Some(CONTROL_VERSION) if is_one && length == CONTROL_BYTES as u64 => Ok(()),
            _ => Err(DormantError::Version(self.pid)),
        }
    }

    fn word_at(&self, at: u64) -> Option<u32> {
        let mut bytes = [0; 4];
        self.control.read_exact_at(&mut bytes, at).ok().map(|()| u32::from_le_bytes(bytes))
    }

    /// A word of the request.
    fn word(&self, field: usize) -> Option<u32> {
        self.word_at(self.request + field as u64)
    }

    fn set_at(&self, at: u64, word: u32) -> io::Result<()> {
        self.control.write_all_at(&word.to_le_bytes(), at)
    }

    fn set(&self, field: usize, word: u32) -> io::Result<()> {
        self.set_at(self.request + field as u64, word)
    }

    fn ring(&self) -> io::Result<()> {
        let _ringing = self.alone()?;
        let at = offset_of!(Control, bell) as u64;
        self.set_at(at, self.word_at(at).unwrap_or(0).wrapping_add(1))
    }

    /// Asks it to record, or (`is_on` is false) to end that. Waits of `slower_than` are kept whole.
    ///
    /// # Errors
    ///
    /// As the system has them.
    fn ask(&mut self, is_on: bool, slower_than: u64) -> io::Result<()> {
        let latest =
            [offset_of!(Request, wish), offset_of!(Request, done)].map(|at| self.word(at).unwrap_or(0));
        // Larger than both, and odd if it is to record.
        let next = latest[0].max(latest[1]).wrapping_add(1);
        let next = next.wrapping_add(u32::from((next % 2 == 1) != is_on));
        let at = self.request + offset_of!(Request, slower_than) as u64;
        self.control.write_all_at(&slower_than.to_le_bytes(), at)?;
        self.beat()?;
        self.set(offset_of!(Request, wish), next)?;
        self.wish = next;
        self.ring()
    }

    /// Asks it to record from now on. Waits that last for this time or longer are kept whole.
    ///
    /// # Errors
    ///
    /// As the system has them.
    pub fn begin(&mut self, slower_than: Option<Duration>) -> io::Result<()> {
        let ns = slower_than.and_then(|time| u64::try_from(time.as_nanos()).ok());
        self.ask(true, ns.unwrap_or(u64::MAX))
    }

    /// Asks it to end the recording, and waits until it has: a moment, since any call of any thread does.
    ///
    /// # Errors
    ///
    /// As the system has them.
    pub fn end(&mut self) -> io::Result<Answer> {
        self.ask(false, u64::MAX)?;
        let begun = Instant::now();
        loop {
            match self.answer() {
                Answer::Silent if begun.elapsed() < PATIENCE => thread::sleep(STEP),
                answer => return Ok(answer),
            }
        }
    }

    /// This command still wants the recording: the process goes back to sleep without that, after 5 s.
    ///
    /// # Errors
    ///
    /// As the system has them.
    pub fn beat(&mut self) -> io::Result<()> {
        self.beat = self.beat.wrapping_add(1);
        self.set(offset_of!(Request, beat), self.beat)
    }

    /// What became of the latest wish.
    #[must_use]
    pub fn answer(&self) -> Answer {
        match (self.word(offset_of!(Request, done)), self.word(offset_of!(Request, failure))) {
            (Some(done), Some(NO_BARRIER)) if done == self.wish => Answer::NoBarrier,
            (Some(done), Some(failure)) if done == self.wish && failure != 0 => Answer::Failed(failure - 1),
            (Some(done), _) if done == self.wish => Answer::Done,
            // Without a beat it has gone back to sleep.
            (Some(done), _) if done == self.wish.wrapping_add(1) => Answer::Silent,
            _ if self.is_gone() => Answer::Gone,
            _ => Answer::Silent,
        }
    }

    /// Whether the process has ended a recording by itself, because it has not seen a beat for 5 s.
    #[must_use]
    pub fn has_lapsed(&self) -> bool {
        self.wish % 2 == 1 && self.word(offset_of!(Request, done)) == Some(self.wish.wrapping_add(1))
    }

    /// Whether the process has ended.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        has_ended(&self.process)
    }

    /// Whether it has ended, or has become another program, which does not have the file.
    #[must_use]
    pub fn is_gone(&self) -> bool {
        self.has_ended() || {
            let maps = fs::read(live_process::directory(self.pid).join("maps")).unwrap_or_default();
            let maps = String::from_utf8_lossy(&maps);
            !maps.is_empty() && !maps.lines().filter_map(Mapped::of).any(|mapped| mapped.inode == self.inode)
        }
    }

    /// What becomes ready when the process ends.
    #[must_use]
    pub fn handle(&self) -> BorrowedFd<'_> {
        self.process.as_fd()
    }

    /// The directory of its files.
    #[must_use]
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// The process' own number for itself: another one in a container.
    #[must_use]
    pub fn own_number(&self) -> u32 {
        self.own_number
    }

    /// After [`Answer::Done`]: opens the recording of a process that has it in memory.
    ///
    /// # Errors
    ///
    /// [`DormantError`]: the process has ended, or has closed it meanwhile.
    pub fn open_recording(&mut self) -> Result<(), DormantError> {
        let Some(file) = self.word(offset_of!(Request, file)).and_then(|file| file.checked_sub(1)) else {
            return Ok(());
        };
        let directory = live_process::directory(self.pid);
        let maps = fs::read(directory.join("maps")).map_err(|error| DormantError::Other(self.pid, error))?;
        let name = MEMORY_FILE.to_str().unwrap_or_default();
        let maps = String::from_utf8_lossy(&maps);
        let in_memory: Vec<Mapped> = maps.lines().filter_map(Mapped::of).collect();
        let in_memory = in_memory.iter().filter(|mapped| mapped.path == format!("/memfd:{name}"));
        if self.has_ended() {
            return Err(DormantError::Missing(self.pid));
        }
        let mut first = io::Error::from(ErrorKind::NotFound);
        for mapped in in_memory {
            let places = [
                directory.join("fd").join(file.to_string()),
                directory.join("map_files").join(&mapped.range),
            ];
            match mapped.open_at(&places) {
                Ok((file, _)) => {
                    self.recording = file;
                    return Ok(());
                }
                Err(error) => first = error,
            }
        }
        Err(DormantError::Unreachable {
            pid: self.pid,
            path: format!("/memfd:{name}"),
            error: first,
            advice: format!("It has closed all descriptors, perhaps. Try: {}", as_root(COMMAND, self.pid)),
        })
    }

    /// The recording, as it is now.
    #[must_use]
    pub fn recording(&self) -> BorrowedFd<'_> {
        self.recording.as_fd()
    }

    /// Copies the recording as it is now into a directory; its end is now, if it has none.
    ///
    /// # Errors
    ///
    /// As the system has them.
    pub fn copy(&self, to: &Path) -> io::Result<()> {
        let number = |at: usize| -> io::Result<u32> {
            let mut bytes = [0; 4];
            self.recording.read_exact_at(&mut bytes, at as u64)?;
            Ok(u32::from_le_bytes(bytes))
        };
        let length = self.recording.metadata()?.len();
        let end = u64::from(number(offset_of!(Header, end))? & !CLOSED) * PAGE as u64;
        // No more than any recording has, whatever the process says.
        let end =
            end.clamp(HEADER_BYTES as u64, length.clamp(HEADER_BYTES as u64, (MOST_PAGES * PAGE) as u64));
        let own = number(offset_of!(Header, pid))?;
        let file =
            File::options().write(true).create_new(true).open(to.join(format!("{own}.{EXTENSION}")))?;
        let mut piece = vec![0; 1 << 20];
        let mut at = 0;
        while at < end {
            let most = usize::try_from(end - at).unwrap_or(usize::MAX).min(piece.len());
            match self.recording.read_at(&mut piece[..most], at) {
                Ok(0) => break,
                Ok(read) => {
                    file.write_all_at(&piece[..read], at)?;
                    at += read as u64;
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        drop(file);
        note_end(to, own)
    }
}

impl Drop for Dormant {
    /// The request is free, if the process has nothing to do for it any more.
    fn drop(&mut self) {
        let is_over = match self.answer() {
            Answer::Done => self.wish.is_multiple_of(2),
            Answer::Silent => self.wish == 0,
            Answer::Failed(_) | Answer::NoBarrier | Answer::Gone => true,
        };
        if is_over {
            let _ = self.set(offset_of!(Request, process), 0);
        }
    }
}

/// No other command chooses a request or rings.
struct Alone<'a>(&'a File);

impl Drop for Alone<'_> {
    fn drop(&mut self) {
        let _ = flock(self.0, FlockOperation::Unlock);
    }
}

/// Locks these bytes of a file until it is closed; `false` if another process, or another one's opening of the
/// file, has them locked.
fn lock_bytes(file: &File, start: u64, length: u64) -> io::Result<bool> {
    let offset = |bytes: u64| libc::off_t::try_from(bytes).unwrap_or(libc::off_t::MAX);
    // SAFETY: all zero is one.
    let mut lock: libc::flock = unsafe { std::mem::zeroed() };
    lock.l_type = libc::F_WRLCK as libc::c_short;
    lock.l_whence = libc::SEEK_SET as libc::c_short;
    (lock.l_start, lock.l_len) = (offset(start), offset(length));
    // SAFETY: an open descriptor, and a lock that the kernel reads.
    match unsafe { libc::fcntl(file.as_raw_fd(), libc::F_OFD_SETLK, &raw const lock) } {
        -1 => match io::Error::last_os_error() {
            error if matches!(error.raw_os_error(), Some(libc::EAGAIN | libc::EACCES)) => Ok(false),
            error => Err(error),
        },
        _ => Ok(true),
    }
}

fn has_ended(process: &OwnedFd) -> bool {
    let now = Timespec { tv_sec: 0, tv_nsec: 0 };
    poll(&mut [PollFd::new(process, PollFlags::IN)], Some(&now)).is_ok_and(|ready| ready > 0)
}

/// What starts a program so that it can be recorded.
fn how_to_load(pid: u32, maps: &str) -> &'static str {
    let has_loader = || ["/ld-linux-", "/ld.so", "/ld-2."].iter().any(|loader| maps.contains(loader));
    match pid {
        _ if !has_loader() => "To record it is not possible: it is linked statically, or not to glibc",
        1 => {
            "It is the first process of this machine or container: that of a container is dormant if it is started with LD_PRELOAD and \
             SPINPARK_PROFILE_DORMANT"
        }
        _ => {
            "To record it, start it again by `spinpark profile --dormant -- PROGRAM`, or with LD_PRELOAD and SPINPARK_PROFILE_DORMANT"
        }
    }
}

/// What a process is for itself, in the innermost of the name spaces that it is in.
fn own_number(directory: &Path) -> Option<u32> {
    let status = fs::read_to_string(directory.join("status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("NStgid:"))?;
    line.split_ascii_whitespace().last()?.parse().ok()
}

/// The number of the PID namespace of a process; 0: not known.
fn namespace(directory: &Path) -> u32 {
    let link = fs::read_link(directory.join("ns/pid")).unwrap_or_default();
    let number = link.to_str().and_then(|link| link.strip_prefix("pid:[")?.strip_suffix(']')?.parse().ok());
    number.unwrap_or(0)
}

/// The user of a process whose files in `/proc` are root's because it may not be dumped.
fn status_user(directory: &Path) -> Option<u32> {
    let status = fs::read_to_string(directory.join("status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("Uid:"))?;
    line.split_ascii_whitespace().next()?.parse().ok()
}

/// Whether it is named as the directory of a dormant process: `PID-START`.
fn is_process_directory(name: &std::ffi::OsStr) -> bool {
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    name.to_str()
        .and_then(|name| name.split_once('-'))
        .is_some_and(|(pid, start)| is_number(pid) && is_number(start))
}

fn unreachable(pid: u32, mapped: &Mapped, directory: &Path, error: io::Error) -> DormantError {
    let owner = fs::metadata(directory).map_or(0, |metadata| metadata.uid());
    if error.kind() == ErrorKind::PermissionDenied && geteuid().as_raw() != owner {
        return DormantError::Forbidden { pid, owner };
    }
    let again = as_root(COMMAND, pid);
    let advice = match error.kind() {
        ErrorKind::NotFound => format!(
            "Something has removed it, such as a job that clears temporary files. Root still finds it: {again}"
        ),
        _ => format!("Try: {again}"),
    };
    DormantError::Unreachable { pid, path: mapped.path.clone(), error, advice }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Only the file itself is opened: to open a device has effects.
    #[test]
    fn what_has_taken_its_place() {
        let directory = tempfile::tempdir().expect("a directory");
        let (path, other) = (directory.path().join("control.dormant"), directory.path().join("other"));
        fs::write(&path, "x").expect("a file");
        let inode = |path: &Path| fs::metadata(path).expect("a file").ino();
        let open = |path: &Path, inode: u64| {
            let path = path.to_str().expect("a path").to_owned();
            let mapped = Mapped { range: "0-1".to_owned(), inode, path };
            mapped.open(Path::new("/proc/self")).map(|(_, place)| place)
        };
        assert!(open(&path, inode(&path)).is_ok());
        std::os::unix::fs::symlink("/dev/null", &other).expect("a link");
        assert!(open(&other, inode(&other)).is_err(), "a device");
        assert!(open(directory.path(), inode(directory.path())).is_err(), "a directory");
        assert!(open(&path, inode(&path) + 1).is_err(), "another file");
        // What tells of it: a watch for openings, of which a look is none.
        let before = opened(&path, || drop(open(&path, inode(&path) + 1)));
        assert!(!before && opened(&path, || drop(open(&path, inode(&path)))));
    }

    /// Whether the file is opened meanwhile.
    fn opened(path: &Path, by: impl FnOnce()) -> bool {
        use rustix::fs::inotify;
        let watch = inotify::init(inotify::CreateFlags::NONBLOCK).expect("a watch");
        inotify::add_watch(&watch, path, inotify::WatchFlags::OPEN).expect("a watch");
        by();
        rustix::io::read(&watch, &mut [0; 256]).is_ok()
    }

    #[test]
    fn advice_fits_the_process() {
        let dynamic =
            "7f0000-7f1000 r-xp 00000000 00:1a 4711     /usr/lib/x86_64-linux-gnu/ld-linux-x86-64.so.2\n";
        assert!(how_to_load(4711, dynamic).contains("profile --dormant"));
        assert!(how_to_load(1, dynamic).starts_with("It is the first process"));
        let musl = dynamic.replace("ld-linux-x86-64.so.2", "ld-musl-x86_64.so.1");
        for other in ["400000-401000 r-xp 00000000 00:1a 4711     /usr/bin/busybox\n", &musl] {
            assert!(how_to_load(1, other).contains("linked statically"), "{other}");
        }
    }

    #[test]
    fn what_a_process_has_mapped() {
        let line = "7f0000-7f1000 rw-s 00000000 00:1a 4711     /run/spinpark/12-34/control.dormant";
        let mapped = Mapped::of(line).expect("it is shared");
        assert_eq!((mapped.inode, mapped.name()), (4711, "control.dormant"));
        assert!(mapped.parent().file_name().is_some_and(is_process_directory));
        let deleted = Mapped::of(&format!("{line} (deleted)")).expect("it is shared");
        assert_eq!(deleted.path, mapped.path);
        for other in
            ["", "7f0000-7f1000 rw-p 0 00:1a 4711 /x", "7f-8f rw-s 0 00:00 0", "a b c d e f", "a b c"]
        {
            assert!(Mapped::of(other).is_none(), "{other}");
        }
        for other in ["1-", "-1", "x-1", "12", "spinpark-profile"] {
            assert!(!is_process_directory(std::ffi::OsStr::new(other)), "{other}");
        }
    }
}
