//! The logins of one box: which placeholder stands for which token.

use super::kinds::{Kind, Role};
use super::seal::Key;
use crate::intercept::grant::{Credential, Grant};
use crate::secret::Secret;
use box_api::BoxId;
use box_api::egress::login::LOGINS_MAX;
use box_api::egress::{CredentialSpec, HostName, LoginState};
use std::sync::Arc;

/// Tokens of a login that are remembered: those before the last refresh are still with programs that
/// run, and what a vendor says to them is the vendor's to say.
const TOKENS_PER_LOGIN_MAX: usize = 24;

/// A token and what the box has of it.
#[derive(Clone)]
pub(crate) struct Token {
    pub(crate) role: Role,
    pub(crate) placeholder: String,
    pub(crate) credential: Arc<Credential>,
}

impl Token {
    pub(crate) fn new(kind: &Kind, role: Role, placeholder: String, secret: &[u8]) -> Self {
        let spec = CredentialSpec {
            id: format!("login/{}", kind.name),
            kind: kind.name.to_owned(),
            hosts: kind.all_hosts(),
            carried: Kind::carried(role),
        };
        let secret = Some(Secret::new(secret));
        Self {
            role,
            placeholder,
            credential: Arc::new(Credential { spec, secret }),
        }
    }

    pub(crate) fn secret(&self) -> &[u8] {
        self.credential.secret.as_ref().map_or(&[], Secret::bytes)
    }
}

/// A login: everything one vendor gave out in one box.
pub(crate) struct Login {
    pub(crate) kind: &'static Kind,
    pub(crate) since_ms: i64,
    /// The oldest first.
    pub(crate) tokens: Vec<Token>,
    pub(crate) sealed: Option<String>,
}

/// All logins of a box, the oldest first. Dropping it wipes them.
#[derive(Default)]
pub(crate) struct BoxLogins(Vec<Login>);

impl BoxLogins {
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether a login of the box is worth something at `host`.
    pub(crate) fn are_at(&self, host: &HostName) -> bool {
        self.0.iter().any(|login| login.kind.is_at(host))
    }

    /// Whether requests to `host` carry a login of the box.
    pub(crate) fn take_tokens_at(&self, host: &HostName) -> bool {
        self.0.iter().any(|login| login.kind.takes_tokens_at(host))
    }

    /// What the box's placeholders are worth at `host`.
    pub(crate) fn grants(&self, host: &HostName) -> impl Iterator<Item = Grant> {
        let here = self.0.iter().filter(|login| login.kind.is_at(host));
        here.flat_map(|login| &login.tokens).map(|token| Grant {
            placeholder: token.placeholder.clone(),
            credential: Some(Arc::clone(&token.credential)),
        })
    }

    /// Everything a vendor gave out here.
    pub(crate) fn tokens(&self, kind: &Kind) -> Vec<Token> {
        let own = self.0.iter().filter(|login| login.kind.name == kind.name);
        own.flat_map(|login| login.tokens.iter().cloned()).collect()
    }

    pub(crate) fn placeholders(&self) -> impl Iterator<Item = &str> {
        let tokens = self.0.iter().flat_map(|login| &login.tokens);
        tokens.map(|token| token.placeholder.as_str())
    }

    pub(crate) fn states(&self) -> Vec<LoginState> {
        let state = |login: &Login| LoginState {
            kind: login.kind.name.to_owned(),
            since_ms: login.since_ms,
            sealed: login.sealed.clone(),
        };
        self.0.iter().map(state).collect()
    }

    /// Adds tokens to the login of their kind, or begins one. Answers the placeholders that went to
    /// make room.
    pub(crate) fn add(
        &mut self,
        kind: &'static Kind,
        tokens: Vec<Token>,
        now_ms: i64,
    ) -> Vec<String> {
        let at = self.0.iter().position(|login| login.kind.name == kind.name);
        let mut login = match at {
            Some(at) => self.0.remove(at),
            None => Login {
                kind,
                since_ms: now_ms,
                tokens: Vec::new(),
                sealed: None,
            },
        };
        login.tokens.extend(tokens);
        let over = login.tokens.len().saturating_sub(TOKENS_PER_LOGIN_MAX);
        let mut gone: Vec<Token> = login.tokens.drain(..over).collect();
        self.0.push(login);
        let over = self.0.len().saturating_sub(LOGINS_MAX);
        gone.extend(self.0.drain(..over).flat_map(|login| login.tokens));
        gone.into_iter().map(|token| token.placeholder).collect()
    }

    /// Puts a login back that was kept, in place of one of its kind.
    pub(crate) fn put_back(&mut self, login: Login) {
        self.0.retain(|own| own.kind.name != login.kind.name);
        self.0.push(login);
    }

    /// Seals what is not sealed yet, and gives it.
    pub(crate) fn seal(&mut self, box_id: &BoxId, key: &Key) -> Vec<LoginState> {
        let open = self.0.iter_mut().filter(|login| login.sealed.is_none());
        let kinds: Vec<&str> = open
            .filter_map(|login| {
                login.sealed = key.seal(box_id, login);
                login.sealed.as_ref().map(|_| login.kind.name)
            })
            .collect();
        let mut states = self.states();
        states.retain(|state| kinds.contains(&state.kind.as_str()));
        states
    }

    /// Puts back all of `others`.
    pub(crate) fn take_over(&mut self, others: Self) {
        for login in others.0 {
            self.put_back(login);
        }
    }

    pub(crate) fn get(&self, kind: &str) -> Option<&Login> {
        self.0.iter().find(|login| login.kind.name == kind)
    }

    pub(crate) fn set_sealed(&mut self, kind: &str, sealed: Option<String>) {
        let mut own = self.0.iter_mut();
        if let Some(login) = own.find(|login| login.kind.name == kind) {
            login.sealed = sealed;
        }
    }

    /// Wipes logins: of one kind, or all. Answers their placeholders.
    pub(crate) fn forget(&mut self, kind: Option<&str>) -> Vec<String> {
        let is_meant = |login: &mut Login| kind.is_none_or(|kind| login.kind.name == kind);
        let gone = self.0.extract_if(.., is_meant);
        let gone = gone.flat_map(|login| login.tokens);
        gone.map(|token| token.placeholder).collect()
    }
}
