//! `StopHost`: ends the host. Boxes, their agents and box-egress go on.

use box_api::control::Outcome;

/// There is nothing to do before the answer; the host ends once it is sent.
pub(super) fn handle() -> Outcome {
    Outcome::Nothing
}
