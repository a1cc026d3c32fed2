//! The tables of `notes/tuning.md` have each constant's name and value as the sources do, and all of
//! `Tuning`.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use syn::{BinOp, Expr, ImplItem, Item, Lit};

const CRATES: [&str; 3] = ["platform", "linux", "locks"];

/// Units of the table and of the sources. A constant without a unit is a number.
const UNITS: [(&str, f64); 3] = [("ns", 1.0), ("µs", 1e3), ("ms", 1e6)];
const IN_NS: [(&str, f64); 2] = [("NS_PER_US", 1e3), ("NS_PER_MS", 1e6)];

/// Name → the values that it has, one for each definition.
type Values = BTreeMap<String, Vec<f64>>;

/// The value of `expression`, if it is made of numbers, units and constants of the same file.
fn value(expression: &Expr, file: &[Item]) -> Option<f64> {
    match expression {
        Expr::Lit(literal) => match &literal.lit {
            Lit::Int(number) => number.base10_parse::<u64>().ok().map(|number| number as f64),
            _ => None,
        },
        Expr::Path(path) => {
            let name = path.path.get_ident()?.to_string();
            let unit = IN_NS.iter().find(|(unit, _)| *unit == name).map(|(_, ns)| *ns);
            unit.or_else(|| {
                file.iter().find_map(|item| match item {
                    Item::Const(constant) if constant.ident == name => value(&constant.expr, file),
                    _ => None,
                })
            })
        }
        Expr::Binary(pair) => {
            let (left, right) = (value(&pair.left, file)?, value(&pair.right, file)?);
            match pair.op {
                BinOp::Mul(_) => Some(left * right),
                BinOp::Div(_) => Some(left / right),
                _ => None,
            }
        }
        _ => None,
    }
}

/// The constants of the modules below `directory`, and the fields of `Tuning::LINUX`.
fn collect(directory: &Path, constants: &mut Values, tuning: &mut Values) {
    for entry in fs::read_dir(directory).expect("a directory of sources") {
        let path = entry.expect("an entry of it").path();
        if path.is_dir() {
            collect(&path, constants, tuning);
            continue;
        }
        let source = fs::read_to_string(&path).expect("a source is text");
        let file = syn::parse_file(&source).expect("a source is Rust").items;
        for item in &file {
            match item {
                Item::Const(constant) => {
                    let values = constants.entry(constant.ident.to_string()).or_default();
                    values.extend(value(&constant.expr, &file));
                }
                Item::Impl(block) if path.ends_with("platform/src/tuning.rs") => {
                    let fields = block.items.iter().filter_map(|item| match item {
                        ImplItem::Const(constant) if constant.ident == "LINUX" => Some(&constant.expr),
                        _ => None,
                    });
                    for field in fields.flat_map(|literal| match literal {
                        Expr::Struct(literal) => literal.fields.iter(),
                        _ => panic!("`Tuning::LINUX` is a literal"),
                    }) {
                        let syn::Member::Named(name) = &field.member else { continue };
                        tuning.entry(name.to_string()).or_default().extend(value(&field.expr, &file));
                    }
                }
                _ => {}
            }
        }
    }
}

/// The pairs of a table's first cell: `` `NAME` 20 µs, `OTHER` 8``.
fn pairs(cell: &str) -> Vec<(String, f64)> {
    let mut parts = cell.split('`').skip(1);
    let mut pairs = Vec::new();
    while let (Some(name), Some(said)) = (parts.next(), parts.next()) {
        let mut words = said.split_whitespace().map(|word| word.trim_end_matches(','));
        let number = words.next().and_then(|number| number.replace(',', "").parse::<f64>().ok());
        let unit = words.next().and_then(|word| UNITS.iter().find(|(unit, _)| *unit == word));
        let number = number.unwrap_or_else(|| panic!("notes/tuning.md: {name} has no value"));
        pairs.push((name.to_owned(), number * unit.map_or(1.0, |(_, ns)| *ns)));
    }
    pairs
}

#[test]
fn the_tables_of_constants_are_those_of_the_sources() {
    let root = crate::repository();
    let (mut constants, mut tuning) = (Values::new(), Values::new());
    for name in CRATES {
        collect(&root.join("crates").join(name).join("src"), &mut constants, &mut tuning);
    }
    let page = fs::read_to_string(root.join("notes/tuning.md")).expect("the page is text");
    let (_, section) = page.split_once("\n## The constants\n").expect("the section");
    let (section, _) = section.split_once("\n## ").expect("the next section");
    let rows = section.lines().filter_map(|line| line.strip_prefix("| "));
    let said: BTreeMap<_, _> =
        rows.flat_map(|row| pairs(row.split(" | ").next().expect("a first cell"))).collect();
    assert!(said.len() > 40, "the tables are read: {said:?}");

    let mut wrong = Vec::new();
    for (name, said) in &said {
        match tuning.get(name).or_else(|| constants.get(name)).map(Vec::as_slice) {
            Some([is]) if (is - said).abs() <= 1e-6 * is => {}
            found => wrong.push(format!("{name}: {said} in notes/tuning.md, {found:?} in the sources")),
        }
    }
    let numbers = tuning.iter().filter(|(_, values)| !values.is_empty());
    wrong.extend(
        numbers
            .filter(|(name, _)| !said.contains_key(*name))
            .map(|(name, _)| format!("{name} of `Tuning` is not in notes/tuning.md")),
    );
    assert!(wrong.is_empty(), "{wrong:#?}");
}
