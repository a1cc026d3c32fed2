#!/bin/sh
# Uses an installed spinpark, as ci/dist-test.sh has it do: fails if something that a package promises is missing.
#
#   use.sh PREFIX ZSH-DIRECTORY WAITS      WAITS is crates/fixtures/programs/waits.c, compiled
set -eu

prefix=$1 zsh=$2 waits=$3
fail() {
    echo "  FAILED: $*" >&2
    exit 1
}

directory=$(mktemp -d)
trap 'cd / && rm -rf "$directory"' EXIT
cd "$directory"
PATH=$prefix/bin:$PATH
spinpark --version > version || fail "spinpark --version"

# The libraries are the package's: nothing is written to a cache.
spinpark libraries > libraries
for library in preload profiler; do
    grep -q "^$prefix/lib/spinpark/libspinpark_$library.so (installed with this command)" libraries ||
        fail "the installed libspinpark_$library.so is not used: $(cat libraries)"
done

spinpark profile -- "$waits" store > output 2>&1 || fail "spinpark profile: $(cat output)"
grep -q '^\(All\|[0-9]* % of the\) waiting is on one mutex, `cache_lock`, held by `store_update` while `flush` waits\.$' output ||
    fail "the summary is not true: $(cat output)"
SPINPARK_VERBOSE=1 spinpark run -- "$waits" store > output 2>&1 || fail "spinpark run: $(cat output)"
grep -q '^spinpark: .*(version ' output || fail "the drop-in was not active: $(cat output)"

for page in spinpark spinpark-profile spinpark-why spinpark-compare spinpark-run spinpark-report spinpark-diff; do
    found=$(man -M "$prefix/share/man" -w $page) || fail "no manual page $page"
    [ -s "$found" ] || fail "$page: $found is empty"
done
if [ "$prefix" = /usr ]; then
    man -w spinpark > output || fail "man does not find spinpark"
fi

bash -c '. "$0" && complete -p spinpark' "$prefix/share/bash-completion/completions/spinpark" > output ||
    fail "bash has no completions"
[ -s "$prefix/share/zsh/$zsh/_spinpark" ] || fail "zsh has no completions"
[ -s "$prefix/share/fish/vendor_completions.d/spinpark.fish" ] || fail "fish has no completions"
