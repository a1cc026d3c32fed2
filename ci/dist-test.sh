#!/usr/bin/env bash
# Installs, uses and removes the packages of ci/dist.sh in fresh root file systems of Debian; asks lintian; packs again, for the
# same bytes. Prints a line for each check.
#
#   ci/dist-test.sh [--rebuild] [RELEASE…]      bullseye (glibc 2.31), bookworm (2.36) and trixie (2.41), unless named
#
# --rebuild also builds the command again, from a copy of the last commit in another directory, for the same bytes.
#
# The command's packages are tried in systems without a compiler. Those of the C and C++ library are tried in systems with compilers,
# pkg-config and CMake: programs are compiled and linked in all ways that docs/c.md names, and run.
#
# Needs root, mmdebstrap, lintian and rpm, zsh and fish. The root file systems are kept as archives (target/dist/roots, 0.15 GB
# each, with compilers 0.5 GB).
set -euo pipefail
cd "$(dirname "$0")/.."

rebuild=
if [[ ${1:-} == --rebuild ]]; then
    rebuild=yes
    shift
fi
releases=("$@")
((${#releases[@]})) || releases=(bullseye bookworm trixie)

skip() {
    echo "skipped: $*"
    exit 0
}
((EUID == 0)) || skip "not root"
for tool in mmdebstrap unshare lintian rpm rpm2cpio cpio zsh fish; do
    command -v $tool > /dev/null || skip "$tool is not installed"
done

work=$(realpath "${CARGO_TARGET_DIR:-target}/dist")
packages=$work/packages
[[ -e $packages/SHA256SUMS ]] || skip "there are no packages in $packages: run ci/dist.sh"
scratch=$(mktemp -d)
trap 'rm -rf --one-file-system "$scratch"' EXIT

failed=0
check() { # NAME COMMAND…
    if "${@:2}" > "$scratch/output" 2>&1; then
        echo "passed: $1"
    else
        failed=1
        echo "FAILED: $1"
        sed 's/^/    /' "$scratch/output"
    fi
}

compilers=gcc,g++,libc6-dev,pkg-config,cmake,make
fresh_root() { # RELEASE PACKAGES: a fresh one with these packages, in $root
    local archive=$work/roots/$1-$2.tar
    if [[ ! -e $archive ]]; then
        mkdir -p "$work/roots"
        mmdebstrap --quiet --format=tar --variant=minbase --include="$2" "$1" "$archive.new" "$(ci/mirror.sh)"
        mv "$archive.new" "$archive"
    fi
    root=$scratch/root
    rm -rf --one-file-system "$root"
    mkdir -p "$root"
    tar --extract --directory "$root" --file "$archive"
    mkdir "$root/test"
    cp -r "$scratch/waits" ci/dist/use.sh ci/dist/use-c.sh crates/c/tests/programs "$packages"/*.{deb,rpm,tar.gz} "$root/test"
}

inside() { # COMMAND…: with /proc, /dev and /tmp of its own, which go away with it, as do processes
    unshare --mount --propagation private --pid --fork --kill-child bash -c '
        root=$1; shift
        mount -t proc proc "$root/proc" && mount --rbind /dev "$root/dev" && mount -t tmpfs -o mode=1777 tmpfs "$root/tmp" &&
            exec chroot "$root" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8 DEBIAN_FRONTEND=noninteractive "$@"
        ' - "$root" "$@" < /dev/null
}

# What is in the root file system, without what dpkg, rpm and man-db keep for themselves.
listing() {
    (cd "$root" && find . -xdev \( -path ./var/lib/dpkg -o -path ./var/cache -o -path ./var/log -o -path \
        ./test -o -path ./proc -o -path ./dev \) -prune -o -printf '%p %y %m %u\n' | sort)
}
is_as_before() { diff "$scratch/before" <(listing); }

use() { # PREFIX ZSH-DIRECTORY: as root, and as a user without a home directory
    inside /test/use.sh "$1" "$2" /test/waits &&
        inside setpriv --reuid=65534 --regid=65534 --clear-groups env HOME=/nonexistent /test/use.sh "$1" "$2" /test/waits
}

use_c() { # PREFIX LIBDIR
    inside /test/use-c.sh "$1" "$2" /test/programs
}

deb_installs() { # PACKAGE…
    inside sh -c 'for package; do set -- "$@" /test/"$package"_*.deb; shift; done; dpkg --install "$@"' sh "$@" && inside dpkg --verify "$@"
}
# No package of Debian is known to rpm there: its requirements are looked up as libraries.
rpm_inside() { rpm --root "$root" --dbpath /test/rpmdb "$@"; }
rpm_installs() { # PACKAGE…
    local package files=()
    for package; do files+=("$packages/$package"-[0-9]*.rpm); done
    rpm_inside --install --nodeps "${files[@]}" && rpm_inside --verify --nodeps "$@"
}
rpm_requires_are_there() { # FILE…
    local name
    rpm -qp --requires "$@" | sed -n 's/^\(l[^(]*\.so[^(]*\)().*/\1/p' | sort -u | while read -r name; do
        inside /sbin/ldconfig -p | grep -q "$name" || {
            echo "$name is not there"
            return 1
        }
    done
}
tarball_installs() { # PREFIX
    inside sh -c 'cd /test && tar xf *.tar.gz && spinpark-*/install.sh --prefix "$0" && spinpark-*/install.sh --prefix "$0"' "$1"
}

test_release() { # RELEASE
    fresh_root "$1" man-db
    local name prefix
    name="$1 (glibc $(inside ldd --version | sed -n '1s/.* //p'))"
    listing > "$scratch/before"
    check "$name, .deb: installs" deb_installs spinpark
    check "$name, .deb: works" use /usr vendor-completions
    check "$name, .deb: is removed" inside dpkg --purge spinpark
    check "$name, .deb: nothing is left" is_as_before
    check "$name, .rpm: what it requires is there" rpm_requires_are_there "$packages"/{spinpark,libspinpark}-[0-9]*.rpm
    check "$name, .rpm: installs" rpm_installs spinpark
    check "$name, .rpm: works" use /usr site-functions
    check "$name, .rpm: is removed" rpm_inside --erase spinpark
    check "$name, .rpm: nothing is left" is_as_before
    for prefix in /opt/spinpark /usr/local; do
        check "$name, tarball, in $prefix: installs, twice" tarball_installs "$prefix"
        check "$name, tarball, in $prefix: works" use "$prefix" site-functions
        check "$name, tarball, in $prefix: is removed" inside "$prefix/lib/spinpark/uninstall.sh"
        check "$name, tarball, in $prefix: nothing is left" is_as_before
    done

    fresh_root "$1" $compilers
    # Each distribution with rpm has it.
    mkdir -p "$root/usr/lib64"
    listing > "$scratch/before"
    check "$name, .deb of C and C++: installs" deb_installs "$library_package" libspinpark-dev
    check "$name, .deb of C and C++: works" use_c /usr lib/x86_64-linux-gnu
    check "$name, .deb of C and C++: is removed" inside dpkg --purge libspinpark-dev "$library_package"
    check "$name, .deb of C and C++: nothing is left" is_as_before
    check "$name, .rpm of C and C++: installs" rpm_installs libspinpark libspinpark-devel
    check "$name, .rpm of C and C++: works" use_c /usr lib64
    check "$name, .rpm of C and C++: is removed" rpm_inside --erase libspinpark-devel libspinpark
    check "$name, .rpm of C and C++: nothing is left" is_as_before
    for prefix in /opt/spinpark /usr/local; do
        check "$name, tarball with compilers, in $prefix: installs, twice" tarball_installs "$prefix"
        check "$name, tarball with compilers, in $prefix: C and C++ work" use_c "$prefix" lib
        check "$name, tarball with compilers, in $prefix: is removed" inside "$prefix/lib/spinpark/uninstall.sh"
        check "$name, tarball with compilers, in $prefix: nothing is left" is_as_before
    done
}

lintian_has_no_errors() { lintian --fail-on error,warning --allow-root "$packages"/*.deb; }

# All files are the same in the .debs, the .rpms and the tarball, but for where documentation, libraries and zsh's completions are.
packages_agree() {
    mkdir "$scratch/deb" "$scratch/rpm" "$scratch/tar"
    local package part
    for package in "$packages"/*.deb; do
        dpkg-deb --extract "$package" "$scratch/deb"
    done
    for package in "$packages"/*.rpm; do
        (cd "$scratch/rpm" && rpm2cpio "$package" | cpio --extract --make-directories --quiet)
    done
    tar --extract --directory "$scratch/tar" --strip-components=1 --file "$packages"/*.tar.gz
    for part in bin include lib/spinpark/libspinpark_{preload,profiler}.so share/{man,bash-completion,fish}; do
        diff -r "$scratch/deb/usr/$part" "$scratch/rpm/usr/$part" && diff -r "$scratch/deb/usr/$part" "$scratch/tar/$part" || return
    done
    for part in libspinpark.{a,so,so.0} cmake/spinpark/spinpark-config-version.cmake; do
        diff "$scratch/deb/usr/lib/x86_64-linux-gnu/$part" "$scratch/rpm/usr/lib64/$part" &&
            diff "$scratch/deb/usr/lib/x86_64-linux-gnu/$part" "$scratch/tar/lib/$part" || return
    done
}

shells_read_the_completions() {
    zsh -n "$scratch/tar/share/zsh/site-functions/_spinpark" &&
        fish --no-execute "$scratch/tar/share/fish/vendor_completions.d/spinpark.fish"
}

# Packed at another time, in another time zone and with another umask.
packs_the_same() { # SHA256SUMS COMMAND
    (umask 077 && TZ=Asia/Tokyo ci/dist.sh --command "$2" --output "$scratch/again") && diff "$1" "$scratch/again/SHA256SUMS"
}

builds_the_same() {
    local copy=$scratch/elsewhere
    git clone --quiet --shared . "$copy" && (cd "$copy" && env -u CARGO_TARGET_DIR ci/dist.sh) &&
        diff "$packages/SHA256SUMS" "$copy/target/dist/packages/SHA256SUMS"
}

library_package=$(basename "$packages"/libspinpark[0-9]*.deb)
library_package=${library_package%%_*}
"$work/cc" -O2 -g -pthread -o "$scratch/waits" crates/fixtures/programs/waits.c
check "checksums" sh -c 'cd "$0" && sha256sum --check --quiet SHA256SUMS' "$packages"
check "lintian has no errors" lintian_has_no_errors
check "the packages have the same files" packages_agree
check "zsh and fish read the completions" shells_read_the_completions
check "the same command is packed into the same bytes" packs_the_same "$packages/SHA256SUMS" "$scratch/deb/usr/bin/spinpark"
for release in "${releases[@]}"; do
    test_release "$release"
done
[[ -z $rebuild ]] || check "another build, in another directory, has the same bytes" builds_the_same
exit $failed
