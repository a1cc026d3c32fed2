//! One file per subcommand.

pub(crate) mod compare;
pub(crate) mod demo;
pub(crate) mod export;
pub(crate) mod gate;
pub(crate) mod libraries;
pub(crate) mod prepare;
pub(crate) mod profile;
pub(crate) mod run;
pub(crate) mod tune;
pub(crate) mod whatif;
pub(crate) mod why;
