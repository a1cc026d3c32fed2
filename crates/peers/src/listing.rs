//! Which locks this worker has.

use spinpark_lockbench::locks::adapters::Adapter;
use spinpark_lockbench::locks::load::Primitive;
use spinpark_lockbench::locks::peers::Listing;

/// What the build script found out: a version, or a reason, by peer.
const FOUND: [(&str, &str); 3] =
    [("abseil", env!("PEER_ABSEIL")), ("nsync", env!("PEER_NSYNC")), ("onetbb", env!("PEER_ONETBB"))];

/// Describes `adapters`.
pub(crate) fn listing(adapters: &[Adapter]) -> Listing {
    let mut listing = Listing::default();
    for (name, said) in FOUND {
        let (name, said) = (String::from(name), String::from(said));
        match adapters.iter().find(|adapter| adapter.name == name) {
            Some(adapter) => {
                let has = Primitive::ALL.into_iter().filter(|&primitive| adapter.run(primitive).is_some());
                let names = has.map(|primitive| primitive.name().to_owned()).collect();
                listing.primitives.insert(name.clone(), names);
                listing.adapters.insert(name, said);
            }
            None => {
                listing.missing.insert(name, said);
            }
        }
    }
    listing
}
