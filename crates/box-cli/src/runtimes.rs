//! The one table of engines. Adding one is a crate and a row here.

use box_runtime::Runtime;
use box_runtime_native::{NativeRuntime, Spawner};
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
    prepare: fn() -> io::Result<Opener>,
}

/// The first is what new boxes are made with.
const TABLE: &[Row] = &[Row {
    name: "native",
    prepare: native,
}];

fn native() -> io::Result<Opener> {
    let spawner = Spawner::fork()?;
    Ok(Box::new(|paths| {
        let opened = NativeRuntime::open(&paths.data, &paths.run, spawner)?;
        Ok(Arc::new(opened))
    }))
}

/// Engines that were prepared and are not open yet.
pub(crate) struct Prepared(Vec<(&'static str, Opener)>);

/// Why an engine cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("could not use the engine `{name}`")]
pub(crate) struct EngineError {
    name: &'static str,
    source: io::Error,
}

/// Prepares every engine. Called before the process has a second thread.
///
/// # Errors
/// The first engine that cannot be prepared.
pub(crate) fn prepare() -> Result<Prepared, EngineError> {
    let prepared = TABLE.iter().map(|row| {
        let opener = (row.prepare)();
        opener
            .map(|opener| (row.name, opener))
            .map_err(|source| EngineError {
                name: row.name,
                source,
            })
    });
    prepared.collect::<Result<Vec<_>, _>>().map(Prepared)
}

impl Prepared {
    /// Opens every engine.
    ///
    /// # Errors
    /// The first engine that cannot be opened.
    pub(crate) fn open(self, paths: &Paths) -> Result<Runtimes, EngineError> {
        let opened = self
            .0
            .into_iter()
            .map(|(name, opener)| opener(paths).map_err(|source| EngineError { name, source }));
        let mut opened = opened.collect::<Result<Vec<_>, _>>()?.into_iter();
        let none = || EngineError {
            name: "native",
            source: io::ErrorKind::NotFound.into(),
        };
        let default = opened.next().ok_or_else(none)?;
        Ok(Runtimes::new(default, opened.collect()))
    }
}
