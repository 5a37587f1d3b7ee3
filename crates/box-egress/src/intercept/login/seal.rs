//! Logins as they lie with the host: sealed, so that only a box-egress with the key can read them,
//! and only for the box and kind they belong to.

use super::book::{Login, Token};
use super::kinds::{Role, named};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use box_api::BoxId;
use box_api::egress::LoginState;
use box_api::egress::login::SEALED_BYTES_MAX;
use ring::aead::{Aad, CHACHA20_POLY1305, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use serde_json::{Value, json};
use zeroize::Zeroizing;

/// What logins are sealed with. Has no `Debug` on purpose.
pub(crate) struct Key(LessSafeKey);

impl Key {
    /// From 32 bytes.
    pub(crate) fn new(bytes: &[u8]) -> Option<Self> {
        let key = UnboundKey::new(&CHACHA20_POLY1305, bytes).ok()?;
        Some(Self(LessSafeKey::new(key)))
    }

    /// A login with its tokens; `None` when it is longer than what is kept, or there is no chance.
    pub(super) fn seal(&self, box_id: &BoxId, login: &Login) -> Option<String> {
        let tokens = login.tokens.iter().map(|token| {
            let secret = std::str::from_utf8(token.secret()).unwrap_or_default();
            json!([token.role.word(), token.placeholder, secret])
        });
        let tokens: Vec<Value> = tokens.collect();
        let text = Zeroizing::new(serde_json::to_vec(&tokens).ok()?);
        let mut nonce = [0; NONCE_LEN];
        getrandom::fill(&mut nonce).ok()?;
        let mut sealed = text.to_vec();
        let aad = Aad::from(about(box_id, login.kind.name, login.since_ms));
        let unique = Nonce::assume_unique_for_key(nonce);
        self.0
            .seal_in_place_append_tag(unique, aad, &mut sealed)
            .ok()?;
        let all = STANDARD.encode([&nonce[..], &sealed].concat());
        (all.len() <= SEALED_BYTES_MAX).then_some(all)
    }

    /// What [`Key::seal`] sealed, for the same box.
    pub(crate) fn open(&self, box_id: &BoxId, state: &LoginState) -> Option<Login> {
        let kind = named(&state.kind)?;
        let sealed = state
            .sealed
            .as_ref()
            .filter(|all| all.len() <= SEALED_BYTES_MAX)?;
        let all = STANDARD.decode(sealed).ok()?;
        let (nonce, rest) = all.split_at_checked(NONCE_LEN)?;
        let mut text = Zeroizing::new(rest.to_vec());
        let aad = Aad::from(about(box_id, kind.name, state.since_ms));
        let nonce = Nonce::try_assume_unique_for_key(nonce).ok()?;
        let text = self.0.open_in_place(nonce, aad, &mut text).ok()?;
        let tokens: Vec<(String, String, Zeroizing<String>)> = read(text)?;
        let tokens = tokens.into_iter().map(|(role, placeholder, secret)| {
            let role = Role::ALL.into_iter().find(|own| own.word() == role)?;
            Some(Token::new(kind, role, placeholder, secret.as_bytes()))
        });
        Some(Login {
            kind,
            since_ms: state.since_ms,
            tokens: tokens.collect::<Option<_>>()?,
            sealed: state.sealed.clone(),
        })
    }
}

fn read(text: &[u8]) -> Option<Vec<(String, String, Zeroizing<String>)>> {
    let all: Vec<(String, String, String)> = serde_json::from_slice(text).ok()?;
    let all = all.into_iter();
    Some(
        all.map(|(role, own, secret)| (role, own, Zeroizing::new(secret)))
            .collect(),
    )
}

/// What a sealed login is bound to.
fn about(box_id: &BoxId, kind: &str, since_ms: i64) -> Vec<u8> {
    format!("box login 1\n{box_id}\n{kind}\n{since_ms}").into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn login() -> Login {
        let kind = named("claude").unwrap();
        let token = Token::new(
            kind,
            Role::Refresh,
            "placeholder-0".into(),
            b"sk-ant-ort01-S",
        );
        Login {
            kind,
            since_ms: 7,
            tokens: vec![token],
            sealed: None,
        }
    }

    #[test]
    fn a_sealed_login_opens_for_its_box_with_its_key_and_not_otherwise() {
        let (key, id) = (Key::new(&[1; 32]).unwrap(), BoxId::from_random([1; 10]));
        let sealed = key.seal(&id, &login()).unwrap();
        assert!(
            !STANDARD
                .decode(&sealed)
                .unwrap()
                .windows(6)
                .any(|w| w == b"sk-ant")
        );
        let state = LoginState {
            kind: "claude".into(),
            since_ms: 7,
            sealed: Some(sealed),
        };
        let opened = key.open(&id, &state).unwrap();
        assert_eq!(opened.tokens[0].secret(), b"sk-ant-ort01-S");
        assert_eq!(opened.tokens[0].placeholder, "placeholder-0");
        assert_eq!(opened.tokens[0].role, Role::Refresh);
        assert!(Key::new(&[2; 32]).unwrap().open(&id, &state).is_none());
        let other = BoxId::from_random([2; 10]);
        assert!(key.open(&other, &state).is_none());
        let later = LoginState {
            since_ms: 8,
            ..state.clone()
        };
        assert!(key.open(&id, &later).is_none());
        let kind = LoginState {
            kind: "codex".into(),
            ..state
        };
        assert!(key.open(&id, &kind).is_none());
    }
}
