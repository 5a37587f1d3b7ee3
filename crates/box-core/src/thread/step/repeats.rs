//! What an agent says again of a conversation it took up: the journal has it already.
//!
//! Between the answer to the load and the first prompt nothing else can be said, so all of it is
//! passed over. An agent that is known to repeat late, or was just seen to, gets its prompt only
//! once it has been quiet for a moment; from the prompt on everything is new.

use super::Step;
use crate::acp::update;
use crate::agents::profile::Repeating;
use crate::thread::state::{Opening, Phase, Repeats, Sure};
use serde_json::Value;

/// An agent that repeats is done when it has been quiet for so long.
const QUIET_MS: i64 = 500;
/// Longest an agent may go on repeating: who never pauses would else do unseen what it does.
const REPEATS_MS_MAX: i64 = 30_000;

impl Step<'_> {
    /// A conversation was taken up or copied, and the agent has answered.
    pub(super) fn may_repeat(&mut self) {
        let sure = match self.state.settings.repeating {
            Repeating::BeforeItAnswers => Sure::No,
            Repeating::AfterItAnswers => Sure::Yes,
        };
        self.state.repeats = Some(Repeats {
            sure,
            quiet_at_ms: self.quiet_at_ms(),
            by_ms: self.now_ms.saturating_add(REPEATS_MS_MAX),
        });
    }

    fn quiet_at_ms(&self) -> i64 {
        self.now_ms.saturating_add(QUIET_MS)
    }

    /// Whether an update is no news.
    pub(super) fn is_repeated(&mut self, params: &Value) -> bool {
        if let Phase::Opening {
            how: Opening::Load | Opening::Fork,
            ..
        } = self.state.phase
        {
            return true;
        }
        let quiet_at_ms = self.quiet_at_ms();
        let Some(repeats) = &mut self.state.repeats else {
            return false;
        };
        let is_over = repeats.quiet_at_ms.min(repeats.by_ms) <= self.now_ms;
        if self.state.phase == Phase::Ready && is_over {
            self.state.repeats = None;
            return false;
        }
        if !update::is_said(params) {
            return false;
        }
        *repeats = Repeats {
            sure: Sure::Yes,
            quiet_at_ms,
            ..*repeats
        };
        true
    }

    /// The agent is set up: the prompt that waits is sent, as soon as nothing is repeated any more.
    pub(super) fn ready(&mut self) {
        let quiet_at_ms = self.quiet_at_ms();
        let by_ms = self.setup_by_ms();
        match &mut self.state.repeats {
            Some(repeats) if repeats.sure == Sure::Yes => {
                repeats.quiet_at_ms = quiet_at_ms;
                self.state.phase = Phase::Settling { by_ms };
            }
            Some(_) | None => {
                self.state.phase = Phase::Ready;
                self.send_prompt();
            }
        }
    }

    /// It has been quiet, or has had its time.
    pub(super) fn settled(&mut self) {
        self.state.repeats = None;
        self.ready();
    }
}
