//! Where a copy goes, by the rules of `docker cp`.

/// Name of the only entry of a file's tar.
pub const FILE_ENTRY: &str = "file";
/// Most entries of one copy.
pub const ENTRIES_MAX: u64 = 2_000_000;
/// Most bytes of one copy, content of files only.
pub const BYTES_MAX: u64 = 64 << 30;

/// What is copied.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    File,
    Folder,
}

impl Kind {
    /// The first byte of the stream.
    pub const fn byte(self) -> u8 {
        match self {
            Self::File => b'f',
            Self::Folder => b'd',
        }
    }

    pub const fn parse(byte: u8) -> Option<Self> {
        match byte {
            b'f' => Some(Self::File),
            b'd' => Some(Self::Folder),
            _ => None,
        }
    }
}

/// What is at a destination already.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum There {
    Nothing,
    File,
    Folder,
}

/// What is copied, as it was asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Source<'a> {
    pub kind: Kind,
    /// Last part of its path; none for `/`, `.` and the like, whose content is copied.
    pub name: Option<&'a str>,
    /// It ended in `/.`: what is in the folder, not the folder.
    pub content: bool,
}

/// Where it goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place<'a> {
    /// To the path itself, which does not exist, or is a file that gives way to a file.
    Itself,
    /// Under this name in the folder that is there.
    Inside(&'a str),
    /// Into the folder that is there, entry by entry.
    Over,
}

/// Why it can go nowhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum PlaceError {
    #[error("the destination is a file and the source a folder")]
    FolderOverFile,
    #[error("the destination ends with `/` and is no folder")]
    NoFolder,
}

/// The rules of `docker cp`. `slash`: whether the destination was written with a `/` at its end.
///
/// # Errors
/// [`PlaceError`]
pub fn place(there: There, slash: Slash, source: Source<'_>) -> Result<Place<'_>, PlaceError> {
    match (there, source.kind) {
        (There::Folder, Kind::Folder) if source.content => Ok(Place::Over),
        (There::Folder, _) => Ok(source.name.map_or(Place::Over, Place::Inside)),
        (There::File, Kind::Folder) => Err(PlaceError::FolderOverFile),
        (There::File | There::Nothing, Kind::File) if slash == Slash::Yes => {
            Err(PlaceError::NoFolder)
        }
        (There::File, Kind::File) | (There::Nothing, _) => Ok(Place::Itself),
    }
}

/// Whether a path was written with a `/` at its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Slash {
    Yes,
    No,
}

impl Slash {
    pub fn of(path: &str) -> Self {
        if path.ends_with('/') || path.ends_with("/.") {
            Self::Yes
        } else {
            Self::No
        }
    }
}

/// Whether a source path means what is in the folder: it is `.` or ends in `/.`.
pub fn means_content(path: &str) -> bool {
    path == "." || path.ends_with("/.")
}

/// The last part of a path, when it has one that can be a name.
pub fn name_of(path: &str) -> Option<&str> {
    let last = path.trim_end_matches('/').rsplit('/').next();
    last.filter(|name| !matches!(*name, "" | "." | ".."))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(kind: Kind, path: &str) -> Source<'_> {
        Source {
            kind,
            name: name_of(path),
            content: means_content(path),
        }
    }

    #[test]
    fn things_go_where_docker_cp_puts_them() {
        use Kind::{File, Folder};
        let rows = [
            (There::Nothing, "new", File, "a/b", Ok(Place::Itself)),
            (
                There::Nothing,
                "new/",
                File,
                "a/b",
                Err(PlaceError::NoFolder),
            ),
            (There::File, "old", File, "a/b", Ok(Place::Itself)),
            (There::File, "old/", File, "a/b", Err(PlaceError::NoFolder)),
            (There::Folder, "dir", File, "a/b", Ok(Place::Inside("b"))),
            (There::Nothing, "new", Folder, "a/b", Ok(Place::Itself)),
            (There::Nothing, "new/", Folder, "a/b/.", Ok(Place::Itself)),
            (
                There::File,
                "old",
                Folder,
                "a",
                Err(PlaceError::FolderOverFile),
            ),
            (There::Folder, "dir", Folder, "a/b", Ok(Place::Inside("b"))),
            (There::Folder, "dir", Folder, "a/b/", Ok(Place::Inside("b"))),
            (There::Folder, "dir", Folder, "a/b/.", Ok(Place::Over)),
            (There::Folder, "dir", Folder, ".", Ok(Place::Over)),
            (There::Folder, "dir", Folder, "/", Ok(Place::Over)),
        ];
        for (there, to, kind, from, wanted) in rows {
            assert_eq!(
                place(there, Slash::of(to), source(kind, from)),
                wanted,
                "{from} to {to} ({there:?})"
            );
        }
    }
}
