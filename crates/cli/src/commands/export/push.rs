//! Stacks of waiting, pushed to a continuous profiler by HTTP/1.1. It may be down, slow or full, and answer whatever it
//! likes: what waits for it is bounded, tries become rarer, and what is lost is counted.

use std::collections::VecDeque;
use std::io::{self, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::bail;
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use serde_json::json;
use spinpark_measure::text::one_line;
use spinpark_measure::text::units::{bytes, count};

use crate::cli::Receiver as Kind;

/// A push has so long.
const PATIENCE: Duration = Duration::from_secs(10);
/// What waits: so many, and so many bytes. Older ones make room.
const WAITING: usize = 32;
const BYTES: usize = 16 << 20;
/// After a failure; each further one in a row doubles it, up to the longest.
const PAUSE: Duration = Duration::from_secs(1);
const LONGEST: Duration = Duration::from_secs(60);
/// At the end, what waits has so long.
const LAST: Duration = Duration::from_secs(5);
/// Of an answer, so much is read.
const ANSWER: usize = 4 << 10;

/// Where profiles go.
pub(super) struct Receiver {
    kind: Kind,
    host: String,
    port: u16,
    path: String,
    labels: Vec<(String, String)>,
    /// As the user wrote it.
    shown: String,
}

/// Profiles on their way.
pub(super) struct Pusher {
    shared: Arc<Shared>,
}

struct Shared {
    state: Mutex<State>,
    changed: Condvar,
    shown: String,
}

#[derive(Default)]
struct State {
    waiting: VecDeque<Item>,
    bytes: usize,
    /// One is being sent.
    is_busy: bool,
    pushed: u64,
    pushed_bytes: u64,
    lost: u64,
    /// Why, the last time.
    reason: String,
    /// No further ones come: what waits has until then.
    end: Option<Instant>,
}

/// A profile, and its time, ns since 1970.
struct Item {
    pprof: Vec<u8>,
    from: u64,
    until: u64,
}

/// Why a push failed.
enum Failure {
    /// It may succeed later.
    Later(String),
    /// The receiver does not want it.
    Never(String),
}

impl Receiver {
    /// `http://HOST:PORT/PATH`. `labels`: the first of them is the program.
    ///
    /// # Errors
    /// What is wrong with it.
    pub(super) fn new(url: &str, kind: Kind, labels: &[(String, String)]) -> anyhow::Result<Self> {
        if url.starts_with("https://") {
            bail!(
                "--push {url}: only plain HTTP is spoken\nPush to an agent or a proxy on this host that speaks TLS: Grafana Alloy \
                 (`pyroscope.receive_http`), nginx, stunnel"
            );
        }
        let wrong = || {
            let port = if kind == Kind::Parca { 7070 } else { 4040 };
            anyhow::anyhow!("--push {url} is not an address of HTTP\nWrite --push http://HOST:{port}")
        };
        let rest = url.strip_prefix("http://").ok_or_else(wrong)?;
        if rest.contains(|letter: char| letter.is_control() || letter == ' ' || letter == '@') {
            return Err(wrong());
        }
        let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
        let (host, port) = match authority.rsplit_once(':') {
            Some((host, port)) if !port.ends_with(']') => (host, port.parse().map_err(|_| wrong())?),
            _ => (authority, 80),
        };
        let host = host.trim_start_matches('[').trim_end_matches(']');
        if host.is_empty() || path.contains(['?', '#']) {
            return Err(wrong());
        }
        let path = match path.trim_end_matches('/') {
            "" => String::new(),
            path => format!("/{path}"),
        };
        Ok(Self { kind, host: host.to_owned(), port, path, labels: labels.to_vec(), shown: url.to_owned() })
    }

    /// The request for a profile.
    fn request(&self, item: &Item) -> Vec<u8> {
        let (target, content, body) = match self.kind {
            Kind::Pyroscope => self.pyroscope(item),
            Kind::Parca => self.parca(item),
        };
        let host = if self.host.contains(':') { format!("[{}]", self.host) } else { self.host.clone() };
        let mut request = format!(
            "POST {}{target} HTTP/1.1\r\nHost: {host}:{}\r\nUser-Agent: spinpark/{}\r\nContent-Type: {content}\r\n\
             Content-Length: {}\r\nConnection: close\r\n\r\n",
            self.path,
            self.port,
            env!("CARGO_PKG_VERSION"),
            body.len()
        )
        .into_bytes();
        request.extend(body);
        request
    }

    /// Pyroscope's `/ingest`: a form with the profile, and with what its types are: those of Go's block profile, whose
    /// stacks are the waiter's, too.
    fn pyroscope(&self, item: &Item) -> (String, String, Vec<u8>) {
        const BOUNDARY: &str = "spinpark-6f1d0c5e8b7a4293";
        let (first, rest) =
            self.labels.split_first().map_or(("", &[][..]), |(first, rest)| (&*first.1, rest));
        let labels: Vec<String> =
            rest.iter().map(|(name, value)| format!("{}={}", name_in(name), name_in(value))).collect();
        let name = encoded(&format!("{}{{{}}}", name_in(first), labels.join(",")));
        let seconds = |ns: u64| ns / 1_000_000_000;
        // The receiver takes whole seconds, and none that is empty.
        let (from, until) = (seconds(item.from), seconds(item.until).max(seconds(item.from) + 1));
        let target = format!("/ingest?name={name}&from={from}&until={until}&format=pprof&spyName=spinpark");
        let types = json!({
            "contentions": { "units": "lock_samples", "display-name": "block_count", "sampled": false },
            "delay": { "units": "lock_nanoseconds", "display-name": "block_duration", "sampled": false },
        });
        let part = |field: &str, file: &str| {
            format!(
                "--{BOUNDARY}\r\nContent-Disposition: form-data; name=\"{field}\"; filename=\"{file}\"\r\n\
                 Content-Type: application/octet-stream\r\n\r\n"
            )
        };
        let mut body = part("profile", "profile.pprof").into_bytes();
        body.extend_from_slice(&item.pprof);
        body.extend(
            format!(
                "\r\n{}{types}\r\n--{BOUNDARY}--\r\n",
                part("sample_type_config", "sample_type_config.json")
            )
            .bytes(),
        );
        (target, format!("multipart/form-data; boundary={BOUNDARY}"), body)
    }

    /// Parca's `WriteRaw`, by the JSON that its gateway takes.
    fn parca(&self, item: &Item) -> (String, String, Vec<u8>) {
        let own = [(String::from("__name__"), String::from("spinpark"))];
        let labels = own.iter().chain(&self.labels);
        let labels: Vec<_> = labels.map(|(name, value)| json!({ "name": name, "value": value })).collect();
        let body = json!({
            "series": [{
                "labels": { "labels": labels },
                "samples": [{ "rawProfile": BASE64_STANDARD.encode(&item.pprof) }],
            }],
            // Addresses are those in the files.
            "normalized": true,
        });
        (
            String::from("/api/profiles/writeraw"),
            String::from("application/json"),
            body.to_string().into_bytes(),
        )
    }

    /// Sends a profile, and reads the answer.
    fn push(&self, item: &Item, until: Instant) -> Result<(), Failure> {
        let later = |error: io::Error| {
            let timed_out = matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut);
            Failure::Later(if timed_out {
                String::from("it does not answer in time")
            } else {
                error.to_string()
            })
        };
        let answer = self.exchange(&self.request(item), until).map_err(later)?;
        let head = String::from_utf8_lossy(&answer);
        let mut words = head.lines().next().unwrap_or_default().split(' ');
        let is_http = words.next().is_some_and(|version| version.starts_with("HTTP/1."));
        let status: Option<u16> = words.next().and_then(|status| status.parse().ok());
        let Some(status) = status.filter(|_| is_http) else {
            return Err(Failure::Later(String::from("its answer is not HTTP")));
        };
        let said = || {
            let body = head.split_once("\r\n\r\n").map_or("", |(_, body)| body);
            let body: String = one_line(body.lines().next().unwrap_or_default()).chars().take(120).collect();
            if body.is_empty() {
                format!("it answers {status}")
            } else {
                format!("it answers {status}: {body}")
            }
        };
        match status {
            200..=299 => Ok(()),
            408 | 429 | 500..=599 => Err(Failure::Later(said())),
            _ => Err(Failure::Never(said())),
        }
    }

    fn exchange(&self, request: &[u8], until: Instant) -> io::Result<Vec<u8>> {
        let mut error = io::Error::new(io::ErrorKind::NotFound, "its name has no address");
        let left = || match until.saturating_duration_since(Instant::now()) {
            left if left.is_zero() => Err(io::Error::from(io::ErrorKind::TimedOut)),
            left => Ok(left),
        };
        let mut connected = None;
        for address in (self.host.as_str(), self.port).to_socket_addrs()? {
            match TcpStream::connect_timeout(&address, left()?) {
                Ok(stream) => {
                    connected = Some(stream);
                    break;
                }
                Err(why) => error = why,
            }
        }
        let Some(mut stream) = connected else { return Err(error) };
        for part in request.chunks(64 << 10) {
            stream.set_write_timeout(Some(left()?))?;
            match stream.write_all(part) {
                Ok(()) => {}
                // It may have answered before it has read everything: that it is too large.
                Err(why)
                    if matches!(why.kind(), io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset) =>
                {
                    break;
                }
                Err(why) => return Err(why),
            }
        }
        let (mut answer, mut part) = (Vec::new(), [0; 1024]);
        while answer.len() < ANSWER {
            stream.set_read_timeout(Some(left()?))?;
            match stream.read(&mut part) {
                Ok(0) => break,
                Ok(read) => answer.extend_from_slice(&part[..read]),
                // The status is enough.
                Err(_) if answer.windows(2).any(|end| end == b"\r\n") => break,
                Err(why) => return Err(why),
            }
        }
        Ok(answer)
    }
}

/// Without what separates names and labels in a name for Pyroscope.
fn name_in(text: &str) -> String {
    text.chars()
        .map(|letter| if matches!(letter, '{' | '}' | ',' | '=' | '"') { '_' } else { letter })
        .collect()
}

/// In the query of a URL.
fn encoded(text: &str) -> String {
    let mut encoded = String::new();
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => encoded.push(byte.into()),
            byte => encoded += &format!("%{byte:02X}"),
        }
    }
    encoded
}

impl Pusher {
    /// Begins, with nothing to send.
    pub(super) fn start(receiver: Receiver) -> Self {
        let shared = Arc::new(Shared {
            state: Mutex::default(),
            changed: Condvar::new(),
            shown: receiver.shown.clone(),
        });
        let own = Arc::clone(&shared);
        thread::spawn(move || own.work(&receiver));
        Self { shared }
    }

    /// Sends a profile later. If too many wait, the oldest is lost.
    pub(super) fn offer(&self, pprof: Vec<u8>, from: u64, until: u64) {
        let mut state = self.shared.lock();
        state.bytes += pprof.len();
        state.waiting.push_back(Item { pprof, from, until });
        state.trim();
        self.shared.changed.notify_all();
    }

    /// Waits until all is sent, for a few seconds at most; what became of everything, and whether nothing was lost.
    pub(super) fn finish(self) -> (String, bool) {
        let mut state = self.shared.lock();
        let end = Instant::now() + LAST;
        state.end = Some(end);
        self.shared.changed.notify_all();
        while state.is_busy || !state.waiting.is_empty() {
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            state = self.shared.changed.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
        }
        let lost = state.lost + state.waiting.len() as u64 + u64::from(state.is_busy);
        let why = if state.reason.is_empty() { "the time was too short" } else { &state.reason };
        let profiles = |number: u64| match number {
            1 => String::from("1 profile"),
            number => format!("{} profiles", count(number)),
        };
        let pushed = format!(
            "Pushed {} ({}) to {}",
            profiles(state.pushed),
            bytes(state.pushed_bytes as f64),
            self.shared.shown
        );
        match lost {
            0 => (format!("{pushed}."), true),
            lost => (format!("{pushed}; {} lost: {why}.", profiles(lost)), false),
        }
    }
}

impl State {
    /// Makes room.
    fn trim(&mut self) {
        while self.waiting.len() > WAITING || self.bytes > BYTES {
            let Some(oldest) = self.waiting.pop_front() else { break };
            self.bytes -= oldest.pprof.len();
            self.lost += 1;
        }
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sends what comes, one after the other.
    fn work(&self, receiver: &Receiver) {
        let mut pause = Duration::ZERO;
        loop {
            let mut state = self.lock();
            let due = Instant::now() + pause;
            // At the end nothing is waited for, but once.
            while state.end.is_none() && (state.waiting.is_empty() || Instant::now() < due) {
                let left = due.saturating_duration_since(Instant::now());
                let left = if state.waiting.is_empty() { LONGEST } else { left };
                state = self.changed.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
            }
            let Some(item) = state.waiting.pop_front() else { return };
            state.bytes -= item.pprof.len();
            state.is_busy = true;
            let until = Instant::now() + PATIENCE;
            let until = state.end.map_or(until, |end| end.min(until));
            drop(state);
            let result = receiver.push(&item, until);
            let mut state = self.lock();
            state.is_busy = false;
            match result {
                Ok(()) => {
                    if !pause.is_zero() {
                        note!("{} takes profiles again.", self.shown);
                    }
                    pause = Duration::ZERO;
                    state.pushed += 1;
                    state.pushed_bytes += item.pprof.len() as u64;
                }
                Err(Failure::Never(why)) => {
                    if state.reason != why {
                        note!("Warning: {} does not take a profile: {why}.", self.shown);
                    }
                    state.lost += 1;
                    state.reason = why;
                }
                Err(Failure::Later(why)) => {
                    if pause.is_zero() {
                        note!("Warning: cannot push to {}: {why}. It is tried again.", self.shown);
                    }
                    pause = (pause * 2).clamp(PAUSE, LONGEST);
                    state.reason = why;
                    if state.end.is_some() {
                        // The others would have no more luck.
                        state.lost += 1 + state.waiting.len() as u64;
                        state.bytes = 0;
                        state.waiting.clear();
                    } else {
                        state.bytes += item.pprof.len();
                        state.waiting.push_front(item);
                        state.trim();
                    }
                }
            }
            self.changed.notify_all();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn receiver(url: &str) -> anyhow::Result<Receiver> {
        let labels = [("program", "st{o}re"), ("pid", "7"), ("service", "a b")];
        let labels: Vec<_> = labels.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec();
        Receiver::new(url, Kind::Pyroscope, &labels)
    }

    #[test]
    fn addresses() {
        let parts = |url: &str| receiver(url).map(|it| (it.host, it.port, it.path)).ok();
        let expected = |host: &str, port, path: &str| Some((host.to_owned(), port, path.to_owned()));
        assert_eq!(parts("http://pyroscope:4040"), expected("pyroscope", 4040, ""));
        assert_eq!(parts("http://[::1]:4040/base/"), expected("::1", 4040, "/base"));
        assert_eq!(parts("http://[::1]/"), expected("::1", 80, ""));
        for wrong in
            ["pyroscope:4040", "http://", "http://a:b", "http://a b", "http://u:p@a", "http://a/?x=1"]
        {
            assert!(parts(wrong).is_none(), "{wrong}");
        }
        let error = receiver("https://a").err().map(|error| error.to_string()).unwrap_or_default();
        assert!(error.contains("Grafana Alloy"), "{error}");
    }

    #[test]
    fn labels_are_in_the_name() {
        let item = Item { pprof: b"x".to_vec(), from: 5_500_000_000, until: 5_900_000_000 };
        let (target, ..) = receiver("http://a:1").expect("an address").pyroscope(&item);
        let name = "st_o_re%7Bpid%3D7%2Cservice%3Da%20b%7D";
        assert_eq!(target, format!("/ingest?name={name}&from=5&until=6&format=pprof&spyName=spinpark"));
    }
}
