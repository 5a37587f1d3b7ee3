//! A prompt of an editor as one text; its images go into the box first (C55).

use crate::client::unexpected;
use crate::complaint::Complaint;
use crate::host::{self, OtherBuild};
use crate::output::Output;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use box_api::BoxName;
use box_api::control::{
    ATTACHMENTS_MAX, AttachFile, Attached, ClientMessage, Outcome, PIECE_BYTES_MAX, Request,
    envelope,
};
use box_server::acp::content::{Part, parts};
use serde_json::Value;

/// The text of a prompt.
///
/// # Errors
/// A block of a kind this agent did not offer to take, or an image that did not get into the box.
pub(super) fn text(
    output: &mut Output,
    name: &BoxName,
    prompt: &Value,
) -> Result<String, Complaint> {
    let bad = |why: String| Complaint::usage("bad-prompt", why);
    let mut texts = Vec::new();
    let mut attached = Vec::new();
    for part in parts(prompt).map_err(bad)? {
        match part {
            Part::Text(text) => texts.push(text),
            Part::Image { .. } if attached.len() >= ATTACHMENTS_MAX => {
                let why = format!("a prompt has at most {ATTACHMENTS_MAX} images");
                return Err(bad(why));
            }
            Part::Image { file, content } => attached.push(image(output, name, (file, &content))?),
        }
    }
    Ok(envelope(&attached, &texts.join("\n")))
}

fn image(
    output: &mut Output,
    name: &BoxName,
    (file, content): (String, &[u8]),
) -> Result<Attached, Complaint> {
    let mut client = host::reach(output, OtherBuild::Bear)?;
    client.request(&Request::AttachFile(AttachFile {
        name: name.clone(),
        file,
        bytes: content.len() as u64,
    }))?;
    for piece in content.chunks(PIECE_BYTES_MAX) {
        let base64 = STANDARD.encode(piece);
        match client.say(&ClientMessage::Piece { base64 }) {
            Ok(()) => {}
            // It refused already; reading says why.
            Err(error) if error.is_gone() => break,
            Err(error) => return Err(error.into()),
        }
    }
    let outcome = client.end(output)?;
    let Outcome::Attached(attached) = outcome else {
        return Err(unexpected(&outcome));
    };
    Ok(attached)
}
