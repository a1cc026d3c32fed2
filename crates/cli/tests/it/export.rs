//! `spinpark export`: counters for Prometheus, pushes to continuous profilers. Receivers are made here.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;
use spinpark_fixtures::command::{said, waits};

use crate::fixtures::spinpark;
use crate::profile::recording;
use crate::why::Hanging;

/// No test waits longer for anything.
const PATIENCE: Duration = Duration::from_secs(60);

/// The command at work.
struct Exporting {
    child: Child,
    errors: BufReader<std::process::ChildStderr>,
}

impl Exporting {
    fn start(pid: u32, arguments: &[&str]) -> Self {
        let mut command = spinpark(["export", "--every", "1s"]);
        let mut child =
            command.arg(pid.to_string()).args(arguments).stderr(Stdio::piped()).spawn().expect("it starts");
        let errors = BufReader::new(child.stderr.take().expect("a pipe"));
        Self { child, errors }
    }

    /// The rest of the line that begins so.
    fn line(&mut self, start: &str) -> String {
        let mut all = String::new();
        loop {
            let from = all.len();
            assert_ne!(self.errors.read_line(&mut all).expect("text"), 0, "no `{start}` in {all}");
            if let Some(rest) = all[from..].strip_prefix(start) {
                return rest.trim_end().to_owned();
            }
        }
    }

    /// By Ctrl-C: what it said at last, and its exit code.
    fn end(mut self) -> (String, Option<i32>) {
        let killed = Command::new("kill").args(["-s", "INT", &self.child.id().to_string()]).status();
        assert!(killed.expect("kill").success());
        self.ended()
    }

    fn ended(&mut self) -> (String, Option<i32>) {
        let mut rest = String::new();
        self.errors.read_to_string(&mut rest).expect("text");
        (rest, self.child.wait().expect("it ends").code())
    }
}

impl Drop for Exporting {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn talk(mut peer: impl Read + Write, request: &str) -> String {
    peer.write_all(request.as_bytes()).expect("it reads");
    let mut answer = String::new();
    peer.read_to_string(&mut answer).expect("an answer");
    answer
}

fn connect(address: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(address).expect("it listens");
    stream.set_read_timeout(Some(PATIENCE)).expect("a time");
    stream
}

fn get(address: SocketAddr, accept: &str) -> String {
    talk(connect(address), &format!("GET /metrics HTTP/1.1\r\nHost: x\r\nAccept: {accept}\r\n\r\n"))
}

/// The value of the series that begins so.
fn value(text: &str, series: &str) -> Option<f64> {
    let line = text.lines().find(|line| line.starts_with(series))?;
    line.rsplit(' ').next()?.parse().ok()
}

fn waited(text: &str) -> Option<f64> {
    let line = text.lines().find(|line| {
        line.starts_with("spinpark_wait_seconds_total{")
            && line.contains(r#"lock="accounts",place="wants_accounts"#)
    })?;
    assert!(line.contains(r#"class="lock",kind="mutex""#), "{line}");
    value(line, "spinpark")
}

/// Asks until there is an answer.
fn until<T>(mut ask: impl FnMut() -> Option<T>) -> T {
    let end = Instant::now() + PATIENCE;
    loop {
        if let Some(answer) = ask() {
            return answer;
        }
        assert!(Instant::now() < end, "it takes too long");
        thread::sleep(Duration::from_millis(100));
    }
}

#[test]
fn by_http() {
    const OPEN: &str = "application/openmetrics-text;version=1.0.0";
    let hanging = Hanging::scene("sleeper", None);
    let mut exporting =
        Exporting::start(hanging.0.id(), &["--listen", "127.0.0.1:0", "--label", "service=shop"]);
    let place = exporting.line("Serving http://");
    let address: SocketAddr = place.strip_suffix("/metrics").expect("its path").parse().expect("an address");
    // One that says nothing is in nobody's way.
    let silent = connect(address);
    let first = until(|| waited(&get(address, OPEN)));
    // Two threads wait: the counter rises.
    let later = until(|| waited(&get(address, OPEN)).filter(|later| *later > first));
    assert!(later > first);
    let text = get(address, OPEN);
    assert!(
        text.starts_with("HTTP/1.1 200 OK\r\nContent-Type: application/openmetrics-text; version=1.0.0;"),
        "{text}"
    );
    assert!(text.ends_with("\n# EOF\n"), "{text}");
    let labels = format!(r#"{{program="{}",pid="{}",service="shop""#, program(&text), hanging.0.id());
    for series in [
        "spinpark_thread_seconds_total",
        "spinpark_holder_seconds_total",
        "spinpark_process_running",
        "spinpark_series_folded_total",
    ] {
        assert!(text.contains(&format!("\n{series}{labels}")), "no {series}{labels} in {text}");
    }
    let running = format!("spinpark_process_running{labels}}}");
    assert_eq!(value(&text, &running), Some(1.0), "{text}");
    let plain = get(address, "text/plain");
    assert!(
        plain.contains("# TYPE spinpark_wait_seconds_total counter") && !plain.contains("# EOF"),
        "{plain}"
    );
    for (request, status) in [
        ("GET /other HTTP/1.1\r\n\r\n", "404"),
        ("POST /metrics HTTP/1.1\r\n\r\n", "405"),
        ("GET /metrics HTTP/2.0\r\n\r\n", "505"),
        ("hello\r\n\r\n", "400"),
        ("\0\r\n\r\n", "400"),
        ("HEAD /metrics HTTP/1.1\r\n\r\n", "200"),
    ] {
        let answer = talk(connect(address), request);
        assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{request:?}: {answer}");
    }
    let mut long = connect(address);
    // It may answer before all of it is there.
    let _ = long.write_all(&[b'x'; 9 << 10]);
    let mut answer = Vec::new();
    let _ = long.read_to_end(&mut answer);
    assert!(answer.starts_with(b"HTTP/1.1 431 "), "{}", String::from_utf8_lossy(&answer));
    drop(silent);
    assert_eq!(exporting.end().1, Some(0));
}

fn program(text: &str) -> &str {
    let (_, rest) = text.split_once("program=\"").expect("a label");
    rest.split('"').next().expect("its value")
}

#[test]
fn by_a_socket() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("socket");
    // What a dead process has left.
    drop(UnixListener::bind(&path).expect("a socket"));
    let hanging = Hanging::scene("sleeper", None);
    let place = format!("unix:{}", path.display());
    let mut exporting = Exporting::start(hanging.0.id(), &["--listen", &place]);
    exporting.line("Serving unix:");
    let request = "GET /metrics HTTP/1.1\r\n\r\n";
    until(|| waited(&talk(UnixStream::connect(&path).expect("it listens"), request)));
    // One that is in use is left alone.
    let pid = hanging.0.id().to_string();
    said(&mut spinpark(["export", &pid, "--listen", &place])).fails(2, &["cannot listen at unix:"]);
    assert_eq!(exporting.end().1, Some(0));
    assert!(!path.exists());
    fs::write(&path, "text").expect("a file");
    said(&mut spinpark(["export", &pid, "--listen", &place])).fails(2, &["cannot listen at unix:"]);
    assert_eq!(fs::read_to_string(&path).expect("the file"), "text");
}

#[test]
fn to_a_file() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("spinpark.prom");
    let mut hanging = Hanging::scene("sleeper", None);
    let file = path.to_str().expect("a name");
    let mut exporting = Exporting::start(hanging.0.id(), &["--textfile", file]);
    let read = || fs::read_to_string(&path).ok();
    until(|| waited(&read()?));
    let text = read().expect("the file");
    assert!(!text.contains("# EOF"), "{text}");
    hanging.0.kill().expect("it runs");
    let _ = hanging.0.wait();
    let (text, code) = exporting.ended();
    assert!(code == Some(0) && text.contains("The process has ended."), "{text}");
    let text = read().expect("the file");
    let last = ["spinpark_process_running{", "spinpark_threads{", "spinpark_sampled{"];
    assert_eq!(last.map(|name| value(&text, name)), [Some(0.0); 3], "{text}");
    let left: Vec<_> = fs::read_dir(directory.path()).expect("entries").collect();
    assert_eq!(left.len(), 1, "{left:?}");
    if let Some(promtool) = tool("promtool") {
        let mut command = Command::new(promtool);
        command.args(["check", "metrics"]).stdin(fs::File::open(&path).expect("the file"));
        let checked = command.output().expect("it starts");
        assert!(checked.status.success() && checked.stderr.is_empty(), "{checked:?}");
    }
    // The command ends, and the process goes on: what the file says last is true.
    let hanging = Hanging::scene("sleeper", None);
    let mut command = spinpark(["export", "--textfile", file, "--for", "1s"]);
    let result = said(command.arg(hanging.0.id().to_string()));
    assert_eq!(result.code, Some(0), "{result:#?}");
    let text = read().expect("the file");
    let last = ["spinpark_process_running{", "spinpark_sampled{"].map(|name| value(&text, name));
    assert_eq!(last, [Some(1.0), Some(0.0)], "{text}");
    assert!(value(&text, "spinpark_threads{") > Some(0.0), "{text}");
    let missing = directory.path().join("without/x.prom");
    let mut command = spinpark(["export", "--textfile"]);
    said(command.arg(missing).arg(hanging.0.id().to_string())).fails(2, &["cannot write "]);
    // What is no file is not replaced by one: a device, say.
    let link = directory.path().join("link");
    std::os::unix::fs::symlink("/dev/null", &link).expect("a link");
    let mut command = spinpark(["export", "--textfile"]);
    said(command.arg(&link).arg(hanging.0.id().to_string())).fails(2, &["something that is no file"]);
    assert!(link.is_symlink());
}

#[test]
fn a_file_that_cannot_be_written_for_a_while() {
    let directory = tempfile::tempdir().expect("a directory");
    let [there, away] = ["there", "away"].map(|name| directory.path().join(name));
    fs::create_dir(&there).expect("a directory");
    let path = there.join("spinpark.prom");
    let file = path.to_str().expect("a name");
    let hanging = Hanging::scene("sleeper", None);
    let mut exporting = Exporting::start(hanging.0.id(), &["--textfile", file]);
    until(|| path.exists().then_some(()));
    fs::rename(&there, &away).expect("its directory is moved");
    exporting.line("The counters go on, and the file is tried again each time.");
    fs::rename(&away, &there).expect("and back");
    fs::remove_file(&path).expect("the file of before");
    exporting.line("The file is written again; nothing is missing in it.");
    until(|| waited(&fs::read_to_string(&path).ok()?));
    fs::rename(&there, &away).expect("its directory is moved");
    exporting.line("The counters go on, and the file is tried again each time.");
    let (text, code) = exporting.end();
    assert!(code == Some(2) && text.contains("cannot write "), "{text}");
}

#[test]
fn once_to_standard_output() {
    let hanging = Hanging::scene("sleeper", None);
    let pid = hanging.0.id().to_string();
    let once = said(&mut spinpark(["export", &pid, "--openmetrics", "--for", "1s"]));
    assert_eq!(once.code, Some(0), "{once:#?}");
    assert!(
        waited(once.stdout.as_str()).is_some() && once.stdout.as_str().ends_with("\n# EOF\n"),
        "{once:#?}"
    );
    // Of one series, the rest is `other`.
    let few = said(&mut spinpark(["export", &pid, "--openmetrics", "--for", "1s", "--series", "1"]));
    assert!(few.stdout.contains(r#"doing="other""#), "{few:#?}");
    assert!(few.stderr.contains("--series 1 was too few"), "{few:#?}");
    // A recording: how often is known, too.
    let directory = tempfile::tempdir().expect("a directory");
    let mut command = recording(directory.path(), ["profile", "--output", "x", "--"]);
    assert_eq!(said(command.arg(waits()).arg("store")).code, Some(0));
    let kept = said(&mut recording(directory.path(), ["export", "x", "--openmetrics"]));
    assert_eq!(kept.code, Some(0), "{kept:#?}");
    let number = kept.stdout.as_str().lines().find(|line| {
        line.starts_with("spinpark_waits_total{") && line.contains(r#"lock="cache_lock",place="flush"#)
    });
    assert!(value(number.expect("the series"), "spinpark") >= Some(1.0), "{kept:#?}");
}

/// What a receiver does with a connection.
#[derive(Clone, Copy)]
enum Mood {
    Takes,
    Fails,
    Garbage,
    Silent,
    Refuses,
}

/// A receiver, in each mood for one request, in the last one for good; and what it was sent.
fn receiver(moods: &'static [Mood]) -> (SocketAddr, Receiver<Vec<u8>>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("its address");
    let (sender, bodies) = channel();
    thread::spawn(move || {
        let mut open = Vec::new();
        for (at, stream) in listener.incoming().enumerate() {
            let Ok(mut stream) = stream else { continue };
            let mood = moods[at.min(moods.len() - 1)];
            let request = read_request(&mut stream);
            let answer: &[u8] = match mood {
                Mood::Takes => b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
                Mood::Fails => b"HTTP/1.1 500 Internal Server Error\r\nContent-Length: 9\r\n\r\ndisk full",
                Mood::Refuses => b"HTTP/1.1 422 Unprocessable\r\nContent-Length: 3\r\n\r\nbad",
                Mood::Garbage => b"\xff\xfe\x00garbage",
                Mood::Silent => {
                    open.push(stream);
                    continue;
                }
            };
            let _ = stream.write_all(answer);
            if matches!(mood, Mood::Takes) && sender.send(request).is_err() {
                return;
            }
        }
    });
    (address, bodies)
}

fn read_request(stream: &mut TcpStream) -> Vec<u8> {
    let (mut request, mut part) = (Vec::new(), [0; 4096]);
    loop {
        let read = stream.read(&mut part).unwrap_or(0);
        request.extend_from_slice(&part[..read]);
        let end = request.windows(4).position(|end| end == b"\r\n\r\n");
        let length = end.and_then(|end| {
            let head = String::from_utf8_lossy(&request[..end]).to_ascii_lowercase();
            let line =
                head.lines().find_map(|line| line.strip_prefix("content-length: ").map(str::to_owned))?;
            Some(end + 4 + line.parse::<usize>().ok()?)
        });
        if read == 0 || length.is_some_and(|length| request.len() >= length) {
            return request;
        }
    }
}

#[test]
fn pushes_to_pyroscope() {
    // It is down for a moment, and says nonsense.
    let (address, bodies) = receiver(&[Mood::Fails, Mood::Garbage, Mood::Takes]);
    let hanging = Hanging::scene("sleeper", None);
    let url = format!("http://{address}");
    let exporting = Exporting::start(hanging.0.id(), &["--push", &url, "--label", "service=shop"]);
    let request = bodies.recv_timeout(PATIENCE).expect("a profile");
    let text = String::from_utf8_lossy(&request);
    let name = format!("%7Bpid%3D{}%2Cservice%3Dshop%7D", hanging.0.id());
    assert!(text.starts_with("POST /ingest?name="), "{text}");
    assert!(text.contains(&name) && text.contains("&format=pprof&"), "{text}");
    assert!(text.contains("name=\"profile\"") && text.contains("\"block_duration\""), "{text}");
    assert!(request.windows(3).any(|bytes| bytes == [0x1f, 0x8b, 8]), "no gzip: {text}");
    bodies.recv_timeout(PATIENCE).expect("the next one");
    let (said, code) = exporting.end();
    assert!(code == Some(0) && said.contains("Pushed ") && !said.contains("lost"), "{said}");
    assert!(said.contains("it answers 500: disk full. It is tried again."), "{said}");
    assert!(said.contains("takes profiles again."), "{said}");
}

#[test]
fn pushes_to_parca() {
    let (address, bodies) = receiver(&[Mood::Takes]);
    let hanging = Hanging::scene("sleeper", None);
    let url = format!("http://{address}/base");
    let exporting = Exporting::start(hanging.0.id(), &["--push", &url, "--receiver", "parca"]);
    let request = bodies.recv_timeout(PATIENCE).expect("a profile");
    let text = String::from_utf8_lossy(&request);
    assert!(text.starts_with("POST /base/api/profiles/writeraw HTTP/1.1\r\n"), "{text}");
    let (_, body) = text.split_once("\r\n\r\n").expect("a body");
    let body: Value = serde_json::from_str(body).expect("JSON");
    let series = &body["series"][0];
    assert_eq!(series["labels"]["labels"][0]["name"], "__name__");
    // In base64, a file of gzip begins so.
    assert!(series["samples"][0]["rawProfile"].as_str().expect("text").starts_with("H4sI"), "{body}");
    assert_eq!(exporting.end().1, Some(0));
}

#[test]
fn a_receiver_that_never_takes_anything() {
    let hanging = Hanging::scene("sleeper", None);
    // No port of those that the kernel gives away: another test might get it, and a connection to one can be one to itself.
    let nothing = SocketAddr::from(([127, 0, 0, 1], 1));
    for (address, words) in [
        (nothing, "lost: Connection refused"),
        (receiver(&[Mood::Fails]).0, "lost: it answers 500: disk full"),
        (receiver(&[Mood::Refuses]).0, "lost: it answers 422: bad"),
        (receiver(&[Mood::Garbage]).0, "lost: its answer is not HTTP"),
        (receiver(&[Mood::Silent]).0, "lost: "),
    ] {
        let url = format!("http://{address}");
        let mut exporting = Exporting::start(hanging.0.id(), &["--push", &url, "--for", "2s"]);
        let (said, code) = exporting.ended();
        assert_eq!(code, Some(1), "{words}: {said}");
        assert!(said.contains("Pushed 0 profiles") && said.contains(words), "{words}: {said}");
    }
}

#[test]
fn bad_input() {
    let with = |arguments: &[&str]| said(spinpark(["export"]).args(arguments));
    with(&["1"]).fails(2, &["nothing says where it is to go", "--listen 127.0.0.1:9464"]);
    with(&["nothing", "--openmetrics"]).fails(2, &["nothing does not exist"]);
    let pid = std::process::id().to_string();
    with(&[&pid, "--push", "https://x"]).fails(2, &["only plain HTTP is spoken", "Grafana Alloy"]);
    with(&[&pid, "--push", "x:1"]).fails(2, &["is not an address of HTTP", "http://HOST:4040"]);
    with(&[&pid, "--listen", "9464"]).fails(2, &["neither an address with a port nor a socket"]);
    with(&[&pid, "--listen", "192.0.2.1:1"]).fails(2, &["cannot listen at 192.0.2.1:1"]);
    with(&[&pid, "--openmetrics", "--label", "lock=x"]).fails(2, &["a label of spinpark's own"]);
    with(&[&pid, "--openmetrics", "--label", "1=x"]).fails(2, &["a label is NAME=VALUE"]);
    with(&[&pid, "--openmetrics", "--every", "10ms"]).fails(2, &["--every"]);
}

/// A program on the `PATH`.
fn tool(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    let found =
        std::env::split_paths(&path).map(|directory| directory.join(name)).find(|path| path.is_file());
    if found.is_none() {
        eprintln!("skipped: no {name} is installed");
    }
    found
}

fn fleet_file(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/guides/fleet").join(name)
}

#[test]
fn rules_and_dashboard() {
    let dashboard = fs::read_to_string(fleet_file("spinpark.dashboard.json")).expect("the dashboard");
    let dashboard: Value = serde_json::from_str(&dashboard).expect("JSON");
    let rules = fs::read_to_string(fleet_file("spinpark.rules.yml")).expect("the rules");
    // What they name, we export.
    let hanging = Hanging::scene("sleeper", None);
    let pid = hanging.0.id().to_string();
    let text = said(&mut spinpark(["export", &pid, "--openmetrics", "--for", "1s"])).stdout;
    let queries = dashboard["panels"].as_array().expect("panels").iter();
    let queries = queries.flat_map(|panel| panel["targets"].as_array().expect("queries"));
    let queries: Vec<&str> = queries.map(|query| query["expr"].as_str().expect("a query")).collect();
    assert!(queries.len() >= 6);
    for query in queries.into_iter().chain([rules.as_str()]) {
        let words = query.split(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_');
        for series in words.filter(|word| word.starts_with("spinpark_")) {
            assert!(text.contains(format!("\n{series}{{")), "{series} is not exported: {text}");
        }
    }
    let Some(promtool) = tool("promtool") else { return };
    for arguments in [["check", "rules", "spinpark.rules.yml"], ["test", "rules", "spinpark.test.yml"]] {
        let mut command = Command::new(&promtool);
        let checked = command.args(arguments).current_dir(fleet_file("")).output().expect("it starts");
        assert!(checked.status.success(), "{checked:?}");
    }
}

/// A server that scrapes it.
#[test]
fn prometheus_takes_it() {
    let Some(prometheus) = tool("prometheus") else { return };
    let directory = tempfile::tempdir().expect("a directory");
    let hanging = Hanging::scene("sleeper", None);
    let mut exporting = Exporting::start(hanging.0.id(), &["--listen", "127.0.0.1:0"]);
    let place = exporting.line("Serving http://");
    let target = place.strip_suffix("/metrics").expect("its path");
    let config = directory.path().join("prometheus.yml");
    let scrape = "{ job_name: spinpark, scrape_interval: 1s, static_configs: [{ targets: ['TARGET'] }] }";
    let scrape = scrape.replace("TARGET", target);
    fs::write(&config, format!("scrape_configs: [{scrape}]\n")).expect("a file");
    let address: SocketAddr =
        TcpListener::bind("127.0.0.1:0").expect("a port").local_addr().expect("its address");
    let mut command = Command::new(prometheus);
    command.arg(format!("--config.file={}", config.display()));
    command.arg(format!("--storage.tsdb.path={}", directory.path().join("data").display()));
    command.arg(format!("--web.listen-address={address}"));
    let mut server = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("it starts");
    let query = "/api/v1/query?query=spinpark_wait_seconds_total%7Block%3D%22accounts%22%7D";
    let answer = until(|| {
        let stream = TcpStream::connect(address).ok()?;
        let answer = talk(stream, &format!("GET {query} HTTP/1.0\r\n\r\n"));
        let (_, body) = answer.split_once("\r\n\r\n")?;
        let body: Value = serde_json::from_str(body).ok()?;
        let result = body["data"]["result"].as_array()?.first()?.clone();
        Some(result)
    });
    let _ = server.kill();
    let _ = server.wait();
    assert_eq!(answer["metric"]["class"], "lock", "{answer}");
    assert_eq!(exporting.end().1, Some(0));
}
