//! `--here`: the folder somebody stands in, brought into a box. Never mounted: the box gets a copy.
//!
//! A git repository comes as a bundle with its uncommitted changes; another folder as a tar.
//! [`prepare`] does all that can fail before a box is made, and writes nothing into the repository.

mod folder;
mod origin;
mod repository;

use crate::complaint::Complaint;
use crate::output::Output;
use box_api::BoxName;
use folder::Folder;
use repository::Repository;
use std::path::{Path, PathBuf};

/// More than this needs a word.
pub(crate) const BYTES_MAX: u64 = 1 << 30;
const ENTRIES_MAX: u64 = 200_000;

/// Whether large folders are brought as well.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Size {
    Any,
    Usual,
}

/// What is to be brought.
#[derive(Debug)]
pub(crate) enum Here {
    Repository(Repository),
    Folder(Folder),
}

/// Looks at the current folder and packs its repository, if it is one.
///
/// # Errors
/// When it is one nobody means to bring, too large, or git fails.
pub(crate) fn prepare(output: &mut Output, size: Size) -> Result<Here, Complaint> {
    let current = std::env::current_dir().map_err(|error| {
        Complaint::failed("no-folder", "could not tell the current folder").caused_by(error)
    })?;
    if let Some(top) = repository::top(&current)? {
        vet(&top)?;
        return repository::pack(output, &top, size).map(Here::Repository);
    }
    vet(&current)?;
    folder::look(&current, size).map(Here::Folder)
}

impl Here {
    /// Puts it into the workspace of a box.
    ///
    /// # Errors
    /// What the box said.
    pub(crate) fn bring(&self, output: &mut Output, name: &BoxName) -> Result<(), Complaint> {
        match self {
            Self::Repository(repository) => repository.bring(output, name),
            Self::Folder(folder) => folder.bring(output, name),
        }
    }

    /// Whether commits can come home to it.
    pub(crate) fn is_repository(&self) -> bool {
        matches!(self, Self::Repository(_))
    }

    /// A name for a box that is to have it.
    pub(crate) fn name(&self) -> String {
        let path = match self {
            Self::Repository(repository) => repository.top(),
            Self::Folder(folder) => folder.path(),
        };
        let name = path.file_name().map(|name| name.to_string_lossy());
        name.unwrap_or_default().into_owned()
    }
}

/// A home folder or the whole machine is never what is meant: keys and all lie there.
fn vet(folder: &Path) -> Result<(), Complaint> {
    let home = std::env::var_os("HOME").map(PathBuf::from);
    let home = home.and_then(|home| home.canonicalize().ok());
    let folder = folder
        .canonicalize()
        .unwrap_or_else(|_| folder.to_path_buf());
    let holds_home = home.is_some_and(|home| home.starts_with(&folder));
    if !holds_home && folder.parent().is_some() {
        return Ok(());
    }
    let title = format!("`{}` is not brought into a box", folder.display());
    Err(Complaint::usage("not-this-folder", title)
        .caused_by("it is, or holds, your home folder")
        .hinted("go to the folder of one project"))
}

fn too_large(path: &Path, cause: String) -> Complaint {
    let title = format!("`{}` is large", path.display());
    Complaint::usage("large-folder", title)
        .caused_by(cause)
        .hinted("`--force` brings it all the same")
}
