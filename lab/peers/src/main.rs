//! The worker of `spinpark-lab bench locks` for locks that are not Rust. It is a program of its own, so that the
//! command needs none of their libraries.
//!
//! `--list` prints its locks; otherwise its argument is a request, as for the command's own workers.

mod foreign;
mod listing;

use std::env;
use std::process::ExitCode;

use anyhow::Context;
use spinpark_lockbench::locks::adapters::Adapter;
use spinpark_lockbench::locks::worker;

fn main() -> ExitCode {
    match run() {
        Ok(line) => {
            println!("{line}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("spinpark-peers-worker: {error}");
            ExitCode::from(2)
        }
    }
}

fn run() -> anyhow::Result<String> {
    let argument = env::args().nth(1);
    let argument = argument
        .context("this program is started by `spinpark-lab bench locks`; `--list` lists its locks")?;
    if argument == "--list" {
        return Ok(serde_json::to_string(&listing::listing()?)?);
    }
    let built = foreign::peers().into_iter().filter_map(|(_, found)| Some(found.ok()?.0));
    let adapters: Vec<Adapter> = built.collect();
    Ok(serde_json::to_string(&worker::run(&adapters, &argument)?)?)
}
