#!/usr/bin/env bash
# Random operations on locks, disturbed by signals, forks, cancellations, stops and moves
# (lab/testkit/posix/soak.c), with new seeds for MINUTES: on the drop-in, without restartable sequences, on
# one CPU, under the recorder.
#
#   ci/soak.sh MINUTES [SEED]              SEED: of the first run; the others count on from there
#
# A run that fails is printed with what repeats it; it does not end the soak. A run that hangs is shown by gdb, if installed.
# SPINPARK_PRELOAD and SPINPARK_PROFILER name libraries that are there already.
set -uo pipefail
cd "$(dirname "$0")/.." || exit

minutes=${1:?"usage: ci/soak.sh MINUTES [SEED]"}
seed=${2:-$((RANDOM * 32768 + RANDOM))}
length=12 # seconds of a run
most=150  # seconds after which it hangs

target=${CARGO_TARGET_DIR:-target}/preload
if [[ -z ${SPINPARK_PRELOAD:-} || -z ${SPINPARK_PROFILER:-} ]]; then
    cargo build --profile preload --locked -p spinpark-pthread -p spinpark-recorder-preload || exit
fi
drop_in=$(realpath "${SPINPARK_PRELOAD:-$target/libspinpark_preload.so}")
profiler=$(realpath "${SPINPARK_PROFILER:-$target/libspinpark_profiler.so}")
work=$(mktemp --directory)
trap 'rm -rf "$work"' EXIT
"${CC:-cc}" -O2 -g -pthread -D_GNU_SOURCE -I crates/fixtures/programs -o "$work/soak" lab/testkit/posix/soak.c || exit

first_cpu=$(taskset --cpu-list --pid $$ | sed 's/.*: \([0-9]*\).*/\1/')
run() { # ARM SEED; sets `command`
    local libraries=$drop_in environment=()
    command=("$work/soak" "$2" "$length")
    case $1 in
    plain) ;;
    no-rseq) environment=(SPINPARK_RSEQ=0) ;;
    one-cpu) command=(taskset --cpu-list "$first_cpu" "${command[@]}") ;;
    recorded) libraries=$profiler:$drop_in environment=("SPINPARK_PROFILE_DIR=$work/recording" SPINPARK_PROFILE_DETAIL=full) ;;
    recorded-glibc) libraries=$profiler environment=("SPINPARK_PROFILE_DIR=$work/recording") ;;
    glibc) libraries='' ;;
    esac
    command=(env "LD_PRELOAD=$libraries" "${environment[@]}" "${command[@]}")
    "${command[@]}" > "$work/output" 2>&1 &
    local pid=$! i
    for ((i = 0; i < most * 5; i++)); do
        kill -0 "$pid" 2> /dev/null || break
        sleep 0.2
    done
    if ((i == most * 5)); then
        echo "HANGS" >> "$work/output"
        kill -CONT "$pid"
        command -v gdb > /dev/null && timeout 60 gdb -p "$pid" -batch -nx -ex 'thread apply all bt 12' >> "$work/output" 2>&1
        kill -9 "$pid"
    fi
    wait "$pid"
}

runs=0 failed=0
while ((SECONDS < minutes * 60)); do
    for arm in plain glibc no-rseq recorded one-cpu recorded-glibc; do
        ((SECONDS < minutes * 60)) || break
        run "$arm" "$seed"
        status=$?
        runs=$((runs + 1))
        if ((status == 0)); then
            echo "$arm, $(cat "$work/output")"
        else
            failed=$((failed + 1))
            echo "FAILED ($status): $arm, seed $seed; again: ${command[*]}"
            tail -n 150 "$work/output"
        fi
        rm -rf "$work/recording"
        seed=$((seed + 1))
    done
done
echo "$runs runs, $failed failed"
((failed == 0))
