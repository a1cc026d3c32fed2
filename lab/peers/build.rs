//! Compiles each shim in `shims` (`.c`, `.cc`) whose library is installed, and lists all of them in
//! `peers.rs` for `src/foreign.rs`. A peer that is left out is listed with the reason, and the worker says
//! it.
//!
//! A shim says by lines of its own what it needs:
//!
//! | line                        | meaning                                                                   |
//! |-----------------------------|---------------------------------------------------------------------------|
//! | the first `#include`        | the header that is there if the library is installed                      |
//! | `// pkg-config: NAME`       | the library to link, and its include paths                                |
//! | `// header-only`            | there is no library to link, or none that pkg-config has to know          |
//! | `// std: c++20`             | the standard of C++; else C++17                                           |
//!
//! Without the second and the third, the library is called like the shim. Headers are also looked for in
//! `shims`, and in the directories of `SPINPARK_PEERS_INCLUDE`, separated by colons.

use std::error::Error;
use std::path::PathBuf;
use std::process::Command;
use std::{env, fs};

use pkg_config::Library;

type Result<T> = std::result::Result<T, Box<dyn Error>>;

/// The variable with more directories for headers.
const INCLUDE: &str = "SPINPARK_PEERS_INCLUDE";

/// The kinds of locks, each with what a shim with that kind defines.
const KINDS: [(&str, &[&str]); 3] = [
    ("mutex", &["lock", "unlock", "mutex_size", "mutex_init", "mutex_destroy"]),
    (
        "rwlock",
        &["read", "read_unlock", "write", "write_unlock", "rwlock_size", "rwlock_init", "rwlock_destroy"],
    ),
    ("condvar", &["wait", "signal", "broadcast", "condvar_size", "condvar_init", "condvar_destroy"]),
];

/// Why a peer is left out.
enum Missing {
    /// This header is not found.
    Header(String),
    /// Anything else, in words.
    Other(String),
}

impl From<String> for Missing {
    fn from(why: String) -> Self {
        Self::Other(why)
    }
}

fn main() -> Result<()> {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=shims");
    println!("cargo::rerun-if-env-changed={INCLUDE}");
    let mut shims = Vec::new();
    for entry in fs::read_dir("shims")? {
        let path = entry?.path();
        let is_hidden = path.file_name().is_some_and(|name| name.to_string_lossy().starts_with('.'));
        if path.extension().is_some_and(|kind| kind == "c" || kind == "cc") && !is_hidden {
            shims.push(path);
        }
    }
    shims.sort();
    if let Some([one, other]) =
        shims.array_windows().find(|[one, other]| one.file_stem() == other.file_stem())
    {
        return Err(format!("{} and {} have one name", one.display(), other.display()).into());
    }
    let (mut built, mut found) = (String::new(), String::new());
    for path in shims {
        let shim = Shim::read(path)?;
        println!("cargo::rerun-if-changed={}", shim.watched().display());
        let (name, result) = (&shim.name, shim.build());
        if result.is_ok() {
            built += &format!("peer!({name}: {});\n", shim.kinds().join(" "));
        }
        let found_out = match result {
            Ok(version) => format!("Ok(({name}::adapter(), {version:?}))"),
            Err(Missing::Header(header)) => format!("Err(Missing::Header({header:?}))"),
            Err(Missing::Other(why)) => {
                println!("cargo::warning={name} is left out: {why}");
                format!("Err(Missing::Other({why:?}))")
            }
        };
        found += &format!("    ({name:?}, {found_out}),\n");
    }
    let list = format!(
        "{built}
/// All peers by name.
pub(crate) fn peers() -> Vec<(&'static str, Found)> {{
    vec![
{found}    ]
}}
"
    );
    fs::write(out_dir().join("peers.rs"), list)?;
    Ok(())
}

fn out_dir() -> PathBuf {
    env::var_os("OUT_DIR").unwrap_or_default().into()
}

/// The file that gives a library's locks a C interface.
struct Shim {
    path: PathBuf,
    /// Its stem: the name of the adapter, and of the library if pkg-config does not know it.
    name: String,
    text: String,
}

impl Shim {
    fn read(path: PathBuf) -> Result<Self> {
        let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        Ok(Self { text: fs::read_to_string(&path)?, path, name })
    }

    /// The header that it includes first.
    fn header(&self) -> &str {
        self.line("#include ").map_or("", |header| header.trim_matches(['<', '>', '"']))
    }

    /// The rest of the line that starts so.
    fn line(&self, start: &str) -> Option<&str> {
        self.text.lines().find_map(|line| line.strip_prefix(start)).map(str::trim)
    }

    fn package(&self) -> Option<&str> {
        self.line("// pkg-config: ")
    }

    fn is_header_only(&self) -> bool {
        self.text.lines().any(|line| line == "// header-only")
    }

    fn defines(&self, name: &str) -> bool {
        self.text.contains(&format!("PEER({name})"))
    }

    fn kinds(&self) -> Vec<&'static str> {
        let has = |(_, names): &(_, &[&str])| names.iter().any(|name| self.defines(name));
        KINDS.into_iter().filter(has).map(|(kind, _)| kind).collect()
    }

    /// Checks that a kind of lock is whole, and that the worker can have a module of the shim's name.
    fn check(&self) -> std::result::Result<(), String> {
        let is_word = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
        if !self.name.chars().all(is_word) || self.name.starts_with(|letter: char| letter.is_ascii_digit()) {
            let name = &self.name;
            return Err(format!("`{name}` is no name in Rust: letters, digits and `_` are allowed"));
        }
        let kinds = self.kinds();
        if kinds.is_empty() {
            return Err(String::from("its shim defines no PEER(lock), PEER(read) or PEER(wait)"));
        }
        let names = KINDS.into_iter().filter(|(kind, _)| kinds.contains(kind)).flat_map(|(_, names)| names);
        match names.into_iter().find(|name| !self.defines(name)) {
            Some(name) => Err(format!("its shim does not define PEER({name})")),
            None if kinds.contains(&"condvar") && !kinds.contains(&"mutex") => {
                Err(String::from("its shim has a condition variable and no mutex"))
            }
            None => Ok(()),
        }
    }

    /// The path that changes when the library is installed or removed. A file that does not exist would
    /// always count as changed.
    fn watched(&self) -> PathBuf {
        let usual = PathBuf::from("/usr/include");
        let mut all = own_includes().into_iter().chain([usual.clone()]).map(|path| path.join(self.header()));
        all.find(|header| header.exists()).unwrap_or(usual)
    }

    /// Compiles it and links the library. Returns the library's version, which may be empty.
    fn build(&self) -> std::result::Result<String, Missing> {
        self.check()?;
        let probe = |package| pkg_config::Config::new().cargo_metadata(false).probe(package).ok();
        let library = self.package().and_then(probe);
        self.compile(library.as_ref())?;
        for path in library.iter().flat_map(|library| &library.link_paths) {
            println!("cargo::rustc-link-search=native={}", path.display());
            println!("cargo::rustc-link-arg=-Wl,-rpath,{}", path.display());
        }
        for name in self.libraries(library.as_ref()) {
            println!("cargo::rustc-link-lib=dylib={name}");
        }
        Ok(library.map_or_else(String::new, |library| library.version))
    }

    /// What is linked.
    fn libraries<'a>(&'a self, library: Option<&'a Library>) -> Vec<&'a str> {
        match library {
            Some(library) => library.libs.iter().map(String::as_str).collect(),
            None if self.is_header_only() => Vec::new(),
            None => vec![&self.name],
        }
    }

    /// Compiles what the worker links. Before that, it finds out in this order what stands in the way: no
    /// header, one that does not compile, the shim, or linking them.
    fn compile(&self, library: Option<&Library>) -> std::result::Result<(), Missing> {
        let extension = self.path.extension().unwrap_or_default();
        let mut build = cc::Build::new();
        build.opt_level(2).includes(own_includes()).cargo_warnings(false);
        build.includes(library.iter().flat_map(|library| &library.include_paths));
        if extension == "cc" {
            let standard = self.line("// std: ").unwrap_or("c++17");
            build.cpp(true).std(standard);
        }
        build.define("PEER(function)", &*format!("peer_{}_##function", self.name));
        let compiler = build.try_get_compiler().map_err(|error| error.to_string())?;
        let probe = out_dir().join(format!("{}_probe", self.name)).with_extension(extension);
        let check = |text: String| -> std::result::Result<(), String> {
            fs::write(&probe, text).map_err(|error| error.to_string())?;
            succeeds(compiler.to_command().arg("-fsyntax-only").arg(&probe))
        };
        let header = self.header();
        check(format!("#if !__has_include(<{header}>)\n#error none\n#endif\n"))
            .map_err(|_| Missing::Header(header.to_owned()))?;
        if let (Some(package), None, false) = (self.package(), library, self.is_header_only()) {
            return Err(format!("pkg-config does not know `{package}`").into());
        }
        check(format!("#include <{header}>\n"))
            .map_err(|error| format!("its header {header} does not compile: {error}"))?;
        succeeds(compiler.to_command().arg("-fsyntax-only").arg(&self.path))
            .map_err(|error| format!("its shim does not compile: {error}"))?;
        let mut link = compiler.to_command();
        link.args(["-shared", "-Wl,-z,defs", "-o"]).arg(out_dir().join(format!("{}.so", self.name)));
        let paths = library.iter().flat_map(|library| &library.link_paths);
        link.arg(&self.path).args(paths.map(|path| format!("-L{}", path.display())));
        link.args(self.libraries(library).into_iter().map(|name| format!("-l{name}")));
        succeeds(&mut link).map_err(|error| format!("its shim does not link: {error}"))?;
        let built = build.file(&self.path).try_compile(&format!("peer_{}", self.name));
        built.map_err(|error| error.to_string().into())
    }
}

fn own_includes() -> Vec<PathBuf> {
    let more = env::var_os(INCLUDE).unwrap_or_default();
    env::split_paths(&more)
        .filter(|path| !path.as_os_str().is_empty())
        .chain([PathBuf::from("shims")])
        .collect()
}

/// Runs a compiler. If it fails, returns the first of its lines that names an error.
fn succeeds(command: &mut Command) -> std::result::Result<(), String> {
    let output = command.env("LC_ALL", "C").output().map_err(|error| error.to_string())?;
    let said = String::from_utf8_lossy(&output.stderr);
    let is_error =
        |line: &&str| line.contains("error") || line.contains("undefined") || line.contains("cannot");
    let first =
        said.lines().find(is_error).or(said.lines().next()).unwrap_or("the compiler does not say why");
    if output.status.success() { Ok(()) } else { Err(first.trim().to_owned()) }
}
