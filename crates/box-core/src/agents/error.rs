//! Why an agent's pack could not be installed.

use box_runtime::unpack::UnpackError;
use std::io;

/// Why an agent's pack could not be installed.
#[derive(Debug, thiserror::Error)]
pub enum InstallError {
    #[error("could not install agent `{agent}`: no npm registry is configured on this machine")]
    NoRegistry { agent: String },
    #[error("could not install agent `{agent}`: it has no build of `{package}` for this machine")]
    Platform { agent: String, package: String },
    #[error("could not read the npm configuration: {what}")]
    Config { what: String },
    #[error("could not download `{package}`: {why}")]
    Download { package: String, why: String },
    #[error("`{package}` is not what the lock file names: its SHA-512 differs")]
    Integrity { package: String },
    #[error("could not unpack `{package}`: {source}")]
    Unpack {
        package: String,
        source: UnpackError,
    },
    #[error("could not {action}")]
    Store {
        action: &'static str,
        #[source]
        source: io::Error,
    },
    #[error("the installation was given up")]
    GivenUp,
}

impl InstallError {
    /// What the person can do now.
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            Self::NoRegistry { .. } => Some(
                "install npm, or set `npm_config_registry` or `registry=` in `~/.npmrc` to your \
                 registry's address",
            ),
            Self::Download { .. } => {
                Some("nothing was installed; check the registry and the way to it, then try again")
            }
            Self::Integrity { .. } => {
                Some("the registry serves something else than was locked; nothing was installed")
            }
            Self::Config { .. }
            | Self::Platform { .. }
            | Self::Unpack { .. }
            | Self::Store { .. }
            | Self::GivenUp => None,
        }
    }

    /// For `map_err` on what is done with the host's own files.
    pub(super) fn store<E: Into<io::Error>>(action: &'static str) -> impl FnOnce(E) -> Self {
        move |error| Self::Store {
            action,
            source: error.into(),
        }
    }
}
