#!/usr/bin/env bash
# The library where its own locks do not run (other systems, Miri): there they are `parking_lot`'s. The test that compiles one program with
# both runs here with `--cfg miri`, which takes the same way.
set -euo pipefail
cd "$(dirname "$0")/.."
root=$PWD

user=$(mktemp --directory)
trap 'rm -rf "$user"' EXIT
mkdir "$user/src" "$user/tests"
cp crates/spinpark/tests/it/as_parking_lot.rs "$user/tests/"
cat > "$user/Cargo.toml" << END
[package]
name = "user"
version = "0.1.0"
edition = "2021"

[dependencies]
spinpark = { path = "$root/crates/spinpark" }
parking_lot = { version = "0.12.5", features = ["arc_lock"] }
END
cat > "$user/src/main.rs" << 'END'
use spinpark::profile;

static NUMBER: spinpark::Mutex<u32> = spinpark::const_mutex(1);

fn main() {
    spinpark::before_filter();
    assert!(matches!(profile::start("profiles"), Err(profile::Error::Unsupported)));
    assert!(matches!(profile::start_from_environment(), Ok(None)));
    profile::name(&NUMBER, "NUMBER");
    *NUMBER.lock() += 1;
    assert_eq!(*NUMBER.lock(), 2);
}
END
cd "$user"
export CARGO_TARGET_DIR=$user/target RUSTFLAGS="--cfg miri -A explicit_builtin_cfgs_in_flags" SPINPARK_PROFILE_DIR=profiles
cargo run --quiet
cargo test --quiet --test as_parking_lot
