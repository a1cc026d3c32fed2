//! The rule that sibling modules of a crate do not name each other in a circle.
//!
//! A module *names* another one if a path in its code leads there: an import, or a path where it is used. A
//! path that ends at an item that a module re-exports leads to the module that has the item. A module and its
//! parts may name each other; what counts is the siblings: an edge from `a::b` to `c::d` is one from `a` to
//! `c`. Tests do not count, nor does what macros generate.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use syn::visit::{self, Visit};
use syn::{Attribute, Item, UseTree};

/// A path of a module below the crate, as its segments.
type Name = Vec<String>;

/// How many re-exports a path may pass. More is a circle of them, which is another tool's to report.
const MOST_STEPS: usize = 8;

/// The modules of a crate, and the paths that each of them names.
#[derive(Debug, Default)]
struct Modules {
    paths: BTreeMap<Name, Vec<Name>>,
    /// What each module imports: the name here, and the path that it stands for.
    imports: BTreeMap<Name, BTreeMap<String, Name>>,
}

/// The circles among the modules of the crate whose root file is `root`: for each, the siblings' names in
/// order, separated by spaces, after the path of their parent (`crate` for the root).
///
/// # Errors
///
/// A file of the crate cannot be read or parsed.
fn in_crate(root: &Path) -> Result<Vec<String>, String> {
    let mut modules = Modules::default();
    let folder = root.parent().ok_or("the root file has no folder")?;
    modules.read(root, folder, Vec::new())?;
    Ok(modules.circles())
}

/// The circles among the modules of a crate that is this text.
fn in_text(text: &str) -> Vec<String> {
    let file = syn::parse_file(text).expect("the test's text parses");
    let mut modules = Modules::default();
    modules.add(&file.items, Path::new("none"), Vec::new()).expect("all modules are inline");
    modules.circles()
}

fn is_for_tests(attributes: &[Attribute]) -> bool {
    let is_test = |list: &syn::MetaList| list.tokens.to_string() == "test";
    attributes.iter().any(|it| it.path().is_ident("cfg") && it.meta.require_list().is_ok_and(is_test))
}

/// All paths that `tree` imports behind `before`, with the names that they get.
fn imported(tree: &UseTree, before: &[String], found: &mut Vec<(String, Name)>) {
    let with = |segment: &syn::Ident| [before, &[segment.to_string()]].concat();
    match tree {
        UseTree::Path(path) => imported(&path.tree, &with(&path.ident), found),
        // `a::{self}` is `a`.
        UseTree::Name(name) if name.ident == "self" => {
            found.push((before.last().cloned().unwrap_or_default(), before.to_vec()));
        }
        UseTree::Name(name) => found.push((name.ident.to_string(), with(&name.ident))),
        UseTree::Rename(rename) if rename.ident == "self" => {
            found.push((rename.rename.to_string(), before.to_vec()));
        }
        UseTree::Rename(rename) => found.push((rename.rename.to_string(), with(&rename.ident))),
        UseTree::Glob(_) => found.push(("*".to_owned(), before.to_vec())),
        UseTree::Group(group) => group.items.iter().for_each(|tree| imported(tree, before, found)),
    }
}

/// Collects the paths in a module's code.
struct Paths<'a>(&'a mut Vec<Name>);

impl<'ast> Visit<'ast> for Paths<'_> {
    fn visit_path(&mut self, path: &'ast syn::Path) {
        if path.leading_colon.is_none() && path.segments.len() > 1 {
            self.0.push(path.segments.iter().map(|segment| segment.ident.to_string()).collect());
        }
        visit::visit_path(self, path);
    }

    fn visit_visibility(&mut self, _: &'ast syn::Visibility) {} // `pub(in crate::a)` names a parent

    fn visit_item_mod(&mut self, _: &'ast syn::ItemMod) {} // another module
}

impl Modules {
    /// Adds the module `name`, whose file is `file`, and whose parts are in `folder`.
    fn read(&mut self, file: &Path, folder: &Path, name: Name) -> Result<(), String> {
        let text = fs::read_to_string(file).map_err(|error| format!("{}: {error}", file.display()))?;
        let parsed = syn::parse_file(&text).map_err(|error| format!("{}: {error}", file.display()))?;
        self.add(&parsed.items, folder, name)
    }

    fn add(&mut self, items: &[Item], folder: &Path, name: Name) -> Result<(), String> {
        let (mut paths, mut imports) = (Vec::new(), BTreeMap::new());
        for item in items {
            match item {
                Item::Mod(part) if is_for_tests(&part.attrs) => {}
                Item::Mod(part) => {
                    let ident = part.ident.to_string();
                    let inner = folder.join(&ident);
                    let part_name = [&name[..], std::slice::from_ref(&ident)].concat();
                    match &part.content {
                        Some((_, items)) => self.add(items, &inner, part_name)?,
                        None => self.read(&file_of(folder, &ident), &inner, part_name)?,
                    }
                }
                Item::Use(item) if !is_for_tests(&item.attrs) && item.leading_colon.is_none() => {
                    let mut found = Vec::new();
                    imported(&item.tree, &[], &mut found);
                    paths.extend(found.iter().map(|(_, path)| path.clone()));
                    imports.extend(found);
                }
                Item::Use(_) => {}
                other => Paths(&mut paths).visit_item(other),
            }
        }
        self.paths.insert(name.clone(), paths);
        self.imports.insert(name, imports);
        Ok(())
    }

    /// The module that `path`, in the code of `from`, leads to; `None`: it leads out of the crate, or is no
    /// path of modules.
    fn target(&self, from: &Name, path: &[String], steps: usize) -> Option<Name> {
        let (first, mut rest) = path.split_first()?;
        let mut at = match first.as_str() {
            "crate" => Vec::new(),
            "self" => from.clone(),
            "super" => from.split_last()?.1.to_vec(),
            part if self.paths.contains_key(&[&from[..], &[part.to_owned()]].concat()) => {
                [&from[..], &[part.to_owned()]].concat()
            }
            _ => return None,
        };
        while let Some((segment, after)) = rest.split_first() {
            let part = [&at[..], std::slice::from_ref(segment)].concat();
            if segment == "super" {
                at.pop();
            } else if self.paths.contains_key(&part) {
                at = part;
            } else if let Some(stands_for) = self.imports[&at].get(segment).filter(|_| steps > 0) {
                let onward = [&stands_for[..], after].concat();
                return self.target(&at, &onward, steps - 1).or(Some(at));
            } else {
                break;
            }
            rest = after;
        }
        Some(at)
    }

    /// For each parent, which of its parts name which others.
    fn edges(&self) -> BTreeMap<Name, BTreeSet<(String, String)>> {
        let mut edges: BTreeMap<Name, BTreeSet<(String, String)>> = BTreeMap::new();
        for (from, paths) in &self.paths {
            for to in paths.iter().filter_map(|path| self.target(from, path, MOST_STEPS)) {
                let shared = from.iter().zip(&to).take_while(|(a, b)| a == b).count();
                if let (Some(a), Some(b)) = (from.get(shared), to.get(shared)) {
                    edges.entry(from[..shared].to_vec()).or_default().insert((a.clone(), b.clone()));
                }
            }
        }
        edges
    }

    fn circles(&self) -> Vec<String> {
        let mut found = Vec::new();
        for (parent, edges) in self.edges() {
            let parts: BTreeSet<&String> = edges.iter().map(|(from, _)| from).collect();
            let reach: BTreeMap<&String, BTreeSet<&String>> =
                parts.iter().map(|part| (*part, reachable(part, &edges))).collect();
            let mut done = BTreeSet::new();
            for part in parts {
                let both = |other: &&&String| reach.get(**other).is_some_and(|back| back.contains(part));
                let circle: Vec<&str> = reach[part].iter().filter(both).map(|it| it.as_str()).collect();
                if !circle.is_empty() && done.insert(circle.clone()) {
                    let place = [&["crate".to_owned()], &parent[..]].concat().join("::");
                    found.push(format!("{place}: {}", circle.join(" ")));
                }
            }
        }
        found
    }
}

/// The file of the module `ident`, which is declared in the module whose parts are in `folder`.
fn file_of(folder: &Path, ident: &str) -> PathBuf {
    let file = folder.join(format!("{ident}.rs"));
    if file.exists() { file } else { folder.join(ident).join("mod.rs") }
}

/// Which parts can be reached from `part`, in one step or more.
fn reachable<'a>(part: &'a str, edges: &'a BTreeSet<(String, String)>) -> BTreeSet<&'a String> {
    let mut found = BTreeSet::new();
    let mut open = vec![part];
    while let Some(at) = open.pop() {
        let next = edges.iter().filter(|(from, _)| from == at).map(|(_, to)| to);
        open.extend(next.filter(|to| found.insert(*to)).map(String::as_str));
    }
    found
}

/// Every crate of the workspace, with its root file.
fn crates() -> BTreeMap<String, PathBuf> {
    let root = |package: &cargo_metadata::Package| {
        let folder = Path::new(package.manifest_path.as_str())
            .parent()
            .expect("a manifest is in a folder")
            .join("src");
        ["lib.rs", "main.rs"].map(|file| folder.join(file)).into_iter().find(|file| file.exists())
    };
    crate::workspace()
        .workspace_packages()
        .iter()
        .filter_map(|package| Some((package.name.to_string(), root(package)?)))
        .collect()
}

#[test]
fn no_crate_has_a_circle() {
    let crates = crates();
    assert!(crates.len() > 15, "the workspace was read: {}", crates.len());
    let found: BTreeMap<&str, Vec<String>> = crates
        .iter()
        .map(|(name, root)| (name.as_str(), in_crate(root).expect("every crate parses")))
        .filter(|(_, circles)| !circles.is_empty())
        .collect();
    assert_eq!(found, BTreeMap::new());
}

const NONE: [&str; 0] = [];

#[test]
fn siblings_that_name_each_other_are_a_circle() {
    let text = "mod a { use crate::b::B; pub struct A; } mod b { pub struct B(super::a::A); }";
    assert_eq!(in_text(text), ["crate: a b"]);
}

#[test]
fn a_chain_is_none() {
    let text = "mod a { use crate::b::B; } mod b { use crate::c::C; pub struct B; } mod c { pub struct C; }";
    assert_eq!(in_text(text), NONE);
}

#[test]
fn a_circle_of_three_is_one() {
    let text = "mod a { use crate::{b::B}; } mod b { use super::c; } mod c { fn f() { crate::a::f() } }";
    assert_eq!(in_text(text), ["crate: a b c"]);
}

#[test]
fn a_module_and_its_parts_may_name_each_other() {
    let text = "mod a { mod b { use super::f; } use b::B; fn f() {} }";
    assert_eq!(in_text(text), NONE);
}

#[test]
fn parts_of_siblings_count_as_the_siblings() {
    let text = "mod a { mod x { use crate::b::B; } } mod b { mod y { use crate::a::A; } }";
    assert_eq!(in_text(text), ["crate: a b"]);
}

#[test]
fn a_reexport_leads_to_the_module_that_has_the_item() {
    let text = "pub use b::B; mod a { use crate::B; } mod b { use crate::a::A; }";
    assert_eq!(in_text(text), ["crate: a b"]);
}

#[test]
fn circles_inside_a_module_name_their_parent() {
    let text = "mod m { mod a { use super::b::B; } mod b { use super::a::A; } }";
    assert_eq!(in_text(text), ["crate::m: a b"]);
}

#[test]
fn tests_do_not_count() {
    let text = "mod a { #[cfg(test)] mod tests { use crate::b::B; } } mod b { use crate::a::A; }";
    assert_eq!(in_text(text), NONE);
}

#[test]
fn a_circle_of_imports_ends() {
    let text = "pub use a::X; mod a { pub use crate::X; }";
    assert_eq!(in_text(text), NONE);
}
