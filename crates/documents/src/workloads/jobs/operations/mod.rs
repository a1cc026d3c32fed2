//! The operations of the mixes, by their published names; what they do is our own, with the published amounts
//! of work where there are some. Each checks its own result.

mod channels;
mod compute;
mod files;
mod kernel;

use std::hint::black_box;
use std::path::{Path, PathBuf};

use rand::SeedableRng;
use rand::rngs::Xoshiro256PlusPlus;

use self::compute::{STEPS, chain};
use self::files::{BLOCKS, DIRECT, PLAIN, SYNC};
use super::mix::Mix;
use crate::workloads::job::{JobError, expect};

/// The user that does an operation, in a directory of its own, which is the current one.
#[derive(Debug)]
pub struct Context {
    directory: PathBuf,
    /// The size of a file, in bytes.
    file_bytes: u64,
    /// Whether files are flushed where an operation says so.
    sync: bool,
    rng: Xoshiro256PlusPlus,
}

impl Context {
    /// For user `number` in `directory`.
    pub fn new(directory: &Path, number: usize, seed: u64, file_bytes: u64, sync: bool) -> Self {
        let rng = Xoshiro256PlusPlus::seed_from_u64(seed.wrapping_mul(4099).wrapping_add(number as u64));
        Self { directory: directory.to_path_buf(), file_bytes, sync, rng }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.join(name)
    }
}

/// One kind of job.
#[derive(Debug, Clone, Copy)]
pub struct Operation {
    pub name: &'static str,
    pub run: fn(&mut Context) -> Result<(), JobError>,
}

const fn operation(name: &'static str, run: fn(&mut Context) -> Result<(), JobError>) -> Operation {
    Operation { name, run }
}

pub static ALL: [Operation; 67] = [
    // Every number is exact in its type, so the end is known.
    operation("add_double", chain!(f64, 0.0, |x| x + 1.5 - 0.5, f64::from(STEPS))),
    operation("add_float", chain!(f32, 0.0, |x| x + 1.5 - 0.5, STEPS as f32)),
    operation("add_long", chain!(i64, 0, |x| x + 7 - 3, i64::from(STEPS) * 4)),
    operation("add_int", chain!(i32, 0, |x| x + 7 - 3, STEPS as i32 * 4)),
    operation("add_short", chain!(i16, 0, |x| x.wrapping_add(7).wrapping_sub(3), (STEPS * 4) as i16)),
    operation("mul_double", chain!(f64, 3.0, |x| x * 8.0 * 0.125, 3.0)),
    operation("mul_float", chain!(f32, 3.0, |x| x * 8.0 * 0.125, 3.0)),
    operation("mul_long", chain!(i64, 1, |x| x.wrapping_mul(3), 3i64.wrapping_pow(STEPS))),
    operation("mul_int", chain!(i32, 1, |x| x.wrapping_mul(3), 3i32.wrapping_pow(STEPS))),
    operation("mul_short", chain!(i16, 1, |x| x.wrapping_mul(3), 3i16.wrapping_pow(STEPS))),
    operation("div_double", chain!(f64, 3.0, |x| x / 8.0 / 0.125, 3.0)),
    operation("div_float", chain!(f32, 3.0, |x| x / 8.0 / 0.125, 3.0)),
    operation("div_long", chain!(i64, 1_000, |x| x * 12 / black_box(12), 1_000)),
    operation("div_int", chain!(i32, 1_000, |x| x * 12 / black_box(12), 1_000)),
    operation("div_short", chain!(i16, 1_000, |x| x * 12 / black_box(12), 1_000)),
    operation("sieve", compute::sieve),
    operation("array_rtns", compute::arrays),
    operation("matrix_rtns", compute::matrices),
    operation("new_raph", compute::newton),
    operation("num_rtns_1", compute::numbers),
    operation("series_1", compute::series),
    operation("trig_rtns", compute::trigonometry),
    operation("sort_rtns_1", compute::sorts),
    operation("jmp_test", compute::jumps),
    operation("string_rtns", compute::strings),
    operation("mem_rtns_1", compute::allocations),
    operation("mem_rtns_2", compute::blocks),
    operation("ram_copy", compute::memory_copies),
    operation("page_test", kernel::pages),
    operation("brk_test", kernel::breaks),
    operation("shared_memory", kernel::shared),
    operation("fork_test", kernel::forks),
    operation("exec_test", kernel::execs),
    operation("shell_rtns_1", |context| kernel::script(context, kernel::SCRIPT_1)),
    operation("shell_rtns_2", |context| kernel::script(context, kernel::SCRIPT_2)),
    operation("shell_rtns_3", |context| kernel::script(context, kernel::SCRIPT_3)),
    operation("signal_test", kernel::signals),
    operation("misc_rtns_1", kernel::questions),
    operation("creat_clo", files::creat_close),
    operation("link_test", files::links),
    operation("dir_rtns_1", files::listing),
    operation("disk_src", files::search),
    operation("pipe_cpy", channels::pipe),
    operation("fifo_test", channels::fifo),
    operation("stream_pipe", channels::stream_pair),
    operation("dgram_pipe", channels::datagram_pair),
    operation("tcp_test", channels::tcp),
    operation("udp_test", channels::udp),
    operation("disk_rr", |context| files::random_reads(context, PLAIN)),
    operation("disk_rw", |context| files::random_writes(context, PLAIN)),
    operation("disk_rd", |context| files::reads(context, PLAIN)),
    operation("disk_wrt", |context| files::writes(context, PLAIN)),
    operation("disk_cp", |context| files::copies(context, PLAIN)),
    operation("disk_brr", |context| files::random_reads(context, BLOCKS)),
    operation("disk_brw", |context| files::random_writes(context, BLOCKS)),
    operation("disk_brd", |context| files::reads(context, BLOCKS)),
    operation("disk_bwrt", |context| files::writes(context, BLOCKS)),
    operation("disk_bcp", |context| files::copies(context, BLOCKS)),
    operation("sync_disk_rw", |context| files::random_writes(context, SYNC)),
    operation("sync_disk_wrt", |context| files::writes(context, SYNC)),
    operation("sync_disk_cp", |context| files::copies(context, SYNC)),
    operation("sync_disk_update", files::updates),
    operation("disk_dio_rr", |context| files::random_reads(context, DIRECT)),
    operation("disk_dio_rw", |context| files::random_writes(context, DIRECT)),
    operation("disk_dio_rd", |context| files::reads(context, DIRECT)),
    operation("disk_dio_wrt", |context| files::writes(context, DIRECT)),
    operation("disk_dio_cp", |context| files::copies(context, DIRECT)),
];

pub fn by_name(name: &str) -> Option<&'static Operation> {
    ALL.iter().find(|operation| operation.name == name)
}

/// Checks that what `mix` needs is there: programs, a network, direct I/O in `directory`.
pub fn check(mix: &Mix, directory: &Path) -> Result<(), JobError> {
    let has = |part: &str| mix.operations().any(|(name, _)| name.contains(part));
    if has("exec_test") {
        kernel::check_program(false)?;
    }
    if has("shell_rtns") {
        kernel::check_program(true)?;
    }
    if has("tcp_test") || has("udp_test") {
        channels::check_network()?;
    }
    if has("_dio_") {
        files::check_direct(directory)?;
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
            if operation.name.contains("_dio_") && files::check_direct(place.path()).is_err() {
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
