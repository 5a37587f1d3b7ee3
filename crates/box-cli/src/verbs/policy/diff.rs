//! `box policy diff`: how the policy of one box differs from that of another, or from what a new
//! box has.

use super::super::{Ended, Print};
use super::{ask, preset_word};
use crate::complaint::Complaint;
use crate::output::{Format, Output, table, visible};
use box_api::BoxName;
use box_api::network::{PolicyAsk, PolicyShown};
use serde::Serialize;
use std::collections::BTreeSet;

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    box policy diff demo other\n  \
    box policy diff demo --defaults\n\n\
    Lines with `+` hold for the first box alone, lines with `-` for the other one alone.")]
pub(super) struct Diff {
    #[arg(value_name = "NAME", value_parser = BoxName::parse)]
    name: BoxName,
    /// The box it is held against
    #[arg(value_name = "OTHER", value_parser = BoxName::parse, conflicts_with = "defaults")]
    other: Option<BoxName>,
    /// Hold it against what a new box has
    #[arg(long)]
    defaults: bool,
    #[command(flatten)]
    pub(super) print: Print,
}

/// What one policy says, in an order of its own.
type Said = BTreeSet<(String, String)>;

/// As `--json` prints it.
#[derive(Debug, PartialEq, Eq, Serialize)]
struct Difference {
    /// What holds for the first alone: what is said, and of what.
    only_first: Said,
    only_second: Said,
}

pub(super) fn run(args: Diff) -> Ended {
    let mut output = args.print.output();
    let against = match (args.other, args.defaults) {
        (Some(name), _) => PolicyAsk::Show { name },
        (None, true) => PolicyAsk::Defaults,
        (None, false) => {
            let title = "name another box, or say `--defaults`";
            return Err(Complaint::usage("usage", title));
        }
    };
    let first = ask(&mut output, PolicyAsk::Show { name: args.name })?;
    let second = ask(&mut output, against)?;
    tell(&mut output, &difference(&first, &second))
}

fn tell(output: &mut Output, difference: &Difference) -> Ended {
    if output.format() == Format::Json {
        output.object(difference)?;
        return Ok(0);
    }
    let sides = [
        ("+", &difference.only_first),
        ("-", &difference.only_second),
    ];
    let rows = sides.into_iter().flat_map(|(sign, said)| {
        said.iter().map(move |(verdict, entry)| {
            let entry = visible(entry).into_owned();
            vec![sign.to_owned(), verdict.clone(), entry]
        })
    });
    let rows: Vec<Vec<String>> = rows.collect();
    if rows.is_empty() {
        output.note("both are alike");
        return Ok(0);
    }
    output.data(table::columns(&rows).as_bytes())?;
    Ok(0)
}

fn difference(first: &PolicyShown, second: &PolicyShown) -> Difference {
    let (first, second) = (said(first), said(second));
    Difference {
        only_first: first.difference(&second).cloned().collect(),
        only_second: second.difference(&first).cloned().collect(),
    }
}

/// Where an entry stands does not matter to what it does.
fn said(policy: &PolicyShown) -> Said {
    let line = |verdict: &str, entry: &str| (verdict.to_owned(), entry.to_owned());
    let entries = policy.entries.iter();
    let entries = entries.map(|entry| line(&entry.verdict, &entry.entry));
    let preset = policy.preset_hosts.iter();
    let credential = policy.credential_hosts.iter();
    std::iter::once(line("preset", preset_word(policy.net)))
        .chain(entries)
        .chain(preset.map(|host| line("allow", host)))
        .chain(credential.map(|host| line("credential", host)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use box_api::control::NetPreset;
    use box_api::network::PolicyEntry;

    fn policy(net: NetPreset, entries: &[(&str, &str, &str)]) -> PolicyShown {
        PolicyShown {
            name: BoxName::parse("a").unwrap(),
            net,
            preset_hosts: Vec::new(),
            entries: entries
                .iter()
                .map(|(verdict, entry, from)| PolicyEntry {
                    entry: (*entry).to_owned(),
                    verdict: (*verdict).to_owned(),
                    from: (*from).to_owned(),
                })
                .collect(),
            credential_hosts: Vec::new(),
            github: box_api::egress::GithubScope::default(),
            net_set: None,
            logins: box_api::egress::Logins::default(),
            findings: Vec::new(),
        }
    }

    #[test]
    fn what_holds_for_one_alone_is_told_whatever_its_level() {
        let first = policy(
            NetPreset::Open,
            &[("allow", "a.org", "box"), ("deny", "b.org", "box")],
        );
        let second = policy(
            NetPreset::Locked,
            &[("allow", "a.org", "settings"), ("allow", "b.org", "box")],
        );
        let line = |verdict: &str, entry: &str| (verdict.to_owned(), entry.to_owned());
        assert_eq!(
            difference(&first, &second),
            Difference {
                only_first: [line("deny", "b.org"), line("preset", "open")].into(),
                only_second: [line("allow", "b.org"), line("preset", "locked")].into(),
            }
        );
        assert_eq!(difference(&first, &first).only_first, Said::new());
    }
}
