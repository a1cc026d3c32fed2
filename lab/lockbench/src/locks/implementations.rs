//! Implementations as the command line names them: `drop-in`, or `drop-in+NAME=VALUE` for the same with a
//! variable. Of the mutex with delays, names are places, and values are times.

use std::path::PathBuf;

use spinpark_classics::mtx_2006::delays::{self, Delays};
use spinpark_measure::process::executable::{DropIn, Library};

use super::adapters::classics::DELAYS;
use super::definitions::{Definitions, Implementation};

/// The implementation that `word` means.
///
/// # Errors
///
/// A sentence that says the error in it.
pub fn parse(definitions: &Definitions, word: &str) -> Result<Implementation, String> {
    if let Ok(implementation) = definitions.implementation(word) {
        return Ok(implementation.clone());
    }
    let mut parts = word.split('+');
    let mut implementation = definitions.implementation(parts.next().unwrap_or_default())?.clone();
    if implementation.adapter == delays::LOCK {
        let given = word.split_once('+').map_or("", |(_, given)| given);
        if Delays::parse(given).is_none() {
            let lock = &implementation.name;
            return Err(format!(
                "`{word}` names no delays: write {lock}{} {lock}+attempt=6us",
                delays::SYNTAX
            ));
        }
        implementation.env.insert(DELAYS.to_owned(), given.to_owned());
        word.clone_into(&mut implementation.name);
        return Ok(implementation);
    }
    for part in parts {
        let Some((name, value)) = part.split_once('=').filter(|(name, _)| !name.is_empty()) else {
            return Err(format!(
                "`{part}` in the implementation `{word}` is not NAME=VALUE: write `{}+NAME=VALUE` to set a variable",
                implementation.name
            ));
        };
        implementation.env.insert(name.to_owned(), value.to_owned());
    }
    check_libraries(&mut implementation)?;
    word.clone_into(&mut implementation.name);
    Ok(implementation)
}

/// Makes the paths of the implementation's own libraries absolute. The loader ignores a file that it cannot
/// load, so that other locks would be measured than those of the name.
fn check_libraries(implementation: &mut Implementation) -> Result<(), String> {
    for library in [Library::DropIn, Library::Profiler] {
        let loads = implementation.loads(library);
        let Some(path) = implementation.env.get_mut(library.variable()) else {
            continue;
        };
        if !loads {
            return Err(format!(
                "`{}` does not load the {library}, so {} has no effect\nUse it with an implementation that does, such as {}",
                implementation.name,
                library.variable(),
                match library {
                    Library::DropIn => "drop-in",
                    Library::Profiler => "drop-in-recorded-contended",
                }
            ));
        }
        let found = DropIn::at(library, PathBuf::from(&*path)).map_err(|error| error.to_string())?;
        *path = found.path.to_string_lossy().into_owned();
    }
    Ok(())
}

/// The same implementation, if nothing is recorded: workloads and programs have no place for a recording.
///
/// # Errors
///
/// A sentence that says what to do instead.
pub fn not_recorded(implementation: Implementation) -> Result<Implementation, String> {
    match implementation.profile {
        None => Ok(implementation),
        Some(_) => Err(format!(
            "`{}` is an implementation of `bench locks` only\n\
             What recording costs a program is measured by `spinpark profile --overhead -- PROGRAM`",
            implementation.name
        )),
    }
}

/// The version of a package that this command was built with.
#[must_use]
pub fn package_version(package: &str) -> Option<&'static str> {
    version_in(include_str!("../../../../Cargo.lock"), package)
}

/// The last entry is the newest, if there are several.
fn version_in<'a>(lock_file: &'a str, package: &str) -> Option<&'a str> {
    let name = format!("name = \"{package}\"");
    let entries = lock_file.split("[[package]]").filter(|entry| entry.lines().any(|line| line == name));
    entries.last()?.lines().find_map(|line| line.strip_prefix("version = \"")?.strip_suffix('"'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_implementation_with_variables() {
        let definitions = Definitions::built_in().unwrap();
        let implementation = parse(&definitions, "drop-in+SPINPARK_A=1+B=x=y").unwrap();
        assert!(implementation.preload);
        assert_eq!(implementation.name, "drop-in+SPINPARK_A=1+B=x=y");
        assert_eq!(implementation.env["SPINPARK_A"], "1");
        assert_eq!(implementation.env["B"], "x=y");
        assert_eq!(parse(&definitions, "drop-in-disabled").unwrap().env["SPINPARK_DISABLE"], "1");
    }

    #[test]
    fn a_library_of_its_own_is_there_and_loaded() {
        let definitions = Definitions::built_in().unwrap();
        let refused = |word| parse(&definitions, word).unwrap_err();
        let said = refused("drop-in+SPINPARK_PRELOAD=/none.so");
        assert!(said.contains("/none.so") && said.contains("libspinpark_preload.so"), "{said}");
        let said = refused("glibc+SPINPARK_PRELOAD=/none.so");
        assert!(said.contains("`glibc` does not load the drop-in"), "{said}");
        let said = refused("drop-in+SPINPARK_PROFILER=/none.so");
        assert!(said.contains("`drop-in` does not load the profiler"), "{said}");
    }

    #[test]
    fn recorded_implementations_are_for_locks_only() {
        let definitions = Definitions::built_in().unwrap();
        let implementation = |word| not_recorded(parse(&definitions, word).unwrap());
        assert!(implementation("glibc+A=1").is_ok());
        let said = implementation("glibc-recorded-full+A=1").unwrap_err();
        assert!(said.contains("`glibc-recorded-full+A=1`") && said.contains("--overhead"), "{said}");
    }

    #[test]
    fn delays_are_places_and_times() {
        let definitions = Definitions::built_in().unwrap();
        let delayed = parse(&definitions, "classic-mtx-delayed+attempt=6us+wake=1ms").unwrap();
        assert_eq!(delayed.name, "classic-mtx-delayed+attempt=6us+wake=1ms");
        assert_eq!(delayed.env[DELAYS], "attempt=6us+wake=1ms");
        for wrong in ["classic-mtx-delayed+attempt=6", "classic-mtx-delayed+A=1us", "classic-mtx-delayed+"] {
            let said = parse(&definitions, wrong).unwrap_err();
            assert!(said.contains("`classic-mtx-delayed+") && said.contains("+attempt=6us"), "{said}");
        }
    }

    #[test]
    fn what_is_no_implementation() {
        let definitions = Definitions::built_in().unwrap();
        assert!(
            parse(&definitions, "none").unwrap_err().contains("`spinpark-lab bench list` shows them all")
        );
        assert!(parse(&definitions, "glibc+A").unwrap_err().contains("`A` in the implementation"));
    }

    #[test]
    fn versions() {
        let file =
            "[[package]]\nname = \"a\"\nversion = \"1.0\"\n\n[[package]]\nname = \"a\"\nversion = \"2.0\"\n";
        assert_eq!(version_in(file, "a"), Some("2.0"));
        assert_eq!(version_in(file, "b"), None);
        assert!(package_version("parking_lot").is_some_and(|version| version.starts_with("0.13")));
    }
}
