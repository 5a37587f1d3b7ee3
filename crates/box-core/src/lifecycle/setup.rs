//! The set-up of a new box: run inside, watched to its end, and marked only then (B18–B20).

use super::marks::{Marked, mark};
use super::snapshot::{self, SnapshotError};
use crate::boxes::{self, BoxRecord};
use crate::host::Host;
use crate::inside::{self, Inside, InsideError};
use box_api::BoxName;
use box_api::control::{Marks, NewBox, SETUP_BYTES_MAX};
use box_api::snapshot::{Label, SnapshotKind};
use box_runtime::Progress;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;

/// Longest a set-up may take.
const SETUP_WAIT: Duration = Duration::from_hours(2);

/// Where an image may bring a set-up of its own.
pub const IMAGE_SETUP: &str = "/etc/box/setup";
/// What [`IMAGES_OWN`] ends with when the image brings none.
const NONE_HERE: i32 = 251;

/// The script comes on standard input and is run as a file, so that its first line names who reads
/// it. It lies on the box's own tmpfs and is gone with the next stop. Constant: nothing a person
/// typed is ever part of it.
const SCRIPT: &str = r#"umask 077 && file=$(mktemp) && cat > "$file" && chmod 700 "$file" && exec "$file" < /dev/null"#;
const IMAGES_OWN: &str = r#"[ -x "$1" ] || exit 251; exec "$1" < /dev/null"#;

/// Why a box is not set up. It is up all the same.
#[derive(Debug, thiserror::Error)]
pub enum SetupError {
    #[error("the set-up of box `{name}` ended with code {code}")]
    Code {
        name: BoxName,
        code: i32,
        /// Whether this mint took the mark that undoes everything (B20).
        pristine: bool,
    },
    #[error("could not run the set-up of box `{name}`")]
    Run {
        name: BoxName,
        #[source]
        source: InsideError,
        /// As in `Code`.
        pristine: bool,
    },
    #[error("the host is ending")]
    Ending,
}

/// What is to be run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Setup {
    /// A script of whoever made the box.
    Script(String),
    /// [`IMAGE_SETUP`], if it is there.
    Image,
    None,
}

/// A set-up script that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ScriptError {
    #[error("the set-up script is longer than {SETUP_BYTES_MAX} bytes")]
    TooLong,
    #[error("the set-up script is empty")]
    Empty,
    #[error("a box that is not started cannot be set up")]
    NotStarted,
}

/// Early, before anything is made.
///
/// # Errors
/// [`ScriptError`]
pub fn check_script(asked: &NewBox) -> Result<(), ScriptError> {
    match asked.setup.as_deref() {
        Some(_) if !asked.start => Err(ScriptError::NotStarted),
        Some(script) if script.len() > SETUP_BYTES_MAX => Err(ScriptError::TooLong),
        Some(script) if script.trim().is_empty() => Err(ScriptError::Empty),
        Some(_) | None => Ok(()),
    }
}

/// The set-up of a box just made: the script of whoever made it, else the image's own. Images this
/// house makes itself have none, so that nobody waits for the look.
pub fn setup_of(record: &BoxRecord, script: Option<String>) -> Setup {
    let ours = record.image == box_runtime::DEFAULT_IMAGE || record.image.starts_with("debian:");
    match script {
        Some(script) => Setup::Script(script),
        None if ours => Setup::None,
        None => Setup::Image,
    }
}

/// Runs the set-up of a running box to its end, passing on what it prints, and marks the box when
/// it was seen to succeed. Goes on when nobody listens any more.
///
/// # Errors
/// [`SetupError`]; the box stays up, without the mark.
pub async fn set_up(
    host: &Arc<Host>,
    record: &BoxRecord,
    (setup, marks): (Setup, Marks),
    progress: Arc<dyn Progress>,
    told: mpsc::Sender<Vec<u8>>,
) -> Result<(), SetupError> {
    let (host, record) = (Arc::clone(host), record.clone());
    let recipe =
        tokio::spawn(
            async move { recipe(&host, &record, (setup, marks), &*progress, &told).await },
        );
    recipe.await.map_err(|_| SetupError::Ending)?
}

async fn recipe(
    host: &Host,
    record: &BoxRecord,
    (setup, marks): (Setup, Marks),
    progress: &dyn Progress,
    told: &mpsc::Sender<Vec<u8>>,
) -> Result<(), SetupError> {
    let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
    let (command, input) = match &setup {
        Setup::None => return Ok(()),
        Setup::Script(script) => (words(&["sh", "-c", SCRIPT]), script.clone().into_bytes()),
        Setup::Image => (
            words(&["sh", "-c", IMAGES_OWN, "sh", IMAGE_SETUP]),
            Vec::new(),
        ),
    };
    if setup != Setup::Image {
        progress.say("setting the box up");
    }
    let inside = Inside {
        command,
        env: Vec::new(),
        input,
        deadline: SETUP_WAIT,
    };
    let name = record.name.clone();
    match inside::follow(host, record, inside, told).await {
        Ok(0) => {}
        // An image without a shell has no set-up either.
        Ok(NONE_HERE | 127) if setup == Setup::Image => return Ok(()),
        Ok(code) => {
            let pristine = has_pristine(host, record).await;
            return Err(SetupError::Code {
                name,
                code,
                pristine,
            });
        }
        Err(source) => {
            let pristine = has_pristine(host, record).await;
            return Err(SetupError::Run {
                name,
                source,
                pristine,
            });
        }
    }
    if marks.bootstrapped && host.settings.bootstrapped.value {
        progress.say("marking the box as bootstrapped");
        let marked = match snapshot::hold(host, record.id).await {
            Ok((_held, record)) => mark(host, &record, SnapshotKind::Bootstrapped, progress).await,
            Err(error) => {
                tracing::warn!(id = %record.id, why = boxes::reason(&error), "no mark");
                Marked::No
            }
        };
        if marked == Marked::Yes {
            progress.note(&format!(
                "box `{name}` is set up and marked; `box restore {name} bootstrapped` comes back to this"
            ));
        }
    }
    Ok(())
}

/// The box was made just now, so a mark it has was taken just now.
async fn has_pristine(host: &Host, record: &BoxRecord) -> bool {
    let all: Result<_, SnapshotError> = snapshot::snapshots(host, record).await;
    all.is_ok_and(|all| all.iter().any(|one| one.label == Label::pristine()))
}
