//! Where a thread's agent runs: how to reach the box's guest, and what to start there.

use crate::agents;
use crate::boxes::{self, BoxRecord};
use crate::credentials;
use crate::host::Host;
use crate::lifecycle::{self, StartError};
use crate::logs;
use crate::restore_points::{self, TurnBegun};
use crate::store::StoreError;
use crate::watch;
use async_trait::async_trait;
use box_api::BoxId;
use box_api::guest::{Command, ProcessName, WORKSPACE};
use box_runtime::RuntimeError;
use std::fmt::Debug;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Weak};

/// Why an agent could not be started or reached.
#[derive(Debug, thiserror::Error)]
pub(super) enum MachineError {
    #[error("the box is gone")]
    NoBox,
    #[error("the host is ending")]
    Ending,
    #[error("the engine of the box keeps no processes")]
    NoProcesses,
    #[error(transparent)]
    UnknownAgent(#[from] agents::UnknownAgent),
    #[error(transparent)]
    Runtime(#[from] RuntimeError),
    #[error(transparent)]
    Start(#[from] StartError),
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// What a thread's driver needs of the world around it.
#[async_trait]
pub(super) trait Machine: Debug + Send + Sync {
    /// A fresh connection to the guest of the box.
    async fn connect(&self) -> Result<OwnedFd, MachineError>;
    /// The agent's command, with the placeholders of the box. A box that is stopped is started.
    async fn command(&self) -> Result<Command, MachineError>;
    /// Keeps the box as it is before a turn, where that costs next to nothing.
    async fn before_turn(&self, _begun: TurnBegun) {}
    /// Keeps what the agent wrote to its standard error.
    async fn log(&self, process: &ProcessName, text: Vec<u8>);
}

/// A box of the host.
#[derive(Debug)]
pub(super) struct BoxMachine {
    /// Weak, for the host owns the threads that own this.
    host: Weak<Host>,
    box_id: BoxId,
    agent: String,
}

impl BoxMachine {
    pub(super) fn new(host: &Arc<Host>, box_id: BoxId, agent: &str) -> Self {
        Self {
            host: Arc::downgrade(host),
            box_id,
            agent: agent.to_owned(),
        }
    }

    fn host(&self) -> Result<Arc<Host>, MachineError> {
        self.host.upgrade().ok_or(MachineError::Ending)
    }

    async fn record(&self, host: &Host) -> Result<BoxRecord, MachineError> {
        boxes::get(host, self.box_id)
            .await?
            .ok_or(MachineError::NoBox)
    }
}

#[async_trait]
impl Machine for BoxMachine {
    async fn connect(&self) -> Result<OwnedFd, MachineError> {
        let host = self.host()?;
        let record = self.record(&host).await?;
        let awake = watch::awake(&host, &record).await?;
        let processes = awake.processes().ok_or(MachineError::NoProcesses)?;
        Ok(processes.connect(&self.box_id).await?)
    }

    async fn command(&self) -> Result<Command, MachineError> {
        let host = self.host()?;
        let profile = agents::find(&self.agent)?;
        // A prompt for a box that is stopped starts it (decision D31).
        let record = lifecycle::start(&host, self.box_id).await?;
        let mut variables: Vec<(String, String)> = profile
            .env
            .iter()
            .map(|(name, value)| (name.clone(), value.clone()))
            .collect();
        let mut of_box = credentials::environment_for_process(&host, &record).await?;
        for (name, other) in &profile.same_as {
            let value = of_box.iter().find(|(its, _)| its == other);
            let Some(value) = value.map(|(_, value)| value.clone()) else {
                continue;
            };
            of_box.retain(|(its, _)| its != name);
            of_box.push((name.clone(), value));
        }
        variables.extend(of_box);
        let folder = WORKSPACE.to_owned();
        Ok(Command {
            arguments: profile.command.clone(),
            folder,
            variables,
        })
    }

    async fn before_turn(&self, begun: TurnBegun) {
        if let Ok(host) = self.host() {
            restore_points::before_turn(&host, self.box_id, begun).await;
        }
    }

    async fn log(&self, process: &ProcessName, text: Vec<u8>) {
        let Ok(host) = self.host() else { return };
        if let Err(error) = logs::append(&host, &self.box_id, process, text).await {
            tracing::warn!(id = %self.box_id, %process, %error, "a log could not be written");
        }
    }
}
