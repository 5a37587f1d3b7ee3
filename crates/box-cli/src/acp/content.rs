//! What an editor puts into a prompt, as one text. Files of its machine are none in the box: what
//! comes with its content is written out, images are copied into the box (C55).

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
    let blocks = prompt.as_array().map(Vec::as_slice).unwrap_or_default();
    let mut parts = Vec::new();
    let mut attached = Vec::new();
    for block in blocks {
        match block["type"].as_str().unwrap_or_default() {
            "text" => parts.push(string(&block["text"])),
            "resource_link" => parts.push(format!("`{}`", string(&block["uri"]))),
            "resource" => parts.push(embedded(&block["resource"])),
            "image" if attached.len() < ATTACHMENTS_MAX => {
                attached.push(image(output, name, block)?);
            }
            other => {
                let title = format!("this agent takes no `{other}` here");
                return Err(Complaint::usage("bad-prompt", title));
            }
        }
    }
    let text = parts.join("\n");
    Ok(envelope(&attached, &text))
}

fn string(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

fn embedded(resource: &Value) -> String {
    let uri = string(&resource["uri"]);
    let text = string(&resource["text"]);
    format!("`{uri}`:\n\n{}\n", fenced(&text))
}

/// In a fence longer than any in it.
fn fenced(text: &str) -> String {
    let runs = text.split(|c| c != '`').map(str::len);
    let fence = "`".repeat(runs.max().unwrap_or(0).max(2) + 1);
    let text = text.trim_end_matches('\n');
    format!("{fence}\n{text}\n{fence}")
}

fn image(output: &mut Output, name: &BoxName, block: &Value) -> Result<Attached, Complaint> {
    let bad = || Complaint::usage("bad-prompt", "an image of the prompt is no base64");
    let content = STANDARD
        .decode(block["data"].as_str().unwrap_or_default())
        .map_err(|_| bad())?;
    let extension = match block["mimeType"].as_str().unwrap_or_default() {
        "image/jpeg" => "jpg",
        "image/gif" => "gif",
        "image/webp" => "webp",
        "image/svg+xml" => "svg",
        _ => "png",
    };
    let mut client = host::reach(output, OtherBuild::Bear)?;
    client.request(&Request::AttachFile(AttachFile {
        name: name.clone(),
        file: format!("image.{extension}"),
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

#[cfg(test)]
mod tests {
    use super::fenced;

    #[test]
    fn a_fence_is_longer_than_what_it_holds() {
        assert_eq!(fenced("a\n"), "```\na\n```");
        assert_eq!(fenced("````\nx\n````"), "`````\n````\nx\n````\n`````");
    }
}
