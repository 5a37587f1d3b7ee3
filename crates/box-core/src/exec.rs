//! Runs a command in a box, its streams straight to whoever asked.

use crate::boxes::{self, BoxRecord, FindError};
use crate::caller::Caller;
use crate::credentials;
use crate::host::Host;
use crate::store::StoreError;
use crate::watch;
use box_api::control::{BoxState, Exec};
use box_api::{BoxId, BoxName};
use box_runtime::{ExecSpec, Execution, RuntimeError};

/// Why a command was not run.
#[derive(Debug, thiserror::Error)]
pub enum ExecError {
    #[error("there is no command to run")]
    NoCommand,
    #[error(transparent)]
    Find(#[from] FindError),
    #[error("box `{name}` is {}", boxes::state_word(*state))]
    NotRunning { name: BoxName, state: BoxState },
    #[error("could not run `{program}` in box `{name}`")]
    Engine {
        name: BoxName,
        program: String,
        #[source]
        source: RuntimeError,
    },
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// A command that runs, and where.
#[derive(Debug)]
pub struct Started {
    pub box_id: BoxId,
    pub execution: Execution,
}

/// Starts the command with the box's placeholders in its environment.
///
/// # Errors
/// [`ExecError`]
pub async fn exec(host: &Host, caller: &Caller, asked: Exec) -> Result<Started, ExecError> {
    let Some(program) = asked.command.first().cloned() else {
        return Err(ExecError::NoCommand);
    };
    let record = boxes::find(host, caller, &asked.name).await?;
    if record.state != BoxState::Running {
        return Err(ExecError::NotRunning {
            name: record.name,
            state: record.state,
        });
    }
    let mut env = credentials::environment_for_process(host, &record).await?;
    env.extend(asked.env);
    let spec = ExecSpec {
        command: asked.command,
        cwd: asked.cwd,
        env,
        terminal: asked.terminal,
    };
    let failed = |source| failed(&record, program, source);
    let awake = match watch::awake(host, &record).await {
        Ok(awake) => awake,
        Err(source) => return Err(failed(source)),
    };
    let execution = awake.exec(&record.id, spec).await.map_err(failed)?;
    Ok(Started {
        box_id: record.id,
        execution: awake.with(execution),
    })
}

fn failed(record: &BoxRecord, program: String, source: RuntimeError) -> ExecError {
    match source {
        RuntimeError::NotRunning(_) | RuntimeError::NotFound(_) => ExecError::NotRunning {
            name: record.name.clone(),
            state: BoxState::Stopped,
        },
        source @ (RuntimeError::Exists(_)
        | RuntimeError::Refused { .. }
        | RuntimeError::Engine { .. }) => ExecError::Engine {
            name: record.name.clone(),
            program,
            source,
        },
    }
}
