//! Which packages an agent's pack is made of: `agents/<name>/pack.lock.json`.
//!
//! It is npm's own lock file (version 3) without `resolved`, since which registry is asked is the
//! machine's business. Made anew in an empty folder with the `package.json` its first entry shows:
//!
//! ```text
//! npm install --package-lock-only --ignore-scripts --omit-lockfile-registry-resolved
//! jq 'del(.packages[].funding)' package-lock.json > pack.lock.json
//! ```
//! Packages of other platforms stay in it, as npm leaves them, and are passed over here.

use super::error::InstallError;
use super::profile::AgentProfile;
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use serde::Deserialize;
use sha2::{Digest as _, Sha256};
use std::collections::BTreeMap;

/// The embedded lock files.
const EMBEDDED: [(&str, &str); 8] = [
    (
        "claude",
        include_str!("../../../../agents/claude/pack.lock.json"),
    ),
    (
        "codex",
        include_str!("../../../../agents/codex/pack.lock.json"),
    ),
    (
        "opencode",
        include_str!("../../../../agents/opencode/pack.lock.json"),
    ),
    (
        "gemini",
        include_str!("../../../../agents/gemini/pack.lock.json"),
    ),
    (
        "grok",
        include_str!("../../../../agents/grok/pack.lock.json"),
    ),
    (
        "kimi",
        include_str!("../../../../agents/kimi/pack.lock.json"),
    ),
    (
        "copilot",
        include_str!("../../../../agents/copilot/pack.lock.json"),
    ),
    (
        "qwen",
        include_str!("../../../../agents/qwen/pack.lock.json"),
    ),
];

const LOCKFILE_VERSION: u32 = 3;
const SHA512_BYTES: usize = 64;
/// How npm calls the C library our interpreter needs.
const LIBC: &str = "glibc";

/// An agent's packages for this machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Pack {
    pub(super) agent: String,
    pub(super) version: String,
    /// The folder's name below `agents/<name>/`: another lock file, another folder.
    pub(super) folder: String,
    /// Those with a platform, which are the large ones, first.
    pub(super) packages: Vec<Package>,
}

/// One package and where it goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Package {
    /// `node_modules/…`, clean.
    pub(super) path: String,
    pub(super) name: String,
    pub(super) version: String,
    pub(super) sha512: [u8; SHA512_BYTES],
    /// Files of it that are programs, relative to it and clean.
    pub(super) programs: Vec<String>,
}

/// Why a lock file cannot be used.
#[derive(Debug, thiserror::Error)]
pub(super) enum LockError {
    #[error("could not read the lock file")]
    Json(#[from] serde_json::Error),
    #[error("`{path}` in the lock file {why}")]
    Entry { path: String, why: &'static str },
    #[error("the lock file is of version {0}, not {LOCKFILE_VERSION}")]
    Version(u32),
    #[error("`{0}` has no build for this machine")]
    Platform(String),
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct LockFile {
    lockfile_version: u32,
    packages: BTreeMap<String, Entry>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Entry {
    version: Option<String>,
    integrity: Option<String>,
    resolved: Option<String>,
    /// Present where a package is installed under another name.
    name: Option<String>,
    optional: bool,
    link: bool,
    /// Command → file.
    bin: BTreeMap<String, String>,
    os: Words,
    cpu: Words,
    libc: Words,
}

/// npm writes one word alone or several in a list.
#[derive(Debug, Default, Deserialize)]
#[serde(untagged)]
enum Words {
    One(String),
    Many(Vec<String>),
    #[default]
    None,
}

impl Words {
    fn allow(&self, word: &str) -> bool {
        let list = match self {
            Self::One(one) => std::slice::from_ref(one),
            Self::Many(many) => many,
            Self::None => &[],
        };
        let refused = list.iter().any(|item| item.strip_prefix('!') == Some(word));
        let mut wanted = list.iter().filter(|item| !item.starts_with('!')).peekable();
        !refused && (wanted.peek().is_none() || wanted.any(|item| item == word))
    }

    fn is_any(&self) -> bool {
        matches!(self, Self::None)
    }
}

impl Pack {
    /// The pack of an agent; `None` for one that is built in.
    ///
    /// # Errors
    /// [`InstallError::Platform`].
    #[expect(
        clippy::panic,
        reason = "the files are part of the program; a test reads each"
    )]
    pub(super) fn of(profile: &AgentProfile) -> Result<Option<Self>, InstallError> {
        let Some((agent, text)) = EMBEDDED.iter().find(|(name, _)| *name == profile.name) else {
            return Ok(None);
        };
        match Self::parse(agent, text, cpu()) {
            Ok(pack) => Ok(Some(pack)),
            Err(LockError::Platform(package)) => Err(InstallError::Platform {
                agent: (*agent).to_owned(),
                package,
            }),
            Err(error) => panic!("embedded lock files are valid: {error}"),
        }
    }

    fn parse(agent: &str, text: &str, cpu: &str) -> Result<Self, LockError> {
        let file: LockFile = serde_json::from_str(text)?;
        if file.lockfile_version != LOCKFILE_VERSION {
            return Err(LockError::Version(file.lockfile_version));
        }
        let root = file.packages.get("").and_then(|root| root.version.clone());
        let version = root.ok_or_else(|| bad("", "has no version"))?;
        let (mut packages, mut small) = (Vec::new(), Vec::new());
        for (path, entry) in file.packages.iter().filter(|(path, _)| !path.is_empty()) {
            let fits = entry.os.allow("linux") && entry.cpu.allow(cpu) && entry.libc.allow(LIBC);
            match (fits, entry.optional) {
                (true, _) if entry.os.is_any() => small.push(package(path, entry)?),
                (true, _) => packages.push(package(path, entry)?),
                (false, true) => {}
                (false, false) => return Err(LockError::Platform(path.clone())),
            }
        }
        packages.extend(small);
        let hash = Sha256::digest(text);
        let folder = format!(
            "{version}-{:02x}{:02x}{:02x}{:02x}",
            hash[0], hash[1], hash[2], hash[3]
        );
        Ok(Self {
            agent: agent.to_owned(),
            version,
            folder,
            packages,
        })
    }
}

fn package(path: &str, entry: &Entry) -> Result<Package, LockError> {
    if !path.strip_prefix("node_modules/").is_some_and(is_clean) {
        return Err(bad(path, "is not a clean path below `node_modules`"));
    }
    if entry.link || entry.resolved.is_some() {
        return Err(bad(path, "is a link or names its registry"));
    }
    let programs: Vec<String> = entry
        .bin
        .values()
        .map(|file| file.trim_start_matches("./").to_owned())
        .collect();
    if !programs.iter().all(|file| is_clean(file)) {
        return Err(bad(path, "has a program outside of itself"));
    }
    let own = path
        .rsplit_once("node_modules/")
        .map_or(path, |(_, own)| own);
    Ok(Package {
        path: path.to_owned(),
        name: entry.name.clone().unwrap_or_else(|| own.to_owned()),
        version: entry
            .version
            .clone()
            .ok_or_else(|| bad(path, "has no version"))?,
        sha512: entry
            .integrity
            .as_deref()
            .and_then(sha512)
            .ok_or_else(|| bad(path, "has no SHA-512"))?,
        programs,
    })
}

/// Relative, and every part of it a name.
fn is_clean(path: &str) -> bool {
    path.split('/')
        .all(|part| !part.is_empty() && part != "." && part != "..")
}

/// The SHA-512 of an integrity string such as `sha1-… sha512-…`.
fn sha512(integrity: &str) -> Option<[u8; SHA512_BYTES]> {
    let text = integrity
        .split_whitespace()
        .find_map(|item| item.strip_prefix("sha512-"))?;
    BASE64_STANDARD.decode(text).ok()?.try_into().ok()
}

fn bad(path: &str, why: &'static str) -> LockError {
    LockError::Entry {
        path: path.to_owned(),
        why,
    }
}

/// npm's name of this machine's processor.
fn cpu() -> &'static str {
    match std::env::consts::ARCH {
        "x86_64" => "x64",
        "aarch64" => "arm64",
        other => other,
    }
}

impl Package {
    /// `name@version`, for people.
    pub(super) fn title(&self) -> String {
        format!("{}@{}", self.name, self.version)
    }
}

#[cfg(test)]
mod tests;
