//! What is written at one end and read at the other, in one process: pipes, pairs of sockets, and the same
//! over the network's own loop.

use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream, UdpSocket};
use std::os::unix::net::{UnixDatagram, UnixStream};
use std::time::Duration;

use rustix::fs::{CWD, FileType, Mode};

use super::Context;
use crate::workloads::job::{JobError, expect};

/// Writes and reads 100 pieces, from 1 byte to 4 KB, and compares.
fn exchange(
    mut write: impl FnMut(&[u8]) -> io::Result<()>,
    mut read: impl FnMut(&mut [u8]) -> io::Result<()>,
) -> Result<(), JobError> {
    let mut buffer = vec![0; 4096];
    for number in 0..100 {
        let size = 1 + number * 4095 / 99;
        let piece = vec![number as u8; size];
        write(&piece).map_err(JobError::failed("cannot write"))?;
        read(&mut buffer[..size]).map_err(JobError::failed("cannot read"))?;
        expect(buffer[..size] == piece, || format!("{size} bytes differ after the way through"))?;
    }
    Ok(())
}

/// A pipe.
pub(super) fn pipe(_: &mut Context) -> Result<(), JobError> {
    let (mut reader, mut writer) = io::pipe().map_err(JobError::failed("cannot make a pipe"))?;
    exchange(|piece| writer.write_all(piece), |buffer| reader.read_exact(buffer))
}

/// A pipe with a name.
pub(super) fn fifo(context: &mut Context) -> Result<(), JobError> {
    let path = context.path("fifo");
    rustix::fs::mknodat(CWD, &path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0)
        .map_err(JobError::failed("cannot make a named pipe"))?;
    // Open for both, so that no end waits for the other.
    let open = std::fs::File::options().read(true).write(true).open(&path);
    let mut both = open.map_err(JobError::failed("cannot open a named pipe"))?;
    let mut other = both.try_clone().map_err(JobError::failed("cannot open a named pipe twice"))?;
    let result = exchange(|piece| both.write_all(piece), |buffer| other.read_exact(buffer));
    std::fs::remove_file(&path).map_err(JobError::failed("cannot remove a named pipe"))?;
    result
}

/// A pair of stream sockets.
pub(super) fn stream_pair(_: &mut Context) -> Result<(), JobError> {
    let (mut one, mut other) =
        UnixStream::pair().map_err(JobError::failed("cannot make a pair of sockets"))?;
    exchange(|piece| one.write_all(piece), |buffer| other.read_exact(buffer))
}

/// A pair of datagram sockets.
pub(super) fn datagram_pair(_: &mut Context) -> Result<(), JobError> {
    let (one, other) = UnixDatagram::pair().map_err(JobError::failed("cannot make a pair of sockets"))?;
    exchange(
        |piece| one.send(piece).and_then(|sent| whole(sent, piece)),
        |buffer| other.recv(buffer).and_then(|received| whole(received, buffer)),
    )
}

/// Datagrams go in one piece.
fn whole(bytes: usize, piece: &[u8]) -> io::Result<()> {
    if bytes == piece.len() { Ok(()) } else { Err(io::ErrorKind::UnexpectedEof.into()) }
}

/// Whatever takes longer was lost. Generous: the machine may be suspended.
const PATIENCE: Duration = Duration::from_secs(120);

/// Checks that there is a loop.
pub(super) fn check_network() -> Result<(), JobError> {
    UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).map(drop).map_err(|error| {
        JobError::Refused(format!(
            "this mix needs the address 127.0.0.1, which is not there: {error}\n\
             Switch it on (`ip link set lo up`), or use a mix without tcp_test and udp_test, such as disk"
        ))
    })
}

pub(super) fn tcp(_: &mut Context) -> Result<(), JobError> {
    let connected = || -> io::Result<(TcpStream, TcpStream)> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let client = TcpStream::connect(listener.local_addr()?)?;
        let (server, _) = listener.accept()?;
        for stream in [&client, &server] {
            stream.set_nodelay(true)?;
            stream.set_read_timeout(Some(PATIENCE))?;
            // Closed at once, without a minute of waiting that would use up the ports.
            rustix::net::sockopt::set_socket_linger(stream, Some(Duration::ZERO))?;
        }
        Ok((client, server))
    };
    let (mut client, mut server) = connected().map_err(JobError::failed("cannot connect to myself"))?;
    exchange(|piece| client.write_all(piece), |buffer| server.read_exact(buffer))
}

/// Datagrams.
pub(super) fn udp(_: &mut Context) -> Result<(), JobError> {
    let connected = || -> io::Result<(UdpSocket, UdpSocket)> {
        let one = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
        let other = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
        one.connect(other.local_addr()?)?;
        other.connect(one.local_addr()?)?;
        other.set_read_timeout(Some(PATIENCE))?;
        Ok((one, other))
    };
    let (one, other) = connected().map_err(JobError::failed("cannot connect to myself"))?;
    exchange(
        |piece| one.send(piece).and_then(|sent| whole(sent, piece)),
        |buffer| other.recv(buffer).and_then(|received| whole(received, buffer)),
    )
}
