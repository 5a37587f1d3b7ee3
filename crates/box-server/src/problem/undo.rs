//! Failures of snapshots, clones, the trash and what stands beside them.

use super::{
    Failed, Refused, Usage, busy, create, find, gone, host_ends, start, stop, store, told,
    told_by_engine,
};
use box_api::{BoxName, Label, Problem};
use box_core::lifecycle::{
    CloneError, DiskError, RenameError, RestartError, RestoreError, ScriptError, SetupError,
    SnapshotError, UndeleteError, UnpushedError, WaitError,
};
use box_core::search::SearchError;

pub(crate) fn snapshot(error: SnapshotError) -> Problem {
    match error {
        SnapshotError::Unable(_) => told(Failed, "no-snapshots", &error),
        SnapshotError::Taken {
            ref name,
            ref label,
        } => told(Failed, "label-taken", &error).hinted(format!(
            "choose another label, or remove it with `box snapshot --remove {name} {label}`"
        )),
        SnapshotError::Unknown {
            ref name,
            ref known,
            ..
        } => told(Failed, "snapshot-not-found", &error).hinted(labels(name, known)),
        SnapshotError::Engine { ref source, .. } => told_by_engine("snapshot", &error, source),
        SnapshotError::Busy { .. } => busy(&error),
        SnapshotError::Gone => gone(),
        SnapshotError::Store(error) => store(error),
        SnapshotError::Ending => host_ends(),
    }
}

fn labels(name: &BoxName, known: &[Label]) -> String {
    let known: Vec<String> = known.iter().map(|label| format!("`{label}`")).collect();
    match known.as_slice() {
        [] => format!("it has none; `box snapshot {name}` takes one"),
        known => format!("it has {}", known.join(", ")),
    }
}

pub(crate) fn restore(error: RestoreError) -> Problem {
    match error {
        RestoreError::Snapshot(error) => snapshot(error),
        RestoreError::Start(error) => start(error),
    }
}

pub(crate) fn search(error: SearchError) -> Problem {
    match error {
        SearchError::NoWord => {
            told(Usage, "no-word", &error).hinted("`box search invoice total`, for example")
        }
        SearchError::TooLong => told(Usage, "question-too-long", &error),
        SearchError::Find(error) => find(error),
        SearchError::Store(error) => store(error),
    }
}

pub(crate) fn clone(error: CloneError) -> Problem {
    match error {
        CloneError::Find(error) => find(error),
        CloneError::Source(error) => snapshot(error),
        CloneError::Create(error) => create(error),
        CloneError::Store(error) => store(error),
        CloneError::Ending => host_ends(),
    }
}

pub(crate) fn rename(error: RenameError) -> Problem {
    match error {
        RenameError::NameTaken(_) => {
            told(Failed, "name-taken", &error).hinted("choose another name")
        }
        RenameError::Gone => gone(),
        RenameError::Store(error) => store(error),
    }
}

pub(crate) fn restart(error: RestartError) -> Problem {
    match error {
        RestartError::Stop(error) => stop(error),
        RestartError::Start(error) => start(error),
        RestartError::Ending => host_ends(),
    }
}

pub(crate) fn undelete(error: UndeleteError) -> Problem {
    match error {
        UndeleteError::Unknown(_) => {
            told(Failed, "not-in-trash", &error).hinted("`box list --trash` shows what is there")
        }
        UndeleteError::NameTaken(ref name) => told(Failed, "name-taken", &error).hinted(format!(
            "give it another one: `box undelete {name} --as <name>`"
        )),
        UndeleteError::Store(error) => store(error),
    }
}

pub(crate) fn unpushed(error: UnpushedError) -> Problem {
    match error {
        UnpushedError::Commits { ref name, .. } => told(Refused, "unpushed-commits", &error)
            .hinted(format!(
                "push them, or remove it with them: `box rm {name} --force`"
            )),
        UnpushedError::Look { ref name, .. } => told(Refused, "unpushed-unknown", &error).hinted(
            format!("`box rm {name} --force` removes it without looking"),
        ),
        UnpushedError::Busy { .. } => busy(&error),
        UnpushedError::Store(error) => store(error),
        UnpushedError::Ending => host_ends(),
    }
}

pub(crate) fn nothing_to_keep() -> Problem {
    Problem::new(
        Usage,
        "nothing-to-keep",
        "a box that is removed at once leaves no workspace",
    )
    .hinted("leave out `--now`: the rest of it goes after a while")
}

pub(crate) fn disk(error: DiskError) -> Problem {
    match error {
        DiskError::Unable(_) => told(Failed, "no-disk-usage", &error),
        DiskError::Engine { ref source, .. } => told_by_engine("disk-usage", &error, source),
    }
}

pub(crate) fn wait(error: WaitError) -> Problem {
    match error {
        WaitError::Gone => gone(),
        WaitError::Store(error) => store(error),
    }
}

pub(crate) fn script(error: ScriptError) -> Problem {
    told(Usage, "bad-setup", &error)
}

/// The box stays up, unmarked; both ways on are named, and the way back only if it is there (B20).
pub(crate) fn set_up(error: SetupError) -> Problem {
    let (name, pristine) = match &error {
        SetupError::Code { name, pristine, .. } | SetupError::Run { name, pristine, .. } => {
            (name.clone(), *pristine)
        }
        SetupError::Ending => return host_ends(),
    };
    let mut hint = format!(
        "the box is up: set it up again in `box shell {name}`, then mark it with `box snapshot {name} bootstrapped`"
    );
    if pristine {
        hint = format!("{hint}; `box restore {name} pristine` undoes all of it");
    }
    told(Failed, "setup-failed", &error).hinted(hint)
}
