//! What images boxes were made of within the hour, and how many spares that is a use for.

use box_api::control::Profile;
use std::collections::VecDeque;

/// How long a box that was made counts.
const COUNTS_MS: i64 = 60 * 60 * 1000;
/// Uses that are remembered; more say nothing new.
const USES_MAX: usize = 256;

#[derive(Debug, Default)]
pub(super) struct Uses(VecDeque<Use>);

#[derive(Debug)]
struct Use {
    at_ms: i64,
    digest: String,
    profile: Profile,
}

impl Uses {
    pub(super) fn add(&mut self, at_ms: i64, digest: String, profile: Profile) {
        if self.0.len() >= USES_MAX {
            self.0.pop_front();
        }
        self.0.push_back(Use {
            at_ms,
            digest,
            profile,
        });
    }

    pub(super) fn forget(&mut self, digest: &str) {
        self.0.retain(|one| one.digest != digest);
    }

    /// One fewer than boxes of each image and profile: the first says nothing of a second.
    pub(super) fn wanted(&mut self, now_ms: i64) -> usize {
        self.0.retain(|one| now_ms - one.at_ms < COUNTS_MS);
        let repeats = |(at, one): (usize, &Use)| {
            let before = self.0.iter().take(at);
            before
                .filter(|other| other.digest == one.digest && other.profile == one.profile)
                .count()
                > 0
        };
        self.0
            .iter()
            .enumerate()
            .filter(|one| repeats(*one))
            .count()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn used(uses: &mut Uses, at_ms: i64, digest: &str, profile: Profile) {
        uses.add(at_ms, digest.to_owned(), profile);
    }

    #[test]
    fn the_second_box_of_an_image_and_profile_is_what_asks_for_a_spare() {
        let mut uses = Uses::default();
        assert_eq!(uses.wanted(0), 0);
        used(&mut uses, 0, "a", Profile::Locked);
        used(&mut uses, 0, "a", Profile::Root);
        used(&mut uses, 0, "b", Profile::Locked);
        assert_eq!(uses.wanted(0), 0, "three that have nothing in common");
        used(&mut uses, 1, "a", Profile::Locked);
        assert_eq!(uses.wanted(1), 1);
        used(&mut uses, 2, "a", Profile::Locked);
        used(&mut uses, 2, "b", Profile::Locked);
        assert_eq!(uses.wanted(2), 3);
        uses.forget("a");
        assert_eq!(uses.wanted(2), 1);
    }

    #[test]
    fn what_is_an_hour_ago_says_nothing() {
        let mut uses = Uses::default();
        for at_ms in [0, 10, COUNTS_MS] {
            used(&mut uses, at_ms, "a", Profile::Locked);
        }
        assert_eq!(uses.wanted(COUNTS_MS - 1), 2);
        assert_eq!(uses.wanted(COUNTS_MS), 1);
        assert_eq!(uses.wanted(COUNTS_MS + 10), 0);
    }

    #[test]
    fn what_is_remembered_has_an_end() {
        let mut uses = Uses::default();
        for _ in 0..2 * USES_MAX {
            used(&mut uses, 0, "a", Profile::Locked);
        }
        assert_eq!(uses.wanted(0), USES_MAX - 1);
    }
}
