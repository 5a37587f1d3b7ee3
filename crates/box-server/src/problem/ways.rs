//! What goes wrong with attachments, `!` lines and files that come in pieces.

use super::{attach, find, hinted, host_ends, start, thread, told};
use box_api::control::ATTACHMENTS_MAX;
use box_api::{Problem, ProblemKind};
use box_core::attachments::AttachmentError;
use box_core::shell_line::ShellLineError;
use box_core::workspace_files::FilesError;

use ProblemKind::{Failed, Refused, Usage};

pub(crate) fn attachment(error: AttachmentError) -> Problem {
    let hint = error.hint();
    match error {
        AttachmentError::Find(error) => find(error),
        AttachmentError::Start(error) => start(error),
        AttachmentError::Nameless | AttachmentError::Empty { .. } => {
            told(Usage, "bad-attachment", &error)
        }
        AttachmentError::TooLarge { .. } => {
            hinted(told(Usage, "attachment-too-large", &error), hint)
        }
        AttachmentError::NamesTaken { .. } => hinted(told(Refused, "names-taken", &error), hint),
        AttachmentError::Unknown { .. } => told(Failed, "attachment-not-found", &error),
        AttachmentError::Copy { .. } => told(Failed, "not-attached", &error),
    }
}

pub(crate) fn shell_line(error: ShellLineError) -> Problem {
    match error {
        ShellLineError::Empty | ShellLineError::TooLong => told(Usage, "bad-line", &error),
        ShellLineError::Find(error) => find(error),
        ShellLineError::Attach(error) => attach(error),
        ShellLineError::Start(error) => start(error),
        ShellLineError::Thread(error) => thread(error),
        ShellLineError::Inside { .. } => told(Failed, "not-run", &error),
        ShellLineError::Ending => host_ends(),
    }
}

pub(crate) fn workspace_files(error: FilesError) -> Problem {
    match error {
        FilesError::Find(error) => find(error),
        FilesError::Start(error) => start(error),
        FilesError::Inside { .. } => told(Failed, "not-listed", &error),
    }
}

pub(crate) fn too_many_files() -> Problem {
    let title = format!("at most {ATTACHMENTS_MAX} files go with a prompt");
    Problem::new(Usage, "too-many-files", title)
        .hinted("`box cp` copies whole folders; then name them in the prompt")
}

/// A client that announced a file and sent another.
pub(crate) fn not_whole() -> Problem {
    Problem::new(Failed, "not-whole", "the file did not come whole").hinted("send it again")
}
