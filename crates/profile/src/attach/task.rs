//! One thread in a snapshot: its system call, and a copy of the end of its stack.

use crate::machine;
use crate::symbols::Blocked;
use crate::watch::{Sched, Stat};

/// What the kernel says that a thread is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Call {
    /// It is on a CPU, or ready for one.
    Running,
    /// Blocked, in no system call: a page fault.
    Fault,
    /// Blocked in this system call.
    Blocked { number: i64, arguments: [u64; 6] },
    /// That may not be read.
    Unknown,
}

/// A futex at which a thread sleeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Futex {
    pub(crate) address: u64,
    /// Without flags.
    pub(crate) operation: i32,
    /// Other processes do not wait there.
    pub(crate) is_private: bool,
    /// What the word was expected to be.
    pub(crate) value: u64,
    /// The wait ends by itself.
    pub(crate) is_timed: bool,
}

impl Call {
    /// Of `/proc/PID/task/TID/syscall`; with the end of the stack and the next instruction, if it is blocked.
    pub(crate) fn parse(text: &[u8]) -> (Self, Option<(u64, u64)>) {
        let text = String::from_utf8_lossy(text);
        let mut fields = text.split_ascii_whitespace();
        let number = match fields.next() {
            Some("running") => return (Self::Running, None),
            Some(number) => number.parse::<i64>(),
            None => return (Self::Unknown, None),
        };
        let numbers: Option<Vec<u64>> =
            fields.map(|field| u64::from_str_radix(field.strip_prefix("0x")?, 16).ok()).collect();
        match (number, numbers.as_deref()) {
            (Ok(-1), Some(&[stack, code])) => (Self::Fault, Some((stack, code))),
            (Ok(number), Some(&[a, b, c, d, e, f, stack, code])) => {
                (Self::Blocked { number, arguments: [a, b, c, d, e, f] }, Some((stack, code)))
            }
            _ => (Self::Unknown, None),
        }
    }

    /// What it was before it was interrupted, by a stop or a debugger, and went on: the code that made it has its
    /// number. `before`: the bytes before the next instruction.
    pub(crate) fn resumed(self, before: impl FnOnce() -> Option<[u8; 8]>) -> Self {
        let Self::Blocked { number: libc::SYS_restart_syscall, arguments } = self else { return self };
        match before().and_then(machine::restarted) {
            Some(number) => Self::Blocked { number, arguments },
            None => self,
        }
    }

    /// The futex, if it is one that it sleeps at.
    pub(crate) fn futex(&self) -> Option<Futex> {
        /// Newer than the crate's list: `futex_wait` of futex2, whose flags have this bit for private ones.
        const FUTEX_WAIT: i64 = 455;
        const PRIVATE: u64 = 128;
        let Self::Blocked { number, arguments: [address, second, third, fourth, fifth, _] } = *self else {
            return None;
        };
        match number {
            libc::SYS_futex => {
                let flags = libc::FUTEX_PRIVATE_FLAG | libc::FUTEX_CLOCK_REALTIME;
                let operation = i32::try_from(second & 0xffff_ffff).ok()?;
                Some(Futex {
                    address,
                    operation: operation & !flags,
                    is_private: operation & libc::FUTEX_PRIVATE_FLAG != 0,
                    value: third & 0xffff_ffff,
                    is_timed: fourth != 0,
                })
            }
            // The address, the value, a mask, flags, and the deadline.
            FUTEX_WAIT => Some(Futex {
                address,
                operation: libc::FUTEX_WAIT,
                is_private: fourth & PRIVATE != 0,
                value: second,
                is_timed: fifth != 0,
            }),
            _ => None,
        }
    }

    /// Its name: `epoll_wait`.
    pub(crate) fn name(&self) -> Option<&'static str> {
        match self {
            Self::Blocked { number, .. } => {
                Some(syscalls::Sysno::new(usize::try_from(*number).ok()?)?.name())
            }
            _ => None,
        }
    }
}

/// A thread.
#[derive(Clone, Debug)]
pub(crate) struct Task {
    pub(crate) id: u32,
    pub(crate) stat: Stat,
    pub(crate) sched: Option<Sched>,
    pub(crate) call: Call,
    /// Of a blocked one.
    pub(crate) stack: Option<Blocked>,
    /// The memory around the futex that it sleeps at, from the same moment: so that its owner is of that moment.
    pub(crate) near: Option<Near>,
}

/// A copy of some of the memory of a process.
#[derive(Clone, Debug)]
pub(crate) struct Near {
    pub(crate) start: u64,
    pub(crate) bytes: [u8; Self::BYTES],
}

impl Near {
    pub(crate) const BYTES: usize = 128;

    /// Of this address, if that is in it.
    pub(crate) fn get<const N: usize>(&self, address: u64) -> Option<[u8; N]> {
        let at = usize::try_from(address.checked_sub(self.start)?).ok()?;
        self.bytes.get(at..at.checked_add(N)?)?.try_into().ok()
    }
}

impl Task {
    /// Whether it is where it was, and has not run since: by what it was in, and its times then.
    pub(crate) fn is_still(&self, (call, sched): (Call, Option<Sched>)) -> bool {
        self.call == call
            && !matches!(self.call, Call::Running | Call::Unknown)
            && self.sched.is_some()
            && self.sched == sched
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_that_go_on() {
        let call = |number| Call::Blocked { number, arguments: [1, 2, 3, 4, 5, 6] };
        #[cfg(target_arch = "x86_64")]
        let sleeps = [0x90, 0xb8, 0xe6, 0, 0, 0, 0x0f, 0x05];
        #[cfg(target_arch = "aarch64")]
        let sleeps = [0x68, 0x0e, 0x80, 0xd2, 0x01, 0, 0, 0xd4];
        assert_eq!(call(libc::SYS_restart_syscall).resumed(|| Some(sleeps)), call(libc::SYS_clock_nanosleep));
        for bytes in [None, Some([0; 8])] {
            let still = call(libc::SYS_restart_syscall);
            assert_eq!(still.resumed(|| bytes), still);
        }
        assert_eq!(call(libc::SYS_read).resumed(|| unreachable!("it is known")), call(libc::SYS_read));
    }

    #[test]
    fn system_calls() {
        let (call, registers) = Call::parse(b"202 0x7f00 0x189 0x2 0x0 0x0 0xffffffff 0x7ffe10 0x7f55\n");
        let wait = Futex {
            address: 0x7f00,
            operation: libc::FUTEX_WAIT_BITSET,
            is_private: true,
            value: 2,
            is_timed: false,
        };
        assert_eq!((call.futex(), registers), (Some(wait), Some((0x7ffe10, 0x7f55))));
        assert_eq!(call.name(), Some("futex"));
        let (call, _) = Call::parse(b"202 0x7f00 0x80 0x2 0x7ffe 0x0 0x0 0x1 0x2\n");
        assert!(call.futex().is_some_and(|futex| futex.is_timed));
        let (call, _) = Call::parse(b"232 0x4 0x7ffe 0x20 0xffffffff 0x0 0x0 0x1 0x2\n");
        assert_eq!((call.name(), call.futex()), (Some("epoll_wait"), None));
        assert_eq!(Call::parse(b"running\n"), (Call::Running, None));
        assert_eq!(Call::parse(b"-1 0x1 0x2\n"), (Call::Fault, Some((1, 2))));
        for text in [&b""[..], b"0\n", b"202 0x1", b"x y z"] {
            assert_eq!(Call::parse(text).0, Call::Unknown, "{text:?}");
        }
    }
}
