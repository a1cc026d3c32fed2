#!/usr/bin/env bash
# Builds the book (target/book): writes the pages of commands and options, which are rendered from the definitions of `--help` and
# are not in the repository, then calls mdBook (https://rust-lang.github.io/mdBook/).
set -euo pipefail
cd "$(dirname "$0")/.."

SPINPARK_WRITE_REFERENCE=1 cargo test --quiet --locked --package spinpark-lab reference
mdbook build docs
