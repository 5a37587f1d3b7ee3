//! `file:<archive>`: an image from a root file system somebody packed, or from an archive of layers.
//! Which of both it is, its content tells.

use super::archive;
use super::error::ImageError;
use super::index::hex;
use super::store::{Made, Making};
use box_runtime::unpack::{Policy, Staging, unpack};
use rustix::fs::{AtFlags, Dir, OFlags, renameat, statat};
use sha2::{Digest as _, Sha256};
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::BorrowedFd;
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::Path;

/// Tells whether the file is still the one an image was made from, without reading it.
pub(super) fn stamp(image: &str, path: &Path) -> Result<String, ImageError> {
    let (_, stamp) = open(image, path)?;
    Ok(stamp)
}

pub(super) fn make(
    making: &Making<'_>,
    path: &Path,
    root: BorrowedFd<'_>,
) -> Result<Made, ImageError> {
    let (file, before) = open(making.image, path)?;
    making.say.line(format!("unpacking `{}`", path.display()));
    let mut hashed = Hashed {
        file,
        hash: Sha256::new(),
    };
    let image = || making.image.to_owned();
    let policy = making.privileges.policy(Policy::IMAGE);
    let unpacked = unpack(&mut hashed, root, &policy).map_err(|source| ImageError::Unpack {
        image: image(),
        source,
    })?;
    io::copy(&mut hashed, &mut io::sink()).map_err(ImageError::store("read the root tar"))?;
    if before != stamp(making.image, path)? {
        return Err(ImageError::unfit(
            making.image,
            "the file changed while it was read",
        ));
    }
    if is_archive(root) {
        let apart = set_apart(making, root)?;
        return archive::make(making, apart.folder(), root);
    }
    check(making.image, root)?;
    let source = format!("root tar {}", hex(&hashed.hash.finalize()));
    Ok(Made {
        unpacked,
        source,
        packages: Vec::new(),
        env: Vec::new(),
        blobs: Vec::new(),
    })
}

fn open(image: &str, path: &Path) -> Result<(File, String), ImageError> {
    // Without O_NONBLOCK a fifo would hold us up before we know that it is one.
    let flags = (OFlags::NONBLOCK | OFlags::NOCTTY).bits().cast_signed();
    let file = File::options().read(true).custom_flags(flags).open(path);
    let unfit = |error: io::Error| {
        let why = if error.kind() == io::ErrorKind::NotFound {
            "the file does not exist".to_owned()
        } else {
            format!("the file cannot be read: {error}")
        };
        ImageError::unfit(image, why)
    };
    let file = file.map_err(unfit)?;
    let found = file.metadata().map_err(unfit)?;
    if !found.is_file() {
        return Err(ImageError::unfit(image, "it is not a file"));
    }
    let stamp = format!(
        "{}:{} {} bytes, {}.{:09}",
        found.dev(),
        found.ino(),
        found.size(),
        found.mtime(),
        found.mtime_nsec()
    );
    Ok((file, stamp))
}

/// Whether what came out can be a root at all.
fn check(image: &str, root: BorrowedFd<'_>) -> Result<(), ImageError> {
    if is_root(root) {
        return Ok(());
    }
    Err(ImageError::Unfit {
        image: image.to_owned(),
        why: "it holds neither a root file system (`usr`, `bin`) nor an image (`index.json`, \
              `manifest.json`)"
            .to_owned(),
        hint: Some(
            "`docker save`, `docker export`, `podman save` and `skopeo copy` write what is read \
             here"
                .to_owned(),
        ),
    })
}

fn is_root(tree: BorrowedFd<'_>) -> bool {
    let there = |name: &str| statat(tree, name, AtFlags::SYMLINK_NOFOLLOW).is_ok();
    there("usr") || there("bin")
}

/// A root file system may hold files of any name; an archive of layers holds no `usr`.
fn is_archive(tree: BorrowedFd<'_>) -> bool {
    !is_root(tree) && archive::is_one(tree)
}

/// Moves all of it elsewhere, gone with the guard: the root is to be made of it.
fn set_apart(making: &Making<'_>, tree: BorrowedFd<'_>) -> Result<Staging, ImageError> {
    let failed = || ImageError::store("set an archive apart");
    let apart = making.staging()?;
    let mut names = Vec::new();
    for entry in Dir::read_from(tree).map_err(failed())? {
        let name = entry.map_err(failed())?.file_name().to_owned();
        if name != *c"." && name != *c".." {
            names.push(name);
        }
    }
    for name in &names {
        renameat(tree, name, apart.folder(), name).map_err(failed())?;
    }
    Ok(apart)
}

/// A file and the hash of what was read of it.
#[derive(Debug)]
struct Hashed {
    file: File,
    hash: Sha256,
}

impl Read for Hashed {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.file.read(buffer)?;
        self.hash.update(&buffer[..count]);
        Ok(count)
    }
}
