//! What is written at one end and read at the other, in one process: pipes, named pipes, pairs of sockets.

use std::io::{self, Read, Write};
use std::os::unix::net::{UnixDatagram, UnixStream};

use rustix::fs::{CWD, FileType, Mode};

use super::Context;
use crate::workloads::job::{JobError, expect};

/// Sizes of what is written, from 1 byte to 4 KB: 100 of them.
pub(super) fn sizes() -> impl Iterator<Item = usize> {
    (0..100).map(|number| 1 + number * 4095 / 99)
}

/// Writes and reads pieces of all sizes, and compares.
pub(super) fn exchange(
    mut write: impl FnMut(&[u8]) -> io::Result<()>,
    mut read: impl FnMut(&mut [u8]) -> io::Result<()>,
) -> Result<(), JobError> {
    let mut buffer = vec![0; 4096];
    for (number, size) in sizes().enumerate() {
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
pub(super) fn whole(bytes: usize, piece: &[u8]) -> io::Result<()> {
    if bytes == piece.len() { Ok(()) } else { Err(io::ErrorKind::UnexpectedEof.into()) }
}
