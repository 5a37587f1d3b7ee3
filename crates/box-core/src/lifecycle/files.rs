//! The small files the host decides and a box sees: name server, host names.

use crate::boxes::BoxRecord;
use crate::host::Host;
use box_api::BoxId;
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

/// Box-egress answers there. No search list: it would triple the queries and tell the names of the
/// host's network (reference/first-light.md, *Resolver*).
const RESOLV_CONF: &str = "nameserver 198.18.0.1\n";

/// A box's small files could not be written.
#[derive(Debug, thiserror::Error)]
#[error("could not write `{path}`")]
pub struct FilesError {
    path: PathBuf,
    #[source]
    source: io::Error,
}

/// Writes the files of a box; the same ones again do no harm.
///
/// # Errors
/// [`FilesError`] names the file.
pub async fn place(host: &Host, record: &BoxRecord) -> Result<(), FilesError> {
    let folder = host.paths.placed(&record.id);
    let name = record.name.clone();
    let texts = [
        ("resolv.conf", RESOLV_CONF.to_owned()),
        (
            "hosts",
            format!("127.0.0.1 localhost {name}\n::1 localhost {name}\n"),
        ),
        ("hostname", format!("{name}\n")),
    ];
    let written = tokio::task::spawn_blocking(move || {
        make_folder(&folder)?;
        texts
            .iter()
            .try_for_each(|(name, text)| write(&folder.join(name), text))
    });
    written.await.unwrap_or_else(|error| {
        Err(FilesError {
            path: host.paths.placed(&record.id),
            source: io::Error::other(error),
        })
    })
}

fn make_folder(folder: &Path) -> Result<(), FilesError> {
    std::fs::DirBuilder::new()
        .recursive(true)
        .mode(0o755)
        .create(folder)
        .map_err(|source| FilesError {
            path: folder.to_owned(),
            source,
        })
}

/// Into the same inode if it is there: a running box has it mounted.
fn write(path: &Path, text: &str) -> Result<(), FilesError> {
    let fail = |source| FilesError {
        path: path.to_owned(),
        source,
    };
    if std::fs::read_to_string(path).is_ok_and(|found| found == text) {
        return Ok(());
    }
    let mut file = std::fs::OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o644)
        .open(path)
        .map_err(fail)?;
    io::Write::write_all(&mut file, text.as_bytes()).map_err(fail)
}

/// Deletes the files of a box. Left-overs harm nobody and go with the next `reconcile`.
pub(super) async fn remove(host: &Host, id: &BoxId) {
    for folder in [host.paths.placed(id), host.paths.logs(id)] {
        match tokio::fs::remove_dir_all(&folder).await {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                tracing::warn!(folder = %folder.display(), %error, "files of a removed box are left");
            }
            Ok(()) | Err(_) => {}
        }
    }
}
