//! A file that comes in pieces with a request.

use super::client::Client;
use crate::problem;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use box_api::Problem;
use box_api::control::{ATTACHMENTS_MAX, ClientMessage, NewAttachment, PIECE_BYTES_MAX};
use box_core::attachments;
use std::time::Duration;
use tokio::time::timeout;

/// Longest a client may take for one piece.
const PIECE_DEADLINE: Duration = Duration::from_mins(1);

/// The files that come with a prompt.
///
/// # Errors
/// That there are too many or one may not be attached; else as [`collect`].
pub(super) async fn attachments(
    client: &mut Client,
    announced: &[NewAttachment],
) -> Result<Vec<Vec<u8>>, Problem> {
    if announced.len() > ATTACHMENTS_MAX {
        return Err(problem::too_many_files());
    }
    for file in announced {
        attachments::check(&file.file, file.bytes).map_err(problem::attachment)?;
    }
    let mut files = Vec::with_capacity(announced.len());
    for file in announced {
        files.push(collect(client, file.bytes).await?);
    }
    Ok(files)
}

/// All `bytes` of it. Whoever calls has bounded them.
///
/// # Errors
/// What a client deserves that sends something else, or nothing.
pub(super) async fn collect(client: &mut Client, bytes: u64) -> Result<Vec<u8>, Problem> {
    let bytes = usize::try_from(bytes).map_err(|_| problem::not_whole())?;
    let mut whole = Vec::with_capacity(bytes.min(PIECE_BYTES_MAX));
    while whole.len() < bytes {
        let message = timeout(PIECE_DEADLINE, client.message()).await;
        let message = message.map_err(|_| problem::not_whole())?;
        match message.map_err(problem::client)? {
            Some(ClientMessage::Piece { base64 }) => {
                let piece = STANDARD.decode(base64).map_err(|_| problem::not_whole())?;
                if piece.is_empty() || whole.len() + piece.len() > bytes {
                    return Err(problem::not_whole());
                }
                whole.extend(piece);
            }
            // Not for this request; a newer client may know why.
            Some(
                ClientMessage::Signal { .. }
                | ClientMessage::CancelTurn
                | ClientMessage::Person
                | ClientMessage::Answer { .. }
                | ClientMessage::AnswerForm { .. }
                | ClientMessage::Prompt { .. },
            ) => {}
            None => return Err(problem::client_gone()),
        }
    }
    Ok(whole)
}
