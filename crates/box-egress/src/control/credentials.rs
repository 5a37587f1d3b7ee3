//! Credentials and the placeholders that stand for them.

use super::Keeper;
use crate::intercept::grant::Credential;
use crate::secret::Secret;
use box_api::BoxId;
use box_api::egress::{
    Answer, BINDINGS_MAX, Binding, Carriage, CredentialSpec, CredentialState,
    PLACEHOLDER_BYTES_MAX, PLACEHOLDER_BYTES_MIN,
};
use http::HeaderName;
use std::sync::Arc;
use zeroize::Zeroizing;

/// Hosts one credential or placeholder can be for.
const HOSTS_MAX: usize = 64;
const CREDENTIALS_MAX: usize = 4096;
const PARAMETER_BYTES_MAX: usize = 64;

impl Keeper {
    pub(super) fn add_credential(
        &mut self,
        spec: CredentialSpec,
        secret: &Zeroizing<Vec<u8>>,
    ) -> Result<Answer, String> {
        check_spec(&spec)?;
        check_secret(secret)?;
        let holdings = self.holdings.borrow();
        // A secret that equals a placeholder is one a box already has.
        if holdings
            .placeholders
            .keys()
            .any(|placeholder| placeholder.as_bytes() == secret.as_slice())
        {
            return Err(format!(
                "the secret of credential `{}` is a placeholder",
                spec.id
            ));
        }
        let is_new = !holdings.credentials.contains_key(&spec.id);
        if is_new && holdings.credentials.len() >= CREDENTIALS_MAX {
            return Err(format!("there are {CREDENTIALS_MAX} credentials already"));
        }
        drop(holdings);
        let id = spec.id.clone();
        let credential = Arc::new(Credential {
            spec,
            secret: Some(Secret::new(secret)),
        });
        self.holdings
            .send_modify(|holdings| drop(holdings.credentials.insert(id, credential)));
        Ok(Answer::Done)
    }

    pub(super) fn remove_credential(&mut self, id: &str) -> Result<Answer, String> {
        if !self.holdings.borrow().credentials.contains_key(id) {
            return Err(format!("there is no credential `{id}`"));
        }
        self.holdings
            .send_modify(|holdings| drop(holdings.credentials.remove(id)));
        Ok(Answer::Done)
    }

    pub(super) fn credential_states(&self) -> Vec<CredentialState> {
        let bound = |id: &str| {
            let settings = self.boxes.values().map(|held| held.settings.borrow());
            let count = |bindings: &[Binding]| {
                bindings
                    .iter()
                    .filter(|binding| binding.credential == id)
                    .count()
            };
            let bound: usize = settings.map(|settings| count(&settings.bindings)).sum();
            u32::try_from(bound).unwrap_or(u32::MAX)
        };
        let holdings = self.holdings.borrow();
        let state = |credential: &Arc<Credential>| CredentialState {
            spec: credential.spec.clone(),
            present: credential.secret.is_some(),
            bound: bound(&credential.spec.id),
        };
        let mut states: Vec<CredentialState> = holdings.credentials.values().map(state).collect();
        states.sort_by(|one, other| one.spec.id.cmp(&other.spec.id));
        states
    }

    pub(super) fn bind(&mut self, box_id: &BoxId, binding: Binding) -> Result<Answer, String> {
        let held = self.held(box_id)?;
        self.check_placeholder_is_free(box_id, &binding)?;
        {
            let settings = held.settings.borrow();
            let others = settings.bindings.iter();
            let others: Vec<Binding> = others
                .filter(|own| own.placeholder != binding.placeholder)
                .cloned()
                .collect();
            if others.len() >= BINDINGS_MAX {
                return Err(format!(
                    "a box has no more than {BINDINGS_MAX} placeholders"
                ));
            }
            check_binding(&binding, &others)?;
        }
        // First known as this box's, then usable: no moment in which it is nobody's.
        let placeholder = binding.placeholder.clone();
        self.holdings.send_modify(|holdings| {
            holdings.placeholders.insert(placeholder, *box_id);
        });
        self.held(box_id)?.settings.send_modify(|settings| {
            settings
                .bindings
                .retain(|own| own.placeholder != binding.placeholder);
            settings.bindings.push(binding);
        });
        Ok(Answer::Done)
    }

    pub(super) fn unbind(&mut self, box_id: &BoxId, placeholder: &str) -> Result<Answer, String> {
        self.held(box_id)?.settings.send_modify(|settings| {
            settings
                .bindings
                .retain(|own| own.placeholder != placeholder);
        });
        self.holdings.send_modify(|holdings| {
            holdings
                .placeholders
                .retain(|own, owner| own != placeholder || owner != box_id);
        });
        Ok(Answer::Done)
    }

    /// A placeholder belongs to one box and is nobody's secret.
    pub(super) fn check_placeholder_is_free(
        &self,
        box_id: &BoxId,
        binding: &Binding,
    ) -> Result<(), String> {
        let holdings = self.holdings.borrow();
        let owner = holdings.placeholders.get(&binding.placeholder);
        if owner.is_some_and(|owner| owner != box_id) {
            return Err("the placeholder belongs to another box".into());
        }
        let text = binding.placeholder.as_bytes();
        let secrets = holdings
            .credentials
            .values()
            .filter_map(|own| own.secret.as_ref());
        if secrets.into_iter().any(|secret| secret.bytes() == text) {
            return Err("the placeholder is a secret".into());
        }
        Ok(())
    }
}

/// Checks a binding by itself and against the box's others.
pub(super) fn check_binding(binding: &Binding, others: &[Binding]) -> Result<(), String> {
    let placeholder = binding.placeholder.as_str();
    let fits = (PLACEHOLDER_BYTES_MIN..=PLACEHOLDER_BYTES_MAX).contains(&placeholder.len());
    if !fits || !placeholder.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err(format!(
            "a placeholder has {PLACEHOLDER_BYTES_MIN} to {PLACEHOLDER_BYTES_MAX} visible characters"
        ));
    }
    if binding.hosts.is_empty() || binding.hosts.len() > HOSTS_MAX {
        return Err(format!("a placeholder is for 1 to {HOSTS_MAX} hosts"));
    }
    let overlaps = |other: &Binding| {
        other.placeholder.contains(placeholder) || placeholder.contains(&other.placeholder)
    };
    if others.iter().any(overlaps) {
        return Err("the placeholder is part of another one of the box".into());
    }
    Ok(())
}

/// `authorization` has schemes, and a cookie is judged by its own rules.
fn can_be_whole_header(name: &str) -> bool {
    let reserved = ["authorization", "cookie", "host", "connection"];
    HeaderName::try_from(name).is_ok()
        && !reserved
            .iter()
            .any(|other| name.eq_ignore_ascii_case(other))
}

/// A name that is written in one way only: unreserved characters (RFC 3986 §2.3).
fn is_parameter(name: &str) -> bool {
    let is_unreserved = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
    !name.is_empty() && name.len() <= PARAMETER_BYTES_MAX && name.bytes().all(is_unreserved)
}

fn check_spec(spec: &CredentialSpec) -> Result<(), String> {
    let id = &spec.id;
    if id.is_empty() || id.len() > PLACEHOLDER_BYTES_MAX || id.chars().any(char::is_control) {
        return Err(format!(
            "a credential's id has 1 to {PLACEHOLDER_BYTES_MAX} characters"
        ));
    }
    if spec.hosts.is_empty() || spec.hosts.len() > HOSTS_MAX {
        return Err(format!("credential `{id}` is for 1 to {HOSTS_MAX} hosts"));
    }
    if spec.carried.is_empty() {
        return Err(format!("credential `{id}` is carried by nothing"));
    }
    for carriage in &spec.carried {
        match carriage {
            Carriage::Header { name } if !can_be_whole_header(name) => {
                return Err(format!(
                    "credential `{id}` cannot be the whole of header `{name}`"
                ));
            }
            Carriage::Query { name } if !is_parameter(name) => {
                return Err(format!(
                    "credential `{id}` cannot be the query parameter `{name}`"
                ));
            }
            Carriage::Bearer
            | Carriage::Basic
            | Carriage::Header { .. }
            | Carriage::Query { .. } => {}
        }
    }
    Ok(())
}

/// What could not be a header's value, or would break out of one, is no secret (catalogue G26).
fn check_secret(secret: &[u8]) -> Result<(), String> {
    let is_sound = !secret.is_empty() && secret.iter().all(u8::is_ascii_graphic);
    if is_sound {
        Ok(())
    } else {
        Err("a secret has visible characters only, and at least one".into())
    }
}
