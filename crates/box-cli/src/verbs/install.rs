//! `box install`: this program where shells look for programs, with a unit, completions and a manual.

pub(super) mod layout;
pub(super) mod list;
pub(super) mod unit;

use super::Ended;
use super::confirm::{self, Answer, Question};
use crate::complaint::Complaint;
use crate::host::{self, replace};
use crate::identity::{self, OWN_EXECUTABLE};
use crate::output::{Format, Output};
use crate::terminal;
use layout::{Content, Item, Layout, Scope};
use list::List;
use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

/// Install this program, with a service, completions and a manual
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  sudo box install\n  box install --yes\n  \
    box install --root ./package\n\n\
    As root below /usr/local, for a user below ~/.local. `box uninstall` takes all of it away again.\n\
    Asks first; without a terminal or with --yes it installs and says so.")]
pub(super) struct Args {
    /// Do not ask
    #[arg(long, short)]
    yes: bool,
    #[command(flatten)]
    place: Place,
    /// Do not start the host by the service
    #[arg(long)]
    no_start: bool,
}

/// Where it goes, or went.
#[derive(Debug, clap::Args)]
pub(super) struct Place {
    /// Below another folder than /usr/local or ~/.local; nothing is started then
    #[arg(long, value_name = "FOLDER")]
    prefix: Option<PathBuf>,
    /// As if this folder were the whole machine, as packagers want it; nothing is started then
    #[arg(long, value_name = "FOLDER")]
    root: Option<PathBuf>,
}

impl Place {
    /// # Errors
    /// A folder that cannot be named from `/`, or no home.
    pub(super) fn layout(&self) -> Result<Layout, Complaint> {
        let scope = if rustix::process::geteuid().is_root() {
            Scope::Machine
        } else {
            Scope::User
        };
        let whole = |folder: &Path| {
            std::path::absolute(folder).map_err(|error| {
                let title = format!("`{}` is no folder", folder.display());
                Complaint::usage("no-place", title).caused_by(error)
            })
        };
        let prefix = self.prefix.as_deref().map(whole).transpose()?;
        let root = self.root.as_deref().map(whole).transpose()?;
        let home = match (scope, std::env::var_os("HOME")) {
            (Scope::Machine, home) => home.map(PathBuf::from).unwrap_or_default(),
            (Scope::User, Some(home)) if Path::new(&home).is_absolute() => home.into(),
            (Scope::User, _) => {
                return Err(Complaint::usage("no-place", "`HOME` names no folder")
                    .hinted("name one with `--prefix`"));
            }
        };
        let root = root.unwrap_or_else(|| PathBuf::from("/"));
        Ok(Layout::new(scope, &root, prefix.as_deref(), &home))
    }

    /// Whether it goes onto this machine, and not into a package.
    pub(super) fn is_here(&self) -> bool {
        self.root.is_none()
    }

    /// Whether it is this machine's own, and not a package or a trial.
    pub(super) fn is_usual(&self) -> bool {
        self.prefix.is_none() && self.root.is_none()
    }
}

pub(super) fn run(args: &Args) -> Ended {
    let output = &mut Output::new(Format::Text);
    let layout = args.place.layout()?;
    let program = layout.on_disk(&layout.program());
    let starts = args.place.is_usual() && !args.no_start && unit::has_manager();
    if !args.yes && terminal::can_ask() {
        let then = if starts {
            ", and start the host with the machine"
        } else {
            ""
        };
        let question = Question {
            text: &format!(
                "install box {} as `{}`{then}",
                identity::VERSION,
                program.display()
            ),
            default: Answer::Yes,
        };
        if confirm::ask(output, &question)? == Answer::No {
            output.note("nothing was installed");
            return Ok(1);
        }
    }
    let count = put(&layout)?;
    output.note(&format!(
        "{count} files are installed, `{}` among them",
        program.display()
    ));
    if starts {
        start(output, layout.scope)?;
    } else if args.place.is_usual() && !args.no_start {
        output.note("no systemd here: the first verb starts the host");
    }
    say_what_is_next(output, &layout);
    Ok(0)
}

/// Writes every file and the list of them.
fn put(layout: &Layout) -> Result<usize, Complaint> {
    let items = layout.items().map_err(|error| {
        Complaint::failed("install", "could not make the manual").caused_by(error)
    })?;
    let file = layout.on_disk(&layout.list());
    let mut list = List::read(&file).map_err(|error| failed(&file, error))?;
    let before = list.files().to_vec();
    list.begin();
    for item in &items {
        let place = layout.on_disk(&item.path);
        put_one(layout, item, &mut list).map_err(|error| failed(&place, error))?;
    }
    list.add_file(&layout.list());
    make_folders(layout, &layout.list(), &mut list).map_err(|error| failed(&file, error))?;
    // What an older version had and this one has not.
    for path in before.iter().filter(|path| !list.files().contains(path)) {
        let place = layout.on_disk(path);
        remove_file(&place).map_err(|error| failed(&place, error))?;
    }
    write(&file, list.text(&identity::build()).as_bytes(), 0o644)
        .map_err(|error| failed(&file, error))?;
    Ok(items.len())
}

fn failed(place: &Path, error: io::Error) -> Complaint {
    let title = format!("could not install `{}`", place.display());
    let complaint = Complaint::failed("install", title);
    let is_denied = error.kind() == io::ErrorKind::PermissionDenied;
    let complaint = complaint.caused_by(error);
    if is_denied {
        complaint.hinted("`sudo box install`, or another folder with `--prefix`")
    } else {
        complaint
    }
}

fn put_one(layout: &Layout, item: &Item, list: &mut List) -> io::Result<()> {
    make_folders(layout, &item.path, list)?;
    let place = layout.on_disk(&item.path);
    match &item.content {
        Content::Program => {
            let program = fs::read(OWN_EXECUTABLE)?;
            write(&place, &program, 0o755)?;
        }
        Content::Text(text) => write(&place, text, 0o644)?,
    }
    list.add_file(&item.path);
    Ok(())
}

/// The folders above a file; those that were not there are remembered.
fn make_folders(layout: &Layout, path: &Path, list: &mut List) -> io::Result<()> {
    fs::create_dir_all(&layout.root)?;
    let above = path.ancestors().skip(1);
    let missing: Vec<&Path> = above
        .take_while(|folder| !layout.on_disk(folder).is_dir())
        .collect();
    for folder in missing.into_iter().rev() {
        fs::create_dir(layout.on_disk(folder))?;
        list.add_folder(folder);
    }
    Ok(())
}

/// In one step, also over a program that runs.
fn write(place: &Path, bytes: &[u8], mode: u32) -> io::Result<()> {
    let folder = place.parent().unwrap_or(Path::new("/"));
    let mut file = tempfile::NamedTempFile::new_in(folder)?;
    io::Write::write_all(&mut file, bytes)?;
    fs::set_permissions(file.path(), fs::Permissions::from_mode(mode))?;
    file.persist(place).map(drop).map_err(|error| error.error)
}

/// Gone already is gone.
pub(super) fn remove_file(place: &Path) -> io::Result<()> {
    match fs::remove_file(place) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        Ok(()) | Err(_) => Ok(()),
    }
}

/// A host that runs makes room first; boxes and turns go on.
fn start(output: &mut Output, scope: Scope) -> Result<(), Complaint> {
    unit::systemctl(scope, &["daemon-reload"])?;
    if let Some(client) = host::find()? {
        output.progress("replacing the host; boxes and turns go on");
        replace::stop(client)?;
    }
    unit::systemctl(scope, &["enable", unit::NAME])?;
    unit::systemctl(scope, &["restart", unit::NAME])?;
    output.note("the host runs, and starts with the machine");
    if scope == Scope::User {
        output.note("hint: `loginctl enable-linger` keeps it when you log out");
    }
    Ok(())
}

fn say_what_is_next(output: &mut Output, layout: &Layout) {
    let program = layout.program();
    let path = std::env::var_os("PATH").unwrap_or_default();
    let is_found = std::env::split_paths(&path).any(|folder| Some(&*folder) == program.parent());
    if !is_found && layout.root == Path::new("/") {
        let folder = program.parent().unwrap_or(Path::new("/"));
        output.note(&format!("hint: put `{}` into your PATH", folder.display()));
    }
}
