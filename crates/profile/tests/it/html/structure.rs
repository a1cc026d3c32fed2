//! The page as a document.

use roxmltree::{Document, Node, ParsingOptions};

use super::example::{self, SCRIPT};
use super::page;

fn parse(page: &str) -> Document<'_> {
    let options = ParsingOptions { allow_dtd: true, ..Default::default() };
    Document::parse_with_options(page, options).expect("the page is well-formed")
}

fn by_id<'a>(document: &'a Document<'_>, id: &str) -> Node<'a, 'a> {
    let is = |node: &Node<'_, '_>| node.attribute("id") == Some(id);
    document.descendants().find(is).unwrap_or_else(|| panic!("no element {id}"))
}

fn text(node: Node<'_, '_>) -> String {
    node.descendants().filter(Node::is_text).filter_map(|text| text.text()).collect()
}

/// The cells of a table's body, as text. What a row opens to is left out.
fn rows(table: Node<'_, '_>) -> Vec<Vec<String>> {
    table
        .children()
        .filter(|node| node.has_tag_name("tbody"))
        .flat_map(|body| body.children())
        .filter(|row| row.has_tag_name("tr") && row.attribute("class") != Some("more"))
        .map(|row| row.children().filter(Node::is_element).map(text).collect())
        .collect()
}

#[test]
fn a_row_for_each_role_of_a_lock() {
    let page = page(&[example::sample()]);
    let document = parse(&page);
    let rows = rows(by_id(&document, "p0-locks"));
    let names: Vec<&str> = rows.iter().map(|row| row[0].as_str()).collect();
    // The longest wait in all first; the way back from a condition variable may be no contention, waiting for
    // signals is none.
    assert_eq!(
        names,
        [
            "cache_lock",
            "index (make_store) write",
            "index (make_store) read",
            "queue.lock",
            SCRIPT,
            "never waited for",
            "queue.ready mutex back",
            "queue.ready signal",
        ]
    );
    assert_eq!(rows[0][1..8], ["mutex", "812,345", "90,123", "11.1", "7.570 s", "84.0 µs", "2.52 ms"]);
    assert!(rows.iter().all(|row| row.len() == 17));
}

/// Not those with an uncontended lock held.
#[test]
fn a_row_for_what_a_holder_waits_for() {
    let page = page(&[example::sample()]);
    let document = parse(&page);
    let rows = rows(by_id(&document, "p0-held-waits"));
    assert_eq!(
        rows[0],
        ["cache_lock", "index (make_store)", "2,000", "300 ms", "150 µs", "4.50 ms", "300 ms"]
    );
    assert_eq!(rows[1][..2], ["cache_lock", "a signal of queue.ready"]);
    assert_eq!(rows.len(), 2);
}

#[test]
fn cells_have_the_exact_time() {
    let page = page(&[example::sample()]);
    let document = parse(&page);
    let cell = document.descendants().find(|node| node.attribute("data-sort") == Some("7570332000")).unwrap();
    assert_eq!((cell.attribute("title"), text(cell).as_str()), (Some("7,570,332,000 ns"), "7.570 s"));
    let estimated =
        document.descendants().find(|node| text(*node).starts_with("~ ") && node.has_tag_name("td")).unwrap();
    assert_eq!(estimated.attribute("title"), Some("7,392,339,500 ns ± 184,808,487 ns; 12,692 were measured"));
}

#[test]
fn a_row_opens_to_call_sites_outcomes_and_pairs() {
    let page = page(&[example::sample()]);
    let document = parse(&page);
    let more = by_id(&document, "p0-locks")
        .descendants()
        .find(|node| node.attribute("class") == Some("more"))
        .unwrap();
    let said = text(more);
    for part in [
        "Created: make_store (cache.cc:15).",
        "acquired while spinning 45,061 (50.0 %)",
        "blocked others",
        "flush_all (cache.cc:77)",
    ] {
        assert!(said.contains(part), "{part}: {said}");
    }
    // Every call site that is named is there in full.
    let call_sites = document.descendants().filter(|node| node.attribute("class") == Some("call-site"));
    let mut count = 0;
    for call_site in call_sites {
        by_id(&document, call_site.attribute("href").unwrap().strip_prefix('#').unwrap());
        count += 1;
    }
    assert!(count > 10);
    let stack = text(by_id(&document, "p0-stack-0"));
    assert!(
        stack.contains("store_update(Store&, Key) inlined /home/user/cachesim/src/cache.cc:120"),
        "{stack}"
    );
    assert!(text(by_id(&document, "p0-stack-1")).contains("and more"));
}

#[test]
fn matrix_and_small_tables() {
    let page = page(&[example::sample()]);
    let document = parse(&page);
    let matrix = rows(by_id(&document, "p0-matrix"));
    assert_eq!(matrix[0][..3], ["flush_all (cache.cc:77)", "5.400 s", "4.320 s"]);
    let first = by_id(&document, "p0-matrix")
        .descendants()
        .find(|node| node.attribute("class") == Some("shade-9"))
        .unwrap();
    assert_eq!(
        first.attribute("title"),
        Some(
            "flush_all (cache.cc:77) waited for store_update (cache.cc:120): 60000 waits, total 4,320,000,000 ns, longest 2.70 ms"
        )
    );
    let condvars = rows(by_id(&document, "p0-condvars"));
    assert_eq!(condvars[0][..5], ["queue.ready", "0x55810a2c4080", "26,666", "40,000", "24.000 s"]);
    let threads = rows(by_id(&document, "p0-threads"));
    assert_eq!((threads.len(), threads[0][0].as_str()), (9, "worker 8"));
    let freebsd = rows(by_id(&document, "p0-freebsd"));
    assert_eq!(freebsd[0].last().unwrap(), "cache.cc:120 (mutex:cache_lock)");
    assert_eq!(freebsd[0][7..9], ["45,061", "45,061"]);
}

/// Missing records could change the summary; wrong names could not.
#[test]
fn losses_come_before_the_summary() {
    let page = page(&[example::sample()]);
    let document = parse(&page);
    let process = text(by_id(&document, "p0"));
    let at = |part: &str| process.find(part).unwrap_or_else(|| panic!("no {part}"));
    let order = [
        "the summary could be wrong",
        "12 records did not fit",
        "are damaged",
        "78 % of all waiting",
        "functions may be wrong",
        "Command",
    ];
    assert!(order.map(at).is_sorted(), "{:?}", order.map(at));
    let losses = document.descendants().filter(|node| node.attribute("class") == Some("losses"));
    assert_eq!(losses.count(), 1);
    let mut whole = example::sample();
    (whole.dropped, whole.warnings) = (0, Vec::new());
    assert!(!super::page(&[whole]).contains("class=\"losses\""));
}

#[test]
fn names_are_names() {
    let page = page(&[example::sample()]);
    let document = parse(&page);
    // Our script, and the flame graph's numbers.
    let scripts: Vec<_> = document.descendants().filter(|node| node.has_tag_name("script")).collect();
    assert_eq!(scripts.len(), 2);
    assert!(!page.contains("<script>document"));
    assert!(text(document.root_element()).contains(SCRIPT));
    let numbers: serde_json::Value = serde_json::from_str(scripts[1].text().unwrap()).unwrap();
    let names = numbers["names"].as_array().unwrap();
    assert!(names.iter().any(|name| name[0] == SCRIPT));
    assert_eq!(numbers["trees"].as_array().unwrap().len(), 4);
}

#[test]
fn nothing_comes_from_elsewhere() {
    let page = page(&[example::sample(), example::many(20)]);
    let document = parse(&page);
    for node in document.descendants().filter(Node::is_element) {
        for attribute in node.attributes() {
            let (name, value) = (attribute.name(), attribute.value());
            assert!(name != "src" && name != "style" && !name.starts_with("on"), "{name}={value}");
            assert!(name != "href" || value.starts_with('#'), "{value}");
        }
        assert!(!["link", "img", "iframe", "base", "object"].contains(&node.tag_name().name()));
    }
    let is_style = |node: &Node<'_, '_>| node.has_tag_name("style");
    let style = text(document.descendants().find(is_style).unwrap());
    assert!(!style.contains("url(") && !style.contains("@import"));
    let mut ids: Vec<&str> = document.descendants().filter_map(|node| node.attribute("id")).collect();
    let count = ids.len();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), count, "an id stands twice");
}

#[test]
fn nothing_to_show_is_said() {
    let page = page(&[example::nothing()]);
    let document = parse(&page);
    let said = text(document.root_element());
    for part in
        ["No thread waited.", "No lock was waited for or counted.", "No wait was recorded with a stack."]
    {
        assert!(said.contains(part), "{part}");
    }
    assert!(super::page(&[]).contains("There is no process in this profile."));
}

#[test]
fn control_characters_do_not_break_the_page() {
    let mut profile = example::sample();
    profile.threads[0].name = String::from("\u{1b}[31mred\u{0}\u{ffff}");
    profile.locks[0].label = String::from("a\u{8}b]]>");
    let page = page(&[profile]);
    assert!(text(parse(&page).root_element()).contains("\u{fffd}[31mred\u{fffd}\u{fffd}"));
}

#[test]
fn a_thousand_locks_stay_small() {
    let page = page(&[example::many(1000)]);
    assert!(page.len() < 5 << 20, "{} bytes", page.len());
    assert_eq!(rows(by_id(&parse(&page), "p0-locks")).len(), 1000);
}
