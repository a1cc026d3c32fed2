//! The command is one file: it carries the libraries that it preloads, wherever it is moved.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use assert_cmd::cargo::cargo_bin;
use tempfile::TempDir;

use spinpark_fixtures::command::{program, said};
use spinpark_fixtures::compile_c;

const DROP_IN: &str = "libspinpark_preload.so";

/// Copies a program. Not by `fs::copy`: a process that another test starts meanwhile has the file open for
/// writing until its `exec`, and the copy cannot be run until then (ETXTBSY).
fn copy(from: impl AsRef<Path>, to: &Path) {
    assert!(Command::new("cp").arg(from.as_ref()).arg(to).status().unwrap().success());
}

/// A copy of the command, alone in a directory, and a home.
struct Moved {
    directory: TempDir,
}

impl Moved {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        for name in ["prefix", "prefix/bin", "home", "tmp"] {
            fs::create_dir(directory.path().join(name)).unwrap();
            fs::set_permissions(directory.path().join(name), fs::Permissions::from_mode(0o755)).unwrap();
        }
        let moved = Self { directory };
        copy(cargo_bin!("spinpark"), &moved.path("prefix/bin/spinpark"));
        moved
    }

    fn path(&self, path: &str) -> PathBuf {
        self.directory.path().canonicalize().unwrap().join(path)
    }

    /// Sets nothing but the home; no other place is open.
    fn environment<'a>(&self, command: &'a mut Command) -> &'a mut Command {
        for variable in
            ["XDG_CACHE_HOME", "XDG_RUNTIME_DIR", "SPINPARK_PRELOAD", "SPINPARK_PROFILER", "LD_PRELOAD"]
        {
            command.env_remove(variable);
        }
        command.env("HOME", self.path("home")).env("TMPDIR", self.path("tmp"))
    }

    fn command<const N: usize>(&self, args: [&str; N]) -> Command {
        let mut command = Command::new(self.path("prefix/bin/spinpark"));
        self.environment(command.args(args));
        command
    }

    /// The drop-in that a program gets.
    fn preloaded(&self) -> PathBuf {
        let result = said(&mut self.command(["run", "sh", "-c", "echo $LD_PRELOAD"]));
        result.succeeds(&[DROP_IN]);
        assert_eq!(result.stderr, "");
        PathBuf::from(result.stdout.trim())
    }

    /// Runs a script as root in mount and other namespaces of its own; `$0` is the command. `None` if that is
    /// not allowed.
    fn with_mounts(&self, script: &str) -> Option<spinpark_fixtures::command::Said> {
        let mut is_allowed = Command::new("unshare");
        is_allowed.args(["--mount", "mount", "-t", "tmpfs", "none"]).arg(self.path("home"));
        if !is_allowed.stderr(Stdio::null()).status().is_ok_and(|status| status.success()) {
            eprintln!("skipped: this process cannot mount file systems in a namespace of its own");
            return None;
        }
        let mut command = Command::new("unshare");
        command.args(["--mount", "sh", "-ec", script]).arg(self.path("prefix/bin/spinpark"));
        Some(said(self.environment(&mut command)))
    }
}

#[test]
fn a_moved_command_works() {
    let moved = Moved::new();
    let path = moved.preloaded();
    assert!(path.starts_with(moved.path("home/.cache/spinpark")), "{}", path.display());
    // It is the real one, and it is loaded.
    let mut run = moved.command(["run", "--"]);
    let result = said(run.arg(program()).env("SPINPARK_VERBOSE", "1"));
    assert!(result.stderr.starts_with("spinpark: active"), "{result:?}");
    let mut profile = moved.command(["profile", "--"]);
    profile.current_dir(moved.path("home")); // for the recording
    said(profile.arg(spinpark_fixtures::command::waits())).fails(0, &["glibc's locks", "All waiting is on"]);
    said(&mut moved.command(["libraries"]))
        .succeeds(&["libspinpark_preload.so (carried", "libspinpark_profiler.so (carried"]);
}

#[test]
fn installed_libraries_are_used_if_they_are_the_same() {
    let moved = Moved::new();
    let lib = moved.path("prefix/lib");
    said(moved.command(["libraries", "--to"]).arg(&lib)).succeeds(&["lib/libspinpark_profiler.so"]);
    fs::set_permissions(&lib, fs::Permissions::from_mode(0o755)).unwrap();
    let installed = lib.join(DROP_IN);
    fs::set_permissions(&installed, fs::Permissions::from_mode(0o644)).unwrap();
    assert_eq!(moved.preloaded(), installed);
    assert!(!moved.path("home/.cache").exists());
    // Another version, or another file.
    fs::copy(spinpark_fixtures::command::drop_in(), &installed).unwrap();
    assert!(moved.preloaded().starts_with(moved.path("home/.cache")));
    said(&mut moved.command(["libraries"])).succeeds(&["not used", "not the library of this command"]);
    // The variable comes first.
    let result =
        said(moved.command(["run", "sh", "-c", "echo $LD_PRELOAD"]).env("SPINPARK_PRELOAD", &installed));
    assert_eq!(result.stdout.trim(), installed.to_str().unwrap());
}

#[test]
fn first_starts_at_once() {
    let moved = Moved::new();
    let start = || moved.command(["run", "sh", "-c", "echo $LD_PRELOAD"]).stdout(Stdio::piped()).spawn();
    let children: Vec<_> = (0..8).map(|_| start().unwrap()).collect();
    let mut paths: Vec<_> =
        children.into_iter().map(|child| child.wait_with_output().unwrap().stdout).collect();
    paths.dedup();
    assert_eq!(paths.len(), 1, "{paths:?}");
    let path = PathBuf::from(String::from_utf8(paths.remove(0)).unwrap().trim());
    assert_eq!(fs::read_dir(path.parent().unwrap()).unwrap().count(), 1);
}

#[test]
fn no_home() {
    let moved = Moved::new();
    let found = |home: &str| {
        let mut command = moved.command(["libraries"]);
        said(command.env("HOME", home)).stdout
    };
    for home in ["", "relative", "/no/such/home"] {
        let text = found(home);
        assert!(text.contains("/tmp/spinpark-") && text.contains("(carried"), "{home}: {text}");
    }
    assert!(found("/no/such/home").contains("not used: /no/such/home: No such file"));
}

#[test]
fn a_read_only_home() {
    let moved = Moved::new();
    let Some(result) =
        moved.with_mounts("mount -t tmpfs none \"$HOME\"; mount -o remount,ro \"$HOME\"; \"$0\" libraries")
    else {
        return;
    };
    result.succeeds(&["tmp/spinpark-0/", "not used", "home/.cache: Read-only file system"]);
}

#[test]
fn a_full_disk() {
    let moved = Moved::new();
    // One page is too small for any library.
    let Some(result) = moved.with_mounts(
        "mount -t tmpfs -o size=4k none \"$HOME\"; \"$0\" libraries; find \"$HOME\" -name '.lib*'",
    ) else {
        return;
    };
    result.succeeds(&["tmp/spinpark-0/", "not used", "No space left on device"]);
    assert!(!result.stdout.contains("/.lib"), "nothing is left there: {}", result.stdout);
    let Some(result) = moved.with_mounts("mount -t tmpfs -o size=1m none \"$HOME\"; \"$0\" libraries") else {
        return;
    };
    assert!(!result.stdout.contains("not used"), "{result:?}");
}

#[test]
fn a_mount_without_exec() {
    let moved = Moved::new();
    let Some(result) = moved.with_mounts("mount -t tmpfs -o noexec none \"$HOME\"; \"$0\" libraries") else {
        return;
    };
    result.succeeds(&[
        "tmp/spinpark-0/",
        "not used",
        "programs cannot load code from there (mounted noexec?)",
    ]);
    // The loader agrees: the drop-in from there is not loaded. And where it is complete already, it is still
    // not used.
    let mounted = "mount -t tmpfs none \"$HOME\"; \"$0\" libraries; mount -o remount,noexec \"$HOME\"; \"$0\" libraries";
    let Some(result) = moved.with_mounts(mounted) else { return };
    result.succeeds(&["home/.cache/spinpark/", "tmp/spinpark-0/", "mounted noexec?"]);
}

/// Mounts over every directory that may have the libraries; the command is at /mnt.
const EVERYWHERE: &str = "mount --bind \"$(dirname \"$0\")\" /mnt; \
    for place in \"$HOME\" \"$TMPDIR\" /tmp /var/tmp /run /dev/shm; do mount -t tmpfs -o noexec none \"$place\"; done; ";

/// A container whose root is read-only, and whose other file systems have no programs.
#[test]
fn no_directory_at_all() {
    let moved = Moved::new();
    copy(program(), &moved.path("prefix/bin/program"));
    let script = format!(
        "{EVERYWHERE} export SPINPARK_VERBOSE=1; exec /mnt/spinpark run -- sh -c '/mnt/program; echo $LD_PRELOAD'"
    );
    let Some(result) = moved.with_mounts(&script) else { return };
    result.succeeds(&["score: 3000", "/proc/"]);
    // In the shell, and in what it starts.
    assert_eq!(result.stderr.matches("spinpark: active").count(), 2, "{result:?}");
    assert!(!result.stderr.contains("cannot be preloaded"), "{result:?}");
    // What is recorded goes to a file system with space, and the observer knows the recorder.
    let script =
        format!("{EVERYWHERE} cd /dev/shm; exec /mnt/spinpark profile --locks spinpark -- /mnt/program");
    let Some(result) = moved.with_mounts(&script) else { return };
    assert!(result.code == Some(0) && result.stderr.contains("spinpark's locks"), "{result:?}");
    assert!(!result.stderr.contains("not recorded"), "{result:?}");
    let script = format!(
        "{EVERYWHERE} for place in /tmp /var/tmp /run; do mount -o remount,ro \"$place\"; done; \
         exec /mnt/spinpark compare --rounds 6 -- /mnt/program"
    );
    let Some(result) = moved.with_mounts(&script) else { return };
    result.succeeds(&["median of runs"]);
}

/// A daemon's programs are started after the program has ended, with its environment. If the process that keeps
/// the file were gone, its number could be that of another user's process.
#[test]
fn a_file_in_memory_stays_for_the_processes_that_name_it() {
    let moved = Moved::new();
    let script = format!(
        "{EVERYWHERE} mkfifo /tmp/end; \
         path=$(/mnt/spinpark run -- sh -c 'timeout 60 sh -c \"read line < /tmp/end\" > /dev/null 2>&1 & echo $LD_PRELOAD'); \
         sleep 2; test -r \"$path\"; echo > /tmp/end; \
         tries=0; while test -e \"$path\" && test $tries -lt 600; do sleep 0.1; tries=$((tries + 1)); done; \
         test ! -e \"$path\"; echo \"gone: $path\""
    );
    let Some(result) = moved.with_mounts(&script) else { return };
    result.succeeds(&["gone: /proc/"]);
}

#[test]
fn no_place_at_all() {
    let moved = Moved::new();
    let script = format!("{EVERYWHERE} mount -t tmpfs none /proc; exec /mnt/spinpark run true");
    let Some(result) = moved.with_mounts(&script) else { return };
    result.fails(
        125,
        &["no directory is fit for libspinpark_preload.so", "spinpark libraries --to", "SPINPARK_PRELOAD"],
    );
}

/// One user starts programs, while another one puts directories and links of the expected names, with a
/// library of its own, where the first one's are to be: no program loads it.
#[test]
fn another_user_who_is_as_fast() {
    let moved = Moved::new();
    copy(compile_c("squatter.c", &[]), &moved.path("prefix/bin/squatter"));
    copy(compile_c("foreign.c", &["-shared", "-fPIC"]), &moved.path("prefix/bin/foreign.so"));
    let Some(result) = moved.with_mounts(
        r#"
        chmod 755 "$(dirname "$0")"/*
        mount --bind "$(dirname "$0")" /mnt
        for place in /tmp /var/tmp /dev/shm; do mount -t tmpfs -o mode=1777 none "$place"; done
        mount -t tmpfs none /run
        mkdir /run/control /run/victim /run/attacker
        chown 65533 /run/victim && chown 65534 /run/control /run/attacker && chmod 700 /run/victim
        as_user() { user=$1; shift; setpriv --reuid="$user" --regid="$user" --clear-groups env TMPDIR=/tmp HOME=/nonexistent "$@"; }
        # A program that was started so says whose library it has, and whether that is the right one.
        says='echo "$(stat -Lc %u "$LD_PRELOAD") $(cmp "$LD_PRELOAD" "$EXPECTED" && echo same)"'
        as_user 65533 /mnt/spinpark libraries --to /run/victim/expected > /dev/null
        chmod 755 /run/victim
        echo "unguarded: $(as_user 65533 LD_PRELOAD=/mnt/foreign.so true)"

        # What the other user has to know.
        path=$(as_user 65533 /mnt/spinpark run -- sh -c 'echo "$LD_PRELOAD"')
        version=$(basename "$(dirname "$path")")
        rm -r /tmp/spinpark-65533
        as_user 65534 sh -ec "mkdir -p /run/attacker/tree/$version; chmod 700 /run/attacker/tree/$version
            for name in preload profiler; do cp /mnt/foreign.so /run/attacker/tree/$version/libspinpark_\$name.so; done"
        # A directory of the victim that would do.
        as_user 65533 mkdir -m 700 -p /run/victim/own
        as_user 65534 /mnt/squatter /run/control/end spinpark-65533 /run/attacker/tree /run/victim/own /tmp /var/tmp /dev/shm &
        trap 'touch /run/control/end' EXIT
        until [ -e /run/control/end.began ]; do kill -0 $! || exit 1; sleep 0.05; done

        for start in $(seq 40); do
            as_user 65533 EXPECTED=/run/victim/expected/libspinpark_preload.so /mnt/spinpark run -- sh -c "$says"
            as_user 65533 sh -c 'rm -rf /tmp/spinpark-65533 /var/tmp/spinpark-65533 /dev/shm/spinpark-65533' 2> /dev/null || true
        done
        for start in $(seq 5); do
            as_user 65533 EXPECTED=/run/victim/expected/libspinpark_profiler.so \
                /mnt/spinpark profile --output "/run/victim/$start" -- sh -c "$says" 2> /run/control/report || cat /run/control/report
            as_user 65533 sh -c 'rm -rf /tmp/spinpark-65533 /var/tmp/spinpark-65533 /dev/shm/spinpark-65533' 2> /dev/null || true
        done
        kill -0 $!
        touch /run/control/end
        wait $!
        "#,
    ) else {
        return;
    };
    let expected = format!("unguarded: another user's code runs\n{}", "65533 same\n".repeat(45));
    assert!(result.code == Some(0) && result.stdout.as_str() == expected, "{result:?}");
}

/// The loader replaces `$LIB` in `LD_PRELOAD`, and has no quotes: such places are passed over.
#[test]
fn places_that_the_loader_would_not_find() {
    let moved = Moved::new();
    for name in ["$LIB", "a ${ORIGIN} b", "$PLATFORM", "a:b", "'\"", "ü$"] {
        let home = moved.path("home").join(name);
        fs::create_dir(&home).unwrap();
        fs::set_permissions(&home, fs::Permissions::from_mode(0o755)).unwrap();
        let own = home.join("program");
        copy(program(), &own);
        let mut command = moved.command(["run", "--"]);
        command.arg(&own).env("HOME", &home).env("TMPDIR", &home).env("SPINPARK_VERBOSE", "1");
        let result = said(&mut command);
        assert!(
            result.code == Some(0) && result.stderr.starts_with("spinpark: active"),
            "{name}: {result:?}"
        );
        assert_eq!(
            home.join(".cache").exists(),
            !name.contains([' ', ':']) && !name.contains("$L") && !name.contains("$P"),
            "{name}"
        );
    }
    // Named so, it is refused.
    let lib = moved.path("$LIB");
    said(moved.command(["libraries", "--to"]).arg(&lib)).succeeds(&["libspinpark_preload.so"]);
    let mut command = moved.command(["run", "true"]);
    said(command.env("SPINPARK_PRELOAD", lib.join(DROP_IN)))
        .fails(125, &["that the loader replaces", "Copy the drop-in"]);
}
