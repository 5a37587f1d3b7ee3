//! A box's logins as its connections see and change them.

use super::book::Token;
use super::kinds::{self, Endpoint, Kind, Opens};
use crate::context::Holdings;
use crate::policy::Settings;
use box_api::BoxId;
use box_api::egress::{HostName, LoginState, Logins, Reason};
use std::sync::Weak;
use tokio::sync::watch;

/// The way to one box's logins. Keeps nothing alive: a box that is forgotten has none.
pub(crate) struct Desk {
    pub(crate) box_id: BoxId,
    pub(crate) settings: Weak<watch::Sender<Settings>>,
    pub(crate) holdings: Weak<watch::Sender<Holdings>>,
}

/// How requests to a host with logins are judged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Judged {
    /// A credential of the owner belongs to it: nothing but that, and no login of the box.
    Bound,
    /// The box is logged in there: headers carry its own login or none.
    LoggedIn,
    /// A host where somebody may log in: whatever passes there passes.
    LoginHost,
}

impl Desk {
    fn read<T>(&self, look: impl FnOnce(&Settings) -> T) -> Option<T> {
        Some(look(&self.settings.upgrade()?.borrow()))
    }

    pub(crate) fn judged(&self, host: &HostName) -> Judged {
        let judged = self.read(|settings| {
            if is_bound(settings, host) {
                Judged::Bound
            } else if settings.logins.take_tokens_at(host) {
                Judged::LoggedIn
            } else {
                Judged::LoginHost
            }
        });
        judged.unwrap_or(Judged::Bound)
    }

    /// The token endpoint a request is for, if its answer is to be read.
    pub(crate) fn endpoint(
        &self,
        host: &HostName,
        path: &str,
    ) -> Result<Option<(&'static Kind, &'static Endpoint)>, Reason> {
        let Some((kind, endpoint)) = kinds::endpoint(host, path) else {
            return Ok(None);
        };
        let logins = self.read(|settings| settings.policy.logins);
        match (logins, endpoint.opens) {
            (Some(Logins::Placeholder), _) => Ok(Some((kind, endpoint))),
            // A key made with the owner's credential is none that somebody logged in for.
            (Some(Logins::Plain), Opens::Always) => Ok(None),
            (Some(Logins::Plain | Logins::Off) | None, _) => Err(Reason::LoginsOff),
        }
    }

    /// Everything a vendor gave out in this box so far.
    pub(super) fn tokens(&self, kind: &Kind) -> Vec<Token> {
        self.read(|settings| settings.logins.tokens(kind))
            .unwrap_or_default()
    }

    /// Remembers tokens before the box learns their placeholders. `None` when the box is gone.
    pub(super) fn learn(
        &self,
        kind: &'static Kind,
        tokens: Vec<Token>,
        now_ms: i64,
    ) -> Option<LoginState> {
        let (settings, holdings) = (self.settings.upgrade()?, self.holdings.upgrade()?);
        let fresh: Vec<String> = tokens.iter().map(|own| own.placeholder.clone()).collect();
        // First known as this box's, then usable: no moment in which one is nobody's.
        holdings.send_modify(|holdings| {
            let owned = fresh
                .into_iter()
                .map(|placeholder| (placeholder, self.box_id));
            holdings.placeholders.extend(owned);
        });
        let key = holdings.borrow().login_key.clone();
        let (mut gone, mut state) = (Vec::new(), None);
        settings.send_modify(|settings| {
            gone = settings.logins.add(kind, tokens, now_ms);
            let login = settings.logins.get(kind.name);
            let sealed = login.and_then(|login| key.as_ref()?.seal(&self.box_id, login));
            settings.logins.set_sealed(kind.name, sealed);
            let mut states = settings.logins.states().into_iter();
            state = states.find(|state| state.kind == kind.name);
        });
        holdings.send_modify(|holdings| {
            for placeholder in gone {
                holdings.placeholders.remove(&placeholder);
            }
        });
        state
    }
}

/// Whether a credential of the owner belongs to the host.
pub(crate) fn is_bound(settings: &Settings, host: &HostName) -> bool {
    let mut bindings = settings.bindings.iter();
    bindings.any(|binding| binding.hosts.contains(host))
}

/// Whether the host is opened up because of logins.
pub(crate) fn is_opened(settings: &Settings, host: &HostName) -> bool {
    let may_log_in = settings.policy.logins != Logins::Plain && kinds::is_login_host(host);
    may_log_in || settings.logins.are_at(host)
}
