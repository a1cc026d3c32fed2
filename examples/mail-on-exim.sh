#!/usr/bin/env bash
# `spinpark-lab documents mail` against the real server of document 002's benchmark: exim, as Debian packages it, with its
# configuration, spool, logs and mailboxes in a directory of its own, on a port of the loopback interface. Nothing of the
# system is changed, and no mail leaves it. Arguments go to `spinpark-lab documents mail`:
#
#   examples/mail-on-exim.sh --clients 1,2,4 --duration 5s
#
# It needs exim4 (apt install exim4-daemon-light) and, next to this source tree or on PATH, spinpark-lab. PORT=2525 chooses
# the port. Root becomes `nobody` for the server, since exim refuses to deliver as root.
set -euo pipefail

PORT=${PORT:-2525}
PATH=$PATH:/usr/sbin
root=$(cd "$(dirname "$0")/.." && pwd)
lab=${SPINPARK_LAB:-$(command -v "$root/target/release/spinpark-lab" spinpark-lab | head -n 1)} || lab=
[[ -n $lab ]] || { echo "build it first: cargo build --release -p spinpark-lab" >&2; exit 2; }
exim=$(command -v exim4) || { echo "exim4 is not installed: apt install exim4-daemon-light" >&2; exit 2; }

user=$(id -un) group=$(id -gn)
as_user=()
if ((EUID == 0)); then
    user=nobody group=$(id -gn nobody)
    as_user=(setpriv --reuid "$user" --regid "$group" --clear-groups)
fi

# Memory, as in the benchmark: the disk is not the subject.
base=/dev/shm
[[ -d $base && -w $base ]] || base=${TMPDIR:-/tmp}
dir=$(mktemp -d "$base/spinpark-exim-XXXXXX")
server=
finish() {
    # The daemon and whatever it has started: they are in a process group of their own.
    [[ -z $server ]] || kill -- "-$server" 2> /dev/null || true
    [[ -z $server ]] || wait "$server" 2> /dev/null || true
    rm -rf "$dir"
}
trap finish EXIT
trap 'exit 130' INT TERM HUP

mkdir "$dir"/{spool,log,mail}
# exim takes no name of a file from a client: it looks the client's word up, and uses what it finds.
for i in {0..1023}; do echo "user$i: user$i"; done > "$dir/users"
cat > "$dir/exim.conf" << EOF
exim_path = $exim
exim_user = $user
exim_group = $group
primary_hostname = localhost
spool_directory = $dir/spool
log_file_path = $dir/log/%slog
pid_file_path = $dir/pid
local_interfaces = 127.0.0.1
daemon_smtp_ports = $PORT
disable_ipv6 = true
# One process receives, one delivers, one writes; all of them as the same user (document 002's settings).
deliver_drop_privilege = true
smtp_accept_max = 0
smtp_accept_queue_per_connection = 0
smtp_connect_backlog = 1024
check_spool_space = 0
check_spool_inodes = 0
# No client is asked for its identity.
host_lookup =
helo_lookup_domains =
rfc1413_query_timeout = 0s
tls_advertise_hosts =
keep_environment =
acl_smtp_rcpt = accept

begin routers
known:
  driver = accept
  domains = localhost
  local_parts = lsearch;$dir/users
  transport = mailbox

begin transports
mailbox:
  driver = appendfile
  file = $dir/mail/\$local_part_data
  user = $user
  group = $group
EOF
((EUID != 0)) || chown -R "$user:$group" "$dir"

# `set -m`: the daemon leads a process group.
set -m
"${as_user[@]}" "$exim" -C "$dir/exim.conf" -bdf -q30m > "$dir/said" 2>&1 &
server=$!
set +m
for ((try = 0; ; try++)); do
    (exec 3<> "/dev/tcp/127.0.0.1/$PORT") 2> /dev/null && break
    if ! kill -0 "$server" 2> /dev/null || ((try == 300)); then
        echo "exim does not listen on port $PORT:" >&2
        cat "$dir/said" "$dir"/log/* >&2 2> /dev/null || true
        exit 1
    fi
    sleep 0.1
done

status=0
"$lab" documents mail --server "127.0.0.1:$PORT" "$@" || status=$?

# What exim has accepted it still has to deliver.
for ((try = 0; try < 600; try++)); do
    [[ -n $(find "$dir/spool/input" -type f -print -quit 2> /dev/null) ]] || break
    sleep 0.1
done
accepted=$(grep -c ' <= ' "$dir/log/mainlog" || true)
delivered=$(cat "$dir"/mail/* 2> /dev/null | grep -c '^Message-ID: ' || true)
echo "exim accepted $accepted messages and delivered $delivered."
if [[ $accepted != "$delivered" ]]; then
    grep -E -m 3 ' (\*\*|==) ' "$dir/log/mainlog" >&2 || true
    exit 1
fi
exit "$status"
