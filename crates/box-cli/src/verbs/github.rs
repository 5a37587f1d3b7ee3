//! What a box may write at GitHub, as it is typed and as it is shown.

use box_api::control::Change;
use box_api::egress::github::{
    GithubScope, GithubWrites, REF_PATTERNS_MAX, REPOSITORIES_MAX, RefPattern, Repository,
};

/// The options `new` and `run` share; their names are those of `box set`.
#[derive(Debug, Clone, Default, PartialEq, Eq, clap::Args)]
#[command(next_help_heading = "GitHub")]
#[group(skip)]
pub(super) struct Args {
    /// Repositories it may write to, such as `owner/repo,owner/other`; others it can only read
    #[arg(long, value_name = "REPOS", value_parser = repositories)]
    github: Option<GithubScope>,
    /// Refs it may write there, such as `fix/*`; by itself `box/<its name>/*`
    #[arg(long, value_name = "REFS", value_parser = refs)]
    github_refs: Option<GithubScope>,
    /// Let it delete its refs and take commits from them: `yes` or `no`
    #[arg(long, value_name = "YES|NO", value_parser = yes_or_no)]
    github_force: Option<bool>,
    /// Let it make tags: `yes` or `no`
    #[arg(long, value_name = "YES|NO", value_parser = yes_or_no)]
    github_tags: Option<bool>,
    /// Let it change `all` of those repositories, releases and settings too, or what is `listed`
    #[arg(long, value_name = "KINDS", value_parser = writes)]
    github_writes: Option<GithubWrites>,
}

impl Args {
    pub(super) fn says_something(&self) -> bool {
        *self != Self::default()
    }

    pub(super) fn scope(self) -> GithubScope {
        GithubScope {
            repositories: self.github.unwrap_or_default().repositories,
            refs: self.github_refs.unwrap_or_default().refs,
            force: self.github_force.unwrap_or_default(),
            tags: self.github_tags.unwrap_or_default(),
            writes: self.github_writes.unwrap_or_default(),
        }
    }
}

/// `owner/repo,owner/other`, or `none`. In a scope, for clap takes a list for several values.
fn repositories(text: &str) -> Result<GithubScope, String> {
    let repositories = list(text, "none", REPOSITORIES_MAX, |one| {
        Repository::parse(one).map_err(|error| error.to_string())
    });
    Ok(GithubScope {
        repositories: repositories.map_err(|why| format!("{why}, or `none`"))?,
        ..GithubScope::default()
    })
}

/// `box/web/*,fix`, or `default`.
fn refs(text: &str) -> Result<GithubScope, String> {
    let refs = list(text, "default", REF_PATTERNS_MAX, |one| {
        RefPattern::parse(one).map_err(|error| error.to_string())
    });
    Ok(GithubScope {
        refs: refs.map_err(|why| format!("{why}, or `default`"))?,
        ..GithubScope::default()
    })
}

fn list<T: PartialEq>(
    text: &str,
    nothing: &str,
    most: usize,
    read: fn(&str) -> Result<T, String>,
) -> Result<Vec<T>, String> {
    if text == nothing {
        return Ok(Vec::new());
    }
    let mut all = Vec::new();
    for one in text.split(',') {
        let one = read(one.trim()).map_err(|why| format!("a list in which {why}"))?;
        if !all.contains(&one) {
            all.push(one);
        }
    }
    if all.len() > most {
        return Err(format!("a list of {most} at most"));
    }
    Ok(all)
}

fn yes_or_no(text: &str) -> Result<bool, String> {
    match text {
        "yes" => Ok(true),
        "no" => Ok(false),
        _ => Err("`yes` or `no`".to_owned()),
    }
}

fn writes(text: &str) -> Result<GithubWrites, String> {
    match text {
        "listed" => Ok(GithubWrites::Listed),
        "all" => Ok(GithubWrites::All),
        _ => Err("`listed` (contents, pull requests, issues) or `all`".to_owned()),
    }
}

pub(super) fn read_repositories(text: &str) -> Result<Change, String> {
    repositories(text).map(|scope| Change::Github(scope.repositories))
}

pub(super) fn read_refs(text: &str) -> Result<Change, String> {
    refs(text).map(|scope| Change::GithubRefs(scope.refs))
}

pub(super) fn read_force(text: &str) -> Result<Change, String> {
    yes_or_no(text).map(Change::GithubForce)
}

pub(super) fn read_tags(text: &str) -> Result<Change, String> {
    yes_or_no(text).map(Change::GithubTags)
}

pub(super) fn read_writes(text: &str) -> Result<Change, String> {
    writes(text).map(Change::GithubWrites)
}

/// One line; empty where a box may write nothing and nobody said otherwise.
pub(super) fn shown(scope: &GithubScope, name: &str) -> String {
    if scope.is_default() {
        return String::new();
    }
    let joined = |all: Vec<&str>| all.join(", ");
    let repositories = joined(scope.repositories.iter().map(Repository::as_str).collect());
    let refs = joined(scope.refs.iter().map(RefPattern::as_str).collect());
    let mut text = if repositories.is_empty() {
        "writes nothing".to_owned()
    } else {
        format!("writes {repositories}")
    };
    text.push_str(" in ");
    if refs.is_empty() {
        text.extend(["refs/heads/box/", name, "/*"]);
    } else {
        text.push_str(&refs);
    }
    for (said, words) in [
        (scope.force, ", by force"),
        (scope.tags, ", tags"),
        (scope.writes == GithubWrites::All, ", every kind"),
    ] {
        if said {
            text.push_str(words);
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_read_and_strict() {
        let read = |text| repositories(text).map(|scope| scope.repositories);
        let names = |text| {
            read(text)
                .unwrap()
                .iter()
                .map(ToString::to_string)
                .collect::<Vec<_>>()
        };
        assert_eq!(names("Me/App, me/other,me/app"), ["me/app", "me/other"]);
        assert_eq!(read("none"), Ok(Vec::new()));
        for text in [
            "",
            "me",
            "me/app,",
            "me/app.git",
            "https://github.com/me/app",
        ] {
            assert!(read(text).is_err(), "{text}");
        }
        assert_eq!(refs("fix/*").unwrap().refs[0].as_str(), "refs/heads/fix/*");
        assert!(refs("f*").is_err());
    }

    #[test]
    fn scope_is_one_line() {
        let scope = GithubScope {
            force: true,
            ..repositories("me/app").unwrap()
        };
        assert_eq!(
            shown(&scope, "web"),
            "writes me/app in refs/heads/box/web/*, by force"
        );
        assert_eq!(shown(&GithubScope::default(), "web"), "");
    }
}
