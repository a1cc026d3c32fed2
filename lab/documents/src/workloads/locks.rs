//! Whose locks a configuration has: an implementation of `bench locks` by its name, or an adapter by its
//! name.

use spinpark_lockbench::locks::adapters::{ADAPTERS, by_name};
use spinpark_lockbench::locks::definitions::{Definitions, Implementation, Role};
use spinpark_lockbench::locks::implementations;
use spinpark_lockbench::locks::selection::twice;

/// The word for "no lock".
pub const NONE: &str = "none";

/// What each of the words means to `of`.
pub fn each<T: PartialEq>(
    words: &[String],
    of: impl Fn(&Definitions, &str) -> Result<T, String>,
) -> Result<Vec<T>, String> {
    let definitions = Definitions::built_in().map_err(|error| error.to_string())?;
    let mut found = Vec::new();
    for word in words {
        let meant = of(&definitions, word)?;
        if found.contains(&meant) {
            return Err(twice("--locks", word));
        }
        found.push(meant);
    }
    Ok(found)
}

/// The implementations that `words` mean; [`NONE`] is none.
pub fn parse(words: &[String]) -> Result<Vec<Option<Implementation>>, String> {
    each(words, |definitions, word| match word {
        NONE => Ok(None),
        word => implementation(definitions, word).map(Some),
    })
}

fn implementation(definitions: &Definitions, word: &str) -> Result<Implementation, String> {
    let implementation = match implementations::parse(definitions, word) {
        Ok(implementation) => implementations::not_recorded(implementation)?,
        // An adapter without an implementation of that name: whatever locks this process has.
        Err(_) if by_name(&ADAPTERS, word).is_some() => Implementation {
            name: word.to_owned(),
            about: String::new(),
            role: Role::Control,
            adapter: word.to_owned(),
            preload: false,
            profile: None,
            env: Default::default(),
            install: None,
            package: None,
            varies: None,
        },
        Err(error) => return Err(error),
    };
    match by_name(&ADAPTERS, &implementation.adapter) {
        Some(adapter) if adapter.any_mutex.is_some() => Ok(implementation),
        Some(_) => Err(format!("`{word}` has no mutex")),
        None => Err(format!("the locks of `{word}` are not Rust's or libc's, so workloads cannot use them")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(words: &[&str]) -> Result<Vec<Option<Implementation>>, String> {
        parse(&words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>())
    }

    #[test]
    fn implementations_adapters_and_none() {
        let found = words(&["none", "glibc", "pthread", "drop-in+A=1"]).unwrap();
        assert_eq!(found.len(), 4);
        assert_eq!(found[0], None);
        assert_eq!(found[2].as_ref().unwrap().adapter, "pthread");
        assert!(found[3].as_ref().unwrap().preload);
    }

    #[test]
    fn what_cannot_be_used() {
        assert!(words(&["glibc", "none", "glibc"]).unwrap_err().contains("`glibc` twice"));
        assert!(words(&["no-such"]).unwrap_err().contains("spinpark-lab bench list"));
        assert!(words(&["drop-in-recorded-off"]).unwrap_err().contains("`bench locks` only"));
        assert!(words(&["abseil"]).unwrap_err().contains("workloads cannot use them"));
    }

    #[test]
    fn every_family_with_a_mutex_has_one_for_workloads() {
        for adapter in ADAPTERS.iter() {
            assert_eq!(adapter.mutex.is_some(), adapter.any_mutex.is_some(), "{}", adapter.name);
        }
    }
}
