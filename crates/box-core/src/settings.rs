//! Settings: what the host does where a request says nothing, and where each value came from.
//!
//! One TOML file ([`crate::paths::Paths::config`]). Unknown keys are refused by name; nothing is
//! guessed. A file that is not there means the defaults.

pub mod budget;
mod current;
pub mod environment;
mod idle;
pub mod net;
pub mod page;
pub mod push;
mod read;
mod shown;
pub mod upstream;

pub use current::Current;
pub use environment::Environment;
pub use shown::Shown;

use crate::decisions::Fallback;
use crate::network::lint;
use box_api::control::{Defaults, NetPreset, Profile};
use box_api::network::{Finding, Weight};
use box_api::restore_point::TurnUndo;
use std::fmt;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

/// Longest settings file that is read.
const FILE_BYTES_MAX: u64 = 1 << 20;
/// C92.
const PERMISSION_HOLD_MINUTES: u32 = 120;
/// C95, decision D12.
const FREEZE_AFTER_MS: u64 = 30 * 60 * 1000;
const POOL_MAX: u32 = 4;
/// Decision D33.
const TRASH_DAYS: u32 = 7;

/// A value and where it came from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Setting<T> {
    pub value: T,
    pub origin: Origin,
}

/// Where a setting came from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
    Default,
    File(PathBuf),
    /// A variable of the host.
    Environment(&'static str),
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.write_str("default"),
            Self::File(path) => path.display().fmt(f),
            Self::Environment(name) => write!(f, "variable {name}"),
        }
    }
}

impl<T> Setting<T> {
    fn default_of(value: T) -> Self {
        Self {
            value,
            origin: Origin::Default,
        }
    }
}

/// Everything that can be set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// `[egress] resolvers`: name servers box-egress asks; empty: the machine's own.
    pub resolvers: Setting<Vec<SocketAddr>>,
    /// `[egress] extra_roots`: a PEM file of certificates trusted beside the system's.
    pub extra_roots: Setting<Option<PathBuf>>,
    /// `[box] profile`
    pub profile: Setting<Profile>,
    /// `[net] preset`
    pub preset: Setting<NetPreset>,
    pub net: net::NetSettings,
    pub upstream: upstream::UpstreamSettings,
    pub page: page::PageSettings,
    pub push: push::PushSettings,
    pub limits: LimitSettings,
    /// `[snapshot] pristine`: a fresh box is marked before anything of its owner runs (B14).
    pub pristine: Setting<bool>,
    /// `[snapshot] bootstrapped`: a box whose set-up was seen to succeed is marked (B18).
    pub bootstrapped: Setting<bool>,
    /// `[snapshot] undo`: whether boxes get a restore point before each turn.
    pub undo: Setting<TurnUndo>,
    /// `[store] size`: of a store that `box up --store btrfs` makes, bytes.
    pub store_size_bytes: Setting<Option<u64>>,
    /// `[store] reserve`: kept free of boxes on the machine's disk, bytes.
    pub store_reserve_bytes: Setting<Option<u64>>,
    /// `[credentials] seal`: what holds the key that secrets are sealed with.
    pub seal: Setting<SealChoice>,
    /// `[decisions] permission_hold`: minutes a permission waits before the fallback (C92).
    pub permission_hold: Setting<u32>,
    /// `[decisions] permission_fallback`: what then.
    pub permission_fallback: Setting<Fallback>,
    pub budget: budget::BudgetSettings,
    /// `[box] freeze_after`: when a box is frozen that nothing was wanted of, milliseconds; 0: never
    /// (D12).
    pub freeze_after_ms: Setting<u64>,
    /// `[pool] max`: boxes begun ahead of their time at once; 0: none.
    pub pool_max: Setting<u32>,
    /// `[pool] reserve`: no box is begun ahead with less memory available, bytes; else a tenth of all.
    pub pool_reserve_bytes: Setting<Option<u64>>,
    /// `[trash] days`: how long a removed box keeps its files (D33).
    pub trash_days: Setting<u32>,
}

/// What holds the key that secrets are sealed with.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum SealChoice {
    /// A passphrase once one was set, else the kernel's keyring, else memory.
    #[default]
    Auto,
    Keyring,
    SystemdCreds,
    Passphrase,
    /// Secrets are never on disk and end with box-egress.
    Memory,
}

impl SealChoice {
    pub fn word(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Keyring => "keyring",
            Self::SystemdCreds => "systemd-creds",
            Self::Passphrase => "passphrase",
            Self::Memory => "memory",
        }
    }
}

/// `[limits]`: limits of a box that says nothing else.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LimitSettings {
    /// `cpus`, kept as thousandths of a CPU.
    pub cpu_milli: Setting<u32>,
    /// `memory`, bytes.
    pub memory_bytes: Setting<u64>,
    /// `pids`
    pub pids: Setting<u32>,
    /// `tmp`, bytes.
    pub tmp_bytes: Setting<u64>,
    /// `disk`, bytes.
    pub disk_bytes: Setting<u64>,
    /// `open_files`
    pub open_files: Setting<u32>,
}

/// Why the settings cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum SettingsError {
    #[error("could not read the settings `{path}`")]
    Read {
        path: PathBuf,
        #[source]
        source: std::io::Error,
    },
    #[error("the settings `{path}` are longer than {FILE_BYTES_MAX} bytes")]
    TooLong { path: PathBuf },
    #[error("the settings `{path}` are not TOML")]
    Toml {
        path: PathBuf,
        #[source]
        source: Box<toml::de::Error>,
    },
    #[error("the settings `{path}` have an unknown key `{key}`")]
    UnknownKey {
        path: PathBuf,
        key: String,
        near: Option<String>,
    },
    #[error("the settings `{path}` give `{key}` a value it cannot have: {why}")]
    Value {
        path: PathBuf,
        key: &'static str,
        why: String,
    },
    #[error("the variable `{variable}` has a value it cannot have: {why}")]
    Environment { variable: &'static str, why: String },
    #[error("the entry `{}` of the settings `{path}` ({}) {}", .finding.entry, .finding.from, .finding.text)]
    Finding {
        path: PathBuf,
        finding: Box<Finding>,
    },
}

impl SettingsError {
    /// What the person can do now.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::UnknownKey {
                near: Some(near), ..
            } => Some(format!("did you mean `{near}`?")),
            Self::UnknownKey { .. } => Some(format!("keys are {}", read::known_keys())),
            Self::Read { .. }
            | Self::TooLong { .. }
            | Self::Toml { .. }
            | Self::Value { .. }
            | Self::Environment { .. }
            | Self::Finding { .. } => None,
        }
    }
}

impl Default for Settings {
    fn default() -> Self {
        let Defaults {
            profile,
            net,
            limits,
        } = Defaults::default();
        Self {
            resolvers: Setting::default_of(Vec::new()),
            extra_roots: Setting::default_of(None),
            profile: Setting::default_of(profile),
            preset: Setting::default_of(net),
            net: net::NetSettings::default(),
            upstream: upstream::UpstreamSettings::default(),
            page: page::PageSettings::default(),
            push: push::PushSettings::default(),
            limits: LimitSettings {
                cpu_milli: Setting::default_of(limits.cpu_milli),
                memory_bytes: Setting::default_of(limits.memory_bytes),
                pids: Setting::default_of(limits.pids),
                tmp_bytes: Setting::default_of(limits.tmp_bytes),
                disk_bytes: Setting::default_of(limits.disk_bytes),
                open_files: Setting::default_of(limits.open_files),
            },
            pristine: Setting::default_of(true),
            bootstrapped: Setting::default_of(true),
            undo: Setting::default_of(TurnUndo::Auto),
            store_size_bytes: Setting::default_of(None),
            store_reserve_bytes: Setting::default_of(None),
            seal: Setting::default_of(SealChoice::Auto),
            permission_hold: Setting::default_of(PERMISSION_HOLD_MINUTES),
            permission_fallback: Setting::default_of(Fallback::Hold),
            budget: budget::BudgetSettings::default(),
            freeze_after_ms: Setting::default_of(FREEZE_AFTER_MS),
            pool_max: Setting::default_of(POOL_MAX),
            pool_reserve_bytes: Setting::default_of(None),
            trash_days: Setting::default_of(TRASH_DAYS),
        }
    }
}

impl Settings {
    /// Reads the file; one that is not there means the defaults.
    ///
    /// # Errors
    /// [`SettingsError`] names the file and the key.
    pub fn load(path: &Path) -> Result<Self, SettingsError> {
        let fail = |source| SettingsError::Read {
            path: path.to_owned(),
            source,
        };
        match std::fs::metadata(path) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Self::default()),
            Err(error) => Err(fail(error)),
            Ok(found) if found.len() > FILE_BYTES_MAX => Err(SettingsError::TooLong {
                path: path.to_owned(),
            }),
            Ok(_) => Self::parse(path, &std::fs::read_to_string(path).map_err(fail)?),
        }
    }

    /// Reads the file, adds what the variables of the host say, and looks for entries that are
    /// never meant.
    ///
    /// # Errors
    /// [`SettingsError`] names the file and the key, the variable, or the entry.
    pub fn load_with(path: &Path, environment: &Environment) -> Result<Self, SettingsError> {
        let mut settings = Self::load(path)?;
        environment.complete(&mut settings)?;
        for finding in lint::of_settings(&settings) {
            if finding.weight == Weight::Error {
                let (path, finding) = (path.to_owned(), Box::new(finding));
                return Err(SettingsError::Finding { path, finding });
            }
            let (entry, text) = (&finding.entry, &finding.text);
            tracing::warn!(entry, from = finding.from, text, "an entry is odd");
        }
        Ok(settings)
    }

    /// Reads settings from `text`, which came from `path`.
    ///
    /// # Errors
    /// [`SettingsError`] names the file and the key.
    pub fn parse(path: &Path, text: &str) -> Result<Self, SettingsError> {
        read::settings(path, text)
    }

    /// What a client starts from.
    pub fn defaults(&self) -> Defaults {
        Defaults {
            profile: self.profile.value,
            net: self.preset.value,
            limits: box_api::control::Limits {
                cpu_milli: self.limits.cpu_milli.value,
                memory_bytes: self.limits.memory_bytes.value,
                pids: self.limits.pids.value,
                tmp_bytes: self.limits.tmp_bytes.value,
                disk_bytes: self.limits.disk_bytes.value,
                open_files: self.limits.open_files.value,
            },
        }
    }
}

#[cfg(test)]
mod tests;
