//! Where the host keeps things: data folder, run folder, settings, log.
//!
//! Root has the system's places, a user the XDG ones
//! (<https://specifications.freedesktop.org/basedir-spec/latest/>). `BOX_DATA_DIR`, `BOX_RUN_DIR`
//! and `BOX_CONFIG` override them.

use box_api::BoxId;
use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

/// `sun_path` of unix(7) has 108 bytes, the last of which is 0.
const SOCKET_PATH_BYTES_MAX: usize = 107;
/// The longest socket below the run folder: `boxes/<id>/guest.sock`.
const LONGEST_SOCKET: &str = "/boxes/aaaaaaaaaaaaaaaa/guest.sock";

/// Why no place for the host could be named.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PathsError {
    #[error("neither `{variable}` nor `HOME` is set")]
    NoHome { variable: &'static str },
    #[error("`{variable}` is not an absolute path: `{path}`")]
    Relative {
        variable: &'static str,
        path: PathBuf,
    },
    #[error("the run folder `{path}` is too long for a socket by {over} bytes")]
    RunDirTooLong { path: PathBuf, over: usize },
}

impl PathsError {
    /// What the person can do now.
    pub fn hint(&self) -> String {
        match self {
            Self::NoHome { variable } => {
                format!("set `{variable}`, or `BOX_DATA_DIR` and the like")
            }
            Self::Relative { variable, .. } => {
                format!("give `{variable}` a path that starts with `/`")
            }
            Self::RunDirTooLong { .. } => "set `BOX_RUN_DIR` to a shorter path".to_owned(),
        }
    }
}

/// Reads a variable of the environment; handed in, so that tests decide it.
pub type Variable<'a> = &'a dyn Fn(&str) -> Option<OsString>;

/// The host's places. All absolute; nothing says they exist yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Paths {
    pub data: PathBuf,
    pub run: PathBuf,
    pub config: PathBuf,
    pub log: PathBuf,
}

impl Paths {
    /// The places of a host that runs as `uid`.
    ///
    /// # Errors
    /// A place that cannot be named, or a run folder too deep for a socket's address.
    pub fn of_user(uid: u32, variable: Variable<'_>) -> Result<Self, PathsError> {
        let defaults = if uid == 0 {
            Self::system()
        } else {
            Self::xdg(uid, variable)?
        };
        let data = absolute("BOX_DATA_DIR", variable)?;
        let log = data.as_ref().map(|data| data.join("log"));
        let paths = Self {
            data: data.unwrap_or(defaults.data),
            run: absolute("BOX_RUN_DIR", variable)?.unwrap_or(defaults.run),
            config: absolute("BOX_CONFIG", variable)?.unwrap_or(defaults.config),
            log: log.unwrap_or(defaults.log),
        };
        paths.check()
    }

    /// The places of a host that root runs.
    pub fn system() -> Self {
        Self {
            data: "/var/lib/box".into(),
            run: "/run/box".into(),
            config: "/etc/box/config.toml".into(),
            log: "/var/log/box".into(),
        }
    }

    /// Everything below one folder, as tests want it.
    ///
    /// # Errors
    /// [`PathsError::RunDirTooLong`]
    pub fn below(folder: &Path) -> Result<Self, PathsError> {
        let paths = Self {
            data: folder.join("data"),
            run: folder.join("run"),
            config: folder.join("config.toml"),
            log: folder.join("data/log"),
        };
        paths.check()
    }

    fn xdg(uid: u32, variable: Variable<'_>) -> Result<Self, PathsError> {
        let home = || absolute("HOME", variable);
        let place = |name: &'static str, below_home: &str| {
            let set = absolute(name, variable)?;
            let default = home()?.map(|home| home.join(below_home));
            set.or(default).ok_or(PathsError::NoHome { variable: name })
        };
        let run = absolute("XDG_RUNTIME_DIR", variable)?;
        Ok(Self {
            data: place("XDG_DATA_HOME", ".local/share")?.join("box"),
            run: run.map_or_else(|| format!("/tmp/box-{uid}").into(), |run| run.join("box")),
            config: place("XDG_CONFIG_HOME", ".config")?.join("box/config.toml"),
            log: place("XDG_STATE_HOME", ".local/state")?.join("box/log"),
        })
    }

    fn check(self) -> Result<Self, PathsError> {
        let bytes = self.run.as_os_str().as_bytes().len() + LONGEST_SOCKET.len();
        match bytes.checked_sub(SOCKET_PATH_BYTES_MAX) {
            None | Some(0) => Ok(self),
            Some(over) => Err(PathsError::RunDirTooLong {
                path: self.run,
                over,
            }),
        }
    }

    /// Names the layout of the data folder.
    pub fn version_file(&self) -> PathBuf {
        self.data.join("VERSION")
    }

    /// Held by the host that uses the data folder.
    pub fn data_lock(&self) -> PathBuf {
        self.data.join("lock")
    }

    /// Held by the host that listens in the run folder.
    pub fn run_lock(&self) -> PathBuf {
        self.run.join("lock")
    }

    pub fn database(&self) -> PathBuf {
        self.data.join("box.db")
    }

    /// The deployment's CA. Its key never leaves it but for box-egress' memory.
    pub fn ca_dir(&self) -> PathBuf {
        self.data.join("ca")
    }

    /// Roots a box trusts: the system's, the extra ones and the deployment's CA.
    pub fn bundle(&self) -> PathBuf {
        self.ca_dir().join("bundle.pem")
    }

    /// What boxes trust beyond the system's roots, for programs that add it to their own.
    pub fn added_roots(&self) -> PathBuf {
        self.ca_dir().join("added.pem")
    }

    /// The bundle as a key store of Java.
    pub fn java_roots(&self) -> PathBuf {
        self.ca_dir().join("java.jks")
    }

    /// The added roots as a database of NSS.
    pub fn nss_roots(&self) -> PathBuf {
        self.ca_dir().join("nss.db")
    }

    /// What git is told in every box.
    pub fn git_config(&self) -> PathBuf {
        self.ca_dir().join("gitconfig")
    }

    /// The deployment's CA alone, for programs that add it to roots of their own.
    pub fn ca_cert(&self) -> PathBuf {
        self.ca_dir().join("ca.pem")
    }

    pub fn agents(&self) -> PathBuf {
        self.data.join("agents")
    }

    pub fn tmp(&self) -> PathBuf {
        self.data.join("tmp")
    }

    /// Small files the host decides and a box sees, one folder a box.
    pub fn placed(&self, id: &BoxId) -> PathBuf {
        self.data.join("placed").join(id.as_str())
    }

    /// What the durable processes of a box wrote, one folder a box.
    pub fn logs(&self, id: &BoxId) -> PathBuf {
        self.data.join("logs").join(id.as_str())
    }

    pub fn control_socket(&self) -> PathBuf {
        self.run.join("control.sock")
    }

    pub fn egress_socket(&self) -> PathBuf {
        self.run.join("egress.sock")
    }
}

fn absolute(name: &'static str, variable: Variable<'_>) -> Result<Option<PathBuf>, PathsError> {
    match variable(name)
        .filter(|value| !value.is_empty())
        .map(PathBuf::from)
    {
        Some(path) if path.is_relative() => Err(PathsError::Relative {
            variable: name,
            path,
        }),
        found => Ok(found),
    }
}

#[cfg(test)]
mod tests;
