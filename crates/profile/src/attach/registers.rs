//! The registers of a thread that does not run: of a core dump, or of one that was stopped.
//!
//! It is in a system call if the kernel has kept its number (`orig_rax`), and blocked in it if what the call is
//! about to return says that it was interrupted: to stop threads, and to write a core, they are woken.

use super::task::Call;

/// As `NT_PRSTATUS` and `PTRACE_GETREGS` order them: `struct user_regs_struct`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Registers(pub(super) [u64; Self::NUMBER]);

impl Registers {
    pub(super) const NUMBER: usize = 27;

    const R15: usize = 0;
    const R14: usize = 1;
    const R13: usize = 2;
    const R12: usize = 3;
    const RBP: usize = 4;
    const RBX: usize = 5;
    const R10: usize = 7;
    const R9: usize = 8;
    const R8: usize = 9;
    const RAX: usize = 10;
    const RDX: usize = 12;
    const RSI: usize = 13;
    const RDI: usize = 14;
    /// `orig_rax`.
    const CALL: usize = 15;
    const RIP: usize = 16;
    const RSP: usize = 19;
    const FS_BASE: usize = 21;

    /// What the thread was in.
    pub(super) fn call(&self) -> Call {
        /// What the kernel returns within itself where a call was interrupted: it is made again, or goes on, or
        /// its caller gets the last of these.
        const INTERRUPTED: [i64; 5] = [-512, -513, -514, -516, EINTR];
        let number = self.0[Self::CALL].cast_signed();
        // It was interrupted elsewhere; or the call is over.
        if number < 0 || !INTERRUPTED.contains(&self.result()) {
            return Call::Running;
        }
        let places = [Self::RDI, Self::RSI, Self::RDX, Self::R10, Self::R8, Self::R9];
        Call::Blocked { number, arguments: places.map(|place| self.0[place]) }
    }

    fn result(&self) -> i64 {
        self.0[Self::RAX].cast_signed()
    }

    /// The end of the stack.
    pub(super) fn stack(&self) -> u64 {
        self.0[Self::RSP]
    }

    /// An address behind the instruction that led to where the thread is.
    pub(super) fn code(&self) -> u64 {
        // What a call returns to is behind the call; an instruction that was interrupted is not.
        let further = u64::from(self.call() == Call::Running);
        self.0[Self::RIP].wrapping_add(further)
    }

    /// What the thread was in, and that address. What the instructions are need not be known.
    pub(super) fn now(&self, _: impl Fn(u64) -> Option<[u8; 4]>) -> (Call, u64) {
        (self.call(), self.code())
    }

    /// The thread pointer.
    pub(super) fn thread_pointer(&self) -> Option<u64> {
        Some(self.0[Self::FS_BASE])
    }

    /// Those that functions keep for their callers, by System V's numbers.
    pub(super) fn kept(&self) -> Vec<(u16, u64)> {
        let kept = [
            (3, Self::RBX),
            (6, Self::RBP),
            (12, Self::R12),
            (13, Self::R13),
            (14, Self::R14),
            (15, Self::R15),
        ];
        kept.into_iter().map(|(number, place)| (number, self.0[place])).collect()
    }

    /// The same, so that the call is made again that is about to return `EINTR`, though no signal came; none if
    /// it is another, or may not be made twice: `close` has closed, and `connect` begun.
    pub(super) fn with_call_again(mut self) -> Option<Self> {
        /// Not in the crate's list.
        const IO_PGETEVENTS: i64 = 333;
        const AGAIN: [i64; 17] = [
            libc::SYS_epoll_wait,
            libc::SYS_epoll_pwait,
            libc::SYS_epoll_pwait2,
            libc::SYS_semop,
            libc::SYS_semtimedop,
            libc::SYS_rt_sigtimedwait,
            libc::SYS_io_getevents,
            IO_PGETEVENTS,
            libc::SYS_io_uring_enter,
            // Of inotify and sockets with a time-out; nothing was read or written yet.
            libc::SYS_read,
            libc::SYS_readv,
            libc::SYS_recvfrom,
            libc::SYS_recvmsg,
            libc::SYS_write,
            libc::SYS_sendto,
            libc::SYS_sendmsg,
            libc::SYS_accept4,
        ];
        /// Of the instruction `syscall`.
        const LENGTH: u64 = 2;
        let number = self.0[Self::CALL];
        if self.result() != EINTR || !AGAIN.contains(&number.cast_signed()) {
            return None;
        }
        self.0[Self::RAX] = number;
        self.0[Self::RIP] = self.0[Self::RIP].wrapping_sub(LENGTH);
        // No call: the kernel does nothing about it.
        self.0[Self::CALL] = u64::MAX;
        Some(self)
    }
}

const EINTR: i64 = -(libc::EINTR as i64);

#[cfg(test)]
mod tests {
    use super::*;

    fn interrupted(number: i64, result: i64) -> Registers {
        let mut registers = [0; Registers::NUMBER];
        registers[Registers::CALL] = number.cast_unsigned();
        registers[Registers::RAX] = result.cast_unsigned();
        registers[Registers::RIP] = 0x1002;
        (registers[Registers::RDI], registers[Registers::R10]) = (0x7f00, 4);
        Registers(registers)
    }

    /// As the kernel and `gcore` write them, and as a debugger finds them.
    #[test]
    fn calls_that_were_interrupted() {
        let blocked = |number| Call::Blocked { number, arguments: [0x7f00, 0, 0, 4, 0, 0] };
        for (number, result) in
            [(libc::SYS_futex, -512), (libc::SYS_clock_nanosleep, -516), (libc::SYS_epoll_wait, EINTR)]
        {
            let registers = interrupted(number, result);
            assert_eq!((registers.call(), registers.code()), (blocked(number), 0x1002));
        }
        // It was interrupted outside of calls; `abort` has sent itself a signal; it comes back from a futex.
        for (number, result) in [(-1, -512), (libc::SYS_tgkill, 0), (libc::SYS_futex, 0)] {
            let registers = interrupted(number, result);
            assert_eq!((registers.call(), registers.code()), (Call::Running, 0x1003), "{number}");
        }
    }

    #[test]
    fn calls_that_are_made_again() {
        let again = interrupted(libc::SYS_epoll_wait, EINTR).with_call_again().expect("it may be");
        assert_eq!(again.0[Registers::RAX], libc::SYS_epoll_wait.cast_unsigned());
        assert_eq!(again.0[Registers::RIP], 0x1000);
        assert_eq!(again.0[Registers::CALL], u64::MAX);
        // The kernel makes that again itself; that has closed; that has returned.
        for (number, result) in [(libc::SYS_epoll_wait, -514), (libc::SYS_close, EINTR), (libc::SYS_read, 4)]
        {
            assert_eq!(interrupted(number, result).with_call_again(), None);
        }
    }
}
