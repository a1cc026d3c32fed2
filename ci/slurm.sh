#!/usr/bin/env bash
# The recipes "In parts" of docs/sim.md for real: a sweep by GNU parallel, and as a job array of Slurm, on a cluster of one
# node that lives in a temporary directory. The merged bytes must be those of the sweep in one go.
#
#   ci/slurm.sh [PATH/TO/spinpark-lab]        default: the release build
#
# Needs (Debian) parallel, slurm-wlm, munge, and root for Slurm's daemons; a part whose programs are missing is skipped.
set -euo pipefail
cd "$(dirname "$0")/.."

lab=${1:-${CARGO_TARGET_DIR:-target}/release/spinpark-lab}
if [[ ! -x $lab ]]; then
    cargo build --release --locked -p spinpark-lab
fi
lab=$(realpath "$lab")

work=$(mktemp --directory)
daemons=()
finish() {
    for daemon in "${daemons[@]}"; do kill "$daemon" 2>/dev/null || true; done
    for daemon in "${daemons[@]}"; do wait "$daemon" 2>/dev/null || true; done
    rm -rf "$work"
}
trap finish EXIT
chmod 755 "$work" # munge refuses sockets in directories that others can write to
mkdir "$work/bin" "$work/parallel" "$work/slurm"
ln -s "$lab" "$work/bin/spinpark-lab"
PATH=$work/bin:$PATH

sweep=(--machine 'plain-4,plain-8' --threads '1,4,16' --locks 'spinpark,classic-mutex-fixed' --duration 1ms)
spinpark-lab sim sweep "${sweep[@]}" --json-lines "$work/whole.jsonl" >/dev/null 2>&1

same() { # NAME FILE
    cmp "$2" "$work/whole.jsonl" || { echo "$1: the merged lines are not those of the sweep in one go" >&2; exit 1; }
    echo "$1: the same $(wc -l <"$2") lines as the sweep in one go"
}

if command -v parallel >/dev/null; then
    cd "$work/parallel"
    parallel --will-cite spinpark-lab sim sweep "${sweep[@]}" --shard {}/6 --json-lines - ::: 1 2 3 4 5 6 2>/dev/null |
        spinpark-lab sim merge - --json-lines merged.jsonl >/dev/null
    same 'GNU parallel' merged.jsonl
else
    echo 'GNU parallel is not installed: skipped'
fi

for program in slurmctld slurmd sbatch munged; do
    if ! command -v "$program" >/dev/null; then
        echo "$program is not installed: Slurm skipped"
        exit 0
    fi
done
if ((EUID != 0)); then
    echo "Slurm's daemons need root here: skipped"
    exit 0
fi

# A port that is free now; the next one is slurmd's.
port=$((20000 + RANDOM % 10000))
node=$(hostname --short)
dd if=/dev/urandom of="$work/munge.key" bs=1024 count=1 status=none
chmod 400 "$work/munge.key"
mkdir -p "$work/state" "$work/spool"
cat >"$work/slurm.conf" <<EOF
ClusterName=spinpark
SlurmctldHost=$node(127.0.0.1)
SlurmUser=root
AuthType=auth/munge
AuthInfo=socket=$work/munge.socket
CredType=cred/munge
SlurmctldPort=$port
SlurmdPort=$((port + 1))
SlurmctldPidFile=$work/slurmctld.pid
SlurmdPidFile=$work/slurmd.pid
SlurmctldLogFile=$work/slurmctld.log
SlurmdLogFile=$work/slurmd.log
StateSaveLocation=$work/state
SlurmdSpoolDir=$work/spool
SwitchType=switch/none
MpiDefault=none
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
ReturnToService=2
NodeName=$node NodeAddr=127.0.0.1 CPUs=$(nproc) State=UNKNOWN
PartitionName=all Nodes=$node Default=YES State=UP
EOF
export SLURM_CONF=$work/slurm.conf
munged --foreground --key-file="$work/munge.key" --socket="$work/munge.socket" --pid-file="$work/munge.pid" \
    --log-file="$work/munged.log" --seed-file="$work/munge.seed" --force 2>/dev/null &
daemons+=($!)
slurmctld -D -f "$SLURM_CONF" >/dev/null 2>&1 &
daemons+=($!)
slurmd -D -f "$SLURM_CONF" -N "$node" >/dev/null 2>&1 &
daemons+=($!)

failed() {
    tail --lines=15 "$work"/{munged,slurmctld,slurmd}.log >&2 || true
    echo "Slurm: $1" >&2
    exit 1
}
for _ in $(seq 100); do
    [[ $(sinfo --noheader --format=%t 2>/dev/null) == idle ]] && break
    sleep 0.3
done
[[ $(sinfo --noheader --format=%t 2>/dev/null) == idle ]] || failed 'the node is not idle'

# The job array of docs/sim.md.
cd "$work/slurm"
cat >sweep.sbatch <<EOF
#!/bin/sh
#SBATCH --array=1-6
#SBATCH --output=%a.log
exec spinpark-lab sim sweep ${sweep[*]} --shard \$SLURM_ARRAY_TASK_ID/\$SLURM_ARRAY_TASK_COUNT \\
    --json-lines \$SLURM_ARRAY_TASK_ID.jsonl
EOF
timeout 300 sbatch --wait sweep.sbatch >/dev/null || failed 'the job array failed'
spinpark-lab sim merge ./*.jsonl --json-lines merged >/dev/null
same 'Slurm, job array' merged
