//! The conversation goes back with the files of its box.

use super::Step;
use crate::thread::back::GoneBack;
use crate::thread::state::{Action, Phase};
use box_api::thread::Item;

impl Step<'_> {
    /// Whatever was going on ends, the agent too: it is to read its record anew. The rows stay.
    pub(super) fn went_back(&mut self, gone: GoneBack) {
        let GoneBack {
            before,
            known_as,
            snapshot,
        } = gone;
        if let Some(turn) = &mut self.state.turn {
            turn.cancel_by_ms = Some(self.now_ms);
        }
        if self.state.phase != Phase::Absent {
            self.actions.push(Action::KillAgent {
                generation: self.state.generation,
            });
            self.agent_over(&format!("the box went back to `{snapshot}`"));
        }
        self.state.known_as = known_as;
        self.state.last = None;
        self.append(Item::WentBack { before, snapshot });
    }
}
