//! An entry of the ACP registry (`agent.json`: id, name, `distribution`) as a profile.
//!
//! It says how a program is started and nothing of accounts, hosts or modes; what the agent wants
//! shows in `box net log`, and goes into the profile by hand.

use super::own::Fault;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

/// As docs/rfds/acp-agent-registry.mdx of the protocol has it; other keys are for catalogues.
#[derive(Debug, Deserialize)]
struct Entry {
    id: String,
    name: String,
    distribution: Distribution,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Distribution {
    npx: Option<Launch>,
    uvx: Option<Launch>,
    binary: Option<serde_json::Value>,
}

#[derive(Debug, Deserialize)]
struct Launch {
    package: String,
    #[serde(default)]
    args: Vec<String>,
    #[serde(default)]
    env: BTreeMap<String, String>,
}

/// The text of a profile: what was given, or what an entry of the registry makes.
pub(super) fn profile_of(file: &Path, text: String) -> Result<String, Fault> {
    let json = file.extension().is_some_and(|ending| ending == "json");
    if !json && !text.trim_start().starts_with('{') {
        return Ok(text);
    }
    let fault = |line: Option<usize>, what: String| Fault {
        file: file.to_owned(),
        line,
        what,
    };
    let entry: Entry = serde_json::from_str(&text).map_err(|error| {
        let line = Some(error.line()).filter(|line| *line > 0);
        fault(line, format!("no entry of the ACP registry: {error}"))
    })?;
    let of = &entry.distribution;
    let (first, package): (&[&str], _) = match (&of.npx, &of.uvx, &of.binary) {
        (Some(package), _, _) => (&["npx", "--yes"], package),
        (None, Some(package), _) => (&["uvx"], package),
        (None, None, Some(_)) => {
            let what = "it comes as an archive, which is not fetched here: put its program into the \
                        box and write a profile with its path as `command`";
            return Err(fault(None, what.to_owned()));
        }
        (None, None, None) => return Err(fault(None, "it says no way to start it".to_owned())),
    };
    let program = first.iter().map(|word| (*word).to_owned());
    let package_name = std::iter::once(package.package.clone());
    let command: Vec<String> = program
        .chain(package_name)
        .chain(package.args.iter().cloned())
        .collect();
    written(&entry, &command, &package.env)
        .ok_or_else(|| fault(None, "it has control characters in it".to_owned()))
}

/// A string of JSON is one of TOML, as long as nothing in it is a control character.
fn written(entry: &Entry, command: &[String], env: &BTreeMap<String, String>) -> Option<String> {
    let quoted = |text: &str| {
        let plain = !text.chars().any(char::is_control);
        plain.then(|| serde_json::Value::from(text).to_string())
    };
    let words: Option<Vec<String>> = command.iter().map(|word| quoted(word)).collect();
    let mut text = format!(
        "# From the ACP registry. `hosts` are the names it needs to reach; `box net log` shows what \
         was refused.\n\nname = {}\ntitle = {}\ncommand = [{}]\nhosts = []\n",
        quoted(&entry.id)?,
        quoted(&entry.name)?,
        words?.join(", ")
    );
    if !env.is_empty() {
        text.push_str("\n[env]\n");
    }
    for (name, value) in env {
        writeln!(text, "{} = {}", quoted(name)?, quoted(value)?).ok()?;
    }
    Some(text)
}
