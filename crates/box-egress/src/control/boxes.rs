//! The boxes box-egress serves: changing what holds for one, and letting one go.

use super::Keeper;
use crate::context::Counters;
use crate::grants::Grants;
use crate::listen::Mail;
use crate::policy::Settings;
use box_api::BoxId;
use box_api::egress::policy::ENTRIES_MAX;
use box_api::egress::{Answer, HostName, Logins, Policy};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::JoinHandle;
use tokio::time::timeout;

/// A box's task answers between two packets; it is never waited for longer.
const MAIL_WAIT: Duration = Duration::from_secs(5);

/// A box, as the keeper holds it.
pub(super) struct Held {
    /// Counted up with every registration, so that news of an earlier one is told apart.
    pub(super) generation: u64,
    pub(super) settings: Arc<watch::Sender<Settings>>,
    pub(super) counters: Arc<Counters>,
    pub(super) grants: Arc<Grants>,
    pub(super) mail: mpsc::Sender<Mail>,
    pub(super) task: JoinHandle<()>,
}

impl Keeper {
    pub(super) fn held(&self, box_id: &BoxId) -> Result<&Held, String> {
        self.boxes
            .get(box_id)
            .ok_or_else(|| format!("no box {box_id} is registered"))
    }

    pub(super) fn set_policy(&mut self, box_id: &BoxId, policy: Policy) -> Result<Answer, String> {
        check_policy(&policy)?;
        if policy.logins != Logins::Placeholder {
            self.forget_logins(box_id, None);
        }
        self.held(box_id)?
            .settings
            .send_modify(|settings| settings.policy = policy);
        Ok(Answer::Done)
    }

    pub(super) fn allow_once(
        &self,
        box_id: &BoxId,
        host: HostName,
        port: u16,
    ) -> Result<Answer, String> {
        self.held(box_id)?.grants.give(host, port, Instant::now());
        Ok(Answer::Done)
    }

    /// Ends the box's task and waits until its sockets are closed.
    pub(super) async fn unregister(&mut self, box_id: &BoxId) -> Result<Answer, String> {
        self.held(box_id)?;
        if let Some(held) = self.forget(box_id) {
            held.task.abort();
            // Cancelled, as it was told to be.
            drop(held.task.await);
        }
        Ok(Answer::Done)
    }

    /// Takes the box and its placeholders out of the books.
    pub(super) fn forget(&mut self, box_id: &BoxId) -> Option<Held> {
        self.holdings
            .send_modify(|holdings| holdings.placeholders.retain(|_, owner| owner != box_id));
        let held = self.boxes.remove(box_id)?;
        self.park(*box_id, &held.settings);
        Some(held)
    }

    pub(super) async fn map(&self, box_id: &BoxId) -> Result<Answer, String> {
        let (reply, map) = oneshot::channel();
        let mail = self.held(box_id)?.mail.clone();
        let ask = async {
            mail.send(Mail::Map(reply)).await.ok()?;
            map.await.ok()
        };
        match timeout(MAIL_WAIT, ask).await {
            Ok(Some(map)) => Ok(Answer::Map { map }),
            Ok(None) | Err(_) => Err(format!("box {box_id} is gone")),
        }
    }
}

pub(super) fn check_policy(policy: &Policy) -> Result<(), String> {
    let lengths = [
        policy.preset_hosts.len(),
        policy.allow.len(),
        policy.deny.len(),
        policy.deny_networks.len(),
        policy.allow_requests.len(),
        policy.deny_requests.len(),
        policy.private.len(),
    ];
    if lengths.iter().any(|length| *length > ENTRIES_MAX) {
        return Err(format!(
            "a list of the policy has more than {ENTRIES_MAX} entries"
        ));
    }
    Ok(())
}
