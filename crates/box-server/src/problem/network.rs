//! Failures about a box's network.

use super::{hinted, told};
use box_api::Problem;
use box_api::ProblemKind::{Engine, Refused, Usage};
use box_core::network::policy::{PolicyError, ReloadError};

pub(crate) fn policy(error: PolicyError) -> Problem {
    let (kind, hint) = match &error {
        PolicyError::Store(_) => (Engine, None),
        PolicyError::Full { .. } => (
            Refused,
            Some("`box policy set <box> --remove <entry>` makes room"),
        ),
        PolicyError::NoSuchEntry { .. } => (Refused, Some("`box policy show` lists them")),
        PolicyError::Entry { .. } => (
            Usage,
            Some(
                "entries are `host`, `*.host`, `host:port`, `address/bits` to deny, or \
                 `'GET,HEAD https://host/path/*'`",
            ),
        ),
        PolicyError::NotOpened { .. } => (
            Refused,
            Some(
                "methods and paths can be read where the box has a credential for the host \
                 (`box credential add`); else allow or deny the whole host",
            ),
        ),
        PolicyError::PrivateEverywhere => (Usage, Some("leave `--everywhere` out")),
        PolicyError::FullOfPrivate { .. } => (
            Refused,
            Some("`box policy set <box> --remove <name:port>` makes room"),
        ),
        PolicyError::PresetEverywhere => (
            Usage,
            Some("the default of new boxes is `[net] preset` in the settings"),
        ),
        PolicyError::Never(_) | PolicyError::Both { .. } | PolicyError::TooMany { .. } => {
            (Usage, None)
        }
    };
    hinted(told(kind, "policy", &error), hint)
}

pub(crate) fn reload(error: ReloadError) -> Problem {
    let kind = match &error {
        ReloadError::Settings(_) | ReloadError::Files(_) => Usage,
        ReloadError::Egress(_) | ReloadError::Ending => Engine,
    };
    let hint = match &error {
        ReloadError::Settings(error) => error.hint(),
        ReloadError::Egress(_) => {
            Some("it is told when it is back; `box status` shows it".to_owned())
        }
        ReloadError::Files(_) | ReloadError::Ending => None,
    };
    let problem = told(kind, "not-reloaded", &error);
    match hint {
        Some(hint) => problem.hinted(hint),
        None => problem,
    }
}
