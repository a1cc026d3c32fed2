//! The report of `spinpark bench documents`: Markdown, HTML, JSON.

pub mod html;
pub mod json;
pub mod markdown;
pub mod read;
pub mod runs;
