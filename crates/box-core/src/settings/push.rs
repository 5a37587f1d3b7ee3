//! `[push]`: who push services may turn to, and when a turn is taken for over.

use super::{Origin, Setting};
use toml::Value;

/// C112
const SETTLE_S: u32 = 30;
const SETTLE_S_MAX: u32 = 3600;
const SUBJECT_BYTES_MAX: usize = 500;

/// `[push]`
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PushSettings {
    /// `subject`: `mailto:` or `https:`, by which a push service reaches whoever runs this host
    /// (RFC 8292 §2.1); without it the page's own address.
    pub subject: Setting<Option<String>>,
    /// `settle`: seconds a turn must be over before that is told.
    pub settle_s: Setting<u32>,
}

impl Default for PushSettings {
    fn default() -> Self {
        Self {
            subject: Setting::default_of(None),
            settle_s: Setting::default_of(SETTLE_S),
        }
    }
}

impl PushSettings {
    /// What is signed for a browser whose page has this origin.
    pub fn subject_for(&self, origin: &str) -> String {
        match &self.subject.value {
            Some(subject) => subject.clone(),
            None if origin.starts_with("https://") => origin.to_owned(),
            // Loopback has no address that anybody could write to.
            None => "https://localhost".to_owned(),
        }
    }

    pub(super) fn put_subject(&mut self, value: &Value, origin: Origin) -> Result<(), String> {
        let value = subject(super::read::text(value)?)?;
        self.subject = Setting {
            value: Some(value),
            origin,
        };
        Ok(())
    }

    pub(super) fn put_settle(&mut self, value: &Value, origin: Origin) -> Result<(), String> {
        let seconds = value
            .as_integer()
            .and_then(|seconds| u32::try_from(seconds).ok());
        let seconds = seconds.filter(|seconds| *seconds <= SETTLE_S_MAX);
        let value = seconds.ok_or_else(|| format!("it is no number from 0 to {SETTLE_S_MAX}"))?;
        self.settle_s = Setting { value, origin };
        Ok(())
    }

    /// The variables of a deployment in containers hold where the file says nothing.
    pub(super) fn complete(
        &mut self,
        subject_is: Option<(&'static str, &str)>,
        settle_is: Option<(&'static str, &str)>,
    ) -> Result<(), (&'static str, String)> {
        if let Some((name, text)) = subject_is
            && self.subject.origin == Origin::Default
        {
            self.subject = Setting {
                value: Some(subject(text).map_err(|why| (name, why))?),
                origin: Origin::Environment(name),
            };
        }
        if let Some((name, text)) = settle_is
            && self.settle_s.origin == Origin::Default
        {
            let seconds: i64 = text.trim().parse().unwrap_or(-1);
            let put = self.put_settle(&Value::Integer(seconds), Origin::Environment(name));
            put.map_err(|why| (name, why))?;
        }
        Ok(())
    }
}

/// Push services refuse anything else.
fn subject(text: &str) -> Result<String, String> {
    let wrong = || "it is neither `mailto:` nor `https:` followed by an address".to_owned();
    let rest = text
        .strip_prefix("mailto:")
        .filter(|rest| rest.contains('@'));
    let rest = rest.or_else(|| text.strip_prefix("https://"));
    let is_plain = |rest: &str| !rest.is_empty() && rest.bytes().all(|b| b.is_ascii_graphic());
    if text.len() > SUBJECT_BYTES_MAX || !rest.is_some_and(is_plain) {
        return Err(wrong());
    }
    Ok(text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_subject_is_an_address_of_a_person_or_a_page() {
        for fine in ["mailto:me@example.org", "https://example.org/contact"] {
            assert_eq!(subject(fine), Ok(fine.to_owned()));
        }
        for bad in [
            "",
            "me@example.org",
            "http://example.org",
            "mailto:",
            "mailto:me",
            "https://",
            "https://a b",
        ] {
            assert!(subject(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn what_is_signed_is_the_pages_own_address_where_nothing_is_set() {
        let mut settings = PushSettings::default();
        assert_eq!(
            settings.subject_for("https://boxes.example.org"),
            "https://boxes.example.org"
        );
        assert_eq!(
            settings.subject_for("http://localhost:2697"),
            "https://localhost"
        );
        let variable = Some(("PUSH_SUBJECT", "mailto:me@example.org"));
        settings
            .complete(variable, Some(("AGENT_SETTLE_SECONDS", "5")))
            .unwrap();
        assert_eq!(
            settings.subject_for("http://localhost:2697"),
            "mailto:me@example.org"
        );
        assert_eq!(settings.settle_s.value, 5);
        let (name, _) = PushSettings::default()
            .complete(None, Some(("AGENT_SETTLE_SECONDS", "x")))
            .unwrap_err();
        assert_eq!(name, "AGENT_SETTLE_SECONDS");
        assert!(
            PushSettings::default()
                .complete(Some(("PUSH_SUBJECT", "me")), None)
                .is_err()
        );
    }
}
