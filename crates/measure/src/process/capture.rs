//! The output of a child: one pipe for both streams, so that their order survives; bounded memory.

use std::collections::VecDeque;
use std::io;
use std::os::fd::OwnedFd;

use rustix::fs::OFlags;
use rustix::io::Errno;
use rustix::pipe::PipeFlags;

/// Output beyond this is dropped from the front: the numbers and the errors come last.
pub const OUTPUT_LIMIT: usize = 16 << 20;

/// The reading end, and what came out of it.
pub(super) struct Capture {
    pipe: Option<OwnedFd>,
    text: VecDeque<u8>,
    buffer: Box<[u8]>,
}

impl Capture {
    /// A capture and the end to write to.
    pub(super) fn new() -> io::Result<(Self, OwnedFd)> {
        let (read, write) = rustix::pipe::pipe_with(PipeFlags::CLOEXEC)?;
        // Only our end: a program that finds its standard output non-blocking may lose some of it.
        rustix::fs::fcntl_setfl(&read, OFlags::NONBLOCK)?;
        let capture = Self { pipe: Some(read), text: VecDeque::new(), buffer: vec![0; 64 << 10].into() };
        Ok((capture, write))
    }

    /// The reading end, until the other one is closed.
    pub(super) fn pipe(&self) -> Option<&OwnedFd> {
        self.pipe.as_ref()
    }

    /// Takes what is in the pipe.
    pub(super) fn drain(&mut self) -> io::Result<()> {
        while let Some(pipe) = &self.pipe {
            match rustix::io::read(pipe, &mut self.buffer[..]) {
                Ok(0) => self.pipe = None,
                Ok(length) => self.keep(length),
                Err(Errno::AGAIN) => return Ok(()),
                Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    fn keep(&mut self, length: usize) {
        self.text.extend(&self.buffer[..length]);
        let excess = self.text.len().saturating_sub(OUTPUT_LIMIT);
        self.text.drain(..excess);
    }

    /// The output, with anything that is not UTF-8 replaced.
    pub(super) fn into_text(self) -> String {
        String::from_utf8_lossy(&Vec::from(self.text)).into_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_until_the_writer_is_gone() {
        let (mut capture, write) = Capture::new().unwrap();
        rustix::io::write(&write, b"one\n").unwrap();
        capture.drain().unwrap();
        assert!(capture.pipe().is_some());
        rustix::io::write(&write, b"two \xff\n").unwrap();
        drop(write);
        capture.drain().unwrap();
        assert!(capture.pipe().is_none());
        assert_eq!(capture.into_text(), "one\ntwo \u{fffd}\n");
    }

    #[test]
    fn keeps_the_end() {
        let (mut capture, _write) = Capture::new().unwrap();
        capture.text = VecDeque::from(vec![b'a'; OUTPUT_LIMIT]);
        capture.buffer[..3].copy_from_slice(b"end");
        capture.keep(3);
        assert_eq!(capture.text.len(), OUTPUT_LIMIT);
        assert!(capture.into_text().ends_with("aend"));
    }
}
