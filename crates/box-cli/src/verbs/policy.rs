//! `box policy`: what a box may reach, shown, changed at once, or tried on one host.

use super::{Ended, Print};
use crate::client::unexpected;
use crate::complaint::Complaint;
use crate::host::{self, OtherBuild};
use crate::output::{Format, Output, table, visible};
use box_api::BoxName;
use box_api::control::{NetPreset, Outcome, Request};
use box_api::egress::{Checked, Verdict};
use box_api::network::{PolicyAsk, PolicyShown};

/// Show, change or try what a box may reach
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    box policy show demo\n  \
    box policy set demo --allow example.org --deny ads.example.org\n  \
    box policy set demo --allow git.example.org:2222\n  \
    box policy set demo --net locked\n  \
    box policy check demo https://example.org/\n\n\
    Entries are `host`, `*.host` (one label) or `host:port`. Deny wins. A change holds at once;\n\
    connections it forbids are closed.")]
pub(super) struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, clap::Subcommand)]
enum What {
    /// Show what holds for a box
    Show(Show),
    /// Change what holds, all of it or nothing
    Set(Set),
    /// Say what would become of a connection, and why
    Check(Check),
}

#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  box policy show demo")]
struct Show {
    #[arg(value_name = "NAME", value_parser = BoxName::parse)]
    name: BoxName,
    #[command(flatten)]
    print: Print,
}

#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  box policy set demo --allow example.org")]
struct Set {
    #[arg(value_name = "NAME", value_parser = BoxName::parse)]
    name: BoxName,
    /// Let a host through; may be given several times
    #[arg(long, value_name = "ENTRY")]
    allow: Vec<String>,
    /// Refuse a host, whatever else allows it
    #[arg(long, value_name = "ENTRY")]
    deny: Vec<String>,
    /// Take an entry away
    #[arg(long, value_name = "ENTRY")]
    remove: Vec<String>,
    /// The preset: `balanced`, `open` or `locked`
    #[arg(long, value_name = "PRESET", value_parser = preset)]
    net: Option<NetPreset>,
    /// For all your boxes instead of this one
    #[arg(long)]
    everywhere: bool,
    #[command(flatten)]
    print: Print,
}

#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  box policy check demo https://example.org/")]
struct Check {
    #[arg(value_name = "NAME", value_parser = BoxName::parse)]
    name: BoxName,
    /// `https://host/…`, `http://host/…`, `host` or `host:port`
    #[arg(value_name = "URL", value_parser = target)]
    target: (String, u16),
    #[command(flatten)]
    print: Print,
}

impl Args {
    pub(super) fn json(&self) -> bool {
        match &self.what {
            What::Show(args) => args.print.json,
            What::Set(args) => args.print.json,
            What::Check(args) => args.print.json,
        }
    }
}

/// It would not go through: refused by policy.
const REFUSED: u8 = 3;

pub(super) fn run(args: Args) -> Ended {
    match args.what {
        What::Show(Show { name, print }) => tell(print.output(), PolicyAsk::Show { name }),
        What::Set(set) => {
            let nothing = set.allow.is_empty() && set.deny.is_empty() && set.remove.is_empty();
            if nothing && set.net.is_none() {
                return Err(Complaint::usage(
                    "nothing-asked",
                    "nothing was said that could be changed",
                )
                .hinted("`box policy set --help` shows examples"));
            }
            let ask = PolicyAsk::Set {
                name: set.name,
                net: set.net,
                allow: set.allow,
                deny: set.deny,
                remove: set.remove,
                everywhere: set.everywhere,
            };
            tell(set.print.output(), ask)
        }
        What::Check(check) => try_out(check),
    }
}

fn tell(mut output: Output, ask: PolicyAsk) -> Ended {
    let client = host::reach(&mut output, OtherBuild::Bear)?;
    let outcome = client.ask(&mut output, &Request::Policy(ask))?;
    let Outcome::Policy(policy) = outcome else {
        return Err(unexpected(&outcome));
    };
    if output.format() == Format::Json {
        output.object(&policy)?;
    } else {
        output.data(shown(&policy).as_bytes())?;
    }
    Ok(0)
}

fn shown(policy: &PolicyShown) -> String {
    let mut text = match policy.net {
        NetPreset::Balanced => format!(
            "balanced: {} hosts of registries, forges and agents\n",
            policy.preset_hosts.len()
        ),
        NetPreset::Open => "open: any public host on ports 80 and 443\n".to_owned(),
        NetPreset::Locked => "locked: only what is listed\n".to_owned(),
    };
    let mut rows: Vec<Vec<String>> = Vec::new();
    let mut row = |verdict: &str, entry: &str, from: &str| {
        rows.push(vec![
            verdict.to_owned(),
            visible(entry).into_owned(),
            from.to_owned(),
        ]);
    };
    for entry in &policy.entries {
        row(&entry.verdict, &entry.entry, &entry.from);
    }
    for host in &policy.credential_hosts {
        row("allow", host, "credential");
    }
    for host in &policy.preset_hosts {
        row("allow", host, "preset");
    }
    text.push_str(&table::columns(&rows));
    text
}

fn try_out(check: Check) -> Ended {
    let mut output = check.print.output();
    let client = host::reach(&mut output, OtherBuild::Bear)?;
    let (target, port) = check.target;
    let ask = PolicyAsk::Check {
        name: check.name,
        host: target.clone(),
        port,
    };
    let outcome = client.ask(&mut output, &Request::Policy(ask))?;
    let Outcome::Checked(checked) = outcome else {
        return Err(unexpected(&outcome));
    };
    if output.format() == Format::Json {
        output.object(&checked)?;
    } else {
        output.data(format!("{}\n", verdict(&checked, &target, port)).as_bytes())?;
    }
    Ok(match checked.verdict {
        Verdict::Allowed { .. } => 0,
        Verdict::Refused { .. } => REFUSED,
    })
}

fn verdict(checked: &Checked, host: &str, port: u16) -> String {
    let host = visible(host);
    match &checked.verdict {
        Verdict::Allowed { rule } => {
            let way = if checked.intercepted {
                ", opened up for its credential"
            } else {
                ""
            };
            format!("{host}:{port} would go through: {rule}{way}")
        }
        Verdict::Refused { reason, rule } => {
            let rule = rule
                .as_ref()
                .map(|rule| format!(", {rule}"))
                .unwrap_or_default();
            format!("{host}:{port} would be refused: {}{rule}", reason.slug())
        }
    }
}

fn preset(text: &str) -> Result<NetPreset, String> {
    match text {
        "balanced" => Ok(NetPreset::Balanced),
        "open" => Ok(NetPreset::Open),
        "locked" => Ok(NetPreset::Locked),
        _ => Err("presets are `balanced`, `open` and `locked`".to_owned()),
    }
}

/// Host and port of a URL or of `host:port`; 443 where nothing else is said.
fn target(text: &str) -> Result<(String, u16), String> {
    let (rest, usual) = match text.split_once("://") {
        Some(("https" | "wss", rest)) => (rest, 443),
        Some(("http" | "ws", rest)) => (rest, 80),
        Some((scheme, _)) => return Err(format!("`{scheme}` is no scheme that can be checked")),
        None => (text, 443),
    };
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
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
    Ok((host.to_owned(), port))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_says_host_and_port() {
        let cases = [
            ("https://example.org/a?b#c", ("example.org", 443)),
            ("http://example.org", ("example.org", 80)),
            ("example.org", ("example.org", 443)),
            ("git.example.org:2222", ("git.example.org", 2222)),
            ("https://[2001:db8::1]:8443/", ("[2001:db8::1]", 8443)),
            ("2001:db8::1", ("2001:db8::1", 443)),
        ];
        for (text, (host, port)) in cases {
            assert_eq!(target(text), Ok((host.to_owned(), port)), "{text}");
        }
        for bad in ["ftp://x", "https://", "a@b", "x:99999", ":80"] {
            assert!(target(bad).is_err(), "{bad}");
        }
    }
}
