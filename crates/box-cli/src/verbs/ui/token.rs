//! `box ui token`: what programs show to be let in, instead of a browser's cookie.

use super::super::{Ended, Print};
use crate::age;
use crate::client::unexpected;
use crate::host::{self, OtherBuild};
use crate::output::{Format, Output, table, visible};
use box_api::BoxName;
use box_api::control::{Outcome, Request};
use box_api::page::{PageAsk, TOKEN_DAYS, TokenAsk, TokenInfo, TokenScope};
use clap::builder::PossibleValuesParser;
use serde_json::json;

#[derive(Debug, clap::Subcommand)]
pub(in crate::verbs) enum What {
    /// Tokens of programs: for scripts, monitors and editors
    #[command(subcommand_value_name = "VERB", subcommand_help_heading = "Verbs")]
    #[command(
        after_help = "Examples:\n  box ui token add ci --scope full\n  box ui token add grafana --scope metrics\n  \
        box ui token add zed --acp web\n  box ui token list"
    )]
    Token {
        #[command(subcommand)]
        verb: Verb,
    },
}

#[derive(Debug, clap::Subcommand)]
pub(in crate::verbs) enum Verb {
    /// Make a token; it is shown this once
    #[command(
        after_help = "Examples:\n  box ui token add ci --scope full --days 30\n  box ui token add zed --acp web\n\n\
        A program shows it as `Authorization: Bearer <token>`. An ACP client opens the WebSocket that\n\
        is printed, with the protocols `acp.v1` and `bearer.<token>`."
    )]
    Add {
        /// What it is for, as lists show it
        #[arg(value_name = "LABEL")]
        label: String,
        /// What it lets its holder do
        #[arg(long, value_name = "SCOPE", default_value = "read", conflicts_with = "acp",
            value_parser = PossibleValuesParser::new(["read", "full", "metrics"]))]
        scope: String,
        /// Speak ACP to this box, and nothing else
        #[arg(long, value_name = "BOX", value_parser = BoxName::parse)]
        acp: Option<BoxName>,
        /// How many days it lives
        #[arg(long, value_name = "DAYS", default_value_t = TOKEN_DAYS)]
        days: u32,
        #[command(flatten)]
        print: Print,
    },
    /// List the tokens there are; none is shown again
    #[command(after_help = "Example:\n  box ui token list")]
    List {
        #[command(flatten)]
        print: Print,
    },
    /// End a token at once
    #[command(after_help = "Example:\n  box ui token revoke k3xq7m2a")]
    Revoke {
        #[arg(value_name = "ID")]
        id: String,
        #[command(flatten)]
        print: Print,
    },
}

impl What {
    pub(super) fn json(&self) -> bool {
        let Self::Token { verb } = self;
        match verb {
            Verb::Add { print, .. } | Verb::List { print } | Verb::Revoke { print, .. } => {
                print.json
            }
        }
    }
}

pub(super) fn run(what: &What) -> Ended {
    let What::Token { verb } = what;
    match verb {
        Verb::Add {
            label,
            scope,
            acp,
            days,
            print,
        } => {
            let scope = match acp {
                Some(_) => TokenScope::Acp,
                // One of those clap let through.
                None => TokenScope::from_word(scope).unwrap_or(TokenScope::Read),
            };
            let asked = TokenAsk {
                label: label.clone(),
                scope,
                name: acp.clone(),
                days: Some(*days),
            };
            add(&mut print.output(), asked)
        }
        Verb::List { print } => list(&mut print.output()),
        Verb::Revoke { id, print } => revoke(&mut print.output(), id),
    }
}

fn add(output: &mut Output, asked: TokenAsk) -> Ended {
    let client = host::reach(output, OtherBuild::Bear)?;
    let outcome = client.ask(output, &Request::Page(PageAsk::TokenAdd(asked)))?;
    let Outcome::Token(made) = outcome else {
        return Err(unexpected(&outcome));
    };
    if output.format() == Format::Json {
        output.object(&made)?;
        return Ok(0);
    }
    let way = match made.info.scope {
        TokenScope::Acp => "as the WebSocket protocols `acp.v1` and `bearer.<token>`",
        TokenScope::Read | TokenScope::Full | TokenScope::Metrics => {
            "as `Authorization: Bearer <token>`"
        }
    };
    output.note(&format!(
        "Show it at {} {way}; it is not told again:",
        made.url
    ));
    output.data(format!("{}\n", made.token).as_bytes())?;
    Ok(0)
}

fn list(output: &mut Output) -> Ended {
    let client = host::reach(output, OtherBuild::Bear)?;
    let outcome = client.ask(output, &Request::Page(PageAsk::TokenList))?;
    let Outcome::Tokens { tokens } = outcome else {
        return Err(unexpected(&outcome));
    };
    if output.format() == Format::Json {
        output.object(&tokens)?;
    } else if tokens.is_empty() {
        output.note("there is no token; `box ui token add` makes one");
    } else {
        output.data(shown(&tokens, age::now_ms()).as_bytes())?;
    }
    Ok(0)
}

fn shown(tokens: &[TokenInfo], now_ms: i64) -> String {
    let heads = [
        "ID", "OWNER", "LABEL", "SCOPE", "BOX", "MADE", "SEEN", "ENDS IN",
    ];
    let mut rows = vec![heads.map(str::to_owned).to_vec()];
    rows.extend(tokens.iter().map(|one| {
        let seen = one.seen_at_ms;
        vec![
            one.id.clone(),
            one.owner.to_string(),
            visible(&one.label).into_owned(),
            one.scope.word().to_owned(),
            one.name
                .as_ref()
                .map_or("-".to_owned(), ToString::to_string),
            format!("{} ago", age::short(one.made_at_ms, now_ms)),
            seen.map_or("never".to_owned(), |seen| {
                format!("{} ago", age::short(seen, now_ms))
            }),
            age::short(now_ms, one.ends_at_ms),
        ]
    }));
    table::columns(&rows)
}

fn revoke(output: &mut Output, id: &str) -> Ended {
    let ask = PageAsk::TokenRevoke { id: id.to_owned() };
    let client = host::reach(output, OtherBuild::Bear)?;
    client.ask(output, &Request::Page(ask))?;
    if output.format() == Format::Json {
        output.object(&json!({ "revoked": id }))?;
    } else {
        output.note(&format!("token `{id}` is revoked"));
    }
    Ok(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_shows_what_a_token_is_for_and_no_token() {
        let token = TokenInfo {
            id: "k3xq7m2a".into(),
            owner: box_api::Owner::Uid(0),
            label: "ci\x1b[31m".into(),
            scope: TokenScope::Acp,
            name: Some(BoxName::parse("web").unwrap()),
            made_at_ms: 0,
            seen_at_ms: None,
            ends_at_ms: 24 * 60 * 60_000,
        };
        let text = shown(&[token], 60_000);
        for part in ["k3xq7m2a", "acp", "web", "never"] {
            assert!(text.contains(part), "{text}");
        }
        assert!(!text.contains('\x1b'), "{text}");
    }
}
