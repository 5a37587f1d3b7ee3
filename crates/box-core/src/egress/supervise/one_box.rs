//! One box, as box-egress should hold it: handed over with its sockets, or adjusted to its row.

use super::{REOPEN_DEADLINE, Supervisor, told};
use crate::boxes::{self, BoxRecord};
use crate::egress::link::{Link, LinkError, descriptors};
use crate::egress::supervise::End;
use crate::egress::wanted::{self, Wanted};
use box_api::BoxId;
use box_api::control::BoxState;
use box_api::egress::{Answer, BoxState as Held, Listeners, Registration, Request};
use box_runtime::{BoxSockets, Transparent};
use tokio::time::timeout;
use zeroize::Zeroizing;

impl Supervisor {
    /// Makes what box-egress holds of these boxes equal to what the rows say now.
    pub(super) async fn retell(&mut self, link: &mut Link, ids: &[BoxId]) -> Result<(), End> {
        let Answer::Status(status) = link.call(Request::Status).await? else {
            return Err(LinkError::Confused.into());
        };
        for id in ids {
            let Some(record) = wanted::current(&self.around, *id).await? else {
                continue;
            };
            match status.boxes.iter().find(|held| held.box_id == *id) {
                Some(held) => self.adjust(link, &record, held).await?,
                None if record.state == BoxState::Running => {
                    self.admit(link, &record, None).await?;
                }
                // Whoever starts it hands it over, with its sockets.
                None => {}
            }
        }
        Ok(())
    }

    /// A box both sides know: its policy and placeholders as the rows have them.
    pub(super) async fn adjust(
        &self,
        link: &mut Link,
        record: &BoxRecord,
        held: &Held,
    ) -> Result<(), End> {
        let box_id = record.id;
        let Wanted {
            policy, bindings, ..
        } = wanted::of_box(&self.around, record, &self.looked).await?;
        if policy != held.policy {
            told(
                link.call(Request::SetPolicy { box_id, policy }).await?,
                "a policy",
            );
        }
        for binding in &held.bindings {
            // One that changed is replaced below, in one step.
            if !bindings
                .iter()
                .any(|one| one.placeholder == binding.placeholder)
            {
                let placeholder = binding.placeholder.clone();
                told(
                    link.call(Request::Unbind {
                        box_id,
                        placeholder,
                    })
                    .await?,
                    "a placeholder",
                );
            }
        }
        for binding in bindings {
            if !held.bindings.contains(&binding) {
                told(
                    link.call(Request::Bind { box_id, binding }).await?,
                    "a placeholder",
                );
            }
        }
        Ok(())
    }

    /// Registers a box, with the sockets given, those kept for it, or new ones.
    pub(super) async fn admit(
        &mut self,
        link: &mut Link,
        record: &BoxRecord,
        sockets: Option<BoxSockets>,
    ) -> Result<(), End> {
        let kept = self.waiting.remove(&record.id).map(|(_, sockets)| sockets);
        let sockets = match sockets.or(kept) {
            Some(sockets) => sockets,
            None => match self.reopen(record).await {
                Some(sockets) => sockets,
                None => return Ok(()),
            },
        };
        // As its row is now: it can be changed between its start and this.
        let now = wanted::current(&self.around, record.id).await?;
        let record = now.as_ref().unwrap_or(record);
        let Wanted {
            policy,
            bindings,
            map,
            logins,
        } = wanted::of_box(&self.around, record, &self.looked).await?;
        let listeners = match sockets.transparent {
            Transparent::AllPorts(_) => Listeners::AllPorts,
            Transparent::Two { .. } => Listeners::Two,
        };
        let registration = Registration {
            box_id: record.id,
            policy,
            bindings,
            map,
            logins,
            listeners,
        };
        let request = Request::Register(registration);
        match link
            .call_with(request, Zeroizing::default(), &descriptors(&sockets))
            .await
        {
            Ok(answer) => {
                told(answer, "a box");
                Ok(())
            }
            Err(error) => {
                self.waiting.insert(record.id, (record.clone(), sockets));
                Err(error.into())
            }
        }
    }

    async fn reopen(&self, record: &BoxRecord) -> Option<BoxSockets> {
        let runtime = self.around.runtimes.named(&record.runtime)?;
        match timeout(REOPEN_DEADLINE, runtime.sockets()?.reopen(&record.id)).await {
            Ok(Ok(sockets)) => Some(sockets),
            Ok(Err(error)) => {
                let why = boxes::reason(&error);
                tracing::warn!(id = %record.id, why, "a box has no way out: no sockets");
                None
            }
            Err(_) => {
                tracing::warn!(id = %record.id, "a box has no way out: its engine does not answer");
                None
            }
        }
    }
}
