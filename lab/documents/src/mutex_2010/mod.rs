//! Document 001: the kernel's mutex of 2010, and what spinning for a running owner does for it.
//!
//! | what | where |
//! |---|---|
//! | what was published | `mutex_headline.csv`, `mutex_acquisition_histogram.csv` |
//! | which run is compared with what | `document.toml` |
//! | its "V", as a program | [`creat`]; its file server is one of the [`jobs`](crate::workloads::jobs) |
//! | V and the file server on the simulator | `simulated` |

pub mod creat;
pub(crate) mod simulated;
