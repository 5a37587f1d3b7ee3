//! Copies between a box and a folder of ours: what both `cp` and `--here` do.
//!
//! Inside, `box-tool` packs and unpacks as the box's own user, so paths mean what they mean there.
//! Out here everything that comes was made by the box: it is unpacked beneath one open folder, its
//! links stay inside or are left out, and nothing of it is a device or runs as somebody else.

use crate::complaint::Complaint;
use crate::inside::{Inside, TOOL};
use crate::output::Output;
use crate::output::table::bytes;
use box_api::BoxName;
use box_copy::{BYTES_MAX, ENTRIES_MAX, FILE_ENTRY, Kind, Place, Slash, Source, There, place};
use box_runtime::unpack::{Policy, UnpackError, unpack};
use rustix::fs::{AtFlags, CWD, Mode, OFlags, mkdirat, open, openat, renameat, unlinkat};
use rustix::io::Errno;
use std::fs::File;
use std::io::{self, BufReader, BufWriter, Read, Write as _};
use std::os::fd::{AsFd as _, OwnedFd};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

const BUFFER_BYTES: usize = 256 << 10;
/// Progress is told no more often.
const TELL_EVERY: Duration = Duration::from_millis(500);
const FOLDER: OFlags = OFlags::RDONLY
    .union(OFlags::DIRECTORY)
    .union(OFlags::CLOEXEC);

/// How much went across.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize)]
pub(crate) struct Copied {
    pub(crate) entries: u64,
    /// Content of files.
    pub(crate) bytes: u64,
    /// What is no file, folder or link, and links that would lead out.
    pub(crate) left_out: u64,
}

/// A copy into a box.
#[derive(Debug)]
pub(crate) struct Outgoing<'a> {
    pub(crate) from: &'a Path,
    /// Last part of the source's path, empty when it has none.
    pub(crate) name: &'a str,
    /// What is in the folder, not the folder.
    pub(crate) content: bool,
    /// Inside.
    pub(crate) to: &'a str,
}

/// Sends a file or a folder of ours.
///
/// # Errors
/// When it cannot be read, or what the box said.
pub(crate) fn send(
    output: &mut Output,
    name: &BoxName,
    what: &Outgoing<'_>,
) -> Result<Copied, Complaint> {
    let kind = box_copy::kind_of(what.from).map_err(|error| unreadable(&error))?;
    let mut command = vec![TOOL, "unpack", what.to, what.name];
    command.extend(what.content.then_some("--content"));
    let mut inside = Inside::start(output, name, &command)?;
    let mut progress = Progress::new();
    let packed = match inside.stdin() {
        None => Ok(box_copy::Packed::default()),
        Some(stdin) => {
            let mut sink = BufWriter::with_capacity(BUFFER_BYTES, stdin);
            sink.write_all(&[kind.byte()])
                .map_err(box_copy::PackError::Write)
                .and_then(|()| {
                    box_copy::pack(what.from, None, sink, &mut |done| {
                        progress.tell(output, done.bytes);
                    })
                })
        }
    };
    let finished = inside.finish()?;
    let title = format!("could not copy to `{}` in box `{name}`", what.to);
    match packed {
        // It stopped reading, and says why.
        Err(box_copy::PackError::Write(_)) if finished.code != 0 => {}
        Err(error) => return Err(unreadable(&error)),
        Ok(_) => {}
    }
    finished.or_else("not-copied", &title)?;
    let packed = packed.unwrap_or_default();
    Ok(Copied {
        entries: packed.entries,
        bytes: packed.bytes,
        left_out: packed.left_out,
    })
}

fn unreadable(error: &box_copy::PackError) -> Complaint {
    let complaint = Complaint::failed("not-copied", error.to_string());
    match std::error::Error::source(error) {
        Some(cause) => complaint.caused_by(cause),
        None => complaint,
    }
}

/// A copy out of a box.
#[derive(Debug)]
pub(crate) struct Incoming<'a> {
    /// Inside.
    pub(crate) from: &'a str,
    pub(crate) to: &'a str,
}

/// Fetches a file or a folder of a box.
///
/// # Errors
/// When it cannot be put here, or what the box said.
pub(crate) fn fetch(
    output: &mut Output,
    name: &BoxName,
    what: &Incoming<'_>,
) -> Result<Copied, Complaint> {
    let mut inside = Inside::start(output, name, &[TOOL, "pack", what.from])?;
    let Some(stdout) = inside.stdout() else {
        return Ok(Copied::default());
    };
    let mut source = Counted {
        source: BufReader::with_capacity(BUFFER_BYTES, stdout),
        output,
        progress: Progress::new(),
        seen: 0,
    };
    let mut first = [0];
    let begins = source.read_exact(&mut first);
    let put = match begins.ok().and_then(|()| Kind::parse(first[0])) {
        Some(kind) => put(&mut source, kind, what),
        // It has nothing to send, and says why.
        None => Ok(Copied::default()),
    };
    drop(source);
    let title = format!("could not copy `{}` of box `{name}`", what.from);
    match put {
        Ok(copied) => {
            inside.finish()?.or_else("not-copied", &title)?;
            Ok(copied)
        }
        // An end in the middle has its reason in the box.
        Err(error @ NotPut::Cut(_)) => match inside.finish_soon() {
            Ok(finished) if finished.code != 0 => {
                let told = finished.or_else("not-copied", &title);
                told.map(|()| Copied::default())
            }
            Ok(_) | Err(_) => Err(error.told(title)),
        },
        // Leaving it ends it.
        Err(error) => Err(error.told(title)),
    }
}

/// Why what came was not put in its place.
enum NotPut {
    Place(box_copy::PlaceError),
    Here {
        path: PathBuf,
        source: io::Error,
    },
    /// It ended before its end.
    Cut(UnpackError),
    Archive(UnpackError),
    /// A file that came without its one entry.
    NoFile,
}

impl NotPut {
    fn here(path: &Path) -> impl FnOnce(Errno) -> Self {
        move |errno| Self::Here {
            path: path.to_owned(),
            source: errno.into(),
        }
    }

    fn told(self, title: String) -> Complaint {
        let complaint = Complaint::failed("not-copied", title);
        match self {
            Self::Place(error) => complaint.caused_by(error),
            Self::Here { path, source } => {
                complaint.caused_by(format!("`{}`: {source}", path.display()))
            }
            Self::Cut(error) | Self::Archive(error) => {
                let text = match std::error::Error::source(&error) {
                    Some(cause) => format!("{error}: {cause}"),
                    None => error.to_string(),
                };
                complaint.caused_by(text)
            }
            Self::NoFile => complaint.caused_by("the box sent something that is no file"),
        }
    }
}

fn put(source: &mut impl Read, kind: Kind, what: &Incoming<'_>) -> Result<Copied, NotPut> {
    let to = Path::new(what.to);
    let there = match std::fs::metadata(to) {
        Ok(about) if about.is_dir() => There::Folder,
        Ok(_) => There::File,
        Err(_) => There::Nothing,
    };
    let asked = Source {
        kind,
        name: box_copy::name_of(what.from),
        content: box_copy::means_content(what.from),
    };
    let place = place(there, Slash::of(what.to), asked).map_err(NotPut::Place)?;
    // A folder the caller named is the caller's; what lies in it may be from an earlier copy, and a
    // link among it is not followed.
    let (target, follow) = match place {
        Place::Itself => (to.to_owned(), OFlags::NOFOLLOW),
        Place::Inside(name) => (to.join(name), OFlags::NOFOLLOW),
        Place::Over => (to.to_owned(), OFlags::empty()),
    };
    match kind {
        Kind::Folder => {
            let folder = folder_at(&target, follow)?;
            unpacked(source, &folder, &Policy::COPY)
        }
        Kind::File => file_at(source, &target),
    }
}

fn folder_at(target: &Path, follow: OFlags) -> Result<OwnedFd, NotPut> {
    match mkdirat(CWD, target, Mode::from_raw_mode(0o777)) {
        Ok(()) | Err(Errno::EXIST) => {}
        Err(error) => return Err(NotPut::here(target)(error)),
    }
    open(target, FOLDER | follow, Mode::empty()).map_err(NotPut::here(target))
}

/// One file: whole beside its place, then into it. A link that has its name is replaced, not
/// followed.
fn file_at(source: &mut impl Read, target: &Path) -> Result<Copied, NotPut> {
    let parent = match target.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        Some(_) | None => Path::new("."),
    };
    let own = target.file_name().ok_or(NotPut::NoFile)?;
    let folder = open(parent, FOLDER, Mode::empty()).map_err(NotPut::here(parent))?;
    let staging = format!(".box-cp-{}", std::process::id());
    mkdirat(&folder, &*staging, Mode::RWXU).map_err(NotPut::here(parent))?;
    let done = openat(&folder, &*staging, FOLDER | OFlags::NOFOLLOW, Mode::empty())
        .map_err(NotPut::here(parent))
        .and_then(|staged| {
            let done = unpacked(source, &staged, &Policy::COPIED_FILE).and_then(|done| {
                let moved = renameat(&staged, FILE_ENTRY, &folder, own);
                moved.map(|()| done).map_err(|error| match error {
                    Errno::NOENT => NotPut::NoFile,
                    error => NotPut::here(target)(error),
                })
            });
            let _gone = unlinkat(&staged, FILE_ENTRY, AtFlags::empty());
            done
        });
    let _gone = unlinkat(&folder, &*staging, AtFlags::REMOVEDIR);
    done
}

fn unpacked(source: &mut impl Read, folder: &OwnedFd, policy: &Policy) -> Result<Copied, NotPut> {
    let done = unpack(source, folder.as_fd(), policy).map_err(|error| {
        if matches!(error, UnpackError::Damaged { .. }) {
            NotPut::Cut(error)
        } else {
            NotPut::Archive(error)
        }
    })?;
    Ok(Copied {
        entries: done.entries,
        bytes: done.bytes,
        left_out: done.left_out,
    })
}

/// Fetches a tar of what a path of a box names, as it comes.
///
/// # Errors
/// What the box said.
pub(crate) fn fetch_tar(output: &mut Output, name: &BoxName, from: &str) -> Result<(), Complaint> {
    let mut inside = Inside::start(output, name, &[TOOL, "pack", "--plain", from])?;
    let mut buffer = vec![0; BUFFER_BYTES];
    let mut total = 0_u64;
    if let Some(mut stdout) = inside.stdout() {
        while let Ok(count @ 1..) = stdout.read(&mut buffer) {
            total += count as u64;
            if total > BYTES_MAX {
                return Err(Complaint::failed(
                    "not-copied",
                    "the box sends more than 64 GiB",
                ));
            }
            output.data(&buffer[..count])?;
        }
    }
    let title = format!("could not copy `{from}` of box `{name}`");
    inside.finish()?.or_else("not-copied", &title)
}

/// Sends a tar from standard input, to be unpacked below a folder of the box.
///
/// # Errors
/// What the box said.
pub(crate) fn send_tar(output: &mut Output, name: &BoxName, to: &str) -> Result<(), Complaint> {
    let mut inside = Inside::start(output, name, &[TOOL, "unpack", "--plain", to])?;
    if let Some(stdin) = inside.stdin() {
        let mut sink = File::from(OwnedFd::from(stdin));
        // A box that takes no more says why at its end.
        drop(io::copy(&mut io::stdin().lock(), &mut sink));
    }
    let title = format!("could not unpack to `{to}` in box `{name}`");
    inside.finish()?.or_else("not-copied", &title)
}

/// Tells now and then how much it is.
#[derive(Debug)]
struct Progress {
    next: Instant,
}

impl Progress {
    fn new() -> Self {
        Self {
            next: Instant::now() + TELL_EVERY,
        }
    }

    fn tell(&mut self, output: &mut Output, count: u64) {
        let now = Instant::now();
        if now >= self.next {
            self.next = now + TELL_EVERY;
            output.progress(&format!("copied {}", bytes(count)));
        }
    }
}

/// A source that tells how much came out of it.
struct Counted<'o, R> {
    source: R,
    output: &'o mut Output,
    progress: Progress,
    seen: u64,
}

impl<R: Read> Read for Counted<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.source.read(buffer)?;
        self.seen += count as u64;
        self.progress.tell(self.output, self.seen);
        Ok(count)
    }
}

const _: () =
    assert!(Policy::COPY.entries_max == ENTRIES_MAX && Policy::COPY.bytes_max == BYTES_MAX);
