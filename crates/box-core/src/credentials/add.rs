//! A secret comes: parsed → shape → handed to box-egress → sealed into its row.

use super::command::{self, Fetched, LINE_BYTES_MAX};
use super::kinds::{HostsFrom, Kind};
use super::rows::{self, CredentialRow, Put, Sealed};
use super::seal::context_of;
use super::secret::Secret;
use super::{CredentialError, check_name, forget, goes_alike, kinds, resolve};
use crate::caller::Caller;
use crate::host::Host;
use crate::store::Durability;
use box_api::control::{CredentialForm, CredentialInfo, CredentialSource, SealMethod};
use box_api::egress::{Carriage, HostName};
use std::ops::RangeInclusive;
use zeroize::Zeroizing;

const HOSTS_MAX: usize = 16;
/// How often a command is run: often enough to matter, seldom enough to be no load.
const EVERY_MS: RangeInclusive<u64> = 10_000..=(30 * 24 * 3600 * 1000);
/// Variables that decide what runs in a box, or whom it trusts.
const RESERVED_VARIABLES: [&str; 12] = [
    "BASH_ENV",
    "ENV",
    "HOME",
    "IFS",
    "LOGNAME",
    "NODE_OPTIONS",
    "PATH",
    "PYTHONPATH",
    "PYTHONSTARTUP",
    "SHELL",
    "TERM",
    "USER",
];
const RESERVED_PREFIXES: [&str; 5] = ["LD_", "BOX_", "GIT_CONFIG", "SSL_", "DYLD_"];
const VARIABLE_CHARS_MAX: usize = 64;

/// What a person said of a credential beside its secret.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Asked {
    pub kind: String,
    pub name: String,
    pub source: CredentialSource,
    pub form: CredentialForm,
}

impl Asked {
    pub fn new(kind: &str, name: &str) -> Self {
        Self {
            kind: kind.to_owned(),
            name: name.to_owned(),
            ..Self::default()
        }
    }
}

/// Adds a credential or replaces the one of this kind and name. `secret` is absent where the
/// source is a command: it is run first.
///
/// # Errors
/// [`CredentialError`]; an older secret of the name still holds then.
pub async fn add(
    host: &Host,
    caller: &Caller,
    asked: Asked,
    secret: Option<Secret>,
) -> Result<CredentialInfo, CredentialError> {
    let (row, secret) = made(host, caller, asked, secret).await?;
    store(host, &row, secret).await
}

/// As [`add`] for the account without a name, but the secret goes into box-egress' memory alone and
/// ends with it.
///
/// # Errors
/// [`CredentialError`]
pub async fn add_in_memory(
    host: &Host,
    caller: &Caller,
    kind: &str,
    secret: Secret,
) -> Result<CredentialInfo, CredentialError> {
    let asked = Asked::new(kind, super::DEFAULT_NAME);
    let (row, secret) = made(host, caller, asked, Some(secret)).await?;
    put(host, &row, secret.into_bytes(), None).await
}

async fn made(
    host: &Host,
    caller: &Caller,
    asked: Asked,
    secret: Option<Secret>,
) -> Result<(CredentialRow, Secret), CredentialError> {
    let kind = kinds::find(&asked.kind).ok_or_else(|| super::unknown_kind(&asked.kind))?;
    check_name(&asked.name)?;
    check_source(kind, &asked.source)?;
    let form = form_of(host, kind, &asked)?;
    let mut row = CredentialRow {
        owner: caller.owner,
        kind: kind.name.clone(),
        name: asked.name,
        prefix: String::new(),
        chars: 0,
        added_at_ms: host.now_ms(),
        source: asked.source,
        form,
        fetched_at_ms: 0,
        expires_at_ms: None,
        problem: None,
        sealed: SealMethod::Memory,
    };
    let fetched = fetch(host, &row, secret).await?;
    take(&mut row, kind, &fetched, host.now_ms())?;
    Ok((row, fetched.secret))
}

/// Gives a credential a new secret. Boxes keep their placeholders; requests on their way end with
/// the secret they began with. Without a secret its command is run.
///
/// # Errors
/// [`CredentialError::OtherForm`]: what runs could not go on. The secret before still holds.
pub async fn rotate(
    host: &Host,
    caller: &Caller,
    name: &str,
    source: CredentialSource,
    secret: Option<Secret>,
) -> Result<CredentialInfo, CredentialError> {
    let before = resolve(host, caller, name).await?;
    let mut row = before.clone();
    let is_command = matches!(before.source, CredentialSource::Command { .. });
    // Nothing new was given: what it comes from is asked again.
    if !(secret.is_none() && is_command && source == CredentialSource::Typed) {
        row.source = source;
    }
    let kind = super::kind_of(&row).ok_or_else(|| super::unknown_kind(&row.kind))?;
    check_source(kind, &row.source)?;
    let fetched = fetch(host, &row, secret).await?;
    renewed(host, &before, row, fetched).await
}

/// Puts what a source gave in the place of the secret before.
pub(super) async fn renewed(
    host: &Host,
    before: &CredentialRow,
    mut row: CredentialRow,
    fetched: Fetched,
) -> Result<CredentialInfo, CredentialError> {
    let kind = super::kind_of(&row).ok_or_else(|| super::unknown_kind(&row.kind))?;
    take(&mut row, kind, &fetched, host.now_ms())?;
    if !goes_alike(before, &row) {
        return Err(CredentialError::OtherForm {
            name: format!("{}:{}", row.kind, row.name),
        });
    }
    // Placeholders begin as the first secret did; the row goes on to say how.
    row.prefix.clone_from(&before.prefix);
    store(host, &row, fetched.secret).await
}

/// The secret that was given, or the one its command prints.
pub(super) async fn fetch(
    host: &Host,
    row: &CredentialRow,
    given: Option<Secret>,
) -> Result<Fetched, CredentialError> {
    match (&row.source, given) {
        (CredentialSource::Command { command, .. }, None) => {
            let fetched = command::fetch(command, row.owner, host.uid, host.now_ms()).await;
            fetched.map_err(|source| CredentialError::Command {
                name: format!("{}:{}", row.kind, row.name),
                source,
            })
        }
        (_, Some(secret)) => Ok(Fetched {
            secret,
            expires_at_ms: None,
        }),
        (
            CredentialSource::Typed | CredentialSource::Env { .. } | CredentialSource::File { .. },
            None,
        ) => Err(CredentialError::Secret {
            kind: row.kind.clone(),
            source: super::SecretError::Empty,
        }),
    }
}

/// Writes into a row what is to be known of a secret.
fn take(
    row: &mut CredentialRow,
    kind: &Kind,
    fetched: &Fetched,
    now_ms: i64,
) -> Result<(), CredentialError> {
    let shape = fetched.secret.shape(kind);
    let shape = shape.map_err(|source| CredentialError::Secret {
        kind: row.kind.clone(),
        source,
    })?;
    row.prefix.clone_from(&shape.prefix);
    row.chars = fetched.secret.chars();
    row.fetched_at_ms = now_ms;
    row.expires_at_ms = fetched.expires_at_ms;
    row.problem = None;
    Ok(())
}

async fn store(
    host: &Host,
    row: &CredentialRow,
    secret: Secret,
) -> Result<CredentialInfo, CredentialError> {
    let secret = secret.into_bytes();
    let sealed = seal(host, row, &secret).await?;
    put(host, row, secret, sealed).await
}

async fn put(
    host: &Host,
    row: &CredentialRow,
    secret: Zeroizing<Vec<u8>>,
    sealed: Option<Sealed>,
) -> Result<CredentialInfo, CredentialError> {
    let spec = super::spec_of(row).ok_or_else(|| super::unknown_kind(&row.kind))?;
    host.egress.add_credential(spec, secret).await?;
    let written = row.clone();
    let put = host.store.write(Durability::Full, move |transaction| {
        rows::put(transaction, &written, sealed.as_ref())
    });
    let stale = match put.await? {
        Put::Done { stale_placeholders } => stale_placeholders,
        Put::TooMany => {
            host.egress.remove_credential(row.id()).await?;
            return Err(CredentialError::TooMany);
        }
    };
    forget(host, stale).await;
    host.vault.changed.notify_one();
    let (owner, kind, name) = (row.owner, row.kind.clone(), row.name.clone());
    let kept = host
        .store
        .read(move |rows| rows::find(rows, &owner, &kind, &name))
        .await?;
    Ok(kept.map_or_else(|| row.info(), |row| row.info()))
}

async fn seal(
    host: &Host,
    row: &CredentialRow,
    secret: &[u8],
) -> Result<Option<Sealed>, CredentialError> {
    let sealing = host.vault.sealing(&*host.random, host.now_ms()).await?;
    Ok(sealing.map(|(seal, key)| Sealed {
        seal,
        bytes: key.seal(&context_of(&row.id()), secret, &*host.random),
    }))
}

fn check_source(kind: &Kind, source: &CredentialSource) -> Result<(), CredentialError> {
    let CredentialSource::Command { command, every_ms } = source else {
        return Ok(());
    };
    let refuse = |why: String| CredentialError::Form {
        kind: kind.name.clone(),
        why,
    };
    let is_line = !command.trim().is_empty() && !command.contains('\0');
    if !is_line || command.len() > LINE_BYTES_MAX {
        return Err(refuse(format!("a command has 1 to {LINE_BYTES_MAX} bytes")));
    }
    if every_ms.is_some_and(|every_ms| !EVERY_MS.contains(&every_ms)) {
        return Err(refuse(
            "a command is run every 10 seconds to 30 days".to_owned(),
        ));
    }
    Ok(())
}

/// Where the secret goes: as was asked, where its kind leaves that open.
fn form_of(host: &Host, kind: &Kind, asked: &Asked) -> Result<CredentialForm, CredentialError> {
    let refuse = |why: String| CredentialError::Form {
        kind: kind.name.clone(),
        why,
    };
    let mut form = asked.form.clone();
    if !form.hosts.is_empty() && !kind.takes_hosts {
        return Err(refuse(format!("it goes to `{}`", kind.hosts.join("`, `"))));
    }
    let is_free = form.carried.is_empty() && form.variable.is_none();
    if !is_free && !kind.takes_form {
        return Err(refuse(
            "headers, parameters and variables are given for `generic`".to_owned(),
        ));
    }
    if form.hosts.is_empty() {
        form.hosts = match kind.hosts_from {
            HostsFrom::Kind => Vec::new(),
            HostsFrom::Npm => host.machine.npm_hosts(),
            HostsFrom::Asked => return Err(refuse("it needs a host: `--host <host>`".to_owned())),
        };
        if form.hosts.is_empty() && kind.hosts_from == HostsFrom::Npm {
            return Err(refuse(
                "the npm here names no registry: `--host <host>` does".to_owned(),
            ));
        }
    }
    if form.hosts.len() > HOSTS_MAX {
        return Err(refuse(format!("it is for {HOSTS_MAX} hosts at most")));
    }
    for host in &mut form.hosts {
        let parsed = HostName::parse(host).map_err(|error| refuse(format!("`{host}`: {error}")))?;
        *host = parsed.to_string();
    }
    if kind.takes_form && form.variable.is_none() {
        form.variable = Some(variable_named_after(&asked.name));
    }
    if let Some(why) = form.carried.iter().find_map(bad_carriage) {
        return Err(refuse(why));
    }
    if let Some(why) = form.variable.as_deref().and_then(bad_variable) {
        return Err(refuse(why));
    }
    Ok(form)
}

/// `my-api` → `MY_API_TOKEN`
fn variable_named_after(name: &str) -> String {
    let upper = name.chars().map(|c| match c {
        c if c.is_ascii_alphanumeric() => c.to_ascii_uppercase(),
        _ => '_',
    });
    let upper: String = upper.collect();
    let first = if upper.starts_with(|c: char| c.is_ascii_digit()) {
        "_"
    } else {
        ""
    };
    format!("{first}{upper}_TOKEN")
}

pub(crate) fn bad_carriage(carriage: &Carriage) -> Option<String> {
    let token = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    let fits = |name: &str| !name.is_empty() && name.len() <= 64 && name.chars().all(token);
    let reserved = [
        "authorization",
        "cookie",
        "host",
        "connection",
        "content-length",
    ];
    match carriage {
        Carriage::Bearer | Carriage::Basic => None,
        Carriage::Query { name } if fits(name) => None,
        Carriage::Query { name } => Some(format!("`{name}` is no name of a parameter")),
        Carriage::Header { name } => {
            let is_reserved = reserved
                .iter()
                .any(|other| name.eq_ignore_ascii_case(other));
            let is_bad = !fits(name) || is_reserved;
            is_bad.then(|| format!("a secret cannot be the whole of header `{name}`"))
        }
    }
}

pub(crate) fn bad_variable(name: &str) -> Option<String> {
    let fits = |c: char| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_';
    let is_name = !name.is_empty()
        && name.len() <= VARIABLE_CHARS_MAX
        && name.chars().all(fits)
        && !name.starts_with(|c: char| c.is_ascii_digit());
    if !is_name {
        return Some(format!(
            "`{name}` is no name of a variable: A-Z, 0-9 and `_`"
        ));
    }
    let is_proxy = name.ends_with("_PROXY");
    let starts = RESERVED_PREFIXES
        .iter()
        .any(|prefix| name.starts_with(prefix));
    let is_reserved = is_proxy || starts || RESERVED_VARIABLES.contains(&name);
    is_reserved.then(|| format!("variable `{name}` means something else"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_variable_is_named_after_its_account() {
        assert_eq!(variable_named_after("my-api.v2"), "MY_API_V2_TOKEN");
        assert_eq!(bad_variable(&variable_named_after("2nd")), None);
    }

    #[test]
    fn no_variable_that_decides_what_runs_is_overwritten() {
        for name in [
            "PATH",
            "LD_PRELOAD",
            "HTTPS_PROXY",
            "a",
            "A B",
            "",
            "1A",
            "SSL_CERT_FILE",
        ] {
            assert!(bad_variable(name).is_some(), "{name}");
        }
        assert_eq!(bad_variable("STRIPE_KEY"), None);
    }

    #[test]
    fn a_secret_is_never_the_whole_of_a_header_that_means_more() {
        let header = |name: &str| Carriage::Header {
            name: name.to_owned(),
        };
        for name in ["authorization", "Cookie", "host", "a b", "", "x\r\ny"] {
            assert!(bad_carriage(&header(name)).is_some(), "{name}");
        }
        assert_eq!(bad_carriage(&header("X-Auth-Token")), None);
        let query = |name: &str| Carriage::Query {
            name: name.to_owned(),
        };
        assert!(bad_carriage(&query("a&b")).is_some());
        assert_eq!(bad_carriage(&query("api_key")), None);
    }
}
