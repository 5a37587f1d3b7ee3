//! Boxes while they run: who touches them, what they use, when they are frozen, thawed or stopped.
//!
//! Everything that wants something of a running box goes through [`awake`], the one place where a
//! frozen box is thawed. A task looks at every running box each [`LOOK_EVERY`]: [`step`] decides
//! from what it saw, [`look`] acts.

mod copy;
mod end;
mod look;
mod runs;
mod step;
mod still;
mod touch;

pub(crate) use copy::standing_still;
pub(crate) use end::why_ended;
pub(crate) use look::freeze_after;
pub use look::{LOOK_EVERY, Watch, disk, run};
pub(crate) use runs::begin as begin_run;
pub(crate) use still::freeze_for;
pub use still::{StillError, freeze, thaw};
pub use touch::{Awake, Touches, awake, take_up, touch};
