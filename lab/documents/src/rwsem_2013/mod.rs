//! Document 002: the kernel's read-write semaphore, before and after a series of patches.
//!
//! | what | where |
//! |---|---|
//! | what was published | `rwsem_application.csv`, `rwsem_mmap_touched.csv`, `rwsem_mmap_untouched.csv` |
//! | which run is compared with what | `document.toml` |
//! | mapping in threads, as a program | [`mmap`], [`faults`] |
//! | the virus scanner, and exim | [`scan`], [`mail`]; AIM7 is the [`jobs`](crate::workloads::jobs) |
//! | mapping on the simulator | `simulated` |

pub mod faults;
pub mod mail;
pub mod mmap;
pub mod scan;
pub(crate) mod simulated;
