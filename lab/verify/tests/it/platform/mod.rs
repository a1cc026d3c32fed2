//! One conformance test for every platform here: Linux, Loom, the simulator.
//!
//! | file | what it has |
//! |---|---|
//! | `machine.rs` | [`Machine`](machine::Machine): how to run threads on a platform; the machines |
//! | `futex.rs`, `memory.rs`, … | the contract: a file for each trait, of the trait's name |
//! | `policies.rs` | the contract of the traits that guess: owners, spins, what is learnt, events; and of the layout |
//! | `beyond.rs` | what only Loom does |

mod barrier;
mod beyond;
mod clocks;
mod futex;
mod machine;
mod memory;
mod policies;
mod read_holds;
mod reader_slots;
mod threads;

use machine::{Contract, Machine, OnLinux, OnLoom, OnLoomWithoutSteps, OnSim, OnSimWithoutSteps};

/// Checks every item of the contract on a machine, as tests in a module of that name.
macro_rules! conforms {
    ($($name:ident: $machine:ty),* $(,)?) => {$(
        mod $name {
            use super::*;
            conforms! { @items $machine:
                // futex.rs
                a_wait_on_another_value_returns_at_once,
                a_deadline_that_has_passed_ends_a_wait_at_once,
                a_deadline_ends_a_wait_and_not_before,
                a_span_ends_a_wait_and_not_before,
                a_change_and_a_wake_reach_a_waiter,
                wakes_are_counted,
                a_key_may_be_stale,
                a_sleeper_is_moved,
                a_move_compares,
                an_operation_comes_with_a_wake,
                an_operation_wakes_on_its_word_if_its_condition_holds,
                // threads.rs, read_holds.rs, clocks.rs
                tokens_name_threads,
                read_locks_are_remembered,
                time_does_not_go_back,
                // memory.rs
                atomics_do_what_they_say,
                a_cell_goes_with_its_word,
                of_two_that_fence_one_sees_the_other,
                // barrier.rs
                a_release_says_what_it_did,
                a_guard_keeps_a_release_from_storing,
                a_release_publishes,
                nothing_is_stored_after_a_asymmetric_barrier,
                // reader_slots.rs
                a_slot_names_the_lock_until_its_reader_leaves,
                revoking_a_bias_moves_its_readers,
                a_slot_of_a_lock_that_was_there_before_is_disowned,
                a_slot_is_found_behind_counted_holds,
                no_reader_comes_or_leaves_after_a_asymmetric_barrier,
                // policies.rs
                an_owner_without_a_name_is_not_known,
                spins_end,
                an_acquisition_is_of_one_lock,
                an_event_is_only_told,
                padding_is_zero,
            }
        }
    )*};
    (@items $machine:ty: $($item:ident),* $(,)?) => {$(
        #[test]
        fn $item() {
            <$machine>::run(Contract::<$machine>::$item);
        }
    )*};
}

conforms! {
    linux: OnLinux,
    loom_: OnLoom,
    loom_without_steps: OnLoomWithoutSteps,
    sim: OnSim,
    sim_without_steps: OnSimWithoutSteps,
}
