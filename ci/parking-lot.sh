#!/usr/bin/env bash
# spinpark in the place of parking_lot 0.12: that crate's own tests, with the name changed; and crates that depend on it, with a crate
# of that name that is spinpark (`[patch]`), as a program would try it. Sources come from crates.io.
set -euo pipefail
cd "$(dirname "$0")/.."
root=$PWD
version=0.12.5

work=$(mktemp --directory)
trap 'rm -rf "$work"' EXIT
export CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-$work/target}

step() { printf '\n-- %s\n' "$*"; }

# A crate with the name and the version, that has spinpark's types.
mkdir -p "$work/parking_lot/src"
cat > "$work/parking_lot/Cargo.toml" << END
[package]
name = "parking_lot"
version = "$version"
edition = "2021"

[features]
default = ["arc_lock"]
arc_lock = ["spinpark/arc_lock"]
serde = ["spinpark/serde"]
owning_ref = ["spinpark/owning_ref"]
hardware-lock-elision = []
nightly = []

[dependencies]
spinpark = { path = "$root/crates/spinpark", default-features = false }
END
echo 'pub use spinpark::*;' > "$work/parking_lot/src/lib.rs"

step "tests of parking_lot $version"
mkdir -p "$work/tests/src" "$work/tests/tests"
cat > "$work/tests/Cargo.toml" << END
[package]
name = "tests"
version = "0.1.0"
edition = "2021"

[features]
serde = []

[dependencies]
# Only to have its source, under another name.
original = { package = "parking_lot", version = "=$version" }
spinpark = { path = "$root/crates/spinpark", features = ["serde"] }
bincode = "1.3"
rand = "0.8"
END
echo > "$work/tests/src/lib.rs"
original=$(cd "$work/tests" && cargo metadata --format-version 1 |
    python3 -c 'import json,os,sys; print(next(os.path.dirname(p["manifest_path"]) for p in json.load(sys.stdin)["packages"] if p["name"] == "parking_lot"))')
for file in "$original"/src/*.rs "$original"/tests/*.rs; do
    case $file in
    # Of a feature that spinpark does not have.
    */deadlock.rs) continue ;;
    */tests/*) sed 's/\bparking_lot::/spinpark::/g' "$file" ;;
    *) sed --quiet '/^mod tests {/,$ p' "$file" | sed 's/\bcrate::/spinpark::/g' ;;
    esac > "$work/tests/tests/$(basename "$file")"
    # A function of its own that its tests call.
    if [[ $file == */src/condvar.rs ]]; then
        cat >> "$work/tests/tests/condvar.rs" << 'END'
trait Internal {
    fn wait_while_until_internal<T: ?Sized>(
        &self,
        guard: &mut spinpark::MutexGuard<'_, T>,
        condition: impl FnMut(&mut T) -> bool,
        deadline: Option<std::time::Instant>,
    ) -> spinpark::WaitTimeoutResult;
}
impl Internal for spinpark::Condvar {
    fn wait_while_until_internal<T: ?Sized>(
        &self,
        guard: &mut spinpark::MutexGuard<'_, T>,
        condition: impl FnMut(&mut T) -> bool,
        deadline: Option<std::time::Instant>,
    ) -> spinpark::WaitTimeoutResult {
        let never = || std::time::Instant::now() + std::time::Duration::from_secs(1 << 20);
        self.wait_while_until(guard, condition, deadline.unwrap_or_else(never))
    }
}
END
        sed --in-place 's/^mod tests {/&\n    use super::Internal;/' "$work/tests/tests/condvar.rs"
    fi
    [[ -s $work/tests/tests/$(basename "$file") ]] || rm "$work/tests/tests/$(basename "$file")"
done
# Left out: it counts how often a condition is looked at. Ours is looked at once more after the deadline, as std's is.
(cd "$work/tests" && RUSTFLAGS=--cap-lints=allow cargo test --quiet --features serde -- \
    --skip wait_while_until_internal_times_out_before_false)

step "crates that depend on parking_lot"
mkdir -p "$work/users/src"
cat > "$work/users/Cargo.toml" << END
[package]
name = "users"
version = "0.1.0"
edition = "2021"

[dependencies]
moka = { version = "=0.12.10", features = ["sync"] }
prometheus = { version = "=0.13.4", default-features = false }
tokio = { version = "1.40", features = ["full", "parking_lot"] }

[patch.crates-io]
parking_lot = { path = "$work/parking_lot" }
END
cat > "$work/users/src/main.rs" << 'END'
use std::sync::Arc;
use std::thread;

fn main() {
    let cache: moka::sync::Cache<u32, u32> = moka::sync::Cache::new(100);
    let counts = prometheus::IntCounterVec::new(prometheus::Opts::new("calls", "of threads"), &["thread"]).unwrap();
    let registry = prometheus::Registry::new();
    registry.register(Box::new(counts.clone())).unwrap();
    thread::scope(|scope| {
        for number in 0..4 {
            let (cache, counts) = (&cache, &counts);
            scope.spawn(move || {
                for key in 0..2000 {
                    assert_eq!(cache.get_with(key % 150, || key % 150), key % 150);
                    counts.with_label_values(&[&(number % 2).to_string()]).inc();
                }
            });
        }
    });
    assert_eq!(registry.gather()[0].get_metric().iter().map(|it| it.get_counter().get_value()).sum::<f64>(), 8000.0);
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(4).enable_all().build().unwrap();
    let total = Arc::new(tokio::sync::Mutex::new(0));
    runtime.block_on(async {
        let tasks = (0..100).map(|_| {
            let total = Arc::clone(&total);
            tokio::spawn(async move {
                for _ in 0..100 {
                    *total.lock().await += 1;
                    tokio::task::yield_now().await;
                }
            })
        });
        for task in tasks.collect::<Vec<_>>() {
            task.await.unwrap();
        }
        assert_eq!(*total.lock().await, 10_000);
    });
    println!("moka, prometheus, tokio: all good");
}
END
(cd "$work/users" && cargo tree --quiet --invert parking_lot --depth 1 && cargo run --quiet)
# One that has its tests in its package.
prometheus=$(cd "$work/users" && cargo metadata --format-version 1 |
    python3 -c 'import json,os,sys; print(next(os.path.dirname(p["manifest_path"]) for p in json.load(sys.stdin)["packages"] if p["name"] == "prometheus"))')
cp --recursive "$prometheus" "$work/prometheus"
printf '\n[patch.crates-io]\nparking_lot = { path = "%s" }\n\n[workspace]\n' "$work/parking_lot" >> "$work/prometheus/Cargo.toml"
rm -f "$work/prometheus/Cargo.lock"
(cd "$work/prometheus" && RUSTFLAGS=--cap-lints=allow cargo test --quiet --lib --no-default-features)
