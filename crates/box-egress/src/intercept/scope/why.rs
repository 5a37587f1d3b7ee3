//! Why a write at GitHub does not go through, in words for whoever sent it, with what its owner
//! would say to allow it.

use box_api::egress::github::Repository;

/// What a refusal says at most: it goes into a log as well.
const TEXT_CHARS_MAX: usize = 400;

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Why {
    #[error("github: this box may not write to `{0}`")]
    Repository(Repository),
    #[error("github: this box may not write `{name}` of `{repository}`")]
    Ref {
        repository: Repository,
        name: String,
    },
    #[error("github: this box may not make tags such as `{0}`")]
    Tag(String),
    #[error("github: this box may not delete `{0}`")]
    Delete(String),
    #[error("github: this box may not move `{0}` by force")]
    Force(String),
    #[error(
        "github: what was sent does not show that `{0}` keeps all its commits; \
         merge or rebase onto it, or take a new branch"
    )]
    Unproven(String),
    #[error("github: this box may not change `{what}` of `{repository}`")]
    Kind {
        repository: Repository,
        what: String,
    },
    #[error("github: a box writes to repositories only, and `{0}` is in none")]
    Outside(String),
    /// Whatever cannot be read as one thing is nothing that may pass.
    #[error("github: {0}")]
    Unclear(&'static str),
    #[error("github: this request has more than {mebibytes} MiB before it can be judged")]
    TooLong { mebibytes: usize },
    #[error("github: this box has too many writes at once")]
    Busy,
    #[error("github: the request broke off")]
    Broken,
}

impl Why {
    /// The setting that would allow it, where there is one.
    fn setting(&self) -> Option<String> {
        match self {
            Self::Repository(repository) => Some(format!("github={repository}")),
            Self::Ref { name, .. } => Some(format!("github-refs={name}")),
            Self::Tag(_) => Some("github-tags=yes".into()),
            Self::Delete(_) | Self::Force(_) | Self::Unproven(_) => Some("github-force=yes".into()),
            Self::Kind { .. } => Some("github-writes=all".into()),
            Self::Outside(_)
            | Self::Unclear(_)
            | Self::TooLong { .. }
            | Self::Busy
            | Self::Broken => None,
        }
    }

    /// One line without control characters.
    pub(crate) fn line(&self) -> String {
        let text = match self.setting() {
            Some(setting) => format!("{self}; its owner can allow it: box set <box> {setting}"),
            None => self.to_string(),
        };
        text.chars()
            .filter(|c| !c.is_control())
            .take(TEXT_CHARS_MAX)
            .collect()
    }
}
