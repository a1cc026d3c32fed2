//! Targets as the command line names them: `drop-in`, or `drop-in+NAME=VALUE` for the same with a variable.

use super::definitions::{Definitions, Target};

/// The target that `word` means.
///
/// # Errors
///
/// A sentence that says what is wrong with it.
pub fn parse(definitions: &Definitions, word: &str) -> Result<Target, String> {
    if let Ok(target) = definitions.target(word) {
        return Ok(target.clone());
    }
    let mut parts = word.split('+');
    let mut target = definitions.target(parts.next().unwrap_or_default())?.clone();
    for part in parts {
        let Some((name, value)) = part.split_once('=').filter(|(name, _)| !name.is_empty()) else {
            return Err(format!(
                "`{part}` in the target `{word}` is not NAME=VALUE: write `{}+NAME=VALUE` to set a variable",
                target.name
            ));
        };
        target.env.insert(name.to_owned(), value.to_owned());
    }
    word.clone_into(&mut target.name);
    Ok(target)
}

/// The same target, if nothing is recorded: workloads and programs have no place for a recording.
///
/// # Errors
///
/// A sentence that says what to do instead.
pub fn not_recorded(target: Target) -> Result<Target, String> {
    match target.profile {
        None => Ok(target),
        Some(_) => Err(format!(
            "`{}` is an implementation of `bench locks` only\n\
             What recording costs a program is measured by `spinpark profile --overhead -- PROGRAM`",
            target.name
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
    fn a_target_with_variables() {
        let definitions = Definitions::built_in().unwrap();
        let target = parse(&definitions, "drop-in+SPINPARK_A=1+B=x=y").unwrap();
        assert!(target.preload);
        assert_eq!(target.name, "drop-in+SPINPARK_A=1+B=x=y");
        assert_eq!(target.env["SPINPARK_A"], "1");
        assert_eq!(target.env["B"], "x=y");
        assert_eq!(parse(&definitions, "drop-in-disabled").unwrap().env["SPINPARK_DISABLE"], "1");
    }

    #[test]
    fn recorded_targets_are_for_locks_only() {
        let definitions = Definitions::built_in().unwrap();
        let target = |word| not_recorded(parse(&definitions, word).unwrap());
        assert!(target("glibc+A=1").is_ok());
        let said = target("glibc-recorded-full+A=1").unwrap_err();
        assert!(said.contains("`glibc-recorded-full+A=1`") && said.contains("--overhead"), "{said}");
    }

    #[test]
    fn what_is_no_target() {
        let definitions = Definitions::built_in().unwrap();
        assert!(parse(&definitions, "none").unwrap_err().contains("there are: glibc, "));
        assert!(parse(&definitions, "glibc+A").unwrap_err().contains("`A` in the target"));
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
