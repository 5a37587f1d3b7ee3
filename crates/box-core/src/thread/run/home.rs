//! Puts an agent's files into the home of a box before the agent first starts.
//!
//! They are written from inside, as the box's own user: the host never follows a path a box made.
//! One of them tells the agent where it is; nobody types that to it (B38–B41).

use super::RunError;
use crate::agents::AgentProfile;
use crate::boxes::BoxRecord;
use crate::host::Host;
use crate::inside::{self, Inside};
use std::time::Duration;

const WRITE_WAIT: Duration = Duration::from_secs(20);

/// Says what a box is, what is blocked and what never to do in one.
const CONTEXT: &str = include_str!("../../../../../agents/context.md");

/// `$1` is the path below the home, `$2` the file's mode, the content comes on standard input. A file
/// that is there is the box's own and stays. Constant: nothing a person typed is ever part of it.
const SCRIPT: &str = r#"umask 077 && cd && mkdir -p -- "${1%/*}" && set -C && { [ -e "$1" ] || { cat > "$1" && chmod "$2" -- "$1"; }; }"#;

const OF_ITS_USER: &str = "0600";
const FOR_EVERYBODY: &str = "0644";

/// Writes the files the profile has, unless they are there.
///
/// # Errors
/// [`RunError::Home`] names the file.
pub(super) async fn place(
    host: &Host,
    record: &BoxRecord,
    profile: &AgentProfile,
) -> Result<(), RunError> {
    for (file, content, mode) in files(profile) {
        let content = content.as_bytes().to_vec();
        write(host, record, (file, mode), content).await?;
    }
    Ok(())
}

/// Writes a conversation where its agent looks for it, unless it is there.
///
/// # Errors
/// [`RunError::Home`] names the file.
pub(super) async fn lay(
    host: &Host,
    record: &BoxRecord,
    path: &str,
    content: Vec<u8>,
) -> Result<(), RunError> {
    write(host, record, (path, OF_ITS_USER), content).await
}

async fn write(
    host: &Host,
    record: &BoxRecord,
    (file, mode): (&str, &str),
    content: Vec<u8>,
) -> Result<(), RunError> {
    // With a folder before it, so that there is always one to make.
    let path = format!("./{file}");
    let inside = Inside {
        command: ["sh", "-c", SCRIPT, "sh", &path, mode]
            .map(str::to_owned)
            .to_vec(),
        env: Vec::new(),
        input: content,
        deadline: WRITE_WAIT,
    };
    inside::run(host, record, inside)
        .await
        .map_err(|source| RunError::Home {
            name: record.name.clone(),
            path: file.to_owned(),
            source,
        })
        .map(drop)
}

/// Path below the home, content and mode of each.
fn files(profile: &AgentProfile) -> impl Iterator<Item = (&str, &str, &'static str)> {
    let context = profile.context.as_deref();
    let own = profile.files.iter();
    own.map(|file| (file.path.as_str(), file.content.as_str(), OF_ITS_USER))
        .chain(context.map(|path| (path, CONTEXT, FOR_EVERYBODY)))
}

#[cfg(test)]
mod tests {
    use super::SCRIPT;
    use std::io::Write as _;
    use std::path::Path;
    use std::process::Stdio;

    #[expect(
        clippy::disallowed_methods,
        reason = "the script's own shell, as a box has it"
    )]
    fn script(home: &Path, path: &str, content: &str) -> bool {
        let mut child = std::process::Command::new("sh")
            .args(["-c", SCRIPT, "sh", path, super::OF_ITS_USER])
            .env("HOME", home)
            .stdin(Stdio::piped())
            .spawn()
            .unwrap();
        child
            .stdin
            .take()
            .unwrap()
            .write_all(content.as_bytes())
            .unwrap();
        child.wait().unwrap().success()
    }

    #[test]
    fn a_file_is_written_once_and_never_over_the_boxes_own() {
        let home = tempfile::tempdir().unwrap();
        assert!(script(home.path(), "./.claude/settings.json", "ours"));
        let written = home.path().join(".claude/settings.json");
        assert_eq!(std::fs::read_to_string(&written).unwrap(), "ours");
        assert!(script(home.path(), "./.claude/settings.json", "again"));
        assert_eq!(std::fs::read_to_string(&written).unwrap(), "ours");
        assert!(script(home.path(), "./plain", "x"));
        assert_eq!(
            std::fs::read_to_string(home.path().join("plain")).unwrap(),
            "x"
        );
    }

    #[test]
    fn every_agent_with_a_model_is_told_where_it_is() {
        for profile in crate::agents::profiles() {
            let told = super::files(profile).any(|(_, content, _)| content == super::CONTEXT);
            assert_eq!(told, profile.credential.is_some(), "{}", profile.name);
        }
        for word in [
            "box policy set",
            ".box/",
            "box drill",
            "not_listed",
            "placeholder",
        ] {
            assert!(super::CONTEXT.contains(word), "{word}");
        }
    }
}
