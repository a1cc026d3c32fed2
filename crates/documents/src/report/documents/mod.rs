//! The report of `spinpark documents run`: Markdown, HTML, JSON.
//!
//! | what | where |
//! |---|---|
//! | a published number's counterpart | [`counterpart`] |
//! | all that a run gave | [`runs`] |
//! | the report, before it is Markdown or HTML | [`page`] |
//! | in its forms | [`markdown`], [`html`], [`json`] |
//! | from its JSON | [`read`] |

pub mod counterpart;
pub mod html;
pub mod json;
pub mod markdown;
pub mod page;
pub mod read;
pub mod runs;
