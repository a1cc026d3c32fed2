//! The report of `spinpark documents run`: Markdown, HTML, JSON.

pub mod html;
pub mod json;
pub mod markdown;
pub mod read;
pub mod runs;
