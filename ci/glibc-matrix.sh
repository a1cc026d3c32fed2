#!/usr/bin/env bash
# The C programs of lab/testkit/posix on other releases of glibc: compiled and run in root file systems of Debian, with
# the drop-in and the profiler built here.
#
#   ci/glibc-matrix.sh [RELEASE…]          bullseye (glibc 2.31), bookworm (2.36), trixie (2.41) and sid, unless named
#
# Needs root and mmdebstrap. The root file systems are kept (SPINPARK_MATRIX_DIR, 0.5 GB each). SPINPARK_PRELOAD and
# SPINPARK_PROFILER name libraries that are there already; SPINPARK_MATRIX_ONLY, a regular expression, names programs. What
# fails on a release's own locks is named, and no failure here: older releases have bugs that the programs find.
set -euo pipefail
cd "$(dirname "$0")/.."

releases=("$@")
((${#releases[@]})) || releases=(bullseye bookworm trixie sid)
roots=${SPINPARK_MATRIX_DIR:-/var/tmp/spinpark-glibc-matrix}
seconds=${SPINPARK_MATRIX_SECONDS:-120}

skip() {
    echo "skipped: $*"
    exit 0
}
((EUID == 0)) || skip "not root"
command -v mmdebstrap > /dev/null || skip "mmdebstrap is not installed"
command -v unshare > /dev/null || skip "unshare (util-linux) is not installed"

mirror=$(ci/mirror.sh)

target=${CARGO_TARGET_DIR:-target}/preload
if [[ -z ${SPINPARK_PRELOAD:-} || -z ${SPINPARK_PROFILER:-} ]]; then
    cargo build --profile preload --locked -p spinpark-pthread -p spinpark-recorder-preload
fi
drop_in=$(realpath "${SPINPARK_PRELOAD:-$target/libspinpark_preload.so}")
profiler=$(realpath "${SPINPARK_PROFILER:-$target/libspinpark_profiler.so}")

# name [arms] (= "program" "argument"…)? of the tests; those with files of their own follow below.
table=$(grep -E '^    [a-z0-9_]+ \[[a-z ]+\]( = .*)?;$' lab/testkit/tests/it/posix/mod.rs)
recorded=$(sed -n '/^programs! {/,/^}/p' lab/testkit/tests/it/profile_posix.rs | grep -v '[{}]' | tr '\n' ' ')

make_root() { # RELEASE: makes it, if it is not there
    local root=$roots/$1
    [[ -e $root/.spinpark-complete ]] && return
    rm -rf --one-file-system "$root"
    mkdir -p "$root"
    # A mirror's copy of sid may be older than a week.
    mmdebstrap --variant=minbase --include=gcc,libc6-dev --hook-dir=/usr/share/mmdebstrap/hooks/maybe-merged-usr \
        --aptopt='Acquire::Check-Valid-Until "false"' "$1" "$root" "$mirror" > "$root.log" 2>&1 || return
    touch "$root/.spinpark-complete"
}

# Runs in the release, as /spinpark/run NAME ARM PROGRAM [ARGUMENT…]; prints what failed.
write_runner() { # ROOT
    cat > "$1/spinpark/run" << 'END'
#!/bin/bash
name=$1 arm=$2
shift 2
preload=
case $arm in
glibc) ;;
recorded) preload=/spinpark/libspinpark_profiler.so ;;
recorded-spinpark) preload=/spinpark/libspinpark_profiler.so:/spinpark/libspinpark_preload.so ;;
*) preload=/spinpark/libspinpark_preload.so ;;
esac
export SPINPARK_TEST_CONFIGURATION=${arm#recorded-} SPINPARK_STRESS_SECONDS=1
[[ $arm == recorded ]] && SPINPARK_TEST_CONFIGURATION=glibc
[[ $arm == disabled ]] && export SPINPARK_DISABLE=1
[[ $arm == recorded* ]] && export SPINPARK_PROFILE_DIR=/tmp/recorded/$name-$arm SPINPARK_PROFILE_DETAIL=full
cd /tmp
LD_PRELOAD=$preload timeout -k 5 "$SECONDS_MOST" "/spinpark/bin/$1" "${@:2}" > /tmp/output 2>&1
status=$?
rm -rf /tmp/recorded
if ((status == 0)) && ! grep -q 'ld.so:' /tmp/output; then
    exit 0
fi
printf '  FAILED (%s) %s, %s:\n' "$status" "$name" "$arm"
tail -n 12 /tmp/output | sed 's/^/    /'
exit 1
END
    chmod 755 "$1/spinpark/run"
}

compile() { # ROOT SOURCE-STEM [FLAG…]
    chroot "$1" gcc -O2 -g -pthread -D_GNU_SOURCE -w -o "/spinpark/bin/$2" "/spinpark/posix/$2.c" "${@:3}" -ldl -lrt
}

inside() { # ROOT COMMAND…: with /proc, /dev and /tmp of its own, which go away with it, as do processes
    SECONDS_MOST=$seconds unshare --mount --propagation private --pid --fork --kill-child bash -c '
        root=$1; shift
        mount -t proc proc "$root/proc" && mount --rbind /dev "$root/dev" && mount -t tmpfs tmpfs "$root/tmp" &&
            exec chroot "$root" "$@"' - "$@" < /dev/null
}

failed=0 ran=0 own=
check() { # ROOT NAME ARM PROGRAM [ARGUMENT…]
    [[ $2 =~ ${SPINPARK_MATRIX_ONLY:-.} && " $own " != *" $2 "* ]] || return 0
    ran=$((ran + 1))
    inside "$1" /spinpark/run "${@:2}" && return
    if inside "$1" /spinpark/run "$2" glibc "${@:4}"; then
        failed=$((failed + 1))
    else
        own+=" $2"
    fi
}

run_release() { # RELEASE
    local root=$roots/$1 line name arms rest program words arm
    rm -rf "$root/spinpark"
    mkdir -p "$root/spinpark/bin"
    cp -r lab/testkit/posix "$root/spinpark/"
    cp crates/fixtures/programs/check.h "$root/spinpark/posix/"
    cp "$drop_in" "$root/spinpark/libspinpark_preload.so"
    cp "$profiler" "$root/spinpark/libspinpark_profiler.so"
    write_runner "$root"
    failed=0 ran=0 own=
    while read -r line; do
        name=${line%% *}
        arms=${line#*[} arms=${arms%%]*}
        rest=${line#*]} rest=${rest#* = } rest=${rest%;}
        eval "words=($rest)"
        program=${words[0]:-$name}
        [[ -e $root/spinpark/bin/$program ]] || compile "$root" "$program"
        for arm in ${arms/glibc/}; do # glibc's when another fails
            check "$root" "$name" "$arm" "$program" "${words[@]:1}"
        done
    done <<< "$table"
    for name in $recorded; do
        words=()
        [[ $name == stress ]] && words=(16)
        for arm in recorded recorded-spinpark; do
            check "$root" "$name" "$arm" "$name" "${words[@]}"
        done
    done
    compile "$root" before_main_lib -shared -fPIC
    compile "$root" before_main /spinpark/bin/before_main_lib
    compile "$root" dlopen_plugin -shared -fPIC
    compile "$root" dlopen
    for arm in spinpark disabled; do
        check "$root" before_main "$arm" before_main
        check "$root" dlopen "$arm" dlopen /spinpark/bin/dlopen_plugin
    done
    printf '%s (%s): %d runs, %d failed%s\n' "$1" "$(chroot "$root" ldd --version | sed -n '1s/.* //p')" "$ran" "$failed" \
        "${own:+, besides those that fail on glibc as well:$own}"
}

status=0
for release in "${releases[@]}"; do
    if ! make_root "$release"; then
        echo "skipped: $release cannot be installed from $mirror ($(tail -n 1 "$roots/$release.log"))"
        continue
    fi
    run_release "$release"
    ((failed == 0)) || status=1
done
exit "$status"
