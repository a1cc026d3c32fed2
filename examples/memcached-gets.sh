#!/usr/bin/env bash
# Gets of small values from a private memcached: one run for `spinpark compare`.
#
#   spinpark compare --metric-from-output 'Time to get .*: +([0-9.]+) seconds' --unit s -- examples/memcached-gets.sh
#
# Needs Debian's memcached and libmemcached-tools. The server listens on a unix socket in a temporary directory.
set -euo pipefail

threads=${1:-4}
clients=${2:-16}
gets=${3:-2000}
directory=$(mktemp --directory)
socket=$directory/socket

memcached --threads="$threads" --unix-socket="$socket" --user="$(id -un)" --memory-limit=64 &
server=$!
trap 'kill "$server" 2> /dev/null; wait "$server" 2> /dev/null || true; rm -rf "$directory"' EXIT
for _ in {1..300}; do
    [[ -S $socket ]] && break
    sleep 0.1
done
memcslap --servers="$socket" --concurrency="$clients" --execute-number="$gets" --initial-load=10000 --test=get
