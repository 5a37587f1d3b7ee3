//! Pulls an image: which one it is, then its layers, several at once, unpacked as they come.
//!
//! An interrupted layer goes on where it stopped (RFC 9110, *Range*), in this pull or a later one.

use super::blobs::{Blobs, Partial, Wrong};
use super::credentials::Logins;
use super::digest::Digest;
use super::layers::{Layering, Layers};
use super::manifest::{self, Config, Descriptor, Document, Manifest};
use super::name::OciName;
use super::registry::{Failed, Registry, Session, cut};
use crate::images::error::ImageError;
use crate::images::store::{Made, Making};
use box_runtime::fault;
use box_runtime::unpack::Policy;
use std::io::Read as _;
use std::os::fd::BorrowedFd;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::time::{Duration, Instant};
use ureq::Body;
use ureq::http::{Response, StatusCode};

/// How long a whole pull may take.
const PULL_TIME_MAX: Duration = Duration::from_hours(4);
const DOWNLOADS_AT_ONCE: usize = 3;
const PROGRESS_EVERY: Duration = Duration::from_secs(1);
const COPY_BYTES: usize = 128 << 10;
/// Lists may point to lists; an image is not far.
const LISTS_MAX: usize = 3;

/// How patient a pull is; tests are less so.
#[derive(Debug, Clone)]
pub(in crate::images) struct Patience {
    /// Waits between tries that brought nothing; one try more than there are waits.
    pub(in crate::images) pauses: Vec<Duration>,
    /// How long a download may stand still.
    pub(in crate::images) still: Duration,
}

impl Default for Patience {
    fn default() -> Self {
        Self {
            pauses: [500, 1_000, 2_000, 5_000, 10_000]
                .map(Duration::from_millis)
                .to_vec(),
            still: Duration::from_mins(1),
        }
    }
}

/// An image that was found in its registry, and what it is made of.
pub(in crate::images) struct Found {
    registry: Registry,
    manifest: Manifest,
    config: Config,
    patience: Patience,
}

/// Looks an image up: everything but its layers.
pub(in crate::images) fn find(
    name: &OciName,
    logins: &Logins,
    patience: &Patience,
) -> Result<Found, ImageError> {
    let registry = Registry::new(name, logins, patience.still)?;
    let mut session = registry.session();
    let image = format!("oci:{name}");
    let unfit = |why: String| ImageError::unfit(&image, why);
    let (mut wanted, mut expected) = (name.wanted(), name.digest().cloned());
    let mut lists = 0;
    let manifest = loop {
        let text = patient(patience, || session.manifest(&wanted))
            .map_err(|failed| registry.told(failed))?;
        if expected.is_some_and(|expected| expected != Digest::of(&text)) {
            return Err(lie(&image, "its manifest"));
        }
        match manifest::document(&text).map_err(unfit)? {
            Document::Image(manifest) => break manifest,
            Document::Elsewhere(_) if lists == LISTS_MAX => {
                return Err(unfit("its lists of images lead to more lists".to_owned()));
            }
            Document::Elsewhere(chosen) => {
                wanted = chosen.digest.to_string();
                expected = Some(chosen.digest);
                lists += 1;
            }
        }
    };
    let digest = manifest.config.digest.to_string();
    let text =
        patient(patience, || session.document(&digest)).map_err(|failed| registry.told(failed))?;
    if manifest.config.digest != Digest::of(&text) {
        return Err(lie(&image, "its configuration"));
    }
    let config = manifest::config(&text, manifest.layers.len()).map_err(unfit)?;
    Ok(Found {
        registry,
        manifest,
        config,
        patience: patience.clone(),
    })
}

fn lie(image: &str, what: &str) -> ImageError {
    ImageError::Unfit {
        image: image.to_owned(),
        why: format!("{what} is not what its digest says"),
        hint: Some(
            "nothing of it was kept; the registry, or something on the way to it, changed it"
                .to_owned(),
        ),
    }
}

fn patient<T>(
    patience: &Patience,
    mut attempt: impl FnMut() -> Result<T, Failed>,
) -> Result<T, Failed> {
    for pause in &patience.pauses {
        match attempt() {
            Err(Failed::Again(_)) => std::thread::sleep(*pause),
            done => return done,
        }
    }
    attempt()
}

/// What the downloads of one pull share.
struct Pull<'pull> {
    found: &'pull Found,
    blobs: &'pull Blobs,
    image: &'pull str,
    deadline: Instant,
    next: AtomicUsize,
    bytes: AtomicU64,
    unpacked: AtomicUsize,
    /// One failed: the others need not go on.
    stop: AtomicBool,
}

/// A layer that is there, or why it is not.
type Outcome = (usize, Result<(), ImageError>);

impl Found {
    /// What the image is, wherever it is from.
    pub(in crate::images) fn source(&self) -> String {
        super::source(&self.manifest.config.digest)
    }

    /// Downloads what is not here and unpacks all of it into an empty folder.
    pub(in crate::images) fn make(
        &self,
        making: &Making<'_>,
        blobs: &Blobs,
        root: BorrowedFd<'_>,
    ) -> Result<Made, ImageError> {
        let _in_use = blobs
            .in_use()
            .map_err(ImageError::store("use the kept layers"))?;
        let pull = Pull {
            found: self,
            blobs,
            image: making.image,
            deadline: Instant::now() + PULL_TIME_MAX,
            next: AtomicUsize::new(0),
            bytes: AtomicU64::new(0),
            unpacked: AtomicUsize::new(0),
            stop: AtomicBool::new(false),
        };
        let mut layers = Layers::over(root);
        let (done, all_done) = sync_channel::<()>(1);
        let shared = &pull;
        std::thread::scope(|scope| {
            let (say, outcomes) = sync_channel(self.manifest.layers.len().max(1));
            for _ in 0..DOWNLOADS_AT_ONCE.min(self.manifest.layers.len()) {
                let say = say.clone();
                scope.spawn(move || shared.download_all(&say));
            }
            drop(say);
            scope.spawn(move || shared.tell(&all_done, making));
            let result = pull.unpack_all(&outcomes, &making.policy(), &mut layers);
            // Whoever still downloads is not waited for longer than a read takes.
            pull.stop.store(true, Ordering::Relaxed);
            drop(done);
            result
        })?;
        let kept = |layer: &Descriptor| layer.digest.digits().to_owned();
        Ok(Made {
            unpacked: layers.done(),
            source: self.source(),
            packages: Vec::new(),
            env: self.config.env.clone(),
            blobs: self.manifest.layers.iter().map(kept).collect(),
        })
    }
}

impl Pull<'_> {
    /// Unpacks the layers in their order, each as soon as it is there.
    fn unpack_all(
        &self,
        outcomes: &Receiver<Outcome>,
        policy: &Policy,
        layers: &mut Layers<'_>,
    ) -> Result<(), ImageError> {
        let found = self.found;
        let mut there = vec![false; found.manifest.layers.len()];
        for (index, id) in found.config.layers.iter().enumerate() {
            while !there[index] {
                there[self.next_there(outcomes)?] = true;
            }
            let digest = &found.manifest.layers[index].digest;
            let file = self
                .blobs
                .get(digest)
                .map_err(ImageError::store("open a layer"))?;
            let added = layers.add(policy, &file, id);
            if matches!(added, Err(Layering::Other)) {
                self.blobs.forget(digest);
            }
            added.map_err(|error| error.told(self.image, index + 1))?;
            self.unpacked.fetch_add(1, Ordering::Relaxed);
            fault::point("image.layer.unpacked");
        }
        Ok(())
    }

    /// The number of the next layer that is here.
    fn next_there(&self, outcomes: &Receiver<Outcome>) -> Result<usize, ImageError> {
        let Ok((number, outcome)) = outcomes.recv() else {
            return Err(ImageError::Registry {
                image: self.image.to_owned(),
                why: "a download ended without a word".to_owned(),
            });
        };
        outcome.map(|()| number)
    }

    fn download_all(&self, say: &SyncSender<Outcome>) {
        let mut session = self.found.registry.session();
        while !self.stop.load(Ordering::Relaxed) {
            let index = self.next.fetch_add(1, Ordering::Relaxed);
            let Some(layer) = self.found.manifest.layers.get(index) else {
                return;
            };
            let outcome = self.download(&mut session, layer);
            let failed = outcome.is_err();
            // Nobody listens any more once it was stopped.
            if say.send((index, outcome)).is_err() || failed {
                return;
            }
        }
    }

    fn download(&self, session: &mut Session<'_>, layer: &Descriptor) -> Result<(), ImageError> {
        let disk = || ImageError::store("keep a layer");
        let Some(mut partial) = self.blobs.begin(layer).map_err(disk())? else {
            self.bytes.fetch_add(layer.bytes, Ordering::Relaxed);
            return Ok(());
        };
        let earlier = partial.bytes();
        self.bytes.fetch_add(earlier, Ordering::Relaxed);
        let mut pauses = self.found.patience.pauses.iter();
        while partial.left() > 0 {
            let before = partial.bytes();
            match self.attempt(session, layer, &mut partial) {
                Ok(()) => {}
                Err(Trouble::Disk(error)) => return Err(disk()(error)),
                // As long as something comes it goes on, however often it stops.
                Err(Trouble::Request(Failed::Again(_))) if partial.bytes() > before => {
                    pauses = self.found.patience.pauses.iter();
                }
                Err(Trouble::Request(Failed::Again(why))) => match pauses.next() {
                    Some(pause) => std::thread::sleep(*pause),
                    None => return Err(self.found.registry.told(Failed::Again(why))),
                },
                Err(Trouble::Request(Failed::Missing)) => {
                    let why = format!("the registry has no layer `{}`", layer.digest);
                    return Err(self.found.registry.told(Failed::Never(why)));
                }
                Err(Trouble::Request(failed)) => return Err(self.found.registry.told(failed)),
            }
        }
        match partial.finish() {
            Ok(()) => {
                fault::point("image.layer.kept");
                Ok(())
            }
            Err(Wrong::Disk(error)) => Err(disk()(error)),
            // What an earlier pull left may have been damaged since: once from the start.
            Err(Wrong::Digest) if earlier > 0 => self.download(session, layer),
            Err(Wrong::Digest) => Err(lie(self.image, &format!("layer `{}`", layer.digest))),
        }
    }

    fn attempt(
        &self,
        session: &mut Session<'_>,
        layer: &Descriptor,
        partial: &mut Partial,
    ) -> Result<(), Trouble> {
        let again = |why: &str| Trouble::Request(Failed::Again(why.to_owned()));
        let mut response = session.blob(&layer.digest.to_string(), partial.bytes())?;
        match response.status() {
            StatusCode::PARTIAL_CONTENT if goes_on_at(&response, partial.bytes()) => {}
            StatusCode::OK => self.restart(partial)?,
            _ => {
                self.restart(partial)?;
                return Err(again("the registry went on at another place"));
            }
        }
        let mut body = response.body_mut().with_config().limit(u64::MAX).reader();
        let mut buffer = vec![0; COPY_BYTES];
        while partial.left() > 0 {
            if self.stop.load(Ordering::Relaxed) {
                return Err(Failed::Never("it was given up".to_owned()).into());
            } else if Instant::now() > self.deadline {
                return Err(Failed::Never("there was no more time".to_owned()).into());
            }
            let most = usize::try_from(partial.left()).unwrap_or(COPY_BYTES);
            let count = match body.read(&mut buffer[..most.min(COPY_BYTES)]) {
                Ok(0) => return Err(again("the connection broke: a layer ended too early")),
                Ok(count) => count,
                Err(error) => return Err(cut(&error).into()),
            };
            partial.add(&buffer[..count]).map_err(Trouble::Disk)?;
            self.bytes.fetch_add(count as u64, Ordering::Relaxed);
            fault::point("image.layer.partial");
        }
        Ok(())
    }

    fn restart(&self, partial: &mut Partial) -> Result<(), Trouble> {
        self.bytes.fetch_sub(partial.bytes(), Ordering::Relaxed);
        partial.restart().map_err(Trouble::Disk)
    }

    /// Says how far it is, until it is over.
    fn tell(&self, over: &Receiver<()>, making: &Making<'_>) {
        let layers = &self.found.manifest.layers;
        let all: u64 = layers.iter().map(|layer| layer.bytes).sum();
        let mut last = String::new();
        while over.recv_timeout(PROGRESS_EVERY) == Err(RecvTimeoutError::Timeout) {
            let line = format!(
                "{} of {}, {} of {} layers unpacked",
                megabytes(self.bytes.load(Ordering::Relaxed)),
                megabytes(all),
                self.unpacked.load(Ordering::Relaxed),
                layers.len()
            );
            if line != last {
                making.say.line(line.clone());
                last = line;
            }
        }
    }
}

/// What stopped a try.
enum Trouble {
    Request(Failed),
    Disk(std::io::Error),
}

impl From<Failed> for Trouble {
    fn from(failed: Failed) -> Self {
        Self::Request(failed)
    }
}

fn megabytes(bytes: u64) -> String {
    let tenths = bytes / 100_000;
    format!("{}.{} MB", tenths / 10, tenths % 10)
}

fn goes_on_at(response: &Response<Body>, byte: u64) -> bool {
    let range = response
        .headers()
        .get("content-range")
        .and_then(|value| value.to_str().ok());
    range.is_some_and(|range| range.starts_with(&format!("bytes {byte}-")))
}
