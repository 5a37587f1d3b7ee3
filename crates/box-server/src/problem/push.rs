//! Why a browser is not told.

use super::store;
use box_api::{Problem, ProblemKind};
use box_core::push::PushError;

pub(crate) fn push(error: PushError) -> Problem {
    let (kind, slug) = match &error {
        PushError::Endpoint(_) | PushError::Keys(_) | PushError::Origin => {
            (ProblemKind::Usage, "push-subscription")
        }
        PushError::Unknown(_) => (ProblemKind::Failed, "device-not-found"),
        PushError::NotPaired => (ProblemKind::Refused, "not-paired"),
        PushError::Key(_) | PushError::Vault(_) => (ProblemKind::Failed, "push-key"),
        PushError::Store(_) => (ProblemKind::Failed, "store"),
    };
    let locked = matches!(error, PushError::Vault(_));
    if let PushError::Store(error) = error {
        return store(error);
    }
    let problem = Problem::new(kind, slug, error.to_string());
    if locked {
        problem.hinted("`box credential unlock` on the machine opens what is sealed")
    } else {
        problem
    }
}
