#!/bin/sh
# Compiles, links and runs programs with an installed C and C++ library, as ci/dist-test.sh has it do.
#
#   use-c.sh PREFIX LIBDIR PROGRAMS      LIBDIR is below PREFIX; PROGRAMS is crates/c/tests/programs
set -eu

prefix=$1 lib=$1/$2 programs=$3
fail() {
    echo "  FAILED: $*" >&2
    exit 1
}
directory=$(mktemp -d)
trap 'cd / && rm -rf "$directory"' EXIT
cd "$directory"

# Where Debian's tools look they get no help; elsewhere, that of docs/c.md.
path= found=
case $lib in
/usr/lib/x86_64-linux-gnu) ;;
/usr/local/lib) ldconfig ;;
*)
    export PKG_CONFIG_PATH="$lib/pkgconfig"
    path=-Wl,-rpath,$lib
    found="-Dspinpark_DIR=$lib/cmake/spinpark -DCMAKE_EXE_LINKER_FLAGS=$path"
    ;;
esac

runs() { # PROGRAM
    [ "$("./$1")" = "all good" ] || fail "$1 does not run"
}
uses_shared() { # PROGRAM
    used=$(ldd "./$1" | sed -n 's/.*libspinpark\.so\.0 => \([^ ]*\) .*/\1/p')
    # /lib may be a link to /usr/lib.
    [ "$(readlink -f "$used")" = "$(readlink -f "$lib/libspinpark.so.0")" ] ||
        fail "$1 does not use the library in $lib: $(ldd "./$1")"
}

version=$(awk '/^#define SPINPARK_VERSION_/ { printf "%s%s", dot, $3; dot = "." }' "$prefix/include/spinpark.h")
[ "$(pkg-config --modversion spinpark)" = "$version" ] ||
    fail "pkg-config and the header have different versions"
flags=$(pkg-config --cflags --libs spinpark)
# shellcheck disable=SC2086 # flags are words
{
    cc -O2 -D_GNU_SOURCE -Wall -Werror "$programs/api.c" -o c $path $flags -pthread -ldl
    c++ -std=c++17 -O2 -Wall -Werror "$programs/api.cpp" -o cpp $path $flags -pthread
    cc -O2 -D_GNU_SOURCE -Wall -Werror "$programs/api.c" -o static -static $(pkg-config --static --cflags --libs spinpark)
}
for program in c cpp; do
    runs $program
    uses_shared $program
done
runs static

# shellcheck disable=SC2086 # words
cmake -S "$programs/cmake" -B build $found > output || fail "CMake: $(cat output)"
cmake --build build > output || fail "CMake: $(cat output)"
uses_shared build/shared
for program in shared static; do
    "build/$program" || fail "CMake's $program does not run"
done
