//! Who a verb is for: one box, or `all`.

use box_api::BoxName;
use box_api::control::Target;
use box_api::id::NameError;

/// A box's name, or `all` for every box of the caller.
///
/// # Errors
/// [`NameError::Name`] when it is neither.
pub(super) fn parse(text: &str) -> Result<Target, NameError> {
    if text == "all" {
        return Ok(Target::All);
    }
    BoxName::parse(text).map(Target::Box)
}

/// One box or every box, for a sentence.
pub(super) fn spoken(target: &Target) -> String {
    match target {
        Target::All => "every box".to_owned(),
        Target::Box(name) => format!("box `{name}`"),
    }
}
