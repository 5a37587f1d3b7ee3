//! `box credential`: what the way out sends instead of a box's placeholder.
//!
//! A secret comes from standard input, a variable, a file or a command, never from the command
//! line. It is held by nobody here longer than it takes to send.

mod listed;
mod source;

use super::{Ended, Print};
use crate::client::unexpected;
use crate::complaint::Complaint;
use crate::host::{self, OtherBuild};
use crate::output::{Format, Output};
use box_api::control::{
    CredentialAdd, CredentialForm, CredentialSource, CredentialUnlock, Outcome, Request,
};
use box_api::egress::Carriage;
pub(super) use source::From;
use source::read_secret;
use zeroize::Zeroize as _;

/// Give boxes the use of an account, without giving them its secret
#[derive(Debug, clap::Args)]
#[command(subcommand_value_name = "VERB", subcommand_help_heading = "Verbs")]
#[command(after_help = "Examples:\n  \
    box credential add claude\n  \
    box credential add github --command 'gh auth token' --every 50m\n  \
    box credential list\n  \
    box credential rotate claude\n  \
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
        box credential add claude --name work < token.txt\n  \
        box credential add openai --env OPENAI_API_KEY\n  \
        box credential add github --command 'gh auth token' --every 50m\n  \
        box credential add gitlab --host gitlab.example.org --file token\n  \
        box credential add generic --name maps --host maps.example.org --query key\n\n\
        For `claude`: what `claude setup-token` prints, or an API key.")]
    Add {
        /// What it is for: `claude`, `openai`, `github`, `gitlab`, `gemini`, `npm` or `generic`
        #[arg(value_name = "KIND")]
        kind: String,
        /// A name, when you have several
        #[arg(long, default_value = "default")]
        name: String,
        #[command(flatten)]
        from: From,
        #[command(flatten)]
        form: Box<Form>,
        #[command(flatten)]
        print: Print,
        /// Refused: a command line is seen by every user and kept in the shell's history
        #[arg(hide = true, value_name = "SECRET", allow_hyphen_values = true)]
        typed: Vec<Refused>,
    },
    /// Give a credential a new secret; boxes keep their placeholders and go on
    #[command(after_help = "Examples:\n  \
        box credential rotate claude\n  \
        box credential rotate github:work --file new-token\n\n\
        One that comes from a command is asked for again.")]
    Rotate {
        /// `<kind>`, or `<kind>:<name>`
        #[arg(value_name = "NAME")]
        name: String,
        #[command(flatten)]
        from: From,
        #[command(flatten)]
        print: Print,
        /// Refused, as it is for `add`
        #[arg(hide = true, value_name = "SECRET", allow_hyphen_values = true)]
        typed: Vec<Refused>,
    },
    /// Open what is sealed with a passphrase, or set the passphrase
    #[command(after_help = "Examples:\n  \
        box credential unlock --new\n  \
        box credential unlock")]
    Unlock {
        /// Set it: from now on secrets are sealed with it
        #[arg(long)]
        new: bool,
        #[command(flatten)]
        print: Print,
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
        after_help = "Examples:\n  box credential remove claude\n  box credential remove claude:work"
    )]
    Remove {
        #[arg(value_name = "NAME")]
        name: String,
        #[command(flatten)]
        print: Print,
    },
}

/// Where the secret of a kind goes that leaves it open.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Where it goes, for `generic` and servers of your own")]
struct Form {
    /// The host that gets it; may be given several times
    #[arg(long, value_name = "HOST")]
    host: Vec<String>,
    /// The header whose whole value it is, such as `X-Api-Key`; else `authorization: Bearer`
    #[arg(long, value_name = "NAME")]
    header: Vec<String>,
    /// The query parameter whose value it is, such as `key`
    #[arg(long, value_name = "NAME")]
    query: Vec<String>,
    /// The variable of a box that holds its placeholder
    #[arg(long, value_name = "NAME")]
    variable: Option<String>,
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

impl Form {
    fn wire(self) -> CredentialForm {
        let headers = self
            .header
            .into_iter()
            .map(|name| Carriage::Header { name });
        let parameters = self.query.into_iter().map(|name| Carriage::Query { name });
        CredentialForm {
            hosts: self.host,
            carried: headers.chain(parameters).collect(),
            variable: self.variable,
        }
    }
}

impl Args {
    pub(super) fn json(&self) -> bool {
        match &self.verb {
            Verb::Add { print, .. }
            | Verb::Rotate { print, .. }
            | Verb::Unlock { print, .. }
            | Verb::List { print }
            | Verb::Remove { print, .. } => print.json,
        }
    }
}

pub(super) fn run(args: Args) -> Ended {
    match args.verb {
        Verb::Add { typed, .. } | Verb::Rotate { typed, .. } if !typed.is_empty() => {
            Err(typed_openly())
        }
        Verb::Add {
            kind,
            name,
            from,
            form,
            print,
            ..
        } => {
            let add = CredentialAdd {
                kind,
                name,
                form: form.wire(),
                ..CredentialAdd::default()
            };
            add_one(&mut print.output(), add, from)
        }
        Verb::Rotate {
            name, from, print, ..
        } => rotate(&mut print.output(), &name, from),
        Verb::Unlock { new, print } => {
            let which = if new {
                Passphrase::New
            } else {
                Passphrase::Known
            };
            unlock(&mut print.output(), which)
        }
        Verb::List { print } => listed::list(&mut print.output()),
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

fn add_one(output: &mut Output, mut add: CredentialAdd, from: From) -> Ended {
    // Before anything is typed: a host that cannot be reached is told first.
    let client = host::reach(output, OtherBuild::Bear)?;
    let asked = format!("box credential add {}", add.kind);
    (add.source, add.secret) = from.read(output, &add.kind, &asked)?;
    let said = format!(
        "credential `{}` for `{}` is added; boxes only ever see a placeholder",
        add.name, add.kind
    );
    send(output, client, Request::CredentialAdd(add), &said)
}

/// An account of a kind that says itself where it goes.
pub(super) fn add_account(output: &mut Output, kind: &str, name: String, from: From) -> Ended {
    let add = CredentialAdd {
        kind: kind.to_owned(),
        name,
        ..CredentialAdd::default()
    };
    add_one(output, add, from)
}

fn rotate(output: &mut Output, name: &str, from: From) -> Ended {
    let mut add = CredentialAdd {
        name: name.to_owned(),
        ..CredentialAdd::default()
    };
    if from.is_open() && listed::comes_from_a_command(output, name)? {
        // The host runs it again.
    } else {
        let asked = format!("box credential rotate {name}");
        (add.source, add.secret) = from.read(output, name, &asked)?;
    }
    let client = host::reach(output, OtherBuild::Bear)?;
    let said = format!("credential `{name}` has a new secret; boxes go on as they are");
    send(output, client, Request::CredentialRotate(add), &said)
}

/// Sends what has a secret in it, wipes it, and says what came of it.
fn send(
    output: &mut Output,
    client: crate::client::Client,
    mut request: Request,
    said: &str,
) -> Ended {
    let outcome = client.ask(output, &request);
    if let Request::CredentialAdd(add) | Request::CredentialRotate(add) = &mut request {
        add.secret.zeroize();
    }
    let outcome = outcome?;
    match output.format() {
        Format::Json => output.object(&outcome)?,
        Format::Text => output.note(said),
    }
    Ok(0)
}

/// Which passphrase is given.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Passphrase {
    /// The one that was set.
    Known,
    /// One to set.
    New,
}

fn unlock(output: &mut Output, which: Passphrase) -> Ended {
    let client = host::reach(output, OtherBuild::Bear)?;
    let question = match which {
        Passphrase::New => "new passphrase (not shown): ",
        Passphrase::Known => "passphrase (not shown): ",
    };
    let passphrase = read_secret(output, question)?;
    if which == Passphrase::New && std::io::IsTerminal::is_terminal(&std::io::stdin()) {
        let again = read_secret(output, "once more (not shown): ")?;
        if *again != *passphrase {
            return Err(Complaint::usage(
                "passphrases-differ",
                "the two passphrases differ",
            ));
        }
    }
    let text = std::str::from_utf8(&passphrase).unwrap_or_default();
    let text = text.trim_end_matches(['\n', '\r']);
    let mut request = Request::CredentialUnlock(CredentialUnlock {
        passphrase: Some(text.to_owned()),
        is_new: which == Passphrase::New,
    });
    let outcome = client.ask(output, &request);
    if let Request::CredentialUnlock(asked) = &mut request {
        asked.passphrase.zeroize();
    }
    let outcome = outcome?;
    let Outcome::Seal(seal) = &outcome else {
        return Err(unexpected(&outcome));
    };
    match (output.format(), which) {
        (Format::Json, _) => output.object(seal)?,
        (Format::Text, Passphrase::New) => {
            output.note("secrets are sealed with this passphrase from now on");
        }
        (Format::Text, Passphrase::Known) => output.note("what is sealed is open"),
    }
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

/// A source as a table has it. Commands are shown: they hold no secret.
fn shown_source(source: &CredentialSource) -> String {
    match source {
        CredentialSource::Typed => "typed".to_owned(),
        CredentialSource::Env { name } => format!("${name}"),
        CredentialSource::File { path } => path.clone(),
        CredentialSource::Command { command, .. } => format!("`{command}`"),
    }
}
