//! `pack`: a file or a folder of the box, to standard output.

use crate::{Ended, say, told};
use box_copy::{Packed, kind_of};
use std::io::{BufWriter, Write as _};
use std::path::Path;

const BUFFER_BYTES: usize = 256 << 10;

/// For `box cp`: what it is, then its tar.
pub(crate) fn stream(path: &Path) -> Ended {
    let kind = kind_of(path).map_err(|error| told(&error))?;
    let mut out = BufWriter::with_capacity(BUFFER_BYTES, std::io::stdout().lock());
    out.write_all(&[kind.byte()])
        .map_err(|error| format!("could not send it: {error}"))?;
    finish(path, None, out)
}

/// For whoever unpacks it with tar: below the path's own name, or `./` when it means a content.
pub(crate) fn plain(path: &Path) -> Ended {
    let text = path.to_string_lossy();
    let name = match box_copy::name_of(&text) {
        Some(name) if !box_copy::means_content(&text) => Some(name.to_owned()),
        Some(_) | None => None,
    };
    let out = BufWriter::with_capacity(BUFFER_BYTES, std::io::stdout().lock());
    finish(path, name.as_deref().map(Path::new), out)
}

fn finish(path: &Path, name: Option<&Path>, out: impl std::io::Write) -> Ended {
    let Packed { left_out, .. } =
        box_copy::pack(path, name, out, &mut |_| {}).map_err(|error| told(&error))?;
    if left_out > 0 {
        say(&format!(
            "{left_out} left out: no files, folders or links, or not readable"
        ));
    }
    Ok(())
}
