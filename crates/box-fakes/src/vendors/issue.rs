//! Tokens of the fake vendors: each new, each shaped like a real one, each remembered.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::digest::{SHA256, digest};
use serde_json::{Value, json};
use std::collections::HashMap;

/// Whose tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Vendor {
    Claude,
    Codex,
    GitHub,
}

/// An authorization that waits for its code to be exchanged.
#[derive(Debug, Clone)]
pub(super) struct Pending {
    pub(super) vendor: Vendor,
    pub(super) challenge: String,
    pub(super) redirect: String,
    pub(super) client: String,
}

/// A device that waits for a person.
#[derive(Debug, Clone)]
pub(super) struct Device {
    pub(super) user_code: String,
    pub(super) is_approved: bool,
}

/// What the vendors know.
#[derive(Debug, Default)]
pub(crate) struct VendorState {
    pub(super) is_open: bool,
    pub(super) packing: super::Packing,
    made: u32,
    pub(super) codes: HashMap<String, Pending>,
    pub(super) devices: HashMap<String, Device>,
    pub(super) polls: u32,
    /// Valid now.
    pub(super) access: HashMap<String, Vendor>,
    pub(super) refresh: HashMap<String, Vendor>,
    /// Every secret that was ever given out.
    pub(super) issued: Vec<String>,
    /// `<host><path> <token>` of every request that came with a valid one.
    pub(super) honoured: Vec<String>,
    pub(super) refused: Vec<String>,
}

impl VendorState {
    pub(crate) fn is_open(&self) -> bool {
        self.is_open
    }

    /// So many characters that never came before.
    pub(super) fn chance(&mut self, chars: usize) -> String {
        self.made += 1;
        let mut text = String::new();
        let mut round = 0;
        while text.len() < chars {
            let seed = format!("vendor {} {round}", self.made);
            text.push_str(&URL_SAFE_NO_PAD.encode(digest(&SHA256, seed.as_bytes())));
            round += 1;
        }
        text.truncate(chars);
        text.replace(['-', '_'], "x")
    }

    fn secret(&mut self, text: String) -> String {
        self.issued.push(text.clone());
        text
    }

    pub(super) fn opaque(&mut self, prefix: &str, chars: usize) -> String {
        let text = format!("{prefix}{}", self.chance(chars));
        self.secret(text)
    }

    fn jwt(&mut self, claims: &Value) -> String {
        let header = URL_SAFE_NO_PAD.encode(json!({"alg": "RS256", "typ": "JWT"}).to_string());
        let signature = self.chance(342);
        // What is secret of a JWT is its signature.
        self.issued.push(signature.clone());
        let claims = URL_SAFE_NO_PAD.encode(claims.to_string());
        self.secret(format!("{header}.{claims}.{signature}"))
    }

    pub(super) fn claude(&mut self) -> Value {
        let access = self.opaque("sk-ant-oat01-", 95);
        let refresh = self.opaque("sk-ant-ort01-", 95);
        self.access.insert(access.clone(), Vendor::Claude);
        self.refresh.insert(refresh.clone(), Vendor::Claude);
        json!({
            "token_type": "Bearer", "access_token": access, "refresh_token": refresh,
            "expires_in": 28_800, "scope": "user:inference user:profile",
            "organization": {"uuid": "0f5c1d1e-0000-4000-8000-000000000001", "name": "Org"},
            "account": {"uuid": "0f5c1d1e-0000-4000-8000-000000000002", "email_address": "a@example.org"},
        })
    }

    pub(super) fn codex(&mut self) -> Value {
        let jti = self.chance(20);
        let about = json!({
            "chatgpt_account_id": "acc-1", "chatgpt_plan_type": "pro", "chatgpt_user_id": "user-1",
        });
        let id = self.jwt(&json!({
            "exp": 1_990_000_000, "iat": 1_790_000_000, "email": "a@example.org", "jti": jti,
            "https://api.openai.com/auth": about,
        }));
        let access = self.jwt(&json!({
            "exp": 1_990_000_000, "session_id": jti, "https://api.openai.com/auth": about,
        }));
        let refresh = self.opaque("rt_", 87);
        self.access.insert(access.clone(), Vendor::Codex);
        self.refresh.insert(refresh.clone(), Vendor::Codex);
        json!({
            "id_token": id, "access_token": access, "refresh_token": refresh,
            "token_type": "Bearer", "expires_in": 864_000,
        })
    }

    pub(super) fn github(&mut self) -> String {
        let token = self.opaque("gho_", 36);
        self.access.insert(token.clone(), Vendor::GitHub);
        token
    }

    /// A valid token takes its place in the list; another is refused.
    pub(super) fn honours(&mut self, place: &str, token: &str, vendor: Vendor) -> bool {
        let is_good = self.access.get(token) == Some(&vendor);
        let line = format!("{place} {token}");
        if is_good {
            self.honoured.push(line);
        } else if !token.is_empty() {
            self.refused.push(line);
        }
        is_good
    }
}

/// `S256` (RFC 7636 §4.2).
pub(super) fn challenge(verifier: &str) -> String {
    URL_SAFE_NO_PAD.encode(digest(&SHA256, verifier.as_bytes()))
}
