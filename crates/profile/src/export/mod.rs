//! What a process waits for, as monitoring systems take it: counters that only rise, by lock and place.
//!
//! | module        | what it has                                                              |
//! |---------------|--------------------------------------------------------------------------|
//! | `interval`    | what a sampler has seen since it was asked last                          |
//! | `series`      | the counters, a bounded number of them                                   |
//! | `openmetrics` | their text                                                               |

mod interval;
mod openmetrics;
mod series;

pub use self::interval::Interval;
pub use self::openmetrics::{CONTENT_TYPE, Dialect, text};
pub use self::series::Metrics;
