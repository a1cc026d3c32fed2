//! The registers of a thread that does not run, in a core dump.
//!
//! Before Linux stops a thread in a system call, or writes a core, it puts the thread back in front of the call, so
//! that the call is made again: the next instruction is `svc`, and all arguments are there. A few calls are not
//! made again, and are about to return `EINTR`: their first argument is lost. The kernel does not tell debuggers,
//! either: so threads are not stopped on this architecture, since such a call could not be made again as it was.

use super::task::Call;

/// As `NT_PRSTATUS` orders them: `struct user_pt_regs`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Registers(pub(super) [u64; Self::NUMBER]);

impl Registers {
    pub(super) const NUMBER: usize = 34;

    /// The number of a system call.
    const CALL: usize = 8;
    /// The first of those that functions keep for their callers; the frame pointer and the return address follow.
    const FIRST_KEPT: u16 = 19;
    const RETURN: u16 = 30;
    const SP: usize = 31;
    const PC: usize = 32;

    /// What the thread was in, and an address behind the instruction that led to where it is. `code`: the
    /// instruction at an address, if that is known.
    pub(super) fn now(&self, code: impl Fn(u64) -> Option<[u8; 4]>) -> (Call, u64) {
        const SVC: [u8; 4] = 0xd400_0001_u32.to_le_bytes();
        const LENGTH: u64 = 4;
        let next = self.0[Self::PC];
        let [first, others @ ..] = [0, 1, 2, 3, 4, 5].map(|argument| self.0[argument]);
        let blocked = |first: u64| {
            let [b, c, d, e, f] = others;
            Call::Blocked { number: self.0[Self::CALL].cast_signed(), arguments: [first, b, c, d, e, f] }
        };
        if code(next) == Some(SVC) {
            return (blocked(first), next.wrapping_add(LENGTH));
        }
        let is_interrupted = first.cast_signed() == -i64::from(libc::EINTR);
        if is_interrupted && code(next.wrapping_sub(LENGTH)) == Some(SVC) {
            return (blocked(0), next);
        }
        (Call::Running, next.wrapping_add(1))
    }

    /// The end of the stack.
    pub(super) fn stack(&self) -> u64 {
        self.0[Self::SP]
    }

    /// The thread pointer, which is not among them.
    pub(super) fn thread_pointer(&self) -> Option<u64> {
        None
    }

    /// Those that functions keep for their callers, by DWARF's numbers, and the return address.
    pub(super) fn kept(&self) -> Vec<(u16, u64)> {
        (Self::FIRST_KEPT..=Self::RETURN).map(|number| (number, self.0[usize::from(number)])).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn registers(number: i64, first: i64) -> Registers {
        let mut registers = [0; Registers::NUMBER];
        registers[Registers::CALL] = number.cast_unsigned();
        registers[0] = first.cast_unsigned();
        (registers[3], registers[Registers::PC]) = (4, 0x1000);
        Registers(registers)
    }

    /// `svc #0` at an address, and `nop` elsewhere.
    fn call_at(place: u64) -> impl Fn(u64) -> Option<[u8; 4]> {
        move |at| Some(if at == place { [1, 0, 0, 0xd4] } else { [0x1f, 0x20, 3, 0xd5] })
    }

    #[test]
    fn calls_that_were_interrupted() {
        let blocked = |number, first| Call::Blocked { number, arguments: [first, 0, 0, 4, 0, 0] };
        let futex = registers(libc::SYS_futex, 0x7f00);
        assert_eq!(futex.now(call_at(0x1000)), (blocked(libc::SYS_futex, 0x7f00), 0x1004));
        let poll = registers(libc::SYS_epoll_pwait, -i64::from(libc::EINTR));
        assert_eq!(poll.now(call_at(0xffc)), (blocked(libc::SYS_epoll_pwait, 0), 0x1000));
        // It comes back from a futex; its code is not known.
        let back = registers(libc::SYS_futex, 0);
        assert_eq!(back.now(call_at(0xffc)), (Call::Running, 0x1001));
        assert_eq!(futex.now(|_| None), (Call::Running, 0x1001));
    }
}
