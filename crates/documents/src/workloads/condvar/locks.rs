//! Whose condition variables: document 003's three, or an implementation of `bench locks`.

use spinpark_lockbench::locks::definitions::{Definitions, Implementation, Role};
use spinpark_lockbench::locks::implementations;
use spinpark_lockbench::locks::selection::twice;

use super::alternate;

/// The document's three variants, by the names that it has for them, and their adapters.
const OF_2003: [(&str, &str, &str); 3] = [
    ("orig", "condvar-2003-orig", "glibc's of 2003: a wake, then an unlock"),
    ("requeue", "condvar-2003-requeue", "the same, with the waiter moved to the internal lock"),
    ("wake-op", "condvar-2003-wake-op", "the same, with the unlock in the kernel (FUTEX_WAKE_OP)"),
];

/// What is measured by default. The first one is the baseline.
pub const DEFAULT: &str = "orig,requeue,wake-op,glibc,std,parking_lot,spinpark,drop-in";

/// The implementations that `words` mean.
///
/// # Errors
///
/// A sentence about the first word that means nothing, or has no condition variable.
pub fn parse(words: &[String]) -> Result<Vec<Implementation>, String> {
    let definitions = Definitions::built_in().map_err(|error| error.to_string())?;
    let mut found = Vec::new();
    for word in words {
        let implementation = implementation(&definitions, word)?;
        if found.contains(&implementation) {
            return Err(twice("--locks", word));
        }
        found.push(implementation);
    }
    Ok(found)
}

fn implementation(definitions: &Definitions, word: &str) -> Result<Implementation, String> {
    if let Some((name, adapter, about)) = OF_2003.iter().find(|(name, ..)| *name == word) {
        return Ok(Implementation {
            name: (*name).to_owned(),
            about: (*about).to_owned(),
            role: Role::Control,
            adapter: (*adapter).to_owned(),
            preload: false,
            profile: None,
            env: Default::default(),
            install: None,
            package: None,
            varies: None,
        });
    }
    let here = || OF_2003.map(|(name, ..)| name).join(", ");
    let implementation =
        implementations::parse(definitions, word).map_err(|error| format!("{error}, and {}", here()))?;
    let implementation = implementations::not_recorded(implementation)?;
    match alternate::by_name(&implementation.adapter) {
        Some(_) => Ok(implementation),
        None => Err(format!("`{word}` has no condition variable that this workload can use")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(words: &str) -> Result<Vec<Implementation>, String> {
        parse(&words.split(',').map(str::to_owned).collect::<Vec<_>>())
    }

    #[test]
    fn the_documents_own_and_implementations() {
        let found = words("orig,wake-op,glibc,drop-in+A=1").unwrap();
        assert_eq!(found.len(), 4);
        assert_eq!(found[1].adapter, "condvar-2003-wake-op");
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
