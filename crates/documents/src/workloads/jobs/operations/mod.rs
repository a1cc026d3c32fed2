//! The operations of the mixes, by their published names; what they do is our own, with the published amounts
//! of work where there are some. Each checks its own result.

mod arithmetic;
mod directories;
mod disk;
mod memory;
mod numeric;
mod pages;
mod pipes;
mod processes;
mod signals;
mod sockets;
mod strings;
mod system;

use std::path::{Path, PathBuf};

use rand::SeedableRng;
use rand::rngs::Xoshiro256PlusPlus;

use super::mix::Mix;
use crate::workloads::job::JobError;

/// The user that does an operation, in a directory of its own, which is the current one.
#[derive(Debug)]
pub struct Context {
    /// The user's directory.
    directory: PathBuf,
    /// The size of a file, in bytes.
    file_bytes: u64,
    /// Whether files are flushed where an operation says so.
    sync: bool,
    /// For what is random.
    rng: Xoshiro256PlusPlus,
}

impl Context {
    /// For user `number` in `directory`.
    #[must_use]
    pub fn new(directory: &Path, number: usize, seed: u64, file_bytes: u64, sync: bool) -> Self {
        let rng = Xoshiro256PlusPlus::seed_from_u64(seed.wrapping_mul(4099).wrapping_add(number as u64));
        Self { directory: directory.to_path_buf(), file_bytes, sync, rng }
    }

    /// A path in the user's directory.
    fn path(&self, name: &str) -> PathBuf {
        self.directory.join(name)
    }
}

/// One kind of job.
#[derive(Debug, Clone, Copy)]
pub struct Operation {
    /// Its published name.
    pub name: &'static str,
    /// Does it once.
    pub run: fn(&mut Context) -> Result<(), JobError>,
}

const fn operation(name: &'static str, run: fn(&mut Context) -> Result<(), JobError>) -> Operation {
    Operation { name, run }
}

/// All of them.
pub static ALL: [Operation; 67] = [
    operation("add_double", arithmetic::add_double),
    operation("add_float", arithmetic::add_float),
    operation("add_long", arithmetic::add_long),
    operation("add_int", arithmetic::add_int),
    operation("add_short", arithmetic::add_short),
    operation("mul_double", arithmetic::mul_double),
    operation("mul_float", arithmetic::mul_float),
    operation("mul_long", arithmetic::mul_long),
    operation("mul_int", arithmetic::mul_int),
    operation("mul_short", arithmetic::mul_short),
    operation("div_double", arithmetic::div_double),
    operation("div_float", arithmetic::div_float),
    operation("div_long", arithmetic::div_long),
    operation("div_int", arithmetic::div_int),
    operation("div_short", arithmetic::div_short),
    operation("sieve", numeric::sieve),
    operation("array_rtns", numeric::arrays),
    operation("matrix_rtns", numeric::matrices),
    operation("new_raph", numeric::newton),
    operation("num_rtns_1", numeric::numbers),
    operation("series_1", numeric::series),
    operation("trig_rtns", numeric::trigonometry),
    operation("sort_rtns_1", numeric::sorts),
    operation("jmp_test", numeric::jumps),
    operation("string_rtns", strings::strings),
    operation("mem_rtns_1", memory::allocations),
    operation("mem_rtns_2", memory::blocks),
    operation("ram_copy", memory::copies),
    operation("page_test", pages::pages),
    operation("brk_test", pages::breaks),
    operation("shared_memory", pages::shared),
    operation("fork_test", processes::forks),
    operation("exec_test", processes::execs),
    operation("shell_rtns_1", processes::shell_1),
    operation("shell_rtns_2", processes::shell_2),
    operation("shell_rtns_3", processes::shell_3),
    operation("signal_test", signals::signals),
    operation("misc_rtns_1", system::questions),
    operation("creat_clo", directories::creat_close),
    operation("link_test", directories::links),
    operation("dir_rtns_1", directories::listing),
    operation("disk_src", directories::search),
    operation("pipe_cpy", pipes::pipe),
    operation("fifo_test", pipes::fifo),
    operation("stream_pipe", pipes::stream_pair),
    operation("dgram_pipe", pipes::datagram_pair),
    operation("tcp_test", sockets::tcp),
    operation("udp_test", sockets::udp),
    operation("disk_rr", |context| disk::random_reads(context, disk::PLAIN)),
    operation("disk_rw", |context| disk::random_writes(context, disk::PLAIN)),
    operation("disk_rd", |context| disk::reads(context, disk::PLAIN)),
    operation("disk_wrt", |context| disk::writes(context, disk::PLAIN)),
    operation("disk_cp", |context| disk::copies(context, disk::PLAIN)),
    operation("disk_brr", |context| disk::random_reads(context, disk::BLOCKS)),
    operation("disk_brw", |context| disk::random_writes(context, disk::BLOCKS)),
    operation("disk_brd", |context| disk::reads(context, disk::BLOCKS)),
    operation("disk_bwrt", |context| disk::writes(context, disk::BLOCKS)),
    operation("disk_bcp", |context| disk::copies(context, disk::BLOCKS)),
    operation("sync_disk_rw", |context| disk::random_writes(context, disk::SYNC)),
    operation("sync_disk_wrt", |context| disk::writes(context, disk::SYNC)),
    operation("sync_disk_cp", |context| disk::copies(context, disk::SYNC)),
    operation("sync_disk_update", disk::updates),
    operation("disk_dio_rr", |context| disk::random_reads(context, disk::DIRECT)),
    operation("disk_dio_rw", |context| disk::random_writes(context, disk::DIRECT)),
    operation("disk_dio_rd", |context| disk::reads(context, disk::DIRECT)),
    operation("disk_dio_wrt", |context| disk::writes(context, disk::DIRECT)),
    operation("disk_dio_cp", |context| disk::copies(context, disk::DIRECT)),
];

/// The operation of that name.
#[must_use]
pub fn by_name(name: &str) -> Option<&'static Operation> {
    ALL.iter().find(|operation| operation.name == name)
}

/// Checks that what `mix` needs is there: programs, a network, direct I/O in `directory`.
///
/// # Errors
///
/// The first thing that is missing, with what to do.
pub fn check(mix: &Mix, directory: &Path) -> Result<(), JobError> {
    let has = |part: &str| mix.operations().any(|(name, _)| name.contains(part));
    if has("exec_test") {
        processes::check(processes::TRUE)?;
    }
    if has("shell_rtns") {
        processes::check(processes::SHELL)?;
    }
    if has("tcp_test") || has("udp_test") {
        sockets::check()?;
    }
    if has("_dio_") {
        disk::check_direct(directory)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Operations that fork, or change what belongs to the whole process, are tested through the command.
    fn is_for_a_process_of_its_own(operation: &Operation) -> bool {
        matches!(operation.name, "fork_test" | "signal_test" | "brk_test" | "page_test")
    }

    #[test]
    fn every_operation_finds_its_result_right_and_leaves_nothing() {
        let place = tempfile::tempdir().unwrap();
        let mut context = Context::new(place.path(), 3, 1, 20_000, true);
        for operation in ALL.iter().filter(|operation| !is_for_a_process_of_its_own(operation)) {
            if operation.name.contains("_dio_") && disk::check_direct(place.path()).is_err() {
                eprintln!(
                    "skipped: {}, there is no direct I/O in {}",
                    operation.name,
                    place.path().display()
                );
                continue;
            }
            (operation.run)(&mut context).unwrap_or_else(|trouble| panic!("{}: {trouble}", operation.name));
            assert_eq!(
                std::fs::read_dir(place.path()).unwrap().count(),
                0,
                "{} leaves files",
                operation.name
            );
        }
    }

    #[test]
    fn names_are_unique() {
        let mut names: Vec<&str> = ALL.iter().map(|operation| operation.name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), ALL.len());
    }
}
