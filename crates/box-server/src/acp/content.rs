//! What a client puts into a prompt. Files of its machine are none in the box: what comes with its
//! content is written out, images are copied into the box (C55).

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

/// A part of a prompt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Part {
    Text(String),
    /// To be put into the box under this name.
    Image {
        file: String,
        content: Vec<u8>,
    },
}

/// The parts of a prompt, in order.
///
/// # Errors
/// A block of a kind this agent did not offer to take, or an image that is none.
pub fn parts(prompt: &Value) -> Result<Vec<Part>, String> {
    let blocks = prompt.as_array().map(Vec::as_slice).unwrap_or_default();
    blocks.iter().map(part).collect()
}

fn part(block: &Value) -> Result<Part, String> {
    match block["type"].as_str().unwrap_or_default() {
        "text" => Ok(Part::Text(string(&block["text"]))),
        "resource_link" => Ok(Part::Text(format!("`{}`", string(&block["uri"])))),
        "resource" => Ok(Part::Text(embedded(&block["resource"]))),
        "image" => image(block),
        other => {
            let other: String = other.chars().take(100).collect();
            Err(format!("this agent takes no `{other}` here"))
        }
    }
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

fn image(block: &Value) -> Result<Part, String> {
    let content = STANDARD
        .decode(block["data"].as_str().unwrap_or_default())
        .map_err(|_| "an image of the prompt is no base64".to_owned())?;
    let extension = match block["mimeType"].as_str().unwrap_or_default() {
        "image/jpeg" => "jpg",
        "image/gif" => "gif",
        "image/webp" => "webp",
        "image/svg+xml" => "svg",
        _ => "png",
    };
    let file = format!("image.{extension}");
    Ok(Part::Image { file, content })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_fence_is_longer_than_what_it_holds() {
        assert_eq!(fenced("a\n"), "```\na\n```");
        assert_eq!(fenced("````\nx\n````"), "`````\n````\nx\n````\n`````");
    }

    #[test]
    fn what_was_not_offered_is_refused() {
        let taken = parts(&json!([
            {"type": "text", "text": "hi"},
            {"type": "image", "mimeType": "image/gif", "data": "AQI="},
        ]));
        let image = Part::Image {
            file: "image.gif".into(),
            content: vec![1, 2],
        };
        assert_eq!(taken, Ok(vec![Part::Text("hi".into()), image]));
        assert!(parts(&json!([{"type": "audio"}])).is_err());
        assert!(parts(&json!([{"type": "image", "data": "%"}])).is_err());
    }
}
