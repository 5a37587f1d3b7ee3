//! What befalls a thread between what is said: options, prompts that wait, work in the background.

use super::Transcript;
use crate::output::Ink;
use box_api::ThreadId;
use box_api::thread::QueuedPrompt;
use serde_json::Value;

/// How much of a prompt that waits is repeated.
const QUEUED_CHARS_MAX: usize = 60;

impl Transcript {
    /// Those that are new among the prompts that wait.
    pub(super) fn queue(&mut self, waiting: &[QueuedPrompt]) {
        let before = self.queued;
        for one in waiting.iter().filter(|one| one.queued > before) {
            let head: String = one.text.chars().take(QUEUED_CHARS_MAX).collect();
            let head = head.split_whitespace().collect::<Vec<_>>().join(" ");
            let text = format!("waits until this turn is over: {head}");
            self.remark(Ink::Dim, "·", &text);
            self.queued = self.queued.max(one.queued);
        }
    }

    pub(super) fn option_set(&mut self, option: &str, value: &str, refused: Option<&str>) {
        match refused {
            None => self.remark(Ink::Dim, "·", &format!("{option} is {value}")),
            Some(why) => {
                let text = format!("{option} is not {value}: {why}");
                self.remark(Ink::Yellow, "·", &text);
            }
        }
    }

    pub(super) fn woke(&mut self, summary: &str, said: Option<&str>) {
        self.remark(Ink::Cyan, "◍", summary);
        if let Some(said) = said {
            self.remark(Ink::Dim, " ", said);
        }
    }

    pub(super) fn forked(&mut self, from: ThreadId) {
        let text = format!("from here on a thread of its own, forked from {from}");
        self.remark(Ink::Dim, "·", &text);
    }

    pub(super) fn went_back(&mut self, snapshot: &str) {
        let text = format!("back to `{snapshot}`: what was said and done since then is undone");
        self.remark(Ink::Dim, "↶", &text);
    }

    pub(super) fn unknown(&mut self, raw: &Value) {
        let text = format!("an update this host does not know: {raw}");
        self.remark(Ink::Dim, "·", &text);
    }
}
