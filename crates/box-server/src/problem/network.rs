//! Failures about a box's network.

use super::{hinted, told};
use box_api::Problem;
use box_api::ProblemKind::{Engine, Refused, Usage};
use box_core::network::policy::PolicyError;

pub(crate) fn policy(error: PolicyError) -> Problem {
    let (kind, hint) = match &error {
        PolicyError::Store(_) => (Engine, None),
        PolicyError::Full { .. } => (
            Refused,
            Some("`box policy set <box> --remove <entry>` makes room"),
        ),
        PolicyError::NoSuchEntry { .. } => (Refused, Some("`box policy show` lists them")),
        PolicyError::Entry { .. } => (Usage, Some("entries are `host`, `*.host` or `host:port`")),
        PolicyError::PresetEverywhere => (
            Usage,
            Some("the default of new boxes is `[net] preset` in the settings"),
        ),
        PolicyError::Both { .. } | PolicyError::TooMany { .. } => (Usage, None),
    };
    hinted(told(kind, "policy", &error), hint)
}
