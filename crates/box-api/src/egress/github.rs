//! What a box may write at GitHub: repositories, refs, and how. Reading is limited by the token alone.

use serde::{Deserialize, Serialize};
use std::fmt;

/// Repositories one box can be bound to.
pub const REPOSITORIES_MAX: usize = 64;
/// Patterns of refs one box can have.
pub const REF_PATTERNS_MAX: usize = 64;
/// Longest owner; GitHub's own limit is 39, with a company's suffix more.
const OWNER_CHARS_MAX: usize = 64;
/// GitHub's limit for the name of a repository.
const NAME_CHARS_MAX: usize = 100;
/// Longest ref that is judged.
const REF_BYTES_MAX: usize = 250;

/// What a box may write at GitHub. The default: nothing.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS, schemars::JsonSchema))]
pub struct GithubScope {
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub repositories: Vec<Repository>,
    /// Refs it may write there. In a box's settings none means [`RefPattern::of_box`]; towards
    /// box-egress none means none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub refs: Vec<RefPattern>,
    /// Refs may be deleted and lose commits.
    #[serde(default, skip_serializing_if = "is_no")]
    pub force: bool,
    /// Tags may be made, of any name.
    #[serde(default, skip_serializing_if = "is_no")]
    pub tags: bool,
    #[serde(default, skip_serializing_if = "GithubWrites::are_listed")]
    pub writes: GithubWrites,
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde passes a reference"
)]
fn is_no(yes: &bool) -> bool {
    !yes
}

/// Which kinds of writes a box may do in its repositories, beside refs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS, schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum GithubWrites {
    /// Contents, pull requests, issues and comments.
    #[default]
    Listed,
    /// Everything under `/repos/<owner>/<name>/` as well: releases, settings, secrets, keys.
    All,
}

impl GithubWrites {
    #[expect(
        clippy::trivially_copy_pass_by_ref,
        reason = "serde passes a reference"
    )]
    fn are_listed(&self) -> bool {
        *self == Self::Listed
    }
}

impl GithubScope {
    /// Whether nobody said anything.
    pub fn is_default(&self) -> bool {
        *self == Self::default()
    }

    /// Whether `repository` is one of those the box may write to.
    pub fn has(&self, repository: &Repository) -> bool {
        self.repositories.contains(repository)
    }

    /// Whether a pattern covers `name`, a whole ref such as `refs/heads/main`.
    pub fn covers(&self, name: &str) -> bool {
        is_ref(name) && self.refs.iter().any(|pattern| pattern.matches(name))
    }
}

/// Why a text is not the name of a repository.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum RepositoryError {
    #[error("a repository is written `owner/name`")]
    Form,
    #[error("an owner has 1 to {OWNER_CHARS_MAX} letters, digits, `-` and `_`")]
    Owner,
    #[error("the name of a repository has 1 to {NAME_CHARS_MAX} letters, digits, `-`, `_` and `.`")]
    Name,
    #[error("a repository is written without `.git`")]
    Suffix,
}

/// `owner/name`, lower case: GitHub knows no other difference. `owner/name.wiki` is the wiki, which
/// the repository does not include.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS, schemars::JsonSchema), ts(type = "string"))]
#[serde(try_from = "String", into = "String")]
pub struct Repository(String);

impl Repository {
    /// Accepts any case.
    ///
    /// # Errors
    /// [`RepositoryError`] says what the text should be.
    pub fn parse(text: &str) -> Result<Self, RepositoryError> {
        let (owner, name) = text.split_once('/').ok_or(RepositoryError::Form)?;
        if name.contains('/') {
            return Err(RepositoryError::Form);
        }
        Self::of(owner, name)
    }

    /// # Errors
    /// [`RepositoryError`] says what the parts should be.
    pub fn of(owner: &str, name: &str) -> Result<Self, RepositoryError> {
        let word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
        let fits = (1..=OWNER_CHARS_MAX).contains(&owner.len());
        if !fits || !owner.bytes().all(word) || owner.starts_with('-') {
            return Err(RepositoryError::Owner);
        }
        let fits = (1..=NAME_CHARS_MAX).contains(&name.len());
        let known = name.bytes().all(|byte| word(byte) || byte == b'.');
        if !fits || !known || name.bytes().all(|byte| byte == b'.') {
            return Err(RepositoryError::Name);
        }
        let name = name.to_ascii_lowercase();
        if name.as_bytes().ends_with(b".git") {
            return Err(RepositoryError::Suffix);
        }
        Ok(Self(format!("{}/{name}", owner.to_ascii_lowercase())))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Repository {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl From<Repository> for String {
    fn from(repository: Repository) -> Self {
        repository.0
    }
}

impl TryFrom<String> for Repository {
    type Error = RepositoryError;
    fn try_from(text: String) -> Result<Self, RepositoryError> {
        Self::parse(&text)
    }
}

/// Why a text is no pattern of refs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum RefPatternError {
    #[error("`*` stands at the end of a pattern, alone or after `/`")]
    Star,
    #[error("git allows no ref of this name")]
    Name,
    #[error("a whole ref is `refs/<kind>/<name>`")]
    Form,
}

/// `refs/heads/box/web/*`: a ref, or all below one. Written without `refs/` it is a branch.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS, schemars::JsonSchema), ts(type = "string"))]
#[serde(try_from = "String", into = "String")]
pub struct RefPattern(String);

impl RefPattern {
    /// # Errors
    /// [`RefPatternError`] says what the text should be.
    pub fn parse(text: &str) -> Result<Self, RefPatternError> {
        let whole = if text.starts_with("refs/") {
            text.to_owned()
        } else {
            format!("refs/heads/{text}")
        };
        // The star stands for a name, so that what git says of names holds for patterns.
        let sample = match whole.strip_suffix("/*") {
            Some(above) => format!("{above}/x"),
            None => whole.clone(),
        };
        if sample.contains('*') {
            return Err(RefPatternError::Star);
        }
        if sample.matches('/').count() < 2 {
            return Err(RefPatternError::Form);
        }
        if !is_ref(&sample) {
            return Err(RefPatternError::Name);
        }
        Ok(Self(whole))
    }

    /// What a box may write where nobody says anything: branches under its own name.
    pub fn of_box(name: &crate::BoxName) -> Self {
        Self(format!("refs/heads/box/{name}/*"))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    fn matches(&self, name: &str) -> bool {
        match self.0.strip_suffix('*') {
            Some(above) => name.len() > above.len() && name.starts_with(above),
            None => name == self.0,
        }
    }
}

impl fmt::Display for RefPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl From<RefPattern> for String {
    fn from(pattern: RefPattern) -> Self {
        pattern.0
    }
}

impl TryFrom<String> for RefPattern {
    type Error = RefPatternError;
    fn try_from(text: String) -> Result<Self, RefPatternError> {
        Self::parse(&text)
    }
}

/// Whether git allows this name of a ref (git-check-ref-format(1)), and it begins with `refs/`.
pub fn is_ref(name: &str) -> bool {
    let odd = |byte: u8| byte <= b' ' || byte == 0x7f || b"~^:?*[\\".contains(&byte);
    name.starts_with("refs/")
        && name.len() <= REF_BYTES_MAX
        && !name.bytes().any(odd)
        && !name.contains("..")
        && !name.contains("@{")
        && !name.ends_with('.')
        && name
            .split('/')
            .all(|part| !part.is_empty() && !part.starts_with('.') && !has_lock_suffix(part))
}

fn has_lock_suffix(part: &str) -> bool {
    part.as_bytes().ends_with(b".lock")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repository_is_named_one_way() {
        let parsed = |text: &str| Repository::parse(text).map(String::from);
        assert_eq!(parsed("Me/App.js"), Ok("me/app.js".into()));
        assert_eq!(parsed("me/app.wiki"), Ok("me/app.wiki".into()));
        for text in [
            "",
            "me",
            "me/",
            "/app",
            "me/app/x",
            "me/app.git",
            "me/app.GIT",
            "me/..",
            "me/.",
            "me/a b",
            "me/a%2fb",
            "-me/app",
            "m.e/app",
            "https://github.com/me/app",
            "me/äpp",
        ] {
            assert!(Repository::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn pattern_covers_what_it_says_and_no_more() {
        let scope = |pattern: &str| GithubScope {
            refs: vec![RefPattern::parse(pattern).unwrap()],
            ..GithubScope::default()
        };
        let below = scope("box/web/*");
        for name in ["refs/heads/box/web/x", "refs/heads/box/web/x/y"] {
            assert!(below.covers(name), "{name}");
        }
        for name in [
            "refs/heads/box/web",
            "refs/heads/box/web/",
            "refs/heads/box/web2/x",
            "refs/heads/main",
            "refs/tags/box/web/x",
            "refs/heads/box/web/../../main",
            "refs/heads/box/web//x",
            "refs/heads/Box/web/x",
            "heads/box/web/x",
        ] {
            assert!(!below.covers(name), "{name}");
        }
        assert!(scope("main").covers("refs/heads/main"));
        assert!(!scope("main").covers("refs/heads/main/x"));
        assert!(scope("*").covers("refs/heads/main"));
        for pattern in [
            "",
            "a*",
            "*/b",
            "a/*/b",
            "refs/*",
            "refs/heads",
            "a..b",
            "a b",
        ] {
            assert!(RefPattern::parse(pattern).is_err(), "{pattern}");
        }
    }
}
