//! What other users, crashes and other processes may leave in the way.

use std::fs::{self, File, FileTimes, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, symlink};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, SystemTime};

use tempfile::TempDir;

use super::{
    CARRIED, Carried, Found, INSTALLED, Place, WRITTEN, copy_to, find_carried, find_installed,
    install_directories, is_version,
};

const LIBRARY: Carried =
    Carried { file: "libspinpark_test.so", content: b"\x7fELF and so on", version: VERSION };
const VERSION: &str = "1.2.3-0123456789abcdef";
const OTHER_USER: u32 = 65534;

/// An empty home, and the places in it.
struct Home {
    directory: TempDir,
    installed: Vec<PathBuf>,
    private: Vec<Place>,
}

impl Home {
    fn new() -> Self {
        let directory = TempDir::new().unwrap();
        let root = directory.path().canonicalize().unwrap();
        let private = vec![
            Place { path: root.join("cache/spinpark"), creates_parent: true },
            Place { path: root.join("tmp/spinpark-0"), creates_parent: false },
        ];
        fs::create_dir_all(root.join("prefix/bin")).unwrap();
        fs::create_dir(root.join("tmp")).unwrap();
        mode(&root.join("tmp"), 0o1777);
        for directory in ["prefix", "prefix/bin"] {
            mode(&root.join(directory), 0o755);
        }
        Self { directory, installed: install_directories(&root.join("prefix/bin/spinpark")), private }
    }

    fn path(&self, path: &str) -> PathBuf {
        self.directory.path().canonicalize().unwrap().join(path)
    }

    fn find(&self) -> anyhow::Result<Found> {
        find_carried(LIBRARY, &self.installed, &self.private, |_| anyhow::bail!("no memory"))
    }

    /// The file that is found, which must have the content.
    #[track_caller]
    fn found(&self) -> Found {
        let found = self.find().unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(fs::read(&found.path).unwrap(), LIBRARY.content);
        found
    }

    /// Where the file is without obstacles.
    fn usual(&self) -> PathBuf {
        self.version().join(LIBRARY.file)
    }

    fn version(&self) -> PathBuf {
        self.path("cache/spinpark").join(VERSION)
    }

    /// The cache is passed over because `path` has `problem`; the temporary directory has the file.
    #[track_caller]
    fn passes_over(&self, path: &Path, problem: &str) {
        let found = self.found();
        assert_eq!(found.path, self.path("tmp/spinpark-0").join(VERSION).join(LIBRARY.file));
        assert_refused(&found, path, problem);
    }
}

/// One place was refused, for this reason.
#[track_caller]
fn assert_refused(found: &Found, path: &Path, problem: &str) {
    let texts: Vec<_> = found.refusals.iter().map(|refusal| format!("{refusal:#}")).collect();
    let start = format!("{}: {problem}", path.display());
    assert!(matches!(&texts[..], [text] if text.starts_with(&start)), "{start}: {texts:?}");
}

fn mode(path: &Path, mode: u32) {
    fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
}

/// Gives it to another user; only the superuser can.
fn give_away(path: &Path) -> bool {
    let is_given = chown(path, Some(OTHER_USER), None).is_ok();
    if !is_given {
        eprintln!("skipped: only the superuser can give {} away", path.display());
    }
    is_given
}

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

#[test]
fn written_once() {
    let home = Home::new();
    let found = home.found();
    assert_eq!((found.path, found.origin), (home.usual(), WRITTEN));
    for private in ["cache", "cache/spinpark", VERSION] {
        let path = if private == VERSION { home.version() } else { home.path(private) };
        assert_eq!(fs::metadata(path).unwrap().mode() & 0o7777, 0o700, "{private}");
    }
    let first = fs::metadata(home.usual()).unwrap().ino();
    home.found();
    assert_eq!(fs::metadata(home.usual()).unwrap().ino(), first, "not written again");
    assert_eq!(fs::read_dir(home.version()).unwrap().count(), 1, "nothing else is left there");
}

#[test]
fn a_symbolic_link_in_place_of_our_directory() {
    for link in ["cache/spinpark", &format!("cache/spinpark/{VERSION}")] {
        let home = Home::new();
        let elsewhere = home.path("elsewhere");
        fs::create_dir(&elsewhere).unwrap();
        mode(&elsewhere, 0o700);
        fs::create_dir(home.path("cache")).unwrap();
        let link = home.path(link);
        if link != home.path("cache/spinpark") {
            fs::create_dir(home.path("cache/spinpark")).unwrap();
            mode(&home.path("cache/spinpark"), 0o700);
        }
        symlink(&elsewhere, &link).unwrap();
        home.passes_over(&link, "not a directory, or a symbolic link");
        assert_eq!(fs::read_dir(elsewhere).unwrap().count(), 0, "nothing was written through the link");
    }
}

#[test]
fn a_symbolic_link_in_place_of_the_file() {
    let home = Home::new();
    home.found();
    let target = home.path("target");
    fs::write(&target, LIBRARY.content).unwrap();
    fs::remove_file(home.usual()).unwrap();
    symlink(&target, home.usual()).unwrap();
    assert_eq!(home.found().path, home.usual());
    assert!(fs::symlink_metadata(home.usual()).unwrap().is_file(), "the link was replaced");
    // Nor is one followed that leads to a file to be written.
    fs::write(&target, "precious").unwrap();
    fs::remove_file(home.usual()).unwrap();
    symlink(&target, home.usual()).unwrap();
    home.found();
    assert_eq!(fs::read(&target).unwrap(), b"precious");
}

/// Links in the user's own paths are followed: the path that is walked afterwards has none.
#[test]
fn a_cache_that_is_a_symbolic_link() {
    let home = Home::new();
    fs::create_dir(home.path("scratch")).unwrap();
    mode(&home.path("scratch"), 0o700);
    symlink(home.path("scratch"), home.path("cache")).unwrap();
    assert_eq!(home.found().path, home.path("scratch/spinpark").join(VERSION).join(LIBRARY.file));
}

#[test]
fn another_owner() {
    for given in ["cache", "cache/spinpark", &format!("cache/spinpark/{VERSION}")] {
        let home = Home::new();
        home.found();
        if !give_away(&home.path(given)) {
            return;
        }
        home.passes_over(&home.path(given), &format!("belongs to user {OTHER_USER}"));
    }
    let home = Home::new();
    home.found();
    give_away(&home.usual());
    home.found();
    assert_eq!(fs::metadata(home.usual()).unwrap().uid(), 0, "the file was replaced");
}

#[test]
fn another_mode() {
    for (path, bits, is_private) in [
        ("cache", 0o777, false),
        ("cache", 0o770, false),
        ("cache/spinpark", 0o755, true),
        ("cache/spinpark", 0o1777, true),
        (&format!("cache/spinpark/{VERSION}"), 0o770, true),
    ] {
        let home = Home::new();
        home.found();
        mode(&home.path(path), bits);
        let problem = if is_private {
            format!("its mode is {bits:04o}, not 0700; run `chmod 700`")
        } else {
            format!("other users can write to it (mode {bits:04o})")
        };
        home.passes_over(&home.path(path), &problem);
    }
    let home = Home::new();
    home.found();
    mode(&home.usual(), 0o666);
    home.found();
    assert_eq!(fs::metadata(home.usual()).unwrap().mode() & 0o7777, 0o600, "the file was replaced");
}

/// What a killed process, a crash of the machine or a careless user leaves.
#[test]
fn another_content() {
    let longer = [LIBRARY.content, b"x"].concat();
    for content in [b"".as_slice(), &LIBRARY.content[..4], b"\x7fELF and so off", &longer] {
        let home = Home::new();
        home.found();
        fs::write(home.usual(), content).unwrap();
        home.found();
    }
    let home = Home::new();
    home.found();
    fs::remove_file(home.usual()).unwrap();
    fs::create_dir(home.usual()).unwrap();
    home.passes_over(&home.usual(), "Is a directory");
}

#[test]
fn processes_that_write_at_once() {
    let home = Home::new();
    for _ in 0..50 {
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| assert_eq!(home.found().path, home.usual()));
            }
        });
        assert_eq!(fs::read_dir(home.version()).unwrap().count(), 1);
        fs::remove_dir_all(home.path("cache/spinpark")).unwrap();
    }
}

/// In a shared temporary directory, other users can neither change what was checked nor supply it.
#[test]
fn another_user_in_a_shared_directory() {
    if !is_root() {
        eprintln!("skipped: only the superuser can act as another user");
        return;
    }
    let mut home = Home::new();
    home.private.remove(0);
    mode(home.directory.path(), 0o755);
    // As it is without obstacles: nothing that the other user tries succeeds.
    let path = home.found().path;
    let ours = home.path("tmp/spinpark-0");
    let tries = "rm -rf \"$1\"; mv \"$1\" \"$1.old\"; ln -sfn /tmp \"$1\"; echo bad > \"$2\"; mv \"$1/$3\" /tmp; \
                 chmod 777 \"$1\"; touch \"${1%/*}/allowed\"";
    let mut shell = Command::new("sh");
    shell.args(["-c", tries, "sh"]).arg(&ours).arg(&path).arg(VERSION);
    let mut shell = shell.uid(OTHER_USER).gid(OTHER_USER).stderr(Stdio::null()).spawn().unwrap();
    shell.wait().unwrap();
    assert!(home.path("tmp/allowed").exists(), "the other user can write to the directory");
    assert_eq!(home.found().path, path);
    // The other user was first.
    fs::remove_dir_all(&ours).unwrap();
    fs::create_dir_all(ours.join(VERSION)).unwrap();
    fs::write(ours.join(VERSION).join(LIBRARY.file), LIBRARY.content).unwrap();
    mode(&ours, 0o700);
    give_away(&ours);
    let error = home.find().unwrap_err().to_string();
    assert!(error.contains("spinpark-0: belongs to user 65534"), "{error}");
    // The same without the sticky bit: whose directory is in it does not matter.
    fs::remove_dir_all(&ours).unwrap();
    mode(&home.path("tmp"), 0o777);
    assert!(home.find().unwrap_err().to_string().contains("other users can write to it (mode 0777)"));
}

#[test]
fn installed_with_the_command() {
    let home = Home::new();
    let beside = home.path("prefix/lib/spinpark").join(LIBRARY.file);
    fs::create_dir_all(beside.parent().unwrap()).unwrap();
    for directory in ["prefix/lib", "prefix/lib/spinpark"] {
        mode(&home.path(directory), 0o755);
    }
    fs::write(&beside, LIBRARY.content).unwrap();
    mode(&beside, 0o644);
    let found = home.found();
    assert_eq!((found.path, found.origin), (beside.clone(), INSTALLED));
    assert!(!home.path("cache").exists(), "nothing is written");
    // Through a link (a store of packages), the path is that of the file itself.
    symlink(&beside, home.path("prefix/bin").join(LIBRARY.file)).unwrap();
    assert_eq!(home.found().path, beside);
    fs::remove_file(home.path("prefix/bin").join(LIBRARY.file)).unwrap();

    let is_passed_over = |path: &Path, problem: &str| {
        let found = home.found();
        assert_eq!((&found.path, found.origin), (&home.usual(), WRITTEN));
        assert_refused(&found, path, problem);
    };
    mode(&beside, 0o666);
    is_passed_over(&beside, "other users can write to it (mode 0666)");
    mode(&beside, 0o644);
    mode(&home.path("prefix/lib"), 0o777);
    is_passed_over(&home.path("prefix/lib"), "other users can write to it (mode 0777)");
    mode(&home.path("prefix/lib"), 0o755);
    fs::write(&beside, "another version").unwrap();
    is_passed_over(&beside, "not the library of this command");
    fs::write(&beside, LIBRARY.content).unwrap();
    if give_away(&beside) {
        is_passed_over(&beside, &format!("belongs to user {OTHER_USER}"));
    }
}

/// Where nothing is carried, the installed file is taken as it is.
#[test]
fn nothing_is_carried() {
    let home = Home::new();
    let error = find_installed(LIBRARY.file, &home.installed).unwrap_err().to_string();
    assert!(error.contains("cannot find libspinpark_test.so") && error.contains("lib/spinpark/"), "{error}");
    let beside = home.path("prefix/bin").join(LIBRARY.file);
    fs::write(&beside, "any").unwrap();
    assert_eq!(find_installed(LIBRARY.file, &home.installed).unwrap().path, beside);
}

#[test]
fn no_place_at_all() {
    let mut home = Home::new();
    home.private.clear();
    assert!(home.find().unwrap_err().to_string().contains("no directory is fit for libspinpark_test.so"));
    let missing = home.path("missing/cache");
    home.private = vec![
        Place { path: missing.join("spinpark"), creates_parent: true },
        Place { path: home.path("with blank/spinpark"), creates_parent: true },
    ];
    let error = home.find().unwrap_err().to_string();
    assert!(error.contains("No such file or directory") && error.contains("without blanks"), "{error}");
    assert!(!home.path("missing").exists(), "a home that does not exist is not created");
    assert!(!home.path("with blank").exists(), "nothing is created that LD_PRELOAD cannot name");
}

#[test]
fn versions_that_are_not_used_go() {
    const DAY: Duration = Duration::from_secs(24 * 60 * 60);
    let home = Home::new();
    let ours = home.path("cache/spinpark");
    let version = |number: u32| format!("1.2.{number}-0123456789abcdef");
    let aged = |path: &Path, days: u32| {
        let time = SystemTime::now() - days * DAY;
        File::open(path).unwrap().set_times(FileTimes::new().set_modified(time)).unwrap();
    };
    for (number, days) in [(0, 31), (1, 29), (2, 31)] {
        find_carried(
            Carried { version: version(number).leak(), ..LIBRARY },
            &home.installed,
            &home.private,
            |_| anyhow::bail!("no memory"),
        )
        .unwrap();
        if number == 2 {
            fs::write(ours.join(version(number)).join("notes"), "mine").unwrap();
        }
        aged(&ours.join(version(number)), days);
    }
    fs::create_dir(ours.join("other")).unwrap();
    aged(&ours.join("other"), 99);
    let found = home.found();
    assert_eq!(found.path, home.usual());
    assert!(!ours.join(version(0)).exists(), "unused for 31 days");
    assert!(ours.join(version(1)).join(LIBRARY.file).exists(), "used 29 days ago");
    assert!(ours.join(version(2)).join("notes").exists() && ours.join("other").exists(), "not ours");

    // The version that is used stays, and using it is noted.
    aged(&home.version(), 40);
    home.found();
    let used = fs::metadata(home.version()).unwrap().modified().unwrap();
    assert!(used.elapsed().unwrap_or_default() < DAY && home.usual().exists());
    // What an interrupted writer left goes.
    let unfinished = home.version().join(".libspinpark_test.so.1-0");
    File::create(&unfinished).unwrap();
    aged(&unfinished, 2);
    aged(&home.version(), 40);
    home.found();
    assert!(home.usual().exists() && !unfinished.exists());
}

#[test]
fn what_the_command_carries() {
    if CARRIED.is_empty() {
        eprintln!("skipped: built with SPINPARK_LIBRARIES=none");
        return;
    }
    let version = CARRIED[0].version;
    assert!(version.starts_with(env!("CARGO_PKG_VERSION")) && is_version(version), "{version}");
    let directory = TempDir::new().unwrap();
    let copies = copy_to(&directory.path().join("new")).unwrap();
    let names: Vec<_> = copies.iter().map(|path| path.file_name().unwrap().to_str().unwrap()).collect();
    assert_eq!(names, ["libspinpark_preload.so", "libspinpark_profiler.so"]);
    for (copy, library) in copies.iter().zip(CARRIED) {
        assert_eq!(fs::read(copy).unwrap(), library.content);
        assert!(library.content.starts_with(b"\x7fELF"));
    }
    copy_to(&directory.path().join("new")).unwrap();
    assert_eq!(fs::read_dir(directory.path().join("new")).unwrap().count(), 2);
}

#[test]
fn an_installation() {
    let expected = ["/usr/bin", "/usr/lib", "/usr/lib/spinpark"];
    assert_eq!(install_directories("/usr/bin/spinpark".as_ref()), expected.map(PathBuf::from));
}

#[test]
fn versions() {
    assert!(is_version("0.1.0-0123456789abcdef") && is_version("0.2.0-rc-1-0123456789abcdef"));
    assert!(!is_version("0.1.0") && !is_version("notes-0123456789abcdef") && !is_version("0.1.0-beef"));
}
