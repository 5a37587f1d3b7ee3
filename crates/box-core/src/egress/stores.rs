//! What the programs of a box trust, in each form they want it: PEM with everything, PEM with what
//! was added, a key store for Java, a database for Chromium and its kin; and git's rewriting.
//!
//! Made when the certificates change; running boxes keep what they were started with.

mod der;
mod jks;
mod nss;

use super::ca::{Authority, CaError};
use super::roots::Roots;
use crate::paths::Paths;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

const BEGIN: &str = "-----BEGIN CERTIFICATE-----";
const END: &str = "-----END CERTIFICATE-----";

/// A certificate as it is signed (RFC 5280).
type Der = Vec<u8>;

/// Forges whose addresses for ssh name what https has under the same path. Ssh has no way out (D25).
const FORGES: &[&str] = &[
    "github.com",
    "gist.github.com",
    "gitlab.com",
    "bitbucket.org",
    "codeberg.org",
    "git.sr.ht",
    "gitea.com",
    "salsa.debian.org",
];

/// Writes the bundle (the system's roots, the extra ones and the CA) and everything made from it.
///
/// # Errors
/// [`CaError`] names the file.
pub(crate) fn write(paths: &Paths, roots: &Roots, authority: &Authority) -> Result<(), CaError> {
    let added = [&roots.extra_pem, &authority.cert_pem]
        .map(String::as_str)
        .concat();
    let all = format!("{}{added}", roots.system_pem);
    put(paths, &paths.git_config(), git_config().as_bytes())?;
    put(paths, &paths.added_roots(), added.as_bytes())?;
    // Written last: that it says the same means that the others were made from the same.
    let same = |path: PathBuf, text: &str| fs::read_to_string(path).is_ok_and(|it| it == text);
    let made = paths.java_roots().exists() && paths.nss_roots().exists();
    if made && same(paths.bundle(), &all) {
        return Ok(());
    }
    put(paths, &paths.java_roots(), &jks::store(&certificates(&all)))?;
    let file = |source| CaError::File {
        path: paths.nss_roots(),
        source,
    };
    let database = nss::database(&certificates(&added), &paths.tmp()).map_err(file)?;
    put(paths, &paths.nss_roots(), &database)?;
    put(paths, &paths.bundle(), all.as_bytes())
}

/// The certificates of a text, in order; what is none is left out.
fn certificates(pem: &str) -> Vec<Der> {
    let bodies = pem
        .split(BEGIN)
        .skip(1)
        .filter_map(|rest| rest.split_once(END));
    bodies
        .filter_map(|(body, _)| {
            let body: String = body.split_whitespace().collect();
            STANDARD.decode(body).ok()
        })
        .collect()
}

/// Git takes the longest address that fits, and the first of two as long: what a user has set for
/// the same addresses comes first (git-config(1), `insteadOf`). Over HTTP/2 git waits for itself for
/// ever when libcurl asks for more of a body that is over, which several of its versions do while
/// the connection takes no more (<https://github.com/git/git/pull/1608>).
fn git_config() -> String {
    let rules = FORGES.iter().map(|forge| {
        let forms = [
            format!("git@{forge}:"),
            format!("ssh://git@{forge}/"),
            format!("ssh://git@{forge}:22/"),
            format!("git+ssh://git@{forge}/"),
            format!("git://{forge}/"),
        ];
        let forms = forms.map(|form| format!("\tinsteadOf = {form}\n")).concat();
        format!("[url \"https://{forge}/\"]\n{forms}")
    });
    let version = "# A push over HTTP/2 can hang.\n[http]\n\tversion = HTTP/1.1\n";
    let why = "# Ssh and git have no way out of a box; https has.\n";
    let first = [version, why].map(str::to_owned);
    first.into_iter().chain(rules).collect()
}

/// Writes a file anew, under its name only when it is whole; one that says the same stays.
fn put(paths: &Paths, path: &Path, content: &[u8]) -> Result<(), CaError> {
    if fs::read(path).is_ok_and(|found| found == content) {
        return Ok(());
    }
    let name = path.file_name().unwrap_or_default();
    let born = paths.tmp().join(name);
    let written = || -> io::Result<()> {
        gone(&born)?;
        let mut file = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o644)
            .open(&born)?;
        file.write_all(content)?;
        file.sync_all()?;
        fs::rename(&born, path)
    };
    written().map_err(|source| CaError::File {
        path: path.to_owned(),
        source,
    })
}

/// What an interrupted run may have left goes.
fn gone(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        Ok(()) | Err(_) => Ok(()),
    }
}

#[cfg(test)]
mod tests;
