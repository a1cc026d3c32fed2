//! Whose condition variables: implementations of `bench locks`, document 003's three among them.

use spinpark_lockbench::locks::definitions::{Definitions, Implementation};
use spinpark_lockbench::locks::implementations;
use spinpark_lockbench::locks::selection::twice;

use super::alternate;

/// What is measured by default. The first one is the baseline.
pub const DEFAULT: &str = "classic-condvar-orig,classic-condvar-requeue,classic-condvar-wake-op,glibc,std,parking_lot,spinpark,drop-in";

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
    let implementation = implementations::not_recorded(implementations::parse(definitions, word)?)?;
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
    fn the_documents_own_and_targets() {
        let found = words("classic-condvar-orig,classic-condvar-wake-op,glibc,drop-in+A=1").unwrap();
        assert_eq!(found.len(), 4);
        assert_eq!(found[1].adapter, "classic-condvar-wake-op");
        assert!(found[3].preload);
        assert_eq!(words(DEFAULT).unwrap().len(), 8);
    }

    #[test]
    fn what_cannot_be_used() {
        assert!(words("usync,glibc,usync").unwrap_err().contains("`usync` twice"));
        let said = words("no-such").unwrap_err();
        assert!(said.contains("`no-such`") && said.contains("spinpark bench list"), "{said}");
        assert!(words("classic-mtx").unwrap_err().contains("no condition variable"));
        assert!(words("glibc-recorded-off").unwrap_err().contains("`bench locks` only"));
        assert!(words("onetbb").unwrap_err().contains("no condition variable"));
    }
}
