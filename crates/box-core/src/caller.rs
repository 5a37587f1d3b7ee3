//! Who asks, and what of it is theirs. The one place that decides.

use box_api::{Owner, Problem, ProblemKind};

/// Whoever sent a request, as the kernel reports them, never as they say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Caller {
    pub owner: Owner,
    pub tier: Tier,
}

/// What a caller may do (spec B60).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tier {
    /// Root, or the user the host runs as: sees and touches everything.
    Admin,
    /// Sees and touches what is their own.
    Restricted,
}

impl Caller {
    /// The caller behind a socket whose peer has the user id `uid`, at a host that runs as
    /// `host_uid`.
    pub fn from_peer(uid: u32, host_uid: u32) -> Self {
        let tier = if uid == 0 || uid == host_uid {
            Tier::Admin
        } else {
            Tier::Restricted
        };
        Self {
            owner: Owner::Uid(uid),
            tier,
        }
    }

    /// Whether something of `owner` may be seen and touched.
    pub fn may(&self, owner: &Owner) -> bool {
        self.tier == Tier::Admin || self.owner == *owner
    }
}

/// Whether `caller` may see and touch what belongs to `owner`.
///
/// # Errors
/// A `not-yours` problem that does not say whose it is.
pub fn authorize(caller: &Caller, owner: &Owner) -> Result<(), Problem> {
    if caller.may(owner) {
        return Ok(());
    }
    Err(Problem::new(
        ProblemKind::Refused,
        "not-yours",
        "this belongs to another user",
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn root_and_the_hosts_own_user_see_everything() {
        for uid in [0, 1000] {
            assert!(
                authorize(&Caller::from_peer(uid, 1000), &Owner::Uid(7)).is_ok(),
                "{uid}"
            );
        }
    }

    #[test]
    fn a_foreign_user_sees_only_their_own() {
        let caller = Caller::from_peer(1001, 1000);
        assert!(authorize(&caller, &Owner::Uid(1001)).is_ok());
        assert_eq!(
            authorize(&caller, &Owner::Uid(1000)).unwrap_err().slug,
            "not-yours"
        );
        assert!(authorize(&caller, &Owner::Uid(0)).is_err());
    }
}
