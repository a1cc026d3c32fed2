#!/bin/sh
# Builds and installs the C and C++ library: headers, libspinpark.so and .a, a pkg-config file, a CMake package.
#
#   crates/c/install.sh PREFIX
#
# | variable        | meaning                                                                            |
# |-----------------|------------------------------------------------------------------------------------|
# | `DESTDIR`       | put before every path that is written, but into no file (for packages)             |
# | `LIBDIR`        | where libraries go, below PREFIX: `lib` (default), `lib64`, `lib/x86_64-linux-gnu` |
# | `CC`, `CARGO`   | the compiler that links, and cargo                                                 |
# | `OBJCOPY`, `AR` | of binutils, for another processor: with `CARGO_BUILD_TARGET` and `CC`              |
#
# Needs cargo, a C compiler and binutils. Both libraries are made of one object, of which only the functions of
# spinpark.map are visible.
set -eu

case ${1-} in
/*) prefix=${1%/} ;;
*)
    echo "usage: [DESTDIR=…] [LIBDIR=lib] $0 PREFIX, an absolute path" >&2
    exit 2
    ;;
esac
libdir=${LIBDIR:-lib}
case $libdir in
/* | *..*)
    echo "LIBDIR=$libdir: give a path below PREFIX, such as lib64" >&2
    exit 2
    ;;
esac
here=$(cd "$(dirname "$0")" && pwd)
cargo=${CARGO:-cargo}
cc=${CC:-cc}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

cd "$here"
"$cargo" build --locked --profile preload -p spinpark-c
metadata=$("$cargo" metadata --locked --offline --no-deps --format-version 1)
field() { printf '%s' "$metadata" | sed -n "s/.*\"$1\":\"\([^\"]*\)\".*/\1/p"; }
built=$(field target_directory)/${CARGO_BUILD_TARGET:+$CARGO_BUILD_TARGET/}preload/libspinpark_c.a
version=$("$cargo" pkgid --locked --offline | sed 's/.*[#@]//')
major=${version%%.*} minor=${version#*.}
minor=${minor%%.*}

# One object: what the functions need of the archive, with the names of nothing else to clash with a program's.
functions=$(sed -n 's/^    \(spinpark_[a-z_]*\);$/\1/p' spinpark.map)
# The initialiser is needed by no function, and is in the object that has them all.
$cc -r -nostdlib $(printf -- '-Wl,-u,%s ' $functions) -o "$work/all.o" "$built"
printf '%s\n' $functions > "$work/functions"
${OBJCOPY:-objcopy} --strip-debug --keep-global-symbols="$work/functions" "$work/all.o" "$work/spinpark.o"
${AR:-ar} -rcsD "$work/libspinpark.a" "$work/spinpark.o"

# -z nodelete: the kernel keeps pointers into it (restartable sequences), and the C library a fork handler.
# libdl: before glibc 2.34 it has `dlsym`; since then there is a stub of that name.
$cc -shared -o "$work/libspinpark.so" "$work/spinpark.o" \
    -Wl,-soname,libspinpark.so."$major" -Wl,--version-script="$here/spinpark.map" -Wl,--gc-sections \
    -Wl,-z,nodelete -Wl,-z,relro -Wl,-z,now -Wl,-z,defs -Wl,--no-as-needed,-l:libdl.so.2,--as-needed -Wl,-s

up=../..
rest=$libdir
while :; do
    up=../$up
    case $rest in
    */*) rest=${rest#*/} ;;
    *) break ;;
    esac
done
for template in spinpark.pc spinpark-config.cmake spinpark-config-version.cmake; do
    sed -e "s|@PREFIX@|$prefix|g" -e "s|@LIBDIR@|$libdir|g" -e "s|@VERSION@|$version|g" -e "s|@UP@|$up|g" \
        -e "s|@MAJOR@|$major|g" -e "s|@MINOR@|$minor|g" "$template.in" > "$work/$template"
done

# -C: a file that is the same stays as it is.
to=${DESTDIR-}$prefix
install -d "$to/include" "$to/$libdir/pkgconfig" "$to/$libdir/cmake/spinpark"
install -C -m 644 include/spinpark.h include/spinpark.hpp "$to/include"
install -C -m 644 "$work/libspinpark.a" "$to/$libdir/libspinpark.a"
install -C -m 755 "$work/libspinpark.so" "$to/$libdir/libspinpark.so.$version"
ln -sf "libspinpark.so.$version" "$to/$libdir/libspinpark.so.$major"
ln -sf "libspinpark.so.$major" "$to/$libdir/libspinpark.so"
install -C -m 644 "$work/spinpark.pc" "$to/$libdir/pkgconfig"
install -C -m 644 "$work/spinpark-config.cmake" "$work/spinpark-config-version.cmake" \
    "$to/$libdir/cmake/spinpark"
