//! What a browser shows: the declarative form (`web_push: 8030`), which Safari shows without a
//! worker and the page's own worker reads as well.

use super::rows::Device;
use serde_json::json;

/// How much of what was said is told (D28).
const SAID_CHARS_MAX: usize = 120;
/// Longest title.
const TITLE_CHARS_MAX: usize = 100;

/// What is to be told, before it is known to whom.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Message {
    /// The sign of decision D27.
    pub(super) sign: char,
    /// Box and thread.
    pub(super) about: String,
    /// What happened, in a word or two.
    pub(super) what: &'static str,
    /// What was said or asked; left out where names are enough.
    pub(super) said: String,
    /// What still runs, or until when it waits (C112).
    pub(super) more: Option<String>,
    /// Where a tap leads, on the page.
    pub(super) path: String,
    /// Which notification it replaces.
    pub(super) topic: String,
}

/// As `device` is to show it.
pub(super) fn for_device(message: &Message, device: &Device) -> String {
    let mut body = message.what.to_owned();
    if !device.names_only && !message.said.is_empty() {
        body = match body.as_str() {
            "" => message.said.clone(),
            what => format!("{what}: {}", message.said),
        };
    }
    if let Some(more) = &message.more {
        body = format!("{body} · {more}");
    }
    let title = format!("{} {}", message.sign, message.about);
    whole(device, (&title, &body), (&message.path, &message.topic))
}

pub(super) fn of_test(device: &Device, tag: &str) -> String {
    let said = "Notifications reach this device.";
    whole(device, ("Boxes", said), ("/settings", tag))
}

fn whole(device: &Device, (title, body): (&str, &str), (path, tag): (&str, &str)) -> String {
    json!({
        "web_push": 8030,
        "notification": {
            "title": title,
            "body": body,
            "navigate": format!("{}{path}", device.origin),
            "tag": tag,
            "lang": "en",
            "dir": "auto",
            "silent": false,
        },
    })
    .to_string()
}

/// Box and thread, as a title has it.
pub(super) fn about(name: &str, title: &str) -> String {
    let title = plain(title, TITLE_CHARS_MAX);
    if title.is_empty() {
        name.to_owned()
    } else {
        format!("{name} · {title}")
    }
}

/// The first of a text, on one line, with nothing in it that hides or turns text around.
pub(super) fn said(text: &str) -> String {
    plain(text, SAID_CHARS_MAX)
}

fn plain(text: &str, chars_max: usize) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    let line = words.join(" ");
    let mut shown = line.chars().filter(|c| !hides(*c));
    let first: String = shown.by_ref().take(chars_max).collect();
    if shown.next().is_some() {
        format!("{}…", first.trim_end())
    } else {
        first
    }
}

/// Control characters, and what Unicode has for direction, joining and no width at all.
fn hides(c: char) -> bool {
    c.is_control()
        || matches!(c,
            '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::push::encrypt::Keys;
    use box_api::Owner;
    use serde_json::Value;

    fn device() -> Device {
        Device {
            sign_in: "a".into(),
            owner: Owner::Uid(0),
            endpoint: String::new(),
            keys: Keys {
                p256dh: Vec::new(),
                auth: Vec::new(),
            },
            key: Vec::new(),
            origin: "https://boxes.example.org".into(),
            names_only: false,
            made_at_ms: 0,
            told_at_ms: None,
            problem: None,
        }
    }

    fn message() -> Message {
        Message {
            sign: '○',
            about: about("demo", "fix the test"),
            what: "Done",
            said: said(&"word ".repeat(100)),
            more: Some("2 still run".to_owned()),
            path: "/t/abc".into(),
            topic: "t-abc".into(),
        }
    }

    fn shown(device: &Device) -> Value {
        let text = for_device(&message(), device);
        serde_json::from_str(&text).unwrap()
    }

    #[test]
    fn box_thread_and_the_first_of_what_was_said_are_told() {
        let shown = shown(&device());
        assert_eq!(shown["web_push"], 8030);
        let told = &shown["notification"];
        assert_eq!(told["title"], "○ demo · fix the test");
        assert_eq!(told["navigate"], "https://boxes.example.org/t/abc");
        assert_eq!(told["tag"], "t-abc");
        let body = told["body"].as_str().unwrap();
        assert!(body.starts_with("Done: word word"), "{body}");
        assert!(body.ends_with("… · 2 still run"), "{body}");
        assert!(body.chars().count() < SAID_CHARS_MAX + 30, "{body}");
    }

    #[test]
    fn a_device_for_names_is_told_no_word_of_the_agent() {
        let told = &shown(&Device {
            names_only: true,
            ..device()
        })["notification"];
        assert_eq!(told["body"], "Done · 2 still run");
        assert_eq!(told["title"], "○ demo · fix the test");
    }

    #[test]
    fn a_text_stays_on_its_line_and_hides_nothing() {
        assert_eq!(said("a\u{202e}b\n\nc\u{200b}d\t e"), "ab cd e");
        assert_eq!(said("grüße 👋"), "grüße 👋");
    }
}
