//! Where this machine's npm gets packages from: registries, tokens, certificates.
//!
//! npm itself is asked where there is one, since only it knows all its sources and its default.
//! Without npm the same variables and files are read (npm documentation, *npmrc*, *config*). What
//! npm keeps to itself, tokens, is read from the files in any case.

use super::error::InstallError;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;
use zeroize::Zeroizing;

/// Largest npmrc read, bytes.
const FILE_BYTES_MAX: u64 = 1 << 20;
/// How long npm may take to say its configuration.
const ASK_TIME_MAX: Duration = Duration::from_secs(20);
/// Global npmrc where npm is not there to say it.
const GLOBAL: [&str; 2] = ["/etc/npmrc", "/usr/local/etc/npmrc"];

/// Reads a variable of the environment; handed in, so that tests decide it.
pub(super) type Variable<'a> = &'a dyn Fn(&str) -> Option<OsString>;

/// Key and value pairs of one source, or of all of them.
type Pairs = BTreeMap<String, String>;

/// The part of npm's configuration that downloads need. Holds tokens, so it cannot be printed.
pub(super) struct NpmConfig {
    /// Ends with `/`.
    registry: String,
    /// `@scope` → registry.
    scopes: Pairs,
    /// `//host/path/` → value of the `Authorization` header.
    tokens: BTreeMap<String, Zeroizing<String>>,
    pub(super) cafile: Option<PathBuf>,
    /// `https-proxy` of npm; absent: what the environment says.
    pub(super) proxy: Option<String>,
}

/// What npm says its configuration is, as JSON; `None` where there is no npm.
pub(super) async fn ask() -> Option<String> {
    let mut npm = tokio::process::Command::new("npm");
    npm.args(["config", "list", "--long", "--json"])
        .current_dir("/")
        .kill_on_drop(true);
    npm.stdin(Stdio::null()).stderr(Stdio::null());
    let output = tokio::time::timeout(ASK_TIME_MAX, npm.output())
        .await
        .ok()?
        .ok()?;
    output
        .status
        .success()
        .then(|| String::from_utf8(output.stdout).ok())?
}

impl NpmConfig {
    /// `None` when no registry is configured.
    ///
    /// # Errors
    /// [`InstallError::Config`].
    pub(super) fn read(
        variable: Variable<'_>,
        npm_says: Option<&str>,
    ) -> Result<Option<Self>, InstallError> {
        let mut all = match npm_says {
            Some(json) => said(json)?,
            None => from_environment(variable),
        };
        let user = all
            .get("userconfig")
            .map(PathBuf::from)
            .or_else(|| Some(PathBuf::from(variable("HOME")?).join(".npmrc")));
        let global = all.get("globalconfig").map(PathBuf::from);
        let files = user
            .into_iter()
            .chain(global)
            .chain(GLOBAL.map(PathBuf::from));
        for file in files {
            for (key, value) in parse(&read(&file), variable) {
                all.entry(key).or_insert(value);
            }
        }
        let Some(registry) = all.get("registry") else {
            return Ok(None);
        };
        let scope = |(key, value): (&String, &String)| {
            let name = key
                .strip_suffix(":registry")
                .filter(|name| name.starts_with('@'))?;
            Some(base(value).map(|value| (name.to_owned(), value)))
        };
        Ok(Some(Self {
            registry: base(registry)?,
            scopes: all.iter().filter_map(scope).collect::<Result<_, _>>()?,
            tokens: tokens(&all),
            cafile: all
                .get("cafile")
                .filter(|path| !path.is_empty())
                .map(PathBuf::from),
            proxy: ["https-proxy", "proxy"]
                .iter()
                .find_map(|key| all.get(*key))
                .cloned(),
        }))
    }

    /// The registry a package comes from.
    pub(super) fn registry_of(&self, package: &str) -> &str {
        let scope = package.split_once('/').map(|(scope, _)| scope);
        scope
            .and_then(|scope| self.scopes.get(scope))
            .unwrap_or(&self.registry)
    }

    /// The `Authorization` header for an address: that of the longest path it lies below.
    pub(super) fn authorization(&self, url: &str) -> Option<&str> {
        let rest = url.split_once(':').map_or(url, |(_, rest)| rest);
        let (_, token) = self
            .tokens
            .iter()
            .filter(|(place, _)| rest.starts_with(place.as_str()))
            .max_by_key(|(place, _)| place.len())?;
        Some(token)
    }
}

fn said(json: &str) -> Result<Pairs, InstallError> {
    let all: BTreeMap<String, serde_json::Value> =
        serde_json::from_str(json).map_err(|error| InstallError::Config {
            what: format!("npm's own answer: {error}"),
        })?;
    let text = |(key, value): (String, serde_json::Value)| {
        Some((
            key,
            value.as_str().filter(|text| !text.is_empty())?.to_owned(),
        ))
    };
    Ok(all.into_iter().filter_map(text).collect())
}

/// npm takes `npm_config_<key>` in either case.
fn from_environment(variable: Variable<'_>) -> Pairs {
    [
        "registry",
        "userconfig",
        "globalconfig",
        "cafile",
        "https-proxy",
        "proxy",
    ]
    .into_iter()
    .filter_map(|key| {
        let name = format!("npm_config_{}", key.replace('-', "_"));
        let value = variable(&name).or_else(|| variable(&name.to_ascii_uppercase()))?;
        Some((key.to_owned(), value.into_string().ok()?))
    })
    .filter(|(_, value)| !value.is_empty())
    .collect()
}

/// `key = value` lines; `${NAME}` stands for a variable and stays as it is without one.
fn parse(text: &str, variable: Variable<'_>) -> Pairs {
    text.lines()
        .map(str::trim)
        .filter(|line| !line.starts_with([';', '#', '[']))
        .filter_map(|line| line.split_once('='))
        .map(|(key, value)| {
            let value = value.trim();
            let bare = value
                .strip_prefix('"')
                .and_then(|value| value.strip_suffix('"'));
            (
                key.trim().to_owned(),
                expand(bare.unwrap_or(value), variable),
            )
        })
        .filter(|(_, value)| !value.is_empty())
        .collect()
}

fn expand(value: &str, variable: Variable<'_>) -> String {
    let mut out = String::with_capacity(value.len());
    let mut rest = value;
    while let Some((before, after)) = rest.split_once("${") {
        out.push_str(before);
        let Some((name, behind)) = after.split_once('}') else {
            return out + "${" + after;
        };
        match variable(name.trim_end_matches('?')).and_then(|value| value.into_string().ok()) {
            Some(known) => out.push_str(&known),
            None if name.ends_with('?') => {}
            None => out.extend(["${", name, "}"]),
        }
        rest = behind;
    }
    out + rest
}

fn tokens(all: &Pairs) -> BTreeMap<String, Zeroizing<String>> {
    let token = |(key, value): (&String, &String)| {
        let (place, kind) = key.strip_prefix("//")?.rsplit_once(':')?;
        let scheme = match kind {
            "_authToken" => "Bearer",
            "_auth" => "Basic",
            _ => return None,
        };
        let place = format!("//{}/", place.trim_end_matches('/'));
        Some((place, Zeroizing::new(format!("{scheme} {value}"))))
    };
    all.iter().filter_map(token).collect()
}

/// A registry's address, ending with `/`.
fn base(registry: &str) -> Result<String, InstallError> {
    let plain = registry.starts_with("https://") || registry.starts_with("http://");
    let fits = plain && !registry.contains(['?', '#', '@']) && registry.is_ascii();
    if !fits || registry.contains(char::is_whitespace) {
        return Err(InstallError::Config {
            what: "the registry is not a plain http address".to_owned(),
        });
    }
    Ok(format!("{}/", registry.trim_end_matches('/')))
}

fn read(path: &Path) -> Zeroizing<String> {
    let small = std::fs::metadata(path).is_ok_and(|found| found.len() <= FILE_BYTES_MAX);
    Zeroizing::new(if small {
        std::fs::read_to_string(path).unwrap_or_default()
    } else {
        String::new()
    })
}

#[cfg(test)]
mod tests;
