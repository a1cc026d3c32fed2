//! The ingredients of document 004's anomaly, each a switch.
//!
//! The message finds 38 % more throughput with profiling compiled in and not enabled, and lists what that changes. Each
//! item is a lock of its own here; [`Profiled`] is all of them, as the kernel option was.
//!
//! | in the message                                          | switch                    | alone            |
//! |---------------------------------------------------------|---------------------------|------------------|
//! | extra reads and writes of the struct                    | [`Profiling::ACCESSES`]   | [`Accesses`]     |
//! | (in the code) a plain counter of the whole machine      | [`Profiling::COUNTS`]     | [`Counter`]      |
//! | an unconditional atomic add per contended attempt       | [`Profiling::ADDS`]       | [`AtomicAdd`]    |
//! | a larger struct                                         | [`Profiling::Room`]       | [`Larger`]       |
//! | no inlining                                             | [`Profiling::OUTLINES`]   | [`Outlined`]     |
//! | code in the unlock that does not run                    | [`Profiling::RECORDS`]    | –                |
//! | alignment to 0x100                                      | [`Profiling::Room`]       | [`Aligned`]      |
//! | exponential back-off (its own patch)                    | [`Profiling::BACKS_OFF`]  | [`BackOff`]      |
//!
//! What stable Rust cannot say: the alignment of a *function* (the message aligned the object file; a whole program can be
//! built with `-C llvm-args=-align-all-functions=8`), and the exact layout of a function. So [`Aligned`] aligns the
//! struct only. The code that records a hold needs the accesses to decide that it does not run, so it is never alone.

use spinpark_platform::{AtomicU32, Platform};

/// What is compiled into the lock.
pub trait Profiling: Send + Sync + 'static {
    /// What the lock has beside its word.
    type Room<P: Platform>: Room<P>;
    /// The owner reads and writes three words of the lock when it gets it, and reads one when it releases.
    const ACCESSES: bool = false;
    /// The owner bumps a counter that all locks share, with a load and a store.
    const COUNTS: bool = false;
    /// Each contended attempt adds to a word of the lock, atomically.
    const ADDS: bool = false;
    /// Locking and unlocking are calls.
    const OUTLINES: bool = false;
    /// A hold that is timed is recorded; it is if [`Globals::enable`](super::Globals::enable) was called.
    const RECORDS: bool = false;
    /// A spinner stays away for longer and longer.
    const BACKS_OFF: bool = false;
    /// CPUs of the machine that the longest delay is for.
    const CPUS: u32 = 2;
}

/// What a lock has beside its word: zero is its first value.
pub trait Room<P: Platform>: Send + Sync {
    /// Nothing has happened.
    fn new() -> Self;

    /// The fields of the profile, if there is room for them.
    fn fields(&self) -> Option<&Fields<P>> {
        None
    }
}

/// The fields that profiling adds, on the lock's own line.
pub struct Fields<P: Platform> {
    /// When the owner got the lock, ns modulo 2^32; 0: not timed.
    pub(super) acquired: P::AtomicU32,
    /// Where: the two halves of a name; the numbers mean nothing here.
    pub(super) file: P::AtomicU32,
    pub(super) line: P::AtomicU32,
    /// Contended attempts.
    pub(super) attempts: P::AtomicU32,
}

impl<P: Platform> Room<P> for Fields<P> {
    fn new() -> Self {
        let word = || AtomicU32::new(0);
        Self { acquired: word(), file: word(), line: word(), attempts: word() }
    }

    #[inline(always)]
    fn fields(&self) -> Option<&Self> {
        Some(self)
    }
}

/// Nothing.
#[derive(Debug)]
pub struct Nothing;

impl<P: Platform> Room<P> for Nothing {
    fn new() -> Self {
        Self
    }
}

/// Words that nobody uses: as many as would move a neighbour of the lock to other cache lines.
#[derive(Debug)]
pub struct Unused(#[allow(dead_code, reason = "to be large is all it does")] [u64; 16]);

impl<P: Platform> Room<P> for Unused {
    fn new() -> Self {
        Self([0; 16])
    }
}

/// No words, at an address that is a multiple of 0x100.
#[derive(Debug)]
#[repr(align(0x100))]
pub struct Align;

impl<P: Platform> Room<P> for Align {
    fn new() -> Self {
        Self
    }
}

/// A choice of ingredients with a name.
macro_rules! ingredients {
    ($($(#[$about:meta])* $name:ident($room:ty) { $($switch:ident),* })*) => {$(
        $(#[$about])*
        #[derive(Debug)]
        pub enum $name {}

        impl Profiling for $name {
            type Room<P: Platform> = $room;
            $(const $switch: bool = true;)*
        }
    )*};
}

ingredients! {
    /// The mutex as it was without the option.
    Absent(Nothing) {}
    /// The extra reads and writes of the struct.
    Accesses(Fields<P>) { ACCESSES }
    /// The counter of the whole machine.
    Counter(Nothing) { COUNTS }
    /// The atomic add per contended attempt.
    AtomicAdd(Fields<P>) { ADDS }
    /// The larger struct.
    Larger(Unused) {}
    /// No inlining.
    Outlined(Nothing) { OUTLINES }
    /// The struct at a multiple of 0x100.
    Aligned(Align) {}
    /// Everything that the option compiles in.
    Profiled(Fields<P>) { ACCESSES, COUNTS, ADDS, OUTLINES, RECORDS }
    /// All but the atomic add: "about 5 % slower", says the message.
    ProfiledWithoutAdd(Fields<P>) { ACCESSES, COUNTS, OUTLINES, RECORDS }
    /// The accesses with the bulk of the code gone: "did not help".
    Gutted(Fields<P>) { ACCESSES, OUTLINES }
}

/// The message's own patch, without profiling, for a machine of `CPUS` CPUs.
#[derive(Debug)]
pub enum BackOff<const CPUS: u32 = 2> {}

impl<const CPUS: u32> Profiling for BackOff<CPUS> {
    type Room<P: Platform> = Nothing;
    const BACKS_OFF: bool = true;
    const CPUS: u32 = CPUS;
}
