//! `--repo`: which addresses may be cloned, and the clone, inside the box.

use crate::boxes::BoxRecord;
use crate::host::Host;
use crate::inside::{self, Inside, InsideError};
use std::fmt;
use std::time::Duration;

const CLONE_WAIT: Duration = Duration::from_mins(15);
const URL_BYTES_MAX: usize = 2048;

/// An address git may clone from: always `http` or `https`, without an account in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct RepoUrl(String);

/// Why a repository was not cloned.
#[derive(Debug, thiserror::Error)]
pub enum RepoError {
    #[error("this is no address of a repository")]
    Form,
    #[error("an account belongs into no address")]
    Account,
    #[error(transparent)]
    Git(#[from] InsideError),
}

impl RepoError {
    /// What the person can do now.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Form => Some("use `https://host/path` or `git@host:path`".to_owned()),
            Self::Account => Some("leave the part before `@` out".to_owned()),
            Self::Git(InsideError::Code { code: 127, .. }) => {
                Some("the image of the box has no git".to_owned())
            }
            Self::Git(_) => None,
        }
    }
}

impl RepoUrl {
    /// `http(s)://host/path` as it is; `git@host:path`, `ssh://git@host/path` and
    /// `git://host/path` as `https://host/path`, for a box has no other way out (decision D25).
    ///
    /// # Errors
    /// [`RepoError::Form`] and [`RepoError::Account`].
    pub(super) fn parse(text: &str) -> Result<Self, RepoError> {
        let plain = |c: char| c.is_ascii_graphic() && !"\"'`<>\\^{|}".contains(c);
        if text.len() > URL_BYTES_MAX || text.starts_with('-') || !text.chars().all(plain) {
            return Err(RepoError::Form);
        }
        let (scheme, rest) = match text.split_once("://") {
            Some((scheme @ ("http" | "https"), rest)) => (scheme, rest.to_owned()),
            Some(("ssh" | "git", rest)) => (
                "https",
                rest.strip_prefix("git@").unwrap_or(rest).to_owned(),
            ),
            Some(_) => return Err(RepoError::Form),
            None => {
                let rest = text.strip_prefix("git@").ok_or(RepoError::Form)?;
                let (host, path) = rest.split_once(':').ok_or(RepoError::Form)?;
                ("https", format!("{host}/{path}"))
            }
        };
        let (host, path) = rest.split_once('/').ok_or(RepoError::Form)?;
        if host.contains('@') {
            return Err(RepoError::Account);
        }
        if host.is_empty() || path.is_empty() || host.starts_with(['-', '.']) {
            return Err(RepoError::Form);
        }
        Ok(Self(format!("{scheme}://{rest}")))
    }
}

impl fmt::Display for RepoUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Clones into the workspace, inside the box and with the way out it has.
///
/// # Errors
/// [`RepoError::Git`], with the last lines of git.
pub(super) async fn clone(host: &Host, record: &BoxRecord, url: &RepoUrl) -> Result<(), RepoError> {
    let command = ["git", "clone", "--", &url.0, "."]
        .map(str::to_owned)
        .to_vec();
    // Nobody is there to be asked for a password.
    let env = vec![("GIT_TERMINAL_PROMPT".to_owned(), "0".to_owned())];
    let inside = Inside {
        command,
        env,
        input: Vec::new(),
        deadline: CLONE_WAIT,
    };
    Ok(inside::run(host, record, inside).await?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_become_https_or_are_refused() {
        let parsed = |text: &str| {
            RepoUrl::parse(text)
                .map(|url| url.0)
                .map_err(|e| e.to_string())
        };
        let ok = |text: &str| Ok::<_, String>(text.to_owned());
        assert_eq!(
            parsed("https://forge.example/a/b.git"),
            ok("https://forge.example/a/b.git")
        );
        assert_eq!(
            parsed("http://forge.example:8080/a"),
            ok("http://forge.example:8080/a")
        );
        assert_eq!(
            parsed("git@forge.example:a/b.git"),
            ok("https://forge.example/a/b.git")
        );
        assert_eq!(
            parsed("ssh://git@forge.example/a/b"),
            ok("https://forge.example/a/b")
        );
        assert_eq!(
            parsed("git://forge.example/a"),
            ok("https://forge.example/a")
        );
        for bad in [
            "",
            "-u",
            "--upload-pack=x",
            "a",
            "/etc",
            "../x",
            "file:///etc",
            "ext::sh -c x",
            "https://",
            "https://host",
            "https:///x",
            "https://host/a b",
            "https://host/a\nb",
            "https://-x/y",
            "git@host",
            "ftp://host/x",
        ] {
            assert_eq!(
                parsed(bad),
                Err("this is no address of a repository".to_owned()),
                "{bad:?}"
            );
        }
        for account in [
            "https://user:secret@host/x",
            "https://token@host/x",
            "ssh://me@host/x",
        ] {
            assert_eq!(
                parsed(account),
                Err("an account belongs into no address".to_owned())
            );
        }
    }
}
