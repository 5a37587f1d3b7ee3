//! The one table of engines. Adding one is a crate and a row here.

use box_runtime::Runtime;
use box_runtime_native::{NativeRuntime, Privileges, Spawner, rootless};
use box_server::Runtimes;
use box_server::paths::Paths;
use std::io;
use std::sync::Arc;

/// Opens an engine over the host's folders, which are there and this host's alone.
type Opener = Box<dyn FnOnce(&Paths) -> io::Result<Arc<dyn Runtime>>>;

/// An engine this program has.
struct Row {
    name: &'static str,
    /// Called while the process has one thread: an engine may fork what needs a small process.
    prepare: fn(&Paths) -> Result<(Opener, Privileges), EngineError>,
}

const NATIVE: &str = "native";

/// The first is what new boxes are made with.
const TABLE: &[Row] = &[Row {
    name: NATIVE,
    prepare: native,
}];

fn native(paths: &Paths) -> Result<(Opener, Privileges), EngineError> {
    let failed = |source: io::Error, hint| EngineError {
        name: NATIVE,
        source,
        hint,
    };
    let privileges = rootless::enter(&paths.run).map_err(|error| {
        let hint = error.hint();
        let why = std::error::Error::source(&error)
            .map_or_else(|| error.to_string(), |source| format!("{error}: {source}"));
        failed(io::Error::other(why), hint)
    })?;
    let spawner = Spawner::fork().map_err(|error| failed(error, None))?;
    let opener: Opener = Box::new(|paths| {
        let opened = NativeRuntime::open(&paths.data, &paths.run, spawner)?;
        Ok(Arc::new(opened))
    });
    Ok((opener, privileges))
}

/// Engines that were prepared and are not open yet.
pub(crate) struct Prepared {
    openers: Vec<(&'static str, Opener)>,
    /// What the process is by now: an ordinary user's is in a user namespace of its own.
    pub(crate) privileges: Privileges,
}

/// Why an engine cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("could not use the engine `{name}`")]
pub(crate) struct EngineError {
    name: &'static str,
    source: io::Error,
    /// What would help.
    pub(crate) hint: Option<String>,
}

/// Prepares every engine. Called before the process has a second thread.
///
/// # Errors
/// The first engine that cannot be prepared.
pub(crate) fn prepare(paths: &Paths) -> Result<Prepared, EngineError> {
    let mut prepared = Prepared {
        openers: Vec::new(),
        privileges: Privileges::Root,
    };
    for row in TABLE {
        let (opener, privileges) = (row.prepare)(paths)?;
        prepared.openers.push((row.name, opener));
        prepared.privileges = privileges;
    }
    Ok(prepared)
}

impl Prepared {
    /// Opens every engine.
    ///
    /// # Errors
    /// The first engine that cannot be opened.
    pub(crate) fn open(self, paths: &Paths) -> Result<Runtimes, EngineError> {
        let failed = |name, source| EngineError {
            name,
            source,
            hint: None,
        };
        let opened = self
            .openers
            .into_iter()
            .map(|(name, opener)| opener(paths).map_err(|source| failed(name, source)));
        let mut opened = opened.collect::<Result<Vec<_>, _>>()?.into_iter();
        let none = || failed(NATIVE, io::ErrorKind::NotFound.into());
        let default = opened.next().ok_or_else(none)?;
        Ok(Runtimes::new(default, opened.collect()))
    }
}
