//! The nine patches of document 002, each a switch.
//!
//! | patch | what it changes                                                          | switch                          |
//! |-------|--------------------------------------------------------------------------|---------------------------------|
//! | 1     | a try for writing reads the count, and does not exchange in vain         | [`Series::READS_BEFORE_TRY`]    |
//! | 2, 3  | labels that are not needed: nothing at run time                          | –                               |
//! | 4     | letting readers in reads the count, and does not add in vain             | [`Series::READS_BEFORE_GRANT`]  |
//! | 5     | moves the MCS lock to a file of its own: nothing at run time             | [`crate::mcs`]                  |
//! | 6     | the MCS lock without a needless store                                    | [`Series::Mcs`]                 |
//! | 7     | the barriers of the MCS lock                                             | [`Series::Mcs`]                 |
//! | 8     | a writer spins on the owner, in line, before it queues                   | [`Series::SPINS`]               |
//! | 9     | one release at a time wakes                                              | [`Series::ONE_WAKER`]           |
//!
//! Without patch 8 the MCS lock is unused, so 6 and 7 change nothing then.
//!
//! Two more switches are not patches, but readings. Patch 8 as sent clears the owner after the release; patch
//! 9 as sent lets the woken writer look at the count without `wait_lock`, and loses wake-ups
//! (`notes/verification.md`). The combinations here have the right reading; [`AsSent`] has the others.

use core::marker::PhantomData;

use crate::mcs;

/// A choice of patches.
pub trait Series: Send + Sync + 'static {
    /// Patch 1.
    const READS_BEFORE_TRY: bool;
    /// Patch 4.
    const READS_BEFORE_GRANT: bool;
    /// Patches 6 and 7.
    type Mcs: mcs::Shape;
    /// Patch 8.
    const SPINS: bool;
    /// Patch 9.
    const ONE_WAKER: bool;
    /// Whether a writer that was woken looks at the count under `wait_lock` only. What the comment in patch 9
    /// takes for granted, and needs; 3.12 looks without it first, which saves the lock if it is too late.
    const LOOKS_UNDER_LOCK: bool = Self::ONE_WAKER;
    /// Whether the owner is cleared before the release, so that it never wipes out the next one.
    const CLEARS_OWNER_FIRST: bool = true;
}

/// Patches 1, 4, 6, 7, 8 and 9, one by one.
#[derive(Debug)]
pub enum Patches<
    const P1: bool,
    const P4: bool,
    const P6: bool,
    const P7: bool,
    const P8: bool,
    const P9: bool,
> {}

impl<const P1: bool, const P4: bool, const P6: bool, const P7: bool, const P8: bool, const P9: bool> Series
    for Patches<P1, P4, P6, P7, P8, P9>
{
    const READS_BEFORE_TRY: bool = P1;
    const READS_BEFORE_GRANT: bool = P4;
    type Mcs = mcs::Patches<P6, P7, P7>;
    const SPINS: bool = P8;
    const ONE_WAKER: bool = P9;
}

/// Linux 3.12.
pub type Vanilla = Patches<false, false, false, false, false, false>;

/// All but patch 8: the document's "without optspin".
pub type NoSpin = Patches<true, true, true, true, false, true>;

/// All.
pub type Full = Patches<true, true, true, true, true, true>;

/// `S` with the readings of patches 8 and 9 as they were sent. It may hang, and names no owner at times.
#[derive(Debug)]
pub struct AsSent<S, const EIGHT: bool, const NINE: bool>(PhantomData<S>);

impl<S: Series, const EIGHT: bool, const NINE: bool> Series for AsSent<S, EIGHT, NINE> {
    const READS_BEFORE_TRY: bool = S::READS_BEFORE_TRY;
    const READS_BEFORE_GRANT: bool = S::READS_BEFORE_GRANT;
    type Mcs = S::Mcs;
    const SPINS: bool = S::SPINS;
    const ONE_WAKER: bool = S::ONE_WAKER;
    const LOOKS_UNDER_LOCK: bool = S::LOOKS_UNDER_LOCK && !NINE;
    const CLEARS_OWNER_FIRST: bool = S::CLEARS_OWNER_FIRST && !EIGHT;
}
