//! `set`: checked whole → engine, where the box runs → row.

use super::claim::{Held, Still, hold_still};
use super::create::too_small;
use crate::boxes::{self, BoxRecord, rows};
use crate::budget;
use crate::credentials;
use crate::github;
use crate::host::Host;
use crate::network;
use crate::store::{Durability, StoreError};
use box_api::control::{BoxSettings, BoxState, CHANGES_MAX, Change, Limits, Profile};
use box_api::egress::Logins;
use box_api::network::NetSetName;
use box_api::{BoxId, BoxName};
use box_runtime::{LimitName, Runtime, RuntimeError, fault};
use std::sync::Arc;

const FREEZE_AFTER: &str = "freeze-after";
/// Shortest deadline and shortest time before a freeze: about as often as boxes are looked at.
const SETTING_MS_MIN: u64 = 1000;
/// Longer times are a slip of the finger, and not all of them could be added to a date.
const SETTING_MS_MAX: u64 = 10 * 366 * 24 * 3600 * 1000;

/// Why a setting cannot be what was asked.
#[derive(Debug, thiserror::Error)]
pub enum SettingError {
    #[error("`{setting}` is a time from one second to ten years")]
    Time { setting: &'static str },
    #[error("boxes cannot be frozen on this machine")]
    NoFreezer,
    #[error("only a box of profile `root` can hold containers")]
    NestedLocked,
    #[error("a budget in money needs prices, and the settings have none")]
    NoPrices,
}

/// Why a box was not changed.
#[derive(Debug, thiserror::Error)]
pub enum SetError {
    #[error("nothing was said to change")]
    Nothing,
    #[error("a box is changed in {CHANGES_MAX} ways at once at most")]
    TooMany,
    #[error("`{0}` was said twice")]
    Twice(&'static str),
    #[error("a box cannot live with less than {0}")]
    TooSmall(&'static str),
    #[error("there is no credential `{0}`")]
    NoCredential(String),
    #[error(transparent)]
    Setting(#[from] SettingError),
    #[error("could not change the limits of box `{name}`")]
    Engine {
        name: BoxName,
        #[source]
        source: RuntimeError,
    },
    #[error("box `{name}` is {}", boxes::state_word(*state))]
    Busy { name: BoxName, state: BoxState },
    #[error("the box is gone")]
    Gone,
    #[error("the settings have no set of rules `{0}`")]
    NoNetSet(NetSetName),
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("the host is ending")]
    Ending,
}

/// What came of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Set {
    pub record: BoxRecord,
    /// Names of what holds from the next start on; the rest holds now.
    pub later: Vec<&'static str>,
}

/// Changes a box: all of it, or nothing.
///
/// # Errors
/// [`SetError`]
pub async fn set(host: &Arc<Host>, id: BoxId, changes: Vec<Change>) -> Result<Set, SetError> {
    let host = Arc::clone(host);
    let recipe = tokio::spawn(async move { recipe(&host, id, &changes).await });
    recipe.await.map_err(|_| SetError::Ending)?
}

async fn recipe(host: &Host, id: BoxId, changes: &[Change]) -> Result<Set, SetError> {
    check_list(changes)?;
    // A box may end by itself at any moment: then its row is changed once more, as one that stands.
    loop {
        let (held, before) = hold(host, id).await?;
        let mut record = before.clone();
        for change in changes {
            apply(&mut record, change);
        }
        if let Some(least) = too_small(&record.limits) {
            return Err(SetError::TooSmall(least));
        }
        let engine = |source| SetError::Engine {
            name: before.name.clone(),
            source,
        };
        let runtime = host.runtime_of(&before).map_err(engine)?;
        check_settings(&**runtime, &record.settings)?;
        if record.settings.nested && record.profile == Profile::Locked {
            return Err(SettingError::NestedLocked.into());
        }
        if record.settings.budget != before.settings.budget {
            budget::check(host, &record.settings)?;
        }
        if record.settings.net_set != before.settings.net_set {
            check_net_set(host, &record.settings)?;
        }
        if record.settings.accounts != before.settings.accounts {
            let missing = credentials::missing(host, record.owner, &record.settings.accounts);
            missing
                .await?
                .map_or(Ok(()), |name| Err(SetError::NoCredential(name)))?;
        }
        if before.state == BoxState::Running && before.limits != record.limits {
            set_live(&**runtime, &record).await.map_err(engine)?;
        }
        fault::point("set.live");
        let (row, seen, at_ms) = (record.clone(), before.state, host.now_ms());
        let written = host.store.write(Durability::Full, move |tables| {
            rows::change(tables, &row, seen, at_ms)
        });
        match written.await {
            Ok(true) => {
                host.changes.tell();
                if record.settings.accounts != before.settings.accounts {
                    credentials::adjust(host, &record).await?;
                }
                if record.settings.logins != Logins::Placeholder {
                    credentials::logins::forget(host, id).await?;
                }
                let is_for_egress = is_for_egress(&before.settings, &record.settings);
                // What box-egress is told is the row as it is by then, whoever changes it next.
                drop(held);
                if before.settings.budget != record.settings.budget {
                    host.live.spend(id);
                }
                if is_for_egress && record.state == BoxState::Running {
                    network::rules::tell(host, vec![id]).await;
                }
                let later = later(&**runtime, &before, &record);
                return Ok(Set { record, later });
            }
            Ok(false) => {}
            Err(error) => {
                // What is not on record must not hold either.
                put_back(&**runtime, &before).await;
                return Err(error.into());
            }
        }
    }
}

/// Whether box-egress is to be told of what changed.
fn is_for_egress(before: &BoxSettings, after: &BoxSettings) -> bool {
    before.logins != after.logins
        || before.accounts != after.accounts
        || before.github != after.github
        || before.net_set != after.net_set
        || network::differs(before, after)
}

async fn hold(host: &Host, id: BoxId) -> Result<(Held, BoxRecord), SetError> {
    let among = [BoxState::Running, BoxState::Stopped, BoxState::Failed];
    match hold_still(host, id, &among).await? {
        Still::Held(held, record) => Ok((held, record)),
        Still::Gone => Err(SetError::Gone),
        Still::Busy(record) => Err(SetError::Busy {
            name: record.name,
            state: record.state,
        }),
    }
}

fn check_list(changes: &[Change]) -> Result<(), SetError> {
    if changes.is_empty() {
        return Err(SetError::Nothing);
    }
    if changes.len() > CHANGES_MAX {
        return Err(SetError::TooMany);
    }
    let twice = |(at, change): (usize, &Change)| {
        let name = change.name();
        let again = changes[..at].iter().any(|before| before.name() == name);
        again.then_some(name)
    };
    match changes.iter().enumerate().find_map(twice) {
        Some(name) => Err(SetError::Twice(name)),
        None => Ok(()),
    }
}

fn apply(record: &mut BoxRecord, change: &Change) {
    let (limits, settings) = (&mut record.limits, &mut record.settings);
    match change {
        Change::CpuMilli(milli) => limits.cpu_milli = *milli,
        Change::MemoryBytes(bytes) => limits.memory_bytes = *bytes,
        Change::Pids(count) => limits.pids = *count,
        Change::DiskBytes(bytes) => limits.disk_bytes = *bytes,
        Change::OpenFiles(count) => limits.open_files = *count,
        Change::TmpBytes(bytes) => limits.tmp_bytes = *bytes,
        Change::DeadlineMs(ms) => settings.deadline_ms = *ms,
        Change::FreezeAfterMs(ms) => settings.freeze_after_ms = *ms,
        Change::Nested(nested) => settings.nested = *nested,
        Change::Accounts(accounts) => settings.accounts.clone_from(accounts),
        Change::Logins(logins) => settings.logins = *logins,
        Change::Github(_)
        | Change::GithubRefs(_)
        | Change::GithubForce(_)
        | Change::GithubTags(_)
        | Change::GithubWrites(_) => github::apply(&mut settings.github, change),
        Change::Undo(undo) => settings.undo = *undo,
        Change::NetBudgetBytes(bytes) => settings.net_budget_bytes = *bytes,
        Change::NetConnections(count) => settings.net_connections = *count,
        Change::OnSignal(what) => settings.on_signal = *what,
        Change::Priority(priority) => settings.priority = *priority,
        Change::Budget(budget) => settings.budget.clone_from(budget),
        Change::NetSet(name) => settings.net_set.clone_from(name),
        Change::Title(title) => record.title.clone_from(title),
    }
}

/// # Errors
/// A set of rules the settings do not have.
fn check_net_set(host: &Host, settings: &BoxSettings) -> Result<(), SetError> {
    let sets = &host.current.now().net.sets.value;
    match &settings.net_set {
        Some(name) if !sets.contains_key(name) => Err(SetError::NoNetSet(name.clone())),
        Some(_) | None => Ok(()),
    }
}

/// Whether a box of this engine can have these settings.
///
/// # Errors
/// [`SettingError`]
pub(super) fn check_settings(
    runtime: &dyn Runtime,
    settings: &BoxSettings,
) -> Result<(), SettingError> {
    let times = [
        ("deadline", settings.deadline_ms),
        (FREEZE_AFTER, settings.freeze_after_ms),
    ];
    for (setting, ms) in times {
        let never = setting == FREEZE_AFTER && ms == Some(0);
        if !never && ms.is_some_and(|ms| !(SETTING_MS_MIN..=SETTING_MS_MAX).contains(&ms)) {
            return Err(SettingError::Time { setting });
        }
    }
    if settings.freeze_after_ms.is_some_and(|ms| ms > 0) && runtime.freezer().is_none() {
        return Err(SettingError::NoFreezer);
    }
    Ok(())
}

async fn set_live(runtime: &dyn Runtime, record: &BoxRecord) -> Result<(), RuntimeError> {
    let Some(limiter) = runtime.limiter() else {
        return Ok(());
    };
    match limiter.set(&record.id, &record.limits).await {
        // It has ended by itself: they hold from its next start on.
        Err(RuntimeError::NotRunning(_) | RuntimeError::NotFound(_)) => Ok(()),
        result => result,
    }
}

async fn put_back(runtime: &dyn Runtime, before: &BoxRecord) {
    if before.state != BoxState::Running {
        return;
    }
    if let Err(error) = set_live(runtime, before).await {
        let why = boxes::reason(&error);
        tracing::error!(id = %before.id, why, "a box has limits that are not on record");
    }
}

/// Of what was changed, what a running box does not have yet.
fn later(runtime: &dyn Runtime, before: &BoxRecord, after: &BoxRecord) -> Vec<&'static str> {
    if before.state != BoxState::Running {
        return Vec::new();
    }
    let live = runtime.limiter().map_or(&[][..], |limiter| limiter.live());
    let mut names: Vec<&'static str> = differing(&before.limits, &after.limits)
        .into_iter()
        .filter(|(limit, _)| !live.contains(limit))
        .map(|(_, name)| name)
        .collect();
    if before.settings.nested != after.settings.nested {
        names.push("nested");
    }
    names
}

fn differing(before: &Limits, after: &Limits) -> Vec<(LimitName, &'static str)> {
    let all = [
        (before.cpu_milli == after.cpu_milli, LimitName::Cpu, "cpu"),
        (
            before.memory_bytes == after.memory_bytes,
            LimitName::Memory,
            "memory",
        ),
        (before.pids == after.pids, LimitName::Pids, "pids"),
        (
            before.disk_bytes == after.disk_bytes,
            LimitName::Disk,
            "disk",
        ),
        (
            before.open_files == after.open_files,
            LimitName::OpenFiles,
            "open-files",
        ),
        (before.tmp_bytes == after.tmp_bytes, LimitName::Tmp, "tmp"),
    ];
    let changed = all.into_iter().filter(|(same, ..)| !same);
    changed.map(|(_, limit, name)| (limit, name)).collect()
}
