//! Files that go with a prompt (C54).

use crate::client::Client;
use crate::complaint::Complaint;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use box_api::control::{
    ATTACHMENT_BYTES_MAX, ATTACHMENTS_MAX, ClientMessage, NewAttachment, PIECE_BYTES_MAX,
};
use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};

/// A file that is open, and how long it is.
#[derive(Debug)]
pub(in crate::verbs) struct Enclosed {
    shown: String,
    file: String,
    bytes: u64,
    content: File,
}

/// Opens them all, before anything is made.
///
/// # Errors
/// Which cannot be sent, and why.
pub(in crate::verbs) fn open(paths: &[PathBuf]) -> Result<Vec<Enclosed>, Complaint> {
    if paths.len() > ATTACHMENTS_MAX {
        let title = format!("at most {ATTACHMENTS_MAX} files go with a prompt");
        return Err(Complaint::usage("too-many-files", title)
            .hinted("`box cp` copies whole folders; then name them in the prompt"));
    }
    paths.iter().map(|path| open_one(path)).collect()
}

fn open_one(path: &Path) -> Result<Enclosed, Complaint> {
    let shown = path.display().to_string();
    let could_not = |error| {
        Complaint::usage("no-attachment", format!("could not read `{shown}`")).caused_by(error)
    };
    // A pipe without a writer would keep us waiting.
    let kind = std::fs::metadata(path).map_err(could_not)?;
    if !kind.is_file() {
        let title = format!("`{shown}` is no file");
        return Err(Complaint::usage("no-attachment", title));
    }
    let content = File::open(path).map_err(could_not)?;
    let bytes = content.metadata().map_err(could_not)?.len();
    if bytes > ATTACHMENT_BYTES_MAX {
        let title = format!(
            "`{shown}` is larger than {} MiB",
            ATTACHMENT_BYTES_MAX >> 20
        );
        return Err(Complaint::usage("attachment-too-large", title)
            .hinted("`box cp` copies files of any size; then name it in the prompt"));
    }
    if bytes == 0 {
        return Err(Complaint::usage(
            "no-attachment",
            format!("`{shown}` is empty"),
        ));
    }
    let file = path.file_name().unwrap_or_default();
    Ok(Enclosed {
        file: file.to_string_lossy().into_owned(),
        shown,
        bytes,
        content,
    })
}

/// What the host is told of them before they come.
pub(in crate::verbs) fn announced(files: &[Enclosed]) -> Vec<NewAttachment> {
    let announced = |file: &Enclosed| NewAttachment {
        file: file.file.clone(),
        bytes: file.bytes,
    };
    files.iter().map(announced).collect()
}

impl Enclosed {
    /// Sends exactly as much as was announced. A host that went away is noticed by who reads.
    ///
    /// # Errors
    /// That the file got shorter, or what the host said.
    pub(in crate::verbs) fn send(self, client: &mut Client) -> Result<(), Complaint> {
        send(client, (&self.shown, self.bytes), self.content)
    }
}

/// Sends `bytes` of a file in pieces.
///
/// # Errors
/// As [`Enclosed::send`].
pub(in crate::verbs) fn send(
    client: &mut Client,
    (shown, bytes): (&str, u64),
    content: File,
) -> Result<(), Complaint> {
    let mut content = content.take(bytes);
    let mut left = bytes;
    let mut piece = vec![0; PIECE_BYTES_MAX];
    while left > 0 {
        let count = content.read(&mut piece).map_err(|error| {
            Complaint::failed("no-attachment", format!("could not read `{shown}`")).caused_by(error)
        })?;
        if count == 0 {
            let title = format!("`{shown}` got shorter while it was read");
            return Err(Complaint::failed("no-attachment", title));
        }
        left -= count as u64;
        let said = client.say(&ClientMessage::Piece {
            base64: STANDARD.encode(&piece[..count]),
        });
        match said {
            Ok(()) => {}
            // It refused already; reading says why.
            Err(error) if error.is_gone() => return Ok(()),
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}
