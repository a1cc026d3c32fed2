//! The page in headless Chromium: it opens without an error, sends no request, sorts, filters, opens, zooms.

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use super::example::{SCRIPT, many, sample};
use super::page;

/// The browser, if it is there; says that a test is skipped, if not.
fn chromium() -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found =
        std::env::split_paths(&path).map(|folder| folder.join("chromium")).find(|program| program.is_file());
    if found.is_none() {
        let why = "chromium is not installed (apt-get install chromium)";
        assert!(std::env::var_os("SPINPARK_REQUIRE_PROGRAMS").is_none_or(|value| value != "1"), "{why}");
        // Not `eprintln`, which the test harness captures. It is only a note: it may get lost.
        let _ = writeln!(std::io::stderr(), "skipped: {why}");
    }
    found
}

/// What the driver found, and what the console said.
struct Seen {
    results: Vec<(String, String)>,
    console: Vec<String>,
}

impl Seen {
    fn get(&self, name: &str) -> &str {
        let found = self.results.iter().find(|(known, _)| known == name);
        found
            .map(|(_, value)| value.as_str())
            .unwrap_or_else(|| panic!("no {name} in {:?}; {:?}", self.results, self.console))
    }
}

/// [`open_in`] a window of 1280 pixels.
fn open(chromium: &Path, page: &str, driver: &str) -> Seen {
    open_in(chromium, 1280, page, driver)
}

/// Opens a copy of `page` to which `driver` was added: the body of an async function, which calls `note(name,
/// value)`.
fn open_in(chromium: &Path, width: u32, page: &str, driver: &str) -> Seen {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("page.html");
    let script = format!(
        "<script nonce=\"driver\">
        const notes = [];
        const note = (name, value) => notes.push(name + '=' + String(value).replace(/[&lt;&gt;&amp;\\n]/g, '_'));
        const frame = () => new Promise((done) => setTimeout(done, 50));
        const until = async (holds) => {{ for (let turn = 0; turn < 200 && !holds(); turn++) await frame(); }};
        const violations = [];
        addEventListener('securitypolicyviolation', (event) => violations.push(event.effectiveDirective));
        addEventListener('load', async () => {{
            try {{ await frame(); {driver} }} catch (error) {{ note('error', error); }}
            const box = document.createElement('pre');
            box.id = 'notes';
            box.textContent = 'NOTES\\n' + notes.join('\\n') + '\\nEND';
            document.body.append(box);
        }});
        </script></body>"
    );
    let page = page
        .replace("script-src ", "script-src 'nonce-driver' ")
        .replace("</body>", &script.replace("&lt;&gt;&amp;", "<>&"));
    fs::write(&file, page).unwrap();
    let (out, err) = (folder.path().join("out"), folder.path().join("err"));
    let mut child = Command::new(chromium)
        .args(["--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run"])
        .args(["--disable-background-networking", "--disable-component-update", "--enable-logging=stderr"])
        .args(["--host-resolver-rules=MAP * ~NOTFOUND", "--virtual-time-budget=20000", "--dump-dom"])
        .arg(format!("--window-size={width},2000"))
        .arg(format!("--user-data-dir={}", folder.path().join("user").display()))
        .arg(format!("file://{}", file.display()))
        .env("HOME", folder.path())
        .stdin(Stdio::null())
        .stdout(File::create(&out).unwrap())
        .stderr(File::create(&err).unwrap())
        .spawn()
        .unwrap();
    let start = Instant::now();
    while child.try_wait().unwrap().is_none() {
        if start.elapsed() > Duration::from_secs(300) {
            let _ = child.kill();
            panic!("the browser does not end");
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    let read = |path: &Path| String::from_utf8_lossy(&fs::read(path).unwrap()).into_owned();
    let (out, err) = (read(&out), read(&err));
    let notes =
        out.rsplit_once("NOTES\n").and_then(|(_, rest)| rest.split_once("\nEND")).map(|(notes, _)| notes);
    let notes = notes.unwrap_or_else(|| panic!("the driver did not end: {err}"));
    let result = |line: &str| line.split_once('=').map(|(name, value)| (name.to_owned(), value.to_owned()));
    Seen {
        results: notes.lines().filter_map(result).collect(),
        console: err.lines().filter(|line| line.contains("CONSOLE")).map(str::to_owned).collect(),
    }
}

#[test]
fn sorts_filters_opens_and_zooms() {
    let Some(chromium) = chromium() else { return };
    let page = page(&[sample()]);
    let seen = open(
        &chromium,
        &page,
        r##"
        const table = document.getElementById("p0-locks");
        const names = () => [...table.tBodies].filter((body) => !body.hidden).map((body) => body.rows[0].querySelector("code").textContent.slice(0, 12)).join(",");
        const header = (column) => table.tHead.rows[0].cells[column];
        const press = (column) => header(column).querySelector("button").click();
        press(0); note("by name", names()); note("sorted", header(0).getAttribute("aria-sort"));
        press(2); note("by taken", names()); press(2); note("by taken, up", names());
        press(5); note("by waited", names());
        const first = table.tBodies[0], more = first.rows[1];
        note("closed", getComputedStyle(more).display);
        first.rows[0].querySelector("button.opener").click();
        note("open", getComputedStyle(more).display);
        const call_site = more.querySelector("a.call-site");
        call_site.click(); note("stack", call_site.nextElementSibling.querySelectorAll("li").length);
        call_site.click(); note("stack again", call_site.parentElement.querySelectorAll("ol").length);
        const box = document.getElementById("p0-flame"), svg = box.querySelector("svg");
        await until(() => svg.childElementCount > 0);
        const groups = () => svg.querySelectorAll("g").length;
        note("frames", groups());
        const frameOf = (name) => [...svg.querySelectorAll("g")].find((g) => g.querySelector("title").textContent.startsWith(name));
        const width = (name) => Number(frameOf(name).querySelector("rect").getAttribute("width"));
        const before = width("flush_all"); note("status", frameOf("flush_all").querySelector("title").textContent);
        frameOf("flush_all").dispatchEvent(new MouseEvent("click", { bubbles: true }));
        note("zoomed", width("flush_all") > before && Math.abs(width("flush_all") - box.clientWidth) < 1);
        svg.dispatchEvent(new KeyboardEvent("keydown", { key: "Escape" })); note("zoomed out", width("flush_all") === before);
        svg.dispatchEvent(new KeyboardEvent("keydown", { key: "ArrowDown" })); note("walked", svg.querySelectorAll(".current").length);
        const search = box.querySelector("input"); search.value = "store_update"; search.dispatchEvent(new Event("input"));
        note("matches", svg.querySelectorAll(".match").length > 0 && box.querySelector(".tools .soft").textContent);
        box.querySelectorAll(".tools button")[1].click(); note("holders", frameOf("none: it was free") !== undefined);
        note("strip", document.querySelectorAll("svg.large").length);
        note("resources", performance.getEntriesByType("resource").length);
        note("violations", violations.length);
        note("title", document.title);
        "##,
    );
    let short = |names: [&str; 8]| {
        names.map(|name| name.chars().take(12).collect::<String>().replace(['<', '>', '&'], "_")).join(",")
    };
    let evil = SCRIPT;
    assert_eq!(
        seen.get("by name"),
        short([
            "cache_lock",
            evil,
            "index (make_store)",
            "index (make_store)",
            "never waited for",
            "queue.lock",
            "queue.ready",
            "queue.ready"
        ])
    );
    assert_eq!(seen.get("sorted"), "ascending");
    assert!(
        seen.get("by taken").starts_with("index (make_,cache_lock,queue.lock"),
        "{}",
        seen.get("by taken")
    );
    assert!(
        seen.get("by taken, up").starts_with("evil_script_,never waited"),
        "{}",
        seen.get("by taken, up")
    );
    assert!(seen.get("by waited").starts_with("queue.ready,cache_lock"), "{}", seen.get("by waited"));
    assert_eq!([seen.get("closed"), seen.get("open")], ["none", "table-row"]);
    assert_eq!([seen.get("stack"), seen.get("stack again")], ["3", "0"]);
    assert_eq!(
        [seen.get("zoomed"), seen.get("zoomed out"), seen.get("walked"), seen.get("holders")],
        ["true", "true", "1", "true"]
    );
    assert!(seen.get("matches").ends_with("% of all"), "{}", seen.get("matches"));
    assert!(seen.get("frames").parse::<u32>().unwrap() > 15);
    assert_eq!([seen.get("strip"), seen.get("resources"), seen.get("violations")], ["3", "0", "0"]);
    assert_eq!(seen.get("title"), "Locks of cachesim");
    assert_eq!(seen.console, [""; 0]);
}

#[test]
fn long_tables_are_cut_and_processes_chosen() {
    let Some(chromium) = chromium() else { return };
    let page = page(&[sample(), many(300)]);
    let seen = open(
        &chromium,
        &page,
        r##"
        const visible = () => [...document.querySelectorAll(".process")].filter((process) => !process.hidden).map((process) => process.id).join(",");
        note("first", visible());
        document.querySelectorAll(".choice a")[1].click(); await frame();
        note("second", visible());
        const table = document.getElementById("p1-locks"), tools = table.closest(".scroll").previousElementSibling;
        const shown = () => [...table.tBodies].filter((body) => !body.hidden).length;
        note("cut", shown());
        tools.querySelector("button").click(); note("all", shown());
        const field = tools.querySelector("input"); field.value = "SHARD 012"; field.dispatchEvent(new Event("input"));
        note("filtered", shown());
        const isDrawn = () => document.querySelectorAll("#p1-flame svg g").length > 10;
        await until(isDrawn); note("drawn", isDrawn());
        note("violations", violations.length);
        "##,
    );
    assert_eq!([seen.get("first"), seen.get("second")], ["p0", "p1"]);
    assert_eq!([seen.get("cut"), seen.get("all"), seen.get("filtered")], ["200", "300", "10"]);
    assert_eq!([seen.get("drawn"), seen.get("violations")], ["true", "0"]);
    assert_eq!(seen.console, [""; 0]);
}

/// In a window of 1200 pixels the tables of locks and of condition variables are whole, however long the
/// names; in a smaller one that of locks is scrolled in a box of its own, and the names stay.
#[test]
fn the_table_of_locks_is_not_cut_off() {
    let Some(chromium) = chromium() else { return };
    for (width, is_whole) in [(1200, true), (800, false)] {
        let seen = open_in(
            &chromium,
            width,
            &page(&[sample()]),
            r##"
            const table = document.getElementById("p0-locks"), box = table.closest(".scroll");
            note("whole", box.scrollWidth <= box.clientWidth);
            note("page", document.documentElement.scrollWidth <= document.documentElement.clientWidth);
            const condvars = document.getElementById("p0-condvars");
            condvars.querySelector("tbody code").textContent = "std::vector<shop::".repeat(12);
            const conditions = condvars.closest(".scroll");
            note("conditions", conditions.scrollWidth <= conditions.clientWidth);
            box.scrollLeft = 10000;
            const edge = (element) => Math.round(element.getBoundingClientRect().right);
            note("end", edge(table) <= edge(box));
            const name = table.tBodies[0].rows[0].cells[0];
            note("name", Math.abs(name.getBoundingClientRect().left - box.getBoundingClientRect().left) < 2);
            "##,
        );
        assert_eq!(seen.get("whole"), is_whole.to_string(), "{width} pixels");
        assert!(!is_whole || seen.get("conditions") == "true", "{width} pixels");
        assert_eq!([seen.get("page"), seen.get("end"), seen.get("name")], ["true"; 3], "{width} pixels");
    }
}

/// The policy is enforced: a foreign script does not run, and no request is sent.
#[test]
fn the_policy_holds() {
    let Some(chromium) = chromium() else { return };
    let page = page(&[sample()]).replace("</h1>", "</h1><script>document.title = 'run'</script>");
    let seen = open(
        &chromium,
        &page,
        r##"
        await fetch("http://127.0.0.1:9/").catch(() => note("fetch", "refused"));
        document.body.append(Object.assign(new Image(), { src: "http://127.0.0.1:9/picture.png" }));
        await until(() => violations.includes("img-src"));
        // Whether that of the foreign script is seen depends on when the driver starts to look.
        note("violations", [...new Set(violations)].filter((what) => !what.startsWith("script")).sort().join(","));
        note("title", document.title);
        "##,
    );
    assert_eq!([seen.get("fetch"), seen.get("title")], ["refused", "Locks of cachesim"]);
    assert_eq!(seen.get("violations"), "connect-src,img-src");
}
