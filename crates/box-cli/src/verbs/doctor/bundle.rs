//! `--bundle`: one tar with what a report needs, and nothing of what was done in boxes.
//!
//! The host's log holds no prompt and no secret (`box-server/src/log.rs`); only known fields of it are
//! taken, and whatever looks like a secret or leads to a person is replaced all the same.

use super::finding::Finding;
use crate::complaint::Complaint;
use crate::identity;
use box_server::paths::Paths;
use serde_json::{Map, Value};
use std::fs::File;
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

/// What of a log is taken: its end.
const LOG_BYTES_MAX: u64 = 256 << 10;
/// Fields of a line of the log.
const FIELDS: [&str; 6] = ["timestamp", "level", "target", "message", "error", "step"];
/// A longer word of letters and digits may be a secret.
const WORD_CHARS_MAX: usize = 31;
/// What secrets begin with.
const SECRET_STARTS: [&str; 8] = [
    "sk-",
    "ghp_",
    "gho_",
    "ghs_",
    "ghu_",
    "github_pat_",
    "glpat-",
    "xox",
];
const HIDDEN: &str = "<hidden>";

/// Writes the tar; a file that is there is not overwritten.
///
/// # Errors
/// When it is there already, or cannot be written.
pub(super) fn write(file: &Path, findings: &[Finding], paths: &Paths) -> Result<(), Complaint> {
    let could_not = |error: io::Error| {
        let title = format!("could not write `{}`", file.display());
        Complaint::failed("bundle", title).caused_by(error)
    };
    let made = File::options()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(file)
        .map_err(could_not)?;
    let home = std::env::var("HOME").unwrap_or_default();
    let hide = |text: &str| hidden(text, &home);
    let findings = serde_json::to_string_pretty(findings).unwrap_or_default();
    let logs = ["host.log", "host.log.1"].map(|name| {
        let lines = tail(&paths.log.join(name)).unwrap_or_default();
        lines.lines().filter_map(kept).collect::<String>()
    });
    let [log, older] = logs;
    let entries = [
        ("build.txt", format!("{}\n", identity::build())),
        ("findings.json", findings),
        ("machine.txt", machine()),
        ("host.log", log),
        ("host.log.1", older),
    ];
    let mut tar = tar::Builder::new(made);
    for (name, text) in entries {
        append(&mut tar, name, hide(&text).as_bytes()).map_err(could_not)?;
    }
    let done = tar.into_inner().and_then(|mut made| made.flush());
    done.map_err(could_not)
}

fn append(tar: &mut tar::Builder<File>, name: &str, bytes: &[u8]) -> io::Result<()> {
    let mut header = tar::Header::new_gnu();
    header.set_size(bytes.len() as u64);
    header.set_mode(0o644);
    header.set_cksum();
    tar.append_data(&mut header, format!("box-report/{name}"), bytes)
}

/// Of the machine, not of whoever uses it.
fn machine() -> String {
    let files = [
        "/proc/version",
        "/etc/os-release",
        "/proc/self/cgroup",
        "/proc/sys/user/max_user_namespaces",
        "/proc/sys/kernel/apparmor_restrict_unprivileged_userns",
        "/proc/sys/kernel/unprivileged_userns_clone",
        "/sys/kernel/security/lsm",
        "/proc/self/uid_map",
    ];
    let told = files.map(|file| {
        let text = std::fs::read_to_string(file).unwrap_or_else(|error| error.to_string());
        format!("# {file}\n{}\n", text.trim_end())
    });
    told.concat()
}

fn tail(path: &Path) -> Option<String> {
    let mut file = File::open(path).ok()?;
    let length = file.metadata().ok()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(LOG_BYTES_MAX)))
        .ok()?;
    let mut bytes = Vec::new();
    file.take(LOG_BYTES_MAX).read_to_end(&mut bytes).ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

/// A line of the log with the fields that are known; one that is no line of ours is left out.
fn kept(line: &str) -> Option<String> {
    let all: Map<String, Value> = serde_json::from_str(line).ok()?;
    let known: Map<String, Value> = all
        .into_iter()
        .filter(|(name, _)| FIELDS.contains(&name.as_str()))
        .collect();
    Some(serde_json::to_string(&known).ok()? + "\n")
}

/// Without home folders, and without words that look like a secret.
fn hidden(text: &str, home: &str) -> String {
    let text = if home.len() > 1 {
        text.replace(home, "~")
    } else {
        text.to_owned()
    };
    let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '+' | '=');
    let mut out = String::with_capacity(text.len());
    let mut rest = text.as_str();
    while !rest.is_empty() {
        let word = rest.find(|c| !is_part(c)).unwrap_or(rest.len());
        let (word, after) = rest.split_at(word);
        out.push_str(if looks_secret(word) { HIDDEN } else { word });
        let other = after.find(is_part).unwrap_or(after.len());
        let (other, after) = after.split_at(other);
        out.push_str(other);
        rest = after;
    }
    out
}

fn looks_secret(word: &str) -> bool {
    let has = |test: fn(char) -> bool| word.chars().any(test);
    let is_random = word.len() > WORD_CHARS_MAX
        && has(|c| c.is_ascii_digit())
        && has(|c| c.is_ascii_alphabetic());
    is_random || SECRET_STARTS.iter().any(|start| word.starts_with(start))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_that_looks_like_a_secret_or_a_home_stays() {
        let text = "at /home/ann/x: Bearer sk-ant-oat01-AbC, ghp_1, \
                    dGhpcyBpcyBhIHNlY3JldCBvZiBzb21lIGtpbmQ5 but not sha256 or could-not-do-that";
        assert_eq!(
            hidden(text, "/home/ann"),
            "at ~/x: Bearer <hidden>, <hidden>, <hidden> but not sha256 or could-not-do-that"
        );
        assert_eq!(hidden("/a", "/"), "/a");
    }

    #[test]
    fn only_known_fields_of_the_log_are_taken() {
        let line = r#"{"level":"WARN","message":"left-overs stay","path":"/secret/project","prompt":"fix my diary"}"#;
        assert_eq!(
            kept(line).unwrap(),
            "{\"level\":\"WARN\",\"message\":\"left-overs stay\"}\n"
        );
        assert_eq!(kept("panicked at my diary"), None);
    }

    #[test]
    fn a_bundle_has_the_findings_and_nothing_of_the_boxes() {
        let folder = tempfile::tempdir().unwrap();
        let paths = Paths::below(folder.path()).unwrap();
        std::fs::create_dir_all(&paths.log).unwrap();
        let log = "{\"message\":\"the host listens\",\"name\":\"my-diary\"}\nmy diary\n";
        std::fs::write(paths.log.join("host.log"), log).unwrap();
        let file = folder.path().join("report.tar");
        let findings = [Finding::good("kernel", "Linux")];
        write(&file, &findings, &paths).unwrap();
        let bytes = std::fs::read(&file).unwrap();
        let text = String::from_utf8_lossy(&bytes);
        assert!(text.contains("the host listens") && text.contains("\"kernel\""));
        assert!(!text.contains("diary"), "{text}");
        let names: Vec<String> = tar::Archive::new(bytes.as_slice())
            .entries()
            .unwrap()
            .map(|entry| entry.unwrap().path().unwrap().display().to_string())
            .collect();
        assert!(names.iter().all(|name| name.starts_with("box-report/")));
        assert!(write(&file, &findings, &paths).is_err(), "overwritten");
    }
}
