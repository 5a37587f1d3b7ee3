//! What a person types for an image, parsed.

use super::error::ImageError;
use super::oci::OciName;
use std::path::{Component, Path, PathBuf};

/// Longest suite name.
const SUITE_CHARS_MAX: usize = 32;
/// Names up to this edit distance are offered when a name is unknown.
const DID_YOU_MEAN_DISTANCE_MAX: usize = 2;
/// Suites offered when a name is close to one; any other the archive has works as well.
const SUITES: [&str; 8] = [
    "bullseye", "bookworm", "trixie", "forky", "sid", "stable", "testing", "unstable",
];
const FORMS: &str = "images are `default`, `debian:<suite>` such as `debian:trixie`, \
     `oci:<name>` such as `oci:alpine`, and `file:<archive>`";
const OCI_FORM: &str = "`oci:` takes a name such as `alpine`, `registry.example/team/app:1.2` or \
     `localhost:5000/app`";
/// Longest name of an image built here.
const BUILT_CHARS_MAX: usize = 63;

/// Which image is meant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Reference {
    Default,
    /// The suite's name: `[a-z][a-z0-9-]*`.
    Debian(String),
    /// An absolute path on the host.
    File(PathBuf),
    /// In a registry.
    Oci(OciName),
    /// Built here under a name: `[a-z0-9][a-z0-9._-]*`.
    Built(String),
    /// One that is here already, whatever it was made from: `sha256:<64 hex digits>`.
    Digest(String),
}

impl Reference {
    pub(super) fn parse(text: &str) -> Result<Self, ImageError> {
        let unknown = |hint: String| ImageError::NoSuchImage {
            image: text.to_owned(),
            hint,
        };
        match text.split_once(':') {
            None if text.is_empty() || text == "default" => Ok(Self::Default),
            Some(("debian", suite)) if is_suite(suite) => Ok(Self::Debian(suite.to_owned())),
            Some(("sha256", digest)) if is_digest(digest) => Ok(Self::Digest(digest.to_owned())),
            Some(("built", name)) if is_built_name(name) => Ok(Self::Built(name.to_owned())),
            Some(("oci", name)) => OciName::parse(name)
                .map(Self::Oci)
                .map_err(|why| unknown(format!("{why}; {OCI_FORM}"))),
            Some(("file", path)) => {
                let path = Path::new(path);
                let plain = path.components().all(|part| part != Component::ParentDir);
                if path.is_absolute() && plain && !text.contains('\0') {
                    Ok(Self::File(path.to_owned()))
                } else {
                    Err(unknown(
                        "`file:` takes an absolute path without `..`".to_owned(),
                    ))
                }
            }
            _ => Err(unknown(hint(text))),
        }
    }

    /// The one way to write it.
    pub(super) fn canonical(&self) -> String {
        match self {
            Self::Default => "default".to_owned(),
            Self::Debian(suite) => format!("debian:{suite}"),
            Self::File(path) => format!("file:{}", path.display()),
            Self::Oci(name) => format!("oci:{name}"),
            Self::Built(name) => format!("built:{name}"),
            Self::Digest(digest) => format!("sha256:{digest}"),
        }
    }
}

/// What to say about a suite the archive does not have.
pub(super) fn no_such_suite(suite: &str) -> ImageError {
    let image = format!("debian:{suite}");
    let hint = match near(suite, &SUITES) {
        Some(near) => format!("did you mean `debian:{near}`?"),
        None => "the Debian archive this machine is set up for has no such suite".to_owned(),
    };
    ImageError::NoSuchImage { image, hint }
}

pub(super) fn is_digest(text: &str) -> bool {
    text.len() == 64
        && text
            .bytes()
            .all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

fn is_built_name(text: &str) -> bool {
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    text.len() <= BUILT_CHARS_MAX
        && text.starts_with(plain)
        && text.chars().all(|c| plain(c) || ".-_".contains(c))
}

fn is_suite(text: &str) -> bool {
    text.len() <= SUITE_CHARS_MAX
        && text.starts_with(|c: char| c.is_ascii_lowercase())
        && text
            .chars()
            .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-')
}

fn hint(text: &str) -> String {
    let (kind, rest) = text.split_once(':').unwrap_or((text, ""));
    let meant = if kind.starts_with('/') {
        Some(format!("file:{text}"))
    } else if kind == "docker" {
        Some(format!("oci:{}", rest.trim_start_matches('/')))
    } else if ["oci-archive", "docker-archive"].contains(&kind) {
        Some(format!("file:{rest}"))
    } else {
        match near(kind, &["default", "debian", "file"]) {
            // A name as docker takes it: one that may well be in a registry.
            _ if rest.is_empty() && kind.contains('/') => Some(format!("oci:{kind}")),
            Some("debian") if is_suite(rest) => Some(format!("debian:{rest}")),
            Some("debian") => Some("debian:trixie".to_owned()),
            Some("file") if !rest.is_empty() => Some(format!("file:{rest}")),
            Some("default") if rest.is_empty() => Some("default".to_owned()),
            _ => near(text, &SUITES).map(|suite| format!("debian:{suite}")),
        }
    };
    meant.map_or_else(
        || FORMS.to_owned(),
        |meant| format!("did you mean `{meant}`? {FORMS}"),
    )
}

fn near<'known>(text: &str, known: &[&'known str]) -> Option<&'known str> {
    let distance = |name: &&'known str| strsim::damerau_levenshtein(text, name);
    let nearest = known.iter().copied().min_by_key(distance)?;
    (distance(&nearest) <= DID_YOU_MEAN_DISTANCE_MAX).then_some(nearest)
}
