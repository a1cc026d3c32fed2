//! The lock word: 32 bits for a lock's holders and for the state of its queue. Pure functions on values.
//!
//! # State
//!
//! | bits  | name      | meaning                                            | set by                      | cleared by                   |
//! |-------|-----------|----------------------------------------------------|-----------------------------|------------------------------|
//! | 0–1   | `WRITER`  | both: held for writing (a mutex is always so       | an acquisition; a hand-over | a release                    |
//! |       |           | held); one alone is glibc-owned (X1)               | (T6)                        |                              |
//! | 2     | `SPINNER` | a thread spins: a head that keeps its own time     | a spinner that sees waiters | that spinner; by accident a  |
//! |       |           | (`TIMED`) needs no wake                            | or readers                  | plain release (A2)           |
//! | 3     | `UPGRADE` | held upgradably, alongside readers                 | an acquisition; a grant     | a release or an upgrade      |
//! | 4     | `SPARE`   | a glibc-owned hold (X1)                            | no step of ours             | no step of ours              |
//! | 5     | `HANDOFF` | reserved for a waiter; held: by the head, which    | Q; a release that sees or   | Q; to take the promise; a    |
//! |       |           | starved (*a request*); free: for one that was      | sets `WAKING` (H4)          | woken waiter that leaves; H2 |
//! |       |           | woken (*a promise*)                                |                             |                              |
//! | 6     | `TIMED`   | the head keeps its own time, until which others    | Q; not along with `WAKING`  | Q; with a promise that is    |
//! |       |           | may pass it: it was woken and lost, or backs off;  |                             | taken, or a request that a   |
//! |       |           | along with a request: readers pass it (*a pause*)  |                             | release ends                 |
//! | 7     | `WAITERS` | the queue is not empty                             | Q                           | Q                            |
//! | 8     | `WAKING`  | one waiter was woken and has not settled yet       | Q                           | that waiter as it acquires,  |
//! |       |           |                                                    |                             | queues or leaves; L3; U1     |
//! | 9     | `SLOTS`   | readers may be in slots: see [`bias`](crate::bias) | Q                           | Q                            |
//! | 10–31 | count     | `WRITER`: the owner's token; else readers          | an acquisition; a grant     | a release                    |
//!
//! *Q*: under the queue lock. The labels are those of `core`: a real-time thread that leaves its
//! wake pass to another ends a request (H2), a waiter that probes clears a woken one's `WAKING` (L3).
//!
//! Zero is unlocked, without waiters. `WRITER` excludes `UPGRADE`, and `WRITER` implies a count (the owner's
//! token) that is not 0. `WAITERS`, `WAKING`, `HANDOFF`, `TIMED` and `SPINNER` are *flags*: they only say
//! which thread sees to the queue. `WRITER`, `SPARE`, `UPGRADE` and the count are the *hold*.
//!
//! # Glibc-owned words
//!
//! glibc's functions use the same four bytes of a `pthread_mutex_t` and a `pthread_rwlock_t`, if a program
//! reaches them past the drop-in.
//!
//! - **X1** Neither side takes what the other holds. glibc's mutex takes every value but 0 as held. Its
//!   readers wait while both bits of `WRITER` are set, its writers also while there is a count. It writes 1
//!   (held) or 2 (held, or waited for) to a mutex; to a read-write lock 1 or 2 for a writer that waits or has
//!   left, 3 for one that is inside, and 8 for each of its readers. No step of ours but
//!   `give_to_glibc` (X2, X3) writes one bit of `WRITER` alone, both without an owner's token, or `SPARE`. Such a word is a hold without a name: no
//!   thread of ours acquires, and none marks it ([`is_glibc_owned`]). One to 15 of glibc's readers are
//!   `UPGRADE`, `SPARE`, or a request of no waiter ([`is_of_glibcs_readers`]).

/// What glibc writes to a mutex that is held and waited for, or may be.
pub const GLIBCS_CONTENDED: u32 = 2;
/// A thread spins, and takes the lock instead of a head that is `TIMED`. A hint: a release that wipes it out
/// costs a wake-up at most, see A2 in `core`.
pub const SPINNER: u32 = 1 << 2;
/// Held by one upgradable reader, alongside the readers in the count.
pub const UPGRADE: u32 = 1 << 3;
/// Held by one writer, whose token is the count. Two bits: see X1.
pub const WRITER: u32 = 3;
/// Set only by other code (X1).
pub const SPARE: u32 = 1 << 4;
/// The lock is reserved for a waiter: the head, or, of a free lock, one that was woken.
pub const HANDOFF: u32 = 1 << 5;
/// The head of the queue keeps its own time, until which others may pass it.
pub const TIMED: u32 = 1 << 6;
/// The queue is not empty.
pub const WAITERS: u32 = 1 << 7;
/// One waiter was woken and has neither acquired, queued again nor left.
pub const WAKING: u32 = 1 << 8;
/// Readers may be in slots.
pub const SLOTS: u32 = 1 << 9;
/// One reader, or 1 in an owner's token.
pub const UNIT: u32 = 1 << COUNT_SHIFT;

const COUNT_SHIFT: u32 = 10;
/// Everything that says which thread sees to the queue.
pub const FLAGS: u32 = WAITERS | WAKING | HANDOFF | TIMED | SPINNER;
/// Everything that says who holds the lock.
pub const HOLD: u32 = !(FLAGS | SLOTS);
/// The largest token.
pub const MAX_COUNT: u32 = u32::MAX >> COUNT_SHIFT;
/// Most readers that may be counted at a time. The rest of the count is for readers that come out of slots
/// all at once (`Platform::MOST_SLOT_READERS`).
pub(crate) const MAX_READERS: u32 = MAX_COUNT - (1 << 20);

const _: () =
    assert!(HOLD == WRITER | SPARE | UPGRADE | (MAX_COUNT << COUNT_SHIFT), "hold and flags do not overlap");

/// What a thread wants of a lock. The numbers are for debuggers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Want {
    /// Alongside other readers; waits behind a writer that starved.
    Read,
    /// As `Read`, by a thread that may hold a read lock already: never waits behind a writer that waits.
    ReadAgain,
    /// As `Read`, of a lock that prefers writers: waits behind all waiters.
    ReadBehindWaiters,
    /// Alone.
    Write,
    /// Alongside readers, but not alongside another upgradable one or a writer.
    Upgradable,
    /// From upgradable to alone.
    Upgrade,
    /// As `Write`, of a mutex.
    Lock,
    /// As `Write`, of a lock that prefers writers: it queues at once behind readers, and the last of those leaves
    /// the lock to one that is awake, or has waited for long.
    WriteFirst,
}

impl Want {
    /// Whether no other thread may hold the lock.
    pub(crate) const fn is_exclusive(self) -> bool {
        matches!(self, Self::Write | Self::WriteFirst | Self::Lock | Self::Upgrade)
    }

    /// As `is_exclusive`, from nothing.
    pub(crate) const fn is_write(self) -> bool {
        matches!(self, Self::Write | Self::WriteFirst | Self::Lock)
    }

    pub(crate) const fn is_read(self) -> bool {
        matches!(self, Self::Read | Self::ReadAgain | Self::ReadBehindWaiters)
    }

    /// Whether a reader inside may depend on such a reader: so it does not wait for writers without end (H3
    /// in `core`).
    pub(crate) const fn joins_readers(self) -> bool {
        matches!(self, Self::Read | Self::ReadAgain)
    }
}

pub(crate) const fn has_waiters(word: u32) -> bool {
    word & WAITERS != 0
}

pub(crate) const fn is_waking(word: u32) -> bool {
    word & WAKING != 0
}

pub(crate) const fn wants_handoff(word: u32) -> bool {
    word & HANDOFF != 0
}

pub(crate) const fn is_timed(word: u32) -> bool {
    word & TIMED != 0
}

/// The word without a request, and without the pause of one.
pub(crate) const fn without_request(word: u32) -> u32 {
    word & !(HANDOFF | TIMED)
}

/// The word as it is for a real-time head: that is left to no thread that was woken, and keeps no time of its
/// own (U1 in `core`).
pub(crate) const fn led_by_realtime(word: u32) -> u32 {
    word & !(WAKING | TIMED)
}

pub(crate) const fn has_spinner(word: u32) -> bool {
    word & SPINNER != 0
}

pub(crate) const fn is_held(word: u32) -> bool {
    word & HOLD != 0
}

/// By a writer of ours, or by other code (X1).
pub(crate) const fn is_write_held(word: u32) -> bool {
    word & WRITER != 0
}

/// X1: whether other code has written the word.
pub(crate) const fn is_glibc_owned(word: u32) -> bool {
    let code = word & WRITER;
    word & SPARE != 0 || (code != 0 && (code != WRITER || word >> COUNT_SHIFT == 0 || word & UPGRADE != 0))
}

/// X1: whether readers of glibc's are counted in the word of a lock that is never held upgradably.
pub(crate) const fn is_of_glibcs_readers(word: u32) -> bool {
    word & (UPGRADE | SPARE) != 0 || (word & (HANDOFF | TIMED) != 0 && word & (WAITERS | WAKING) == 0)
}

pub(crate) const fn is_upgradable_held(word: u32) -> bool {
    word & UPGRADE != 0
}

/// The token of the writer, or 0 if no writer holds a lock whose word this is.
pub const fn owner(word: u32) -> u32 {
    if is_write_held(word) {
        word >> COUNT_SHIFT
    } else {
        0
    }
}

/// How many readers hold the lock.
pub(crate) const fn readers(word: u32) -> u32 {
    if is_write_held(word) {
        0
    } else {
        word >> COUNT_SHIFT
    }
}

/// Whether readers may be in slots.
pub(crate) const fn has_slots(word: u32) -> bool {
    word & SLOTS != 0
}

/// Whether the bias may be enabled: it is revoked, there are no waiters, and no writer holds the lock (G1 in
/// `bias`).
pub(crate) const fn may_enable_bias(word: u32) -> bool {
    word & (FLAGS | SLOTS | WRITER) == 0
}

/// The hold of the writer `token`: what its thread writes into a free lock.
#[must_use]
pub const fn write_hold(token: u32) -> u32 {
    token << COUNT_SHIFT | WRITER
}

/// Whether the present holds leave room for `want`, whichever threads wait.
pub(crate) const fn fits(word: u32, want: Want) -> bool {
    match want {
        Want::Read | Want::ReadAgain | Want::ReadBehindWaiters => {
            !is_write_held(word) && readers(word) < MAX_READERS
        }
        Want::Write | Want::WriteFirst | Want::Lock => !is_held(word) && !has_slots(word),
        Want::Upgradable => !is_write_held(word) && !is_upgradable_held(word),
        Want::Upgrade => word & (HOLD | SLOTS) == UPGRADE,
    }
}

/// The flags of `word` that keep a thread out that is not in the queue: the lock is owed to a thread that
/// waits.
const fn owed(word: u32, want: Want) -> u32 {
    match want {
        // Alongside readers, a waiter comes first: a writer, or a reader behind one. A free lock is for the
        // first thread that takes it, as it is for writers, unless it is promised: to leave it to a woken
        // waiter each time would send all others to sleep behind that one.
        Want::ReadBehindWaiters if is_held(word) => word & (HANDOFF | WAITERS | WAKING),
        // An empty lock with HANDOFF is promised to a waiter, or about to be (H1 in `core`).
        Want::ReadAgain | Want::Upgrade => 0,
        _ => word & HANDOFF,
    }
}

/// Whether a thread that is not in the queue may take the lock now: there is room, and no waiter is owed it,
/// or the head makes a pause (H3 in `core`).
pub(crate) const fn admits(word: u32, want: Want) -> bool {
    // A reader behind waiters does not use the pause: no reader inside waits for it.
    let uses = !want.is_exclusive() && !matches!(want, Want::ReadBehindWaiters);
    let paused = if is_timed(word) && uses { HANDOFF } else { 0 };
    fits(word, want) && owed(word, want) & !paused == 0
}

/// Whether a reader that comes now delays no writer: it is admitted, and no writer has starved or waits awake
/// for the readers to go.
pub(crate) const fn invites(word: u32, want: Want) -> bool {
    fits(word, want) && owed(word, want) == 0 && word & (HANDOFF | SPINNER) == 0
}

/// Whether a thread that cannot have the lock queues at once, where others spin. It prefers writers, and readers
/// are inside: a writer does, so that no reader that comes from now on joins them; and so does a reader that
/// waits for a waiter, which waits for readers.
pub(crate) const fn queues_at_once(word: u32, want: Want) -> bool {
    readers(word) > 0
        && match want {
            Want::WriteFirst => true,
            Want::ReadBehindWaiters => has_waiters(word),
            _ => false,
        }
}

/// The word after `token` took what it wants; `fits(word, want)`.
pub(crate) const fn taken(word: u32, want: Want, token: u32) -> u32 {
    match want {
        Want::Read | Want::ReadAgain | Want::ReadBehindWaiters => word + UNIT,
        Want::Write | Want::WriteFirst | Want::Lock => word | write_hold(token),
        Want::Upgradable => word | UPGRADE,
        Want::Upgrade => (word & !UPGRADE) | write_hold(token),
    }
}

/// Whether the lock is free, but kept for a waiter that was woken for it.
pub(crate) const fn is_promised(word: u32) -> bool {
    !is_held(word) && word & (HANDOFF | WAKING) == HANDOFF | WAKING
}

/// Whether waiters rely on a thread that may not run (L3 in `core`): on a waiter that was woken, on a head that
/// keeps its own time or requests the lock of readers, or, of a free lock, on one that was woken without a
/// mark.
pub(crate) const fn relies_on_another(word: u32) -> bool {
    let requests = wants_handoff(word) && !is_write_held(word);
    has_waiters(word) && (is_waking(word) || is_timed(word) || requests || !is_held(word))
}

/// Whether that is a head that keeps its own time, or requests the lock of readers.
pub(crate) const fn relies_on_head(word: u32) -> bool {
    !is_waking(word) && word & (TIMED | HANDOFF) != 0
}

/// Whether readers are admitted past the waiters although none of those keeps a time: readers or an upgradable
/// reader hold the lock, and no waiter has been woken for it, nor requests it.
pub(crate) const fn admits_readers_freely(word: u32) -> bool {
    is_held(word) && !is_write_held(word) && word & (WAKING | TIMED | HANDOFF) == 0
}

/// Whether a thread may take the lock now that need not heed a promise of it: one that was woken for the
/// lock; one that has heeded it for long enough; a real-time thread; a call that does not wait. A request, of
/// a lock that is held, it heeds.
pub(crate) const fn admits_past_promise(word: u32, want: Want) -> bool {
    match want {
        Want::Write | Want::WriteFirst | Want::Lock | Want::Upgrade => fits(word, want),
        _ => fits(word, want) && (!is_held(word) || admits(word, want)),
    }
}

/// [`taken`], which ends the promise of a free lock (H4 in `core`).
pub(crate) const fn taken_as_promised(word: u32, want: Want, token: u32) -> u32 {
    let ends = wants_handoff(word) && !is_held(word);
    taken(if ends { without_request(word) } else { word }, want, token)
}

/// The flag that says that a thread is awake; the thread withdraws it when it acquires, queues or leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Announced {
    /// Nothing.
    None,
    /// It set `SPINNER`.
    Spinner,
    /// It is the waiter for which `WAKING` is set. It may have been cleared since (by a probe, L3 in `core`), or
    /// not be set as a real-time waiter is the head (U1 in `core`).
    Waking,
    /// It is a waiter for which `WAKING` was never set (L4 in `core`). It owes a wake pass, unless it acquires.
    Unmarked,
}

/// The word without the flag that one thread has `announced`.
pub(crate) const fn withdraw(word: u32, announced: Announced) -> u32 {
    match announced {
        Announced::None | Announced::Unmarked => word,
        Announced::Spinner => word & !SPINNER,
        Announced::Waking => {
            let rest = word & !WAKING;
            // A request or promise without any waiter would be left to no thread.
            if has_waiters(rest) {
                rest
            } else {
                without_request(rest)
            }
        }
    }
}

/// Whether the flags are set that a release must not wipe out (A1 in `core`).
pub(crate) const fn is_marked(word: u32) -> bool {
    word & (WAITERS | WAKING) != 0
}

/// Whether the step from `before` to `after` marks a lock whose writer may be about to release it by a plain
/// store, and so wipe the mark out (A1 in `core`).
pub(crate) const fn marks_in_passing(before: u32, after: u32) -> bool {
    is_marked(after) && !is_marked(before) && is_write_held(before)
}

/// A hold that a thread gives up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Release {
    /// The writer's.
    Write,
    /// The writer's, before it waits for something else.
    WriteToWait,
    /// One reader's.
    Read,
    /// The upgradable reader's.
    Upgradable,
}

/// The word after the release; flags stay.
pub(crate) const fn released(word: u32, release: Release) -> u32 {
    match release {
        Release::Write | Release::WriteToWait => word & FLAGS,
        Release::Read => word - UNIT,
        Release::Upgradable => word & !UPGRADE,
    }
}

/// Whether `word` has nothing but the hold `release` and others of its kind: no flags, and nothing of glibc's
/// (X1).
pub(crate) const fn is_mere_hold(word: u32, release: Release) -> bool {
    match release {
        Release::Write | Release::WriteToWait => word & (FLAGS | UPGRADE | SPARE) == 0 && word >= UNIT,
        Release::Read | Release::Upgradable => word & (FLAGS | WRITER | SPARE) == 0,
    }
}

/// Whether the thread that turns `word` into `after` by a release must make a wake pass as it does so.
///
/// `comes_back`: the releasing thread is about to acquire the lock again, as it has done lately.
///
/// Not if there are no waiters; nor if readers stay and the head keeps its own time; nor if a thread that is
/// awake sees to it: the woken waiter, or a spinner while the head keeps its own time (document 002: one
/// waker). A head that starved is served whatever spins. For a head that neither keeps its time nor has
/// starved, a wake pass is made also when readers stay: else a stream of readers whose holds overlap would
/// never wake a writer.
pub(crate) const fn needs_wake_pass(word: u32, after: u32, release: Release, comes_back: bool) -> bool {
    let opens =
        readers(after) == 0 || matches!(release, Release::Upgradable) || word & (TIMED | HANDOFF) == 0;
    has_waiters(word) && opens && (wants_handoff(word) || !is_left_to_others(word, comes_back))
}

/// Whether a head that did not starve is left to a thread that is awake: the woken waiter, or a spinner or
/// the releasing thread while the head keeps its own time.
pub(crate) const fn is_left_to_others(word: u32, comes_back: bool) -> bool {
    is_waking(word) || (is_timed(word) && (has_spinner(word) || comes_back))
}

#[cfg(test)]
mod tests;
