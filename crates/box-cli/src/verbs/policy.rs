//! `box policy`: what a box may reach, shown, changed at once, or tried on one host.

mod check;
mod diff;
mod new_ca;

use super::{Ended, Print, github};
use crate::client::unexpected;
use crate::complaint::Complaint;
use crate::host::{self, OtherBuild};
use crate::output::{Format, Output, table, visible};
use box_api::BoxName;
use box_api::control::{NetPreset, Outcome, Request};
use box_api::network::{Finding, PolicyAsk, PolicyShown, Weight};
use check::Check;
use diff::Diff;
use new_ca::NewCa;

/// Show, change or try what a box may reach
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    box policy show demo\n  \
    box policy set demo --allow example.org --deny ads.example.org\n  \
    box policy set demo --allow git.example.org:2222\n  \
    box policy set demo --net locked\n  \
    box policy set demo --deny 203.0.113.0/24 --deny \"DELETE https://api.github.com/*\"\n  \
    box policy set demo --allow-private db.corp.example:5432\n  \
    box policy check demo https://example.org/\n  \
    box policy diff demo --defaults\n  \
    box policy reload\n\n\
    Entries are `host`, `*.host` (one label), `host:port`; to deny also `address/bits`; and, for hosts\n\
    the box has a credential for, `METHODS https://host/path`, where `*` stands for one part of a path\n\
    and at its end for all that follows. A host with such a rule to allow takes only what such rules\n\
    allow. Deny wins, at whatever level. A change holds at once; connections it forbids are closed.")]
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
    /// Say how the policies of two boxes differ
    Diff(Diff),
    /// Read `[net]` and `[egress]` of the settings again
    Reload(Reload),
    /// Make another CA for the hosts whose TLS is opened up
    NewCa(NewCa),
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
    /// Let one name and port through although its address is private
    #[arg(long, value_name = "NAME:PORT")]
    allow_private: Vec<String>,
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
#[command(after_help = "Example:\n  box policy reload\n\n\
    Settings that cannot be used change nothing. Connections that are still allowed go on.")]
struct Reload {
    #[command(flatten)]
    print: Print,
}

impl Args {
    pub(super) fn json(&self) -> bool {
        match &self.what {
            What::Show(args) => args.print.json,
            What::Set(args) => args.print.json,
            What::Check(args) => args.print.json,
            What::Diff(args) => args.print.json,
            What::Reload(args) => args.print.json,
            What::NewCa(args) => args.print.json,
        }
    }
}

pub(super) fn run(args: Args) -> Ended {
    match args.what {
        What::Show(Show { name, print }) => tell(print.output(), PolicyAsk::Show { name }),
        What::Set(set) => {
            let lists = [&set.allow, &set.deny, &set.remove, &set.allow_private];
            if lists.iter().all(|list| list.is_empty()) && set.net.is_none() {
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
                private: set.allow_private,
            };
            tell(set.print.output(), ask)
        }
        What::Check(args) => check::run(args),
        What::Diff(args) => diff::run(args),
        What::Reload(args) => reload(&args),
        What::NewCa(args) => new_ca::run(&args),
    }
}

fn tell(mut output: Output, wanted: PolicyAsk) -> Ended {
    let policy = ask(&mut output, wanted)?;
    if output.format() == Format::Json {
        output.object(&policy)?;
    } else {
        output.data(shown(&policy).as_bytes())?;
        note(&mut output, &policy.findings);
    }
    Ok(0)
}

/// A policy, from the host.
fn ask(output: &mut Output, wanted: PolicyAsk) -> Result<PolicyShown, Complaint> {
    let client = host::reach(output, OtherBuild::Bear)?;
    let outcome = client.ask(output, &Request::Policy(wanted))?;
    let Outcome::Policy(policy) = outcome else {
        return Err(unexpected(&outcome));
    };
    Ok(policy)
}

fn note(output: &mut Output, findings: &[Finding]) {
    for finding in findings {
        let word = match finding.weight {
            Weight::Error => "error",
            Weight::Warning => "warning",
        };
        let from = match finding.from.as_str() {
            "" => String::new(),
            from => format!(" ({from})"),
        };
        let entry = visible(&finding.entry);
        output.note(&format!(
            "{word}: `{entry}`{from} {}",
            visible(&finding.text)
        ));
    }
}

fn reload(args: &Reload) -> Ended {
    let mut output = args.print.output();
    let client = host::reach(&mut output, OtherBuild::Bear)?;
    let outcome = client.ask(&mut output, &Request::Policy(PolicyAsk::Reload))?;
    let Outcome::Reloaded { findings } = &outcome else {
        return Err(unexpected(&outcome));
    };
    if output.format() == Format::Json {
        output.object(&outcome)?;
    } else {
        output.note("the settings were read again and hold");
        note(&mut output, findings);
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
    if let Some(set) = &policy.net_set {
        text.extend(["set: ", set.as_str(), "\n"]);
    }
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
    text.extend(["logins made inside: ", policy.logins.word(), "\n"]);
    if !policy.github.repositories.is_empty() {
        let line = github::shown(&policy.github, policy.name.as_str());
        text.extend(["github: ", &line, "\n"]);
    }
    text
}

fn preset_word(preset: NetPreset) -> &'static str {
    match preset {
        NetPreset::Balanced => "balanced",
        NetPreset::Open => "open",
        NetPreset::Locked => "locked",
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
