//! The page: what is in it, and what a browser makes of it.

mod browser;
mod example;
mod structure;

use spinpark_profile::html::{Shown, html};
use spinpark_profile::model::Profile;

/// The page of these, with a summary.
fn page(profiles: &[Profile]) -> String {
    let summary = [
        String::from(
            "78 % of all waiting for locks is on one mutex, `cache_lock`, held by `store_update` while `flush_all` waits.",
        ),
        String::from("Threads spent 41 % of their time waiting for locks."),
    ];
    let shown: Vec<Shown<'_>> = profiles.iter().map(|profile| Shown { profile, summary: &summary }).collect();
    html(&shown).expect("the templates are right")
}
