#!/usr/bin/env bash
# Primary-key selects against a private MariaDB: one run for `spinpark compare`.
#
#   spinpark compare --metric-from-output 'transactions: +[0-9]+ +\(([0-9.]+) per sec' --higher-is-better --unit tps \
#       -- examples/mariadb-point-selects.sh
#
# Needs Debian's mariadb-server and sysbench. Everything is in a temporary directory; the server listens on a unix socket.
# The tables are made once and kept for the next run (SPINPARK_MARIADB, default below /tmp).
set -euo pipefail

seconds=${1:-4}
threads=${2:-8}
home=${SPINPARK_MARIADB:-/tmp/spinpark-mariadb-$UID}
socket=$home/socket
login=(--mysql-socket="$socket" --mysql-user=root --mysql-db=sbtest)
load=(oltp_point_select --tables=4 --table-size=25000 --threads="$threads")

serve() {
    mariadbd --no-defaults --user="$(id -un)" --datadir="$home/data" --socket="$socket" --pid-file="$home/pid" \
        --skip-networking --skip-grant-tables --innodb-buffer-pool-size=256M --log-error="$home/log" &
    server=$!
    trap 'kill "$server" 2> /dev/null; wait "$server" 2> /dev/null || true' EXIT
    for _ in {1..300}; do
        mariadb-admin --no-defaults --socket="$socket" ping > /dev/null 2>&1 && return
        sleep 0.1
    done
    echo "the server does not answer; see $home/log" >&2
    exit 1
}

if [[ ! -e $home/ready ]]; then
    rm -rf "$home"
    mkdir -p "$home"
    mariadb-install-db --no-defaults --user="$(id -un)" --datadir="$home/data" --auth-root-authentication-method=normal \
        --skip-test-db > "$home/install.log" 2>&1
    serve
    mariadb --no-defaults --socket="$socket" -e 'create database sbtest'
    sysbench "${load[@]}" "${login[@]}" prepare > /dev/null
    touch "$home/ready"
else
    serve
fi

sysbench "${load[@]}" "${login[@]}" --time="$seconds" run
