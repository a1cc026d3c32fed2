#!/bin/sh
# Installs spinpark from the directory of this script.
#
#   ./install.sh [--prefix DIR]        DIR is /usr/local unless given
#
# DIR/lib/spinpark/uninstall.sh removes what was installed. An older version is removed first.
set -eu

die() {
    echo "install.sh: $*" >&2
    exit 1
}

prefix=/usr/local
while [ $# -gt 0 ]; do
    case $1 in
    --prefix)
        [ $# -ge 2 ] || die "--prefix needs a directory"
        prefix=$2
        shift
        ;;
    --prefix=*) prefix=${1#--prefix=} ;;
    *) die "unknown argument $1; use: install.sh [--prefix DIR]" ;;
    esac
    shift
done
[ -n "$prefix" ] || die "--prefix needs a directory"

from=$(cd "$(dirname "$0")" && pwd -P)
"$from/bin/spinpark" --version > /dev/null ||
    die "the command does not run here: it needs x86-64 Linux with glibc 2.31 or later, and libgcc_s.so.1"

[ ! -e "$prefix/lib/spinpark/uninstall.sh" ] || sh "$prefix/lib/spinpark/uninstall.sh"
is_new=
if [ ! -d "$prefix" ]; then
    # Directories above the prefix stay when spinpark is removed.
    mkdir -p "$(dirname "$prefix")"
    mkdir -m 755 "$prefix"
    is_new=.
fi
prefix=$(cd "$prefix" && pwd -P)

# What is installed, relative to the prefix; a directory after those that it is in, and only if it is not there yet.
list=lib/spinpark/installed
cd "$from"
directories=$(find bin include lib share -type d | LC_ALL=C sort | while IFS= read -r directory; do
    [ -d "$prefix/$directory" ] || echo "$directory"
done)
files=$(find bin include lib share ! -type d | LC_ALL=C sort)
for directory in $directories; do
    mkdir -m 755 "$prefix/$directory"
done
# Before the files: what was begun can be removed.
printf '%s\n' $is_new $directories $files "$list" > "$prefix/$list"
chmod 644 "$prefix/$list"
for file in $files; do
    # Not over the old file: a program that runs from it keeps it.
    mode=644
    [ ! -x "$file" ] || mode=755
    rm -f "$prefix/$file"
    cp -P "$file" "$prefix/$file"
    [ -L "$file" ] || chmod $mode "$prefix/$file"
done

echo "Installed $prefix/bin/spinpark. To remove it: $prefix/lib/spinpark/uninstall.sh"
case :$PATH: in
*:"$prefix/bin":*) ;;
*) echo "$prefix/bin is not in PATH." ;;
esac
