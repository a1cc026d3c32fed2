//! The table of models in `notes/verification.md` names files of tests that there are.

use std::fs;

/// Whether there is a file (`name`), a folder (`name/`), or files of that beginning (`name*`).
fn is_there(names: &[String], cell: &str) -> bool {
    match (cell.strip_suffix('/'), cell.strip_suffix('*')) {
        (Some(folder), _) => names.iter().any(|name| name == folder),
        (_, Some(beginning)) => names.iter().any(|name| name.starts_with(beginning)),
        _ => names.contains(&format!("{cell}.rs")),
    }
}

#[test]
fn each_row_names_files() {
    let root = crate::repository();
    let page = fs::read_to_string(root.join("notes/verification.md")).expect("the page is text");
    let files = fs::read_dir(root.join("lab/verify/tests/it")).expect("a folder of tests");
    let names: Vec<String> = files
        .map(|entry| entry.expect("an entry of it").file_name().into_string().expect("a name is text"))
        .collect();
    let (_, table) = page.split_once("The files are in `lab/verify/tests/it`.").expect("the table's head");
    let rows =
        table.lines().skip_while(|line| !line.starts_with("| `")).take_while(|line| line.starts_with('|'));
    let cells: Vec<&str> = rows.filter_map(|row| row.split('|').nth(1)).collect();
    let missing: Vec<&str> = cells
        .iter()
        .flat_map(|cell| cell.split(','))
        .map(|name| name.trim().trim_matches('`'))
        .filter(|name| !is_there(&names, name))
        .collect();
    assert!(cells.len() > 15, "the table was read: {cells:?}");
    assert!(missing.is_empty(), "no such file of tests: {missing:?}");
}
