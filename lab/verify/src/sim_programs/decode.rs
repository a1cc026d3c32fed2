//! The words of locks in a reader's terms.

use spinpark_sim::check::Field;

fn hex(value: u32) -> String {
    format!("{value:#x}")
}

/// What the lock word of our locks has besides the holder.
pub(super) fn flags(value: u32) -> u32 {
    value & 0x3e4
}

/// The lock word of our locks: see `word.rs` of `spinpark_locks`.
pub(super) fn word(value: u32) -> String {
    const FLAGS: [(u32, &str); 6] =
        [(7, "WAITERS"), (8, "WAKING"), (5, "HANDOFF"), (6, "TIMED"), (2, "SPINNER"), (9, "SLOTS")];
    let count = value >> 10;
    let hold = match (value & 3 != 0, value & 1 << 3 != 0, count) {
        (true, _, owner) => format!("held by {}", owner.wrapping_sub(1)),
        (false, false, 0) => "free".to_owned(),
        (false, true, 0) => "upgradable".to_owned(),
        (false, false, readers) => format!("{readers} readers"),
        (false, true, readers) => format!("upgradable, {readers} readers"),
    };
    let flags = FLAGS.iter().filter(|(bit, _)| value & 1 << bit != 0);
    let flags: Vec<_> = flags.map(|(_, flag)| *flag).collect();
    if flags.is_empty() { format!("[{hold}]") } else { format!("[{hold}; {}]", flags.join(" ")) }
}

/// The queue lock of our locks.
fn queue(value: u32) -> String {
    let state = match value & 3 {
        0 => "free",
        1 => "LOCKED",
        3 => "LOCKED QUEUED",
        _ => "QUEUED",
    };
    let contended = if value & 4 != 0 { " CONTENDED" } else { "" };
    let asked = if value & 16 != 0 { " ASKED" } else { "" };
    let pins = if value >> 5 & 0x1f != 0 { " PINNED" } else { "" };
    let served = if value & 8 != 0 { " SERVED" } else { "" };
    let sleepers = if value & 1 << 10 != 0 { " PINS_SLEEPERS" } else { "" };
    format!("[{state}{contended}{served}{asked}{pins}{sleepers}]")
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
    use super::*;

    #[test]
    fn words_are_told() {
        assert_eq!(word(0), "[free]");
        assert_eq!(word(3 << 10 | 3 | 1 << 7), "[held by 2; WAITERS]");
        assert_eq!(word(2 << 10 | 1 << 3 | 1 << 9), "[upgradable, 2 readers; SLOTS]");
        assert_eq!(queue(7), "[LOCKED QUEUED CONTENDED]");
        assert_eq!(queue(49), "[LOCKED ASKED PINNED]");
        assert_eq!(queue(12), "[free CONTENDED SERVED]");
        assert_eq!(queue(51 | 1 << 10), "[LOCKED QUEUED ASKED PINNED PINS_SLEEPERS]");
    }
}
