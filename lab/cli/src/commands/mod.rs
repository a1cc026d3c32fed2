//! One file per subcommand.

pub(crate) mod bench;
pub(crate) mod calibrate;
pub(crate) mod documents;
pub(crate) mod native;
pub(crate) mod show;
pub(crate) mod sim;
pub(crate) mod worker;
