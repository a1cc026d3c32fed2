#!/usr/bin/env bash
# Is what `spinpark whatif` says of a lock what mending that lock brings?
#
#   ci/whatif.sh [ROUNDS [NAME…]]          12 rounds; all of busy full seldom queue pair kyoto, unless named
#
# For each program: whatif's answer, then `spinpark compare` of the program with the lock mended against the same
# without. ci/whatif/mend.cpp has the programs. `kyoto` is Kyoto Cabinet's kccachetest with 1, 2, 16 (its own) and 64
# slots, each with its lock; it needs the library's package (kyotocabinet-utils) and, in KYOTO, the unpacked source of
# the same version (apt-get source kyotocabinet), of which two headers' worth is compiled. All programs run on two
# CPUs with real-time priority, which needs the right to set it: other programs on these CPUs wait meanwhile.
# SPINPARK names a command that is there already. DIRECTORY gets the data; a table is printed at the end.
set -euo pipefail
cd "$(dirname "$0")/.."
root=$PWD
rounds=${1:-12}
shift || true
names=("$@")
((${#names[@]})) || names=(busy full seldom queue pair kyoto)
if [[ -z ${SPINPARK:-} ]]; then
    cargo build --release --locked -p spinpark-cli
    SPINPARK=${CARGO_TARGET_DIR:-target}/release/spinpark
fi
SPINPARK=$(realpath "$SPINPARK")
work=${DIRECTORY:-$(mktemp --directory /tmp/spinpark-whatif.XXXXXX)}
mkdir -p "$work"
work=$(realpath "$work")
g++ -std=c++17 -O2 -g -pthread ci/whatif/mend.cpp -o "$work/mend"
cd "$work"

# quick COMMAND…: with real-time priority, on two CPUs.
quick() { taskset -c 0,1 chrt -r 30 "$@"; }
# predict NAME LOCK COMMAND…: LOCK is empty for the one that threads wait for most.
predict() {
    local name=$1 lock=$2
    shift 2
    quick "$SPINPARK" whatif ${lock:+--lock "$lock"} --rounds "$rounds" --json "$name.whatif.json" -- "$@"
}
# mended NAME HOW BEFORE COMMAND…
mended() {
    local name=$1 how=$2 before=$3
    shift 3
    quick "$SPINPARK" compare --rounds "$rounds" --json "$name.$how.json" --against "$before" -- "$@" > /dev/null
}

for name in "${names[@]}"; do
    case $name in
        kyoto)
            libraries=(/usr/lib/*/libkyotocabinet.so.16)
            if [[ -z ${KYOTO:-} || ! -e ${libraries[0]} ]]; then
                echo "skipped: kyoto (see the head of this script)"
                continue
            fi
            for slots in 1 2 16 64; do
                mkdir -p "slots-$slots"
                cp "$KYOTO"/*.h "$KYOTO/kccachetest.cc" "slots-$slots"
                sed -i "s/SLOTNUM = 16;/SLOTNUM = $slots;/" "slots-$slots/kccachedb.h"
                g++ -Islots-$slots -D_GNU_SOURCE=1 -D_MYGCCATOMIC -DNDEBUG -D_KC_ZLIB \
                    -D_KC_{PREFIX,INCLUDEDIR,LIBDIR,BINDIR,LIBEXECDIR,APPINC,APPLIBS}='""' -g -O2 -fsigned-char -w \
                    -o "kc-$slots" "slots-$slots/kccachetest.cc" "${libraries[0]}" -pthread
            done
            run="order -th 2 100000"
            predict kyoto-1 "" ./kc-1 $run
            mended kyoto-1 "2 slots" "./kc-1 $run" ./kc-2 $run
            predict kyoto-16 "" ./kc-16 $run
            mended kyoto-16 "64 slots" "./kc-16 $run" ./kc-64 $run
            ;;
        *)
            case $name in
                queue) lock=queue_lock ;;
                pair) lock=first_lock ;;
                *) lock=table_lock ;;
            esac
            predict "$name" "$lock" ./mend "$name" as-is
            hows=(half out shards)
            case $name in
                queue) hows=(half out) ;;
                pair) hows=(half) ;;
            esac
            for how in "${hows[@]}"; do
                mended "$name" "$how" "./mend $name as-is" ./mend "$name" "$how"
            done
            ;;
    esac
done
python3 "$root/ci/whatif/table.py" "$work"
echo "Data: $work"
