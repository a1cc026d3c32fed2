//! Whose locks an arm has: a target of `bench locks` by its name, or a family by its name.

use spinpark_lockbench::locks::definitions::{Definitions, Side, Target};
use spinpark_lockbench::locks::families::{FAMILIES, by_name};
use spinpark_lockbench::locks::selection::twice;
use spinpark_lockbench::locks::targets;

/// The word for "no lock".
pub const NONE: &str = "none";

/// The targets that `words` mean; [`NONE`] is none.
///
/// # Errors
///
/// A sentence about the first word that means nothing, or whose mutexes workloads cannot use.
pub fn parse(words: &[String]) -> Result<Vec<Option<Target>>, String> {
    let definitions = Definitions::built_in().map_err(|error| error.to_string())?;
    let mut found = Vec::new();
    for word in words {
        let target = if word == NONE { None } else { Some(target(&definitions, word)?) };
        if found.contains(&target) {
            return Err(twice("--locks", word));
        }
        found.push(target);
    }
    Ok(found)
}

fn target(definitions: &Definitions, word: &str) -> Result<Target, String> {
    let target = match targets::parse(definitions, word) {
        Ok(target) => targets::not_recorded(target)?,
        // A family without a target of that name: whatever locks this process has.
        Err(_) if by_name(&FAMILIES, word).is_some() => Target {
            name: word.to_owned(),
            about: String::new(),
            side: Side::Control,
            family: word.to_owned(),
            preload: false,
            profile: None,
            env: Default::default(),
            install: None,
            package: None,
            varies: None,
        },
        Err(error) => return Err(error),
    };
    match by_name(&FAMILIES, &target.family) {
        Some(family) if family.any_mutex.is_some() => Ok(target),
        Some(_) => Err(format!("`{word}` has no mutex")),
        None => Err(format!("the locks of `{word}` are not Rust's or libc's, so workloads cannot use them")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(words: &[&str]) -> Result<Vec<Option<Target>>, String> {
        parse(&words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>())
    }

    #[test]
    fn targets_families_and_none() {
        let found = words(&["none", "glibc", "pthread", "drop-in+A=1"]).unwrap();
        assert_eq!(found.len(), 4);
        assert_eq!(found[0], None);
        assert_eq!(found[2].as_ref().unwrap().family, "pthread");
        assert!(found[3].as_ref().unwrap().preload);
    }

    #[test]
    fn what_cannot_be_used() {
        assert!(words(&["glibc", "none", "glibc"]).unwrap_err().contains("`glibc` twice"));
        assert!(words(&["no-such"]).unwrap_err().contains("there are: glibc"));
        assert!(words(&["drop-in-recorded-off"]).unwrap_err().contains("`bench locks` only"));
        assert!(words(&["abseil"]).unwrap_err().contains("workloads cannot use them"));
    }

    #[test]
    fn every_family_with_a_mutex_has_one_for_workloads() {
        for family in FAMILIES.iter() {
            assert_eq!(family.mutex.is_some(), family.any_mutex.is_some(), "{}", family.name);
        }
    }
}
