//! What the program of probes printed.

use crate::stage::Ran;
use serde::Deserialize;
use std::fmt;

/// One line of JSON of `box-probe`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Answer {
    /// `ok`, `refused` or `n/a`.
    result: String,
    /// The error's name (`EPERM`), for `refused`.
    #[serde(default)]
    errno: Option<String>,
    /// What else it found out.
    #[serde(default)]
    detail: Option<String>,
}

impl Answer {
    pub(crate) fn parse(ran: &Ran) -> Result<Self, String> {
        let line = ran.stdout.lines().last().unwrap_or_default();
        Self::of_line(line).map_err(|why| {
            format!(
                "{why}; it ended with {} and `{}`",
                ran.code,
                ran.stderr.trim()
            )
        })
    }

    pub(crate) fn of_line(line: &str) -> Result<Self, String> {
        let answer: Self = serde_json::from_str(line).map_err(|error| error.to_string())?;
        match answer.result.as_str() {
            "ok" | "refused" | "n/a" => Ok(answer),
            other => Err(format!("no result `{other}`")),
        }
    }

    pub fn is_ok(&self) -> bool {
        self.result == "ok"
    }

    pub fn detail(&self) -> Option<&str> {
        self.detail.as_deref()
    }

    /// The word after `key=` in the detail.
    pub fn word(&self, key: &str) -> Option<&str> {
        self.detail.as_deref()?.split_whitespace().find_map(|word| {
            word.split_once('=')
                .filter(|(name, _)| *name == key)
                .map(|(_, value)| value)
        })
    }
}

impl fmt::Display for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.result)?;
        self.errno
            .iter()
            .try_for_each(|errno| write!(f, " {errno}"))?;
        self.detail
            .iter()
            .try_for_each(|detail| write!(f, ", {detail}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_read_strictly() {
        let line = r#"{"probe":"spin","result":"ok","errno":null,"detail":"cpu=12 ms wall=20 ms"}"#;
        let answer = Answer::of_line(line).unwrap();
        assert!(answer.is_ok());
        assert_eq!(
            (answer.word("cpu"), answer.word("wall")),
            (Some("12"), Some("20"))
        );
        assert_eq!(answer.word("pu"), None);
        assert!(Answer::of_line(r#"{"result":"perhaps"}"#).is_err());
        assert!(Answer::of_line("").is_err());
    }
}
