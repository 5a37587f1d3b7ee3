//! Reads an archive into `tmp/`.

use super::settle::{Settling, Unpacked};
use super::{BEING_IMPORTED, overlay, owners, spool, teller_of, told};
use crate::Engine;
use crate::images::ArrivedImage;
use crate::rootless::MakesRootsFiles;
use crate::snapshots::telling::{Teller, work};
use crate::storage::{Cradle, TREE, make_folder};
use async_trait::async_trait;
use box_api::control::Profile;
use box_runtime::archive::{Arriving, Grounds, Part, Pipe, Rules};
use box_runtime::unpack::{SetId, Staging};
use box_runtime::{Arrival, Arrived, Manifest, Progress, RuntimeError, Terms, fault};
use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;

/// Most variables an image brings, and most bytes of them.
const VARIABLES_MAX: usize = 1000;
const VARIABLES_BYTES_MAX: usize = 64 << 10;

pub(super) async fn arrive(
    engine: Arc<Engine>,
    source: OwnedFd,
) -> Result<Box<dyn Arrival>, RuntimeError> {
    let read = tokio::task::spawn_blocking(move || {
        let staging = Staging::new(&engine.folders.tmp, BEING_IMPORTED).map_err(failed)?;
        let spool = spool(&staging).map_err(failed)?;
        let source = Pipe::new(source).map_err(failed)?;
        let arriving =
            Arriving::open(source, spool).map_err(|error| told(ACTION.to_owned(), error))?;
        check_variables(arriving.manifest())?;
        let here: Box<dyn Arrival> = Box::new(Here {
            engine,
            staging,
            arriving,
        });
        Ok(here)
    });
    read.await
        .map_err(|error| RuntimeError::engine(ACTION, error))?
}

const ACTION: &str = "read the archive";

fn failed(error: io::Error) -> RuntimeError {
    RuntimeError::engine(ACTION, error)
}

fn check_variables(manifest: &Manifest) -> Result<(), RuntimeError> {
    let bad = |(name, value): &(String, String)| {
        name.is_empty() || name.contains(['=', '\0']) || value.contains('\0')
    };
    let env = &manifest.image_env;
    let bytes: usize = env
        .iter()
        .map(|(name, value)| name.len() + value.len())
        .sum();
    if env.len() > VARIABLES_MAX || bytes > VARIABLES_BYTES_MAX || env.iter().any(bad) {
        return Err(RuntimeError::Refused {
            why: "its manifest names variables of its image that cannot be set".to_owned(),
            hint: None,
        });
    }
    Ok(())
}

/// An archive of which only the manifest was read.
#[derive(Debug)]
struct Here {
    engine: Arc<Engine>,
    /// Where the checksums gather.
    staging: Staging,
    arriving: Arriving<Pipe>,
}

#[async_trait]
impl Arrival for Here {
    fn manifest(&self) -> &Manifest {
        self.arriving.manifest()
    }

    async fn receive(
        self: Box<Self>,
        terms: Terms,
        progress: &dyn Progress,
    ) -> Result<Box<dyn Arrived>, RuntimeError> {
        let method = self.engine.folders.method();
        let arrived = work(method, progress, move |teller| {
            let arrived: Box<dyn Arrived> = Box::new(self.unpack(terms, teller)?);
            Ok(arrived)
        });
        arrived.await
    }
}

impl Here {
    fn unpack(self, terms: Terms, teller: &Teller) -> Result<Settling, RuntimeError> {
        let Self {
            engine,
            staging,
            arriving,
        } = self;
        let folders = &engine.folders;
        let method = folders.method();
        let roots = MakesRootsFiles::begin(engine.privileges).map_err(failed)?;
        let unpacked = Unpacked {
            now: Cradle::new(&folders.tmp, BEING_IMPORTED, method).map_err(failed)?,
            snapshots: Staging::new(&folders.tmp, BEING_IMPORTED)
                .map_err(failed)?
                .into(),
            image: engine.images.staging().map_err(failed)?,
        };
        let grounds = Grounds {
            now: (unpacked.now.folder(), TREE),
            snapshots: unpacked.snapshots.folder(),
            image: (unpacked.image.folder(), "root"),
            make_state: &|folder, name| make_folder(folder, name, method),
        };
        let rules = Rules {
            state_bytes_max: terms.state_bytes_max,
            set_id: match terms.profile {
                Profile::Locked => SetId::Strip,
                Profile::Root => SetId::Keep,
            },
            owners: owners(engine.privileges, terms.profile),
            image: terms.image,
            overlay: overlay(engine.privileges),
        };
        let mut progress = teller_of(teller, "received");
        let received = arriving.receive(grounds, rules, &mut progress);
        drop(progress);
        let received = received.map_err(|error| told(ACTION.to_owned(), error))?;
        drop(roots);
        drop(staging);
        fault::point("import.received");
        let has_root = unpacked.now.tree().join(Part::Root.name()).exists();
        if terms.profile == Profile::Locked && has_root {
            return Err(RuntimeError::Refused {
                why: "it has changes to the root of a box that has none".to_owned(),
                hint: None,
            });
        }
        let image = received.image.map(|content| ArrivedImage {
            called: received.manifest.image.clone(),
            content,
            env: received.manifest.image_env.clone(),
        });
        Ok(Settling::new(engine, received.manifest, unpacked, image))
    }
}
