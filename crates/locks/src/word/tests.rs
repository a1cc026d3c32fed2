//! Every combination of flags with every kind of hold: the transitions, exhaustively.

use super::*;

const WANTS: [Want; 8] = [
    Want::Read,
    Want::ReadAgain,
    Want::ReadBehindWaiters,
    Want::Write,
    Want::Upgradable,
    Want::Upgrade,
    Want::Lock,
    Want::WriteFirst,
];

/// Every combination of flags with every kind of hold.
fn words() -> impl Iterator<Item = u32> {
    let holds = [0, UNIT, 2 * UNIT, UPGRADE, UPGRADE | UNIT, write_hold(1), write_hold(MAX_COUNT)];
    // G1: no writer holds the lock while readers may be in slots.
    let exists = |word: &u32| !(has_slots(*word) && is_write_held(*word));
    (0..=FLAGS | SLOTS)
        .filter(|bits| bits & !(FLAGS | SLOTS) == 0)
        .flat_map(move |flags| holds.into_iter().map(move |hold| flags | hold))
        .filter(exists)
}

#[test]
fn taking_keeps_flags_and_changes_the_hold() {
    for word in words() {
        for want in WANTS {
            if fits(word, want) {
                let new = taken(word, want, 7);
                assert_eq!(new & (FLAGS | SLOTS), word & (FLAGS | SLOTS), "{word:#x} {want:?}");
                assert_ne!(new & HOLD, word & HOLD, "{word:#x} {want:?}");
                assert!(
                    !fits(new, Want::Write),
                    "{word:#x} {want:?}: a writer gets in beside another holder"
                );
            }
        }
    }
}

/// X1, and what glibc writes to mutexes and read-write locks.
#[test]
fn no_step_leads_to_a_glibc_owned_word() {
    for word in words() {
        for want in WANTS {
            assert!(!fits(word, want) || !is_glibc_owned(taken(word, want, 1)), "{word:#x} {want:?}");
        }
        for announced in [Announced::None, Announced::Spinner, Announced::Waking, Announced::Unmarked] {
            assert!(!is_glibc_owned(withdraw(word, announced)), "{word:#x} {announced:?}");
        }
        if is_write_held(word) {
            assert!(!is_glibc_owned(released(word, Release::Write)), "{word:#x}");
        }
    }
    for glibcs in [1, 2, 3] {
        assert!(is_glibc_owned(glibcs) && owner(glibcs) == 0 && readers(glibcs) == 0, "{glibcs}");
        assert!(WANTS.iter().all(|&want| !fits(glibcs, want)), "{glibcs}");
    }
    for readers in 1..16 {
        assert!(is_of_glibcs_readers(8 * readers), "{readers}");
    }
    // Alongside a writer of ours, glibc's writers and readers leave a mark, or nothing.
    assert_eq!(write_hold(1) | 2, write_hold(1));
    assert!((1..4).all(|readers| is_glibc_owned(write_hold(1) + 8 * readers)));
}

#[test]
fn a_writer_is_alone() {
    for word in words().filter(|&word| is_write_held(word)) {
        assert!(WANTS.iter().all(|&want| !fits(word, want)), "{word:#x}");
        assert_ne!(owner(word), 0);
    }
}

#[test]
fn releasing_undoes_taking() {
    for word in words() {
        for (want, release) in [
            (Want::Read, Release::Read),
            (Want::Write, Release::Write),
            (Want::Upgradable, Release::Upgradable),
        ] {
            if fits(word, want) {
                assert_eq!(released(taken(word, want, 9), release), word, "{word:#x} {want:?}");
            }
        }
    }
}

#[test]
fn admission_is_never_wider_than_room() {
    for word in words() {
        for want in WANTS {
            assert!(fits(word, want) || !admits(word, want), "{word:#x} {want:?}");
        }
        assert!(!admits(word, Want::Read) || admits(word, Want::ReadAgain));
        assert!(!admits(word, Want::ReadBehindWaiters) || admits(word, Want::Read));
    }
}

#[test]
fn readers_stop_at_the_last_count() {
    assert!(fits((MAX_READERS - 1) * UNIT, Want::Read));
    assert!(!fits(MAX_READERS * UNIT, Want::Read));
}

#[test]
fn a_starved_head_is_handed_the_lock_whatever_spins_or_returns() {
    for word in words().filter(|&word| has_waiters(word) && wants_handoff(word)) {
        for (release, holds) in [
            (Release::Write, is_write_held(word)),
            (Release::Read, readers(word) > 0),
            (Release::Upgradable, is_upgradable_held(word)),
        ] {
            let after = || released(word, release);
            if holds && !is_held(after()) {
                assert!(needs_wake_pass(word, after(), release, true), "{word:#x} {release:?}");
            }
        }
    }
}

#[test]
fn readers_come_in_beside_a_starved_head_only_in_a_pause() {
    for word in words().filter(|&word| has_waiters(word) && wants_handoff(word)) {
        assert_eq!(admits(word, Want::Read), fits(word, Want::Read) && is_timed(word), "{word:#x}");
        assert!(!admits(word, Want::ReadBehindWaiters) && !invites(word, Want::Read), "{word:#x}");
    }
}

/// Without a promise, a free lock is for the first that comes; else one writer that sleeps makes all others
/// sleep behind it.
#[test]
fn a_reader_behind_waiters_does_not_join_readers_past_them() {
    for word in words().filter(|&word| fits(word, Want::ReadBehindWaiters)) {
        let joins = is_held(word) && word & (WAITERS | WAKING) != 0;
        let is_free = !is_held(word) && !wants_handoff(word);
        let admitted = admits(word, Want::ReadBehindWaiters);
        assert!(!(joins && admitted) && (admitted || !is_free), "{word:#x}");
    }
}

/// U1: with a real-time head, no release that makes room relies on a thread that was woken, or on a spinner.
#[test]
fn a_release_that_makes_room_services_a_realtime_head() {
    for word in words().filter(|&word| has_waiters(word)) {
        let led = led_by_realtime(word);
        assert!(!is_waking(led) && !is_timed(led) && wants_handoff(led) == wants_handoff(word), "{word:#x}");
        for (release, holds) in [(Release::Write, is_write_held(word)), (Release::Read, readers(word) == 1)] {
            let after = || released(led, release);
            if holds {
                assert!(needs_wake_pass(led, after(), release, true), "{word:#x} {release:?}");
            }
        }
    }
    let held = WAITERS | WAKING | write_hold(1);
    assert!(!needs_wake_pass(held, released(held, Release::Write), Release::Write, false));
}

#[test]
fn a_release_that_opens_nothing_needs_no_wake_pass() {
    let held = WAITERS | TIMED | (2 * UNIT);
    assert!(!needs_wake_pass(held, released(held, Release::Read), Release::Read, false));
    assert!(needs_wake_pass(held & !TIMED, released(held & !TIMED, Release::Read), Release::Read, false));
    assert!(needs_wake_pass(held | UPGRADE, held, Release::Upgradable, false));
}
