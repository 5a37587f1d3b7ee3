//! The name of an image in a registry: `[registry/]repository[:tag][@digest]`, as docker reads it.

use super::digest::Digest;
use std::fmt;
use std::net::IpAddr;

/// Longest repository name (distribution's reference grammar).
const REPOSITORY_CHARS_MAX: usize = 255;
const TAG_CHARS_MAX: usize = 128;
const REGISTRY_CHARS_MAX: usize = 260;
/// Where a name without a registry is, and the host that answers for it.
const USUAL: &str = "docker.io";
const USUAL_HOST: &str = "registry-1.docker.io";
/// Where the usual registry keeps images with a name of one part.
const USUAL_FOLDER: &str = "library/";
const USUAL_TAG: &str = "latest";

/// A parsed name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::images) struct OciName {
    /// Host, and a port where one was given.
    registry: String,
    repository: String,
    tag: Option<String>,
    digest: Option<Digest>,
}

impl OciName {
    /// # Errors
    /// What is wrong with it, for a person.
    pub(in crate::images) fn parse(text: &str) -> Result<Self, &'static str> {
        let (rest, digest) = match text.split_once('@') {
            None => (text, None),
            Some((rest, digest)) => {
                let digest = Digest::parse(digest);
                (
                    rest,
                    Some(digest.ok_or("what follows `@` is no `sha256:` digest")?),
                )
            }
        };
        let slash = rest.rfind('/').map_or(0, |slash| slash + 1);
        let (path, tag) = match rest[slash..].rsplit_once(':') {
            None => (rest, None),
            Some((own, tag)) if is_tag(tag) => (&rest[..slash + own.len()], Some(tag.to_owned())),
            Some(_) => return Err("what follows `:` is no tag"),
        };
        let (registry, repository) = match path.split_once('/') {
            Some((first, rest)) if names_registry(first) => (first.to_owned(), rest.to_owned()),
            Some(_) => (USUAL.to_owned(), path.to_owned()),
            None => (USUAL.to_owned(), format!("{USUAL_FOLDER}{path}")),
        };
        let registry = match registry.as_str() {
            "index.docker.io" | USUAL_HOST => USUAL.to_owned(),
            _ => registry,
        };
        if !is_registry(&registry) {
            return Err("its first part is no host");
        } else if !is_repository(&repository) {
            return Err("a name is of small letters, digits and `-`, `_`, `.` between them");
        }
        let tag = match (&tag, &digest) {
            (None, None) => Some(USUAL_TAG.to_owned()),
            _ => tag,
        };
        Ok(Self {
            registry,
            repository,
            tag,
            digest,
        })
    }

    /// The registry as logins name it.
    pub(in crate::images) fn registry(&self) -> &str {
        &self.registry
    }

    pub(in crate::images) fn repository(&self) -> &str {
        &self.repository
    }

    /// What a manifest is asked for by: the digest where one is given, for the tag may move.
    pub(in crate::images) fn wanted(&self) -> String {
        match (&self.digest, &self.tag) {
            (Some(digest), _) => digest.to_string(),
            (None, Some(tag)) => tag.clone(),
            (None, None) => USUAL_TAG.to_owned(),
        }
    }

    pub(in crate::images) fn digest(&self) -> Option<&Digest> {
        self.digest.as_ref()
    }

    /// Whether it is on this machine, where nobody listens in, so plain HTTP will do.
    pub(in crate::images) fn is_local(&self) -> bool {
        is_local(host_of(&self.registry))
    }

    /// The address requests go to, without a slash at its end.
    pub(in crate::images) fn address(&self) -> String {
        let scheme = if self.is_local() { "http" } else { "https" };
        let host = match self.registry.as_str() {
            USUAL => USUAL_HOST,
            registry => registry,
        };
        format!("{scheme}://{host}")
    }
}

/// As short as it can be written and still be parsed to the same.
impl fmt::Display for OciName {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.registry == USUAL {
            let short = self.repository.strip_prefix(USUAL_FOLDER);
            let short = short.filter(|short| !short.contains('/'));
            formatter.write_str(short.unwrap_or(&self.repository))?;
        } else {
            write!(formatter, "{}/{}", self.registry, self.repository)?;
        }
        if let Some(tag) = &self.tag {
            write!(formatter, ":{tag}")?;
        }
        if let Some(digest) = &self.digest {
            write!(formatter, "@{digest}")?;
        }
        Ok(())
    }
}

/// The host without its port.
fn host_of(registry: &str) -> &str {
    match registry.rsplit_once(':') {
        Some((host, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => host,
        _ => registry,
    }
}

/// Whether a host is this machine. `host` may be in brackets.
pub(super) fn is_local(host: &str) -> bool {
    let plain = host.trim_start_matches('[').trim_end_matches(']');
    plain == "localhost"
        || plain
            .parse::<IpAddr>()
            .is_ok_and(|address| address.is_loopback())
}

/// Docker's rule: a first part with a dot or a port, or `localhost`, is a registry.
fn names_registry(part: &str) -> bool {
    part == "localhost" || part.contains(['.', ':'])
}

fn is_registry(text: &str) -> bool {
    if text.len() > REGISTRY_CHARS_MAX {
        return false;
    }
    let host = host_of(text);
    let port = text[host.len()..].strip_prefix(':');
    if port.is_some_and(|port| port.parse::<u16>().is_err()) {
        return false;
    }
    if let Some(inner) = host.strip_prefix('[') {
        let inner = inner.strip_suffix(']');
        return inner.is_some_and(|inner| inner.parse::<std::net::Ipv6Addr>().is_ok());
    }
    host.split('.').all(|label| {
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
        !label.is_empty()
            && label.bytes().all(plain)
            && !label.starts_with('-')
            && !label.ends_with('-')
    })
}

fn is_repository(text: &str) -> bool {
    text.len() <= REPOSITORY_CHARS_MAX && text.split('/').all(is_component)
}

/// Small letters and digits, between them `.`, `_`, `__` or any number of `-`.
fn is_component(text: &str) -> bool {
    let alphanumeric = |byte: &u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let (Some(first), Some(last)) = (text.as_bytes().first(), text.as_bytes().last()) else {
        return false;
    };
    alphanumeric(first)
        && alphanumeric(last)
        && text.as_bytes().split(alphanumeric).all(|between| {
            matches!(between, b"" | b"." | b"_" | b"__") || between.iter().all(|byte| *byte == b'-')
        })
}

fn is_tag(text: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b'-');
    !text.is_empty()
        && text.len() <= TAG_CHARS_MAX
        && text.bytes().all(plain)
        && !text.starts_with(['.', '-'])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> (String, String, String) {
        let name = OciName::parse(text).unwrap();
        (name.address(), name.repository.clone(), name.wanted())
    }

    fn strings(a: &str, b: &str, c: &str) -> (String, String, String) {
        (a.to_owned(), b.to_owned(), c.to_owned())
    }

    #[test]
    fn names_are_read_as_docker_reads_them() {
        let hub = "https://registry-1.docker.io";
        assert_eq!(parsed("alpine"), strings(hub, "library/alpine", "latest"));
        assert_eq!(parsed("a/b:1.2"), strings(hub, "a/b", "1.2"));
        assert_eq!(
            parsed("docker.io/library/alpine"),
            strings(hub, "library/alpine", "latest")
        );
        assert_eq!(
            parsed("quay.example/team/app:x_1"),
            strings("https://quay.example", "team/app", "x_1")
        );
        assert_eq!(
            parsed("localhost/app"),
            strings("http://localhost", "app", "latest")
        );
        assert_eq!(
            parsed("127.0.0.1:5000/a/b"),
            strings("http://127.0.0.1:5000", "a/b", "latest")
        );
        assert_eq!(
            parsed("[::1]:5000/a"),
            strings("http://[::1]:5000", "a", "latest")
        );
        assert_eq!(
            parsed("reg.example:5000/a"),
            strings("https://reg.example:5000", "a", "latest")
        );
        let digest = format!("sha256:{}", "a".repeat(64));
        assert_eq!(
            parsed(&format!("alpine:3@{digest}")),
            strings(hub, "library/alpine", &digest)
        );
    }

    #[test]
    fn names_are_shown_as_short_as_they_can_be_read_again() {
        let digest = format!("sha256:{}", "0".repeat(64));
        for (typed, shown) in [
            ("alpine", "alpine:latest"),
            ("docker.io/library/alpine:3", "alpine:3"),
            ("index.docker.io/a/b", "a/b:latest"),
            ("library/a/b", "library/a/b:latest"),
            ("localhost:5000/a", "localhost:5000/a:latest"),
            (&format!("a@{digest}"), &format!("a@{digest}")),
        ] {
            let name = OciName::parse(typed).unwrap();
            assert_eq!(name.to_string(), shown);
            assert_eq!(OciName::parse(shown).unwrap(), name);
        }
    }

    #[test]
    fn what_is_no_name_is_refused() {
        for text in [
            "",
            "/",
            "a//b",
            "A",
            "a/B",
            "a/../b",
            "-a",
            "a-",
            "a..b",
            "a___b",
            "a:",
            "a:-x",
            "a:x/y:z w",
            "a@b",
            "a@sha256:12",
            "x.y:99999/a",
            "-x.y/a",
            "[::g]/a",
            "a b",
            "a\n",
            "user@host/a",
            "x.y?/a",
            "x..y/a",
        ] {
            assert!(OciName::parse(text).is_err(), "{text:?}");
        }
        for text in ["a--b", "a__b", "a.b/c_d", "0"] {
            assert!(OciName::parse(text).is_ok(), "{text:?}");
        }
    }

    #[test]
    fn only_this_machine_is_spoken_to_in_the_clear() {
        for text in [
            "localhost/a",
            "localhost:1/a",
            "127.0.0.1/a",
            "127.9.9.9:5/a",
            "[::1]/a",
        ] {
            assert!(OciName::parse(text).unwrap().is_local(), "{text}");
        }
        for text in [
            "localhost.example/a",
            "10.0.0.1/a",
            "127.0.0.1.example/a",
            "a",
        ] {
            assert!(!OciName::parse(text).unwrap().is_local(), "{text}");
        }
    }
}
