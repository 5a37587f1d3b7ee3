//! `box net`: what a box reached, what it was refused, and how much went through.

use super::{Ended, Print, amount};
use crate::age;
use crate::client::unexpected;
use crate::host::{self, OtherBuild};
use crate::output::{Format, table, visible_line};
use box_api::BoxName;
use box_api::control::{Outcome, Reply, Request};
use box_api::egress::traffic::SignalKind;
use box_api::network::{Net, NetLine};

/// Show what a box reached and what it was refused
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    box net demo\n  \
    box net demo --follow\n  \
    box net demo --blocked --since 1h\n  \
    box net demo --host example.org --json\n\n\
    A connection that is open is marked so, and its bytes are a few seconds old at most. Paths are\n\
    never kept.\n\
    `box policy set demo --allow example.org` lets a host through.")]
pub(super) struct Args {
    #[arg(value_name = "NAME", value_parser = BoxName::parse)]
    name: BoxName,
    /// Go on as things happen
    #[arg(long, short)]
    follow: bool,
    /// Only what did not go through
    #[arg(long, alias = "refused")]
    blocked: bool,
    /// Only this host and what is below it
    #[arg(long, value_name = "HOST")]
    host: Option<String>,
    /// Only what happened within this time: `1h`, `30m`
    #[arg(long, value_name = "TIME", value_parser = amount::span_ms)]
    since: Option<u64>,
    #[command(flatten)]
    pub(super) print: Print,
}

const ALLOWED: &str = "allowed";

pub(super) fn run(args: &Args) -> Ended {
    let mut output = args.print.output();
    let mut client = host::reach(&mut output, OtherBuild::Bear)?;
    let wanted = |line: &NetLine| {
        let is_asked_for = args.host.as_deref().is_none_or(|host| is_below(line, host));
        is_asked_for && (!args.blocked || line.verdict != ALLOWED)
    };
    let since_ms = args.since.map_or(0, |ago| {
        age::now_ms().saturating_sub(i64::try_from(ago).unwrap_or(i64::MAX))
    });
    let request = Request::Net(Net {
        name: args.name.clone(),
        follow: args.follow,
        since_ms,
    });
    if !args.follow {
        let outcome = client.ask(&mut output, &request)?;
        let Outcome::Net { lines } = outcome else {
            return Err(unexpected(&outcome));
        };
        let lines: Vec<NetLine> = lines.into_iter().filter(wanted).collect();
        if output.format() == Format::Json {
            output.object(&lines)?;
        } else if lines.is_empty() && since_ms == 0 && args.host.is_none() && !args.blocked {
            output.note(&format!("box `{}` has not used the network yet", args.name));
        } else if lines.is_empty() {
            output.note(&format!("box `{}` did nothing of the kind", args.name));
        } else {
            output.data(shown(&lines, age::now_ms()).as_bytes())?;
        }
        return Ok(0);
    }
    client.request(&request)?;
    loop {
        match client.next(None)? {
            Reply::Net(line) if !wanted(&line) => {}
            Reply::Net(line) if output.format() == Format::Json => output.object(&line)?,
            Reply::Net(line) => output.data(format!("{}\n", one(&line)).as_bytes())?,
            Reply::Problem(problem) => return Err(problem.into()),
            other @ (Reply::Progress { .. }
            | Reply::Note { .. }
            | Reply::Streams
            | Reply::Output { .. }
            | Reply::Thread { .. }
            | Reply::Update(_)
            | Reply::Decision(_)
            | Reply::AnswerRefused { .. }
            | Reply::Done(_)) => return Err(unexpected(&other)),
        }
    }
}

fn shown(lines: &[NetLine], now_ms: i64) -> String {
    let heading = [
        "HOST", "VERDICT", "TIMES", "SENT", "RECEIVED", "LAST", "PROGRAM", "RULE",
    ];
    let mut rows = vec![heading.map(str::to_owned).to_vec()];
    rows.extend(lines.iter().map(|line| {
        vec![
            visible_line(named(line)),
            verdict(line),
            line.times.to_string(),
            amount(line.sent_bytes),
            amount(line.received_bytes),
            format!("{} ago", age::short(line.at_ms, now_ms)),
            program(line),
            visible_line(&why(line)),
        ]
    }));
    table::columns(&rows)
}

/// `blocked 14×: evil.test (not_listed)`, for a line of its own.
fn one(line: &NetLine) -> String {
    let host = visible_line(named(line));
    let times = if line.times > 1 {
        format!(" {}×", line.times)
    } else {
        String::new()
    };
    if let Some(kind) = signal(line) {
        return format!("signal{times}: {host} ({kind})");
    }
    if line.verdict == ALLOWED {
        let word = if line.open { "open" } else { "reached" };
        return format!(
            "{word}{times}: {host}, {} sent, {} received ({})",
            table::bytes(line.sent_bytes),
            table::bytes(line.received_bytes),
            visible_line(&why(line))
        );
    }
    let rule = if line.rule.is_empty() {
        line.verdict.clone()
    } else {
        format!("{}, {}", line.verdict, line.rule)
    };
    format!("blocked{times}: {host} ({})", visible_line(&rule))
}

fn named(line: &NetLine) -> &str {
    if line.host.is_empty() {
        "(nothing named)"
    } else {
        &line.host
    }
}

/// Whether a line is about `host` or a name below it.
fn is_below(line: &NetLine, host: &str) -> bool {
    let name = line
        .host
        .rsplit_once(':')
        .map_or(&*line.host, |(name, _)| name);
    let rest = name
        .len()
        .checked_sub(host.len())
        .and_then(|at| name.split_at_checked(at));
    rest.is_some_and(|(before, end)| {
        end.eq_ignore_ascii_case(host) && (before.is_empty() || before.ends_with('.'))
    })
}

/// The word of a signal, if a line is one.
fn signal(line: &NetLine) -> Option<&'static str> {
    let mut words = SignalKind::ALL.iter().map(|kind| kind.slug());
    words.find(|word| *word == line.verdict)
}

/// `curl (17)`
fn program(line: &NetLine) -> String {
    let process = line.process.as_ref();
    let shown = process.map(|process| format!("{} ({})", process.name, process.pid));
    visible_line(&shown.unwrap_or_default())
}

fn verdict(line: &NetLine) -> String {
    if let Some(kind) = signal(line) {
        return format!("signal: {kind}");
    }
    if line.open {
        return "open".to_owned();
    }
    if line.verdict == ALLOWED {
        line.verdict.clone()
    } else {
        format!("blocked: {}", visible_line(&line.verdict))
    }
}

fn why(line: &NetLine) -> String {
    match &line.credential {
        Some(credential) => format!("{} {credential}", line.rule),
        None => line.rule.clone(),
    }
}

fn amount(bytes: u64) -> String {
    if bytes == 0 {
        String::new()
    } else {
        table::bytes(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use box_api::network::NetProcess;

    fn line(host: &str, verdict: &str, times: u64) -> NetLine {
        NetLine {
            host: host.to_owned(),
            verdict: verdict.to_owned(),
            rule: String::new(),
            at_ms: 0,
            times,
            sent_bytes: 0,
            received_bytes: 0,
            credential: None,
            open: false,
            process: None,
            way: String::new(),
            address: String::new(),
            open_ms: 0,
            exchanges: Vec::new(),
        }
    }

    #[test]
    fn what_was_blocked_often_is_one_line() {
        let blocked = line("evil.test", "not_listed", 14);
        assert_eq!(one(&blocked), "blocked 14×: evil.test (not_listed)");
        let mut reached = line("api.test:443", ALLOWED, 1);
        reached.rule = "credential".to_owned();
        reached.credential = Some("claude:default".to_owned());
        reached.received_bytes = 1_500_000;
        assert_eq!(
            one(&reached),
            "reached: api.test:443, 0 B sent, 1.5 MB received (credential claude:default)"
        );
    }

    #[test]
    fn open_connections_signals_and_programs_are_told_apart() {
        let mut open = line("api.test:443", ALLOWED, 1);
        open.open = true;
        open.process = Some(NetProcess {
            name: "curl".to_owned(),
            pid: 17,
        });
        assert!(one(&open).starts_with("open: api.test:443, 0 B sent"));
        let signal = line("evil.test", "data_in_names", 1);
        assert_eq!(one(&signal), "signal: evil.test (data_in_names)");
        let table = shown(&[open, signal], 0);
        assert!(table.contains("curl (17)"), "{table}");
        assert!(table.contains("signal: data_in_names"), "{table}");
    }

    #[test]
    fn a_host_is_meant_with_all_below_it_and_nothing_like_it() {
        for (host, is_meant) in [
            ("ok.test:443", true),
            ("a.ok.test", true),
            ("notok.test:443", false),
            ("ok.test.evil.test", false),
            ("", false),
        ] {
            assert_eq!(
                is_below(&line(host, ALLOWED, 1), "ok.test"),
                is_meant,
                "{host}"
            );
        }
    }

    #[test]
    fn a_box_cannot_steer_the_terminal_by_a_name() {
        let evil = line("\u{1b}[2Jx", "malformed", 1);
        assert!(!shown(std::slice::from_ref(&evil), 0).contains('\u{1b}'));
        assert!(!one(&evil).contains('\u{1b}'));
    }
}
