//! Recordings made by hand, read and shown; names of real programs. What a real recorder wrote is in
//! `tests/real`.

mod advice;
mod chain;
mod diff;
mod figures;
mod files;
mod html;
mod read;
mod show;
mod silence;
mod steps;
mod stuck;
mod symbols;

/// In one line, wherever lines ended.
fn words(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
