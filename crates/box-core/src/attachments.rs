//! Files for the agent of a box (C54–C57): copied into the box, never carried in a message.
//!
//! They lie in [`FOLDER`] of the workspace, which a `.gitignore` of its own keeps out of
//! repositories, and stay there. They are written from inside, as the box's own user: the host
//! never follows a path a box made.
//!
//! [`add`] puts one there, [`envelope`] puts the lines that name them before a prompt, [`read`]
//! gives one back.

use crate::boxes::{self, BoxRecord, FindError};
use crate::caller::Caller;
use crate::host::Host;
use crate::inside::{self, Inside, InsideError};
use crate::lifecycle::{self, StartError};
use box_api::BoxName;
pub use box_api::control::envelope;
use box_api::control::{ATTACHMENT_BYTES_MAX, Attached};
use box_api::guest::WORKSPACE;
use std::sync::Arc;
use std::time::Duration;

/// Where they lie, below the workspace.
pub const FOLDER: &str = ".box/attachments";
/// Longest name, characters, its extension included.
const NAME_CHARS_MAX: usize = 100;
/// Longest extension that is kept when a name is cut, characters, its dot included.
const EXTENSION_CHARS_MAX: usize = 17;
/// Longest that writing or reading one may take.
const COPY_WAIT: Duration = Duration::from_mins(2);
/// What [`WRITE`] ends with when every name of the kind is taken.
const NAMES_TAKEN: i32 = 75;
/// What [`READ`] ends with when there is none of the name.
const NOT_THERE: i32 = 76;

/// `$1` is the folder, `$2` the name without and `$3` the extension; the content comes on standard
/// input and the name it got goes to standard output. Constant: nothing a person typed is ever part
/// of it. A `.gitignore` that is there is its owner's. `true`, because a redirection that fails ends the
/// shell where the command is a special one such as `:` (POSIX, 2.8.1).
const WRITE: &str = r#"
umask 022
mkdir -p -- "$1" && cd -- "$1" || exit 1
[ -e .gitignore ] || [ -L .gitignore ] || printf '*\n' > .gitignore
set -C
number=1 name="$2$3"
until { true > "$name"; } 2> /dev/null; do
    [ -e "$name" ] || [ -L "$name" ] || { true > "$name"; exit 1; }
    number=$((number + 1)) name="$2-$number$3"
    [ "$number" -le 100 ] || exit 75
done
set +C
cat > "$name" || { rm -f -- "$name"; exit 1; }
printf %s "$name"
"#;
/// `$1` is the folder, `$2` the name.
const READ: &str = r#"cd -- "$1" 2> /dev/null && [ -f "$2" ] || exit 76; exec cat -- "$2""#;

/// Why a file is not there for an agent.
#[derive(Debug, thiserror::Error)]
pub enum AttachmentError {
    #[error("a file to attach needs a name")]
    Nameless,
    #[error("`{file}` is empty")]
    Empty { file: String },
    #[error("`{file}` is larger than {} MiB", ATTACHMENT_BYTES_MAX >> 20)]
    TooLarge { file: String },
    #[error("box `{name}` has a hundred files like `{file}` already")]
    NamesTaken { name: BoxName, file: String },
    #[error("box `{name}` has no attachment `{file}`")]
    Unknown { name: BoxName, file: String },
    #[error(transparent)]
    Find(#[from] FindError),
    #[error(transparent)]
    Start(#[from] StartError),
    #[error("could not copy `{file}` into box `{name}`")]
    Copy {
        name: BoxName,
        file: String,
        #[source]
        source: InsideError,
    },
}

impl AttachmentError {
    /// What the person can do now.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::TooLarge { file } => Some(format!(
                "`box cp {file} <box>:` copies files of any size; then name it in the prompt"
            )),
            Self::NamesTaken { name, .. } => Some(format!(
                "remove some: `box shell {name}`, they lie in `{FOLDER}`"
            )),
            Self::Nameless
            | Self::Empty { .. }
            | Self::Unknown { .. }
            | Self::Find(_)
            | Self::Start(_)
            | Self::Copy { .. } => None,
        }
    }
}

/// Early, before a byte of it is read: whether a file of this name and size may be attached.
///
/// # Errors
/// [`AttachmentError::Nameless`], [`AttachmentError::Empty`], [`AttachmentError::TooLarge`]
pub fn check(file: &str, bytes: u64) -> Result<(), AttachmentError> {
    let last = file.rsplit('/').next().unwrap_or_default();
    if last.trim().is_empty() {
        return Err(AttachmentError::Nameless);
    }
    let file = clean_name(file);
    match bytes {
        0 => Err(AttachmentError::Empty { file }),
        1..=ATTACHMENT_BYTES_MAX => Ok(()),
        _ => Err(AttachmentError::TooLarge { file }),
    }
}

/// Copies a file to where the agent of the box finds it. A box that does not run is started. Of two
/// files with one name the second gets a number.
///
/// # Errors
/// [`AttachmentError`]
pub async fn add(
    host: &Arc<Host>,
    caller: &Caller,
    name: &BoxName,
    (file, content): (&str, Vec<u8>),
) -> Result<Attached, AttachmentError> {
    check(file, content.len() as u64)?;
    let record = boxes::find(host, caller, name).await?;
    let record = lifecycle::start(host, record.id).await?;
    place(host, &record, (file, content)).await
}

/// As [`add`], in a box that runs.
///
/// # Errors
/// As [`add`].
pub(crate) async fn place(
    host: &Host,
    record: &BoxRecord,
    (file, content): (&str, Vec<u8>),
) -> Result<Attached, AttachmentError> {
    let bytes = content.len() as u64;
    let file = clean_name(file);
    let (stem, extension) = parted(&file);
    let inside = Inside {
        command: ["sh", "-c", WRITE, "sh", FOLDER, stem, extension]
            .map(str::to_owned)
            .to_vec(),
        env: Vec::new(),
        input: content,
        deadline: COPY_WAIT,
    };
    let written = inside::answer(host, record, inside).await;
    let written = written.map_err(|source| match source {
        InsideError::Code {
            code: NAMES_TAKEN, ..
        } => AttachmentError::NamesTaken {
            name: record.name.clone(),
            file: file.clone(),
        },
        source @ (InsideError::Code { .. }
        | InsideError::Late { .. }
        | InsideError::Io { .. }
        | InsideError::Runtime(_)
        | InsideError::Store(_)) => AttachmentError::Copy {
            name: record.name.clone(),
            file: file.clone(),
            source,
        },
    })?;
    // What a box says is not believed: it is a name by our rules, or the one we gave.
    let said = String::from_utf8_lossy(&written);
    let stored = clean_name(&said);
    let stored = if stored == said { stored } else { file };
    Ok(Attached {
        media_type: media_type(&stored).to_owned(),
        path: format!("{WORKSPACE}/{FOLDER}/{stored}"),
        bytes,
    })
}

/// An attachment of a box, by the last part of its path. A box that does not run is started.
///
/// # Errors
/// [`AttachmentError::Unknown`] when there is none, and what the box said.
pub async fn read(
    host: &Arc<Host>,
    caller: &Caller,
    name: &BoxName,
    file: &str,
) -> Result<(Attached, Vec<u8>), AttachmentError> {
    let record = boxes::find(host, caller, name).await?;
    let unknown = || AttachmentError::Unknown {
        name: name.clone(),
        file: clean_name(file),
    };
    if clean_name(file) != file {
        return Err(unknown());
    }
    let record = lifecycle::start(host, record.id).await?;
    let inside = Inside {
        command: ["sh", "-c", READ, "sh", FOLDER, file]
            .map(str::to_owned)
            .to_vec(),
        env: Vec::new(),
        input: Vec::new(),
        deadline: COPY_WAIT,
    };
    let bytes_max = usize::try_from(ATTACHMENT_BYTES_MAX).unwrap_or(usize::MAX);
    let content = inside::answer_up_to(host, &record, inside, bytes_max).await;
    let content = content.map_err(|source| match source {
        InsideError::Code {
            code: NOT_THERE, ..
        } => unknown(),
        source @ (InsideError::Code { .. }
        | InsideError::Late { .. }
        | InsideError::Io { .. }
        | InsideError::Runtime(_)
        | InsideError::Store(_)) => AttachmentError::Copy {
            name: record.name.clone(),
            file: file.to_owned(),
            source,
        },
    })?;
    let attached = Attached {
        path: format!("{WORKSPACE}/{FOLDER}/{file}"),
        media_type: media_type(file).to_owned(),
        bytes: content.len() as u64,
    };
    Ok((attached, content))
}

/// The name a file gets: of its last part only letters, digits, `.`, `_` and `-`, other runs as one
/// `_`; no dot or line at the front; at most a hundred characters, its extension among them.
pub fn clean_name(file: &str) -> String {
    let last = file
        .trim_end_matches('/')
        .rsplit('/')
        .next()
        .unwrap_or_default();
    let mut clean = String::new();
    for c in last.chars() {
        if c.is_alphanumeric() || matches!(c, '.' | '_' | '-') {
            clean.push(c);
        } else if !clean.ends_with('_') {
            clean.push('_');
        }
    }
    let clean = clean.trim_start_matches(['.', '_', '-']);
    if clean.is_empty() {
        return "attachment".to_owned();
    }
    let (stem, extension) = parted(clean);
    let room = NAME_CHARS_MAX.saturating_sub(extension.chars().count());
    let stem: String = stem.chars().take(room).collect();
    format!("{stem}{extension}")
}

/// A name and its extension, with its dot; a very long one is none.
fn parted(name: &str) -> (&str, &str) {
    match name.rfind('.') {
        Some(at) if at > 0 && name[at..].chars().count() <= EXTENSION_CHARS_MAX => {
            name.split_at(at)
        }
        Some(_) | None => (name, ""),
    }
}

/// What a file is, by its name only. What may be shown as itself (C56) begins with `image/` or is
/// `application/pdf`; everything else is a download.
pub fn media_type(file: &str) -> &'static str {
    let extension = parted(file).1.to_ascii_lowercase();
    match extension.as_str() {
        ".png" => "image/png",
        ".jpg" | ".jpeg" => "image/jpeg",
        ".webp" => "image/webp",
        ".gif" => "image/gif",
        ".svg" => "image/svg+xml",
        ".pdf" => "application/pdf",
        ".txt" | ".log" | ".md" | ".csv" => "text/plain",
        ".json" => "application/json",
        ".zip" => "application/zip",
        _ => "application/octet-stream",
    }
}

#[cfg(test)]
mod tests;
