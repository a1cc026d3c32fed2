//! Whose condition variables: document 003's three, or a target of `bench locks`.

use spinpark_lockbench::locks::definitions::{Definitions, Side, Target};
use spinpark_lockbench::locks::selection::twice;
use spinpark_lockbench::locks::targets;

use super::alternate;

/// The document's three variants, by the names that it has for them, and their families.
const OF_2003: [(&str, &str, &str); 3] = [
    ("orig", "condvar-2003-orig", "glibc's of 2003: a wake, then an unlock"),
    ("requeue", "condvar-2003-requeue", "the same, with the waiter moved to the internal lock"),
    ("wake-op", "condvar-2003-wake-op", "the same, with the unlock in the kernel (FUTEX_WAKE_OP)"),
];

/// What is measured by default. The first one is the baseline.
pub const DEFAULT: &str = "orig,requeue,wake-op,glibc,std,parking_lot,spinpark,drop-in";

/// The targets that `words` mean.
///
/// # Errors
///
/// A sentence about the first word that means nothing, or has no condition variable.
pub fn parse(words: &[String]) -> Result<Vec<Target>, String> {
    let definitions = Definitions::built_in().map_err(|error| error.to_string())?;
    let mut found = Vec::new();
    for word in words {
        let target = target(&definitions, word)?;
        if found.contains(&target) {
            return Err(twice("--locks", word));
        }
        found.push(target);
    }
    Ok(found)
}

fn target(definitions: &Definitions, word: &str) -> Result<Target, String> {
    if let Some((name, family, about)) = OF_2003.iter().find(|(name, ..)| *name == word) {
        return Ok(Target {
            name: (*name).to_owned(),
            about: (*about).to_owned(),
            side: Side::Control,
            family: (*family).to_owned(),
            preload: false,
            profile: None,
            env: Default::default(),
            install: None,
            package: None,
            varies: None,
        });
    }
    let here = || OF_2003.map(|(name, ..)| name).join(", ");
    let target = targets::parse(definitions, word).map_err(|error| format!("{error}, and {}", here()))?;
    let target = targets::not_recorded(target)?;
    match alternate::by_name(&target.family) {
        Some(_) => Ok(target),
        None => Err(format!("`{word}` has no condition variable that this workload can use")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(words: &str) -> Result<Vec<Target>, String> {
        parse(&words.split(',').map(str::to_owned).collect::<Vec<_>>())
    }

    #[test]
    fn the_documents_own_and_targets() {
        let found = words("orig,wake-op,glibc,drop-in+A=1").unwrap();
        assert_eq!(found.len(), 4);
        assert_eq!(found[1].family, "condvar-2003-wake-op");
        assert!(found[3].preload);
        assert_eq!(words(DEFAULT).unwrap().len(), 8);
    }

    #[test]
    fn what_cannot_be_used() {
        assert!(words("orig,glibc,orig").unwrap_err().contains("`orig` twice"));
        let said = words("no-such").unwrap_err();
        assert!(said.contains("`no-such`") && said.contains("wake-op"), "{said}");
        assert!(words("glibc-recorded-off").unwrap_err().contains("`bench locks` only"));
        assert!(words("onetbb").unwrap_err().contains("no condition variable"));
    }
}
