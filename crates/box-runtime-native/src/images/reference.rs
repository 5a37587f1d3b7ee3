//! What a person types for an image, parsed.

use super::error::ImageError;
use std::path::{Component, Path, PathBuf};

/// Longest suite name.
const SUITE_CHARS_MAX: usize = 32;
/// Names up to this edit distance are offered when a name is unknown.
const DID_YOU_MEAN_DISTANCE_MAX: usize = 2;
/// Suites offered when a name is close to one; any other the archive has works as well.
const SUITES: [&str; 8] = [
    "bullseye", "bookworm", "trixie", "forky", "sid", "stable", "testing", "unstable",
];
const FORMS: &str =
    "images are `default`, `debian:<suite>` such as `debian:trixie`, and `file:/path/to/root.tar`";

/// Which image is meant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Reference {
    Default,
    /// The suite's name: `[a-z][a-z0-9-]*`.
    Debian(String),
    /// An absolute path on the host.
    File(PathBuf),
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
    } else if ["oci", "docker", "docker-archive"].contains(&kind) {
        return format!("images of registries are not read yet; {FORMS}");
    } else {
        match near(kind, &["default", "debian", "file"]) {
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
