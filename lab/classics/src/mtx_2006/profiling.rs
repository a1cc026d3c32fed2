//! The ingredients of document 004's anomaly, each a switch.
//!
//! The message finds 38 % more throughput with profiling compiled in and not enabled, and lists what that
//! changes. Each item is a lock of its own here; [`Profiled`] is all of them, as the kernel option was.
//!
//! | in the message                                          | switch                    | alone            |
//! |---------------------------------------------------------|---------------------------|------------------|
//! | extra reads and writes of the struct                    | [`Profiling::ACCESSES`]   | [`Accesses`]     |
//! | (in the code) a plain counter of the whole machine      | [`Profiling::COUNTS`]     | [`Counter`]      |
//! | an unconditional atomic add per contended attempt       | [`Profiling::ADDS`]       | [`AtomicAdd`]    |
//! | a larger struct                                         | [`Profiling::Padding`]    | [`Larger`]       |
//! | no inlining                                             | [`Profiling::OUTLINES`]   | [`Outlined`]     |
//! | code in the unlock that does not run                    | [`Profiling::RECORDS`]    | –                |
//! | alignment to 0x100                                      | [`Profiling::Padding`]    | [`Aligned`]      |
//! | exponential back-off (its own patch)                    | [`Profiling::BACKS_OFF`]  | [`BackOff`]      |
//! | (to find out) a delay of any length at any place        | [`Profiling::DELAYS`]     | [`Delayed`]      |
//!
//! # In memory
//!
//! | lock                            | size, bytes | aligned to | what it changes                                          |
//! |---------------------------------|-------------|------------|----------------------------------------------------------|
//! | without [`Padding`]             | 4           | 4          |                                                          |
//! | with [`Fields`]                 | 20          | 4          | the owner, and with the add also who waits, writes more  |
//! |                                 |             |            | words of the same line; neighbours stay on it            |
//! | with [`FieldsApart`]            | 144         | 4          | the same, on a line that spinners do not poll            |
//! | [`Larger`]                      | 132         | 4          | what follows the lock is two lines further on: a waiter  |
//! |                                 |             |            | that polls the word no longer takes it from the owner;   |
//! |                                 |             |            | what comes before stays on the word's line               |
//! | [`Aligned`]                     | 256         | 256        | neither neighbour is on the word's line                  |
//!
//! Whether a neighbour is used under the lock is the program's choice. The benchmark's has a counter on each
//! side that the owner changes (`spinpark-lab documents mtx`), all in 24 bytes from the start of a line if
//! nothing is enlarged or aligned. The fields are smaller than the original's, and the original's struct was
//! larger than a line of its machine; so what [`Profiled`] alone changes there by being larger, [`Larger`]
//! alone changes here.
//!
//! What stable Rust cannot say: the alignment of a *function* (the message aligned the object file; a whole
//! program can be built with `-C llvm-args=-align-all-functions=8`), and the exact layout of a function. So
//! [`Aligned`] aligns the struct only. The code that records a hold needs the accesses to decide that it does
//! not run, so it is never alone.

use spinpark_platform::{AtomicU32, Platform};

/// What is compiled into the lock.
pub trait Profiling: Send + Sync + 'static {
    /// What the lock has after its word.
    type Padding<P: Platform>: Padding<P>;
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
    /// Threads are held up where [`Globals::delayed`](super::Globals::delayed) says so.
    const DELAYS: bool = false;
    /// A spinner backs off for longer and longer.
    const BACKS_OFF: bool = false;
    /// CPUs of the machine that the longest delay is for.
    const CPUS: u32 = 2;
}

/// What a lock has after its word: zero is its first value.
pub trait Padding<P: Platform>: Send + Sync {
    /// Nothing has happened.
    fn new() -> Self;

    /// The fields of the profile, if it has them.
    fn fields(&self) -> Option<&Fields<P>> {
        None
    }
}

/// The fields that profiling adds, right behind the lock's word.
pub struct Fields<P: Platform> {
    /// When the owner got the lock, ns modulo 2^32; 0: not timed.
    pub(super) acquired: P::AtomicU32,
    /// Where: the two halves of a name; the numbers mean nothing here.
    pub(super) file: P::AtomicU32,
    pub(super) line: P::AtomicU32,
    /// Contended attempts.
    pub(super) attempts: P::AtomicU32,
}

impl<P: Platform> Padding<P> for Fields<P> {
    fn new() -> Self {
        let word = || AtomicU32::new(0);
        Self { acquired: word(), file: word(), line: word(), attempts: word() }
    }

    #[inline(always)]
    fn fields(&self) -> Option<&Self> {
        Some(self)
    }
}

/// The fields on another cache line than the lock's word. The message does not say where the kernel's lay.
#[repr(C)]
pub struct FieldsApart<P: Platform> {
    _unused: [u32; 31],
    fields: Fields<P>,
}

impl<P: Platform> Padding<P> for FieldsApart<P> {
    fn new() -> Self {
        Self { _unused: [0; 31], fields: Padding::new() }
    }

    #[inline(always)]
    fn fields(&self) -> Option<&Fields<P>> {
        Some(&self.fields)
    }
}

/// Nothing.
#[derive(Debug)]
pub struct Nothing;

impl<P: Platform> Padding<P> for Nothing {
    fn new() -> Self {
        Self
    }
}

/// Unused words: as many as move what follows the lock to other cache lines, by two.
#[derive(Debug)]
pub struct Unused(#[allow(dead_code, reason = "to be large is all it does")] [u32; 32]);

impl<P: Platform> Padding<P> for Unused {
    fn new() -> Self {
        Self([0; 32])
    }
}

/// No words, at an address that is a multiple of 0x100: the lock is as large then, and alone on its lines.
#[derive(Debug)]
#[repr(align(0x100))]
pub struct Align;

impl<P: Platform> Padding<P> for Align {
    fn new() -> Self {
        Self
    }
}

/// A choice of ingredients with a name.
macro_rules! ingredients {
    ($($(#[$about:meta])* $name:ident($padding:ty) { $($switch:ident),* })*) => {$(
        $(#[$about])*
        #[derive(Debug)]
        pub enum $name {}

        impl Profiling for $name {
            type Padding<P: Platform> = $padding;
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
    /// The atomic add per contended attempt, to another line than the word's.
    AtomicAddApart(FieldsApart<P>) { ADDS }
    /// The larger struct.
    Larger(Unused) {}
    /// No inlining.
    Outlined(Nothing) { OUTLINES }
    /// The struct at a multiple of 0x100.
    Aligned(Align) {}
    /// Everything that the option compiles in.
    Profiled(Fields<P>) { ACCESSES, COUNTS, ADDS, OUTLINES, RECORDS }
    /// Everything, with the fields on another line than the word.
    ProfiledApart(FieldsApart<P>) { ACCESSES, COUNTS, ADDS, OUTLINES, RECORDS }
    /// All but the atomic add: "about 5 % slower", says the message.
    ProfiledWithoutAdd(Fields<P>) { ACCESSES, COUNTS, OUTLINES, RECORDS }
    /// The accesses with the bulk of the code gone: "did not help".
    Gutted(Fields<P>) { ACCESSES, OUTLINES }
    /// Delays, and nothing of the option.
    Delayed(Nothing) { DELAYS }
}

/// The message's own patch, without profiling, for a machine of `CPUS` CPUs.
#[derive(Debug)]
pub enum BackOff<const CPUS: u32 = 2> {}

impl<const CPUS: u32> Profiling for BackOff<CPUS> {
    type Padding<P: Platform> = Nothing;
    const BACKS_OFF: bool = true;
    const CPUS: u32 = CPUS;
}
