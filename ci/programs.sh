#!/usr/bin/env bash
# Whole programs with and without the drop-in and the recorder: do they give the same results?
#
#   ci/programs.sh [PROGRAM…]              all of them, unless named; a program that is not installed is skipped and named
#
# They add to those of lab/testkit/tests/it/programs.rs, which are run with the tests. A program's result
# is what its function prints; where the drop-in is on, it must have been used. SPINPARK_PRELOAD and
# SPINPARK_PROFILER name libraries that are there already. Packages of Debian 12: openjdk-17-jdk-headless
# nodejs golang postgresql nginx redis-server haproxy apache2-utils chromium libreoffice-writer-nogui git
# mono-runtime mono-mcs wine64 wine gcc-mingw-w64-x86-64 inkscape gimp clang lld.
set -uo pipefail
cd "$(dirname "$0")/.." || exit

target=${CARGO_TARGET_DIR:-target}/preload
if [[ -z ${SPINPARK_PRELOAD:-} || -z ${SPINPARK_PROFILER:-} ]]; then
    cargo build --profile preload --locked -p spinpark-pthread -p spinpark-recorder-preload || exit
fi
work=$(mktemp --directory /tmp/spinpark-programs.XXXXXX)
chmod 755 "$work"
# The directory is one that other users can read: some programs refuse to be root.
install -m 755 "${SPINPARK_PRELOAD:-$target/libspinpark_preload.so}" "$work/libspinpark_preload.so"
install -m 755 "${SPINPARK_PROFILER:-$target/libspinpark_profiler.so}" "$work/libspinpark_profiler.so"
trap 'kill $(jobs -p) 2> /dev/null; rm -rf "$work"' EXIT
most=180 # seconds that a program may take
root=$PWD

# on COMMAND…: runs it with the libraries of this configuration.
on() { env LD_PRELOAD="$libraries" "${extra[@]}" timeout -k 5 "$most" "$@"; }
# on_bg COMMAND…: the same, in the background; sets `server`.
on_bg() {
    env LD_PRELOAD="$libraries" "${extra[@]}" "$@" > "$directory/server.log" 2>&1 &
    server=$!
}
# ended: waits for the server, which has been asked to end.
ended() {
    for _ in {1..300}; do
        kill -0 "$server" 2> /dev/null || { wait "$server"; return; }
        sleep 0.1
    done
    echo "does not end"
    kill -9 "$server"
}
await() { # COMMAND…: until it succeeds
    for _ in {1..300}; do
        "$@" > /dev/null 2>&1 && return
        sleep 0.1
    done
    echo "does not start"
    return 1
}
# Runs as another user, if this one is root.
other() { if ((EUID == 0)); then runuser -u nobody -- "$@"; else "$@"; fi; }

needs_java="java javac"
run_java() { # threads that allocate, lock and wait, with collectors that stop the world
    cp "$root/ci/programs/Stops.java" "$directory/"
    for collector in G1 Parallel Serial Z; do
        on java -Xmx192m -XX:+Use${collector}GC "$directory/Stops.java" || echo "status $?"
    done
}

needs_node="node"
run_node() { # workers, its pool of threads, a collector with helpers
    on node "$root/ci/programs/workers.js" || echo "status $?"
}

needs_go="go gcc"
run_go() { # cgo: goroutines that call into C code with locks, and signals that preempt them
    [[ -x $work/cgo ]] || (cd "$root/ci/programs" && env GO111MODULE=off go build -o "$work/cgo" cgo.go) || return
    on "$work/cgo" || echo "status $?"
}

needs_postgresql="/usr/lib/postgresql/15/bin/initdb pgbench psql"
run_postgresql() { # processes with shared memory, and a client with threads
    local bin=/usr/lib/postgresql/15/bin data=$directory/data
    export PGHOST=$directory PGUSER=nobody PGDATABASE=postgres
    other $bin/initdb -A trust -U nobody -D "$data" > /dev/null || return
    on_bg runuser -u nobody -- $bin/postgres -D "$data" -c listen_addresses= -c "unix_socket_directories=$directory"
    await psql -c 'select 1' || return
    pgbench --quiet -i -s 2 2> /dev/null
    on pgbench -n -c 8 -j 4 -t 200 2>&1 | grep -E 'actually processed|failed transactions'
    psql -At -c 'select count(*), (select sum(abalance) from pgbench_accounts) = (select sum(delta) from pgbench_history) from pgbench_history' \
        -c 'set max_parallel_workers_per_gather = 4; set parallel_setup_cost = 0; set parallel_tuple_cost = 0; select count(*), sum(aid) from pgbench_accounts'
    pkill -INT -P "$server" -x postgres
    ended
}

needs_nginx="nginx ab"
run_nginx() { # a pool of threads that read files
    head -c 300000 /dev/zero | tr '\0' x > "$directory/file"
    cat > "$directory/conf" << END
daemon off; worker_processes 2; pid $directory/pid; error_log $directory/error.log; user root;
thread_pool default threads=8; events { worker_connections 256; }
http { access_log off; client_body_temp_path $directory; proxy_temp_path $directory; fastcgi_temp_path $directory;
  uwsgi_temp_path $directory; scgi_temp_path $directory;
  server { listen 127.0.0.1:18180; root $directory; aio threads; sendfile off; output_buffers 2 32k; } }
END
    on_bg nginx -p "$directory" -c "$directory/conf"
    await curl -sf http://127.0.0.1:18180/file || return
    ab -q -n 3000 -c 16 http://127.0.0.1:18180/file 2>&1 | grep -E 'Complete requests|Failed requests|HTML transferred'
    curl -s http://127.0.0.1:18180/file | md5sum
    kill -QUIT "$server"
    ended
}

needs_redis="redis-server redis-cli redis-benchmark"
run_redis() { # threads for the network, threads in the background, a child that saves
    on_bg redis-server --port 18181 --io-threads 2 --io-threads-do-reads yes --dir "$directory" --save '' --appendonly yes
    await redis-cli -p 18181 ping || return
    on redis-benchmark -p 18181 -q --threads 2 -c 16 -n 3000 -r 1000 -t set,get,incr,lpush,sadd > /dev/null || echo "status $?"
    redis-cli -p 18181 bgrewriteaof > /dev/null
    redis-cli -p 18181 llen mylist
    redis-cli -p 18181 flushall async
    await sh -c 'redis-cli -p 18181 info persistence | grep -q aof_rewrite_in_progress:0'
    redis-cli -p 18181 shutdown nosave
    ended
}

needs_haproxy="haproxy openssl"
run_haproxy() { # a server with threads and TLS
    on "$root/examples/haproxy-tls.sh" 4 4 2 | grep -oE '^[1-9].*connections a second' | sed 's/[0-9.]*/some/'
}

needs_chromium="chromium"
run_chromium() { # many processes with threads, each in a sandbox
    cat > "$directory/page.html" << 'END'
<!doctype html><body><p id=p>?</p><script>
const code = 'onmessage = e => { let s = 0; for (let i = 0; i < 1e6; i++) s = (s * 31 + i) | 0; postMessage(s + e.data); }';
const url = URL.createObjectURL(new Blob([code]));
const ask = n => new Promise(done => { const w = new Worker(url); w.onmessage = e => { w.terminate(); done(e.data) }; w.postMessage(n) });
Promise.all([1, 2, 3, 4].map(ask)).then(all => { p.textContent = 'sum ' + all.join() });
</script>
END
    chmod 777 "$directory"
    on_user=(runuser -u nobody --)
    ((EUID == 0)) || on_user=()
    on "${on_user[@]}" env HOME="$directory" chromium --headless --disable-gpu --user-data-dir="$directory/profile" \
        --virtual-time-budget=20000 --dump-dom "file://$directory/page.html" 2> "$directory/server.log" | grep -o 'sum [-0-9,]*<' ||
        echo "status ${PIPESTATUS[0]}"
}

needs_libreoffice="soffice"
run_libreoffice() { # a document, converted twice
    for i in $(seq 300); do echo "<h2>Chapter $i</h2><p>It has $((i * i)) <b>words</b>.</p>"; done > "$directory/book.html"
    local to
    for to in odt pdf; do
        on soffice "-env:UserInstallation=file://$directory/profile" --headless --convert-to "$to" --outdir "$directory" \
            "$directory/book.html" > /dev/null 2>&1 || echo "status $?"
    done
    [[ -s $directory/book.pdf ]] && echo "a PDF"
    on soffice "-env:UserInstallation=file://$directory/profile" --headless --convert-to txt:Text --outdir "$directory" \
        "$directory/book.odt" > /dev/null 2>&1 || echo "status $?"
    md5sum < "$directory/book.txt"
}

needs_git="git"
run_git() { # threads that search for deltas
    git init -q "$directory/repository" && cd "$directory/repository" || return
    for i in $(seq 400); do seq "$i" $((i + 3000)) > "file$i"; done
    git add . && git -c user.name=a -c user.email=a@b commit -q -m all --date 2000-01-01
    on git -c pack.threads=4 repack -q -adf || echo "status $?"
    on git -c core.preloadIndex=true -c index.threads=4 status --short | wc -l
    git fsck 2>&1 | grep -v '^Checking'
    git count-objects -v | grep in-pack
}

needs_mono="mono mcs"
run_mono() { # threads that the collector stops by signals
    [[ -e $work/Stops.exe ]] || mcs -out:"$work/Stops.exe" "$root/ci/programs/Stops.cs" > /dev/null || return
    on mono "$work/Stops.exe" || echo "status $?"
}

needs_wine="wine x86_64-w64-mingw32-gcc"
run_wine() { # a Windows program with threads, on a server and a loader of its own
    [[ -e $work/threads.exe ]] || x86_64-w64-mingw32-gcc -O2 -o "$work/threads.exe" "$root/ci/programs/threads.c" || return
    on env WINEPREFIX="$directory/prefix" WINEDEBUG=-all HOME="$directory" wine "$work/threads.exe" | tr -d '\r' || echo "status $?"
    WINEPREFIX="$directory/prefix" wineserver -w
}

# draw: a drawing with many blurred shapes.
draw() {
    echo '<svg xmlns="http://www.w3.org/2000/svg" width="600" height="600"><filter id="b"><feGaussianBlur stdDeviation="9"/></filter>'
    for i in $(seq 60); do
        echo "<circle cx='$((i * 97 % 600))' cy='$((i * 61 % 600))' r='$((20 + i))' fill='rgb($((i * 4)),90,$((255 - i * 4)))' filter='url(#b)'/>"
    done
    echo '</svg>'
}

needs_inkscape="inkscape"
run_inkscape() { # filters, rendered by threads
    draw > "$directory/drawing.svg"
    on env HOME="$directory" inkscape "$directory/drawing.svg" --export-type=png --export-filename="$directory/drawing.png" \
        > /dev/null 2>&1 || echo "status $?"
    md5sum < "$directory/drawing.png"
}

needs_gimp="gimp-console"
run_gimp() { # filters of GEGL, on tiles by threads
    local script='(let* ((image (car (gimp-image-new 1200 900 RGB))) (layer (car (gimp-layer-new image 1200 900 RGB-IMAGE "a" 100 LAYER-MODE-NORMAL))))
        (gimp-image-insert-layer image layer 0 0) (plug-in-plasma RUN-NONINTERACTIVE image layer 7 2.0)
        (plug-in-gauss RUN-NONINTERACTIVE image layer 40 40 0) (gimp-drawable-brightness-contrast layer 0.2 0.2)
        (file-bmp-save RUN-NONINTERACTIVE image layer "OUT" "OUT") (gimp-quit 0))'
    on env HOME="$directory" gimp-console --no-data --no-fonts --batch-interpreter plug-in-script-fu-eval \
        --batch "${script//OUT/$directory/picture.bmp}" > /dev/null 2>&1 || echo "status $?"
    md5sum < "$directory/picture.bmp"
}

needs_lld="clang ld.lld"
run_lld() { # a linker that optimises with threads (ThinLTO)
    local i
    for i in $(seq 40); do
        echo "int f$((i + 1))(int); int f$i(int x) { int s = x; for (int i = 0; i < x % 9; i++) s = s * 31 + f$((i + 1))(s % 5); return s; }" \
            > "$directory/f$i.c"
    done
    echo 'int f1(int); int f41(int x) { return x + 1; } int main(void) { return f1(3) & 63; }' > "$directory/main.c"
    (cd "$directory" && clang -O2 -flto=thin -c ./*.c) || return
    on clang -O2 -flto=thin -fuse-ld=lld -Wl,--threads=4 -Wl,--thinlto-jobs=4 -o "$directory/linked" "$directory"/*.o || echo "status $?"
    objdump -d --no-show-raw-insn "$directory/linked" | tail -n +4 | md5sum
}

version() {
    case $1 in
    java) java --version | head -n 1 ;;
    node) echo "node $(node --version)" ;;
    go) go version | cut -d ' ' -f 3 ;;
    postgresql) /usr/lib/postgresql/15/bin/postgres --version ;;
    nginx) nginx -v 2>&1 | sed 's/nginx version: //' ;;
    redis) redis-server --version | cut -d ' ' -f 1-3 ;;
    haproxy) haproxy -v | head -n 1 | cut -d ' ' -f 1-3 ;;
    chromium) chromium --version --no-sandbox 2> /dev/null | cut -d ' ' -f 1,2 ;;
    libreoffice) soffice --version 2> /dev/null | cut -d ' ' -f 1,2 ;;
    git) git --version ;;
    mono) mono --version | head -n 1 | grep -oE '[0-9.]+' | head -n 1 | sed 's/^/Mono /' ;;
    wine) wine --version 2> /dev/null | sed 's/^wine-/Wine /; s/ (.*//' ;;
    inkscape) inkscape --version 2> /dev/null | cut -d ' ' -f 1,2 ;;
    gimp) gimp-console --version | grep -oE '[0-9.]+$' | sed 's/^/GIMP /' ;;
    lld) ld.lld --version | grep -oE 'LLD [0-9.]+' ;;
    esac
}

status=0
printf '| program | drop-in | recorder | both |\n|---|---|---|---|\n'
check() { # NAME
    local name=$1 arm expected='' cells='' need
    needs=needs_$name
    for need in ${!needs}; do
        command -v "$need" > /dev/null || { echo "skipped: $name ($need is not installed)" >&2; return; }
    done
    for arm in glibc spinpark recorded both; do
        directory=$work/$name-$arm
        mkdir -p "$directory" && chmod 777 "$directory"
        libraries='' extra=()
        : > "$directory/report" && chmod 666 "$directory/report"
        [[ $arm == spinpark || $arm == both ]] && libraries=$work/libspinpark_preload.so
        [[ $arm == recorded || $arm == both ]] && libraries=$work/libspinpark_profiler.so${libraries:+:$libraries}
        [[ -n $libraries ]] && extra+=("SPINPARK_REPORT=$directory/report")
        [[ $libraries == *profiler* ]] && extra+=("SPINPARK_PROFILE_DIR=$directory/recording")
        local start=$SECONDS
        result=$(run_"$name" 2> "$directory/errors" < /dev/null)
        echo "$name, $arm: $((SECONDS - start)) s" >&2
        if [[ $arm == glibc ]]; then
            expected=$result
            [[ -n $result ]] || { echo "$name gives no result without our libraries: $(tail -n 3 "$directory/errors" "$directory/server.log" 2> /dev/null)" >&2; status=1; return; }
            continue
        fi
        verdict=same
        if [[ $result != "$expected" ]]; then
            verdict=DIFFERS
            diff <(echo "$expected") <(echo "$result") >&2
            tail -n 5 "$directory/errors" "$directory/server.log" >&2 2> /dev/null
            status=1
        elif [[ $arm != recorded ]] && ! grep -q '^used' "$directory/report"; then
            verdict='same, but not used'
            status=1
        elif [[ $arm == spinpark ]]; then
            verdict="same ($(grep -c '^used' "$directory/report") processes)"
        fi
        cells+=" $verdict |"
    done
    printf '| %s |%s\n' "$(version "$name")" "$cells"
}

names=("$@")
((${#names[@]})) || names=(java node go postgresql nginx redis haproxy git chromium libreoffice mono wine inkscape gimp lld)
for name in "${names[@]}"; do check "$name"; done
exit "$status"
