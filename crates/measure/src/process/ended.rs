//! How a process ended, in words, and the last that it printed.

use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;

/// More of a line is no help.
const LONGEST: usize = 400;

/// The last lines of a program's output, for an error message.
#[derive(Debug)]
pub struct Tail(String);

impl Tail {
    /// The last ten lines of `output`.
    #[must_use]
    pub fn of(output: &str) -> Self {
        const LINES: usize = 10;
        let lines: Vec<&str> = output.trim_end().lines().collect();
        Self(lines[lines.len().saturating_sub(LINES)..].join("\n"))
    }
}

impl std::fmt::Display for Tail {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.0.is_empty() {
            return write!(f, "\nIt printed nothing.");
        }
        write!(f, "\nThe end of its output:")?;
        self.0
            .lines()
            .try_for_each(|line| write!(f, "\n  | {}", line.chars().take(LONGEST).collect::<String>()))
    }
}

/// "exited with status 3", "was killed by SIGSEGV (segmentation fault)".
#[must_use]
pub fn in_words(status: ExitStatus) -> String {
    let Some(signal) = status.signal() else {
        let code = status.code().unwrap_or_default();
        return format!("exited with status {code}");
    };
    let name = signal_name(signal).map_or_else(|| format!("signal {signal}"), str::to_owned);
    let core = if status.core_dumped() { ", core dumped" } else { "" };
    format!("was killed by {name}{core}")
}

/// The name of a signal that kills programs.
fn signal_name(signal: i32) -> Option<&'static str> {
    Some(match signal {
        libc::SIGHUP => "SIGHUP",
        libc::SIGINT => "SIGINT",
        libc::SIGQUIT => "SIGQUIT",
        libc::SIGILL => "SIGILL (illegal instruction)",
        libc::SIGTRAP => "SIGTRAP",
        libc::SIGABRT => "SIGABRT (abort)",
        libc::SIGBUS => "SIGBUS (bus error)",
        libc::SIGFPE => "SIGFPE (arithmetic error)",
        libc::SIGKILL => "SIGKILL (perhaps out of memory)",
        libc::SIGUSR1 => "SIGUSR1",
        libc::SIGSEGV => "SIGSEGV (segmentation fault)",
        libc::SIGUSR2 => "SIGUSR2",
        libc::SIGPIPE => "SIGPIPE",
        libc::SIGALRM => "SIGALRM",
        libc::SIGTERM => "SIGTERM",
        libc::SIGXCPU => "SIGXCPU (CPU time limit)",
        libc::SIGXFSZ => "SIGXFSZ (file size limit)",
        libc::SIGSYS => "SIGSYS (system call not allowed)",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn endings_in_words() {
        assert_eq!(in_words(ExitStatus::from_raw(3 << 8)), "exited with status 3");
        assert_eq!(
            in_words(ExitStatus::from_raw(libc::SIGSEGV)),
            "was killed by SIGSEGV (segmentation fault)"
        );
        assert_eq!(
            in_words(ExitStatus::from_raw(libc::SIGABRT | 0x80)),
            "was killed by SIGABRT (abort), core dumped"
        );
        assert_eq!(in_words(ExitStatus::from_raw(40)), "was killed by signal 40");
    }

    #[test]
    fn the_tail_is_ten_lines() {
        let output: String = (0..20).map(|line| format!("line {line}\n")).collect();
        let tail = Tail::of(&output).to_string();
        assert!(tail.contains("| line 10\n") && tail.ends_with("| line 19") && !tail.contains("line 9\n"));
        assert_eq!(Tail::of("").to_string(), "\nIt printed nothing.");
    }
}
