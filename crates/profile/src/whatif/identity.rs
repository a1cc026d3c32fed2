//! What tells a lock from others in every run of a program, where its address is another each time.
//!
//! | the lock                       | told by                                                              |
//! |--------------------------------|----------------------------------------------------------------------|
//! | a variable of a module         | its place in the module                                               |
//! | created by an init function    | the stack that created it                                             |
//! | on the heap or a stack, else   | the stacks that use it, of which one is the first                     |
//!
//! A stack counts from its innermost address as far out as it takes to tell it from those of all other locks, and at
//! least [`LEAST`]: further out it may be another one in each run.

use std::path::Path;
use std::sync::atomic::Ordering::Relaxed;

use spinpark_recorder::delay::{By, DEPTH, IDENTITIES, Identity, MODULES, Module, Place, Plan};
use spinpark_recorder::format::{self, Entry, Kind, NONE, View};
use thiserror::Error;

use crate::maps::{Mapping, Maps};

/// Addresses of a stack that count, at least, if it has as many.
const LEAST: usize = 3;

/// Why a lock cannot be found in another run: what follows its name.
#[derive(Debug, Error)]
#[error("{0}")]
pub struct NoIdentity(pub(super) String);

/// A place in a module, before it has a number in the plan.
type Known = (Module, u64);

/// How one stack tells a lock.
#[derive(Clone, Debug, PartialEq)]
struct Told {
    by: By,
    frames: Vec<Known>,
}

/// A lock as it is told.
enum Way {
    Place(Known),
    Stacks(Vec<Told>),
}

/// Adds to the plan what tells the locks with these numbers from all others of the recording.
pub(super) fn identify(view: View<'_>, ids: &[u32], plan: &mut Plan) -> Result<(), NoIdentity> {
    let maps = Maps::new(&view.maps().collect::<Vec<_>>().concat());
    let kind = |lock: &format::Lock| Kind::from_number(lock.kind.load(Relaxed));
    let addresses: Vec<u64> = ids.iter().filter_map(|id| view.lock(*id)).map(|lock| lock.address).collect();
    // An object with a record for each stack is one.
    let is_its = |number: u32, lock: &format::Lock| {
        ids.contains(&number)
            || kind(lock).is_some_and(Kind::is_by_stack) && addresses.contains(&lock.address)
    };
    let (mut its, mut others) = (Vec::new(), Vec::new());
    for (number, lock) in view.locks() {
        let way = way(view, &maps, number, lock);
        if is_its(number, lock) { its.push(way) } else { others.push(way) }
    }
    let stacks = |ways: &[Way]| -> Vec<Told> {
        ways.iter()
            .flat_map(|way| if let Way::Stacks(told) = way { told.clone() } else { Vec::new() })
            .collect()
    };
    let others = stacks(&others);
    let mut identities: Vec<(By, Vec<Known>)> = Vec::new();
    for way in &its {
        if let Way::Place(place) = way {
            identities.push((By::Place, vec![*place]));
        }
    }
    for told in stacks(&its) {
        if let Some(frames) = apart(&told, &others) {
            identities.push((told.by, frames));
        }
    }
    if identities.is_empty() {
        return Err(NoIdentity(String::from(
            "cannot be told from other locks: it is no variable, and the code that creates it, or uses it, does the same with \
             others, or is in no file",
        )));
    }
    for (by, frames) in identities {
        let mut places = Vec::new();
        for (module, offset) in frames {
            let module = plan.add_module(module).ok_or_else(|| {
                NoIdentity(format!("is used by code of more than {MODULES} files: too many to find it"))
            })?;
            places.push(Place { module, offset });
        }
        if !plan.add(Identity::new(by, &places)) {
            return Err(NoIdentity(format!(
                "stands for more than {IDENTITIES} locks or call sites: too many to find them"
            )));
        }
    }
    Ok(())
}

/// How a lock is told.
fn way(view: View<'_>, maps: &Maps, number: u32, lock: &format::Lock) -> Way {
    let first = lock.stack.load(Relaxed);
    let snapshot = view.stack(first).map_or(u32::MAX, |stack| stack.maps);
    if let Some(place) = place(maps, snapshot, lock.address) {
        return Way::Place(place);
    }
    if lock.is_created != 0 {
        return Way::Stacks(told(view, maps, By::Creation, first).into_iter().collect());
    }
    let sites = view.entries().filter_map(|(_, entry)| match entry {
        Entry::Site(stats) if stats.head.lock == number => Some(stats.stack),
        _ => None,
    });
    let mut stacks: Vec<u32> = std::iter::once(first).chain(sites).collect();
    stacks.sort_unstable();
    stacks.dedup();
    Way::Stacks(stacks.into_iter().filter_map(|stack| told(view, maps, By::Use, stack)).collect())
}

/// A stack as far as it is in files; none if its innermost address is in none.
fn told(view: View<'_>, maps: &Maps, by: By, stack: u32) -> Option<Told> {
    let stack = (stack != NONE).then(|| view.stack(stack)).flatten()?;
    let frames = &stack.frames[..(stack.depth as usize).min(DEPTH)];
    let frames: Vec<Known> = frames.iter().map_while(|address| code(maps, stack.maps, *address)).collect();
    (!frames.is_empty()).then_some(Told { by, frames })
}

/// The part of a stack that no other lock's begins with; none if there is no such part.
fn apart(told: &Told, others: &[Told]) -> Option<Vec<Known>> {
    let shared = |other: &Told| other.frames.iter().zip(&told.frames).take_while(|(a, b)| a == b).count();
    let shared = others.iter().filter(|other| other.by == told.by).map(shared).max().unwrap_or(0);
    let depth = (shared + 1).max(LEAST.min(told.frames.len()));
    told.frames.get(..depth).map(<[Known]>::to_vec)
}

/// A return address.
fn code(maps: &Maps, snapshot: u32, address: u64) -> Option<Known> {
    // It may be the first one behind the module's end.
    let (module, offset) = place(maps, snapshot, address.checked_sub(1)?)?;
    Some((module, offset + 1))
}

/// The module that an address is in, and its distance from the module's start.
fn place(maps: &Maps, number: u32, address: u64) -> Option<Known> {
    maps.from(number).find_map(|snapshot| {
        let at = snapshot.iter().position(|mapping| (mapping.start..mapping.end).contains(&address))?;
        // What a module's file does not have of its variables follows it.
        let is_rest = |at: usize| {
            snapshot[at].path.as_os_str().is_empty() && snapshot[at - 1].end == snapshot[at].start
        };
        let at = if at > 0 && is_rest(at) { at - 1 } else { at };
        let mapping = &snapshot[at];
        let its = |other: &&Mapping| other.path == mapping.path;
        let has_code = snapshot.iter().filter(its).any(|other| other.is_executable);
        let start = snapshot[..=at].iter().rev().filter(its).find(|other| other.offset == 0)?.start;
        let module = (mapping.is_file() && has_code).then(|| module(mapping))?;
        Some((module, address - start))
    })
}

fn module(mapping: &Mapping) -> Module {
    let id = mapping.build_id.as_deref().unwrap_or_default();
    let bytes: Vec<u8> =
        (0..id.len() / 2).filter_map(|at| u8::from_str_radix(id.get(2 * at..2 * at + 2)?, 16).ok()).collect();
    let name = mapping.path.file_name().unwrap_or_default();
    // Its build id tells it; a name beside it would make two of one that is reached by two paths.
    match bytes.is_empty() {
        true => Module::new(Path::new(name).as_os_str().as_encoded_bytes(), &[]),
        false => Module::new(&[], &bytes),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn known(offset: u64) -> Known {
        (Module::new(b"a", &[]), offset)
    }

    fn stack(by: By, offsets: &[u64]) -> Told {
        Told { by, frames: offsets.iter().copied().map(known).collect() }
    }

    #[test]
    fn a_stack_counts_as_far_as_it_has_to() {
        let it = stack(By::Use, &[1, 2, 3, 4, 5]);
        let depth = |others: &[Told]| apart(&it, others).map(|frames| frames.len());
        assert_eq!(depth(&[]), Some(LEAST));
        assert_eq!(depth(&[stack(By::Use, &[1, 2, 3, 9])]), Some(4));
        assert_eq!(depth(&[stack(By::Creation, &[1, 2, 3, 4, 5])]), Some(LEAST), "of another sort");
        assert_eq!(depth(&[stack(By::Use, &[1, 2, 3, 4, 5, 6])]), None, "the other one goes on");
        assert_eq!(apart(&stack(By::Use, &[1]), &[]).map(|frames| frames.len()), Some(1));
    }

    #[test]
    fn places_are_counted_from_where_the_module_starts() {
        let text = "@ 0 1\n\
            1000-2000 r--p 00000000 fe:01 42         /a/b\n\
            2000-3000 r-xp 00001000 fe:01 42         /a/b\n\
            3000-4000 rw-p 00002000 fe:01 42         /a/b\n\
            4000-5000 rw-p 00000000 00:00 0\n\
            6000-7000 rw-p 00000000 00:00 0          [heap]\n\
            = 1000 42 00ab\n";
        let maps = Maps::new(text.as_bytes());
        let found = |address| place(&maps, 0, address);
        let module = Module::new(&[], &[0, 0xab]);
        assert_eq!([0x2010, 0x4008].map(found), [Some((module, 0x1010)), Some((module, 0x3008))]);
        assert_eq!(found(0x6008), None);
        assert_eq!(code(&maps, 0, 0x5000), Some((module, 0x4000)), "behind a call at the end");
    }
}
