//! `run`: agent → account → pack → box → repository → home → thread → prompt.

mod home;
mod open;
mod recorded;
mod repo;

pub use open::open;
pub use recorded::{TakeInError, take_in};
pub use repo::RepoError;

use super::acts::ActError;
use super::mail::{PromptError, ThreadError, ThreadHandle};
use super::saved::{self, NewThread};
use super::state::{Asks, Settings, ThreadState};
use crate::agents::{self, AgentProfile, UnknownAgent};
use crate::attachments::{self, AttachmentError};
use crate::boxes::{self, BoxRecord, FindError};
use crate::caller::Caller;
use crate::credentials::{self, CredentialError, Presence};
use crate::host::Host;
use crate::inside::InsideError;
use crate::lifecycle::{self, CreateError, SetupError, StartError};
use crate::store::{Durability, StoreError};
use box_api::control::{Accounts, NewBox, Run};
use box_api::{BoxId, BoxName, ThreadId};
use box_runtime::Progress;
use repo::RepoUrl;
use std::sync::Arc;
use tokio::sync::mpsc;

/// Characters after the agent's name in the made-up name of a box, of 32 each.
const NAME_SUFFIX_CHARS: usize = 4;

/// A thread that runs.
#[derive(Debug)]
pub struct Running {
    pub record: BoxRecord,
    pub handle: ThreadHandle,
}

/// Why an agent was not set to work.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    #[error(transparent)]
    UnknownAgent(#[from] UnknownAgent),
    #[error("there is no credential for `{agent}`")]
    NoCredential { agent: String, kind: String },
    #[error("box `{name}` may use no credential, and `{agent}` needs one")]
    NoneForBox { name: BoxName, agent: String },
    #[error("the credential for `{agent}` is gone from memory")]
    CredentialLost { agent: String, kind: String },
    #[error(transparent)]
    Credential(#[from] CredentialError),
    #[error(transparent)]
    Pack(#[from] agents::InstallError),
    #[error(transparent)]
    Find(#[from] FindError),
    #[error(transparent)]
    Create(#[from] CreateError),
    #[error(transparent)]
    Start(#[from] StartError),
    #[error(transparent)]
    Setup(#[from] SetupError),
    #[error("could not clone `{url}`")]
    Repo {
        url: String,
        #[source]
        source: RepoError,
    },
    #[error("could not write `{path}` in the home of box `{name}`")]
    Home {
        name: BoxName,
        path: String,
        #[source]
        source: InsideError,
    },
    #[error(transparent)]
    Attachment(#[from] AttachmentError),
    #[error(transparent)]
    Choose(#[from] ActError),
    #[error(transparent)]
    Prompt(#[from] PromptError),
    #[error(transparent)]
    Thread(#[from] ThreadError),
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl RunError {
    /// What the person can do now.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::UnknownAgent(unknown) => Some(unknown.hint()),
            Self::NoCredential { kind, .. } => Some(format!(
                "add one with `box credential add {kind}`, or see it work without: `box run demo \"hello\"`"
            )),
            Self::NoneForBox { name, .. } => Some(format!(
                "it was imported; `box set {name} credential=default` lets it use yours"
            )),
            Self::CredentialLost { kind, .. } => Some(format!(
                "`box credential list` says why; `box credential add {kind}` gives it anew"
            )),
            Self::Repo { source, .. } => source.hint(),
            Self::Pack(error) => error.hint().map(str::to_owned),
            Self::Credential(_)
            | Self::Find(_)
            | Self::Create(_)
            | Self::Start(_)
            | Self::Setup(_)
            | Self::Home { .. }
            | Self::Attachment(_)
            | Self::Choose(_)
            | Self::Prompt(_)
            | Self::Thread(_)
            | Self::Store(_) => None,
        }
    }
}

/// Sets an agent to work in a box, a new one unless `asked.name` is one of the caller's. When this
/// answers, the prompt is on disk and the agent on its way.
///
/// # Errors
/// [`RunError`]; a box made for this run is removed again if its agent could not begin.
pub async fn run(
    host: &Arc<Host>,
    caller: &Caller,
    asked: Run,
    progress: Arc<dyn Progress>,
) -> Result<Running, RunError> {
    run_with(host, caller, (asked, Vec::new()), progress).await
}

/// As [`run`], with the content of `asked.attachments`, in their order.
///
/// # Errors
/// As [`run`].
pub async fn run_with(
    host: &Arc<Host>,
    caller: &Caller,
    (asked, files): (Run, Vec<Vec<u8>>),
    progress: Arc<dyn Progress>,
) -> Result<Running, RunError> {
    for file in &asked.attachments {
        attachments::check(&file.file, file.bytes)?;
    }
    let profile = agents::find(&asked.agent)?;
    let repo = asked.repo.as_deref().map(parse_repo).transpose()?;
    check_prompt(profile, &asked.prompt)?;
    let wanted = wanted(host, caller, &asked).await?;
    check_credential(host, caller, profile, &wanted).await?;
    agents::ensure(profile, &host.paths.data, &*progress).await?;

    let (record, made) = open_box(host, caller, &asked, &progress).await?;
    match begin(host, &record, profile, (&asked, repo, files), &*progress).await {
        Ok(handle) => Ok(Running { record, handle }),
        Err(error) => {
            if made == Made::Now {
                take_back(host, &record).await;
            }
            Err(error)
        }
    }
}

/// Whether a box was made for this run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Made {
    Now,
    Before,
}

fn parse_repo(url: &str) -> Result<RepoUrl, RunError> {
    RepoUrl::parse(url).map_err(|source| RunError::Repo {
        url: url.to_owned(),
        source,
    })
}

/// Early, so that nobody waits for a pack in vain; the thread checks again.
fn check_prompt(profile: &AgentProfile, prompt: &str) -> Result<(), PromptError> {
    if prompt.trim().is_empty() {
        return Err(PromptError::Empty);
    }
    if !crate::acp::send::prompt_fits(prompt, profile.quirks.input_line_bytes_max) {
        return Err(PromptError::TooLong {
            bytes: prompt.len(),
            agent: profile.name.clone(),
        });
    }
    Ok(())
}

/// What the account of an agent is looked for in: a box that is there, or a new one.
#[derive(Debug)]
struct Wanted {
    there: Option<BoxId>,
    accounts: Accounts,
}

impl Wanted {
    fn of(record: &BoxRecord) -> Self {
        Self {
            there: Some(record.id),
            accounts: record.settings.accounts.clone(),
        }
    }
}

async fn wanted(host: &Host, caller: &Caller, asked: &Run) -> Result<Wanted, RunError> {
    let new = || Wanted {
        there: None,
        accounts: asked.settings.accounts.clone(),
    };
    let Some(name) = &asked.name else {
        return Ok(new());
    };
    match boxes::find(host, caller, name).await {
        Ok(record) => Ok(Wanted::of(&record)),
        Err(FindError::Unknown { .. }) => Ok(new()),
        Err(error) => Err(error.into()),
    }
}

async fn check_credential(
    host: &Host,
    caller: &Caller,
    profile: &AgentProfile,
    wanted: &Wanted,
) -> Result<(), RunError> {
    let Some(credential) = &profile.credential else {
        return Ok(());
    };
    // Said of the box, once it is found.
    if wanted.accounts == Accounts::None {
        return Ok(());
    }
    let (agent, kind) = (profile.name.clone(), credential.kind.clone());
    let presence = credentials::presence(host, caller.owner, &kind, &wanted.accounts);
    match presence.await? {
        Presence::Present => Ok(()),
        // Somebody logged in to it in there.
        Presence::Absent if credentials::logins::has(host, wanted.there, &kind).await? => Ok(()),
        Presence::Absent => Err(RunError::NoCredential { agent, kind }),
        Presence::Lost => Err(RunError::CredentialLost { agent, kind }),
    }
}

/// A box that may use no credential is told so before it is started for nothing.
fn check_own_accounts(record: &BoxRecord, agent: &str) -> Result<(), RunError> {
    let needs = agents::find(agent)?.credential.is_some();
    if needs && record.settings.accounts == Accounts::None {
        return Err(RunError::NoneForBox {
            name: record.name.clone(),
            agent: agent.to_owned(),
        });
    }
    Ok(())
}

async fn open_box(
    host: &Arc<Host>,
    caller: &Caller,
    asked: &Run,
    progress: &Arc<dyn Progress>,
) -> Result<(BoxRecord, Made), RunError> {
    if let Some(name) = &asked.name {
        match boxes::find(host, caller, name).await {
            Ok(record) => {
                check_own_accounts(&record, &asked.agent)?;
                return Ok((lifecycle::start(host, record.id).await?, Made::Before));
            }
            Err(FindError::Unknown { .. }) => {}
            Err(error) => return Err(error.into()),
        }
    }
    let name = asked
        .name
        .clone()
        .unwrap_or_else(|| made_up_name(host, &asked.agent));
    progress.say(&format!("making box `{name}`"));
    let new = NewBox {
        name,
        title: None,
        image: asked.image.clone(),
        profile: asked.profile,
        net: asked.net,
        limits: asked.limits,
        allow: Vec::new(),
        start: true,
        settings: asked.settings.clone(),
        setup: None,
        marks: box_api::control::Marks::default(),
    };
    let record = lifecycle::create(host, caller, new, Arc::clone(progress)).await?;
    // What an image's own set-up prints is for whoever makes a box by itself.
    let (told, _) = mpsc::channel(1);
    let setup = lifecycle::setup_of(&record, None);
    let marks = box_api::control::Marks::default();
    lifecycle::set_up(host, &record, (setup, marks), Arc::clone(progress), told).await?;
    Ok((record, Made::Now))
}

/// The agent's name and a few characters that make it one of a kind.
fn made_up_name(host: &Host, agent: &str) -> BoxName {
    let id = host.random.box_id();
    let suffix = id.as_str().get(..NAME_SUFFIX_CHARS).unwrap_or_default();
    #[expect(
        clippy::expect_used,
        reason = "agents' names and ids are plain, a test parses each"
    )]
    BoxName::parse(&format!("{agent}-{suffix}")).expect("an agent's name begins a box's name")
}

async fn begin(
    host: &Arc<Host>,
    record: &BoxRecord,
    profile: &AgentProfile,
    (asked, repo, files): (&Run, Option<RepoUrl>, Vec<Vec<u8>>),
    progress: &dyn Progress,
) -> Result<ThreadHandle, RunError> {
    if let Some(repo) = repo {
        progress.say(&format!("cloning {repo}"));
        repo::clone(host, record, &repo)
            .await
            .map_err(|source| RunError::Repo {
                url: repo.to_string(),
                source,
            })?;
    }
    home::place(host, record, profile).await?;
    let asks = if asked.allow_all {
        Asks::Nobody
    } else {
        Asks::Person
    };
    let handle = open_thread(host, record, profile, asks).await?;
    if !asked.chosen.is_empty() {
        handle.set_options(asked.chosen.clone()).await?;
    }
    let mut attached = Vec::new();
    for (file, content) in asked.attachments.iter().zip(files) {
        attached.push(attachments::place(host, record, (&file.file, content)).await?);
    }
    let prompt = attachments::envelope(&attached, &asked.prompt);
    handle.prompt(prompt).await?;
    Ok(handle)
}

/// A new thread of a box, before its first prompt.
async fn open_thread(
    host: &Arc<Host>,
    record: &BoxRecord,
    profile: &AgentProfile,
    asks: Asks,
) -> Result<ThreadHandle, RunError> {
    let thread = ThreadId::from_random(host.random.bytes());
    let new = NewThread {
        owner: record.owner,
        agent: profile.name.clone(),
        state: ThreadState::new(Settings::new(profile, (record.id, thread), asks)),
        at_ms: host.now_ms(),
    };
    host.store
        .write(Durability::Prompt, move |tables| {
            saved::insert(tables, &new)
        })
        .await?;
    Ok(host.threads.handle(host, thread).await?)
}

/// Removes the box again: nobody has been told of it, and its made-up name means nothing.
async fn take_back(host: &Arc<Host>, record: &BoxRecord) {
    if let Err(error) = lifecycle::remove(host, record.id).await {
        tracing::warn!(id = %record.id, error = boxes::reason(&error), "a box of no use is left");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::CountingRandom;
    use crate::random::Random;

    #[test]
    fn every_agent_can_name_a_box() {
        let random: &dyn Random = &CountingRandom::default();
        for profile in agents::profiles() {
            let name = format!("{}-{}", profile.name, &random.box_id().as_str()[..4]);
            assert!(BoxName::parse(&name).is_ok(), "{name}");
        }
    }
}
