//! Credentials as clients see them, and which of them a box may use.
//!
//! A secret is part of two requests only ([`CredentialAdd`], [`CredentialUnlock`]); neither type
//! has a `Debug` that shows it.

use crate::BoxName;
use crate::egress::Carriage;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Adds a credential, or gives one a new secret. `secret` is wiped by whoever holds it last.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CredentialAdd {
    /// `claude`
    pub kind: String,
    /// The account's name; `default` when the person gave none.
    pub name: String,
    /// Empty where `source` is a command: the host runs it.
    #[serde(default)]
    pub secret: String,
    #[serde(default, skip_serializing_if = "CredentialSource::is_typed")]
    pub source: CredentialSource,
    #[serde(default, skip_serializing_if = "CredentialForm::is_empty")]
    pub form: CredentialForm,
}

impl std::fmt::Debug for CredentialAdd {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "CredentialAdd({} {}, secret not shown)",
            self.kind, self.name
        )
    }
}

/// Where a secret comes from.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "from", rename_all = "snake_case")]
pub enum CredentialSource {
    /// A person typed or piped it in.
    #[default]
    Typed,
    /// The client read it from a variable.
    Env { name: String },
    /// The client read it from a file.
    File { path: String },
    /// The host runs this line with `/bin/sh`, as the user who added it; what it prints is the
    /// secret, or JSON `{"secret": …, "expires_at": …}`. It holds no secret itself.
    Command {
        command: String,
        /// Run again so often; absent: before the secret expires, if it says when.
        #[serde(default)]
        every_ms: Option<u64>,
    },
}

impl CredentialSource {
    pub fn is_typed(&self) -> bool {
        *self == Self::Typed
    }
}

/// What a kind that has no hosts of its own is told: where the secret goes and how.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CredentialForm {
    #[serde(default)]
    pub hosts: Vec<String>,
    /// Empty: as its kind has it.
    #[serde(default)]
    pub carried: Vec<Carriage>,
    /// The variable of a box that holds the placeholder; absent: as its kind has it.
    #[serde(default)]
    pub variable: Option<String>,
}

impl CredentialForm {
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// Opens what is sealed with a passphrase, or asks how secrets are sealed here.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CredentialUnlock {
    /// Absent: only the state is asked for.
    pub passphrase: Option<String>,
    /// The passphrase is a new one: from now on secrets are sealed with it.
    #[serde(default)]
    pub is_new: bool,
}

impl std::fmt::Debug for CredentialUnlock {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("CredentialUnlock(passphrase not shown)")
    }
}

/// How secrets are kept on this machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS, schemars::JsonSchema))]
pub struct SealInfo {
    pub method: SealMethod,
    /// Whether what is sealed can be opened now.
    pub is_open: bool,
    /// One line for a person, where something is missing.
    #[serde(default)]
    pub why: Option<String>,
}

/// What holds the key that secrets are sealed with.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS, schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum SealMethod {
    /// The kernel's keyring of the host's user (user-keyring(7)): until the machine ends.
    Keyring,
    /// systemd-creds(1): the machine's own key, in its TPM where there is one.
    SystemdCreds,
    /// A person's passphrase, asked for by `box credential unlock`.
    Passphrase,
    /// Nothing: secrets are in the memory of box-egress and end with it.
    #[default]
    Memory,
}

impl SealMethod {
    /// The word settings and tables have for it.
    pub fn word(self) -> &'static str {
        match self {
            Self::Keyring => "keyring",
            Self::SystemdCreds => "systemd-creds",
            Self::Passphrase => "passphrase",
            Self::Memory => "memory",
        }
    }
}

/// A credential without its secret.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CredentialInfo {
    pub kind: String,
    pub name: String,
    pub added_at_ms: i64,
    /// It was added, but its secret is not there: it is to be added again, or unlocked.
    #[serde(default)]
    pub lost: bool,
    #[serde(default)]
    pub source: CredentialSource,
    /// When the secret ends, if it said so. UTC, milliseconds since 1970.
    #[serde(default)]
    pub expires_at_ms: Option<i64>,
    /// What it is sealed with on disk; [`SealMethod::Memory`]: it is not on disk.
    #[serde(default)]
    pub sealed: SealMethod,
    #[serde(default)]
    pub hosts: Vec<String>,
    /// Boxes that use it.
    #[serde(default)]
    pub boxes: Vec<BoxName>,
    /// Why its command last failed.
    #[serde(default)]
    pub problem: Option<String>,
}

/// Which accounts a box may use without anybody naming them (D34).
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS, schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Accounts {
    /// Its owner's default account of each kind.
    #[default]
    Defaults,
    /// None, as an import has it: what is in the box came from elsewhere.
    None,
    Chosen(Choice),
}

/// Accounts a person chose for a box.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS, schemars::JsonSchema))]
pub struct Choice {
    /// Whether kinds that are not named are left out; else they have their default.
    #[serde(default)]
    pub only: bool,
    /// Names by kind; an empty list: none of this kind.
    pub of_kind: BTreeMap<String, Vec<String>>,
}

impl Accounts {
    pub fn are_defaults(&self) -> bool {
        *self == Self::Defaults
    }

    /// What a box may use of one kind.
    pub fn of_kind(&self, kind: &str) -> AccountsOfKind<'_> {
        match self {
            Self::Defaults => AccountsOfKind::Default,
            Self::None => AccountsOfKind::Named(&[]),
            Self::Chosen(choice) => match choice.of_kind.get(kind) {
                Some(names) => AccountsOfKind::Named(names),
                None if choice.only => AccountsOfKind::Named(&[]),
                None => AccountsOfKind::Default,
            },
        }
    }
}

/// What a box may use of one kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(test, derive(ts_rs::TS, schemars::JsonSchema))]
pub enum AccountsOfKind<'a> {
    Default,
    Named(&'a [String]),
}

/// As it is said and shown: `default`, `none`, `claude:work,github:bot`, `none,claude:work`,
/// `claude:none`.
impl std::fmt::Display for Accounts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Defaults => f.write_str("default"),
            Self::None => f.write_str("none"),
            Self::Chosen(choice) => {
                let only = choice.only.then(|| "none".to_owned());
                let kinds = choice.of_kind.iter();
                let parts: Vec<String> = only
                    .into_iter()
                    .chain(kinds.flat_map(|(kind, names)| named(kind, names)))
                    .collect();
                f.write_str(&parts.join(","))
            }
        }
    }
}

/// `claude:work`, one for each name; `claude:none` where there is none.
fn named(kind: &str, names: &[String]) -> Vec<String> {
    if names.is_empty() {
        return vec![format!("{kind}:none")];
    }
    let names = names.iter().map(|name| format!("{kind}:{name}"));
    names.collect()
}

/// A text that does not say which accounts.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`default`, `none`, or accounts as `<kind>:<name>`, separated by commas")]
pub struct AccountsError;

impl std::str::FromStr for Accounts {
    type Err = AccountsError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "default" => return Ok(Self::Defaults),
            "none" => return Ok(Self::None),
            _ => {}
        }
        let mut choice = Choice::default();
        for (at, part) in text.split(',').enumerate() {
            if at == 0 && part == "none" {
                choice.only = true;
                continue;
            }
            let (kind, name) = part.split_once(':').unwrap_or((part, "default"));
            if !is_word(kind) || !is_word(name) {
                return Err(AccountsError);
            }
            let names = choice.of_kind.entry(kind.to_owned()).or_default();
            if name != "none" && !names.iter().any(|known| known == name) {
                names.push(name.to_owned());
            }
        }
        Ok(Self::Chosen(choice))
    }
}

fn is_word(text: &str) -> bool {
    let fits = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "-_.".contains(c);
    !text.is_empty() && text.len() <= 63 && text.chars().all(fits)
}

/// A login made inside a box (D1), without its tokens.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LoginInfo {
    #[serde(rename = "box")]
    pub name: BoxName,
    /// `claude`, `codex`, `github`.
    pub kind: String,
    /// UTC, milliseconds since 1970.
    pub since_ms: i64,
    /// Whether it outlives box-egress.
    pub is_sealed: bool,
    /// It is not there any more: the agent has to log in again.
    pub lost: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accounts_are_read_as_they_are_shown() {
        for text in [
            "default",
            "none",
            "claude:work",
            "claude:work,github:bot",
            "none,claude:work",
            "claude:none",
            "generic:a,generic:b",
        ] {
            assert_eq!(text.parse::<Accounts>().unwrap().to_string(), text);
        }
        let bare: Accounts = "claude".parse().unwrap();
        assert_eq!(bare.to_string(), "claude:default");
        for text in [
            "",
            "?",
            "claude:",
            ":work",
            "claude:a b",
            "a,,b",
            "claude:x,none:",
        ] {
            assert_eq!(text.parse::<Accounts>(), Err(AccountsError), "{text}");
        }
    }

    #[test]
    fn what_is_not_named_is_the_default_unless_only_the_named_hold() {
        let some: Accounts = "claude:work".parse().unwrap();
        let work = ["work".to_owned()];
        assert_eq!(some.of_kind("claude"), AccountsOfKind::Named(&work));
        assert_eq!(some.of_kind("github"), AccountsOfKind::Default);
        let only: Accounts = "none,claude:work".parse().unwrap();
        assert_eq!(only.of_kind("claude"), AccountsOfKind::Named(&work));
        assert_eq!(only.of_kind("github"), AccountsOfKind::Named(&[]));
    }

    #[test]
    fn an_older_database_is_still_read() {
        let old: Accounts = serde_json::from_str(r#""none""#).unwrap();
        assert_eq!(old, Accounts::None);
        let chosen: Accounts = "claude:work".parse().unwrap();
        let json = serde_json::to_string(&chosen).unwrap();
        assert_eq!(serde_json::from_str::<Accounts>(&json).unwrap(), chosen);
    }

    #[test]
    fn no_secret_is_shown() {
        let add = CredentialAdd {
            secret: "TELLTALE".to_owned(),
            ..CredentialAdd::default()
        };
        let unlock = CredentialUnlock {
            passphrase: Some("TELLTALE".to_owned()),
            is_new: false,
        };
        assert!(!format!("{add:?} {unlock:?}").contains("TELLTALE"));
    }
}
