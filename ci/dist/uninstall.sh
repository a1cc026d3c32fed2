#!/bin/sh
# Removes the spinpark that was installed with this script: its files, and the directories made for them if they are empty.
set -eu
prefix=$(cd "$(dirname "$0")/../.." && pwd -P)
installed=$(cat "$prefix/lib/spinpark/installed")
cd /
reversed=
for path in $installed; do
    reversed="$path $reversed"
done
for path in $reversed; do
    # `rmdir` refuses a path that ends with a dot.
    [ "$path" != . ] || path=
    if [ -d "$prefix/$path" ] && [ ! -L "$prefix/$path" ]; then
        rmdir "$prefix/$path" 2> /dev/null ||
            echo "$prefix/$path is not empty, and stays"
    else
        rm -f "$prefix/$path"
    fi
done
