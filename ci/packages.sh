#!/usr/bin/env bash
# Installs the real programs that the tests run on the drop-in, without starting the servers among them, and the locks
# that the benchmark compares ours with.
set -euo pipefail

packages=(
    exim4-daemon-light
    ffmpeg
    kyotocabinet-utils
    libmemcached-tools
    libpython3.11-testsuite
    mariadb-server
    memcached
    pigz
    python3
    ruby
    stress-ng
    sysbench
    tokyocabinet-bin
    x264
    xz-utils
    zstd
    # Locks that the benchmark compares ours with.
    g++
    libabsl-dev
    libnsync-dev
    libtbb-dev
    pkg-config
    # Their locks are recorded.
    libglib2.0-dev
    qtbase5-dev
    # Compilers and build systems for which the C and C++ library is made.
    clang
    cmake
    libc++-dev
    libc++abi-dev
    libclang-rt-14-dev
    make
    # The libraries are built and tested for aarch64 as well.
    gcc-aarch64-linux-gnu
    libc6-dev-arm64-cross
    qemu-user
    # Used by tests in addition to those programs.
    chromium
    faketime
    gdb
    golang-go
    heaptrack
    libeatmydata1
    libjemalloc2
    libmimalloc2.0
    libtcmalloc-minimal4
    valgrind
)

if ! command -v apt-get > /dev/null; then
    echo "skipped: no apt-get here; install yourself: ${packages[*]}"
    exit 0
fi

missing=()
for package in "${packages[@]}"; do
    [[ $(dpkg-query --show --showformat='${db:Status-Abbrev}' "$package" 2> /dev/null) == ii* ]] ||
        missing+=("$package")
done
if ((${#missing[@]} == 0)); then
    echo "all there"
    exit 0
fi
if ((EUID != 0)); then
    echo "skipped: not root; run: sudo apt-get install ${missing[*]}"
    exit 0
fi

# Debian starts a server as soon as it is installed, unless this file says not to (101: forbidden).
policy=/usr/sbin/policy-rc.d
if [[ ! -e $policy ]]; then
    trap 'rm -f "$policy"' EXIT
    printf '#!/bin/sh\nexit 101\n' > "$policy"
    chmod 755 "$policy"
fi

export DEBIAN_FRONTEND=noninteractive
for attempt in 1 2 3; do
    if timeout 5m apt-get update --quiet=2 &&
        timeout 15m apt-get install --quiet=2 --yes --no-install-recommends "${missing[@]}"; then
        exit 0
    fi
    echo "attempt $attempt failed" >&2
    sleep $((attempt * 10))
done
echo "cannot install: ${missing[*]}" >&2
exit 1
