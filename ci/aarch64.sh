#!/usr/bin/env bash
# The libraries for aarch64: Rust's is built and runs its tests under qemu, with those of its platform and its algorithms; that for C and C++
# is installed, and the program that uses all its functions runs, linked both ways. Needs the target (rustup target add
# aarch64-unknown-linux-gnu), a cross compiler, and qemu-user. qemu runs threads one memory operation after the other where the
# host does: that the orderings suffice on a weak machine is what the models check (notes/verification.md).
set -euo pipefail
cd "$(dirname "$0")/.."

target=aarch64-unknown-linux-gnu
for needed in aarch64-linux-gnu-gcc qemu-aarch64; do
    command -v "$needed" > /dev/null || { echo "skipped: $needed is not installed (apt install gcc-aarch64-linux-gnu qemu-user)"; exit 0; }
done
if ! [[ -d $(rustc --print sysroot)/lib/rustlib/$target ]]; then
    rustup target add "$target" || { echo "skipped: the standard library for $target is not there"; exit 0; }
fi
root=/usr/aarch64-linux-gnu
export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER=aarch64-linux-gnu-gcc
export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_RUNNER="qemu-aarch64 -L $root"
# Emulated, and beside other work.
export SPINPARK_STRESS_SECONDS=2
cargo test --locked --quiet --target "$target" -p spinpark -p spinpark-locks -p spinpark-linux -p spinpark-platform

work=$(mktemp --directory)
trap 'rm -rf "$work"' EXIT
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
