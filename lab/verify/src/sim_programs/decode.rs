//! The words of locks in a reader's terms.

use spinpark_locks::bits::queue_lock::{ASKED, CONTENDED, LOCKED, PINS, PINS_SLEEPERS, SERVED, SLEEPERS};
use spinpark_locks::bits::word::{
    FLAGS, HANDOFF, SLOTS, SPINNER, TIMED, UNIT, UPGRADE, WAITERS, WAKING, WRITER,
};
use spinpark_sim::check::Field;

fn hex(value: u32) -> String {
    format!("{value:#x}")
}

/// What the lock word of our locks has besides the holder.
pub(super) fn flags(value: u32) -> u32 {
    value & (FLAGS | SLOTS)
}

/// The lock word of our locks: see `word.rs` of `spinpark_locks`.
pub(super) fn word(value: u32) -> String {
    const SHOWN: [(u32, &str); 6] = [
        (WAITERS, "WAITERS"),
        (WAKING, "WAKING"),
        (HANDOFF, "HANDOFF"),
        (TIMED, "TIMED"),
        (SPINNER, "SPINNER"),
        (SLOTS, "SLOTS"),
    ];
    let count = value / UNIT;
    let hold = match (value & WRITER != 0, value & UPGRADE != 0, count) {
        (true, _, owner) => format!("held by {}", owner.wrapping_sub(1)),
        (false, false, 0) => "free".to_owned(),
        (false, true, 0) => "upgradable".to_owned(),
        (false, false, readers) => format!("{readers} readers"),
        (false, true, readers) => format!("upgradable, {readers} readers"),
    };
    let flags = SHOWN.iter().filter(|(bit, _)| value & bit != 0);
    let flags: Vec<_> = flags.map(|(_, flag)| *flag).collect();
    if flags.is_empty() { format!("[{hold}]") } else { format!("[{hold}; {}]", flags.join(" ")) }
}

/// The queue lock of our locks.
fn queue(value: u32) -> String {
    let state = match (value & LOCKED != 0, value & SLEEPERS != 0) {
        (false, false) => "free",
        (true, false) => "LOCKED",
        (true, true) => "LOCKED SLEEPERS",
        (false, true) => "SLEEPERS",
    };
    let shown = [
        (CONTENDED, " CONTENDED"),
        (SERVED, " SERVED"),
        (ASKED, " ASKED"),
        (PINS, " PINNED"),
        (PINS_SLEEPERS, " PINS_SLEEPERS"),
    ];
    let others = shown.iter().filter(|(bits, _)| value & bits != 0).map(|(_, name)| *name);
    format!("[{state}{}]", others.collect::<String>())
}

fn bias(value: u32) -> String {
    if value == 0 { "shut".to_owned() } else { format!("open ({value})") }
}

fn number(value: u32) -> String {
    value.to_string()
}

/// Our mutex.
pub(crate) const MUTEX: &[Field] = &[
    Field { offset: 0, name: "word", decode: word },
    Field { offset: 4, name: "queue", decode: queue },
    Field { offset: 8, name: "head", decode: hex },
];

/// Our read-write lock.
pub(crate) const RWLOCK: &[Field] = &[
    MUTEX[0],
    MUTEX[1],
    MUTEX[2],
    Field { offset: 16, name: "bias", decode: bias },
    Field { offset: 20, name: "reads", decode: number },
];

/// Our condition variable.
pub(crate) const CONDVAR: &[Field] =
    &[Field { offset: 0, name: "waiters", decode: number }, MUTEX[1], MUTEX[2]];

/// A lock that is one word of three states.
pub(crate) const THREE_STATES: &[Field] = &[Field {
    offset: 0,
    name: "state",
    decode: |value| match value {
        0 => "[free]".to_owned(),
        1 => "[held]".to_owned(),
        2 => "[held, with sleepers]".to_owned(),
        other => hex(other),
    },
}];

/// A lock whose layout is the compiler's.
pub(crate) const OPAQUE: &[Field] = &[];

#[cfg(test)]
mod tests {
    use spinpark_locks::bits::queue_lock::PIN;

    use super::*;

    #[test]
    fn words_are_told() {
        assert_eq!(word(0), "[free]");
        assert_eq!(word((3 * UNIT) | WRITER | WAITERS), "[held by 2; WAITERS]");
        assert_eq!(word((2 * UNIT) | UPGRADE | SLOTS), "[upgradable, 2 readers; SLOTS]");
        assert_eq!(queue(LOCKED | SLEEPERS | CONTENDED), "[LOCKED SLEEPERS CONTENDED]");
        assert_eq!(queue(LOCKED | ASKED | PIN), "[LOCKED ASKED PINNED]");
        assert_eq!(queue(CONTENDED | SERVED), "[free CONTENDED SERVED]");
        let all = LOCKED | SLEEPERS | ASKED | PINS | PINS_SLEEPERS;
        assert_eq!(queue(all), "[LOCKED SLEEPERS ASKED PINNED PINS_SLEEPERS]");
    }
}
