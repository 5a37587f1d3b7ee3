//! `box info`: all there is to know about one box.

use super::{Ended, Print, amount, events, github, list};
use crate::age;
use crate::client::unexpected;
use crate::host::{self, OtherBuild};
use crate::output::{Format, table, visible};
use box_api::BoxName;
use box_api::control::{Accounts, BoxInfo, OnSignal, Origin, Outcome, Request};
use box_api::egress::Logins;

/// Show one box
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  box info demo\n  box info demo --json")]
pub(super) struct Args {
    #[arg(value_name = "NAME", value_parser = BoxName::parse)]
    name: BoxName,
    #[command(flatten)]
    pub(super) print: Print,
}

pub(super) fn run(args: Args) -> Ended {
    let mut output = args.print.output();
    let client = host::reach(&mut output, OtherBuild::Bear)?;
    let outcome = client.ask(&mut output, &Request::Info { name: args.name })?;
    let Outcome::Info(info) = outcome else {
        return Err(unexpected(&outcome));
    };
    if output.format() == Format::Json {
        output.object(&info)?;
    } else {
        output.data(shown(&info, age::now_ms()).as_bytes())?;
    }
    Ok(0)
}

fn shown(info: &BoxInfo, now_ms: i64) -> String {
    let mut rows = facts(info, now_ms);
    rows.extend(info.threads.iter().map(|thread| {
        let state = list::thread_state(thread.state);
        (
            "thread",
            format!(
                "{}  {}, {state}: {}",
                thread.thread, thread.agent, thread.title
            ),
        )
    }));
    rows.extend(
        info.events
            .iter()
            .map(|event| ("event", events::line(event, now_ms))),
    );
    let rows = rows.into_iter().filter(|(_, value)| !value.is_empty());
    let rows: Vec<Vec<String>> = rows
        .map(|(key, value)| vec![key.to_owned(), visible(&value).into_owned()])
        .collect();
    table::columns(&rows)
}

/// What is said of it in a line each; an empty value is not said.
fn facts(info: &BoxInfo, now_ms: i64) -> Vec<(&'static str, String)> {
    let limits = info.limits;
    let limits = format!(
        "{} CPUs, {} memory, {} disk, {} processes ({})",
        amount::shown_cpus(limits.cpu_milli),
        table::binary_bytes(limits.memory_bytes),
        table::binary_bytes(limits.disk_bytes),
        limits.pids,
        info.limits_held_by
    );
    let state = if info.frozen {
        list::FROZEN
    } else {
        list::state(info.state)
    };
    let settings = &info.settings;
    let deadline = settings.deadline_ms.map(amount::shown_span);
    let freezes = settings.freeze_after_ms.map(|ms| match ms {
        0 => "never by itself".to_owned(),
        ms => format!("when idle for {}", amount::shown_span(ms)),
    });
    vec![
        ("name", info.name.to_string()),
        (
            "title",
            info.title
                .as_ref()
                .map(ToString::to_string)
                .unwrap_or_default(),
        ),
        ("state", state.to_owned()),
        (
            "frozen",
            list::frozen_for(info).unwrap_or_default().to_owned(),
        ),
        ("problem", info.problem.clone().unwrap_or_default()),
        ("image", info.image.clone()),
        ("profile", list::profile(info.profile).to_owned()),
        ("net", list::net(info.net).to_owned()),
        ("limits", limits),
        ("traffic", traffic(info)),
        ("on a signal", on_signal(info).to_owned()),
        ("deadline", deadline.unwrap_or_default()),
        ("freezes", freezes.unwrap_or_default()),
        ("engine", info.runtime.clone()),
        (
            "made",
            format!("{} ago", age::short(info.created_at_ms, now_ms)),
        ),
        ("workspace", info.workspace.clone().unwrap_or_default()),
        (
            "pid",
            info.pid.map(|pid| pid.to_string()).unwrap_or_default(),
        ),
        ("from", came(info.origin.as_ref(), now_ms)),
        (
            "github",
            github::shown(&settings.github, info.name.as_str()),
        ),
        ("accounts", accounts(info)),
        ("logins", logins(info.settings.logins).to_owned()),
        ("owner", info.owner.to_string()),
        ("id", info.id.to_string()),
    ]
}

/// What went over its network, and how much may.
fn traffic(info: &BoxInfo) -> String {
    let net = info.traffic;
    let mut text = Vec::new();
    if (net.sent_bytes, net.received_bytes) != (0, 0) {
        text.push(format!(
            "{} sent, {} received",
            table::bytes(net.sent_bytes),
            table::bytes(net.received_bytes)
        ));
    }
    if net.open > 0 {
        text.push(format!("{} connections open", net.open));
    }
    if let Some(budget) = info.settings.net_budget_bytes {
        let budget = table::binary_bytes(budget);
        text.push(format!("{budget} to and from any one host at most"));
    }
    if let Some(most) = info.settings.net_connections {
        text.push(format!("{most} connections at most"));
    }
    text.join(", ")
}

/// Said only where it is not as everywhere.
fn on_signal(info: &BoxInfo) -> &'static str {
    match info.settings.on_signal {
        OnSignal::Note => "",
        OnSignal::Freeze => "it is frozen until `box thaw`",
    }
}

/// Said only where it is not what every box has.
fn logins(mode: Logins) -> &'static str {
    match mode {
        Logins::Placeholder => "",
        Logins::Plain => "plain: tokens of logins made inside are in the box",
        Logins::Off => "off: nobody logs in inside",
    }
}

/// Those it uses, or why it uses none.
fn accounts(info: &BoxInfo) -> String {
    match info.settings.accounts {
        Accounts::None => "none; `box set <box> credential=default` lets it use yours".to_owned(),
        Accounts::Chosen(_) if info.accounts.is_empty() => "none".to_owned(),
        Accounts::Defaults | Accounts::Chosen(_) => info.accounts.join(", "),
    }
}

/// Where its files came from, when that was no image.
fn came(from: Option<&Origin>, now_ms: i64) -> String {
    match from {
        None => String::new(),
        Some(Origin::Clone { name, label, .. }) => match label {
            Some(label) => format!("box `{name}`, snapshot `{label}`"),
            None => format!("box `{name}`"),
        },
        Some(Origin::Import {
            name,
            last_imported_at_ms,
            times,
            before,
            ..
        }) => {
            let ago = age::short(*last_imported_at_ms, now_ms);
            let journey = match times {
                1 => String::new(),
                times => format!(", journey number {times}"),
            };
            let before = came(before.as_deref(), now_ms);
            let before = if before.is_empty() {
                before
            } else {
                format!("; before that {before}")
            };
            format!("an archive of box `{name}`, {ago} ago{journey}{before}")
        }
    }
}
