//! How a mutant is found, and why.

use spinpark_sim::Failure;
use spinpark_verify::Breaks;
use spinpark_verify::sim_programs::{Checker, Failing, Family, families};

/// This binary of tests, for cargo.
pub(crate) const OF_TEST: &str = "-p spinpark-verify --test it";

/// The runs that have to suffice.
const MOST_RUNS: u64 = 100_000;

pub(crate) fn family(name: &str) -> Family {
    *families().iter().find(|family| family.name == name).expect("there is such a family")
}

/// The run that the environment asks for is shown, and there is nothing else to do.
pub(crate) fn is_shown(checker: Checker) -> bool {
    match checker.replay() {
        Some(Err(failing)) => panic!("{failing}"),
        Some(Ok(_)) => true,
        None => false,
    }
}

/// The first run that fails in a way for which `is_right` holds; none, if another one is to be shown.
pub(crate) fn found(
    breaks: Breaks,
    checker: Checker,
    is_right: fn(&Failure) -> bool,
) -> Option<Box<Failing>> {
    let checker = checker.of_test(OF_TEST);
    if is_shown(checker) {
        return None;
    }
    let verdict = checker.judge(0..MOST_RUNS, is_right);
    eprintln!("a mutant that breaks {breaks}: {verdict}");
    Some(verdict.found(breaks))
}

/// Asserts that some run of the mutant fails in a way for which `is_right` holds. Others may fail otherwise: the
/// verdict tells how many.
pub(crate) fn rejected(breaks: Breaks, checker: Checker, is_right: fn(&Failure) -> bool) {
    if let Some(failing) = found(breaks, checker, is_right) {
        assert!(is_right(&failing.failure), "another failure when it was run again:\n{failing}");
    }
}

pub(crate) fn accepted(family: Family) {
    let checker = Checker::new(family).of_test(OF_TEST);
    if !is_shown(checker)
        && let Err(failing) = checker.sweep(0..500)
    {
        panic!("{failing}");
    }
}

pub(crate) fn hangs(failure: &Failure) -> bool {
    matches!(failure, Failure::Deadlock { .. })
}

pub(crate) fn never_ends(failure: &Failure) -> bool {
    matches!(failure, Failure::Endless { .. } | Failure::Deadlock { .. })
}

pub(crate) fn corrupts_a_list(failure: &Failure) -> bool {
    !matches!(failure, Failure::Check(_))
}

pub(crate) fn lets_two_in(failure: &Failure) -> bool {
    matches!(failure, Failure::Exclusion { .. } | Failure::Panic { .. })
}

pub(crate) fn uses_what_is_gone(failure: &Failure) -> bool {
    matches!(failure, Failure::UseAfterFree { .. })
}

pub(crate) fn is_unfair(failure: &Failure) -> bool {
    matches!(failure, Failure::Starvation { .. })
}

pub(crate) fn passes_a_request(failure: &Failure) -> bool {
    matches!(failure, Failure::Check(words) if words.contains("past a thread that had requested the lock"))
}

pub(crate) fn leaves_a_flag(failure: &Failure) -> bool {
    matches!(failure, Failure::Check(words) if words.contains("a flag was left behind"))
}

pub(crate) fn is_out_of_order(failure: &Failure) -> bool {
    matches!(failure, Failure::Check(words) if words.starts_with("order"))
}
