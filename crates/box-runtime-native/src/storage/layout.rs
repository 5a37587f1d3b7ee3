//! Names on disk; see `crate::folders`.

/// Parts of a box's folder that are its files.
pub(crate) const WORKSPACE: &str = "workspace";
pub(crate) const HOME: &str = "home";
/// Changes to the root of a `root` box.
pub(crate) const UPPER: &str = "upper";
/// The overlay's own; never copied.
pub(crate) const WORK: &str = "work";

/// What a copy of a box holds.
pub(crate) const COPIED: [&str; 3] = [WORKSPACE, HOME, UPPER];
/// The id on disk of what the overlay makes for itself: the first that nobody in a box has.
pub(crate) const OVERLAY_ID: u32 = crate::launch::IDS;
