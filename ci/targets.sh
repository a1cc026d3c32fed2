#!/usr/bin/env bash
# The libraries on other targets.
#
# aarch64: Rust's is built and runs its tests under qemu, with those of its platform and its algorithms; that for C and C++ is installed, and
# the program that uses all its functions runs, linked both ways. Then the drop-in, the recorder and the command are built (ci/aarch64.sh runs them). Needs a cross compiler and qemu-user. qemu runs threads with the memory
# model of the host: that the orderings suffice on a weak machine is what the models check (notes/verification.md).
#
# musl: the same tests in static programs, but for those of `dlopen`.
set -euo pipefail
cd "$(dirname "$0")/.."

# Emulated, and beside other work.
export SPINPARK_STRESS_SECONDS=2

has() { # TARGET: whether its standard library is there, or can be installed
    [[ -d $(rustc --print sysroot)/lib/rustlib/$1 ]] && return
    rustup target add "$1" || { echo "skipped: the standard library for $1 is not there"; return 1; }
}

musl() {
    local target=x86_64-unknown-linux-musl
    has "$target" || return 0
    cargo test --locked --quiet --target "$target" -p spinpark-locks -p spinpark-linux -p spinpark-platform
    cargo test --locked --quiet --target "$target" -p spinpark --test it --test stress --test profile -- --skip unload::
    echo "musl: all good"
}

aarch64() {
    local target=aarch64-unknown-linux-gnu needed root work lib
    for needed in aarch64-linux-gnu-gcc qemu-aarch64; do
        command -v "$needed" > /dev/null || { echo "skipped: $needed is not installed (apt install gcc-aarch64-linux-gnu qemu-user)"; return 0; }
    done
    has "$target" || return 0
    root=/usr/aarch64-linux-gnu
    export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER=aarch64-linux-gnu-gcc
    export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_RUNNER="qemu-aarch64 -L $root"
    cargo test --locked --quiet --target "$target" -p spinpark -p spinpark-locks -p spinpark-linux -p spinpark-platform

    work=$(mktemp --directory)
    trap "rm -rf '$work'" EXIT
    CARGO_BUILD_TARGET=$target CC=aarch64-linux-gnu-gcc OBJCOPY=aarch64-linux-gnu-objcopy AR=aarch64-linux-gnu-ar \
        crates/c/install.sh "$work/prefix"
    lib=$work/prefix/lib
    # qemu fails where a forked child of a program with threads starts threads ("cpu == current_cpu").
    compile() { # OUTPUT ARGUMENTS…
        aarch64-linux-gnu-gcc -O2 -pthread -D_GNU_SOURCE -DNO_THREADS_AFTER_FORK -I "$work/prefix/include" crates/c/tests/programs/api.c -o "$@" -ldl
    }
    compile "$work/shared" -L "$lib" -lspinpark
    compile "$work/static" -static "$lib/libspinpark.a"
    [[ $(qemu-aarch64 -L "$root" -E LD_LIBRARY_PATH="$lib" "$work/shared") == "all good" ]]
    [[ $(qemu-aarch64 "$work/static") == "all good" ]]
    echo "aarch64: all good"
}

musl
aarch64
ci/aarch64.sh --build
