//! Numbers that several commands of the simulator take.

use clap::builder::RangedU64ValueParser;

pub(super) fn repeats() -> RangedU64ValueParser<usize> {
    RangedU64ValueParser::new().range(1..=100_000)
}

pub(super) fn threads(text: &str) -> Result<u32, String> {
    text.parse().map_err(|_| String::from("write a number of threads, as in 64"))
}
