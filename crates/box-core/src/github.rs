//! What a box may write at GitHub: from its settings into what box-egress is told.

use crate::boxes::BoxRecord;
use box_api::control::Change;
use box_api::egress::github::{GithubScope, RefPattern};
use box_api::egress::{Binding, HostName};

/// Where the scope of a binding counts. Kept in step with box-egress, which judges these hosts in
/// any case: one that is missing here is one where nothing can be written.
const DOMAINS: [&str; 3] = ["github.com", "githubusercontent.com", "ghcr.io"];

/// Carries a change out that concerns GitHub; any other leaves `scope` as it is.
pub(crate) fn apply(scope: &mut GithubScope, change: &Change) {
    match change {
        Change::Github(repositories) => scope.repositories.clone_from(repositories),
        Change::GithubRefs(refs) => scope.refs.clone_from(refs),
        Change::GithubForce(force) => scope.force = *force,
        Change::GithubTags(tags) => scope.tags = *tags,
        Change::GithubWrites(writes) => scope.writes = *writes,
        Change::CpuMilli(_)
        | Change::MemoryBytes(_)
        | Change::Pids(_)
        | Change::DiskBytes(_)
        | Change::OpenFiles(_)
        | Change::TmpBytes(_)
        | Change::DeadlineMs(_)
        | Change::FreezeAfterMs(_)
        | Change::Nested(_)
        | Change::Accounts(_)
        | Change::Logins(_)
        | Change::NetBudgetBytes(_)
        | Change::NetConnections(_)
        | Change::OnSignal(_)
        | Change::NetSet(_)
        | Change::Priority(_)
        | Change::Budget(_)
        | Change::Undo(_)
        | Change::Title(_) => {}
    }
}

/// What a box may write now: where nobody named refs, those under the box's own name.
pub fn scope_of(record: &BoxRecord) -> GithubScope {
    let mut scope = record.settings.github.clone();
    if scope.refs.is_empty() {
        scope.refs.push(RefPattern::of_box(&record.name));
    }
    scope
}

/// What logins made inside may write: whatever they may, unless the box's owner named repositories.
pub(crate) fn login_scope(record: &BoxRecord) -> Option<GithubScope> {
    let is_said = !record.settings.github.repositories.is_empty();
    is_said.then(|| scope_of(record))
}

/// Puts the box's scope into a placeholder for GitHub.
pub(crate) fn scoped(mut binding: Binding, record: &BoxRecord) -> Binding {
    if binding.hosts.iter().any(is_github) {
        binding.github = Some(scope_of(record));
    }
    binding
}

fn is_github(host: &HostName) -> bool {
    let below = |domain: &&str| {
        let prefix = host.as_str().strip_suffix(*domain);
        prefix.is_some_and(|prefix| prefix.is_empty() || prefix.ends_with('.'))
    };
    DOMAINS.iter().any(below)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn github_is_told_by_whole_labels() {
        for (host, yes) in [
            ("github.com", true),
            ("api.github.com", true),
            ("raw.githubusercontent.com", true),
            ("notgithub.com", false),
            ("github.com.evil.test", false),
        ] {
            assert_eq!(is_github(&HostName::parse(host).unwrap()), yes, "{host}");
        }
    }
}
