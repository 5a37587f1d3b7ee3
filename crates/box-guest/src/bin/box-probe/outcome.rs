//! What came of an attempt, and how it is told.

use serde::Serialize;
use std::io;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Outcome {
    Ok {
        detail: Option<String>,
    },
    Refused {
        errno: String,
        detail: Option<String>,
    },
    NotTried {
        why: String,
    },
}

impl Outcome {
    pub(crate) fn ok() -> Self {
        Self::Ok { detail: None }
    }

    pub(crate) fn not_tried(why: impl Into<String>) -> Self {
        Self::NotTried { why: why.into() }
    }

    /// What a system call gave; negative is a failure and the error is in `errno`.
    pub(crate) fn of_call(result: i64) -> Self {
        if result < 0 {
            Self::of(Err(io::Error::last_os_error()))
        } else {
            Self::ok()
        }
    }

    pub(crate) fn of(result: io::Result<()>) -> Self {
        match result {
            Ok(()) => Self::ok(),
            Err(error) => Self::Refused {
                errno: name_of(&error),
                detail: None,
            },
        }
    }

    pub(crate) fn of_errno(number: i32) -> Self {
        Self::of(Err(io::Error::from_raw_os_error(number)))
    }

    #[must_use]
    pub(crate) fn with(self, detail: impl Into<String>) -> Self {
        let detail = Some(detail.into());
        match self {
            Self::Ok { .. } => Self::Ok { detail },
            Self::Refused { errno, .. } => Self::Refused { errno, detail },
            Self::NotTried { why } => Self::NotTried { why },
        }
    }

    pub(crate) fn line(&self, probe: &str) -> String {
        let (result, errno, detail) = match self {
            Self::Ok { detail } => ("ok", None, detail.as_deref()),
            Self::Refused { errno, detail } => ("refused", Some(errno.as_str()), detail.as_deref()),
            Self::NotTried { why } => ("n/a", None, Some(why.as_str())),
        };
        // Texts only, so this cannot fail; an empty line would be refused by whoever reads it.
        serde_json::to_string(&Line {
            probe,
            result,
            errno,
            detail,
        })
        .unwrap_or_default()
    }
}

/// In this order.
#[derive(Serialize)]
struct Line<'a> {
    probe: &'a str,
    result: &'a str,
    errno: Option<&'a str>,
    detail: Option<&'a str>,
}

/// The name of an error, such as `EPERM`; its number where it has no name here.
fn name_of(error: &io::Error) -> String {
    match error.raw_os_error() {
        Some(number) => {
            let known = NAMES.iter().find(|(known, _)| *known == number);
            known.map_or(format!("E#{number}"), |(_, name)| (*name).to_owned())
        }
        // The standard library's own time-outs have no number.
        None if error.kind() == io::ErrorKind::TimedOut => "ETIMEDOUT".to_owned(),
        None => format!("{:?}", error.kind()),
    }
}

macro_rules! names {
    ($($name:ident)*) => { &[$((libc::$name, stringify!($name))),*] };
}

/// errno(3), what these probes can meet.
const NAMES: &[(i32, &str)] = names!(
    EPERM ENOENT ESRCH EINTR EIO ENXIO E2BIG ENOEXEC EBADF ECHILD EAGAIN ENOMEM EACCES EFAULT
    ENOTBLK EBUSY EEXIST EXDEV ENODEV ENOTDIR EISDIR EINVAL ENFILE EMFILE ENOTTY ETXTBSY EFBIG
    ENOSPC ESPIPE EROFS EMLINK EPIPE EDOM ERANGE ENAMETOOLONG ENOSYS ENOTEMPTY ELOOP ENOKEY
    EKEYREVOKED EPROTO EOVERFLOW EUSERS ENOTSOCK EDESTADDRREQ EMSGSIZE EPROTOTYPE ENOPROTOOPT
    EPROTONOSUPPORT ESOCKTNOSUPPORT EOPNOTSUPP EPFNOSUPPORT EAFNOSUPPORT EADDRINUSE
    EADDRNOTAVAIL ENETDOWN ENETUNREACH ECONNABORTED ECONNRESET ENOBUFS EISCONN ENOTCONN
    ETIMEDOUT ECONNREFUSED EHOSTDOWN EHOSTUNREACH EALREADY EINPROGRESS ESTALE EDQUOT ECANCELED
);

#[cfg(test)]
mod tests {
    use super::Outcome;

    #[test]
    fn outcomes_are_told_in_four_fields() {
        assert_eq!(
            Outcome::of_errno(libc::EPERM).with("x").line("mount"),
            r#"{"probe":"mount","result":"refused","errno":"EPERM","detail":"x"}"#
        );
        assert_eq!(
            Outcome::ok().line("open"),
            r#"{"probe":"open","result":"ok","errno":null,"detail":null}"#
        );
        assert_eq!(
            Outcome::not_tried("no such thing").line("open"),
            r#"{"probe":"open","result":"n/a","errno":null,"detail":"no such thing"}"#
        );
        assert!(Outcome::of_errno(9999).line("x").contains("E#9999"));
    }
}
