//! Logins made inside boxes, as the host sees to them: sealed with its key, kept while a box is
//! stopped, wiped when it says so.

use super::Keeper;
use crate::intercept::login::book::BoxLogins;
use crate::intercept::login::seal::Key;
use crate::policy::Settings;
use box_api::BoxId;
use box_api::egress::{Answer, Event, LoginState, Logins};
use std::collections::HashMap;
use std::sync::Arc;
use tokio::sync::watch;
use zeroize::Zeroizing;

/// Stopped boxes whose logins are kept; those of one more are not.
const PARKED_MAX: usize = 4096;

/// Logins of boxes that are not registered.
#[derive(Default)]
pub(super) struct Parked(HashMap<BoxId, BoxLogins>);

impl Parked {
    pub(super) fn ids(&self) -> Vec<BoxId> {
        self.0.keys().copied().collect()
    }
}

impl Keeper {
    pub(super) fn login_key(&mut self, secret: &Zeroizing<Vec<u8>>) -> Result<Answer, String> {
        let key = Key::new(secret).ok_or("a key for logins has 32 bytes")?;
        let key = Arc::new(key);
        self.holdings
            .send_modify(|holdings| holdings.login_key = Some(Arc::clone(&key)));
        // Those that were made before there was a key are told again, sealed.
        for (box_id, held) in &self.boxes {
            let mut sealed = Vec::new();
            held.settings
                .send_modify(|settings| sealed = settings.logins.seal(box_id, &key));
            for login in sealed {
                let box_id = *box_id;
                self.events.emit(Event::LoggedIn { box_id, login });
            }
        }
        Ok(Answer::Done)
    }

    /// Wipes logins of a box, whether it runs or not.
    pub(super) fn forget_logins(&mut self, box_id: &BoxId, kind: Option<&str>) {
        let mut gone = Vec::new();
        if let Some(held) = self.boxes.get(box_id) {
            held.settings
                .send_modify(|settings| gone = settings.logins.forget(kind));
        }
        if let Some(parked) = self.parked.0.get_mut(box_id) {
            gone.extend(parked.forget(kind));
            if parked.is_empty() {
                self.parked.0.remove(box_id);
            }
        }
        self.holdings.send_modify(|holdings| {
            for placeholder in gone {
                holdings.placeholders.remove(&placeholder);
            }
        });
    }

    /// Keeps the logins of a box that is about to be forgotten: a stopped box starts again.
    pub(super) fn park(&mut self, box_id: BoxId, settings: &watch::Sender<Settings>) {
        let mut logins = BoxLogins::default();
        settings.send_modify(|settings| std::mem::swap(&mut logins, &mut settings.logins));
        if logins.is_empty() || self.parked.0.len() >= PARKED_MAX {
            return;
        }
        self.own_placeholders(box_id, &logins);
        self.parked.0.insert(box_id, logins);
    }

    /// The logins a box begins with: those that were parked, else what the host kept.
    pub(super) fn logins_for(
        &mut self,
        box_id: BoxId,
        mode: Logins,
        kept: &[LoginState],
    ) -> BoxLogins {
        if mode != Logins::Placeholder {
            self.forget_logins(&box_id, None);
            return BoxLogins::default();
        }
        if let Some(parked) = self.parked.0.remove(&box_id) {
            return parked;
        }
        let mut logins = BoxLogins::default();
        let key = self.holdings.borrow().login_key.clone();
        let opened = kept
            .iter()
            .filter_map(|state| key.as_ref()?.open(&box_id, state));
        for login in opened {
            logins.put_back(login);
        }
        logins
    }

    /// Opens what could not be opened before there was a key.
    pub(super) fn restore_logins(
        &mut self,
        box_id: &BoxId,
        kept: &[LoginState],
    ) -> Result<Answer, String> {
        let settings = Arc::clone(&self.held(box_id)?.settings);
        let missing: Vec<LoginState> = {
            let settings = settings.borrow();
            let is_missing = |state: &&LoginState| settings.logins.get(&state.kind).is_none();
            kept.iter().filter(is_missing).cloned().collect()
        };
        let mode = settings.borrow().policy.logins;
        let opened = self.logins_for(*box_id, mode, &missing);
        self.own_placeholders(*box_id, &opened);
        settings.send_modify(|settings| settings.logins.take_over(opened));
        Ok(Answer::Done)
    }

    /// From now on the placeholders are known as this box's.
    pub(super) fn own_placeholders(&self, box_id: BoxId, logins: &BoxLogins) {
        self.holdings.send_modify(|holdings| {
            let owned = logins.placeholders().map(|own| (own.to_owned(), box_id));
            holdings.placeholders.extend(owned);
        });
    }
}
