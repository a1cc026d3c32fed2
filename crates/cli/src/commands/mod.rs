//! One file per subcommand.

pub(crate) mod bench;
pub(crate) mod calibrate;
pub(crate) mod compare;
pub(crate) mod demo;
pub(crate) mod documentation;
pub(crate) mod documents;
pub(crate) mod libraries;
pub(crate) mod native;
pub(crate) mod prepare;
pub(crate) mod profile;
pub(crate) mod run;
pub(crate) mod show;
pub(crate) mod sim;
pub(crate) mod worker;
