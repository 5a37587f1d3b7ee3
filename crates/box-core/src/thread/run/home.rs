//! Puts an agent's files into the home of a box before the agent first starts.
//!
//! They are written from inside, as the box's own user: the host never follows a path a box made.

use super::RunError;
use crate::agents::AgentProfile;
use crate::boxes::BoxRecord;
use crate::host::Host;
use crate::inside::{self, Inside};
use std::time::Duration;

const WRITE_WAIT: Duration = Duration::from_secs(20);

/// `$1` is the path below the home, the content comes on standard input. A file that is there is
/// the box's own and stays. Constant: nothing a person typed is ever part of it.
const SCRIPT: &str =
    r#"umask 077 && cd && mkdir -p -- "${1%/*}" && set -C && { [ -e "$1" ] || cat > "$1"; }"#;

/// Writes the files the profile has, unless they are there.
///
/// # Errors
/// [`RunError::Home`] names the file.
pub(super) async fn place(
    host: &Host,
    record: &BoxRecord,
    profile: &AgentProfile,
) -> Result<(), RunError> {
    for file in &profile.files {
        // With a folder before it, so that there is always one to make.
        let path = format!("./{}", file.path);
        let inside = Inside {
            command: ["sh", "-c", SCRIPT, "sh", &path]
                .map(str::to_owned)
                .to_vec(),
            env: Vec::new(),
            input: file.content.clone().into_bytes(),
            deadline: WRITE_WAIT,
        };
        inside::run(host, record, inside)
            .await
            .map_err(|source| RunError::Home {
                name: record.name.clone(),
                path: file.path.clone(),
                source,
            })?;
    }
    Ok(())
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
            .args(["-c", SCRIPT, "sh", path])
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
}
