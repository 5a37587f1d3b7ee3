//! Failures of archives, out and in.

use super::{Engine, Failed, create, host_ends, snapshot, store, told, told_by_engine};
use box_api::Problem;
use box_core::lifecycle::{ExportError, ImportError};

pub(crate) fn export(error: ExportError) -> Problem {
    match error {
        ExportError::Unable(_) => told(Failed, "no-archives", &error),
        ExportError::Engine { ref source, .. } => told_by_engine("not-exported", &error, source),
        ExportError::Held(error) => snapshot(error),
        ExportError::Store(error) => store(error),
        ExportError::Ending => host_ends(),
    }
}

pub(crate) fn import(error: ImportError) -> Problem {
    match error {
        ImportError::Unable => told(Failed, "no-archives", &error),
        ImportError::Archive(ref source) => told_by_engine("not-imported", &error, source),
        ImportError::Manifest(_) => told(Failed, "not-imported", &error),
        ImportError::NoImage { ref image, .. } => {
            told(Failed, "image-not-found", &error).hinted(format!(
                "make it ready with `box image prepare {image}` if that gives the same one, give \
                 another with `--image`, or export again without `--no-image`"
            ))
        }
        ImportError::Create(error) => create(error),
        ImportError::Store(error) => store(error),
        ImportError::Ending => host_ends(),
    }
}

pub(crate) fn pipe(error: std::io::Error) -> Problem {
    told(Engine, "no-pipe", &error)
}
