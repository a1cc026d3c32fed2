//! The counters by HTTP/1.1: `GET /metrics`, and nothing else. One request a connection, which has few seconds, few
//! bytes, and few others beside it.

use std::ffi::OsStr;
use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileTypeExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use std::{fs, thread};

use anyhow::{Context, anyhow, bail};
use spinpark_profile::export::{CONTENT_TYPE, Dialect, Metrics, text};

/// A request has so long to come, and its answer to go.
const PATIENCE: Duration = Duration::from_secs(5);
/// The longest request.
const REQUEST: usize = 8 << 10;
/// Connections at a time; others wait in the kernel's queue, or are closed.
const CONNECTIONS: usize = 16;
/// After a failure to accept one.
const PAUSE: Duration = Duration::from_millis(100);

/// Serves until it is dropped.
pub(super) struct Server {
    place: String,
    is_over: Arc<AtomicBool>,
    wake: Wake,
}

/// How the thread that accepts connections is woken: by one more.
enum Wake {
    Tcp(std::net::SocketAddr),
    Unix(PathBuf),
}

/// A connection.
trait Peer: Read + Write + Send + 'static {
    fn patience(&self, time: Duration) -> io::Result<()>;
    fn end(&self);
}

impl Peer for TcpStream {
    fn patience(&self, time: Duration) -> io::Result<()> {
        self.set_read_timeout(Some(time))?;
        self.set_write_timeout(Some(time))
    }
    fn end(&self) {
        let _ = self.shutdown(Shutdown::Write);
    }
}

impl Peer for UnixStream {
    fn patience(&self, time: Duration) -> io::Result<()> {
        self.set_read_timeout(Some(time))?;
        self.set_write_timeout(Some(time))
    }
    fn end(&self) {
        let _ = self.shutdown(Shutdown::Write);
    }
}

impl Server {
    /// Listens at `HOST:PORT`, or `unix:PATH`.
    ///
    /// # Errors
    /// If that is not possible; with what to do.
    pub(super) fn open(place: &OsStr, metrics: &Arc<Mutex<Metrics>>) -> anyhow::Result<Self> {
        let is_over = Arc::new(AtomicBool::new(false));
        let (flag, metrics) = (Arc::clone(&is_over), Arc::clone(metrics));
        if let Some(path) = place.as_bytes().strip_prefix(b"unix:") {
            let path = PathBuf::from(OsStr::from_bytes(path));
            let listener = socket(&path)?;
            let place = format!("unix:{}, at /metrics", path.display());
            thread::spawn(move || serve(|| Ok(listener.accept()?.0), &flag, &metrics));
            return Ok(Self { place, is_over, wake: Wake::Unix(path) });
        }
        let address = place.to_str().filter(|address| address.contains(':'));
        let Some(address) = address else {
            bail!(
                "--listen {} is neither an address with a port nor a socket\nWrite 127.0.0.1:9464, or unix:/run/spinpark.sock",
                place.to_string_lossy()
            );
        };
        let listener = TcpListener::bind(address).map_err(|error| {
            anyhow!(
                "cannot listen at {address}: {error}\nGive --listen an address of this host and a port that is free, such as \
                 127.0.0.1:9464"
            )
        })?;
        let address = listener.local_addr().context("cannot find the port")?;
        thread::spawn(move || serve(|| Ok(listener.accept()?.0), &flag, &metrics));
        Ok(Self { place: format!("http://{address}/metrics"), is_over, wake: Wake::Tcp(address) })
    }

    /// Where it is.
    pub(super) fn place(&self) -> &str {
        &self.place
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.is_over.store(true, Relaxed);
        match &self.wake {
            Wake::Tcp(address) => drop(TcpStream::connect_timeout(address, PAUSE)),
            Wake::Unix(path) => {
                drop(UnixStream::connect(path));
                let _ = fs::remove_file(path);
            }
        }
    }
}

/// A socket in the file system. One that a dead process has left is removed; nothing else is.
fn socket(path: &Path) -> anyhow::Result<UnixListener> {
    let is_socket = fs::symlink_metadata(path).is_ok_and(|file| file.file_type().is_socket());
    if is_socket
        && UnixStream::connect(path).is_err_and(|error| error.kind() == io::ErrorKind::ConnectionRefused)
    {
        let _ = fs::remove_file(path);
    }
    UnixListener::bind(path).map_err(|error| {
        anyhow!(
            "cannot listen at unix:{}: {error}\nGive --listen a path that is free, in a directory in which you may write",
            path.display()
        )
    })
}

fn serve<P: Peer>(accept: impl Fn() -> io::Result<P>, is_over: &AtomicBool, metrics: &Arc<Mutex<Metrics>>) {
    let active = Arc::new(AtomicUsize::new(0));
    while !is_over.load(Relaxed) {
        let Ok(peer) = accept() else {
            // No descriptors are left, say.
            thread::sleep(PAUSE);
            continue;
        };
        if active.fetch_add(1, Relaxed) >= CONNECTIONS {
            active.fetch_sub(1, Relaxed);
            continue;
        }
        let (active, metrics) = (Arc::clone(&active), Arc::clone(metrics));
        let answer = {
            let active = Arc::clone(&active);
            move || {
                let _ = converse(peer, &metrics);
                active.fetch_sub(1, Relaxed);
            }
        };
        if thread::Builder::new().stack_size(256 << 10).spawn(answer).is_err() {
            active.fetch_sub(1, Relaxed);
        }
    }
}

/// Reads the request, and answers.
fn converse(mut peer: impl Peer, metrics: &Mutex<Metrics>) -> io::Result<()> {
    let until = Instant::now() + PATIENCE;
    let answer = match request(&mut peer, until)? {
        Some(request) => answer(&request, metrics),
        None => plain("431 Request Header Fields Too Large", "The request is too long.\n"),
    };
    let until = Instant::now() + PATIENCE;
    for part in answer.chunks(64 << 10) {
        peer.patience(left(until)?)?;
        peer.write_all(part)?;
    }
    peer.end();
    // What is not read makes the kernel reset the connection, and the answer may be lost.
    let mut rest = [0; 1024];
    for _ in 0..64 {
        peer.patience(left(until)?)?;
        if peer.read(&mut rest)? == 0 {
            break;
        }
    }
    Ok(())
}

fn left(until: Instant) -> io::Result<Duration> {
    let left = until.saturating_duration_since(Instant::now());
    if left.is_zero() { Err(io::ErrorKind::TimedOut.into()) } else { Ok(left) }
}

/// The head of the request; none if it is too long.
fn request(peer: &mut impl Peer, until: Instant) -> io::Result<Option<Vec<u8>>> {
    let mut head = Vec::new();
    let mut part = [0; 1024];
    loop {
        peer.patience(left(until)?)?;
        let read = peer.read(&mut part)?;
        if read == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        head.extend_from_slice(&part[..read]);
        if let Some(end) = head.windows(4).position(|end| end == b"\r\n\r\n") {
            head.truncate(end);
            return Ok(Some(head));
        }
        if head.len() > REQUEST {
            return Ok(None);
        }
    }
}

/// The answer to a request of which this is the head.
fn answer(head: &[u8], metrics: &Mutex<Metrics>) -> Vec<u8> {
    let head = String::from_utf8_lossy(head);
    let mut lines = head.split("\r\n");
    let words: Vec<&str> = lines.next().unwrap_or_default().split(' ').collect();
    let [method, target, version] = words[..] else {
        return plain("400 Bad Request", "This is not HTTP/1.1.\n");
    };
    if !version.starts_with("HTTP/1.") {
        return plain("505 HTTP Version Not Supported", "Only HTTP/1.1 is spoken here.\n");
    }
    if method != "GET" && method != "HEAD" {
        return with_head("405 Method Not Allowed", "text/plain", "Allow: GET, HEAD\r\n", "Use GET.\n");
    }
    let answer = match target.split('?').next().unwrap_or_default() {
        "/metrics" => {
            let is_wanted = lines.any(|line| {
                line.split_once(':').is_some_and(|(name, value)| {
                    name.eq_ignore_ascii_case("accept") && value.contains("application/openmetrics-text")
                })
            });
            let dialect = if is_wanted { Dialect::OpenMetrics } else { Dialect::Prometheus };
            let text = text(&metrics.lock().unwrap_or_else(PoisonError::into_inner), dialect);
            with_head("200 OK", CONTENT_TYPE[dialect as usize], "", &text)
        }
        "/" => plain("200 OK", "Where a process waits: /metrics\n"),
        _ => plain("404 Not Found", "There is /metrics.\n"),
    };
    match method {
        "HEAD" => {
            let end =
                answer.windows(4).position(|end| end == b"\r\n\r\n").map_or(answer.len(), |end| end + 4);
            answer[..end].to_vec()
        }
        _ => answer,
    }
}

fn plain(status: &str, text: &str) -> Vec<u8> {
    with_head(status, "text/plain; charset=utf-8", "", text)
}

fn with_head(status: &str, kind: &str, more: &str, body: &str) -> Vec<u8> {
    format!(
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {}\r\n{more}Connection: close\r\n\r\n{body}",
        body.len()
    )
    .into_bytes()
}
