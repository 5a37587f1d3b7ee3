//! The logins this user has already: the files docker and podman keep, and their helpers
//! (containers-auth.json(5); docker documentation, *docker login*).
//!
//! They are read anew for every pull, handed to the registry they are for and forgotten.

mod keychain;

use super::name::OciName;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Deserializer};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use zeroize::Zeroizing;

/// Largest such file, bytes.
const FILE_BYTES_MAX: u64 = 1 << 20;
/// What docker calls its own registry in its file and to helpers.
const DOCKERS_OWN: &str = "https://index.docker.io/v1/";

/// A login. It cannot be printed.
pub(in crate::images) enum Login {
    Nobody,
    Password {
        user: String,
        secret: Zeroizing<String>,
    },
    /// A refresh token, to be exchanged where the registry says.
    Token(Zeroizing<String>),
}

/// Where logins are kept.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(in crate::images) struct Logins {
    files: Vec<PathBuf>,
    /// Folders that helpers are looked for in, as `PATH` has them.
    path: Option<OsString>,
}

/// Why a login could not be had.
#[derive(Debug, thiserror::Error)]
pub(in crate::images) enum LoginError {
    #[error("could not read the logins in `{}`: {why}", path.display())]
    File { path: PathBuf, why: String },
    #[error("could not ask `docker-credential-{helper}` for the login of `{registry}`: {why}")]
    Helper {
        helper: String,
        registry: String,
        why: String,
    },
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Kept {
    auths: BTreeMap<String, Entry>,
    creds_store: String,
    cred_helpers: BTreeMap<String, String>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "lowercase", default)]
struct Entry {
    #[serde(deserialize_with = "secret")]
    auth: Zeroizing<String>,
    #[serde(deserialize_with = "secret")]
    identitytoken: Zeroizing<String>,
    username: String,
    #[serde(deserialize_with = "secret")]
    password: Zeroizing<String>,
}

/// A text that is wiped when dropped.
pub(super) fn secret<'de, D: Deserializer<'de>>(from: D) -> Result<Zeroizing<String>, D::Error> {
    String::deserialize(from).map(Zeroizing::new)
}

impl Logins {
    /// Those of the user this process runs as; `variable` reads the environment.
    pub(in crate::images) fn of_user(variable: &dyn Fn(&str) -> Option<OsString>) -> Self {
        let folder = |name: &str| {
            variable(name)
                .filter(|value| !value.is_empty())
                .map(PathBuf::from)
        };
        let home = folder("HOME");
        let runtime = folder("XDG_RUNTIME_DIR").unwrap_or_else(|| {
            let uid = crate::rootless::outside_uid(rustix::process::geteuid().as_raw());
            PathBuf::from(format!("/run/containers/{uid}"))
        });
        let in_home = |below: &str| home.as_ref().map(|home| home.join(below));
        let config = folder("XDG_CONFIG_HOME").or_else(|| in_home(".config"));
        let docker = folder("DOCKER_CONFIG").or_else(|| in_home(".docker"));
        // podman keeps `auth.json` right in the folder it makes when there is no runtime folder.
        let files = [
            folder("REGISTRY_AUTH_FILE"),
            Some(runtime.join("containers/auth.json")),
            Some(runtime.join("auth.json")),
            config.map(|config| config.join("containers/auth.json")),
            docker.map(|docker| docker.join("config.json")),
        ];
        Self {
            files: files.into_iter().flatten().collect(),
            path: variable("PATH"),
        }
    }

    #[cfg(test)]
    pub(in crate::images) fn in_file(file: &Path, path: Option<OsString>) -> Self {
        Self {
            files: vec![file.to_owned()],
            path,
        }
    }

    /// The login for an image: the first file that has one, in it the most specific entry.
    pub(in crate::images) fn of(&self, name: &OciName) -> Result<Login, LoginError> {
        for file in &self.files {
            let login = self.in_one(file, name)?;
            if !matches!(login, Login::Nobody) {
                return Ok(login);
            }
        }
        Ok(Login::Nobody)
    }

    fn in_one(&self, path: &Path, name: &OciName) -> Result<Login, LoginError> {
        let failed = |why: String| LoginError::File {
            path: path.to_owned(),
            why,
        };
        let Some(text) = read(path).map_err(|error| failed(error.to_string()))? else {
            return Ok(Login::Nobody);
        };
        let kept: Kept =
            serde_json::from_slice(&text).map_err(|error| failed(error.to_string()))?;
        let registry = name.registry();
        let helper = kept
            .cred_helpers
            .iter()
            .find(|(key, _)| plain(key) == registry)
            .map(|(_, helper)| helper);
        if let Some(helper) = helper {
            return self.ask(helper, registry);
        }
        for wanted in scopes(name) {
            let entry = kept.auths.iter().find(|(key, _)| plain(key) == wanted);
            let login = match entry {
                Some((_, entry)) => login(entry).map_err(failed)?,
                None => Login::Nobody,
            };
            if !matches!(login, Login::Nobody) {
                return Ok(login);
            }
        }
        if kept.creds_store.is_empty() {
            return Ok(Login::Nobody);
        }
        self.ask(&kept.creds_store, registry)
    }

    fn ask(&self, helper: &str, registry: &str) -> Result<Login, LoginError> {
        let key = if registry == "docker.io" {
            DOCKERS_OWN
        } else {
            registry
        };
        keychain::ask(helper, key, self.path.as_deref()).map_err(|why| LoginError::Helper {
            helper: helper.chars().take(64).collect(),
            registry: registry.to_owned(),
            why,
        })
    }
}

/// `host/a/b`, `host/a`, `host`: podman keeps logins for parts of a registry too.
fn scopes(name: &OciName) -> Vec<String> {
    let whole = format!("{}/{}", name.registry(), name.repository());
    let mut scopes = vec![whole.clone()];
    let mut rest = whole.as_str();
    while let Some((above, _)) = rest.rsplit_once('/') {
        scopes.push(above.to_owned());
        rest = above;
    }
    scopes
}

/// A key of docker's file, which may be an address, as a registry is written.
fn plain(key: &str) -> &str {
    let bare = key
        .strip_prefix("https://")
        .or_else(|| key.strip_prefix("http://"));
    let host = match bare {
        // An address: its path says which version of the protocol was spoken.
        Some(bare) => bare.split_once('/').map_or(bare, |(host, _)| host),
        None => key.trim_end_matches('/'),
    };
    match host {
        "index.docker.io" | "registry-1.docker.io" => "docker.io",
        host => host,
    }
}

fn login(entry: &Entry) -> Result<Login, String> {
    if !entry.identitytoken.is_empty() {
        return Ok(Login::Token(entry.identitytoken.clone()));
    } else if !entry.username.is_empty() {
        return Ok(Login::Password {
            user: entry.username.clone(),
            secret: entry.password.clone(),
        });
    } else if entry.auth.is_empty() {
        return Ok(Login::Nobody);
    }
    let bad = || "a login in it is not `user:password` in base64".to_owned();
    let bytes = Zeroizing::new(STANDARD.decode(entry.auth.as_bytes()).map_err(|_| bad())?);
    let text = std::str::from_utf8(&bytes).map_err(|_| bad())?;
    let (user, secret) = text.split_once(':').ok_or_else(bad)?;
    Ok(Login::Password {
        user: user.to_owned(),
        // Some of docker's versions wrote padding of zero bytes.
        secret: Zeroizing::new(secret.trim_matches('\0').to_owned()),
    })
}

/// `None` when there is no such file, or it is somebody else's.
fn read(path: &Path) -> io::Result<Option<Zeroizing<Vec<u8>>>> {
    let absent = [
        io::ErrorKind::NotFound,
        io::ErrorKind::PermissionDenied,
        io::ErrorKind::NotADirectory,
    ];
    let file = match File::open(path) {
        Err(error) if absent.contains(&error.kind()) => return Ok(None),
        file => file?,
    };
    let found = file.metadata()?;
    if !found.is_file() || found.len() > FILE_BYTES_MAX {
        return Err(io::Error::other("it is no small file"));
    }
    // Sized beforehand, so that no copy is left behind by growing.
    let bytes = usize::try_from(found.len()).unwrap_or_default();
    let mut text = Zeroizing::new(Vec::with_capacity(bytes + 1));
    file.take(FILE_BYTES_MAX).read_to_end(&mut text)?;
    Ok(Some(text))
}

#[cfg(test)]
mod tests;
