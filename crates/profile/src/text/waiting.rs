//! Waits that had not ended.

use super::{Style, render};
use crate::model::{Ended, Profile, Role, Waiting};
use crate::names::Names;
use crate::units::time_or_dash;

/// The table of waits that had not ended, the longest first. After a regular exit it leaves out waits for
/// signals: threads without work always wait for one.
#[must_use]
pub fn waiting(profile: &Profile, style: Style) -> String {
    let header = ["waiter", "lock", "holder", "holding\nthread", "waiting\nthread", "time"];
    let names = Names::of(&profile.call_sites);
    let call_site = |call_site: Option<usize>| {
        call_site.map_or_else(|| String::from("not known"), |call_site| names.label(call_site))
    };
    let row = |wait: &Waiting| {
        let lock = profile.lock(wait.lock);
        let holder = wait.holder.as_ref();
        let held = match wait.role {
            Role::Signal => String::from("–"),
            _ => call_site(holder.and_then(|holder| holder.call_site)),
        };
        vec![
            call_site(wait.call_site),
            lock.map_or_else(String::new, |lock| super::locks::name(lock, wait.role)),
            held,
            holder.and_then(|holder| holder.thread).map_or_else(|| String::from("–"), |id| id.to_string()),
            wait.thread.to_string(),
            time_or_dash(wait.time),
        ]
    };
    let waits = profile.waiting.iter().filter(|wait| wait.role.is_lock() || profile.ended != Ended::Exited);
    let title = match profile.ended {
        Ended::Running => "Waiting now",
        _ => "Still waiting at the end",
    };
    render(style, title, &header, 3, (waits, row))
}
