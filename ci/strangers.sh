#!/usr/bin/env bash
# What does `spinpark profile` say first about programs that it was not made for?
#
#   ci/strangers.sh [--install] [PROGRAM…]     all of them, unless named
#
# Each program has a small workload, and the truth about it in a line, as its source has it.
# Of the first two sentences of the report, a program says what must be in them to be right (`right`), what is half of it (`half`), and
# which words are an error in any case (`never`), as extended regular expressions. The verdict is
#
#   right     all of `right` is there
#   half      all of `half` is there
#   lacking   neither, but they say that something is not known or not recorded
#   wrong     none of these, or one of `never` is there
#
# Programs that are not installed are skipped and named. --install installs them with apt-get, pip, npm and cargo: Debian 12's as root,
# the others below SPINPARK_STRANGERS (default ~/.cache/spinpark-strangers). SPINPARK names the command; otherwise it is built.
# Recordings and reports stay in SPINPARK_STRANGERS/results.
set -uo pipefail
cd "$(dirname "$0")/.." || exit
root=$PWD

home=${SPINPARK_STRANGERS:-$HOME/.cache/spinpark-strangers}
results=$home/results
most=40 # seconds that a program may take
port=18190
mkdir -p "$home" "$results"

debian=(
    apache2-utils default-mysql-client ffmpeg g++ git kyotocabinet-utils libboost-thread-dev libleveldb-dev libmemcached-tools
    libopenblas-dev mariadb-server memcached nginx-light nodejs npm openjdk-17-jdk-headless perl pigz postgresql pypy3 python3-venv
    qemu-system-x86 qemu-utils redis-server ripgrep ruby samtools squashfs-tools sysbench varnish x264 xz-utils zstd
)
install_all() {
    if ((EUID == 0)); then
        local missing=() package
        for package in "${debian[@]}"; do
            # Another Node has its own.
            [[ $package != @(nodejs|npm) ]] || ! command -v npm > /dev/null || continue
            [[ $(dpkg-query --show --showformat='${db:Status-Abbrev}' "$package" 2> /dev/null) == ii* ]] || missing+=("$package")
        done
        # Another apt-get may be at work. Servers are not started.
        ((${#missing[@]} == 0)) ||
            DEBIAN_FRONTEND=noninteractive RUNLEVEL=1 apt-get -o DPkg::Lock::Timeout=900 install -y --no-install-recommends "${missing[@]}"
    else
        echo "skipped: apt-get install ${debian[*]} (not root)" >&2
    fi
    [[ -x $home/venv/bin/pip ]] || python3 -m venv "$home/venv"
    "$home/venv/bin/pip" install --quiet scikit-learn polars duckdb numpy
    mkdir -p "$home/node" && (cd "$home/node" && npm install --silent sharp)
    (cd "$root/ci/strangers/pools" && cargo build --release --target-dir "$home/pools")
}

spinpark=${SPINPARK:-}
find_spinpark() {
    [[ -n $spinpark ]] && return
    cargo build --release --locked -p spinpark-cli || exit
    spinpark=${CARGO_TARGET_DIR:-$root/target}/release/spinpark
}

# on COMMAND…: the program, recorded.
on() {
    rm -rf "$directory/recording"
    COLUMNS=160 timeout -k 5 $((most + 30)) "$spinpark" profile --duration "${most}s" --output "$directory/recording" -- "$@" \
        > "$directory/output" 2> "$directory/report"
}
# on_for SECONDS COMMAND…: the same of a program that does not end by itself.
on_for() {
    local seconds=$1
    shift
    rm -rf "$directory/recording"
    COLUMNS=160 timeout -k 5 $((most + 30)) "$spinpark" profile --duration "${seconds}s" --output "$directory/recording" -- "$@" \
        > "$directory/output" 2> "$directory/report"
}
await() { # COMMAND…: until it succeeds
    for _ in {1..150}; do
        "$@" > /dev/null 2>&1 && return
        sleep 0.1
    done
    echo "$name does not start" >&2
    return 1
}
# once NAME COMMAND…: makes a file of the workloads, if it is not there.
once() {
    [[ -e $home/$1 ]] || { "${@:2}" > "$home/$1.part" && mv "$home/$1.part" "$home/$1"; }
}
numbers() { awk 'BEGIN { for (i = 0; i < 700000; i++) print (i * 7919 + 12345) % 1000003, "line", i }'; }
build() { # NAME LIBRARY…: a C++ program of ci/strangers
    [[ $home/$1 -nt $root/ci/strangers/$1.cpp ]] ||
        g++ -O2 -g -pthread "$root/ci/strangers/$1.cpp" -o "$home/$1" "${@:2}"
}

# What a report says about a program in which locks do not matter.
small='not what makes|No lock stands out'
# What is said of threads that wait in code without recorded waits.
elsewhere='(other|another) kind|not recorded|libgomp'

# --- The programs: `about_NAME` says what is needed and what is true, `run_NAME` runs it ------------------------------------

about_sklearn() {
    needs=$home/venv/bin/python
    truth="OpenMP threads wait for each other in libgomp, by system calls of its own"
    right="$elsewhere" half='other futexes' never='held by'
    version() { "$needs" -c 'import sklearn; print("scikit-learn", sklearn.__version__)'; }
}
run_sklearn() {
    on env OMP_NUM_THREADS=4 OPENBLAS_NUM_THREADS=1 "$needs" -c '
from sklearn.datasets import make_classification
from sklearn.ensemble import HistGradientBoostingClassifier
x, y = make_classification(3000, 12, random_state=1)
print(HistGradientBoostingClassifier(max_iter=25, random_state=1).fit(x, y).score(x, y))'
}

about_polars() {
    needs=$home/venv/bin/python
    truth="rayon's workers compute, or have no work; no lock matters"
    right="$small|for signals" half='without work|for work|not recorded' never='held by'
    version() { "$needs" -c 'import polars; print("polars", polars.__version__)'; }
}
run_polars() {
    on env POLARS_MAX_THREADS=4 "$needs" -c '
import polars
frame = polars.DataFrame({"key": [i * 7919 % 1009 for i in range(600000)], "value": list(range(600000))})
for _ in range(25):
    frame = frame.sort("value", descending=True)
    print(frame.group_by("key").agg(polars.col("value").sum(), polars.col("value").std()).sort("key").head(1))'
}

about_duckdb() {
    needs=$home/venv/bin/python
    truth="workers without work wait at a semaphore of their queue; no lock matters"
    right="$small" half='without work' never='held by|89 %'
    version() { "$needs" -c 'import duckdb; print("DuckDB", duckdb.__version__)'; }
}
run_duckdb() {
    on "$needs" -c '
import duckdb
base = duckdb.connect(config={"threads": 8})
base.execute("create table t as select range % 1009 as k, range as v from range(300000)")
for _ in range(12):
    print(base.execute("select k, count(*), string_agg(v::varchar, 0::varchar) from (select * from t order by v) group by k order by 1 limit 1").fetchone()[:2])'
}

about_sort() {
    needs=sort
    truth='threads wait for the mutexes of the nodes of the merge tree, which are held while lines are merged'
    right='locks created by|mutex|not what makes' half='mutex' never='start_thread'
    version() { sort --version | head -n 1; }
}
run_sort() {
    once lines numbers
    on env LC_ALL=C sort --parallel=4 -S 100M "$home/lines" -o "$directory/sorted"
}

repository() {
    [[ -e $home/repository/.git/ready ]] && return
    git init -q "$home/repository" && (
        cd "$home/repository" || return
        for i in $(seq 400); do seq "$i" $((i + 3000)) > "file$i"; done
        git add . && git -c user.name=a -c user.email=a@b commit -q -m all && git repack -q -adf && touch .git/ready
    )
}
about_git-grep() {
    needs=git
    truth="git grep in a commit: threads take one mutex around reading objects"
    right='mutex' never='start_thread → |held by `[^`]*` while other threads wait in it'
    version() { git --version; }
}
run_git-grep() {
    repository
    on git -C "$home/repository" grep --threads=4 -c '[0-9]*77[0-9]*1' HEAD
}
about_git-repack() {
    needs=git
    truth='threads compress; on few CPUs they wait now and then for the mutexes of cache and progress'
    right="$small|mutex|locks created by" half='mutex' never='start_thread → '
    version() { git --version; }
}
run_git-repack() {
    repository
    on git -C "$home/repository" -c pack.threads=4 repack -q -adf
}

about_mksquashfs() {
    needs=mksquashfs
    truth="threads pass blocks through queues of a mutex and condition variables; they compress, or wait for work"
    right="$small|for signals of condition variables" half='mutex|locks created by'
    version() { mksquashfs -version | head -n 1; }
}
run_mksquashfs() {
    repository
    on mksquashfs "$home/repository" "$directory/image" -noappend -no-progress -processors 4 -comp gzip
}

about_samtools() {
    needs=samtools
    truth="htslib's pool: workers compress, wait for jobs, and a little for the pool's mutex"
    right="$small|for signals|hts_tpool" half='mutex'
    version() { samtools --version | head -n 1; }
}
reads() {
    printf '@HD\tVN:1.6\n@SQ\tSN:one\tLN:1000000\n'
    awk 'BEGIN { for (i = 0; i < 250000; i++) printf "r%d\t0\tone\t%d\t60\t50M\t*\t0\t0\tACGTACGTACGTAGCTAGCTAGCATCGATCGATCGATCGATGCATCGATC\tIIIIIIIIIIIIIIIIIIIIIIIIIIIIIIIIIIIIIIIIIIIIIIIIII\n", i, (i * 7919) % 900000 + 1 }'
}
run_samtools() {
    once reads.sam reads
    on samtools sort -@ 4 -m 20M -o "$directory/sorted.bam" "$home/reads.sam"
}

about_nginx() {
    needs='nginx ab curl'
    truth="requests are read by a pool of threads: workers wait for tasks, for files, and a little for the mutex of their queue"
    right="$small|for signals|slept nearly all|ngx_" never='start_thread → '
    version() { nginx -v 2>&1 | sed 's/nginx version: //'; }
}
run_nginx() {
    mkdir -p "$directory/www" && head -c 300000 /dev/zero | tr '\0' x > "$directory/www/file"
    cat > "$directory/conf" << END
daemon off; master_process off; pid $directory/pid; error_log $directory/error.log;
thread_pool default threads=8; events { worker_connections 256; }
http { access_log off; client_body_temp_path $directory; proxy_temp_path $directory; fastcgi_temp_path $directory;
  uwsgi_temp_path $directory; scgi_temp_path $directory;
  server { listen 127.0.0.1:$port; root $directory/www; aio threads; sendfile off; output_buffers 2 32k; } }
END
    (await curl -sf "http://127.0.0.1:$port/file" && ab -q -n 3000 -c 16 "http://127.0.0.1:$port/file") > "$directory/ab" 2>&1 &
    on_for 4 nginx -p "$directory" -c "$directory/conf"
    wait
}

about_leveldb() {
    needs='g++ /usr/include/leveldb/db.h'
    truth="writers wait for the first one of their queue, which syncs, in DBImpl::Write"
    right='DBImpl::Write|leveldb::DB::Put' never='one mutex|[0-9] for signals|\): '
    version() { dpkg-query --show --showformat='LevelDB ${Version}\n' libleveldb-dev; }
}
run_leveldb() {
    build leveldb -lleveldb || return
    rm -rf "$directory/database"
    on "$home/leveldb" "$directory/database"
}

about_boost() {
    needs='g++ /usr/include/boost/thread/shared_mutex.hpp'
    truth="readers wait for boost::shared_mutex, which rebuild holds"
    right='shared_mutex|prices_lock
rebuild' half='shared_mutex|prices_lock' never='signals'
    version() { dpkg-query --show --showformat='Boost ${Version}\n' libboost-thread-dev; }
}
run_boost() {
    build boost -lboost_thread -lboost_system || return
    on "$home/boost"
}

about_qemu-img() {
    needs=qemu-img
    truth="coroutines write by a pool of threads; workers wait for requests or for the disk"
    right="$small|for signals|for work|slept nearly all|waited [0-9]+ % of the time for I/O" half='mutex'
    version() { qemu-img --version | head -n 1; }
}
run_qemu-img() {
    qemu-img create -q -f qcow2 "$directory/disk" 64M
    on qemu-img bench -f qcow2 -w -c 6000 -d 16 -s 16384 --flush-interval 200 "$directory/disk"
}
about_qemu() {
    needs=qemu-system-x86_64
    truth="the threads of two CPUs and the main loop take turns with the big lock, qemu_global_mutex"
    right="qemu_global_mutex|bql|qemu_mutex_lock_iothread|$small|for signals of condition variables" half='mutex' never='held by `qemu_mutex_'
    version() { qemu-system-x86_64 --version | head -n 1; }
}
run_qemu() {
    on_for 5 qemu-system-x86_64 -machine pc,accel=tcg -smp 2 -m 64 -nodefaults -display none -serial none -monitor none \
        -device VGA -boot menu=off -net none
}

about_ruby() {
    needs=ruby
    truth="one thread at a time has the GVL"
    right="Ruby's GVL" never='[0-9] for signals'
    version() { ruby --version | cut -d ' ' -f 1,2; }
}
run_ruby() {
    on ruby -e '4.times.map { |n| Thread.new { 150.times { |i| (1..40_000).sum { |x| x * i % 7 }; sleep 0.001 } } }.each(&:join)'
}

about_perl() {
    needs=perl
    truth="threads wait for lock() of a shared variable"
    right="Perl's" half='for locks or for work' never='[0-9] for signals'
    version() { perl -e 'printf "Perl %vd\n", $^V'; }
}
run_perl() {
    on perl -Mthreads -Mthreads::shared -e '
my $count :shared = 0;
my @all = map { threads->create(sub { for (1 .. 300) { lock($count); $count++; select(undef, undef, undef, 0.001) } }) } 1 .. 4;
$_->join for @all; print "$count\n"'
}

about_pypy() {
    needs=pypy3
    truth="one thread at a time has the GIL"
    right="PyPy's GIL" half='GIL' never='[0-9] for signals'
    version() { pypy3 -c 'import sys; print("PyPy", ".".join(map(str, sys.pypy_version_info[:3])))'; }
}
run_pypy() { on pypy3 "$root/ci/strangers/threads.py" 30_000_000; }

about_python() {
    needs=/usr/bin/python3
    truth="one thread at a time has the GIL"
    right="CPython's GIL"
    version() { "$needs" --version; }
}
run_python() { on "$needs" "$root/ci/strangers/threads.py" 2_000_000; }

about_sharp() {
    needs="node $home/node/node_modules/sharp/package.json"
    truth="libvips' threads pass lines of the image on by semaphores and mutexes of their own; they compute"
    right="$small|for signals" never='#1'
    version() { echo "sharp $(grep -m 1 -o '"version": "[^"]*' "$home/node/node_modules/sharp/package.json" | cut -d '"' -f 4)"; }
}
run_sharp() {
    (cd "$home/node" && NODE_PATH=$home/node/node_modules on env UV_THREADPOOL_SIZE=4 node -e '
const sharp = require("sharp");
(async () => {
  const base = await sharp({ create: { width: 1600, height: 1200, channels: 3, noise: { type: "gaussian", mean: 128, sigma: 40 } } }).png().toBuffer();
  await Promise.all([...Array(12)].map((_, n) => sharp(base).resize(700 + n).blur(3).jpeg().toBuffer()));
})();')
}

about_varnish() {
    needs='varnishd ab curl'
    truth="worker threads wait for connections; no lock matters"
    right="$small|for signals|slept nearly all|nothing stands out" never='^[0-9.]+ % of all|All waiting'
    version() { varnishd -V 2>&1 | head -n 1 | grep -o 'varnish-[0-9.]*'; }
}
run_varnish() {
    printf 'vcl 4.1; backend none none; sub vcl_recv { return (synth(200, "fine")); }\n' > "$directory/vcl"
    (await curl -sf "http://127.0.0.1:$((port + 1))/" && ab -q -n 6000 -c 16 "http://127.0.0.1:$((port + 1))/") > "$directory/ab" 2>&1 &
    on_for 6 varnishd -F -n "$directory/varnish" -a "127.0.0.1:$((port + 1))" -f "$directory/vcl" -s malloc,20M -j none
    wait
}

about_kc-wicked() {
    needs=kccachetest
    truth="threads wait for the end of a transaction in a loop of sched_yield, and for the database's read-write lock"
    right='sched_yield.*begin_transaction|read-write lock|rwlock' half='not what makes|kyotocabinet'
    version() { kccachetest 2>&1 | grep -o 'Kyoto Cabinet [0-9.]*' | head -n 1 || echo 'Kyoto Cabinet'; }
}
run_kc-wicked() { on kccachetest wicked -th 4 60000; }
about_kc-order() {
    needs=kccachetest
    truth='four threads take the mutexes of the 16 slots, and hold them while they work'
    right="$small|locks created by|mutex|read-write lock"
    version() { kccachetest 2>&1 | grep -o 'Kyoto Cabinet [0-9.]*' | head -n 1 || echo 'Kyoto Cabinet'; }
}
run_kc-order() { on kccachetest order -th 4 100000; }

about_openblas() {
    needs=$home/venv/bin/python
    truth="two threads compute; between products the second one polls without system calls"
    right="$small" half='for work|without work' never='held by'
    version() { "$needs" -c 'import numpy; print("NumPy", numpy.__version__)'; }
}
run_openblas() {
    on env OPENBLAS_NUM_THREADS=4 "$needs" -c '
import numpy
a = numpy.ones((130, 130))
for _ in range(3000): b = a @ a
print(b[0, 0])'
}

about_redis() {
    needs='redis-server redis-cli redis-benchmark'
    truth="one thread serves; its I/O threads poll, or wait at a mutex that the main thread holds while there is little to do"
    right="$small|io_threads|mutex"
    version() { redis-server --version | cut -d ' ' -f 1-3; }
}
run_redis() {
    (await redis-cli -p $((port + 2)) ping && redis-benchmark -p $((port + 2)) -q -c 16 -n 3000 -t set,get
        redis-cli -p $((port + 2)) shutdown nosave) > "$directory/load" 2>&1 &
    on redis-server --port $((port + 2)) --io-threads 4 --io-threads-do-reads yes --dir "$directory" --save '' --appendonly no
    wait
}

about_memcached() {
    needs='memcached memcslap'
    truth="worker threads wait for sockets; locks are short"
    right="$small" half='mutex' never='start_thread → '
    version() { memcached --version; }
}
run_memcached() {
    (sleep 1.5; memcslap --servers="127.0.0.1:$((port + 3))" --concurrency=8 --execute-number=2500 --initial-load=5000 --test=get) > "$directory/load" 2>&1 &
    on_for 5 memcached --threads=4 --listen=127.0.0.1 --port=$((port + 3)) --user="$(id -un)" --memory-limit=64
    wait
}

about_mariadb() {
    needs='mariadbd mariadb-install-db sysbench'
    truth="clients that select by key: locks are short; the server's threads wait for sockets"
    right="$small|for signals" half='of all waiting'
    version() { mariadbd --version | grep -o '[0-9.]*-MariaDB'; }
}
run_mariadb() { on "$root/examples/mariadb-point-selects.sh" 3 8; }

about_postgres() {
    needs='/usr/lib/postgresql/15/bin/initdb pgbench psql runuser'
    truth="commits of sixteen clients wait for the flush of the log: an LWLock"
    right='LWLock|XLogFlush' half='not recorded|semaphore'
    version() { /usr/lib/postgresql/15/bin/postgres --version; }
}
run_postgres() {
    local bin=/usr/lib/postgresql/15/bin data=$directory/data own=$directory/own
    rm -rf "$data" "$own" && mkdir -p "$own" && chmod 755 "$home" "$results" "$directory" && chmod 777 "$directory" "$own"
    as_user() { if ((EUID == 0)); then (cd / && runuser -u nobody -- env PGHOST="$own" PGUSER=nobody PGDATABASE=postgres "$@"); else "$@"; fi; }
    as_user $bin/initdb -A trust -U nobody -D "$data" > /dev/null 2>&1 || return
    (
        await as_user psql -c 'select 1' && as_user pgbench --quiet -i -s 2 && as_user pgbench -n -N -c 16 -j 2 -T 3
        as_user $bin/pg_ctl -D "$data" -m fast stop
    ) > "$directory/load" 2>&1 &
    local before=$spinpark
    install -m 755 "$spinpark" "$own/spinpark"
    COLUMNS=160 as_user timeout -k 5 "$most" env COLUMNS=160 HOME="$own" "$own/spinpark" profile --output "$own/recording" -- \
        $bin/postgres -D "$data" -c listen_addresses= -c "unix_socket_directories=$own" > "$directory/output" 2> "$directory/report"
    spinpark=$before
    wait
}

about_node() {
    needs=node
    truth="workers compute; on few CPUs they wait for the mutex of the platform's queue of tasks"
    right="$small|TaskQueue" half='for signals|mutex'
    version() { echo "Node $(node --version)"; }
}
run_node() { on node "$root/ci/programs/workers.js"; }

about_java() {
    needs='java javac'
    truth="four threads write with a monitor"
    right='Java monitor.*Accounts|Accounts.*Java monitor' half='Java monitor'
    version() { java --version | head -n 1; }
}
run_java() {
    mkdir -p "$home/java" && cp "$root/examples/runtimes/Accounts.java" "$home/java/" || return
    [[ -e $home/java/Accounts.class ]] || javac -d "$home/java" "$home/java/Accounts.java" || return
    (cd "$directory" && on java -cp "$home/java" -Xmx128m Accounts deposit)
}

about_go() {
    needs='go gcc'
    truth="goroutines' waits are not seen; C code's mutex is"
    right="$elsewhere|one mutex, \`mutex\`"
    version() { go version | cut -d ' ' -f 3; }
}
run_go() {
    [[ -x $home/cgo ]] || (cd "$root/ci/programs" && env GO111MODULE=off go build -o "$home/cgo" cgo.go) || return
    on "$home/cgo"
}

about_rayon() {
    needs=$home/pools/release/pools
    truth="jobs without locks"
    right="$small|used no pthread lock" never='held by'
    version() { echo "rayon 1"; }
}
run_rayon() { on "$needs" rayon; }
about_tokio() {
    needs=$home/pools/release/pools
    truth="tasks wait for the std mutex JOURNAL, which write_journal holds while it sleeps"
    right='std Mutex.*JOURNAL
write_journal'
    version() { echo "tokio 1"; }
}
run_tokio() { on "$needs" tokio; }

about_ripgrep() {
    needs=rg
    truth="threads search, or wait for work; no lock matters"
    right="$small"
    version() { rg --version | head -n 1; }
}
run_ripgrep() {
    repository
    local again=() # enough to sample
    for _ in {1..8}; do again+=("$home/repository"); done
    on rg --threads 4 -c '[0-9]*(77|12)[0-9]*1[0-9]?9' "${again[@]}"
}

# Compressors and encoders: threads that compute, and others that wait for them.
about_pigz() { needs=pigz truth="threads compress; the others wait for work, and a little for the mutexes of its lists" right="$small|for signals|created by .pigz"; version() { pigz --version 2>&1; }; }
run_pigz() { once lines numbers; on pigz -k -9 -p 4 -c "$home/lines"; }
about_zstd() { needs=zstd truth="threads compress; the others wait for work" right="$small|for signals" half=mutex; version() { zstd --version | grep -o 'v[0-9.]*' | sed 's/^/zstd /'; }; }
run_zstd() { once lines numbers; on zstd -q -f -12 -T4 "$home/lines" -o "$directory/lines.zst"; }
about_xz() { needs=xz truth="threads compress; the main thread waits for them" right="$small|for signals" half=mutex; version() { xz --version | head -n 1; }; }
run_xz() { once lines numbers; on xz -k -2 -T4 --block-size=1MiB -c "$home/lines"; }
about_ffmpeg() { needs=ffmpeg truth="frame threads compute, and wait for each other's progress" right="$small|for signals" half=mutex; version() { ffmpeg -version | head -n 1 | cut -d ' ' -f 1-3; }; }
run_ffmpeg() {
    on ffmpeg -nostdin -loglevel error -y -f lavfi -i testsrc2=size=640x360:rate=25:duration=5 -c:v mpeg4 -threads 4 "$directory/film.mp4"
}
about_x264() { needs='x264 ffmpeg' truth="frame threads compute, and wait for each other's rows" right="$small|for signals" half='mutex|locks created by'; version() { x264 --version | head -n 1; }; }
film() { ffmpeg -nostdin -loglevel error -f lavfi -i testsrc2=size=480x270:rate=25:duration=4 -pix_fmt yuv420p -f yuv4mpegpipe -; }
run_x264() { once film.y4m film; on x264 --quiet --threads 4 --preset medium -o "$directory/film.264" "$home/film.y4m"; }

all=(sklearn polars duckdb sort git-grep git-repack mksquashfs samtools nginx leveldb boost qemu-img qemu ruby perl pypy python sharp
    varnish kc-wicked kc-order openblas redis memcached mariadb postgres node java go rayon tokio ripgrep pigz zstd xz ffmpeg x264)

# has_all TEXT PATTERNS: each line of the patterns is in the text; none: false.
has_all() {
    local pattern
    [[ -n $2 ]] || return
    while IFS= read -r pattern; do grep -qE -- "$pattern" <<< "$1" || return; done <<< "$2"
}
# The first two sentences of a report.
first() {
    awk '/\(process [0-9]+\): / { begun = 1 }
        begun && blank && !NF && text { exit }
        begun && blank && NF { text = text " " $0 }
        begun && !NF { blank = 1 }
        END { print text }' "$1" |
        sed -E 's/^ +//; s/ +/ /g; s/([a-z0-9%)`])\. ([A-Z0-9`])/\1.\n\2/g' | head -n 2 | tr '\n' ' ' | sed 's/ *$//'
}

judge() { # NAME
    name=$1 directory=$results/$1
    local needs='' truth='' right='' half='' never='' need said verdict
    "about_$name"
    for need in $needs; do
        command -v "$need" > /dev/null || [[ -e $need ]] || { echo "skipped: $name ($need is not installed)" >&2; return; }
    done
    mkdir -p "$directory" && rm -f "$directory/report"
    local start=$SECONDS
    "run_$name" < /dev/null 2> "$directory/errors"
    echo "$name: $((SECONDS - start)) s" >&2
    said=$(first "$directory/report")
    [[ -n $never ]] && grep -qE -- "$never" <<< "$said" && verdict=wrong
    if [[ -z $said ]]; then
        verdict='no report'
        tail -n 3 "$directory/report" "$directory/errors" "$directory/output" >&2
    elif [[ -n ${verdict:-} ]]; then
        :
    elif has_all "$said" "$right"; then
        verdict=right
    elif has_all "$said" "$half"; then
        verdict=half
    elif grep -qE 'not known|not recorded|cannot tell|do not tell|does not tell|too briefly' <<< "$said"; then
        verdict=lacking
    else
        verdict=wrong
    fi
    verdicts+=("$verdict")
    printf '| %s: %s | %s | %s | %s |\n' "$name" "$(version 2> /dev/null)" "$truth" "${said//|/\\|}" "$verdict"
}

names=()
for argument in "$@"; do
    if [[ $argument == --install ]]; then install_all; else names+=("$argument"); fi
done
find_spinpark
((${#names[@]})) || names=("${all[@]}")
verdicts=()
printf '| program | truth | first sentences | verdict |\n|---|---|---|---|\n'
for name in "${names[@]}"; do judge "$name"; done
printf '%s\n' "${verdicts[@]}" | sort | uniq -c >&2
