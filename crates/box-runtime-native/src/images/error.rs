//! Why an image is not there.

use super::oci::credentials::LoginError;
use box_runtime::RuntimeError;
use box_runtime::unpack::UnpackError;
use std::io;

#[derive(Debug, thiserror::Error)]
pub(super) enum ImageError {
    #[error("there is no image `{image}`")]
    NoSuchImage { image: String, hint: String },
    #[error("image `{image}` is not here")]
    NotHere { image: String },
    #[error("image `{image}` was not built here")]
    NotBuilt { image: String },
    #[error("could not prepare image `{image}`")]
    Login { image: String, source: LoginError },
    #[error("could not prepare image `{image}`: the registry `{registry}` does not give it")]
    Denied {
        image: String,
        registry: String,
        hint: String,
    },
    #[error("could not prepare image `{image}`: {why}")]
    Registry { image: String, why: String },
    #[error("could not prepare image `{image}`: layer {number}: {source}")]
    Layer {
        image: String,
        number: usize,
        source: UnpackError,
    },
    #[error("could not prepare image `{image}`: `mmdebstrap` is not installed")]
    NoMmdebstrap { image: String },
    #[error(
        "could not prepare image `{image}`: this machine's apt configuration names no Debian archive"
    )]
    NoArchive { image: String },
    #[error("could not prepare image `{image}`: {source}")]
    Unpack { image: String, source: UnpackError },
    #[error("could not prepare image `{image}`: {why}")]
    Unfit {
        image: String,
        why: String,
        hint: Option<String>,
    },
    #[error("could not prepare image `{image}`: `mmdebstrap` failed ({how})")]
    Mmdebstrap {
        image: String,
        how: String,
        tail: String,
    },
    #[error("could not {action}")]
    Store {
        action: &'static str,
        source: io::Error,
    },
}

impl ImageError {
    /// For `map_err` on what is done with the store's own files.
    pub(super) fn store<E: Into<io::Error>>(action: &'static str) -> impl FnOnce(E) -> Self {
        move |error| Self::Store {
            action,
            source: error.into(),
        }
    }

    pub(super) fn unfit(image: &str, why: impl Into<String>) -> Self {
        Self::Unfit {
            image: image.to_owned(),
            why: why.into(),
            hint: None,
        }
    }
}

impl From<ImageError> for RuntimeError {
    fn from(error: ImageError) -> Self {
        let why = error.to_string();
        let refused = |hint: Option<String>| Self::Refused {
            why: why.clone(),
            hint,
        };
        match error {
            ImageError::NoSuchImage { hint, .. } | ImageError::Denied { hint, .. } => {
                refused(Some(hint))
            }
            ImageError::Login { source, .. } => Self::Refused {
                why: source.to_string(),
                hint: Some("mend it, or take it out of the file and log in again".to_owned()),
            },
            ImageError::Registry { image, why } => {
                Self::engine(format!("prepare image `{image}`"), why)
            }
            ImageError::NotHere { .. } => {
                refused(Some("`box image list` shows those that are".to_owned()))
            }
            ImageError::NotBuilt { .. } => refused(Some(
                "`box image build <Containerfile> --name <name>` builds one".to_owned(),
            )),
            ImageError::NoMmdebstrap { .. } => refused(Some(
                "install it with `apt-get install mmdebstrap`".to_owned(),
            )),
            ImageError::NoArchive { .. } => refused(Some(
                "add Debian's archive to `/etc/apt/sources.list.d`, or use `file:<root tar>`"
                    .to_owned(),
            )),
            ImageError::Unfit { hint, .. } => refused(hint),
            ImageError::Unpack { image, source } | ImageError::Layer { image, source, .. } => {
                match source {
                    UnpackError::DiskFull { .. }
                    | UnpackError::Write { .. }
                    | UnpackError::Read(_) => {
                        Self::engine(format!("prepare image `{image}`"), source)
                    }
                    UnpackError::Compression { with } => refused(Some(format!(
                        "unpack it first, or use gzip or zstd: `{with}` archives are not read"
                    ))),
                    UnpackError::Refused { .. }
                    | UnpackError::TooManyEntries { .. }
                    | UnpackError::TooBig { .. }
                    | UnpackError::Damaged { .. } => {
                        refused(Some("nothing of it was kept".to_owned()))
                    }
                }
            }
            ImageError::Mmdebstrap { image, how, tail } => Self::engine(
                format!("prepare image `{image}`: `mmdebstrap` failed ({how})"),
                tail,
            ),
            ImageError::Store { action, source } => Self::engine(action, source),
        }
    }
}
