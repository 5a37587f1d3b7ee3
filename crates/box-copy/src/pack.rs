//! Packs a file or a folder as a tar.
//!
//! Whoever packs reads its own files with its own rights, so nothing is gained by a link that is
//! swapped under it; links below the source are packed as links all the same.

use crate::{FILE_ENTRY, Kind};
use std::ffi::OsString;
use std::fs::{self, File, Metadata};
use std::io::{self, Read, Write};
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use tar::{Builder, EntryType, Header};

/// open(2): a fifo that took the place of a file must not be waited for.
const O_NONBLOCK: i32 = 0o4000;
/// And a link in the place of a file is not followed.
const O_NOFOLLOW: i32 = 0o400_000;

/// Why nothing, or not all, was packed.
#[derive(Debug, thiserror::Error)]
pub enum PackError {
    #[error("could not read `{path}`")]
    Read {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error("`{path}` is neither a file nor a folder")]
    Kind { path: PathBuf },
    #[error("could not send it")]
    Write(#[source] io::Error),
}

impl PackError {
    fn read(path: &Path) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::Read {
            path: path.to_owned(),
            source,
        }
    }
}

/// What was packed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Packed {
    pub entries: u64,
    /// Content of files.
    pub bytes: u64,
    /// Sockets, devices and pipes, and files that went away meanwhile or cannot be read.
    pub left_out: u64,
}

/// What a source is, links followed.
///
/// # Errors
/// [`PackError::Read`] when it is not there, [`PackError::Kind`] when it is something else.
pub fn kind_of(source: &Path) -> Result<Kind, PackError> {
    let about = fs::metadata(source).map_err(PackError::read(source))?;
    if about.is_dir() {
        Ok(Kind::Folder)
    } else if about.is_file() {
        Ok(Kind::File)
    } else {
        Err(PackError::Kind {
            path: source.to_owned(),
        })
    }
}

/// Writes the tar of `source`, and its end mark. `name` is what its own entry is called; `None`
/// is [`FILE_ENTRY`] for a file and `./` for a folder.
///
/// # Errors
/// [`PackError`]. A file below a folder that cannot be read is left out and counted.
pub fn pack(
    source: &Path,
    name: Option<&Path>,
    sink: impl Write,
    tell: &mut dyn FnMut(Packed),
) -> Result<Packed, PackError> {
    let mut packer = Packer {
        tar: Builder::new(sink),
        done: Packed::default(),
        tell,
    };
    match kind_of(source)? {
        Kind::File => {
            let name = name.unwrap_or(Path::new(FILE_ENTRY));
            let file = open(source, 0).map_err(PackError::read(source))?;
            packer.file(file, name).map_err(PackError::Write)?;
        }
        Kind::Folder => packer.folder(source, name.unwrap_or(Path::new("")))?,
    }
    packer
        .tar
        .into_inner()
        .and_then(|mut sink| sink.flush())
        .map_err(PackError::Write)?;
    Ok(packer.done)
}

struct Packer<'t, W: Write> {
    tar: Builder<W>,
    done: Packed,
    tell: &'t mut dyn FnMut(Packed),
}

impl<W: Write> Packer<'_, W> {
    /// A folder and all below it. Open at once is one folder, however deep they lie.
    fn folder(&mut self, source: &Path, name: &Path) -> Result<(), PackError> {
        let about = fs::metadata(source).map_err(PackError::read(source))?;
        self.entry(&about, EntryType::Directory, name)
            .map_err(PackError::Write)?;
        let mut folders = vec![PathBuf::new()];
        while let Some(folder) = folders.pop() {
            for own in self.names(&source.join(&folder), &folder)? {
                let below = folder.join(own);
                let goes_on = self.one(&source.join(&below), &name.join(&below))?;
                folders.extend(goes_on.then_some(below));
            }
        }
        Ok(())
    }

    /// What is in a folder, in order. Only the source itself must be readable.
    fn names(&mut self, place: &Path, folder: &Path) -> Result<Vec<OsString>, PackError> {
        let entries = match fs::read_dir(place) {
            Ok(entries) => entries,
            Err(error) if folder.as_os_str().is_empty() => {
                return Err(PackError::read(place)(error));
            }
            Err(_) => {
                self.done.left_out += 1;
                return Ok(Vec::new());
            }
        };
        let mut names: Vec<_> = entries.flatten().map(|entry| entry.file_name()).collect();
        names.sort_unstable();
        Ok(names)
    }

    /// Whatever lies at a path; says whether it is a folder to go into.
    fn one(&mut self, path: &Path, name: &Path) -> Result<bool, PackError> {
        let Ok(about) = fs::symlink_metadata(path) else {
            self.done.left_out += 1;
            return Ok(false);
        };
        let kind = about.file_type();
        if kind.is_dir() {
            self.entry(&about, EntryType::Directory, name)
                .map_err(PackError::Write)?;
            return Ok(true);
        }
        let odd = kind.is_socket() || kind.is_fifo() || kind.is_char_device();
        if odd || kind.is_block_device() {
            self.done.left_out += 1;
        } else if kind.is_symlink() {
            self.link(path, &about, name)?;
        } else if let Ok(file) = open(path, O_NOFOLLOW) {
            self.file(file, name).map_err(PackError::Write)?;
        } else {
            self.done.left_out += 1;
        }
        Ok(false)
    }

    fn link(&mut self, path: &Path, about: &Metadata, name: &Path) -> Result<(), PackError> {
        let Ok(target) = fs::read_link(path) else {
            self.done.left_out += 1;
            return Ok(());
        };
        let mut header = header(about, EntryType::Symlink);
        self.tar
            .append_link(&mut header, name, target)
            .map_err(PackError::Write)?;
        self.counted(0);
        Ok(())
    }

    fn entry(&mut self, about: &Metadata, kind: EntryType, name: &Path) -> io::Result<()> {
        let name = if name.as_os_str().is_empty() {
            Path::new("./")
        } else {
            name
        };
        let mut header = header(about, kind);
        self.tar.append_data(&mut header, name, io::empty())?;
        self.counted(0);
        Ok(())
    }

    /// As long as it was when it was opened: shorter now is filled with zeros, longer is cut.
    fn file(&mut self, file: File, name: &Path) -> io::Result<()> {
        let about = file.metadata()?;
        if !about.is_file() {
            self.done.left_out += 1;
            return Ok(());
        }
        let mut header = header(&about, EntryType::Regular);
        header.set_size(about.len());
        let whole = Whole {
            file,
            left: about.len(),
        };
        self.tar.append_data(&mut header, name, whole)?;
        self.counted(about.len());
        Ok(())
    }

    fn counted(&mut self, bytes: u64) {
        self.done.entries += 1;
        self.done.bytes += bytes;
        (self.tell)(self.done);
    }
}

fn header(about: &Metadata, kind: EntryType) -> Header {
    let mut header = Header::new_gnu();
    header.set_entry_type(kind);
    header.set_mode(about.mode() & 0o7777);
    header.set_uid(about.uid().into());
    header.set_gid(about.gid().into());
    header.set_mtime(u64::try_from(about.mtime()).unwrap_or(0));
    header.set_size(0);
    header
}

fn open(path: &Path, flags: i32) -> io::Result<File> {
    fs::OpenOptions::new()
        .read(true)
        .custom_flags(O_NONBLOCK | flags)
        .open(path)
}

/// A file that gives exactly as many bytes as was promised.
struct Whole {
    file: File,
    left: u64,
}

impl Read for Whole {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let most = usize::try_from(self.left)
            .unwrap_or(usize::MAX)
            .min(buffer.len());
        let mut count = self.file.read(&mut buffer[..most])?;
        if count == 0 {
            buffer[..most].fill(0);
            count = most;
        }
        self.left -= count as u64;
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::ffi::OsStrExt as _;
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    fn packed(source: &Path) -> (Packed, Vec<(Vec<u8>, EntryType, u32)>) {
        let mut bytes = Vec::new();
        let done = pack(source, None, &mut bytes, &mut |_| {}).unwrap();
        let mut archive = tar::Archive::new(bytes.as_slice());
        let entries = archive.entries().unwrap().map(|entry| {
            let entry = entry.unwrap();
            let header = entry.header();
            let mode = header.mode().unwrap();
            (entry.path_bytes().into_owned(), header.entry_type(), mode)
        });
        (done, entries.collect())
    }

    #[test]
    fn a_folder_is_packed_with_links_as_links_and_odd_things_left_out() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path();
        fs::create_dir(path.join("sub")).unwrap();
        fs::write(path.join("sub/script"), "x").unwrap();
        fs::set_permissions(path.join("sub/script"), fs::Permissions::from_mode(0o750)).unwrap();
        symlink("/etc/passwd", path.join("link")).unwrap();
        let long = "n".repeat(200);
        fs::write(path.join(&long), "long").unwrap();
        let odd = std::ffi::OsStr::from_bytes(b"\xff\n");
        fs::write(path.join(odd), "").unwrap();
        let _socket = std::os::unix::net::UnixListener::bind(path.join("socket")).unwrap();
        let (done, entries) = packed(path);
        assert_eq!((done.entries, done.bytes, done.left_out), (6, 5, 1));
        let names: Vec<&[u8]> = entries.iter().map(|(name, ..)| name.as_slice()).collect();
        assert_eq!(
            names,
            [
                &b"./"[..],
                b"link",
                long.as_bytes(),
                b"sub",
                b"\xff\n",
                b"sub/script"
            ]
        );
        assert_eq!(entries[1].1, EntryType::Symlink);
        assert_eq!((entries[5].1, entries[5].2), (EntryType::Regular, 0o750));
    }

    #[test]
    fn a_file_is_one_entry() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("notes.txt");
        fs::write(&path, "hello").unwrap();
        let (done, entries) = packed(&path);
        assert_eq!((done.entries, done.bytes), (1, 5));
        assert_eq!(entries[0].0, b"file");
    }

    #[test]
    fn what_is_not_there_or_no_file_is_named() {
        let nothing = pack(Path::new("/nonexistent"), None, io::sink(), &mut |_| {});
        assert_eq!(
            nothing.unwrap_err().to_string(),
            "could not read `/nonexistent`"
        );
        let device = pack(Path::new("/dev/null"), None, io::sink(), &mut |_| {});
        assert_eq!(
            device.unwrap_err().to_string(),
            "`/dev/null` is neither a file nor a folder"
        );
    }
}
