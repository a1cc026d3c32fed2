//! The command line of `spinpark libraries`.

use std::path::PathBuf;

use clap::Args;

/// Show which libraries are preloaded, and from where
///
/// The command carries both libraries. It uses the files that SPINPARK_PRELOAD and SPINPARK_PROFILER name.
/// Otherwise it uses files with the carried content in its own directory, in ../lib or in ../lib/spinpark.
/// Otherwise it writes what it carries to a directory that only the user can read: in $XDG_CACHE_HOME or
/// ~/.cache, $XDG_RUNTIME_DIR, $TMPDIR, /tmp.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  spinpark libraries                       which files are used, and why others are not
  spinpark libraries --to /opt/spinpark    copies both libraries there")]
pub(crate) struct Libraries {
    /// Copy the carried libraries to this directory, for SPINPARK_PRELOAD and SPINPARK_PROFILER, or an
    /// LD_PRELOAD of your own
    #[arg(long, value_name = "DIR")]
    pub(crate) to: Option<PathBuf>,
}
