//! Recordings made by hand, for tests: a `PID-START.spinprof` in memory with records of every kind.
//!
//! A tick is 1 ns unless a test says otherwise.

mod store;

use std::fs;
use std::io;
use std::mem::{offset_of, size_of};
use std::path::{Path, PathBuf};

use spinpark_profile::read::EXTENSION;
use spinpark_recorder::format::{
    Begun, Clock, Detail, Entry, FRAMES, HEADER_BYTES, Head, Header, HeldWaitStats, Kind, Lock, LockStats,
    MAGIC, NONE, NestStats, PAGE, PairStats, Piece, REGIONS, RegionId, Role, SEGMENT_BYTES, Segment,
    SiteStats, Stack, Strip, Thread, VERSION, Waiting,
};

pub use self::store::{named, relabel, store};

/// A recording under construction.
#[derive(Debug)]
pub struct Builder {
    header: Box<Header>,
    locks: Vec<u8>,
    stacks: Vec<u8>,
    threads: Vec<u8>,
    segments: Vec<u8>,
    maps: Vec<u8>,
    text: Vec<u8>,
    /// Bytes used in the latest segment of each thread, and its number.
    latest: Vec<Option<(u32, usize)>>,
    snapshots: u32,
}

/// Only structs of integers and atomics, for which any bits are a value.
trait Plain: Sized {}
impl Plain for Header {}
impl Plain for Lock {}
impl Plain for Stack {}
impl Plain for Thread {}
impl Plain for Waiting {}
impl Plain for LockStats {}
impl Plain for SiteStats {}
impl Plain for PairStats {}
impl Plain for HeldWaitStats {}
impl Plain for NestStats {}
impl Plain for Strip {}

fn zeroed<T: Plain>() -> T {
    // SAFETY: zeros are a value of it, see `Plain`.
    unsafe { std::mem::zeroed() }
}

fn bytes_of<T: Plain>(value: &T) -> &[u8] {
    // SAFETY: it is that long, and the formats have no padding: all of it is initialised.
    unsafe { std::slice::from_raw_parts(std::ptr::from_ref(value).cast(), size_of::<T>()) }
}

impl Default for Builder {
    fn default() -> Self {
        Self::new()
    }
}

impl Builder {
    /// A program that ran for 10 s, and nothing else. It began on 2026-11-22.
    #[must_use]
    pub fn new() -> Self {
        let mut header: Box<Header> = Box::new(zeroed());
        header.magic = MAGIC.into();
        header.version = VERSION;
        header.exited = 1.into();
        header.pid = 4242;
        header.parent = 4000;
        header.detail = (Detail::Full as u32).into();
        header.clock = Clock::Tsc as u32;
        header.sample_every = 64;
        header.cpus = 2;
        header.tick = 1 << 32;
        header.start = 1_000;
        header.start_monotonic = 5_000;
        header.start_realtime = 1_795_305_600_000_000_000;
        header.last = (10_000_000_000 + 1_000).into();
        header.last_monotonic = (10_000_000_000 + 5_000).into();
        let mut builder = Self {
            header,
            locks: Vec::new(),
            stacks: Vec::new(),
            threads: Vec::new(),
            segments: Vec::new(),
            maps: Vec::new(),
            text: Vec::new(),
            latest: Vec::new(),
            snapshots: 0,
        };
        builder.program("/opt/store/store", &["store", "--fast"]);
        builder
    }

    /// The first page, to be changed.
    pub fn header(&mut self) -> &mut Header {
        &mut self.header
    }

    /// Path and arguments.
    pub fn program(&mut self, path: &str, arguments: &[&str]) {
        self.header.program = [0; 512];
        self.header.program[..path.len()].copy_from_slice(path.as_bytes());
        self.header.arguments = [0; 1024];
        let joined: Vec<u8> = arguments.iter().flat_map(|text| text.bytes().chain([0])).collect();
        self.header.arguments[..joined.len()].copy_from_slice(&joined);
    }

    /// A snapshot of the maps; its number.
    pub fn maps(&mut self, lines: &str) -> u32 {
        self.maps.extend_from_slice(format!("@ {} 1000\n{lines}", self.snapshots).as_bytes());
        self.snapshots += 1;
        self.snapshots - 1
    }

    /// A stack, to be looked up in snapshot `maps`; its number.
    pub fn stack(&mut self, maps: u32, addresses: &[u64]) -> u32 {
        let mut stack: Stack = zeroed();
        stack.hash = 1.into();
        stack.depth = u16::try_from(addresses.len()).expect("few");
        stack.maps = maps;
        stack.frames[..addresses.len().min(FRAMES)]
            .copy_from_slice(&addresses[..addresses.len().min(FRAMES)]);
        push(&mut self.stacks, &stack)
    }

    /// A lock that `stack` used first, or created; its number.
    pub fn lock(&mut self, kind: Kind, address: u64, stack: u32, is_created: bool) -> u32 {
        let mut lock: Lock = zeroed();
        lock.kind = (kind as u32).into();
        lock.address = address;
        lock.key = address;
        lock.since = self.header.start + 10;
        lock.stack = stack.into();
        lock.is_created = u32::from(is_created);
        lock.thread = 4242;
        lock.name = NONE.into();
        push(&mut self.locks, &lock)
    }

    /// Marks a lock as destroyed.
    pub fn destroy(&mut self, lock: u32) {
        self.change(lock, offset_of!(Lock, destroyed), 1);
    }

    /// Gives a lock a name.
    pub fn name(&mut self, lock: u32, name: &str) {
        let start = u32::try_from(self.text.len()).expect("short");
        self.text.extend_from_slice(name.as_bytes());
        self.text.push(0);
        self.change(lock, offset_of!(Lock, name), start);
    }

    fn change(&mut self, lock: u32, field: usize, value: u32) {
        let at = lock as usize * size_of::<Lock>() + field;
        self.locks[at..at + 4].copy_from_slice(&value.to_le_bytes());
    }

    /// A table; its number. `since` is ticks after the start.
    pub fn thread(&mut self, id: u32, name: &str, since: u64, waits: u64, waited: u64) -> u32 {
        let mut thread: Thread = zeroed();
        thread.id = id.into();
        thread.users = 1.into();
        thread.segment = NONE.into();
        thread.since = self.header.start + since;
        thread.name[..name.len()].copy_from_slice(name.as_bytes());
        thread.waits = waits.into();
        thread.waited = waited.into();
        self.latest.push(None);
        push(&mut self.threads, &thread)
    }

    /// Marks a thread as ended, with its latest event this many ticks after the start; and how long others
    /// had its table before.
    pub fn ended(&mut self, thread: u32, latest: u64, past: u64) {
        let start = thread as usize * size_of::<Thread>();
        let mut change = |field: usize, value: &[u8]| {
            let at = start + field;
            self.threads[at..at + value.len()].copy_from_slice(value);
        };
        change(offset_of!(Thread, ended), &1_u32.to_le_bytes());
        change(offset_of!(Thread, latest), &(self.header.start + latest).to_le_bytes());
        change(offset_of!(Thread, past), &past.to_le_bytes());
    }

    /// What a thread waits for, and when it last let go something that it was not known to have, ticks after
    /// the start.
    pub fn waits(&mut self, thread: u32, begun: Begun, unseen_release: u64) {
        let waiting: Waiting = zeroed();
        waiting.begin(&Begun { since: self.header.start + begun.since, ..begun });
        let start = thread as usize * size_of::<Thread>();
        let at = start + offset_of!(Thread, waiting);
        self.threads[at..at + size_of::<Waiting>()].copy_from_slice(bytes_of(&waiting));
        let at = start + offset_of!(Thread, unseen_release);
        let unseen = self.header.start + unseen_release;
        self.threads[at..at + 8].copy_from_slice(&unseen.to_le_bytes());
    }

    /// The semaphores that a thread had when it began to wait.
    pub fn has_semaphores(&mut self, thread: u32, addresses: &[u64]) {
        let at = thread as usize * size_of::<Thread>() + offset_of!(Thread, semaphores);
        for (place, address) in addresses.iter().enumerate() {
            self.threads[at + 8 * place..at + 8 * place + 8].copy_from_slice(&address.to_le_bytes());
        }
    }

    /// A thread's use of a lock.
    pub fn uses(&mut self, thread: u32, lock: u32, role: Role, fill: impl FnOnce(&mut LockStats)) {
        let mut stats: LockStats = zeroed();
        stats.head = head::<LockStats>(Entry::LOCK, lock, role);
        fill(&mut stats);
        self.entry(thread, bytes_of(&stats));
    }

    /// A thread's use of a lock at one call site.
    pub fn site(
        &mut self,
        thread: u32,
        lock: u32,
        role: Role,
        stack: u32,
        fill: impl FnOnce(&mut SiteStats),
    ) {
        let mut stats: SiteStats = zeroed();
        stats.head = head::<SiteStats>(Entry::SITE, lock, role);
        stats.stack = stack;
        fill(&mut stats);
        self.entry(thread, bytes_of(&stats));
    }

    /// A thread's waits at one call site for another: how many, ticks in all, the longest.
    pub fn pair(&mut self, thread: u32, lock: u32, role: Role, stacks: (u32, u32), waits: (u64, u64, u64)) {
        let mut stats: PairStats = zeroed();
        stats.head = head::<PairStats>(Entry::PAIR, lock, role);
        (stats.waiter, stats.holder) = stacks;
        (stats.count, stats.waited, stats.longest_wait) = (waits.0.into(), waits.1.into(), waits.2.into());
        self.entry(thread, bytes_of(&stats));
    }

    /// A thread's waits for a lock with another one held: how many, ticks in all, for how many ticks others
    /// waited meanwhile.
    pub fn held_wait(&mut self, thread: u32, lock: u32, role: Role, outer: u32, waits: (u64, u64, u64)) {
        self.held_wait_as(thread, lock, role, (outer, Role::Write as u32), waits);
    }

    /// The same with the outer lock held in a certain way ([`HeldWaitStats::how`]).
    pub fn held_wait_as(
        &mut self,
        thread: u32,
        lock: u32,
        role: Role,
        (outer, how): (u32, u32),
        waits: (u64, u64, u64),
    ) {
        let mut stats: HeldWaitStats = zeroed();
        stats.head = head::<HeldWaitStats>(Entry::HELD_WAIT, lock, role);
        (stats.outer, stats.how) = (outer, how);
        (stats.count, stats.waited, stats.longest_wait) = (waits.0.into(), waits.1.into(), waits.1.into());
        stats.blocked = waits.2.into();
        self.entry(thread, bytes_of(&stats));
    }

    /// A thread's acquisitions of a lock with another one held: how many, ticks waited, ticks held.
    pub fn nest(
        &mut self,
        thread: u32,
        lock: u32,
        role: Role,
        (outer, outer_role): (u32, Role),
        (count, waited, held): (u64, u64, u64),
    ) {
        let mut stats: NestStats = zeroed();
        stats.head = head::<NestStats>(Entry::NEST, lock, role);
        (stats.outer, stats.outer_role) = (outer, outer_role as u32);
        (stats.count, stats.waited, stats.held) = (count.into(), waited.into(), held.into());
        self.entry(thread, bytes_of(&stats));
    }

    /// A thread's acquisitions over time, in parts of `1 << shift` µs.
    pub fn activity(&mut self, thread: u32, shift: u32, number: impl Fn(u64) -> u32) {
        let mut strip: Strip = zeroed();
        strip.shift = shift.into();
        for (at, part) in (0..).zip(&mut strip.waited) {
            *part = number(at).into();
        }
        let at = thread as usize * size_of::<Thread>() + offset_of!(Thread, activity);
        self.threads[at..at + size_of::<Strip>()].copy_from_slice(bytes_of(&strip));
    }

    fn entry(&mut self, thread: u32, entry: &[u8]) {
        const START: usize = offset_of!(Segment, entries);
        let latest = &mut self.latest[thread as usize];
        let (number, used) = match *latest {
            Some((number, used)) if used + entry.len() <= SEGMENT_BYTES => (number, used),
            before => {
                let number = u32::try_from(self.segments.len() / SEGMENT_BYTES).expect("few");
                self.segments.extend_from_slice(&(thread + 1).to_le_bytes());
                self.segments.extend_from_slice(&before.map_or(NONE, |(number, _)| number).to_le_bytes());
                self.segments.resize((number as usize + 1) * SEGMENT_BYTES, 0);
                (number, START)
            }
        };
        let at = number as usize * SEGMENT_BYTES + used;
        self.segments[at..at + entry.len()].copy_from_slice(entry);
        *latest = Some((number, used + entry.len()));
    }

    /// The file.
    #[must_use]
    pub fn bytes(mut self) -> Vec<u8> {
        let regions = [
            (RegionId::Locks, &self.locks),
            (RegionId::Stacks, &self.stacks),
            (RegionId::Threads, &self.threads),
            (RegionId::Segments, &self.segments),
            (RegionId::Maps, &self.maps),
            (RegionId::Text, &self.text),
            (RegionId::Slow, &Vec::new()),
        ];
        let mut bytes = vec![0; HEADER_BYTES];
        for (id, content) in regions {
            let (capacity, stride) = REGIONS[id as usize];
            let region = &mut self.header.regions[id as usize];
            region.stride = u32::try_from(stride).expect("small");
            region.capacity = u32::try_from(capacity).expect("few");
            region.used = u32::try_from(content.len() / stride).expect("few").into();
            for (number, record) in content.chunks(stride).enumerate() {
                let (unit, within) = id.unit_of(u32::try_from(number).expect("few"));
                let piece = Piece::with(id, unit).expect("few");
                let page = self.header.pieces[piece.number].get_mut();
                if *page == 0 {
                    *page = u32::try_from(bytes.len() / PAGE).expect("few");
                    bytes.resize(bytes.len() + piece.units * id.unit_pages() * PAGE, 0);
                }
                let at = (*page as usize + (unit - piece.first) * id.unit_pages()) * PAGE + within;
                bytes[at..at + record.len()].copy_from_slice(record);
            }
        }
        self.header.end = u32::try_from(bytes.len() / PAGE).expect("few").into();
        let header = bytes_of(&*self.header);
        bytes[..header.len()].copy_from_slice(header);
        bytes
    }

    /// Writes the file into `directory`; its path.
    ///
    /// # Errors
    /// As the system has them.
    pub fn write(self, directory: &Path) -> io::Result<PathBuf> {
        let start = self.header.start_realtime / 1_000_000;
        let path = directory.join(format!("{}-{start}.{EXTENSION}", self.header.pid));
        fs::write(&path, self.bytes())?;
        Ok(path)
    }
}

fn push<T: Plain>(region: &mut Vec<u8>, record: &T) -> u32 {
    region.extend_from_slice(bytes_of(record));
    u32::try_from(region.len() / size_of::<T>() - 1).expect("few")
}

fn head<T>(kind: u32, lock: u32, role: Role) -> Head {
    Head { kind: kind.into(), bytes: u32::try_from(size_of::<T>()).expect("small"), lock, role: role as u32 }
}
