//! What box-egress and the rows tell each other about logins made inside boxes.

use super::link::{Link, LinkError};
use super::supervise::End;
use super::{Egress, EgressError, Surroundings, unexpected};
use crate::credentials::logins;
use crate::store::{Durability, StoreError};
use box_api::BoxId;
use box_api::egress::{Answer, Event, LoginState, Request, Status};
use std::collections::HashMap;
use zeroize::Zeroizing;

/// [`give_key`], if a login was ever kept: a key that nothing needs is not made.
pub(super) async fn give_key_if_kept(around: &Surroundings, link: &mut Link) -> Result<(), End> {
    let has_some = around.store.read(logins::has_some);
    if has_some.await? {
        give_key(around, link).await?;
    }
    Ok(())
}

/// Whether box-egress tells of a login it has no key for.
pub(super) fn wants_key(event: &Event) -> bool {
    matches!(event, Event::LoggedIn { login, .. } if login.sealed.is_none())
}

/// Gives box-egress the key that logins are sealed with, if there is one.
pub(super) async fn give_key(around: &Surroundings, link: &mut Link) -> Result<(), LinkError> {
    let now_ms = around.clock.now_ms();
    if let Some(key) = logins::key(&around.vault, &*around.random, now_ms).await {
        super::supervise::told(link.call_with(Request::LoginKey, key, &[]).await?, "a key");
    }
    Ok(())
}

/// Writes down what box-egress holds.
pub(super) async fn keep_held(around: &Surroundings, status: &Status) -> Result<(), StoreError> {
    for held in &status.boxes {
        for login in &held.logins {
            keep(around, held.box_id, login.clone()).await?;
        }
    }
    Ok(())
}

/// Boxes that are gone and whose logins box-egress still keeps.
pub(super) async fn strangers(
    around: &Surroundings,
    status: &Status,
) -> Result<Vec<BoxId>, StoreError> {
    if status.parked.is_empty() {
        return Ok(Vec::new());
    }
    let there = around.store.read(logins::boxes_there).await?;
    let parked = status.parked.iter().copied();
    Ok(parked.filter(|id| !there.contains(id)).collect())
}

/// Keeps a login, or its renewed tokens.
pub(super) async fn keep(
    around: &Surroundings,
    id: BoxId,
    login: LoginState,
) -> Result<(), StoreError> {
    let kept = around.store.write(Durability::Prompt, move |transaction| {
        logins::keep(transaction, &id, &login)
    });
    kept.await
}

impl Egress {
    /// Wipes a box's logins.
    ///
    /// # Errors
    /// [`EgressError`]
    pub async fn forget_logins(&self, box_id: BoxId) -> Result<(), EgressError> {
        let request = Request::ForgetLogins { box_id, kind: None };
        self.ask(request).await.map(drop)
    }

    /// Hands over the key logins are sealed with.
    ///
    /// # Errors
    /// [`EgressError`]
    pub(crate) async fn login_key(&self, key: Zeroizing<Vec<u8>>) -> Result<(), EgressError> {
        self.ask_with(Request::LoginKey, key).await.map(drop)
    }

    /// Hands over logins of a running box that box-egress could not open before.
    ///
    /// # Errors
    /// [`EgressError`]
    pub(crate) async fn restore_logins(
        &self,
        box_id: BoxId,
        logins: Vec<LoginState>,
    ) -> Result<(), EgressError> {
        let request = Request::RestoreLogins { box_id, logins };
        self.ask(request).await.map(drop)
    }

    /// The kinds of the logins box-egress holds, by running box.
    ///
    /// # Errors
    /// [`EgressError`]
    pub async fn logins(&self) -> Result<HashMap<BoxId, Vec<String>>, EgressError> {
        let answer = self.ask(Request::Status).await?;
        let Answer::Status(status) = answer else {
            return Err(unexpected(&answer));
        };
        let kinds = |logins: Vec<LoginState>| logins.into_iter().map(|login| login.kind).collect();
        let boxes = status.boxes.into_iter();
        Ok(boxes
            .map(|held| (held.box_id, kinds(held.logins)))
            .collect())
    }
}
