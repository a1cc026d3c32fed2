#!/usr/bin/env bash
# Builds what README promises with the oldest Rust that it promises it for: the library from another project, as its users have it,
# and the command. Needs rustup, which installs the compilers.
set -euo pipefail
cd "$(dirname "$0")/.."
root=$PWD

oldest() { # CRATE
    sed -n 's/^rust-version = "\(.*\)"$/\1/p' "crates/$1/Cargo.toml"
}

step() { printf '\n-- %s\n' "$*"; }

library=$(oldest spinpark)
command=$(oldest cli)
for version in "$library" "$command"; do
    grep --quiet "Rust ${version//./\\.}\b" README.md || { echo "README.md does not name Rust $version" >&2; exit 1; }
    rustup toolchain install "$version" --profile minimal --no-self-update
done

user=$(mktemp --directory)
trap 'rm -rf "$user"' EXIT
mkdir "$user/src"
cat > "$user/Cargo.toml" << END
[package]
name = "user"
version = "0.1.0"
edition = "2021"

[dependencies]
spinpark = { path = "$root/crates/spinpark" }
END
cat > "$user/src/main.rs" << 'END'
fn main() {
    let number = spinpark::Mutex::new(1);
    *number.lock() += 1;
    assert_eq!(*number.lock(), 2);
}
END
step "the library with Rust $library"
(cd "$user" && CARGO_TARGET_DIR="$user/target" cargo "+$library" run --quiet)

step "the command with Rust $command"
cargo "+$command" check --locked -p spinpark-cli
