//! Which of GitHub's hosts a request goes to, and its path, read one way or not at all.

use box_api::egress::HostName;

/// Domains of which every host is judged.
const DOMAINS: [&str; 3] = ["github.com", "githubusercontent.com", "ghcr.io"];
const SEGMENTS_MAX: usize = 64;

/// What a host of GitHub takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    /// `github.com`: git, large files, logins.
    Git,
    /// `gist.github.com`: git without repositories.
    Gist,
    /// `api.github.com`: REST and GraphQL.
    Api,
    /// `uploads.github.com`: REST for the files of releases.
    Uploads,
    /// Everything else, where nothing is written.
    Other,
}

impl Place {
    /// The place `host` is, when it is GitHub's.
    pub(crate) fn of(host: &HostName) -> Option<Self> {
        let host = host.as_str();
        let is_below = |domain: &str| {
            let prefix = host.strip_suffix(domain);
            prefix.is_some_and(|prefix| prefix.is_empty() || prefix.ends_with('.'))
        };
        if !DOMAINS.into_iter().any(is_below) {
            return None;
        }
        Some(match host {
            "github.com" | "www.github.com" => Self::Git,
            "gist.github.com" => Self::Gist,
            "api.github.com" => Self::Api,
            "uploads.github.com" => Self::Uploads,
            _ => Self::Other,
        })
    }
}

/// The segments of a path, decoded once; absent when two readers could read it differently.
pub(crate) fn segments(path: &str) -> Option<Vec<String>> {
    let rest = path.strip_prefix('/')?;
    let parts: Option<Vec<String>> = rest.split('/').map(segment).collect();
    parts.filter(|parts| parts.len() <= SEGMENTS_MAX)
}

fn segment(raw: &str) -> Option<String> {
    let text = decoded(raw)?;
    let odd = |c: char| c.is_control() || "%\\?#;".contains(c);
    let dots = |part: &str| part.is_empty() || part == "." || part == "..";
    (!text.chars().any(odd) && !text.split('/').any(dots)).then_some(text)
}

/// Percent-decoded (RFC 3986 §2.1), once.
pub(crate) fn decoded(raw: &str) -> Option<String> {
    let mut bytes = raw.bytes();
    let mut out = Vec::with_capacity(raw.len());
    while let Some(byte) = bytes.next() {
        out.push(if byte == b'%' {
            let high = digit(bytes.next()?)?;
            high << 4 | digit(bytes.next()?)?
        } else {
            byte
        });
    }
    String::from_utf8(out).ok()
}

fn digit(byte: u8) -> Option<u8> {
    let digit = char::from(byte).to_digit(16)?;
    u8::try_from(digit).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn path_is_read_one_way_or_not_at_all() {
        let read = |path| segments(path).map(|parts| parts.join("|"));
        assert_eq!(read("/repos/o/r").as_deref(), Some("repos|o|r"));
        assert_eq!(read("/a%20b/c%2Fd").as_deref(), Some("a b|c/d"));
        for path in [
            "",
            "repos",
            "//repos/o/r",
            "/repos//r",
            "/repos/o/r/",
            "/repos/o/../x",
            "/repos/o/./r",
            "/repos/o/%2e%2e/x",
            "/repos/o/%2E./x",
            "/repos/o/a%2F..%2Fb",
            "/repos/o/%252e",
            "/repos/o/%",
            "/repos/o/%2",
            "/repos/o/%zz",
            "/repos/o/%ff",
            "/repos/o/a%00b",
            "/repos/o/a%5cb",
            "/repos/o;x/r",
            "/repos/o/r%3Fx",
            "/repos/o/r%23x",
        ] {
            assert_eq!(read(path), None, "{path}");
        }
    }

    #[test]
    fn hosts_of_github_are_known_by_whole_labels() {
        let place = |host| Place::of(&HostName::parse(host).unwrap());
        assert_eq!(place("github.com"), Some(Place::Git));
        assert_eq!(place("api.github.com"), Some(Place::Api));
        assert_eq!(place("lfs.github.com"), Some(Place::Other));
        assert_eq!(place("notgithub.com"), None);
        assert_eq!(place("github.com.evil.test"), None);
    }
}
