//! A stage whose target is attacked from a container in it, with every capability there.

use crate::stage::{Facts, Place, Ran, Stage, StageError};
use std::time::Duration;

/// The namespaces of such an attacker. The others are left as they are, since in new ones there is less
/// to reach.
const KINDS: &str = "mnt";

pub(crate) struct Within<'a>(pub(crate) &'a dyn Stage);

impl Stage for Within<'_> {
    fn run(&self, place: Place, command: &[&str], time_max: Duration) -> Result<Ran, StageError> {
        match place {
            Place::Target => {
                let before = [&*self.facts().program_inside, "within", KINDS];
                self.0
                    .run(place, &[&before[..], command].concat(), time_max)
            }
            Place::Sibling | Place::Outside | Place::Verb => self.0.run(place, command, time_max),
        }
    }

    fn facts(&self) -> &Facts {
        self.0.facts()
    }

    fn was_asked_upstream(&self, part: &str) -> bool {
        self.0.was_asked_upstream(part)
    }

    fn is_stopped(&self) -> bool {
        self.0.is_stopped()
    }
}
