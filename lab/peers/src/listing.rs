//! The list of this worker's locks.

use spinpark_lockbench::locks::definitions::Definitions;
use spinpark_lockbench::locks::load::Primitive;
use spinpark_lockbench::locks::peers::{Listing, how_to_build};

use crate::foreign::{Missing, peers};

/// What the build script found.
pub(crate) fn listing() -> anyhow::Result<Listing> {
    let definitions = Definitions::built_in()?;
    let mut listing = Listing::default();
    for (name, found) in peers() {
        let name = String::from(name);
        match found {
            Ok((adapter, version)) => {
                let has = Primitive::ALL.into_iter().filter(|&primitive| adapter.run(primitive).is_some());
                let names = has.map(|primitive| primitive.name().to_owned()).collect();
                listing.primitives.insert(name.clone(), names);
                listing.adapters.insert(name, version.to_owned());
            }
            Err(Missing::Header(header)) => {
                let mut of_adapter = definitions.implementations.iter().filter(|it| it.adapter == name);
                let install = of_adapter.find_map(|it| it.install.as_deref()).unwrap_or(&name);
                let why = format!("{header} was not found when it was built: {}", how_to_build(install));
                listing.missing.insert(name, why);
            }
            Err(Missing::Other(why)) => {
                listing.missing.insert(name, why.to_owned());
            }
        }
    }
    Ok(listing)
}
