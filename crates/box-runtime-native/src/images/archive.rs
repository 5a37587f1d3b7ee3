//! `file:` archives that hold an image's layers: OCI layouts (image specification, *Image Layout*)
//! and what `docker save` writes. They are unpacked first; what they say is then looked up beneath
//! that folder.

use super::error::ImageError;
use super::oci::manifest::{self, Document};
use super::oci::{self, Digest, Layers};
use super::store::{Made, Making};
use rustix::fs::{AtFlags, Mode, OFlags, ResolveFlags, openat2, statat};
use serde::Deserialize;
use std::fs::File;
use std::io::Read as _;
use std::os::fd::BorrowedFd;

/// Lists may point to lists; an image is not far.
const LISTS_MAX: usize = 3;
const DOCKERS: &str = "manifest.json";
const OCIS: &str = "index.json";

/// One image of `docker save`'s `manifest.json`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Saved {
    config: String,
    #[serde(default)]
    layers: Option<Vec<String>>,
}

/// What makes up the image.
struct Parts {
    config: Vec<u8>,
    /// Paths in the archive, the lowest first.
    layers: Vec<String>,
}

/// Whether what was unpacked is an archive of layers.
pub(super) fn is_one(tree: BorrowedFd<'_>) -> bool {
    [DOCKERS, OCIS]
        .into_iter()
        .any(|name| statat(tree, name, AtFlags::SYMLINK_NOFOLLOW).is_ok())
}

/// Makes the root that an unpacked archive describes, in an empty folder.
pub(super) fn make(
    making: &Making<'_>,
    tree: BorrowedFd<'_>,
    root: BorrowedFd<'_>,
) -> Result<Made, ImageError> {
    let unfit = |why: String| ImageError::unfit(making.image, why);
    let archive = Archive { tree };
    // Newer docker writes both, and in its index lists what the archive does not hold.
    let parts = if statat(tree, DOCKERS, AtFlags::SYMLINK_NOFOLLOW).is_ok() {
        archive.saved()
    } else {
        archive.layout()
    };
    let parts = parts.map_err(unfit)?;
    let config = manifest::config(&parts.config, parts.layers.len()).map_err(unfit)?;
    let mut layers = Layers::over(root);
    for (number, (path, id)) in (1..).zip(parts.layers.iter().zip(&config.layers)) {
        making
            .say
            .line(format!("layer {number} of {}", parts.layers.len()));
        let file = archive.open(path).map_err(unfit)?;
        layers
            .add(&making.policy(), &file, id)
            .map_err(|error| error.told(making.image, number))?;
    }
    Ok(Made {
        unpacked: layers.done(),
        source: oci::source(&Digest::of(&parts.config)),
        packages: Vec::new(),
        env: config.env,
        blobs: Vec::new(),
    })
}

#[derive(Debug, Clone, Copy)]
struct Archive<'tree> {
    tree: BorrowedFd<'tree>,
}

impl Archive<'_> {
    fn saved(self) -> Result<Parts, String> {
        let text = self.read(DOCKERS)?;
        let mut images: Vec<Saved> = serde_json::from_slice(&text)
            .map_err(|error| format!("its `{DOCKERS}` cannot be read: {error}"))?;
        let (Some(image), true) = (images.pop(), images.is_empty()) else {
            return Err(one_only(images.len()));
        };
        let layers = image.layers.unwrap_or_default();
        if layers.len() > manifest::LAYERS_MAX {
            return Err(format!("it has more than {} layers", manifest::LAYERS_MAX));
        }
        Ok(Parts {
            config: self.read(&image.config)?,
            layers,
        })
    }

    fn layout(self) -> Result<Parts, String> {
        let mut text = self.read(OCIS)?;
        let listed: Listed = serde_json::from_slice(&text).unwrap_or_default();
        let tagged = listed.manifests.iter().filter(|one| one.is_image()).count();
        if tagged > 1 && listed.manifests.iter().all(|one| one.platform.is_none()) {
            return Err(one_only(tagged));
        }
        for _ in 0..=LISTS_MAX {
            let chosen = match manifest::document(&text)? {
                Document::Elsewhere(chosen) => chosen,
                Document::Image(image) => {
                    let blob = |digest: &Digest| format!("blobs/sha256/{}", digest.digits());
                    return Ok(Parts {
                        config: self.checked(&image.config.digest)?,
                        layers: image.layers.iter().map(|one| blob(&one.digest)).collect(),
                    });
                }
            };
            text = self.checked(&chosen.digest)?;
        }
        Err("its lists of images lead to more lists".to_owned())
    }

    fn checked(self, digest: &Digest) -> Result<Vec<u8>, String> {
        let content = self.read(&format!("blobs/sha256/{}", digest.digits()))?;
        if Digest::of(&content) == *digest {
            Ok(content)
        } else {
            Err(format!("`{digest}` in it is not what its digest says"))
        }
    }

    fn read(self, path: &str) -> Result<Vec<u8>, String> {
        let max = manifest::DOCUMENT_BYTES_MAX;
        let mut content = Vec::new();
        let read = self.open(path)?.take(max + 1).read_to_end(&mut content);
        match read {
            Ok(count) if count as u64 > max => Err(format!("`{path}` has more than {max} bytes")),
            Ok(_) => Ok(content),
            Err(error) => Err(format!("`{path}` cannot be read: {error}")),
        }
    }

    /// A file of the archive. Older docker links layers that are the same, so links count; they
    /// lead nowhere but into the archive.
    fn open(self, path: &str) -> Result<File, String> {
        let shown: String = path.chars().take(120).collect();
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
        let file = openat2(self.tree, path, flags, Mode::empty(), resolve)
            .map(File::from)
            .map_err(|_| format!("it lacks `{shown}`"))?;
        if file.metadata().is_ok_and(|found| found.is_file()) {
            Ok(file)
        } else {
            Err(format!("`{shown}` in it is not a file"))
        }
    }
}

/// An index as far as it matters whether it names one image or several.
#[derive(Debug, Default, Deserialize)]
struct Listed {
    #[serde(default)]
    manifests: Vec<OneListed>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct OneListed {
    #[serde(default)]
    media_type: String,
    platform: Option<serde::de::IgnoredAny>,
}

impl OneListed {
    fn is_image(&self) -> bool {
        !self.media_type.contains("artifact")
    }
}

fn one_only(images: usize) -> String {
    match images {
        0 => "it holds no image".to_owned(),
        _ => "it holds several images; save one alone".to_owned(),
    }
}
