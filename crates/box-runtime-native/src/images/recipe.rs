//! What an image made here consists of: `images/*.toml`, part of the program.

use super::LAYOUT;
use super::index::hex_sha256;
use super::reference::Reference;
use serde::Deserialize;

const DEFAULT: &str = include_str!("../../../../images/default.toml");
const DEBIAN: &str = include_str!("../../../../images/debian.toml");

/// An image's recipe.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Recipe {
    /// Debian suite; a recipe without one takes it from the reference.
    #[serde(default)]
    pub(super) suite: String,
    /// Installed beside what is essential.
    pub(super) packages: Vec<String>,
    /// dpkg's `path-exclude` and `path-include` patterns.
    pub(super) exclude: Vec<String>,
    pub(super) include: Vec<String>,
}

impl Recipe {
    /// The recipe a reference stands for, unless it is something else than a recipe.
    pub(super) fn of(reference: &Reference) -> Option<Self> {
        match reference {
            Reference::Default => Some(Self::embedded(DEFAULT)),
            Reference::Debian(suite) => Some(Self {
                suite: suite.clone(),
                ..Self::embedded(DEBIAN)
            }),
            Reference::File(_) | Reference::Oci(_) | Reference::Built(_) | Reference::Digest(_) => {
                None
            }
        }
    }

    /// Changes whenever the recipe, or how recipes are followed, does.
    pub(super) fn stamp(&self) -> String {
        hex_sha256(&[
            &format!("box recipe, layout {LAYOUT}"),
            &format!("{self:?}"),
        ])
    }

    #[expect(
        clippy::expect_used,
        reason = "part of the program; a test parses each"
    )]
    fn embedded(text: &str) -> Self {
        toml::from_str(text).expect("embedded recipes are valid")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_embedded_recipes_are_valid_and_only_the_default_names_its_suite() {
        let default = Recipe::of(&Reference::Default).unwrap();
        assert!(!default.suite.is_empty());
        for package in [
            "ca-certificates",
            "curl",
            "git",
            "less",
            "procps",
            "python3",
        ] {
            assert!(
                default.packages.iter().any(|name| name == package),
                "{package}"
            );
        }
        assert_eq!(Recipe::embedded(DEBIAN).suite, "");
        let sid = Recipe::of(&Reference::Debian("sid".to_owned())).unwrap();
        assert_eq!(sid.suite, "sid");
        assert_ne!(sid.stamp(), default.stamp());
    }
}
