//! `box policy check`: what would become of a connection or a request, by the decision that counts.

use super::super::{Ended, Print};
use crate::client::unexpected;
use crate::complaint::Complaint;
use crate::host::{self, OtherBuild};
use crate::output::{Format, visible};
use box_api::BoxName;
use box_api::control::{Outcome, Request};
use box_api::egress::{AskedPush, AskedRequest, Checked, PushHow, Verdict};
use box_api::network::PolicyAsk;
use std::net::IpAddr;

/// It would not go through: refused by policy.
const REFUSED: u8 = 3;

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    box policy check demo https://example.org/\n  \
    box policy check demo DELETE https://api.github.com/repos/me/it\n  \
    box policy check demo https://example.org --address 203.0.113.7\n  \
    box policy check demo https://github.com/me/it --push main\n\n\
    A push is written as git writes it: `main`, `+main` by force, `:main` to delete, `refs/tags/v1`.\n\
    Nothing is resolved or connected to. A method and path count where the box has a credential for\n\
    the host; an address is judged as if the name led there. Exit code 3: it would be refused.")]
pub(super) struct Check {
    #[arg(value_name = "NAME", value_parser = BoxName::parse)]
    name: BoxName,
    /// A method, if a request is meant, and `https://host/…`, `http://host/…`, `host` or `host:port`
    #[arg(value_name = "[METHOD] URL", required = true, num_args = 1..=2)]
    what: Vec<String>,
    /// As if the name led to this address
    #[arg(long, value_name = "ADDRESS")]
    address: Option<IpAddr>,
    /// A push to the repository at the URL, of this ref
    #[arg(long, value_name = "REF")]
    push: Option<String>,
    #[command(flatten)]
    pub(super) print: Print,
}

/// What is asked about, read.
#[derive(Debug, PartialEq, Eq)]
struct Subject {
    host: String,
    port: u16,
    path: String,
}

pub(super) fn run(check: Check) -> Ended {
    let (method, url) = match check.what.as_slice() {
        [method, url] => (Some(method.as_str()), url),
        [url] => (None, url),
        // clap wants one or two.
        _ => return Err(Complaint::usage("usage", "name a URL")),
    };
    let usage = |why: String| Complaint::usage("usage", why);
    let subject = subject(url).map_err(usage)?;
    let method = method.map(self::method).transpose().map_err(usage)?;
    let asked = asked(&subject, method, check.push.as_deref()).map_err(usage)?;
    let mut output = check.print.output();
    let client = host::reach(&mut output, OtherBuild::Bear)?;
    let ask = PolicyAsk::Check {
        name: check.name,
        host: subject.host.clone(),
        port: subject.port,
        asked,
        address: check.address,
    };
    let outcome = client.ask(&mut output, &Request::Policy(ask))?;
    let Outcome::Checked(checked) = outcome else {
        return Err(unexpected(&outcome));
    };
    if output.format() == Format::Json {
        output.object(&checked)?;
    } else {
        output.data(format!("{}\n", verdict(&checked, &subject)).as_bytes())?;
    }
    Ok(match checked.verdict {
        Verdict::Allowed { .. } => 0,
        Verdict::Refused { .. } => REFUSED,
    })
}

/// The request that is meant, if one is.
fn asked(
    subject: &Subject,
    method: Option<&str>,
    push: Option<&str>,
) -> Result<Option<AskedRequest>, String> {
    let path = match subject.path.as_str() {
        "" => "/",
        path => path,
    };
    if let Some(push) = push {
        if method.is_some() {
            return Err("`--push` names the request; leave the method out".to_owned());
        }
        let repository = path.trim_end_matches('/');
        if repository.matches('/').count() != 2 {
            return Err("name a repository to push to: `https://host/owner/name`".to_owned());
        }
        return Ok(Some(AskedRequest {
            method: "POST".to_owned(),
            path: format!("{repository}/git-receive-pack"),
            push: Some(pushed(push)?),
        }));
    }
    let is_asked = method.is_some() || !subject.path.is_empty();
    Ok(is_asked.then(|| AskedRequest {
        method: method.unwrap_or("GET").to_owned(),
        path: path.to_owned(),
        push: None,
    }))
}

/// A ref as git-push(1) takes it: `+` before it is force, `:` takes it away.
fn pushed(text: &str) -> Result<AskedPush, String> {
    let (how, name) = match (text.strip_prefix('+'), text.strip_prefix(':')) {
        (Some(name), _) => (PushHow::Force, name),
        (None, Some(name)) => (PushHow::Delete, name),
        (None, None) => (PushHow::Update, text),
    };
    if name.is_empty() || name.contains(':') {
        return Err(format!("`{text}` is no ref at the other side"));
    }
    let name = if name.starts_with("refs/") {
        name.to_owned()
    } else {
        format!("refs/heads/{name}")
    };
    Ok(AskedPush { name, how })
}

fn verdict(checked: &Checked, Subject { host, port, .. }: &Subject) -> String {
    let host = visible(host);
    match &checked.verdict {
        Verdict::Allowed { rule } => {
            let way = if checked.intercepted {
                ", opened up for its credential"
            } else {
                ""
            };
            let note = noted(&checked.note);
            format!("{host}:{port} would go through: {rule}{way}{note}")
        }
        Verdict::Refused { reason, rule } => {
            let rule = rule
                .as_ref()
                .map(|rule| format!(", {rule}"))
                .unwrap_or_default();
            let (reason, note) = (reason.slug(), noted(&checked.note));
            format!("{host}:{port} would be refused: {reason}{rule}{note}")
        }
    }
}

fn noted(note: &str) -> String {
    if note.is_empty() {
        return String::new();
    }
    format!("; {}", visible(note))
}

fn method(text: &str) -> Result<&str, String> {
    let known = |byte: u8| byte.is_ascii_alphabetic() || byte == b'-';
    if text.is_empty() || text.len() > 32 || !text.bytes().all(known) {
        return Err(format!("`{text}` is no method"));
    }
    Ok(text)
}

/// Host, port and path of a URL or of `host:port`; 443 where nothing else is said.
fn subject(text: &str) -> Result<Subject, String> {
    let (rest, usual) = match text.split_once("://") {
        Some(("https" | "wss", rest)) => (rest, 443),
        Some(("http" | "ws", rest)) => (rest, 80),
        Some((scheme, _)) => return Err(format!("`{scheme}` is no scheme that can be checked")),
        None => (text, 443),
    };
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let (authority, after) = rest.split_at(end);
    if authority.contains('@') {
        return Err("a name with a user is not checked; leave it out".to_owned());
    }
    let (host, port) = match authority.rsplit_once(':') {
        Some((host, port)) if !host.contains(':') || host.ends_with(']') => {
            let port = port.parse().map_err(|_| format!("`{port}` is no port"))?;
            (host, port)
        }
        _ => (authority, usual),
    };
    if host.is_empty() {
        return Err("name a host".to_owned());
    }
    let path = after.split(['?', '#']).next().unwrap_or_default();
    Ok(Subject {
        host: host.to_owned(),
        port,
        path: path.to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_push_is_written_as_git_writes_it() {
        let subject = |path: &str| Subject {
            host: "github.com".to_owned(),
            port: 443,
            path: path.to_owned(),
        };
        for (text, how, name) in [
            ("main", PushHow::Update, "refs/heads/main"),
            ("+box/demo/x", PushHow::Force, "refs/heads/box/demo/x"),
            (":main", PushHow::Delete, "refs/heads/main"),
            ("refs/tags/v1", PushHow::Update, "refs/tags/v1"),
        ] {
            let asked = asked(&subject("/me/it/"), None, Some(text))
                .unwrap()
                .unwrap();
            assert_eq!(asked.path, "/me/it/git-receive-pack");
            let name = name.to_owned();
            assert_eq!(asked.push, Some(AskedPush { name, how }), "{text}");
        }
        for bad in ["", "+", ":", "a:b"] {
            assert!(asked(&subject("/me/it"), None, Some(bad)).is_err(), "{bad}");
        }
        assert!(asked(&subject("/me"), None, Some("main")).is_err());
        assert!(asked(&subject("/me/it"), Some("GET"), Some("main")).is_err());
    }

    #[test]
    fn a_url_says_host_port_and_path() {
        let cases = [
            ("https://example.org/a?b#c", ("example.org", 443, "/a")),
            ("http://example.org", ("example.org", 80, "")),
            ("https://example.org?x", ("example.org", 443, "")),
            ("example.org", ("example.org", 443, "")),
            ("git.example.org:2222", ("git.example.org", 2222, "")),
            ("https://[2001:db8::1]:8443/", ("[2001:db8::1]", 8443, "/")),
            ("2001:db8::1", ("2001:db8::1", 443, "")),
        ];
        for (text, (host, port, path)) in cases {
            let expected = Subject {
                host: host.to_owned(),
                port,
                path: path.to_owned(),
            };
            assert_eq!(subject(text), Ok(expected), "{text}");
        }
        for bad in ["ftp://x", "https://", "a@b", "x:99999", ":80"] {
            assert!(subject(bad).is_err(), "{bad}");
        }
    }
}
