//! What an engine may be able to do besides running boxes. Each is a value of
//! [`Runtime`](crate::Runtime), absent where the engine cannot.

use crate::archive::{ImageInArchive, LeftOut};
use crate::{BoxSpec, Progress, RuntimeError};
use async_trait::async_trait;
use box_api::control::{Limits, Profile};
use box_api::snapshot::{CopyMethod, Label, SnapshotInfo, SnapshotKind};
use box_api::{BoxId, BoxName};
use serde::{Deserialize, Serialize};
use std::fmt::Debug;
use std::os::fd::OwnedFd;
use std::time::Duration;

/// A snapshot to be taken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SnapshotSpec {
    pub label: Label,
    pub kind: SnapshotKind,
    pub at_ms: i64,
}

/// What a clone is made of: a box as it is now, or one of its snapshots.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CloneSource {
    pub id: BoxId,
    /// First host id of the source's range; what a writable root holds on disk is in it.
    pub id_offset: u32,
    /// Absent: the box as it is, and its snapshots come along (B16).
    pub label: Option<Label>,
}

/// Named states of a box's files. Each verb is whole or has not happened, a crash included: what is
/// half done lies in the engine's `tmp/` and goes at the next start.
#[async_trait]
pub trait Snapshots: Debug + Send + Sync {
    /// How copies are made here, as probed when the engine was opened.
    fn method(&self) -> CopyMethod;
    /// Copies the files as they are. A running box is frozen by the caller first; the files of a
    /// box that is not frozen are crash-consistent at best.
    ///
    /// # Errors
    /// [`RuntimeError::Refused`] when the label is taken.
    async fn take(
        &self,
        id: &BoxId,
        spec: &SnapshotSpec,
        progress: &dyn Progress,
    ) -> Result<SnapshotInfo, RuntimeError>;
    /// Oldest first.
    async fn list(&self, id: &BoxId) -> Result<Vec<SnapshotInfo>, RuntimeError>;
    /// Replaces the box's files by the snapshot's, in one step. The snapshot stays.
    ///
    /// # Errors
    /// [`RuntimeError::Refused`] when the box runs or has no such snapshot.
    async fn restore(
        &self,
        id: &BoxId,
        label: &Label,
        progress: &dyn Progress,
    ) -> Result<(), RuntimeError>;
    /// # Errors
    /// [`RuntimeError::Refused`] when there is no such snapshot.
    async fn discard(&self, id: &BoxId, label: &Label) -> Result<(), RuntimeError>;
    /// Makes box `spec.id` out of another's files; its machine-id is its own (B11).
    ///
    /// # Errors
    /// [`RuntimeError::Exists`] as `create`; [`RuntimeError::Refused`] when there is no such
    /// snapshot.
    async fn clone_from(
        &self,
        source: &CloneSource,
        spec: &BoxSpec,
        progress: &dyn Progress,
    ) -> Result<(), RuntimeError>;
}

/// What an archive says of the box in it. Fields are only ever added.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Manifest {
    /// Version of the archive's layout.
    pub format: u32,
    pub id: BoxId,
    pub name: BoxName,
    pub exported_at_ms: i64,
    pub runtime: String,
    pub image: String,
    pub image_digest: String,
    /// Whether the image's whole root is in the archive.
    #[serde(default)]
    pub with_image: bool,
    /// The image's own variables.
    #[serde(default)]
    pub image_env: Vec<(String, String)>,
    pub snapshots: Vec<SnapshotInfo>,
    /// What the host adds (profile, limits, settings, origin, fake addresses), as it wrote it.
    pub host: serde_json::Value,
}

/// What of a box leaves besides its files as they are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Luggage {
    pub snapshots: bool,
    pub image: bool,
}

/// What is known of a box before its archive is read whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Terms {
    pub profile: Profile,
    /// Most bytes of each of its states: its disk limit, and a little for a box that is full.
    pub state_bytes_max: u64,
    /// Whether the image that comes along is the one the box is to stand on.
    pub image: ImageInArchive,
}

/// Boxes as portable archives; [`crate::archive`] is their layout.
#[async_trait]
pub trait Transfer: Debug + Send + Sync {
    /// Takes hold of a box's files. A running box is frozen by the caller until this is done; its
    /// files are copied. Where copies are cheap those of a stopped one are too; else they are held
    /// as they are, and no other verb works on the box until the departure is over.
    async fn depart(
        &self,
        spec: &BoxSpec,
        luggage: Luggage,
        progress: &dyn Progress,
    ) -> Result<Box<dyn Departure>, RuntimeError>;
    /// Reads an archive as far as its manifest.
    ///
    /// # Errors
    /// [`RuntimeError::Refused`] when it is no archive, or too new.
    async fn arrive(&self, source: OwnedFd) -> Result<Box<dyn Arrival>, RuntimeError>;
}

/// A box about to leave. Dropping it lets go of its files.
#[async_trait]
pub trait Departure: Debug + Send {
    /// The snapshots that leave with it, oldest first.
    fn snapshots(&self) -> &[SnapshotInfo];
    /// Whether they are the box's own files: no other verb works on it until this is over.
    fn holds_the_box(&self) -> bool;
    /// Writes the archive to its end. What could not travel is told. The engine completes the
    /// manifest: format, engine, snapshots, image.
    ///
    /// # Errors
    /// [`RuntimeError::Refused`] when whoever reads has gone, or a snapshot was removed meanwhile.
    async fn send(
        self: Box<Self>,
        manifest: Manifest,
        sink: OwnedFd,
        progress: &dyn Progress,
    ) -> Result<LeftOut, RuntimeError>;
}

/// An archive of which only the manifest was read.
#[async_trait]
pub trait Arrival: Debug + Send {
    fn manifest(&self) -> &Manifest;
    /// Reads to the end and checks all of it. Nothing but the engine's `tmp/` is touched.
    ///
    /// # Errors
    /// [`RuntimeError::Refused`] for an archive that is broken, too large or hostile.
    async fn receive(
        self: Box<Self>,
        terms: Terms,
        progress: &dyn Progress,
    ) -> Result<Box<dyn Arrived>, RuntimeError>;
}

/// An archive that was read whole, checked, and waits in the engine's `tmp/` for its box. Dropping
/// it removes it, which blocks.
#[async_trait]
pub trait Arrived: Debug + Send {
    /// Digest of the image that came along, of its content: what an archive calls it is not
    /// believed.
    fn image(&self) -> Option<&str>;
    /// Makes box `spec.id` of it, and its image if that is the one of `spec`; the machine-id is the
    /// box's own (B28).
    ///
    /// # Errors
    /// [`RuntimeError::Exists`] as `create`.
    async fn settle(self: Box<Self>, spec: &BoxSpec) -> Result<(), RuntimeError>;
}

/// Stops every process of a box for a moment, or for long.
#[async_trait]
pub trait Freezer: Debug + Send + Sync {
    /// Returns once nothing of the box runs.
    async fn freeze(&self, id: &BoxId) -> Result<(), RuntimeError>;
    async fn thaw(&self, id: &BoxId) -> Result<(), RuntimeError>;
}

/// What a box uses now.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Usage {
    /// CPU time since the box started.
    pub cpu_us: u64,
    pub memory_bytes: u64,
    pub processes: u32,
    pub frozen: bool,
    /// Processes killed for want of memory since the box started.
    pub out_of_memory: u64,
    /// Times a process could not be started for the limit, since the box started.
    pub out_of_processes: u64,
}

/// Space on disk.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DiskUsage {
    pub workspace_bytes: u64,
    pub home_bytes: u64,
    /// Changes to the root.
    pub root_bytes: u64,
    /// Snapshots, shared content counted in full.
    pub snapshots_bytes: u64,
}

/// What an engine saw of the end of a box that nobody stopped.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Ended {
    /// As in [`Usage`], at its end.
    pub out_of_memory: u64,
    /// As in [`Usage`], at its end.
    pub out_of_processes: u64,
    /// Its first process may have been killed, rather than have ended by itself.
    pub killed: bool,
}

/// One of the limits, named as `box set` names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum LimitName {
    Cpu,
    Memory,
    Pids,
    Disk,
    OpenFiles,
    Tmp,
}

/// Limits of a running box, and what it uses of them.
#[async_trait]
pub trait Limiter: Debug + Send + Sync {
    /// Which limits this engine changes while a box runs; the others hold from its next start on.
    fn live(&self) -> &'static [LimitName];
    /// Changes what is [`Limiter::live`] of the limits of a running box.
    ///
    /// # Errors
    /// [`RuntimeError::NotRunning`]; [`RuntimeError::Refused`] when the box uses more than it would
    /// have, and nothing is changed then.
    async fn set(&self, id: &BoxId, limits: &Limits) -> Result<(), RuntimeError>;
    /// # Errors
    /// [`RuntimeError::NotRunning`]
    async fn usage(&self, id: &BoxId) -> Result<Usage, RuntimeError>;
    /// How the last run of a box ended, as long as the engine knows. Asked for before the box is
    /// started again.
    async fn ended(&self, id: &BoxId) -> Option<Ended>;
}

/// How much disk a box uses, measured.
#[async_trait]
pub trait Disk: Debug + Send + Sync {
    async fn disk_usage(&self, id: &BoxId) -> Result<DiskUsage, RuntimeError>;
    /// So many bytes of the machine's disk are kept free of boxes from now on, instead of what the
    /// engine thinks right; 0 takes that back.
    fn keep_free(&self, bytes: u64);
    /// What befalls boxes for their use of the disk: told once each time it changes.
    async fn next_event(&self) -> DiskEvent;
}

/// A box passed its disk limit, or is below it again; or the machine's disk got short while it wrote.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DiskEvent {
    pub id: BoxId,
    pub used_bytes: u64,
    pub limit_bytes: u64,
    pub full: Fullness,
    pub short: DiskShort,
}

/// What there is too little of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DiskShort {
    /// The box's own limit.
    Limit,
    /// Space on the machine, a part of which is kept free of boxes.
    Machine,
}

/// Which side of its limit a box is on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fullness {
    /// It was frozen, or writes fail. Thawed it may be tidied up; frozen again when it grows.
    Full,
    Room,
}

/// Shortest time between two measurements of one box.
pub const DISK_MEASURED_EVERY: Duration = Duration::from_secs(1);
