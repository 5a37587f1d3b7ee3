//! What the launcher says on the command line.

use std::ffi::OsString;
use std::time::Duration;

/// How long a stop waits when nothing else is said.
const GRACE: Duration = Duration::from_secs(10);
/// Longest grace; whoever stops a box has given up long before.
const GRACE_MS_MAX: u64 = 600_000;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Arguments {
    /// Whom commands run as; absent: as the guest itself.
    pub(crate) user: Option<User>,
    pub(crate) grace: Duration,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct User {
    pub(crate) uid: u32,
    pub(crate) gid: u32,
}

impl Arguments {
    pub(crate) fn parse(words: impl Iterator<Item = OsString>) -> Result<Self, String> {
        let mut arguments = Self {
            user: None,
            grace: GRACE,
        };
        let mut words = words.map(|word| word.to_string_lossy().into_owned());
        while let Some(word) = words.next() {
            let mut value = || words.next().ok_or(format!("`{word}` needs a value"));
            match word.as_str() {
                "--user" => arguments.user = Some(parse_user(&value()?)?),
                "--grace-ms" => arguments.grace = parse_grace(&value()?)?,
                _ => return Err(format!("unknown argument `{word}`")),
            }
        }
        Ok(arguments)
    }
}

fn parse_user(text: &str) -> Result<User, String> {
    let parsed = text.split_once(':').and_then(|(uid, gid)| {
        // The all-ones id means "leave it" to setresuid(2).
        let id = |text: &str| text.parse().ok().filter(|id| *id != u32::MAX);
        Some(User {
            uid: id(uid)?,
            gid: id(gid)?,
        })
    });
    parsed.ok_or_else(|| format!("`{text}` is not `<uid>:<gid>`"))
}

fn parse_grace(text: &str) -> Result<Duration, String> {
    match text.parse() {
        Ok(ms) if ms <= GRACE_MS_MAX => Ok(Duration::from_millis(ms)),
        _ => Err(format!(
            "`{text}` is not a number of milliseconds up to {GRACE_MS_MAX}"
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::{Arguments, User};
    use std::time::Duration;

    fn parse(words: &[&str]) -> Result<Arguments, String> {
        Arguments::parse(words.iter().map(Into::into))
    }

    #[test]
    fn a_user_and_a_grace_are_read() {
        let arguments = parse(&["--user", "1020:1020", "--grace-ms", "50"]).unwrap();
        assert_eq!(
            arguments.user,
            Some(User {
                uid: 1020,
                gid: 1020
            })
        );
        assert_eq!(arguments.grace, Duration::from_millis(50));
    }

    #[test]
    fn anything_else_is_refused() {
        for words in [
            &["--user"][..],
            &["--user", "1020"],
            &["--user", "4294967295:0"],
            &["--user", "-1:0"],
            &["--grace-ms", "600001"],
            &["--verbose"],
        ] {
            assert!(parse(words).is_err(), "{words:?}");
        }
    }
}
