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

/// Does one job.
pub type Run = fn(&mut Context) -> Result<(), JobError>;

/// Each kind of job by its name.
pub static ALL: [(&str, Run); 67] = [
    // Every number is exact in its type, so the end is known.
    ("add_double", chain!(f64, 0.0, |x| x + 1.5 - 0.5, f64::from(STEPS))),
    ("add_float", chain!(f32, 0.0, |x| x + 1.5 - 0.5, STEPS as f32)),
    ("add_long", chain!(i64, 0, |x| x + 7 - 3, i64::from(STEPS) * 4)),
    ("add_int", chain!(i32, 0, |x| x + 7 - 3, STEPS as i32 * 4)),
    ("add_short", chain!(i16, 0, |x| x.wrapping_add(7).wrapping_sub(3), (STEPS * 4) as i16)),
    ("mul_double", chain!(f64, 3.0, |x| x * 8.0 * 0.125, 3.0)),
    ("mul_float", chain!(f32, 3.0, |x| x * 8.0 * 0.125, 3.0)),
    ("mul_long", chain!(i64, 1, |x| x.wrapping_mul(3), 3i64.wrapping_pow(STEPS))),
    ("mul_int", chain!(i32, 1, |x| x.wrapping_mul(3), 3i32.wrapping_pow(STEPS))),
    ("mul_short", chain!(i16, 1, |x| x.wrapping_mul(3), 3i16.wrapping_pow(STEPS))),
    ("div_double", chain!(f64, 3.0, |x| x / 8.0 / 0.125, 3.0)),
    ("div_float", chain!(f32, 3.0, |x| x / 8.0 / 0.125, 3.0)),
    ("div_long", chain!(i64, 1_000, |x| x * 12 / black_box(12), 1_000)),
    ("div_int", chain!(i32, 1_000, |x| x * 12 / black_box(12), 1_000)),
    ("div_short", chain!(i16, 1_000, |x| x * 12 / black_box(12), 1_000)),
    ("sieve", compute::sieve),
    ("array_rtns", compute::arrays),
    ("matrix_rtns", compute::matrices),
    ("new_raph", compute::newton),
    ("num_rtns_1", compute::numbers),
    ("series_1", compute::series),
    ("trig_rtns", compute::trigonometry),
    ("sort_rtns_1", compute::sorts),
    ("jmp_test", compute::jumps),
    ("string_rtns", compute::strings),
    ("mem_rtns_1", compute::allocations),
    ("mem_rtns_2", compute::blocks),
    ("ram_copy", compute::memory_copies),
    ("page_test", kernel::pages),
    ("brk_test", kernel::breaks),
    ("shared_memory", kernel::shared),
    ("fork_test", kernel::forks),
    ("exec_test", kernel::execs),
    ("shell_rtns_1", |context| kernel::script(context, kernel::SCRIPT_1)),
    ("shell_rtns_2", |context| kernel::script(context, kernel::SCRIPT_2)),
    ("shell_rtns_3", |context| kernel::script(context, kernel::SCRIPT_3)),
    ("signal_test", kernel::signals),
    ("misc_rtns_1", kernel::questions),
    ("creat_clo", files::creat_close),
    ("link_test", files::links),
    ("dir_rtns_1", files::listing),
    ("disk_src", files::search),
    ("pipe_cpy", channels::pipe),
    ("fifo_test", channels::fifo),
    ("stream_pipe", channels::stream_pair),
    ("dgram_pipe", channels::datagram_pair),
    ("tcp_test", channels::tcp),
    ("udp_test", channels::udp),
    ("disk_rr", |context| files::random_reads(context, PLAIN)),
    ("disk_rw", |context| files::random_writes(context, PLAIN)),
    ("disk_rd", |context| files::reads(context, PLAIN)),
    ("disk_wrt", |context| files::writes(context, PLAIN)),
    ("disk_cp", |context| files::copies(context, PLAIN)),
    ("disk_brr", |context| files::random_reads(context, BLOCKS)),
    ("disk_brw", |context| files::random_writes(context, BLOCKS)),
    ("disk_brd", |context| files::reads(context, BLOCKS)),
    ("disk_bwrt", |context| files::writes(context, BLOCKS)),
    ("disk_bcp", |context| files::copies(context, BLOCKS)),
    ("sync_disk_rw", |context| files::random_writes(context, SYNC)),
    ("sync_disk_wrt", |context| files::writes(context, SYNC)),
    ("sync_disk_cp", |context| files::copies(context, SYNC)),
    ("sync_disk_update", files::updates),
    ("disk_dio_rr", |context| files::random_reads(context, DIRECT)),
    ("disk_dio_rw", |context| files::random_writes(context, DIRECT)),
    ("disk_dio_rd", |context| files::reads(context, DIRECT)),
    ("disk_dio_wrt", |context| files::writes(context, DIRECT)),
    ("disk_dio_cp", |context| files::copies(context, DIRECT)),
];

pub fn by_name(name: &str) -> Option<Run> {
    ALL.iter().find(|(known, _)| *known == name).map(|(_, run)| *run)
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
    const OF_A_PROCESS: [&str; 4] = ["fork_test", "signal_test", "brk_test", "page_test"];

    #[test]
    fn every_operation_finds_its_result_right_and_leaves_nothing() {
        let place = tempfile::tempdir().unwrap();
        let mut context = Context::new(place.path(), 3, 1, 20_000, true);
        let has_direct = files::check_direct(place.path()).is_ok();
        for (name, run) in ALL.iter().filter(|(name, _)| !OF_A_PROCESS.contains(name)) {
            if name.contains("_dio_") && !has_direct {
                eprintln!("skipped: {name}, there is no direct I/O in {}", place.path().display());
                continue;
            }
            run(&mut context).unwrap_or_else(|trouble| panic!("{name}: {trouble}"));
            assert_eq!(std::fs::read_dir(place.path()).unwrap().count(), 0, "{name} leaves files");
        }
    }

    #[test]
    fn names_are_unique() {
        let names: std::collections::HashSet<&str> = ALL.iter().map(|(name, _)| *name).collect();
        assert_eq!(names.len(), ALL.len());
    }
}
