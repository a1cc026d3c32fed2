#!/usr/bin/env bash
# The drop-in, the recorder and the command on aarch64: built, and run under qemu.
#
#   ci/aarch64.sh --build  builds them; `ci/targets.sh` does that
#   ci/aarch64.sh          also runs what takes a second or two each, in a few minutes
#   ci/aarch64.sh --all    all programs that qemu can run, some of them for longer
#
# The programs are those of lab/testkit/posix, each of which checks one topic of what POSIX and glibc promise. They run on the drop-in; some
# of them once more with the recorder before it. A recording is read by this machine's command, and by that for aarch64.
#
# qemu 7.2 runs a program of one architecture as a process of another. What it cannot do is not seen here:
#
# | what                                                       | programs that need it                                       |
# |------------------------------------------------------------|-------------------------------------------------------------|
# | threads in a forked child of a threaded process (it aborts) | fork_locks, fork_atfork, fork_phantoms                      |
# | memory that is empty in a forked child (`MADV_WIPEONFORK`)  | fork_bare                                                   |
# | robust lists                                                | mutex_robust                                                |
# | some cancellations, with glibc's locks as well              | cond_destroy, cond_cancel, cancellers                       |
# | forks, while another thread translates code: the child waits, probably for qemu (seen once) | soak                                 |
# | programs that start others without binfmt_misc              | rwlock_policy_on_one_cpu; `spinpark run`, `spinpark profile` |
# | restartable sequences (the locks have none on aarch64)      | –                                                           |
# | `ptrace`, and the program's own registers in `/proc`        | `spinpark why`, `spinpark top`, `spinpark profile --pid`    |
set -euo pipefail
cd "$(dirname "$0")/.."

quick=(
    mutex_kinds mutex_errors mutex_timed mutex_recursion mutex_owner mutex_protocols mutex_pshared mutex_destroy_waited
    "mutex_destroy_waited anew" rwlock_given_back rwlock_handlers rwlock_many_holds rwlock_overflow rwlock_pshared
    rwlock_read_mostly "cond_destroy_cancelled deadline" cond_lost_wakeup cond_pshared_then_private shared_private cancel_points
    "unwind rwlock" "exit_anywhere mutex" "exit_anywhere rwlock" c11 aliases layout no_allocation symbols signals
    "not_running handlers" "sandbox child"
    single_threaded small_stack thread_exit "stress 2" "stress 16"
)
rest=(
    many_threads rwlock_promises rwlock_basic rwlock_timed "rwlock_timed storm" rwlock_policy rwlock_dependent_readers rwlock_dependent_load rwlock_unaligned
    rwlock_reused cond_basic cond_timed cond_pshared cond_destroy_cancelled old_condvars "unwind mutex" "deadline_free mutex"
    "deadline_free rwlock" stopped_threads "not_running waiter mutex" "not_running woken 1"
    "not_running waiter write" "not_running waiter condvar" "not_running woken 5"
    "not_running signalled all" "not_running signalled alone" "not_running handler" "not_running inversion mutex"
    "not_running inversion read" stopped_in_queue late_sandbox timer_slack "sandbox single" "sandbox waits" "sandbox forked"
    "sandbox refused" "sandbox threads" free_after_unlock "idle_waiters cond" "idle_waiters mutex" "idle_waiters timed" "idle_waiters readers"
    "idle_waiters writers" "idle_waiters writers_behind_a_reader" million_mutexes trylock_storm "stress 256"
)
# With the recorder before the drop-in, too.
recorded=(mutex_kinds mutex_errors mutex_owner rwlock_many_holds cond_lost_wakeup cancel_points c11 small_stack thread_exit "stress 16")

programs=("${quick[@]}")
only_builds=
case ${1-} in
    --all) programs+=("${rest[@]}") ;;
    --build) only_builds=1 ;;
    "") ;;
    *) echo "usage: ci/aarch64.sh [--build | --all]" >&2; exit 2 ;;
esac

target=aarch64-unknown-linux-gnu
root=/usr/aarch64-linux-gnu
for needed in aarch64-linux-gnu-gcc qemu-aarch64; do
    command -v "$needed" > /dev/null || { echo "skipped: $needed is not installed (apt install gcc-aarch64-linux-gnu qemu-user)"; exit 0; }
done
export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER=aarch64-linux-gnu-gcc
export SPINPARK_STRESS_SECONDS=${SPINPARK_STRESS_SECONDS:-2}

work=$(mktemp --directory)
trap "rm -rf '$work'" EXIT

cargo build --locked --quiet --profile preload --target "$target" -p spinpark-pthread -p spinpark-recorder-preload
built=$(cargo metadata --locked --no-deps --format-version 1 | sed 's/.*"target_directory":"\([^"]*\)".*/\1/')/$target
drop_in=$built/preload/libspinpark_preload.so
recorder=$built/preload/libspinpark_profiler.so
# It carries the libraries that were just built.
SPINPARK_LIBRARIES=$built/preload cargo build --locked --quiet --target "$target" -p spinpark-cli
if [[ $only_builds ]]; then
    echo "aarch64, preloaded: built"
    exit
fi
cargo build --locked --quiet -p spinpark-cli

compile() { # SOURCE OUTPUT FLAGS…
    aarch64-linux-gnu-gcc -O2 -g -pthread -D_GNU_SOURCE -Wall -Werror -I crates/fixtures/programs "$1" -o "$2" "${@:3}"
}

emulate() { # PRELOAD COMMAND…
    timeout --kill-after=5s 300s qemu-aarch64 -L "$root" -E LD_PRELOAD="$1" "${@:2}" < /dev/null &
    local group=$! status=0
    wait "$group" || status=$?
    # What it forked would keep the pipe open, and this script waiting.
    kill -KILL -- "-$group" 2> /dev/null || true
    return "$status"
}

ran=0 failed=0
fails() { # WHAT
    printf 'aarch64: %s\n' "$1" >&2
    failed=$((failed + 1))
}
check() { # PRELOAD PROGRAM [ARGUMENT…]
    local name=$2 output
    [[ -e $work/$name ]] || compile "lab/testkit/posix/$name.c" "$work/$name"
    ran=$((ran + 1))
    output=$(emulate "$1" "$work/$name" "${@:3}" 2>&1) || fails "${*:2} fails ($?) with ${1//"$built/preload/"/}: $output"
}

export SPINPARK_TEST_CONFIGURATION=spinpark
for program in "${programs[@]}"; do
    # shellcheck disable=SC2086 # a program and its arguments
    check "$drop_in" $program
done
for program in "${recorded[@]}"; do
    for detail in contended full; do
        mkdir -p "$work/recorded"
        # shellcheck disable=SC2086 # a program and its arguments
        SPINPARK_PROFILE_DIR=$work/recorded SPINPARK_PROFILE_DETAIL=$detail check "$recorder:$drop_in" $program
        rm -r "$work/recorded"
    done
done
unset SPINPARK_TEST_CONFIGURATION

# A recording has the names of those that waited and of those that they waited for, whichever command reads it; also of code that signs
# return addresses.
for flags in -mbranch-protection=none -mbranch-protection=standard; do
    compile crates/fixtures/programs/waits.c "$work/waits" "$flags"
    for preload in "$recorder" "$recorder:$drop_in"; do
        rm -rf "$work/recording"
        mkdir "$work/recording"
        SPINPARK_PROFILE_DIR=$work/recording SPINPARK_PROFILE_DETAIL=full emulate "$preload" "$work/waits" > "$work/printed"
        [[ $(< "$work/printed") == stored ]]
        here=$("${built%/*}/debug/spinpark" report "$work/recording")
        there=$(emulate "" "$built/debug/spinpark" report "$work/recording")
        for words in "All waiting is on one mutex" "held by \`store_update\`" "flush (waits.c:"; do
            [[ $here == *"$words"* && $there == *"$words"* ]] || fails "no '$words' in the report: $here"
        done
    done
done
((failed == 0)) || { echo "aarch64, preloaded: $failed failed, of $ran programs" >&2; exit 1; }
echo "aarch64, preloaded: all good ($ran programs)"
