//! How far the simulator is from the machine at hand: the same locks under the same loads, measured and
//! simulated.
//!
//! | step | where |
//! |---|---|
//! | what is compared | [`mod@cases`] |
//! | one run here, in a process of its own, bound to its CPUs | [`native`] |
//! | the same run simulated | [`simulated`] |
//! | how far apart they are | [`result`] |
//!
//! The machine file knows primitives only, and no lock: what the simulator says is a prediction.

pub mod cases;
pub mod native;
pub mod result;
pub mod simulated;

pub use self::cases::{Case, cases};
pub use self::native::Native;
pub use self::result::{Compared, MEDIAN_BOUND, Summary, WORST_BOUND};
pub use self::simulated::{Effort, simulate};
