//! Snapshots, the freezer and the disk of the engine that is not there: files are one text.

use super::{FakeRuntime, Hold, Machine, Step};
use async_trait::async_trait;
use box_api::BoxId;
use box_api::snapshot::{CopyMethod, Label, SnapshotInfo};
use box_runtime::{
    BoxSpec, CloneSource, Disk, DiskEvent, DiskUsage, Freezer, Progress, RuntimeError,
    SnapshotSpec, Snapshots,
};

impl FakeRuntime {
    /// Something in the box writes its files.
    pub(crate) async fn write(&self, id: &BoxId, files: &str) {
        let mut world = self.world.lock().await;
        let machine = world.machines.get_mut(id).unwrap();
        assert!(!machine.frozen, "a frozen box writes nothing");
        files.clone_into(&mut machine.files);
    }

    pub(crate) async fn files(&self, id: &BoxId) -> Option<String> {
        let world = self.world.lock().await;
        world.machines.get(id).map(|machine| machine.files.clone())
    }

    pub(crate) async fn is_frozen(&self, id: &BoxId) -> bool {
        let world = self.world.lock().await;
        world.machines.get(id).is_some_and(|machine| machine.frozen)
    }

    async fn of<T>(
        &self,
        id: &BoxId,
        work: impl FnOnce(&mut Machine) -> Result<T, RuntimeError>,
    ) -> Result<T, RuntimeError> {
        let mut world = self.world.lock().await;
        let machine = world.machines.get_mut(id);
        work(machine.ok_or(RuntimeError::NotFound(*id))?)
    }
}

fn refused(why: &str) -> RuntimeError {
    RuntimeError::Refused {
        why: why.to_owned(),
        hint: None,
    }
}

fn at(machine: &Machine, label: &Label) -> Result<usize, RuntimeError> {
    let mut all = machine.snapshots.iter();
    all.position(|(one, _)| one.label == *label)
        .ok_or_else(|| refused("there is no such snapshot"))
}

#[async_trait]
impl Snapshots for FakeRuntime {
    fn method(&self) -> CopyMethod {
        CopyMethod::Full
    }

    async fn take(
        &self,
        id: &BoxId,
        spec: &SnapshotSpec,
        _progress: &dyn Progress,
    ) -> Result<SnapshotInfo, RuntimeError> {
        self.step(Step::Take, Hold::Before).await?;
        let taken = self.of(id, |machine| {
            assert!(
                machine.frozen || !machine.running,
                "a box is copied while it runs"
            );
            if at(machine, &spec.label).is_ok() {
                return Err(refused("the label is taken"));
            }
            let info = SnapshotInfo {
                label: spec.label.clone(),
                kind: spec.kind,
                created_at_ms: spec.at_ms,
                bytes: machine.files.len() as u64,
            };
            let files = machine.files.clone();
            machine.snapshots.push((info.clone(), files));
            Ok(info)
        });
        let taken = taken.await?;
        self.step(Step::Take, Hold::After).await?;
        Ok(taken)
    }

    async fn list(&self, id: &BoxId) -> Result<Vec<SnapshotInfo>, RuntimeError> {
        self.of(id, |machine| {
            Ok(machine
                .snapshots
                .iter()
                .map(|(info, _)| info.clone())
                .collect())
        })
        .await
    }

    async fn restore(
        &self,
        id: &BoxId,
        label: &Label,
        _progress: &dyn Progress,
    ) -> Result<(), RuntimeError> {
        self.step(Step::Restore, Hold::Before).await?;
        let restored = self.of(id, |machine| {
            assert!(!machine.running, "a running box is restored");
            let found = at(machine, label)?;
            machine.files = machine.snapshots[found].1.clone();
            Ok(())
        });
        restored.await?;
        self.step(Step::Restore, Hold::After).await
    }

    async fn discard(&self, id: &BoxId, label: &Label) -> Result<(), RuntimeError> {
        self.of(id, |machine| {
            let found = at(machine, label)?;
            machine.snapshots.remove(found);
            Ok(())
        })
        .await
    }

    async fn clone_from(
        &self,
        source: &CloneSource,
        spec: &BoxSpec,
        _progress: &dyn Progress,
    ) -> Result<(), RuntimeError> {
        self.step(Step::Clone, Hold::Before).await?;
        let copied = self.of(&source.id, |machine| {
            assert_eq!(machine.spec.id_offset, source.id_offset);
            let Some(label) = &source.label else {
                assert!(
                    machine.frozen || !machine.running,
                    "a box is copied while it runs"
                );
                return Ok((machine.files.clone(), machine.snapshots.clone()));
            };
            let found = at(machine, label)?;
            Ok((machine.snapshots[found].1.clone(), Vec::new()))
        });
        let (files, snapshots) = copied.await?;
        {
            let mut world = self.world.lock().await;
            let mut machine = Machine::new(spec.clone());
            (machine.files, machine.snapshots) = (files, snapshots);
            let before = world.machines.insert(spec.id, machine);
            assert!(before.is_none(), "a clone takes the place of a box");
        }
        self.step(Step::Clone, Hold::After).await
    }
}

#[async_trait]
impl Freezer for FakeRuntime {
    async fn freeze(&self, id: &BoxId) -> Result<(), RuntimeError> {
        self.of(id, |machine| {
            if !machine.running {
                return Err(RuntimeError::NotRunning(*id));
            }
            machine.frozen = true;
            Ok(())
        })
        .await
    }

    async fn thaw(&self, id: &BoxId) -> Result<(), RuntimeError> {
        self.of(id, |machine| {
            machine.frozen = false;
            Ok(())
        })
        .await
    }
}

#[async_trait]
impl Disk for FakeRuntime {
    async fn disk_usage(&self, id: &BoxId) -> Result<DiskUsage, RuntimeError> {
        self.of(id, |machine| {
            Ok(DiskUsage {
                workspace_bytes: machine.files.len() as u64,
                ..DiskUsage::default()
            })
        })
        .await
    }

    fn keep_free(&self, _bytes: u64) {}

    async fn next_event(&self) -> DiskEvent {
        std::future::pending().await
    }
}
