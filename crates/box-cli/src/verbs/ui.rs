//! `box ui`: a link that pairs one browser with the page, and the browsers that were paired.

mod token;

use super::{Ended, Print};
use crate::age;
use crate::client::{Client, unexpected};
use crate::complaint::Complaint;
use crate::host::{self, OtherBuild};
use crate::output::{Format, Output, is_dumb, table, visible};
use box_api::control::{Outcome, Request};
use box_api::page::{PageAsk, PairingLink, SignIn};
use qrcode::QrCode;
use qrcode::render::unicode::Dense1x2;
use serde_json::json;
use std::io::{IsTerminal as _, stderr};

/// Open the page: a link for one browser, and the browsers that were paired
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  box ui\n  box ui --qr\n  box ui --list\n  box ui --revoke k3xq7m2a\n  box ui token add ci --scope full\n\n\
    The link works once, for ten minutes. Whoever opens it sees and does in that browser what you\n\
    may; the page is reached from this machine only."
)]
#[command(subcommand_value_name = "VERB", subcommand_help_heading = "Verbs")]
#[command(args_conflicts_with_subcommands = true)]
pub(super) struct Args {
    #[command(subcommand)]
    what: Option<token::What>,
    /// Show the link as a QR code too, also where there is no terminal
    #[arg(long, conflicts_with_all = ["list", "revoke"])]
    qr: bool,
    /// List the browsers that are let in
    #[arg(long, conflicts_with = "revoke")]
    list: bool,
    /// Sign a browser out at once
    #[arg(long, value_name = "ID")]
    revoke: Option<String>,
    #[command(flatten)]
    print: Print,
}

impl Args {
    pub(super) fn json(&self) -> bool {
        self.what
            .as_ref()
            .map_or(self.print.json, token::What::json)
    }
}

pub(super) fn run(args: &Args) -> Ended {
    if let Some(what) = &args.what {
        return token::run(what);
    }
    let mut output = args.print.output();
    let client = host::reach(&mut output, OtherBuild::Bear)?;
    match &args.revoke {
        Some(id) => revoke(&mut output, client, id),
        None if args.list => list(&mut output, client),
        None => pair(&mut output, client, args),
    }
}

fn pair(output: &mut Output, client: Client, args: &Args) -> Ended {
    let link = link(output, client)?;
    if output.format() == Format::Json {
        output.object(&json!({ "link": link.link(), "ends_at_ms": link.ends_at_ms }))?;
        return Ok(0);
    }
    if args.qr || (stderr().is_terminal() && !is_dumb()) {
        output.note(&qr(&link.link()));
    }
    output.note("Open this in a browser on this machine; it works once, for ten minutes:");
    output.data(format!("{}\n", link.link()).as_bytes())?;
    Ok(0)
}

/// A link for one browser.
///
/// # Errors
/// That the host has no page, or cannot be asked.
pub(super) fn link(output: &mut Output, client: Client) -> Result<PairingLink, Complaint> {
    let outcome = client.ask(output, &Request::Page(PageAsk::Link))?;
    let Outcome::PageLink(link) = outcome else {
        return Err(unexpected(&outcome));
    };
    Ok(link)
}

/// Two rows of dots in each line; a text that is too long gives no code.
pub(super) fn qr(text: &str) -> String {
    QrCode::new(text).map_or_else(
        |_| String::new(),
        |code| code.render::<Dense1x2>().quiet_zone(true).build(),
    )
}

fn list(output: &mut Output, client: Client) -> Ended {
    let outcome = client.ask(output, &Request::Page(PageAsk::List))?;
    let Outcome::SignIns { sign_ins } = outcome else {
        return Err(unexpected(&outcome));
    };
    if output.format() == Format::Json {
        output.object(&sign_ins)?;
    } else if sign_ins.is_empty() {
        output.note("no browser is paired; `box ui` makes a link");
    } else {
        output.data(shown(&sign_ins, age::now_ms()).as_bytes())?;
    }
    Ok(0)
}

fn shown(sign_ins: &[SignIn], now_ms: i64) -> String {
    let heads = ["ID", "OWNER", "PAIRED", "SEEN", "BROWSER"];
    let mut rows = vec![heads.map(str::to_owned).to_vec()];
    rows.extend(sign_ins.iter().map(|one| {
        vec![
            one.id.clone(),
            one.owner.to_string(),
            format!("{} ago", age::short(one.made_at_ms, now_ms)),
            format!("{} ago", age::short(one.seen_at_ms, now_ms)),
            visible(&one.agent).into_owned(),
        ]
    }));
    table::columns(&rows)
}

fn revoke(output: &mut Output, client: Client, id: &str) -> Ended {
    let ask = PageAsk::Revoke { id: id.to_owned() };
    client.ask(output, &Request::Page(ask))?;
    output.note(&format!("sign-in `{id}` is revoked"));
    Ok(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_is_a_code_a_telephone_can_read() {
        let code = qr("http://localhost:2697/pair#vvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvv");
        let lines: Vec<&str> = code.lines().collect();
        assert!(lines.len() > 15, "{code}");
        let width = lines[0].chars().count();
        assert!(lines.iter().all(|line| line.chars().count() == width));
    }

    #[test]
    fn what_a_browser_calls_itself_is_shown_harmless() {
        let sign_in = SignIn {
            id: "k3xq7m2a".into(),
            owner: box_api::Owner::Uid(1000),
            agent: "Evil\x1b[31m".into(),
            made_at_ms: 0,
            seen_at_ms: 60_000,
            ends_at_ms: 1,
        };
        let text = shown(&[sign_in], 120_000);
        assert!(
            text.contains("k3xq7m2a") && text.contains("2m ago"),
            "{text}"
        );
        assert!(!text.contains('\x1b'), "{text}");
    }
}
