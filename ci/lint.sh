#!/usr/bin/env bash
# Format, lints, documentation, licences: as .ci/run checks them, to be run by hand at any time.
set -euo pipefail
cd "$(dirname "$0")/.."

step() { printf '\n-- %s\n' "$*"; }

step "cargo fmt"
cargo fmt --all --check

step "cargo clippy"
cargo clippy --workspace --all-targets --locked -- -D warnings

step "cargo doc"
RUSTDOCFLAGS="-D warnings" cargo doc --workspace --no-deps --locked

# .ci/run takes the test command from here.
step "README's test command"
grep --extended-regexp '^cargo test --workspace\b' README.md || {
    echo "README.md has no line 'cargo test --workspace': state the test command there" >&2
    exit 1
}

step "the library elsewhere"
ci/elsewhere.sh

step "aarch64, musl"
ci/targets.sh

step "packages of crates.io"
ci/package.sh --allow-dirty

step "links"
ci/links.sh

step "book"
if command -v mdbook > /dev/null; then
    ci/book.sh
else
    echo "skipped: mdbook is not installed (cargo install mdbook --locked)"
fi

step "cargo deny"
if ! command -v cargo-deny > /dev/null; then
    echo "skipped: cargo-deny is not installed (cargo install cargo-deny --locked)"
    exit 0
fi
cargo deny --locked check bans licenses sources
if cargo deny fetch db; then
    cargo deny --locked check advisories
else
    echo "skipped: advisories (their database cannot be fetched)"
fi
