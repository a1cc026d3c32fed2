#!/usr/bin/env bash
# Before each commit: format, clippy, unit tests, the profiler's texts, one loom model a lock, twenty POSIX programs. After a change of
# one file of the locks it takes three minutes on two CPUs (Intel Xeon, 2026-11-30), in most crates seven. Everything else is
# `cargo test --workspace`.
set -euo pipefail
cd "$(dirname "$0")/.."

step() { printf '\n-- %s (%d s)\n' "$*" "$SECONDS"; }

step "format"
cargo fmt --all --check

step "clippy"
cargo clippy --workspace --all-targets --locked -- -D warnings

step "unit tests, and the tree"
cargo test --locked --quiet --lib -p spinpark-platform -p spinpark-locks -p spinpark-linux -p spinpark-recorder -p spinpark-profile \
    -p spinpark-measure -p spinpark-demo -p spinpark-cli -p spinpark-tree

step "what the profiler says"
cargo test --locked --quiet -p spinpark-profile --test it

step "a loom model of each lock"
models=(mutex::two_threads rwlock::a_writer_and_two_readers condvar::a_signal_under_the_lock spin_queue::two_that_stay
    mutants_locks::mutex_release_without_release)
# Five models explore little: to optimise 700 of them takes two minutes longer than it saves.
unoptimised='profile.dev.package.spinpark-verify.opt-level=0'
cargo test --config "$unoptimised" --locked --quiet -p spinpark-verify --test it -- "${models[@]}"

step "twenty POSIX programs on the drop-in"
programs=(mutex_kinds mutex_errors mutex_timed mutex_recursion mutex_owner mutex_robust mutex_protocols mutex_pshared rwlock_basic
    rwlock_timed rwlock_pshared rwlock_overflow cond_basic cond_timed cond_pshared cond_cancel cond_lost_wakeup c11 fork_locks
    signals)
programs=("${programs[@]/#/posix::}")
cargo test --locked --quiet -p spinpark-testkit --test it -- --exact "${programs[@]/%/::spinpark}"

step "all good"
