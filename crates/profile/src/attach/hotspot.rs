//! A JVM's own thread dump: Java's frames, monitors and their owners, as `jstack` gets them.
//!
//! HotSpot serves a socket in its `/tmp`, `.java_pidN`; N is its number in its namespace. Until it is first asked, it
//! does not: then a file `.attach_pidN` in its working directory or `/tmp`, and a SIGQUIT, make it. That signal ends
//! processes that do not handle it, so that it is sent only to one that has `libjvm.so` and does. For the dump the
//! JVM brings its threads to a safepoint, a few milliseconds: the dump is of one moment.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt, fchown};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use rustix::process::{Pid, PidfdFlags, Signal, geteuid, pidfd_open, pidfd_send_signal};

use super::access::Status;
use super::object::{Held, Object};
use crate::model::{CallSite, Frame, Kind, Role};

/// The library that a JVM is.
pub(super) const LIBRARY: &str = "libjvm.so";
/// For its first answer, and for all of it.
const PATIENCE: Duration = Duration::from_secs(3);
/// A dump is not longer.
const LONGEST: u64 = 64 << 20;

/// A thread, as the JVM has it.
#[derive(Clone, Debug, Default)]
pub(super) struct JavaThread {
    /// Its number in the JVM's namespace.
    pub(super) number: u32,
    pub(super) name: String,
    /// Where it is in Java.
    pub(super) place: Option<CallSite>,
    /// What it waits for, and whether that ends by itself. Owners are numbers in the JVM's namespace.
    pub(super) wait: Option<(Object, bool)>,
}

/// Asks the JVM `pid`, which has [`LIBRARY`].
///
/// # Errors
/// Why it did not answer, to be put behind *since*.
pub(super) fn threads(pid: u32) -> Result<Vec<JavaThread>, String> {
    // A socket whose queue is full blocks, too.
    let (sender, receiver) = mpsc::channel();
    std::thread::spawn(move || sender.send(dump(pid)));
    let text = receiver.recv_timeout(2 * PATIENCE);
    Ok(parse(&text.unwrap_or_else(|_| Err(String::from("it does not answer")))?))
}

fn dump(pid: u32) -> Result<String, String> {
    let process = PathBuf::from("/proc").join(pid.to_string());
    let gone = |_| String::from("it has ended");
    let number = i32::try_from(pid).ok().and_then(Pid::from_raw).ok_or("it has ended")?;
    // What is checked from here on is of the process that gets the signal.
    let handle = pidfd_open(number, PidfdFlags::empty()).map_err(|error| error.to_string())?;
    let status = Status::read(&process).map_err(gone)?;
    let own = geteuid().as_raw();
    let user = status.numbers("Uid").get(1).copied().unwrap_or(u32::MAX);
    if own != 0 && own != user {
        return Err(format!("it answers its own user only (uid {user})"));
    }
    if status.field("State").is_some_and(|state| state.starts_with(['T', 't'])) {
        return Err(String::from("it is stopped"));
    }
    let inner = status.numbers("NSpid").last().copied().unwrap_or(pid);
    let socket = Socket { path: process.join("root/tmp").join(format!(".java_pid{inner}")), user };
    let stream = match socket.connect() {
        Ok(stream) => stream,
        Err(_) => {
            if forbids(&process) {
                return Err(String::from("it does not let others attach (`-XX:+DisableAttachMechanism`)"));
            }
            if !handles_quit(&status) {
                return Err(String::from("it does not handle SIGQUIT (`-Xrs`)"));
            }
            let file = Trigger::new(&process, inner, user).map_err(|error| {
                format!("no file `.attach_pid{inner}` could be made where it looks for one: {error}")
            })?;
            // Another user's, or another program by now: both would have changed this.
            if !has_jvm(&process) || !Status::read(&process).is_ok_and(|status| handles_quit(&status)) {
                return Err(String::from("it is no JVM by now"));
            }
            pidfd_send_signal(&handle, Signal::QUIT).map_err(|error| error.to_string())?;
            let stream = socket.appears();
            drop(file);
            stream.ok_or("it does not let others attach, or is too busy")?
        }
    };
    ask(stream).map_err(|error| match error.kind() {
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => String::from("it does not answer"),
        _ => error.to_string(),
    })
}

fn handles_quit(status: &Status) -> bool {
    const QUIT: u64 = 1 << (libc::SIGQUIT - 1);
    let caught = status.field("SigCgt").and_then(|mask| u64::from_str_radix(mask, 16).ok());
    caught.is_some_and(|caught| caught & QUIT != 0)
}

fn has_jvm(process: &Path) -> bool {
    let maps = fs::read(process.join("maps")).unwrap_or_default();
    let maps = String::from_utf8_lossy(&maps);
    maps.lines().any(|line| line.ends_with(&format!("/{LIBRARY}")))
}

/// Whether an option says so. The signal would make such a JVM write a dump among its own output.
fn forbids(process: &Path) -> bool {
    const OPTION: &[u8] = b"+DisableAttachMechanism";
    let has_it = |name: &str| {
        let text = fs::read(process.join(name)).unwrap_or_default();
        text.windows(OPTION.len()).any(|part| part == OPTION)
    };
    has_it("cmdline") || has_it("environ")
}

/// The file that tells a JVM that the signal is not for a dump on its own output. It is removed again.
struct Trigger(PathBuf);

impl Trigger {
    fn new(process: &Path, number: u32, user: u32) -> io::Result<Self> {
        let name = format!(".attach_pid{number}");
        let make = |directory: &str| {
            let path = process.join(directory).join(&name);
            let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path);
            match file {
                Ok(file) => {
                    let made = Self(path);
                    Self::give(&file, user)?;
                    Ok(made)
                }
                // Of another one that asks.
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(Self(PathBuf::new())),
                Err(error) => Err(error),
            }
        };
        make("cwd").or_else(|_| make("root/tmp"))
    }

    /// Old JVMs ignore files that are not their user's. Not by the path: that user may have put a link there
    /// meanwhile, and would be given the file that it leads to.
    fn give(file: &File, user: u32) -> io::Result<()> {
        if file.metadata()?.uid() != user {
            fchown(file, Some(user), None)?;
        }
        Ok(())
    }
}

impl Drop for Trigger {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

/// Where a JVM of this user answers.
struct Socket {
    path: PathBuf,
    user: u32,
}

impl Socket {
    fn connect(&self) -> io::Result<UnixStream> {
        // All users may make files in `/tmp`.
        let found = fs::symlink_metadata(&self.path)?;
        if found.uid() != self.user || !found.file_type().is_socket() {
            return Err(io::Error::other("it is another user's, or no socket"));
        }
        UnixStream::connect(&self.path)
    }

    fn appears(&self) -> Option<UnixStream> {
        const STEP: Duration = Duration::from_millis(20);
        let begun = Instant::now();
        while begun.elapsed() < PATIENCE {
            std::thread::sleep(STEP);
            if let Ok(stream) = self.connect() {
                return Some(stream);
            }
        }
        None
    }
}

fn ask(mut stream: UnixStream) -> io::Result<String> {
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    // The version of the protocol, the command, and three arguments.
    stream.write_all(b"1\0threaddump\0\0\0\0")?;
    let mut answer = Vec::new();
    stream.take(LONGEST).read_to_end(&mut answer)?;
    let answer = String::from_utf8_lossy(&answer).into_owned();
    match answer.split_once('\n') {
        Some(("0", text)) => Ok(text.to_owned()),
        _ => Err(io::Error::other(format!("it answers `{}`", answer.lines().next().unwrap_or("")))),
    }
}

/// A thread while it is read.
#[derive(Default)]
struct Reading {
    thread: JavaThread,
    frames: Vec<Frame>,
    is_timed: bool,
    sleeps: bool,
    /// What it waits for: the word before, the object, and its class.
    wanted: Option<(String, u64, String)>,
    locked: Vec<u64>,
}

/// The threads of a dump that are Java's.
fn parse(text: &str) -> Vec<JavaThread> {
    let mut all: Vec<Reading> = Vec::new();
    let mut lines = text.lines();
    for line in lines.by_ref() {
        if line.starts_with("Found ") && line.ends_with(':') {
            break;
        }
        if let Some((name, number)) = head(line) {
            let thread = JavaThread { number, name, ..JavaThread::default() };
            all.push(Reading { thread, ..Reading::default() });
        } else if let Some(reading) = all.last_mut() {
            reading.add(line.trim());
        }
    }
    let found = stated(lines);
    let numbers: BTreeMap<&str, Option<u32>> = all.iter().fold(BTreeMap::new(), |mut numbers, reading| {
        let number = Some(reading.thread.number);
        numbers.entry(reading.thread.name.as_str()).and_modify(|other| *other = None).or_insert(number);
        numbers
    });
    let mut owners: BTreeMap<u64, u32> = BTreeMap::new();
    for (object, name) in &found {
        owners.extend(numbers.get(name.as_str()).copied().flatten().map(|number| (*object, number)));
    }
    for reading in &all {
        let given_up = reading.wanted.as_ref().map(|(_, object, _)| *object);
        let locked = reading.locked.iter().filter(|object| Some(**object) != given_up);
        owners.extend(locked.map(|object| (*object, reading.thread.number)));
    }
    all.into_iter().map(|reading| reading.finish(&owners)).collect()
}

/// `"name" #12 prio=5 … nid=0x4e5c5 waiting …`: the name and the number, which later versions write in decimal.
fn head(line: &str) -> Option<(String, u32)> {
    let (before, after) = line.strip_prefix('"')?.rsplit_once(" nid=")?;
    let number = after.split(' ').next()?;
    let number = match number.strip_prefix("0x") {
        Some(digits) => u32::from_str_radix(digits, 16).ok()?,
        None => number.parse().ok()?,
    };
    Some((before.rsplit_once('"')?.0.to_owned(), number))
}

/// Behind *Found one Java-level deadlock*: objects, and the names of the threads that have them.
fn stated<'a>(lines: impl Iterator<Item = &'a str>) -> Vec<(u64, String)> {
    let mut found = Vec::new();
    let mut object = None;
    for line in lines.map(str::trim) {
        if let Some(rest) = line.strip_prefix("waiting to lock monitor ") {
            object = rest.split_once("(object ").and_then(|(_, rest)| address(rest));
        } else if let Some(rest) = line.strip_prefix("waiting for ownable synchronizer ") {
            object = address(rest);
        } else if let Some(rest) = line.strip_prefix("which is held by \"")
            && let Some(object) = object.take()
        {
            found.push((object, rest.trim_end_matches(',').trim_end_matches('"').to_owned()));
        }
    }
    found
}

/// `0x000000069ec19660…`.
fn address(text: &str) -> Option<u64> {
    let digits = text.trim_start_matches('<').strip_prefix("0x")?;
    let end = digits.find(|c: char| !c.is_ascii_hexdigit()).unwrap_or(digits.len());
    u64::from_str_radix(&digits[..end], 16).ok()
}

impl Reading {
    fn add(&mut self, line: &str) {
        if let Some(state) = line.strip_prefix("java.lang.Thread.State: ") {
            self.is_timed = state.starts_with("TIMED_WAITING");
            self.sleeps = state.ends_with("(sleeping)");
        } else if let Some(at) = line.strip_prefix("at ") {
            self.frames.extend(frame(at));
        } else if let Some((what, rest)) = line.strip_prefix("- ").and_then(|line| line.split_once('<'))
            && let Some(object) = address(rest)
        {
            let class = rest.split_once("(a ").map_or("", |(_, class)| class.trim_end_matches(')'));
            match what.trim() {
                "locked" => self.locked.push(object),
                // The first one is of the innermost frame.
                what @ ("waiting to lock"
                | "waiting on"
                | "waiting to re-lock in wait()"
                | "parking to wait for")
                    if self.wanted.is_none() =>
                {
                    self.wanted = Some((what.to_owned(), object, class.to_owned()));
                }
                _ => {}
            }
        }
    }

    fn finish(self, owners: &BTreeMap<u64, u32>) -> JavaThread {
        let wait = self.wanted.map(|(what, address, class)| {
            let (kind, role, name) = meaning(&what, &class);
            let held = match owners.get(&address) {
                Some(number) if role.is_lock() => Held::Thread(*number),
                _ => Held::Unknown,
            };
            (Object { kind, role, address, name: Some(name), held }, self.is_timed)
        });
        let wait = wait.or_else(|| {
            let (kind, role, name) = (Kind::Condvar, Role::Signal, Some(String::from("Thread.sleep")));
            let sleep = Object { kind, role, address: 0, name, held: Held::Unknown };
            self.sleeps.then_some((sleep, true))
        });
        // Users look for what called Java's own.
        let own = self.frames.iter().take_while(|frame| is_javas(frame)).count();
        let own = if own < self.frames.len() { own } else { 0 };
        let frames = self.frames[own..].to_vec();
        let place = (!frames.is_empty()).then_some(CallSite { frames, is_cut: false });
        JavaThread { place, wait, ..self.thread }
    }
}

/// What it is that a thread waits for.
fn meaning(what: &str, class: &str) -> (Kind, Role, String) {
    const PARKED: [(&str, Kind, Role); 9] = [
        ("ReentrantLock$", Kind::Mutex, Role::Write),
        ("ReentrantReadWriteLock$", Kind::RwLock, Role::Write),
        ("ConditionObject", Kind::Condvar, Role::Signal),
        ("CountDownLatch$", Kind::Barrier, Role::Signal),
        ("CyclicBarrier", Kind::Barrier, Role::Signal),
        ("SynchronousQueue$", Kind::Channel, Role::Signal),
        ("ForkJoinPool", Kind::Idle, Role::Signal),
        ("Future", Kind::Job, Role::Signal),
        ("Semaphore$", Kind::Semaphore, Role::Wake),
    ];
    let short = class.rsplit('.').next().unwrap_or(class);
    match what {
        "waiting to lock" | "waiting to re-lock in wait()" => {
            (Kind::Mutex, Role::Write, format!("Java monitor of {short}"))
        }
        "waiting on" => (Kind::Condvar, Role::Signal, format!("Object.wait of {short}")),
        _ => {
            let known = PARKED.iter().find(|(part, _, _)| class.contains(part));
            let (kind, role) = known.map_or((Kind::Futex, Role::Wake), |(_, kind, role)| (*kind, *role));
            (kind, role, format!("Java {}", short.split('$').next().unwrap_or(short)))
        }
    }
}

/// `Dl.transfer(Dl.java:6)`, `java.lang.Thread.sleep(java.base@17.0.15/Native Method)`.
fn frame(text: &str) -> Option<Frame> {
    let (function, place) = text.strip_suffix(')')?.rsplit_once('(')?;
    let place = place.rsplit_once('/').map_or(place, |(_, place)| place);
    let source = place.rsplit_once(':').and_then(|(file, line)| Some((file.to_owned(), line.parse().ok()?)));
    // Modules, and loaders of classes: `app//a.B.f`, `java.base@17/java.lang.Thread.run`. Hidden classes have an
    // address behind a `/`.
    let start = function.rfind('/').filter(|at| !function[at + 1..].starts_with("0x"));
    let function = start.map_or(function, |at| &function[at + 1..]);
    let offset = source.as_ref().map_or(0, |(_, line): &(String, u32)| u64::from(*line));
    Some(Frame {
        function: Some(function.replace(['<', '>'], "")),
        module: source.as_ref().map_or_else(|| String::from("java"), |(file, _)| file.clone()),
        source,
        offset,
        start: None,
        is_inlined: false,
        is_half: false,
    })
}

fn is_javas(frame: &Frame) -> bool {
    const OWN: [&str; 3] = ["java.", "jdk.", "sun."];
    frame.function.as_ref().is_some_and(|function| OWN.iter().any(|own| function.starts_with(own)))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The user of a process that root asks owns its working directory, and replaces the trigger in it.
    #[test]
    fn a_link_in_place_of_the_trigger() {
        const OTHER_USER: u32 = 65534;
        if !geteuid().is_root() {
            eprintln!("skipped: only the superuser can give files away");
            return;
        }
        let directory = tempfile::tempdir().unwrap();
        let precious = directory.path().join("precious");
        fs::write(&precious, "").unwrap();
        let path = directory.path().join(".attach_pid1");
        let file = File::create(&path).unwrap();
        fs::remove_file(&path).unwrap();
        std::os::unix::fs::symlink(&precious, &path).unwrap();
        Trigger::give(&file, OTHER_USER).unwrap();
        assert_eq!(file.metadata().unwrap().uid(), OTHER_USER);
        assert_eq!(fs::metadata(&precious).unwrap().uid(), 0);
    }

    /// Of OpenJDK 17, shortened.
    const DUMP: &str = r#"2026-11-30 15:04:46
Full thread dump OpenJDK 64-Bit Server VM (17.0.15+6-Debian-1deb12u1 mixed mode, sharing):

"a "transfer"" #12 prio=5 os_prio=0 cpu=0.45ms tid=0x00007faf74118e60 nid=0x4e5c5 waiting for monitor entry  [0x00007faef2cfd000]
   java.lang.Thread.State: BLOCKED (on object monitor)
	at Dl.transfer(Dl.java:6)
	- waiting to lock <0x000000069ec19660> (a java.lang.Object)
	- locked <0x000000069ec19650> (a java.lang.Object)
	at Dl$$Lambda$1/0x00007faef8000a08.run(Unknown Source)
	at java.lang.Thread.run(java.base@17.0.15/Thread.java:840)

"report" #13 prio=5 os_prio=0 tid=0x00007faf74119f80 nid=320969 waiting for monitor entry  [0x00007faef2bfd000]
   java.lang.Thread.State: BLOCKED (on object monitor)
	at Dl.report(Dl.java:7)
	- waiting to lock <0x000000069ec19650> (a java.lang.Object)
	- locked <0x000000069ec19660> (a java.lang.Object)

"wants" #15 prio=5 os_prio=0 tid=0x00007faf7411c260 nid=0x4e5cb waiting on condition  [0x00007faef29fd000]
   java.lang.Thread.State: TIMED_WAITING (parking)
	at jdk.internal.misc.Unsafe.park(java.base@17.0.15/Native Method)
	- parking to wait for  <0x000000069ec197c8> (a java.util.concurrent.locks.ReentrantLock$NonfairSync)
	at java.util.concurrent.locks.LockSupport.park(java.base@17.0.15/LockSupport.java:211)
	at app//bank.Dl.<init>(Dl.java:9)

"waits" #16 prio=5 os_prio=0 tid=0x00007faf7411d3b0 nid=0x4e5cc in Object.wait()  [0x00007faef28fd000]
   java.lang.Thread.State: WAITING (on object monitor)
	at java.lang.Object.wait(java.base@17.0.15/Native Method)
	- waiting on <0x000000069ec51ec8> (a java.lang.Object)
	at Dl.waits(Dl.java:10)
	- locked <0x000000069ec51ec8> (a java.lang.Object)

"VM Thread" os_prio=0 cpu=0.94ms tid=0x00007faf740f4410 nid=0x4e5b6 runnable  

Found one Java-level deadlock:
=============================
"wants":
  waiting for ownable synchronizer 0x000000069ec197c8, (a java.util.concurrent.locks.ReentrantLock$NonfairSync),
  which is held by "waits"
"#;

    #[test]
    fn a_dump() {
        let threads = parse(DUMP);
        let one = |at: usize| {
            let JavaThread { number, name, place, wait } = &threads[at];
            let wait = wait.as_ref().map(|(wait, timed)| (wait.kind, wait.address, wait.held, *timed));
            (*number, name.as_str(), place.as_ref().map(CallSite::label), wait)
        };
        let (first, second) = (0x6_9ec1_9650, 0x6_9ec1_9660);
        let label = |text: &str| Some(text.to_owned());
        let wait = |address, owner| Some((Kind::Mutex, address, Held::Thread(owner), false));
        assert_eq!(
            one(0),
            (320_965, "a \"transfer\"", label("Dl.transfer (Dl.java:6)"), wait(second, 320_969))
        );
        assert_eq!(one(1), (320_969, "report", label("Dl.report (Dl.java:7)"), wait(first, 320_965)));
        let parked = Some((Kind::Mutex, 0x6_9ec1_97c8, Held::Thread(320_972), true));
        assert_eq!(one(2), (320_971, "wants", label("bank.Dl.init (Dl.java:9)"), parked));
        let waits = Some((Kind::Condvar, 0x6_9ec5_1ec8, Held::Unknown, false));
        assert_eq!(one(3), (320_972, "waits", label("Dl.waits (Dl.java:10)"), waits));
        assert_eq!(one(4), (320_950, "VM Thread", None, None));
        assert!(
            parse("").is_empty() && parse("\"\" nid=\n\" nid=5\n\tat (\n\t- locked <0x>\nFound :").is_empty()
        );
    }

    #[test]
    fn who_gets_no_signal() {
        let process = PathBuf::from("/proc/self");
        assert!(!has_jvm(&process));
        assert!(!handles_quit(&Status::read(&process).expect("it runs")));
        assert!(!forbids(&process));
    }
}
