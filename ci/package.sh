#!/usr/bin/env bash
# Packs the crates that are published, and builds each from its package alone, beside the packages that it needs, as crates.io would
# have them. The command, so built, must carry its libraries. Options go to `cargo package` (--allow-dirty, --no-verify).
set -euo pipefail
cd "$(dirname "$0")/.."

published=()
for manifest in crates/*/Cargo.toml; do
    grep --quiet '^publish' "$manifest" && continue
    published+=(--package "$(sed --quiet 's/^name = "\(.*\)"$/\1/p' "$manifest" | head --lines 1)")
done
# Of an earlier run cargo keeps what it has unpacked and built, and takes it again for packages of the same version. Directories of registries
# without a host, as its temporary one is, begin with `-`; they are a cache.
rm -rf "${CARGO_HOME:-$HOME/.cargo}"/registry/{src,cache,index}/-* "${CARGO_TARGET_DIR:-target}"/debug/.fingerprint/spinpark-*
cargo package --locked "${published[@]}" "$@"

[[ " $* " == *" --no-verify "* ]] && exit
libraries=$(mktemp --directory)
trap 'rm -rf "$libraries"' EXIT
"${CARGO_TARGET_DIR:-target}/debug/spinpark" libraries --to "$libraries" > /dev/null
LD_PRELOAD=$libraries/libspinpark_preload.so:$libraries/libspinpark_profiler.so true
