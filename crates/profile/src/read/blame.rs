//! The sites that blocked other threads: FreeBSD's `cnt_hold`, with real numbers.

use std::cmp::Reverse;

use crate::model::{CallSiteId, Lock, Pair, Role, RoleStats, SiteStats};

/// Counts each wait for `lock` at the site from which it was held then. A holder that never waited gets a
/// site, too.
pub(super) fn blame(lock: &mut Lock, pairs: &[&Pair]) {
    for pair in pairs {
        let Some(holder) = pair.holder else { continue };
        let role = holder_role(&lock.roles, pair, holder);
        let stats = &mut lock.roles[role];
        let is_it = |site: &SiteStats| site.call_site == holder && site.is_release == pair.is_release;
        let index = stats.sites.iter().position(is_it).unwrap_or_else(|| {
            stats.sites.push(SiteStats { is_release: pair.is_release, ..SiteStats::new(holder) });
            stats.sites.len() - 1
        });
        stats.sites[index].blocked += pair.count;
        stats.sites[index].blocked_total += pair.held();
    }
    for stats in &mut lock.roles {
        stats
            .sites
            .sort_by_key(|site| (Reverse(site.wait_total), Reverse(site.blocked_total), site.call_site));
    }
}

/// In which role the holder had the lock: a recording does not say, but it was a role that has the call site;
/// readers are held up by writers only.
fn holder_role(roles: &[RoleStats], pair: &Pair, holder: CallSiteId) -> usize {
    let has = |wanted: Role| {
        roles
            .iter()
            .position(|stats| stats.role == wanted && stats.sites.iter().any(|site| site.call_site == holder))
    };
    let is = |wanted: Role| roles.iter().position(|stats| stats.role == wanted);
    let known = match pair.role {
        Role::Read => has(Role::Write).or_else(|| is(Role::Write)),
        Role::Write => has(Role::Write).or_else(|| has(Role::Read)).or_else(|| is(Role::Write)),
        other => is(other),
    };
    known.or_else(|| is(pair.role)).unwrap_or(0)
}
