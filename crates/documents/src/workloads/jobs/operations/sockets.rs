//! The same over the network's own loop, in one process.

use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream, UdpSocket};
use std::time::Duration;

use super::Context;
use super::pipes::{exchange, whole};
use crate::workloads::job::JobError;

/// Whatever takes longer was lost. Generous: the machine may be suspended.
const PATIENCE: Duration = Duration::from_secs(120);

/// Checks that there is a loop.
pub(super) fn check() -> Result<(), JobError> {
    UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).map(drop).map_err(|error| {
        JobError::Refused(format!(
            "this mix needs the address 127.0.0.1, which is not there: {error}\n\
             Switch it on (`ip link set lo up`), or use a mix without tcp_test and udp_test, such as disk"
        ))
    })
}

/// A connection.
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
