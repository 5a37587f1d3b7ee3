//! `box set`: changes a box that is there.

use super::{Ended, Print, amount, github};
use crate::client::unexpected;
use crate::complaint::Complaint;
use crate::host::{self, OtherBuild};
use crate::output::Format;
use box_api::budget::Budget;
use box_api::control::{Accounts, AccountsError, Change, OnSignal, Outcome, Priority, Request};
use box_api::egress::Logins;
use box_api::network::NetSetName;
use box_api::restore_point::TurnUndo;
use box_api::{BoxName, BoxTitle};

/// Change a box: limits, deadline, title
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    box set demo memory=4G cpu=2\n  \
    box set demo deadline=4h freeze-after=30m\n  \
    box set demo github=me/app \"github-refs=fix/*\"\n  \
    box set demo pids=512 disk=20G open-files=4096 tmp=1G\n  \
    box set demo deadline=off freeze-after=30m \"title=the other one\"\n  \
    box set demo logins=plain net-budget=10G on-signal=freeze\n  \
    box set demo budget=2M/day,300k/thread\n\n\
    All of it is checked before any of it is done. What a running box cannot take holds from its\n\
    next start on, and is named.")]
pub(super) struct Args {
    #[arg(value_name = "NAME", value_parser = BoxName::parse)]
    name: BoxName,
    /// `cpu`, `memory`, `pids`, `disk`, `open-files`, `tmp`, `deadline`, `freeze-after`, `nested`,
    /// `credential`, `logins`, `github`, `github-refs`, `github-force`, `github-tags`,
    /// `github-writes`, `net-set`, `net-budget`, `net-connections`, `on-signal`, `undo`,
    /// `priority`, `budget` or `title`
    #[arg(value_name = "SETTING=VALUE", required = true, value_parser = change)]
    changes: Vec<Change>,
    #[command(flatten)]
    pub(super) print: Print,
}

/// One thing that can be set: the name, and how its value is read.
struct Setting {
    name: &'static str,
    read: fn(&str) -> Result<Change, String>,
}

/// Everything that can be set. The options of `box new` have the same names and readings.
const SETTINGS: &[Setting] = &[
    Setting {
        name: "cpu",
        read: |text| amount::cpu_milli(text).map(Change::CpuMilli),
    },
    Setting {
        name: "memory",
        read: |text| amount::size(text).map(Change::MemoryBytes),
    },
    Setting {
        name: "pids",
        read: |text| amount::count(text).map(Change::Pids),
    },
    Setting {
        name: "disk",
        read: |text| amount::size(text).map(Change::DiskBytes),
    },
    Setting {
        name: "open-files",
        read: |text| amount::count(text).map(Change::OpenFiles),
    },
    Setting {
        name: "tmp",
        read: |text| amount::size(text).map(Change::TmpBytes),
    },
    Setting {
        name: "deadline",
        read: |text| or_off(text, amount::span_ms).map(Change::DeadlineMs),
    },
    Setting {
        name: "freeze-after",
        read: |text| idle(text).map(Change::FreezeAfterMs),
    },
    Setting {
        name: "nested",
        read: |text| on_or_off(text).map(Change::Nested),
    },
    Setting {
        name: "credential",
        read: |text| accounts(text).map(Change::Accounts),
    },
    Setting {
        name: "logins",
        read: |text| Logins::parse(text).map(Change::Logins),
    },
    Setting {
        name: "net-budget",
        read: |text| or_off(text, amount::size).map(Change::NetBudgetBytes),
    },
    Setting {
        name: "net-connections",
        read: |text| or_default(text).map(Change::NetConnections),
    },
    Setting {
        name: "on-signal",
        read: |text| on_signal(text).map(Change::OnSignal),
    },
    Setting {
        name: "undo",
        read: |text| undo(text).map(Change::Undo),
    },
    Setting {
        name: "github",
        read: github::read_repositories,
    },
    Setting {
        name: "github-refs",
        read: github::read_refs,
    },
    Setting {
        name: "github-force",
        read: github::read_force,
    },
    Setting {
        name: "github-tags",
        read: github::read_tags,
    },
    Setting {
        name: "github-writes",
        read: github::read_writes,
    },
    Setting {
        name: "net-set",
        read: |text| net_set(text).map(Change::NetSet),
    },
    Setting {
        name: "priority",
        read: |text| priority(text).map(Change::Priority),
    },
    Setting {
        name: "budget",
        read: |text| budget(text).map(Change::Budget),
    },
    Setting {
        name: "title",
        read: |text| title(text).map(Change::Title),
    },
];

pub(super) fn run(args: Args) -> Ended {
    let mut output = args.print.output();
    refuse_repeated(&args.changes)?;
    let client = host::reach(&mut output, OtherBuild::Bear)?;
    let request = Request::Set {
        name: args.name.clone(),
        changes: args.changes,
    };
    let outcome = client.ask(&mut output, &request)?;
    let Outcome::Changed { later, .. } = &outcome else {
        return Err(unexpected(&outcome));
    };
    match output.format() {
        Format::Json => output.object(&outcome)?,
        Format::Text => {
            output.note(&format!("box `{}` is changed", args.name));
            if !later.is_empty() {
                let named: Vec<String> = later.iter().map(|name| format!("`{name}`")).collect();
                output.note(&format!("from its next start on: {}", named.join(", ")));
            }
        }
    }
    Ok(0)
}

fn refuse_repeated(changes: &[Change]) -> Result<(), Complaint> {
    for (at, change) in changes.iter().enumerate() {
        let name = change.name();
        if changes[..at].iter().any(|before| before.name() == name) {
            return Err(Complaint::usage(
                "usage",
                format!("`{name}` was said twice"),
            ));
        }
    }
    Ok(())
}

/// `memory=4G`
fn change(text: &str) -> Result<Change, String> {
    let names = || {
        let names: Vec<&str> = SETTINGS.iter().map(|setting| setting.name).collect();
        names.join(", ")
    };
    let Some((name, value)) = text.split_once('=') else {
        return Err(format!(
            "a setting is written `<name>=<value>`; names are {}",
            names()
        ));
    };
    let setting = SETTINGS.iter().find(|setting| setting.name == name);
    let setting =
        setting.ok_or_else(|| format!("there is no setting `{name}`; there are {}", names()))?;
    (setting.read)(value).map_err(|should| format!("`{name}` is {should}"))
}

fn or_off(text: &str, read: fn(&str) -> Result<u64, String>) -> Result<Option<u64>, String> {
    if text == "off" {
        return Ok(None);
    }
    read(text)
        .map(Some)
        .map_err(|should| format!("{should}, or `off`"))
}

/// A time without a touch, `off` for ever, or what every box has.
fn idle(text: &str) -> Result<Option<u64>, String> {
    if text == "default" {
        return Ok(None);
    }
    amount::span_ms_or_off(text)
        .map(Some)
        .map_err(|should| format!("{should}, or `default`"))
}

/// A count from one on, or what every box has.
fn or_default(text: &str) -> Result<Option<u32>, String> {
    let should = |_| "a whole number from 1 on, or `default`".to_owned();
    match text {
        "default" => Ok(None),
        "0" => Err(should(String::new())),
        _ => amount::count(text).map(Some).map_err(should),
    }
}

fn on_signal(text: &str) -> Result<OnSignal, String> {
    match text {
        "note" => Ok(OnSignal::Note),
        "freeze" => Ok(OnSignal::Freeze),
        _ => Err("`note` or `freeze`".to_owned()),
    }
}

fn undo(text: &str) -> Result<Option<TurnUndo>, String> {
    if text == "default" {
        return Ok(None);
    }
    TurnUndo::parse(text)
        .map(Some)
        .map_err(|should| format!("{should}, or `default`"))
}

fn priority(text: &str) -> Result<Priority, String> {
    let all = [Priority::High, Priority::Normal, Priority::Low];
    let found = all.into_iter().find(|priority| priority.word() == text);
    found.ok_or_else(|| "`high`, `normal` or `low`".to_owned())
}

fn budget(text: &str) -> Result<Option<Budget>, String> {
    if text == "default" {
        return Ok(None);
    }
    Budget::parse(text)
        .map(Some)
        .map_err(|should| format!("{should}, or `off`, or `default`"))
}

fn net_set(text: &str) -> Result<Option<NetSetName>, String> {
    if text == "off" {
        return Ok(None);
    }
    NetSetName::parse(text)
        .map(Some)
        .map_err(|should| format!("{should}, or `off`"))
}

fn on_or_off(text: &str) -> Result<bool, String> {
    match text {
        "on" => Ok(true),
        "off" => Ok(false),
        _ => Err("`on` or `off`".to_owned()),
    }
}

fn accounts(text: &str) -> Result<Accounts, String> {
    text.parse()
        .map_err(|error: AccountsError| error.to_string())
}

/// No text takes the title away.
fn title(text: &str) -> Result<Option<BoxTitle>, String> {
    if text.is_empty() {
        return Ok(None);
    }
    BoxTitle::parse(text)
        .map(Some)
        .map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Args as _;

    #[test]
    fn every_setting_is_read_and_says_what_it_should_be() {
        let samples = [
            ("cpu", "0.5"),
            ("memory", "4G"),
            ("pids", "512"),
            ("disk", "20G"),
            ("open-files", "4096"),
            ("tmp", "1G"),
            ("deadline", "4h"),
            ("freeze-after", "30m"),
            ("nested", "on"),
            ("credential", "none"),
            ("logins", "plain"),
            ("github", "me/app"),
            ("github-refs", "fix/*"),
            ("github-force", "yes"),
            ("github-tags", "no"),
            ("github-writes", "all"),
            ("net-budget", "10G"),
            ("net-connections", "64"),
            ("on-signal", "freeze"),
            ("undo", "off"),
            ("net-set", "ci"),
            ("priority", "high"),
            ("budget", "2M/day"),
            ("title", "the other one"),
        ];
        assert_eq!(samples.len(), SETTINGS.len());
        for (name, value) in samples {
            let change = change(&format!("{name}={value}")).unwrap();
            assert_eq!(change.name(), name);
        }
        assert_eq!(change("deadline=off"), Ok(Change::DeadlineMs(None)));
        assert_eq!(change("title="), Ok(Change::Title(None)));
        for (name, _) in samples.iter().filter(|(name, _)| *name != "title") {
            let refused = change(&format!("{name}=?")).unwrap_err();
            assert!(refused.starts_with(&format!("`{name}` is ")), "{refused}");
        }
        assert!(change("memory").unwrap_err().contains("<name>=<value>"));
        assert!(
            change("colour=red")
                .unwrap_err()
                .contains("there is no setting `colour`")
        );
    }

    /// What is said once there is a box.
    const AFTERWARDS: [&str; 9] = [
        "budget",
        "priority",
        "undo",
        "credential",
        "logins",
        "net-budget",
        "net-connections",
        "on-signal",
        "net-set",
    ];

    #[test]
    fn an_option_of_a_new_box_has_the_name_of_its_setting() {
        let command = super::super::new::Args::augment_args(clap::Command::new("new"));
        let options: Vec<String> = command
            .get_arguments()
            .flat_map(|argument| {
                let long = argument.get_long().map(str::to_owned);
                let aliases = argument.get_all_aliases().unwrap_or_default();
                let aliases = aliases.into_iter().map(str::to_owned);
                long.into_iter().chain(aliases).collect::<Vec<_>>()
            })
            .collect();
        // Whose account a box uses is said once there is a box.
        let of_machine = SETTINGS
            .iter()
            .filter(|setting| !AFTERWARDS.contains(&setting.name));
        for setting in of_machine {
            let name = setting.name.to_owned();
            assert!(options.contains(&name), "box new has no `--{name}`");
        }
    }
}
