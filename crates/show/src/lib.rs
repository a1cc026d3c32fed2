//! Showing things to people: numbers with units, dates, and what all HTML pages of ours share.

pub mod date;
pub mod page;
pub mod units;
