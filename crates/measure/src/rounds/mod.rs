//! A comparison: configurations, runs in shuffled rounds, samples, and what follows from them.
//!
//! | module            | what it has                                                           |
//! |-------------------|-----------------------------------------------------------------------|
//! | [`configuration`] | what is compared, and the environment that makes each of them         |
//! | [`blocks`]        | the order of runs                                                     |
//! | [`cells`]         | rounds over cells: what benchmarks measure                            |
//! | [`measure`]       | blocks of runs of one program, until they are done: what `compare` measures |
//! | [`launch`]        | its runs in earnest                                                   |
//! | [`worker`]        | processes of this command that measure and report                     |
//! | [`sample`]        | what is known about one run                                           |
//! | [`metric`]        | the number that the program prints itself                             |
//! | [`failure`]       | how measurements end; runs without a sample                           |
//! | [`looks`]         | a measurement that is continued while it is undecided                 |
//! | [`machine`]       | what else the machine did meanwhile                                   |
//! | [`environment`]   | where and when it was measured                                        |
//! | [`compare`]       | medians, changes and verdicts per metric                              |
//! | [`scaling`]       | one program at several numbers of threads                             |
//! | [`trials`]        | several variants of one program against the first                     |
//! | [`whatif`]        | one program with delays at a lock                                     |
//! | [`warnings`]      | what makes a result weak                                              |

pub mod blocks;
pub mod cells;
pub mod compare;
pub mod configuration;
pub mod environment;
pub mod failure;
pub mod launch;
pub mod looks;
pub mod machine;
pub mod measure;
pub mod metric;
pub mod sample;
pub mod scaling;
pub mod trials;
pub mod warnings;
pub mod whatif;
pub mod worker;
