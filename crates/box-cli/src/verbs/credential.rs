//! `box credential`: what the way out sends instead of a box's placeholder.
//!
//! A secret comes from standard input only. It is held by nobody here longer than it takes to send.

use super::{Ended, Print};
use crate::age;
use crate::client::unexpected;
use crate::complaint::Complaint;
use crate::host::{self, OtherBuild};
use crate::output::{Format, Output, table};
use crate::terminal;
use box_api::control::{CredentialAdd, Outcome, Request};
use rustix::io::Errno;
use std::io::{IsTerminal as _, stdin};
use zeroize::{Zeroize as _, Zeroizing};

/// The longest token known has about 200 bytes, a file of them a few thousand.
const SECRET_BYTES_MAX: usize = 64 << 10;

/// Give boxes the use of an account, without giving them its secret
#[derive(Debug, clap::Args)]
#[command(subcommand_value_name = "VERB", subcommand_help_heading = "Verbs")]
#[command(after_help = "Examples:\n  \
    box credential add claude\n  \
    box credential list\n  \
    box credential remove claude")]
pub(super) struct Args {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, clap::Subcommand)]
enum Verb {
    /// Add a credential; it is asked for, or read from standard input
    #[command(after_help = "Examples:\n  \
        box credential add claude\n  \
        box credential add claude --name work < token.txt\n\n\
        For `claude`: what `claude setup-token` prints, or an API key.")]
    Add {
        /// What it is for, such as `claude`
        #[arg(value_name = "KIND")]
        kind: String,
        /// A name, when you have several
        #[arg(long, default_value = "default")]
        name: String,
        /// Refused: a command line is seen by every user and kept in the shell's history
        #[arg(hide = true, value_name = "SECRET", allow_hyphen_values = true)]
        typed: Vec<Refused>,
    },
    /// List credentials, without their secrets
    #[command(after_help = "Example:\n  box credential list")]
    List {
        #[command(flatten)]
        print: Print,
    },
    /// Forget a credential
    #[command(
        visible_alias = "rm",
        after_help = "Example:\n  box credential remove claude"
    )]
    Remove {
        #[arg(value_name = "NAME")]
        name: String,
        #[command(flatten)]
        print: Print,
    },
}

/// Something that should not have been typed. Not kept, so that nothing can show it.
#[derive(Debug, Clone)]
struct Refused;

impl std::str::FromStr for Refused {
    type Err = std::convert::Infallible;
    fn from_str(_: &str) -> Result<Self, Self::Err> {
        Ok(Self)
    }
}

impl Args {
    pub(super) fn json(&self) -> bool {
        match &self.verb {
            Verb::Add { .. } => false,
            Verb::List { print } | Verb::Remove { print, .. } => print.json,
        }
    }
}

pub(super) fn run(args: Args) -> Ended {
    match args.verb {
        Verb::Add { typed, .. } if !typed.is_empty() => Err(typed_openly()),
        Verb::Add { kind, name, .. } => add(&mut Output::new(Format::Text), &kind, &name),
        Verb::List { print } => list(&mut print.output()),
        Verb::Remove { name, print } => remove(&mut print.output(), &name),
    }
}

fn typed_openly() -> Complaint {
    Complaint::usage(
        "secret-typed",
        "a credential is never given on the command line",
    )
    .caused_by("other users can see it there, and the shell keeps it in its history")
    .hinted("withdraw that one, then give a new one to `box credential add <KIND>` when it asks")
}

fn add(output: &mut Output, kind: &str, name: &str) -> Ended {
    // Before anything is typed: a host that cannot be reached is told first.
    let client = host::reach(output, OtherBuild::Bear)?;
    let typed = read_secret(output, kind)?;
    let secret = std::str::from_utf8(&typed)
        .map(str::trim)
        .unwrap_or_default()
        .to_owned();
    if secret.is_empty() {
        return Err(
            Complaint::usage("no-secret", "no credential was given").hinted(format!(
                "paste it when asked, or `box credential add {kind} < <file>`"
            )),
        );
    }
    let add = CredentialAdd {
        kind: kind.to_owned(),
        name: name.to_owned(),
        secret,
    };
    let mut request = Request::CredentialAdd(add);
    let outcome = client.ask(output, &request);
    if let Request::CredentialAdd(add) = &mut request {
        add.secret.zeroize();
    }
    outcome?;
    output.note(&format!(
        "credential `{name}` for `{kind}` is added; boxes only ever see a placeholder"
    ));
    Ok(0)
}

/// Reads without a buffer of the standard library, which would keep a copy.
fn read_secret(output: &mut Output, kind: &str) -> Result<Zeroizing<Vec<u8>>, Complaint> {
    let input = stdin();
    let typed = input.is_terminal();
    let could_not = |cause: String| {
        Complaint::failed("no-secret", "could not read the credential").caused_by(cause)
    };
    // Before the question: an answer can be there as soon as it is seen.
    let silent = typed.then(terminal::Mode::silent).transpose();
    let _silent = silent.map_err(|error| could_not(error.to_string()))?;
    if typed {
        if kind == "claude" {
            output.note("`claude setup-token` prints a token for this");
        }
        output.ask(&format!("credential for `{kind}` (not shown): "));
    }
    let mut secret = Zeroizing::new(vec![0; SECRET_BYTES_MAX + 1]);
    let mut length = 0;
    while length < secret.len() && !(typed && secret[..length].contains(&b'\n')) {
        match rustix::io::read(&input, &mut secret[length..]) {
            Ok(0) => break,
            Ok(read) => length += read,
            Err(Errno::INTR) => {}
            Err(errno) => return Err(could_not(errno.to_string())),
        }
    }
    if length > SECRET_BYTES_MAX {
        let title = format!("a credential has at most {SECRET_BYTES_MAX} bytes");
        return Err(Complaint::usage("secret-too-long", title));
    }
    secret.truncate(length);
    Ok(secret)
}

fn list(output: &mut Output) -> Ended {
    let client = host::reach(output, OtherBuild::Bear)?;
    let outcome = client.ask(output, &Request::CredentialList)?;
    let Outcome::Credentials { credentials } = outcome else {
        return Err(unexpected(&outcome));
    };
    if output.format() == Format::Json {
        output.object(&credentials)?;
        return Ok(0);
    }
    if credentials.is_empty() {
        output.note("no credentials; `box credential add claude` adds one");
        return Ok(0);
    }
    let now_ms = age::now_ms();
    let mut rows = vec![["NAME", "FOR", "AGE", "STATE"].map(str::to_owned).to_vec()];
    rows.extend(credentials.into_iter().map(|known| {
        let age = age::short(known.added_at_ms, now_ms);
        let state = if known.lost {
            "lost, add it again"
        } else {
            "ready"
        };
        vec![known.name, known.kind, age, state.to_owned()]
    }));
    output.data(table::columns(&rows).as_bytes())?;
    Ok(0)
}

fn remove(output: &mut Output, name: &str) -> Ended {
    let request = Request::CredentialRemove {
        name: name.to_owned(),
    };
    let outcome = host::reach(output, OtherBuild::Bear)?.ask(output, &request)?;
    match output.format() {
        Format::Json => output.object(&outcome)?,
        Format::Text => output.note(&format!("credential `{name}` is forgotten")),
    }
    Ok(0)
}
