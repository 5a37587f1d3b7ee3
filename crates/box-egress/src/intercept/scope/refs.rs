//! Whether a box may change a ref. Pure.

use super::why::Why;
use box_api::egress::github::{GithubScope, Repository, is_ref};

/// What is to become of a ref.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Change {
    /// There is none of this name; who serves it sees to that.
    Create,
    /// All its commits stay; who serves it sees to that.
    Forward,
    /// It may lose commits.
    Move,
    Delete,
}

/// What a change still needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Leave {
    Given,
    /// Given, if no commit is lost.
    IfForward,
}

/// `name` is the whole ref. A [`Change::Move`] of a branch is allowed under a condition.
pub(crate) fn judge(
    scope: &GithubScope,
    repository: &Repository,
    name: &str,
    change: Change,
) -> Result<Leave, Why> {
    if !scope.has(repository) {
        return Err(Why::Repository(repository.clone()));
    }
    if !is_ref(name) {
        return Err(Why::Unclear("git allows no ref of this name"));
    }
    let is_tag = name.starts_with("refs/tags/");
    if is_tag && !scope.tags {
        return Err(Why::Tag(name.to_owned()));
    }
    if !is_tag && !scope.covers(name) {
        return Err(Why::Ref {
            repository: repository.clone(),
            name: name.to_owned(),
        });
    }
    match change {
        Change::Delete if !scope.force => Err(Why::Delete(name.to_owned())),
        // A tag stays where it is.
        Change::Forward | Change::Move if is_tag && !scope.force => {
            Err(Why::Force(name.to_owned()))
        }
        Change::Move if !scope.force => Ok(Leave::IfForward),
        Change::Create | Change::Forward | Change::Move | Change::Delete => Ok(Leave::Given),
    }
}

/// A branch by its short name, as the REST and GraphQL interfaces take it.
pub(crate) fn branch(name: &str) -> Result<String, Why> {
    if name.starts_with("refs/") || name.starts_with("heads/") {
        return Err(Why::Unclear("a branch is named without `refs/heads/`"));
    }
    Ok(format!("refs/heads/{name}"))
}
