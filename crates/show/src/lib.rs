//! Showing things to people: numbers with units, dates, sentences, and what all HTML pages of ours share.

pub mod date;
pub mod nearest;
pub mod page;
pub mod terminal;
pub mod text;
pub mod units;
