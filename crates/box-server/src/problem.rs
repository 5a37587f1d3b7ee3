//! Every failure as a person reads it: slug, kind, what, which, why, and what to do now.
//!
//! Slugs are for programs and never change their meaning. The exit code follows from the kind.
#![expect(
    clippy::needless_pass_by_value,
    reason = "all are for `map_err`, which gives errors away"
)]

use box_api::control::Hello;
use box_api::{PROTOCOL, Problem, ProblemKind};
use box_core::agents::{InstallError, UnknownAgent};
use box_core::boxes::{Any, FindError, reason};
use box_core::credentials::{CredentialError, SecretError, VaultError};
use box_core::exec::ExecError;
use box_core::images::ImageError;
use box_core::lifecycle::{
    CreateError, RemoveError, SetError, SettingError, StartError, StopError,
};
use box_core::open::OpenError;
use box_core::store::StoreError;
use box_core::thread::{AttachError, PromptError, RunError, ThreadError};
use box_core::watch::StillError;
use box_runtime::RuntimeError;
use std::error::Error;
use std::path::Path;

mod agents;
mod decisions;
mod network;
mod page;
mod processes;
mod push;
mod threads;
mod travel;
mod undo;
mod ways;

pub(crate) use agents::{agent_add, agent_remove, pack_update};
pub(crate) use decisions::{answer, park};
pub(crate) use network::{policy, reload};
pub(crate) use page::{
    ambiguous, body, foreign_origin, link, misdirected, no_box, no_endpoint, no_page, no_terminal,
    other_method, page_address, pair, revoke, revoke_token, row, signed_out, token, token_not_for,
    too_many_terminals, too_many_tries, unlike, wrong_token,
};
pub(crate) use processes::{expose, logs, process};
pub(crate) use push::push;
pub(crate) use threads::{act, fork, recorded_too_large, take_in};
pub(crate) use travel::{export, import, pipe};
pub(crate) use undo::{
    clone, disk, nothing_to_keep, rename, restart, restore, script, search, set_up, snapshot,
    undelete, unpushed, wait,
};
pub(crate) use ways::{attachment, not_whole, shell_line, too_many_files, workspace_files};

use ProblemKind::{Engine, Failed, Refused, Usage};

/// The error's own text, and its causes in one line.
fn told(kind: ProblemKind, slug: &str, error: &dyn Error) -> Problem {
    let problem = Problem::new(kind, slug, error.to_string());
    match error.source() {
        Some(source) => problem.caused_by(reason(source)),
        None => problem,
    }
}

/// As [`told`], for what an engine said: its hint, and whose fault it was.
fn told_by_engine(slug: &str, error: &dyn Error, engine: &RuntimeError) -> Problem {
    match engine {
        RuntimeError::Refused {
            hint: Some(hint), ..
        } => told(Failed, slug, error).hinted(hint),
        RuntimeError::Refused { hint: None, .. } => told(Failed, slug, error),
        RuntimeError::NotFound(_)
        | RuntimeError::Exists(_)
        | RuntimeError::NotRunning(_)
        | RuntimeError::Engine { .. } => told(Engine, slug, error),
    }
}

fn hinted(problem: Problem, hint: Option<impl Into<String>>) -> Problem {
    match hint {
        Some(hint) => problem.hinted(hint),
        None => problem,
    }
}

pub(crate) fn open(error: OpenError) -> Problem {
    let (kind, slug) = match &error {
        OpenError::DataInUse { .. } | OpenError::RunInUse { .. } => (Failed, "host-runs"),
        OpenError::Newer { .. } | OpenError::Store(StoreError::Newer { .. }) => {
            (Failed, "newer-layout")
        }
        OpenError::Settings(_) => (Usage, "bad-settings"),
        OpenError::Foreign { .. } | OpenError::Writable { .. } => (Failed, "unsafe-folder"),
        OpenError::Folder { .. }
        | OpenError::Lock(_)
        | OpenError::Layout { .. }
        | OpenError::File { .. }
        | OpenError::Store(_)
        | OpenError::Trust(_) => (Engine, "no-start"),
    };
    hinted(told(kind, slug, &error), error.hint())
}

pub(crate) fn listen(error: crate::listen::ListenError) -> Problem {
    told(Engine, "no-start", &error)
}

pub(crate) fn log(folder: &Path, error: &std::io::Error) -> Problem {
    let title = format!("could not write a log in `{}`", folder.display());
    Problem::new(Engine, "no-start", title).caused_by(error)
}

/// A task of the host did not come to its end.
pub(crate) fn ending(error: tokio::task::JoinError) -> Problem {
    Problem::new(Engine, "host-ends", "the host is ending").caused_by(error)
}

fn host_ends() -> Problem {
    Problem::new(Engine, "host-ends", "the host is ending")
        .hinted("type it again; boxes and their agents go on")
}

pub(crate) fn not_settled() -> Problem {
    Problem::new(
        Engine,
        "not-settled",
        "the host is still bringing its boxes back",
    )
    .hinted("try again in a moment")
}

pub(crate) fn foreign_user() -> Problem {
    Problem::new(
        Refused,
        "foreign-user",
        "this host serves the user it runs as, and root",
    )
    .hinted("start a host of your own: unset `BOX_RUN_DIR`, then type it again")
}

pub(crate) fn other_protocol(theirs: u32) -> Problem {
    let title = format!("this host speaks protocol {PROTOCOL}, the client {theirs}");
    Problem::new(Engine, "other-protocol", title)
        .hinted("`box up` replaces the host; boxes and turns go on")
}

/// The request is none this build knows, or names what cannot be named so.
pub(crate) fn malformed(hello: &Hello, error: &serde_json::Error) -> Problem {
    if hello.protocol != PROTOCOL {
        return other_protocol(hello.protocol);
    }
    // Of the error only the sentence: the rest is about JSON, which no person typed.
    let text = error.to_string();
    let sentence = text.split(" at line ").next().unwrap_or_default();
    Problem::new(
        Usage,
        "bad-request",
        "the host does not understand the request",
    )
    .caused_by(sentence)
}

pub(crate) fn client(error: impl Error) -> Problem {
    told(Failed, "client-gone", &error)
}

pub(crate) fn client_gone() -> Problem {
    Problem::new(Failed, "client-gone", "the client is gone")
}

pub(crate) fn gone() -> Problem {
    Problem::new(Failed, "box-gone", "the box is gone")
}

pub(crate) fn store(error: StoreError) -> Problem {
    let problem = told(Engine, "store", &error);
    match error {
        StoreError::DiskFull(_) => problem.hinted("make room where the data folder is"),
        StoreError::Newer { .. }
        | StoreError::Make { .. }
        | StoreError::Open { .. }
        | StoreError::Step { .. }
        | StoreError::Sql(_)
        | StoreError::Undone
        | StoreError::Gone(_) => problem,
    }
}

pub(crate) fn engine(error: RuntimeError) -> Problem {
    told_by_engine("engine", &error, &error)
}

pub(crate) fn find(error: FindError) -> Problem {
    let problem = told(Failed, "box-not-found", &error);
    match error {
        FindError::Unknown {
            near: Some(near), ..
        } => problem.hinted(format!("did you mean `{near}`?")),
        FindError::Unknown { any: Any::Some, .. } => problem.hinted("`box list` shows your boxes"),
        FindError::Unknown {
            name,
            any: Any::None,
            ..
        } => problem.hinted(format!("make it with `box new {name}`")),
        FindError::Store(error) => store(error),
    }
}

pub(crate) fn create(error: CreateError) -> Problem {
    match error {
        CreateError::NameTaken(ref name) => told(Failed, "name-taken", &error).hinted(format!(
            "choose another name, or remove that box with `box rm {name}`"
        )),
        CreateError::Full => {
            told(Refused, "too-many-boxes", &error).hinted("remove a box with `box rm <name>`")
        }
        CreateError::TooManyEntries(_) => told(Usage, "too-many-entries", &error),
        CreateError::TooSmall(_) => told(Usage, "limit-too-small", &error),
        CreateError::NoCredential(_) => no_account(&error),
        CreateError::Setting(error) => setting(&error),
        CreateError::Allow(_) => {
            told(Usage, "bad-entry", &error).hinted("entries are `host`, `*.host` or `host:port`")
        }
        CreateError::Never(_) => told(Usage, "bad-entry", &error),
        CreateError::Image { ref source, .. } => told_by_engine("image-not-ready", &error, source),
        CreateError::Engine { ref source, .. } => told_by_engine("not-created", &error, source),
        CreateError::Files { .. } => told(Engine, "not-created", &error),
        CreateError::Script(error) => script(error),
        CreateError::Start(error) => start(error),
        CreateError::Store(error) => store(error),
        CreateError::Ending => host_ends(),
    }
}

pub(crate) fn start(error: StartError) -> Problem {
    match error {
        StartError::Engine { ref source, .. } => told_by_engine("not-started", &error, source),
        StartError::Files { .. } => told(Engine, "not-started", &error),
        StartError::Busy { .. } => busy(&error),
        StartError::Gone => gone(),
        StartError::Store(error) => store(error),
        StartError::Ending => host_ends(),
    }
}

pub(crate) fn stop(error: StopError) -> Problem {
    match error {
        StopError::Engine { ref source, .. } => told_by_engine("not-stopped", &error, source),
        StopError::Busy { .. } => busy(&error),
        StopError::Gone => gone(),
        StopError::Store(error) => store(error),
        StopError::Ending => host_ends(),
    }
}

pub(crate) fn set(error: SetError) -> Problem {
    match error {
        SetError::Nothing => {
            told(Usage, "nothing-to-set", &error).hinted("`box set <box> memory=4G`, for example")
        }
        SetError::TooMany | SetError::Twice(_) => told(Usage, "bad-setting", &error),
        SetError::TooSmall(_) => told(Usage, "limit-too-small", &error),
        SetError::NoCredential(_) => no_account(&error),
        SetError::NoNetSet(_) => hinted(
            told(Usage, "no-net-set", &error),
            Some("`[net.sets.<name>]` in the settings makes one; `box policy reload` reads them"),
        ),
        SetError::Setting(error) => setting(&error),
        SetError::Engine { ref source, .. } => told_by_engine("not-set", &error, source),
        SetError::Busy { .. } => busy(&error),
        SetError::Gone => gone(),
        SetError::Store(error) => store(error),
        SetError::Ending => host_ends(),
    }
}

fn setting(error: &SettingError) -> Problem {
    match error {
        SettingError::Time { .. } | SettingError::NestedLocked => told(Usage, "bad-setting", error),
        SettingError::NoFreezer => told(Refused, "no-freezer", error),
        SettingError::NoPrices => told(Refused, "no-prices", error).hinted(
            "write `\"<model>*\" = { input = …, output = … }` in `[budget.prices]`, dollars for a \
             million tokens",
        ),
    }
}

pub(crate) fn still(error: StillError) -> Problem {
    match error {
        StillError::NotRunning { ref name, .. } => {
            told(Failed, "not-running", &error).hinted(format!("start it with `box start {name}`"))
        }
        StillError::Unable { .. } => told(Refused, "no-freezer", &error),
        StillError::Engine { ref source, .. } => told_by_engine("not-frozen", &error, source),
    }
}

pub(crate) fn remove(error: RemoveError) -> Problem {
    match error {
        RemoveError::Engine { ref source, .. } => told_by_engine("not-removed", &error, source),
        RemoveError::Busy { .. } => busy(&error),
        RemoveError::Store(error) => store(error),
        RemoveError::Ending => host_ends(),
    }
}

fn busy(error: &dyn Error) -> Problem {
    told(Failed, "box-busy", error).hinted("something else is being done to it; try again later")
}

pub(crate) fn exec(error: ExecError) -> Problem {
    match error {
        ExecError::NoCommand => told(Usage, "no-command", &error),
        ExecError::Find(error) => find(error),
        ExecError::NotRunning { ref name, .. } => {
            told(Failed, "not-running", &error).hinted(format!("start it with `box start {name}`"))
        }
        ExecError::Engine { ref source, .. } => told_by_engine("not-run", &error, source),
        ExecError::Store(error) => store(error),
    }
}

pub(crate) fn image(error: ImageError) -> Problem {
    match error {
        ImageError::Prepare { ref source, .. } => told_by_engine("image-not-ready", &error, source),
        ImageError::List(ref source)
        | ImageError::Prune(ref source)
        | ImageError::Remove { ref source, .. } => told_by_engine("images", &error, source),
        ImageError::Unknown { ref known, .. } => {
            let known: Vec<String> = known.iter().map(|image| format!("`{image}`")).collect();
            let hint = match known.as_slice() {
                [] => "there is none yet; the first box makes one".to_owned(),
                known => format!("images here: {}", known.join(", ")),
            };
            told(Failed, "image-not-found", &error).hinted(hint)
        }
        ImageError::RelativeArchive(_) => told(Usage, "image-not-found", &error),
        ImageError::InUse { .. } => told(Refused, "image-in-use", &error)
            .hinted("remove those boxes first with `box rm <name> --now`, or those in the trash with `box prune --all`"),
        ImageError::Store(error) => store(error),
    }
}

pub(crate) fn credential(error: CredentialError) -> Problem {
    match error {
        CredentialError::UnknownKind { ref known, .. } => {
            let known: Vec<String> = known.iter().map(|kind| format!("`{kind}`")).collect();
            told(Usage, "unknown-credential-kind", &error)
                .hinted(format!("kinds are {}", known.join(", ")))
        }
        CredentialError::Name => told(Usage, "bad-credential-name", &error),
        CredentialError::Secret { ref source, .. } => {
            let problem = told(Usage, "bad-secret", &error);
            match source {
                SecretError::Empty => problem.hinted("give it on standard input"),
                SecretError::TooLong
                | SecretError::Characters
                | SecretError::TooShort
                | SecretError::Shape { .. } => problem.hinted("paste the whole token, and only it"),
            }
        }
        CredentialError::Form { .. } => told(Usage, "bad-credential-form", &error),
        CredentialError::OtherForm { ref name } => {
            told(Refused, "other-form", &error).hinted(format!(
                "`box credential remove {name}`, then add the new one: boxes get new placeholders"
            ))
        }
        CredentialError::Command { .. } => told(Failed, "credential-command", &error)
            .hinted("run the command yourself: it prints the secret and ends with 0"),
        CredentialError::Vault(ref source) => vault(&error, source),
        CredentialError::Ambiguous { .. } => {
            told(Usage, "ambiguous-credential", &error).hinted("name it as `<kind>:<name>`")
        }
        CredentialError::TooMany => told(Refused, "too-many-credentials", &error)
            .hinted("remove one with `box credential rm <name>`"),
        CredentialError::Unknown(_) => {
            told(Failed, "credential-not-found", &error).hinted("`box credential list` shows yours")
        }
        CredentialError::Egress(_) => told(Engine, "egress", &error)
            .hinted("it is started again by itself; what it says is in `egress.log`"),
        CredentialError::Store(error) => store(error),
    }
}

fn vault(error: &CredentialError, source: &VaultError) -> Problem {
    match source {
        VaultError::Locked => told(Refused, "locked", error)
            .hinted("`box credential unlock` asks for the passphrase; `--new` sets the first"),
        VaultError::WrongPassphrase => told(Refused, "wrong-passphrase", error),
        VaultError::WeakPassphrase => told(Usage, "weak-passphrase", error),
        VaultError::NoPassphrase => {
            told(Usage, "no-passphrase", error).hinted("`box credential unlock --new` sets one")
        }
        VaultError::OtherSeal => told(Usage, "other-seal", error).hinted(
            "`seal = \"passphrase\"` under `[credentials]` in the settings, then restart the host",
        ),
        VaultError::Keyring(_) | VaultError::Systemd(_) => told(Engine, "no-seal", error)
            .hinted("setting `credentials.seal` chooses another way, or `memory`"),
        VaultError::KeyGone
        | VaultError::Unknown
        | VaultError::Open(_)
        | VaultError::Store(_)
        | VaultError::Ending => told(Failed, "no-seal", error),
    }
}

fn no_account(error: &impl Error) -> Problem {
    told(Usage, "credential-not-found", error)
        .hinted("`box credential list` shows yours; accounts are named `<kind>:<name>`")
}

pub(crate) fn agent(error: UnknownAgent) -> Problem {
    let hint = error.hint();
    told(Usage, "unknown-agent", &error).hinted(hint)
}

pub(crate) fn pack(error: InstallError) -> Problem {
    let hint = error.hint();
    hinted(told(Failed, "agent-not-installed", &error), hint)
}

pub(crate) fn thread(error: ThreadError) -> Problem {
    match error {
        ThreadError::Unknown(_) => told(Failed, "thread-not-found", &error),
        ThreadError::Busy(_) => told(Engine, "thread-busy", &error),
        ThreadError::Store(error) => store(error),
    }
}

pub(crate) fn thread_gone() -> Problem {
    Problem::new(Failed, "thread-gone", "the thread is gone")
}

pub(crate) fn prompt(error: PromptError) -> Problem {
    match error {
        PromptError::Thread(error) => thread(error),
        PromptError::QueueFull(_) => {
            told(Refused, "too-many-prompts", &error).hinted("wait until a turn has ended")
        }
        PromptError::Empty | PromptError::TooLong { .. } => told(Usage, "bad-prompt", &error),
    }
}

pub(crate) fn attach(error: AttachError) -> Problem {
    let hint = error.hint();
    match error {
        AttachError::Find(error) => find(error),
        AttachError::Thread(error) => thread(error),
        AttachError::Store(error) => store(error),
        AttachError::None(_) | AttachError::NoSuch(_) | AttachError::Unknown { .. } => {
            hinted(told(Failed, "thread-not-found", &error), hint)
        }
    }
}

pub(crate) fn run(error: RunError) -> Problem {
    let hint = error.hint();
    match error {
        RunError::UnknownAgent(error) => agent(error),
        RunError::Credential(error) => credential(error),
        RunError::Find(error) => find(error),
        RunError::Create(error) => create(error),
        RunError::Start(error) => start(error),
        RunError::Setup(error) => set_up(error),
        RunError::Attachment(error) => attachment(error),
        RunError::Choose(error) => act(error),
        RunError::Prompt(error) => prompt(error),
        RunError::Thread(error) => thread(error),
        RunError::Store(error) => store(error),
        RunError::Pack(error) => pack(error),
        RunError::NoCredential { .. }
        | RunError::NoneForBox { .. }
        | RunError::CredentialLost { .. } => hinted(told(Failed, "no-credential", &error), hint),
        RunError::Repo { .. } => hinted(told(Failed, "repository-not-cloned", &error), hint),
        RunError::Home { .. } => hinted(told(Engine, "home-not-written", &error), hint),
    }
}

#[cfg(test)]
mod tests;
