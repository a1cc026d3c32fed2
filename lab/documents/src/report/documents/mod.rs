//! The report of `spinpark-lab documents run`.
//!
//! | what | where |
//! |---|---|
//! | the report, before it is Markdown or HTML | [`page`] |
//! | Markdown, HTML | [`forms`] |
//! | JSON, and the report from it | [`json`] |

pub mod forms;
pub mod json;
pub mod page;
