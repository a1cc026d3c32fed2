#!/usr/bin/env bash
# Builds the Python wheel, and uses it in a virtual environment of its own: the command, `python -m spinpark`, recordings as rows.
# ci/wheel.sh [DIRECTORY]: where the wheel goes (default: target/wheels). Needs Python with venv, and PyPI for maturin and pandas.
set -euo pipefail
cd "$(dirname "$0")/.."

wheels=$(realpath --canonicalize-missing "${1:-${CARGO_TARGET_DIR:-target}/wheels}")
work=$(mktemp --directory)
trap 'rm -rf "$work"' EXIT

python3 -m venv "$work/build"
"$work/build/bin/pip" install --quiet --disable-pip-version-check 'maturin==1.9.6'
(cd python && "$work/build/bin/maturin" build --release --out "$wheels")

python3 -m venv "$work/user"
"$work/user/bin/pip" install --quiet --disable-pip-version-check --force-reinstall "$wheels"/spinpark-*.whl pandas
cd "$work"
cat > waits.py << 'END'
import ctypes, threading, time

libc = ctypes.CDLL(None)
mutex = ctypes.create_string_buffer(64)

def work():
    for _ in range(20):
        libc.pthread_mutex_lock(mutex)
        time.sleep(0.005)
        libc.pthread_mutex_unlock(mutex)

threads = [threading.Thread(target=work) for _ in range(3)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
END
PATH=$work/user/bin:$PATH spinpark --version
user/bin/python -m spinpark profile --output kept -- waits.py 2>&1 | head --lines 3
user/bin/python - << 'END'
import pandas, spinpark

for processes in (spinpark.load("kept"), spinpark.record(["waits.py"], ["--detail", "full"])):
    locks = pandas.DataFrame(spinpark.locks(processes))
    first = locks.sort_values("waited", ascending=False).iloc[0]
    assert first.kind == "mutex" and first.waited > 0.1 and first.waits >= 30, locks
    pairs = pandas.DataFrame(spinpark.pairs(processes))
    assert pairs.waited.sum() > 0.1, pairs
print(locks.head(2).to_string())
try:
    spinpark.record(["no-such-program"])
except Exception as error:
    assert type(error).__name__ == "CalledProcessError", error
else:
    raise AssertionError("nothing was recorded")
END
if user/bin/python -m spinpark profile -- no-such-program 2> said; then exit 1; fi
[[ $(user/bin/python -m spinpark run -- true; echo $?) == 0 ]]
