//! `box uninstall`: takes everything away again, and looks whether it is gone.

use super::Ended;
use super::confirm::{self, Answer, Question};
use super::install::list::List;
use super::install::{Place, layout::Layout, remove_file, unit};
use super::serve;
use crate::client::unexpected;
use crate::complaint::Complaint;
use crate::host::{self, OtherBuild};
use crate::output::{Format, Output};
use crate::terminal;
use box_api::control::{
    KeepWorkspace, Outcome, PruneDepth, Removal, Remove, Request, Target, Trash, Unpushed,
};
use box_runtime_native::rootless;
use box_server::paths::Paths;
use rustix::mount::UnmountFlags;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Take this program away, with its boxes and all it keeps
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  sudo box uninstall\n  box uninstall --keep-data\n  \
    box uninstall --force\n\n\
    Asks first. Without a terminal it needs --force (else exit code 2). Stops boxes, host and way out,\n\
    removes boxes, images, settings and logs, then the program itself. Exit code 1: something stayed,\n\
    and is named."
)]
pub(super) struct Args {
    /// Do not ask
    #[arg(long, short)]
    force: bool,
    /// Keep boxes, images, settings and logs
    #[arg(long)]
    keep_data: bool,
    #[command(flatten)]
    place: Place,
}

/// Names in the data folder that are ours; whatever else lies there stays and is told.
const OF_DATA: [&str; 18] = [
    "agents",
    "blobs",
    "box.db",
    "box.db-shm",
    "box.db-wal",
    "boxes",
    "ca",
    "ids",
    "images",
    "lock",
    "log",
    "logs",
    "placed",
    "programs",
    "snapshots",
    "store",
    "tmp",
    "VERSION",
];
/// And what begins so.
const DATA_PREFIXES: [&str; 2] = ["drill-", "store.btrfs"];
const DRILL: &str = "drill-";

pub(super) fn run(args: &Args) -> Ended {
    let output = &mut Output::new(Format::Text);
    let layout = args.place.layout()?;
    // Below another root there is only what was put there; nothing of it runs.
    let paths = args.place.is_here().then(host::paths).transpose()?;
    if !args.force && !agreed(output, args, &layout, paths.as_ref())? {
        output.note("nothing was removed");
        return Ok(1);
    }
    let mut left = Vec::new();
    if let Some(paths) = &paths {
        if args.place.is_usual() && unit::has_manager() && layout.unit().exists() {
            // Gone already, or never enabled: what matters is that the file goes.
            drop(unit::systemctl(
                layout.scope,
                &["disable", "--now", unit::NAME],
            ));
        }
        end(output, args, paths)?;
        if !args.keep_data {
            output.progress("removing boxes, images, settings and logs");
            left.extend(remove_data(paths)?);
        }
        left.extend(remove_run(paths));
    }
    output.progress("removing the program");
    left.extend(remove_program(&layout)?);
    if args.place.is_usual() && unit::has_manager() {
        drop(unit::systemctl(layout.scope, &["daemon-reload"]));
    }
    if left.is_empty() {
        output.note("box is gone");
        return Ok(0);
    }
    for path in &left {
        output.note(&format!("still there: {}", path.display()));
    }
    Err(
        Complaint::failed("left-overs", "something stayed, it is not ours or in use")
            .hinted("remove it by hand if you do not need it"),
    )
}

fn agreed(
    output: &mut Output,
    args: &Args,
    layout: &Layout,
    paths: Option<&Paths>,
) -> Result<bool, Complaint> {
    let program = layout.on_disk(&layout.program());
    let mut what = format!("`{}`", program.display());
    if let Some(paths) = paths.filter(|paths| !args.keep_data && paths.data.exists()) {
        let boxes = boxes(output, paths)?;
        what = format!("{what} and all of `{}`", paths.data.display());
        if !boxes.is_empty() {
            what = format!("{what} with the boxes `{}`", boxes.join("`, `"));
        }
    }
    if !terminal::can_ask() {
        return Err(
            Complaint::usage("needs-yes", format!("removing {what} needs a yes"))
                .caused_by("there is no terminal to ask at")
                .hinted("`box uninstall --force` does not ask"),
        );
    }
    let question = Question {
        text: &format!("remove {what}"),
        default: Answer::No,
    };
    Ok(confirm::ask(output, &question)? == Answer::Yes)
}

fn boxes(output: &mut Output, paths: &Paths) -> Result<Vec<String>, Complaint> {
    if !paths.database().exists() {
        return Ok(Vec::new());
    }
    let outcome = host::reach(output, OtherBuild::Bear)?.ask(output, &Request::List)?;
    let Outcome::Boxes { boxes } = outcome else {
        return Err(unexpected(&outcome));
    };
    Ok(boxes.iter().map(|one| one.name.to_string()).collect())
}

/// Nothing of it runs any more. Boxes are removed by who made them: only the engine knows what there
/// is of them.
fn end(output: &mut Output, args: &Args, paths: &Paths) -> Result<(), Complaint> {
    if paths.database().exists() && !args.keep_data {
        output.progress("removing boxes");
        let remove = Request::Remove(Remove {
            target: Target::All,
            how: Removal::Now,
            workspace: KeepWorkspace::No,
            unpushed: Unpushed::Ignore,
        });
        let empty = Trash::Prune {
            depth: PruneDepth::All,
        };
        host::reach(output, OtherBuild::Replace)?.ask(output, &remove)?;
        host::reach(output, OtherBuild::Bear)?.ask(output, &Request::Trash(empty))?;
    }
    output.progress("stopping boxes, host and way out");
    serve::stop_everything(output, paths)
}

/// What stayed.
fn remove_data(paths: &Paths) -> Result<Vec<PathBuf>, Complaint> {
    // Files of an ordinary user's boxes belong to its subordinate ids.
    rootless::enter(&paths.run).map_err(|error| {
        Complaint::engine("uninstall", "could not get at the files of boxes").caused_by(error)
    })?;
    for point in box_drill::mounts_below(&paths.data).unwrap_or_default() {
        rustix::mount::unmount(&point, UnmountFlags::DETACH).map_err(|errno| {
            let title = format!("could not unmount `{}`", point.display());
            Complaint::failed("uninstall", title).caused_by(errno)
        })?;
    }
    // A folder without it was never a host's, whatever its name says.
    if paths.version_file().exists() {
        for entry in fs::read_dir(&paths.data).into_iter().flatten().flatten() {
            let name = entry.file_name();
            let name = name.to_string_lossy();
            let is_ours = OF_DATA.contains(&&*name)
                || DATA_PREFIXES.iter().any(|prefix| name.starts_with(prefix));
            if is_ours && !is_held(&entry.path()) {
                remove_tree(&entry.path());
            }
        }
    }
    drop(remove_file(&paths.config));
    remove_logs(&paths.log);
    let mut left = Vec::new();
    for folder in [&paths.data, &paths.log] {
        left.extend(remove_if_empty(folder));
    }
    // Other people's settings may lie beside ours.
    drop(paths.config.parent().map(fs::remove_dir));
    Ok(left)
}

/// A drill that runs is somebody's.
fn is_held(path: &Path) -> bool {
    let is_drill = path
        .file_name()
        .is_some_and(|name| name.to_string_lossy().starts_with(DRILL));
    is_drill
        && fs::File::open(path.join("lock")).is_ok_and(|lock| {
            let operation = rustix::fs::FlockOperation::NonBlockingLockExclusive;
            rustix::fs::flock(&lock, operation).is_err()
        })
}

/// What cannot be removed shows when the folder above is not empty.
fn remove_tree(path: &Path) {
    drop(match fs::symlink_metadata(path) {
        Ok(about) if about.is_dir() => fs::remove_dir_all(path),
        Ok(_) | Err(_) => remove_file(path),
    });
}

fn remove_logs(folder: &Path) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let name = name.to_string_lossy();
        if ["host.log", "egress.log", "serve.stderr"]
            .iter()
            .any(|ours| name.starts_with(ours))
        {
            drop(remove_file(&entry.path()));
        }
    }
}

/// What a host that does not run has in its run folder.
fn remove_run(paths: &Paths) -> Vec<PathBuf> {
    for entry in fs::read_dir(&paths.run).into_iter().flatten().flatten() {
        remove_tree(&entry.path());
    }
    remove_if_empty(&paths.run)
}

/// The files of the list, then the folders that were made for them.
fn remove_program(layout: &Layout) -> Result<Vec<PathBuf>, Complaint> {
    let file = layout.on_disk(&layout.list());
    let failed = |place: &Path, error: io::Error| {
        let title = format!("could not remove `{}`", place.display());
        Complaint::failed("uninstall", title)
            .caused_by(error)
            .hinted("`sudo box uninstall`")
    };
    let list = List::read(&file).map_err(|error| failed(&file, error))?;
    for path in list.files() {
        let place = layout.on_disk(path);
        remove_file(&place).map_err(|error| failed(&place, error))?;
    }
    for folder in list.folders() {
        // Somebody else has put something there: then it is not ours alone.
        drop(fs::remove_dir(layout.on_disk(folder)));
    }
    let files = list.files().iter().map(|path| layout.on_disk(path));
    Ok(files.filter(|place| place.exists()).collect())
}

/// The folder's content, or the folder, when it is still there.
fn remove_if_empty(folder: &Path) -> Vec<PathBuf> {
    match fs::remove_dir(folder) {
        Ok(()) => Vec::new(),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
        Err(_) => {
            let entries = fs::read_dir(folder).into_iter().flatten().flatten();
            let left: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
            if left.is_empty() {
                vec![folder.to_owned()]
            } else {
                left
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_ours_stays_and_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let paths = Paths::below(folder.path()).unwrap();
        fs::create_dir_all(paths.data.join("boxes/x")).unwrap();
        fs::write(paths.version_file(), "1\n").unwrap();
        fs::write(paths.data.join("diary"), "mine").unwrap();
        assert_eq!(remove_data(&paths).unwrap(), [paths.data.join("diary")]);
        assert!(!paths.data.join("boxes").exists());
    }

    #[test]
    fn a_folder_that_was_never_a_hosts_is_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let paths = Paths::below(folder.path()).unwrap();
        fs::create_dir_all(paths.data.join("images")).unwrap();
        let left = remove_data(&paths).unwrap();
        assert_eq!(left.len(), 1, "{left:?}");
        assert!(paths.data.join("images").exists());
    }
}
