//! Runs boxes: the trait every engine implements, and what a box is to an engine.
//!
//! Keyed by [`BoxId`] throughout; names, owners and titles stay in the host. An ability an engine
//! may lack is a value (`Option<&dyn …>`), not an error at call time.

mod abilities;
pub mod archive;
pub mod conformance;
pub mod erase;
pub mod fault;
pub mod guest;
pub mod unpack;

pub use abilities::{
    Arrival, Arrived, CloneSource, DISK_MEASURED_EVERY, Departure, Disk, DiskEvent, DiskShort,
    DiskUsage, Ended, Freezer, Fullness, LimitName, Limiter, Luggage, Manifest, SnapshotSpec,
    Snapshots, Terms, Transfer, Usage,
};

use async_trait::async_trait;
use box_api::BoxId;
use box_api::control::{ImageInfo, Limits, Profile, TerminalSize};
use std::fmt::Debug;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// What an engine needs to know to make a box.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BoxSpec {
    pub id: BoxId,
    /// Shown as the host name inside; the box's name.
    pub host_name: String,
    /// As resolved by [`Images::prepare`]; the engine finds the root by it.
    pub image_digest: String,
    pub profile: Profile,
    pub limits: Limits,
    /// First host id of the box's own range of 65,536, for engines that use one.
    pub id_offset: u32,
    /// Read-only trees mounted into the box.
    pub mounts: Vec<Mount>,
    /// Small files put into the box, read-only, over whatever the image has there.
    pub files: Vec<PlacedFile>,
    /// Environment every process of the box starts with.
    pub env: Vec<(String, String)>,
    /// Whether namespaces may be made inside (D7).
    pub nesting: Nesting,
}

/// Whether a box may hold boxes of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Nesting {
    Refused,
    Allowed,
}

/// A read-only tree of the host shown in the box, such as an agent pack.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mount {
    pub source: PathBuf,
    /// Absolute path inside the box.
    pub target: String,
}

/// A file whose content the host decides, such as the CA bundle.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlacedFile {
    /// A file of the host, in a folder no box can write to.
    pub source: PathBuf,
    /// Absolute path inside the box.
    pub target: String,
    pub placing: Placing,
}

/// How a file comes to its place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Placing {
    /// Over whatever the image has there. A box that has nothing there and cannot be given anything
    /// does not start.
    Always,
    /// Only over a file the image has; in a box that may write to its root its folder is enough.
    WhereThere,
    /// Certificates in PEM form, only where the image has a list of such. They lie over that; where
    /// the box may write to its root they are added to it, and what its user added stays.
    Trusted,
    /// As a copy that belongs to the box's user, where there is nothing of that name yet and the box
    /// may write. A box that has no room for it starts all the same.
    Copied,
}

/// What starting a box gave.
#[derive(Debug)]
pub struct Started {
    /// Process id of pid 1 of the box as the host sees it.
    pub pid: u32,
    /// The box's sockets, to be handed to box-egress; absent when the box ran already.
    pub sockets: Option<BoxSockets>,
}

/// The listening sockets of a box, opened inside its network namespace.
#[derive(Debug)]
pub struct BoxSockets {
    /// `198.18.0.1:53`, UDP.
    pub dns_udp: OwnedFd,
    /// `198.18.0.1:53`, TCP.
    pub dns_tcp: OwnedFd,
    /// `127.0.0.1:3128`, the HTTP proxy.
    pub proxy: OwnedFd,
    pub transparent: Transparent,
    /// Readable once the box is gone.
    pub pidfd: OwnedFd,
}

/// How connections to the range 198.18.0.0/15 are caught.
#[derive(Debug)]
pub enum Transparent {
    /// One `IP_TRANSPARENT` listener for every port; `getsockname` is the destination.
    AllPorts(OwnedFd),
    /// Listeners on `0.0.0.0:80` and `0.0.0.0:443`, where the kernel lacks TPROXY.
    Two { http: OwnedFd, https: OwnedFd },
}

/// What an engine sees of a box. The only truth `reconcile` goes by.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Observed {
    pub id: BoxId,
    pub running: bool,
    pub pid: Option<u32>,
}

/// A command to run in a box.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExecSpec {
    pub command: Vec<String>,
    /// Absent: the workspace.
    pub cwd: Option<String>,
    /// Added to the box's own environment.
    pub env: Vec<(String, String)>,
    pub terminal: Option<TerminalSize>,
}

/// A command that runs; its streams go straight to whoever asked.
#[derive(Debug)]
pub struct Execution {
    /// stdin, stdout, stderr; or one terminal.
    pub streams: Vec<OwnedFd>,
    pub process: Box<dyn RunningProcess>,
}

/// The far end of a command started with [`Runtime::exec`]. Dropping it kills the command.
#[async_trait]
pub trait RunningProcess: Debug + Send + Sync {
    async fn signal(&self, number: i32) -> Result<(), RuntimeError>;
    /// Its code, or 128+n when a signal ended it. 126 and 127 as a shell has them.
    async fn wait(&self) -> Result<i32, RuntimeError>;
}

/// Why an engine did not do what it was asked.
#[derive(Debug, thiserror::Error)]
pub enum RuntimeError {
    #[error("the engine has no box {0}")]
    NotFound(BoxId),
    #[error("the engine has a box {0} already")]
    Exists(BoxId),
    #[error("box {0} is not running")]
    NotRunning(BoxId),
    #[error("{why}")]
    Refused { why: String, hint: Option<String> },
    #[error("could not {action}")]
    Engine {
        action: String,
        #[source]
        source: Option<Box<dyn std::error::Error + Send + Sync>>,
    },
}

impl RuntimeError {
    /// A failure of the engine itself, with what it was doing.
    pub fn engine(
        action: impl Into<String>,
        source: impl Into<Box<dyn std::error::Error + Send + Sync>>,
    ) -> Self {
        Self::Engine {
            action: action.into(),
            source: Some(source.into()),
        }
    }
}

/// Tells a person how far a long step is.
pub trait Progress: Send + Sync {
    fn say(&self, text: &str);
    /// A line to be kept: a warning, or what was done besides.
    fn note(&self, text: &str) {
        self.say(text);
    }
}

/// Runs boxes on one kind of engine. Asking for what already holds succeeds, except `create`,
/// which answers [`RuntimeError::Exists`] so that the caller decides.
#[async_trait]
pub trait Runtime: Debug + Send + Sync {
    /// The engine's name as a person types it.
    fn name(&self) -> &'static str;
    /// How limits are held here: `cgroup v2`, `cgroup v1` or `best effort`.
    fn limits_held_by(&self) -> &'static str;

    async fn create(&self, spec: &BoxSpec) -> Result<(), RuntimeError>;
    /// `spec` is what the box was made with; mounts, files, environment and limits may have changed.
    async fn start(&self, spec: &BoxSpec) -> Result<Started, RuntimeError>;
    async fn stop(&self, id: &BoxId, grace: Duration) -> Result<(), RuntimeError>;
    async fn remove(&self, id: &BoxId) -> Result<(), RuntimeError>;
    async fn list(&self) -> Result<Vec<Observed>, RuntimeError>;
    async fn exec(&self, id: &BoxId, spec: ExecSpec) -> Result<Execution, RuntimeError>;

    fn images(&self) -> &dyn Images;
    /// Durable processes, held by box-guest; see [`guest`].
    fn processes(&self) -> Option<&dyn Processes>;
    fn sockets(&self) -> Option<&dyn Sockets> {
        None
    }
    fn snapshots(&self) -> Option<&dyn Snapshots> {
        None
    }
    fn transfer(&self) -> Option<&dyn Transfer> {
        None
    }
    fn freezer(&self) -> Option<&dyn Freezer> {
        None
    }
    fn limiter(&self) -> Option<&dyn Limiter> {
        None
    }
    fn disk(&self) -> Option<&dyn Disk> {
        None
    }
    fn pool(&self) -> Option<&dyn Pool> {
        None
    }
    /// The box's workspace as a host folder, where the engine has one.
    fn workspace(&self, _id: &BoxId) -> Option<PathBuf> {
        None
    }
}

/// The image a box starts from when a person names none, as [`Images::prepare`] takes it.
pub const DEFAULT_IMAGE: &str = "default";

/// Where boxes start from.
#[async_trait]
pub trait Images: Debug + Send + Sync {
    /// Makes an image ready and says which one it is. Ready already: returns at once.
    async fn prepare(
        &self,
        image: &str,
        progress: &dyn Progress,
    ) -> Result<ImageInfo, RuntimeError>;
    async fn list(&self) -> Result<Vec<ImageInfo>, RuntimeError>;
    /// # Errors
    /// [`RuntimeError::Refused`] when the image is not there. The host checks that no box uses it.
    async fn remove(&self, image: &str) -> Result<(), RuntimeError>;
    /// Whether the image of a digest is there.
    fn is_ready(&self, digest: &str) -> bool;
    /// The one way to write an image, as [`Images::list`] does.
    ///
    /// # Errors
    /// [`RuntimeError::Refused`] when it is no image.
    fn canonical(&self, image: &str) -> Result<String, RuntimeError>;
    /// As [`Images::prepare`], though it may be ready: a tag, an archive may have moved on. What
    /// boxes were made from stays.
    async fn refresh(
        &self,
        image: &str,
        progress: &dyn Progress,
    ) -> Result<ImageInfo, RuntimeError>;
    /// Makes an image of an archive under the name `built:<name>`.
    async fn adopt(
        &self,
        archive: &Path,
        name: &str,
        progress: &dyn Progress,
    ) -> Result<ImageInfo, RuntimeError>;
    /// What nobody uses, given the digests that somebody does; removes it when told to.
    async fn prune(&self, used: Vec<String>, how: Prune) -> Result<Unused, RuntimeError>;
}

/// Whether what is unused is removed or only told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Prune {
    Remove,
    Tell,
}

/// What nobody uses.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Unused {
    pub images: Vec<ImageInfo>,
    /// Kept and half downloaded layers.
    pub downloads_bytes: u64,
}

/// A connection to box-guest of a running box.
#[async_trait]
pub trait Processes: Debug + Send + Sync {
    /// A fresh stream socket to the box's guest, speaking `box_api::guest`.
    async fn connect(&self, id: &BoxId) -> Result<OwnedFd, RuntimeError>;
}

/// Boxes begun ahead of their time, without anything that says whose they will be. [`Runtime::start`]
/// of a box with the id of one takes it; each is taken once or let go. None of them is in
/// [`Runtime::list`], and none outlives the host.
#[async_trait]
pub trait Pool: Debug + Send + Sync {
    /// Begins one under an id that was never used.
    async fn begin(&self, id: &BoxId) -> Result<(), RuntimeError>;
    /// Ends one that nobody took. There is none: nothing to do.
    async fn let_go(&self, id: &BoxId) -> Result<(), RuntimeError>;
    /// Those there are.
    fn spares(&self) -> Vec<BoxId>;
}

/// Sockets of a running box, opened anew after box-egress was lost.
#[async_trait]
pub trait Sockets: Debug + Send + Sync {
    async fn reopen(&self, id: &BoxId) -> Result<BoxSockets, RuntimeError>;
}
