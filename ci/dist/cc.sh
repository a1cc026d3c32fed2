#!/usr/bin/env bash
# Makes DIR/cc: this machine's C compiler and linker, but for the glibc of Debian 11 (2.31). What it links runs with every
# glibc from there on.
#
#   ci/dist/cc.sh DIR
#
# Needs mmdebstrap, not root. The release's libraries (70 MB) are kept in DIR.
set -euo pipefail

mkdir -p "$1"
directory=$(realpath "$1")
root=$directory/bullseye
if [[ ! -e $directory/cc ]]; then
    command -v mmdebstrap > /dev/null || {
        echo "mmdebstrap is not installed: it fetches Debian 11's glibc, for which packages are linked" >&2
        exit 1
    }
    rm -rf --one-file-system "$root"
    mmdebstrap --quiet --variant=extract --include=libc6-dev bullseye "$root" "$("$(dirname "$0")/../mirror.sh")"
    # The linker would follow absolute links to this machine's libraries.
    find "$root/lib" "$root/lib64" "$root/usr/lib" -lname '/*' -print0 | while IFS= read -r -d '' link; do
        ln -sfr "$root$(readlink "$link")" "$link"
    done
    # Debian's compiler looks beside itself before it looks below --sysroot: -B and -L come first.
    cat > "$directory/cc.new" << END
#!/bin/sh
exec cc "--sysroot=$root" "-B$root/usr/lib/x86_64-linux-gnu" "-L$root/lib/x86_64-linux-gnu" "\$@"
END
    chmod 755 "$directory/cc.new"
    mv "$directory/cc.new" "$directory/cc"
fi
