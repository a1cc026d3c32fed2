//! Flame graphs: stacks as trees, weighted by time waited. The page's script draws them.
//!
//! A tree is a list of numbers, four for a node, in depth-first order: depth, name, ns, waits. Nodes too
//! small to be visible are left out, so that a page does not grow with the program.

use std::collections::{BTreeMap, HashMap};

use serde::Serialize;
use spinpark_measure::text::one_line;

use super::function;
use crate::model::{CallSite, Profile, Role};
use crate::names::{FREE, UNKNOWN};

/// Smaller shares than this are not drawn.
const SMALLEST: f64 = 1.0 / 4000.0;

/// What a frame is; the script knows these numbers.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum What {
    Function = 0,
    Inlined = 1,
    Lock = 2,
    Unknown = 3,
}

/// What the script gets.
#[derive(Serialize)]
pub(super) struct Flame {
    /// Text, and what it is.
    names: Vec<(String, u8)>,
    trees: Vec<Tree>,
}

#[derive(Serialize)]
struct Tree {
    title: &'static str,
    /// The word after a time, in the text of a frame.
    of: &'static str,
    nodes: Vec<u64>,
}

#[derive(Default)]
struct Node {
    total: u64,
    count: u64,
    children: BTreeMap<u64, Node>,
}

#[derive(Default)]
struct Names {
    numbers: HashMap<(String, What), u64>,
    list: Vec<(String, u8)>,
}

impl Names {
    fn number(&mut self, name: String, what: What) -> u64 {
        let Self { numbers, list } = self;
        *numbers.entry((name.clone(), what)).or_insert_with(|| {
            list.push((name, what as u8));
            list.len() as u64 - 1
        })
    }
}

/// The trees; none of nothing.
pub(super) fn flame(profile: &Profile) -> Option<Flame> {
    let mut names = Names::default();
    let [mut waiters, mut holders, mut back, mut signals, mut unclear] = [(); 5].map(|()| Node::default());
    let mut add = |role: Role, stack: &[u64], total: u64, count: u64| {
        let tree = match role {
            Role::Signal => &mut signals,
            Role::Back => &mut back,
            Role::Late => return,
            Role::Write | Role::Read => &mut waiters,
            Role::Wake => &mut unclear,
        };
        tree.add(stack, total, count);
    };
    // By thread, unless waits that had not ended are in the sums of call sites alone.
    if profile.waiting.is_empty() && !profile.thread_waits.is_empty() {
        for wait in profile.thread_waits.iter().filter(|wait| wait.wait_total > 0) {
            let label = profile.lock_label(wait.lock);
            let mut frames = vec![names.number(format!("thread {}", one_line(&wait.thread)), What::Unknown)];
            frames.extend(stack(profile.call_sites.get(wait.call_site), &label, &mut names));
            add(wait.role, &frames, wait.wait_total, wait.count);
        }
    } else {
        for (lock, stats) in profile.uses() {
            for site in stats.sites.iter().filter(|site| site.wait_total > 0) {
                let stack = stack(profile.call_sites.get(site.call_site), &lock.label, &mut names);
                add(stats.role, &stack, site.wait_total, site.contended);
            }
        }
    }
    for pair in profile.pairs.iter().filter(|pair| pair.role.is_lock() && pair.wait_total > 0) {
        let label = profile.lock_label(pair.lock);
        let stack = stack(pair.holder.and_then(|holder| profile.call_sites.get(holder)), &label, &mut names);
        holders.add(&stack, pair.held(), pair.count);
        if pair.free > 0 {
            holders.add(&[names.number(String::from(FREE), What::Unknown)], pair.free, 0);
        }
    }
    let trees = [
        ("By waiter", "waited", waiters),
        ("By holder", "blocked others", holders),
        ("Returns from condition variables", "to return", back),
        ("Waits for signals", "waited for signals", signals),
        ("Waits for locks or signals, not known which", "waited", unclear),
    ];
    let tree = |(title, of, root): (_, _, Node)| {
        let mut nodes = Vec::new();
        root.write(0, u64::MAX, (root.total as f64 * SMALLEST) as u64, &mut nodes);
        Tree { title, of, nodes }
    };
    let trees: Vec<Tree> = trees.into_iter().filter(|(_, _, root)| root.total > 0).map(tree).collect();
    (!trees.is_empty()).then_some(Flame { names: names.list, trees })
}

/// From the outermost frame to the lock.
fn stack(call_site: Option<&CallSite>, lock: &str, names: &mut Names) -> Vec<u64> {
    let mut stack = Vec::new();
    match call_site {
        None => stack.push(names.number(String::from(UNKNOWN), What::Unknown)),
        Some(call_site) => {
            if call_site.is_cut {
                stack.push(names.number(String::from("…"), What::Unknown));
            }
            for frame in call_site.frames.iter().rev() {
                let what = if frame.is_inlined { What::Inlined } else { What::Function };
                stack.push(names.number(function(frame), what));
            }
        }
    }
    stack.push(names.number(lock.to_owned(), What::Lock));
    stack
}

impl Node {
    fn add(&mut self, stack: &[u64], total: u64, count: u64) {
        let mut node = self;
        node.total += total;
        node.count += count;
        for name in stack {
            node = node.children.entry(*name).or_default();
            node.total += total;
            node.count += count;
        }
    }

    fn write(&self, depth: u64, name: u64, least: u64, into: &mut Vec<u64>) {
        if self.total < least {
            return;
        }
        if depth > 0 {
            into.extend([depth - 1, name, self.total, self.count]);
        }
        let mut children: Vec<_> = self.children.iter().collect();
        children.sort_by_key(|(_, child)| std::cmp::Reverse(child.total));
        for (name, child) in children {
            child.write(depth + 1, *name, least, into);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_in_walking_order() {
        let mut root = Node::default();
        root.add(&[0, 1], 10_000, 1);
        root.add(&[0, 2], 20_000, 3);
        root.add(&[3], 1, 1);
        let mut nodes = Vec::new();
        root.write(0, 0, 7, &mut nodes);
        assert_eq!(nodes, [0, 0, 30_000, 4, 1, 2, 20_000, 3, 1, 1, 10_000, 1]);
    }
}
