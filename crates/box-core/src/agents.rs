//! The agents a box can run: what each one is, and its pack on disk.
//!
//! Everything here is read from `agents/<name>/` of the source tree when the program is built;
//! nothing at run time needs that folder. [`profiles`] and [`find`] say what an agent is,
//! [`ensure`] installs its pack, [`installed`] says where it is. Whoever runs the host may add
//! profiles of their own ([`add`]), beside the settings file.
//!
//! ```text
//! agents/<name>/<version>-<lock>/   a whole pack, mounted at /opt/box/agents/<name>
//! agents/<name>/.lock               held while one is installed
//! tmp/agent-*                       where it is made
//! agents.d/<name>.toml              beside the settings: a profile that was added
//! ```

pub mod acp_registry;
pub mod added;
mod error;
mod fetch;
mod install;
mod lock;
mod npm;
mod own;
mod packs;
pub mod profile;
#[cfg(test)]
mod test_registry;

pub use error::InstallError;
pub use install::{clear, ensure, installed};
pub use own::{AddError, Fault, PROFILE_BYTES_MAX, add, load, opens, read_own};
pub use packs::{InUse, RemoveError, UpdateError, remove, update};
pub use profile::{AgentProfile, UnknownAgent, find, profiles};
