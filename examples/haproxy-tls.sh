#!/usr/bin/env bash
# New TLS connections to a private HAProxy with several threads: one run for `spinpark compare`.
#
#   spinpark compare --metric-from-output '([0-9.]+) connections a second' --higher-is-better --unit conn/s \
#       -- examples/haproxy-tls.sh
#
# Needs Debian's haproxy and openssl. HAProxy answers by itself, on a port of the loopback interface (SPINPARK_PORT).
set -euo pipefail

threads=${1:-4}
clients=${2:-4}
seconds=${3:-3}
port=${SPINPARK_PORT:-18443}
directory=$(mktemp --directory)
trap 'kill $(jobs -p) 2> /dev/null; wait 2> /dev/null || true; rm -rf "$directory"' EXIT

openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=localhost \
    -keyout "$directory/key" -out "$directory/certificate" 2> /dev/null
cat "$directory/certificate" "$directory/key" > "$directory/pem"
cat > "$directory/cfg" << EOF
global
    nbthread $threads
    maxconn 1000
    tune.ssl.cachesize 0
defaults
    mode http
    timeout connect 5s
    timeout client 5s
    timeout server 5s
frontend tls
    bind 127.0.0.1:$port ssl crt $directory/pem no-tls-tickets
    http-request return status 200
EOF
haproxy -db -f "$directory/cfg" > "$directory/log" 2>&1 &
for _ in {1..100}; do
    openssl s_client -connect "127.0.0.1:$port" < /dev/null > /dev/null 2>&1 && break
    sleep 0.1
done

pids=()
for ((client = 0; client < clients; client++)); do
    openssl s_time -connect "127.0.0.1:$port" -new -www / -time "$seconds" > "$directory/client$client" 2>&1 &
    pids+=($!)
done
wait "${pids[@]}"
# "1234 connections in 3 real seconds, ..."
cat "$directory"/client* | awk -v seconds="$seconds" \
    '/connections in [0-9]+ real seconds/ { all += $1 } END { printf "%.0f connections a second\n", all / seconds }'
