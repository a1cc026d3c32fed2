#!/usr/bin/env bash
# Makes the packages: of the command a .deb and an .rpm, of the C and C++ library two of each (the library; what programs are built
# with), and a tarball of all with an install script.
#
#   ci/dist.sh [--output DIR] [--command FILE]
#
# DIR is target/dist/packages unless given. FILE is a command to pack as it is; without it, one is built. What is built is linked for
# the glibc of Debian 11. Needs dpkg-deb, rpmbuild, python3, git, binutils and mmdebstrap. ci/dist-test.sh checks the result.
#
# One tree is staged, and dpkg-deb, rpmbuild and tar pack it. cargo-deb and cargo-generate-rpm would each have its list of files
# again, in Cargo.toml, and need the generated ones (manual pages, completions, licences) made before all the same.
#
# The same sources, Rust, linker and packing tools give the same bytes, in any directory: times are the last commit's
# (SOURCE_DATE_EPOCH), and no path of this machine is in the command.
set -euo pipefail
umask 022
export LC_ALL=C
cd "$(dirname "$0")/.."

die() {
    echo "ci/dist.sh: $*" >&2
    exit 1
}

target=${CARGO_TARGET_DIR:-target}
mkdir -p "$target/dist"
work=$(realpath "$target/dist")
output=$work/packages command=
while (($#)); do
    case $1 in
    --output) output=$(realpath -m "${2:?--output needs a directory}") ;;
    --command) command=$(realpath "${2:?--command needs a file}") ;;
    *) die "unknown argument $1; use: ci/dist.sh [--output DIR] [--command FILE]" ;;
    esac
    shift 2
done

[[ $(uname -m) == x86_64 ]] || die "packages are made on x86-64 only"
for tool in dpkg-deb rpmbuild python3 git objdump; do
    command -v $tool > /dev/null || die "$tool is not installed; on Debian: apt-get install dpkg rpm python3 git binutils"
done
version=$(sed -n '/^\[workspace.package\]/,/^$/s/^version = "\(.*\)"/\1/p' Cargo.toml)
# 0.1.0~rc.1 is before 0.1.0 for dpkg and rpm, 0.1.0-rc.1 is not.
package_version=${version/-/\~}
export SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct)}
maintainer='The spinpark developers <spinpark@users.noreply.github.com>'

ci/dist/cc.sh "$work"
# Flags of this machine would be in what is built.
unset RUSTFLAGS CARGO_ENCODED_RUSTFLAGS CARGO_BUILD_RUSTFLAGS CARGO_BUILD_TARGET SPINPARK_LIBRARIES
remapped=("${CARGO_HOME:-$HOME/.cargo}=/cargo" "$(rustc --print sysroot)=/rust" "$PWD=/spinpark" "$work/build=/target")
CARGO_ENCODED_RUSTFLAGS=$(printf '\x1f--remap-path-prefix=%s' "${remapped[@]}")
export CARGO_ENCODED_RUSTFLAGS=${CARGO_ENCODED_RUSTFLAGS:1}
export CARGO_INCREMENTAL=0 CARGO_TARGET_X86_64_UNKNOWN_LINUX_GNU_LINKER=$work/cc CARGO_TARGET_DIR=$work/build
if [[ -z $command ]]; then
    cargo build --release --locked -p spinpark-cli
    command=$work/build/release/spinpark
fi

# The newest version of glibc's symbols that FILE needs.
needed_glibc() { objdump -T "$1" | sed -n '/\*UND\*/s/.*(GLIBC_\([0-9.]*\)).*/\1/p' | sort -V | tail -n 1; }

staging=$(mktemp -d)
trap 'rm -rf "$staging"' EXIT
tree=$staging/tree
mkdir -p "$tree"/{bin,lib/spinpark,share/{man/man1,bash-completion/completions,fish/vendor_completions.d}}
install -m 755 "$command" "$tree/bin/spinpark"
"$command" libraries --to "$tree/lib/spinpark" > /dev/null
chmod 644 "$tree"/lib/spinpark/*.so
(cd "$tree/share/man" && "$command" man man1) > /dev/null
gzip -9n "$tree"/share/man/man1/*
"$command" completions bash > "$tree/share/bash-completion/completions/spinpark"
"$command" completions zsh > "$staging/_spinpark"
"$command" completions fish > "$tree/share/fish/vendor_completions.d/spinpark.fish"
ci/dist/licences.py spinpark-cli spinpark-pthread spinpark-recorder-preload > "$staging/dependencies.txt"
ci/dist/licences.py spinpark-c > "$staging/c-dependencies.txt"
script=crates/pthread/libspinpark_preload.so-gdb.py

# LIBDIR STAGE: the C and C++ library, as /usr of a package
copy_c() {
    LIBDIR=$1 CC=$work/cc DESTDIR=$staging/c-$1 crates/c/install.sh /usr
    cp -a "$staging/c-$1/usr/." "$2"
}
mkdir -p "$staging/c"
copy_c lib "$staging/c"
soname=$(objdump -p "$staging/c/lib/libspinpark.so" | sed -n 's/^ *SONAME *//p')

# 2.31 is the oldest that is tested.
glibc=$({ echo 2.31; for file in "$tree/bin/spinpark" "$tree"/lib/spinpark/*.so "$staging/c/lib/$soname"; do needed_glibc "$file"; done; } |
    sort -V | tail -n 1)

# STAGE ZSH_DIRECTORY: the tree as /usr of a package, with what all three have
copy_tree() {
    cp -a "$tree/." "$1"
    install -D -m 644 "$staging/_spinpark" "$1/share/zsh/$2/_spinpark"
}

# A package's files have one time, that of the last commit.
set_times() { find "$1" -exec touch --no-dereference --date="@$SOURCE_DATE_EPOCH" {} +; }

# gdb loads the script with the library if it lies there: its directory of scripts, and then the library's path.
gdb_directory=usr/share/gdb/auto-load/usr/lib/spinpark

# PACKAGE DEPENDENCIES: what a .deb has to say about itself
debian_documents() {
    local doc=$staging/deb-$1/usr/share/doc/$1
    mkdir -p "$doc"
    sed "s/@PACKAGE@/$1/" ci/dist/copyright > "$doc/copyright"
    gzip -9n < "$2" > "$doc/dependencies.txt.gz"
    gzip -9n < CHANGELOG.md > "$doc/CHANGELOG.md.gz"
    gzip -9n > "$doc/changelog.gz" << END
spinpark ($package_version) unstable; urgency=medium

  * The changes of each version are in CHANGELOG.md.gz.

 -- $maintainer  $(date --utc --rfc-email --date="@$SOURCE_DATE_EPOCH")
END
}

# PACKAGE: packs what is staged; the control fields that are its own are on stdin
pack_deb() {
    local stage=$staging/deb-$1
    mkdir -p "$stage/DEBIAN"
    (cd "$stage" && find usr -type f -print0 | sort -z | xargs -0 md5sum > DEBIAN/md5sums)
    cat > "$stage/DEBIAN/control" << END
Package: $1
Version: $package_version
Architecture: amd64
Maintainer: $maintainer
Installed-Size: $(find "$stage/usr" -printf '%y %s\n' | awk '{ kib += $1 == "f" ? int(($2 + 1023) / 1024) : 1 } END { print kib }')
Priority: optional
Homepage: https://github.com/spinpark/spinpark
END
    cat >> "$stage/DEBIAN/control"
    set_times "$stage"
    # Debian 11's dpkg reads xz, not zstd.
    dpkg-deb --root-owner-group --threads-max=1 -Zxz --build "$stage" "$output/${1}_${package_version}_amd64.deb" > /dev/null
}

make_deb() {
    local stage=$staging/deb-spinpark
    mkdir -p "$stage/usr"
    copy_tree "$stage/usr" vendor-completions
    install -D -m 644 $script "$stage/$gdb_directory/${script##*/}"
    install -D -m 644 ci/dist/lintian-overrides "$stage/usr/share/lintian/overrides/spinpark"
    debian_documents spinpark "$staging/dependencies.txt"
    pack_deb spinpark << END
Depends: libc6 (>= $glibc), libgcc-s1 (>= 4.2)
Section: devel
Description: find the lock that a threaded program waits for
 spinpark profile names the lock that an unmodified program waits for, the
 thread that holds it and the threads that wait for it. spinpark why shows
 what a running or hanging process waits for, a deadlock first.
 .
 spinpark compare measures whether spinpark's mutexes, read-write locks and
 condition variables make the program faster than glibc's; spinpark run uses
 them. Programs need no rebuild.
END
}

library_package=libspinpark${soname##*.}
make_c_debs() {
    local lib=lib/x86_64-linux-gnu stage=$staging/deb-$library_package development=$staging/deb-libspinpark-dev
    mkdir -p "$development/usr/share/doc" "$stage/usr/$lib" "$stage/DEBIAN"
    copy_c $lib "$development/usr"
    mv "$development/usr/$lib"/libspinpark.so.* "$stage/usr/$lib"
    chmod 644 "$stage/usr/$lib"/*
    debian_documents "$library_package" "$staging/c-dependencies.txt"
    ln -s "$library_package" "$development/usr/share/doc/libspinpark-dev"
    echo "libspinpark ${soname##*.} $library_package (>= $package_version)" > "$stage/DEBIAN/shlibs"
    echo "activate-noawait ldconfig" > "$stage/DEBIAN/triggers"
    pack_deb "$library_package" << END
Source: spinpark
Depends: libc6 (>= $glibc)
Section: libs
Multi-Arch: same
Description: fast mutexes, read-write locks and condition variables
 libspinpark has locks for programs in C and C++. Threads spin while that
 pays, and otherwise sleep in order; no thread starves.
 .
 This package has the shared library.
END
    pack_deb libspinpark-dev << END
Source: spinpark
Depends: $library_package (= $package_version), libc6-dev
Section: libdevel
Multi-Arch: same
Description: fast mutexes, read-write locks and condition variables (development)
 libspinpark has locks for programs in C and C++. Threads spin while that
 pays, and otherwise sleep in order; no thread starves.
 .
 This package has the headers, the static library, and what pkg-config and
 CMake need.
END
}

make_rpms() {
    local stage=$staging/rpm c_stage=$staging/rpm-c
    mkdir -p "$stage/usr" "$c_stage/usr"
    copy_tree "$stage/usr" site-functions
    install -D -m 644 $script "$stage/$gdb_directory/${script##*/}"
    install -D -m 644 -t "$stage/usr/share/licenses/spinpark" LICENSE-APACHE LICENSE-MIT "$staging/dependencies.txt"
    install -D -m 644 -t "$stage/usr/share/doc/spinpark" CHANGELOG.md
    set_times "$stage"
    # Also the directories of shells, gdb and licences, which may not be there: they go with this package.
    {
        echo '%defattr(-,root,root)'
        (cd "$stage" && find usr/*/* -type d ! -path 'usr/share/man*' ! -path usr/share/doc -printf '%%dir /%p\n' | sort)
        (cd "$stage" && find usr ! -type d ! -path 'usr/share/licenses/*' ! -path 'usr/share/doc/*' -printf '/%p\n' | sort)
        (cd "$stage" && find usr/share/licenses -type f -printf '%%license /%p\n' | sort)
        (cd "$stage" && find usr/share/doc -type f -printf '%%doc /%p\n' | sort)
    } > "$staging/files"

    copy_c lib64 "$c_stage/usr"
    install -D -m 644 -t "$c_stage/usr/share/licenses/libspinpark" LICENSE-APACHE LICENSE-MIT
    install -m 644 "$staging/c-dependencies.txt" "$c_stage/usr/share/licenses/libspinpark/dependencies.txt"
    set_times "$c_stage"
    {
        echo '%defattr(-,root,root)'
        echo "/usr/lib64/libspinpark.so.*"
        echo '%dir /usr/share/licenses'
        echo '%dir /usr/share/licenses/libspinpark'
        echo '%license /usr/share/licenses/libspinpark/*'
    } > "$staging/files-library"
    {
        echo '%defattr(-,root,root)'
        (cd "$c_stage" && find usr/lib64/* -type d -printf '%%dir /%p\n' | sort)
        (cd "$c_stage" && find usr/include usr/lib64 ! -type d ! -name 'libspinpark.so.*' -printf '/%p\n' | sort)
    } > "$staging/files-devel"

    rpmbuild -bb --quiet --target x86_64 --define "_topdir $staging/rpmbuild" --define "stage $stage" --define "c_stage $c_stage" \
        --define "package_version $package_version" --define "package_files $staging/files" ci/dist/spinpark.spec
    install -m 644 "$staging"/rpmbuild/RPMS/x86_64/*.rpm "$output"
}

make_tarball() {
    local name=spinpark-$version-x86_64-linux
    local stage=$staging/$name
    mkdir "$stage"
    copy_tree "$stage" site-functions
    cp -a "$staging/c/." "$stage"
    # The prefix is chosen later.
    sed -i 's|^prefix=.*|prefix=${pcfiledir}/../..|' "$stage/lib/pkgconfig/spinpark.pc"
    install -m 644 $script "$stage/lib/spinpark"
    install -m 755 ci/dist/install.sh "$stage"
    install -m 755 ci/dist/uninstall.sh "$stage/lib/spinpark"
    install -D -m 644 -t "$stage/share/doc/spinpark" CHANGELOG.md LICENSE-APACHE LICENSE-MIT "$staging/dependencies.txt"
    set_times "$stage"
    tar --create --directory "$staging" --sort=name --format=ustar --owner=0 --group=0 --numeric-owner "$name" |
        gzip -9n > "$output/$name.tar.gz"
}

mkdir -p "$output"
make_deb
make_c_debs
make_rpms
make_tarball
cd "$output"
sha256sum {spinpark,"$library_package",libspinpark-dev}_"$package_version"_amd64.deb \
    {spinpark,libspinpark,libspinpark-devel}-"$package_version"-1.x86_64.rpm "spinpark-$version-x86_64-linux.tar.gz" | tee SHA256SUMS
echo "in $output; they need glibc $glibc"
