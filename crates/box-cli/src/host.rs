//! Finds the host this user talks to, or starts one.
//!
//! `BOX_RUN_DIR` decides alone; else the user's own host, else the machine's (`/run/box`), else one
//! is started.

pub(crate) mod launch;
pub(crate) mod replace;
pub(crate) mod way_out;

use crate::client::Client;
use crate::complaint::Complaint;
use crate::identity;
use crate::output::{Ink, Output};
use box_api::PROTOCOL;
use box_server::paths::Paths;
use std::ffi::OsString;
use std::io::ErrorKind;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::os::unix::net::UnixStream;
use std::path::Path;

/// What to do about a host of another build.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OtherBuild {
    /// Work with it if it speaks the same protocol.
    Bear,
    /// Stop it and start this build; turns go on.
    Replace,
}

/// A host ready for a request; started if there was none.
///
/// # Errors
/// When none could be reached or started, or it speaks another protocol.
pub(crate) fn reach(output: &mut Output, other: OtherBuild) -> Result<Client, Complaint> {
    let paths = paths()?;
    let Some(client) = find_at(&paths)? else {
        return start(output, &paths);
    };
    let same_build = client.welcome.build == identity::build();
    match other {
        _ if same_build => Ok(client),
        OtherBuild::Bear => bear(output, client),
        OtherBuild::Replace => {
            output.progress("replacing the host of another build; turns go on");
            replace::stop(client)?;
            start(output, &paths)
        }
    }
}

/// The host that runs, if one does. Starts none and takes any build.
///
/// # Errors
/// When something listens but cannot be talked to.
pub(crate) fn find() -> Result<Option<Client>, Complaint> {
    find_at(&paths()?)
}

/// The places of this user's own host.
///
/// # Errors
/// When the environment names none, or one that cannot be used.
pub(crate) fn paths() -> Result<Paths, Complaint> {
    let uid = rustix::process::geteuid().as_raw();
    Paths::of_user(uid, &variable).map_err(|error| {
        Complaint::usage("no-place", "could not tell where the host keeps its things")
            .caused_by(error)
            .hinted("set `BOX_DATA_DIR` and `BOX_RUN_DIR` to absolute, short paths")
    })
}

fn variable(name: &str) -> Option<OsString> {
    std::env::var_os(name)
}

fn find_at(own: &Paths) -> Result<Option<Client>, Complaint> {
    let client = connect(&own.control_socket())?;
    let overridden = variable("BOX_RUN_DIR").is_some_and(|value| !value.is_empty());
    let system = Paths::system();
    let client = match client {
        None if !overridden && system.run != own.run => connect(&system.control_socket())?,
        found => found,
    };
    client.map_or(Ok(None), |client| right_data(own, client).map(Some))
}

/// A person who names a data folder must not be answered out of another one.
fn right_data(own: &Paths, client: Client) -> Result<Client, Complaint> {
    let named = variable("BOX_DATA_DIR").is_some_and(|value| !value.is_empty());
    if named && Path::new(&client.welcome.data_dir) != own.data {
        let title = format!(
            "the host here uses the data folder `{}`",
            client.welcome.data_dir
        );
        return Err(Complaint::usage("other-data", title)
            .caused_by(format!("`BOX_DATA_DIR` says `{}`", own.data.display()))
            .hinted("set `BOX_RUN_DIR` as well, so that the two hosts do not meet"));
    }
    Ok(client)
}

/// A greeted connection, or none when nobody listens.
fn connect(socket: &Path) -> Result<Option<Client>, Complaint> {
    let could_not = || {
        Complaint::engine(
            "host-unreachable",
            format!("could not reach the host at `{}`", socket.display()),
        )
    };
    match UnixStream::connect(socket) {
        Ok(stream) => {
            vet(socket)?;
            match Client::greet(stream) {
                Ok(client) => Ok(Some(client)),
                // It was ending as we came.
                Err(error) if error.is_gone() => Ok(None),
                Err(error) => Err(could_not().caused_by(error)),
            }
        }
        Err(error) if nobody_listens(error.kind()) => Ok(None),
        Err(error) if error.kind() == ErrorKind::PermissionDenied => Err(could_not()
            .caused_by(error)
            .hinted("that host belongs to another user; `sudo box …` reaches root's")),
        Err(error) => Err(could_not().caused_by(error)),
    }
}

fn nobody_listens(kind: ErrorKind) -> bool {
    matches!(kind, ErrorKind::NotFound | ErrorKind::ConnectionRefused)
}

/// In a folder others can write to, somebody else may wait for our secrets.
fn vet(socket: &Path) -> Result<(), Complaint> {
    let Some(folder) = socket.parent() else {
        return Ok(());
    };
    let suspicious = |cause: String| {
        Complaint::engine(
            "host-suspicious",
            format!("will not talk to the host in `{}`", folder.display()),
        )
        .caused_by(cause)
        .hinted("remove the folder, or set `BOX_RUN_DIR` to one of your own")
    };
    let about = std::fs::metadata(folder).map_err(|error| suspicious(error.to_string()))?;
    let own = rustix::process::geteuid().as_raw();
    if about.uid() != own && about.uid() != 0 {
        return Err(suspicious(format!(
            "the folder belongs to user {}",
            about.uid()
        )));
    }
    if about.permissions().mode() & 0o022 != 0 {
        return Err(suspicious("other users can write to the folder".to_owned()));
    }
    Ok(())
}

fn start(output: &mut Output, paths: &Paths) -> Result<Client, Complaint> {
    output.progress("starting the host");
    // Two commands at once start one host: the second waits here and then finds the first's.
    let _turn = launch::take_turn(paths)?;
    if let Some(client) = find_at(paths)? {
        return Ok(client);
    }
    launch::launch(paths)?;
    find_at(paths)?.ok_or_else(|| {
        Complaint::engine("host-lost", "the host was ready and is gone again").hinted(format!(
            "its last words are in `{}`",
            launch::last_words(paths).display()
        ))
    })
}

fn bear(output: &mut Output, client: Client) -> Result<Client, Complaint> {
    let (theirs, ours) = (client.welcome.protocol, PROTOCOL);
    if theirs != ours {
        let title = format!("the host speaks protocol {theirs}, this `box` speaks {ours}");
        return Err(Complaint::engine("other-protocol", title)
            .hinted("`box up` replaces the host; boxes and turns go on"));
    }
    let note = format!(
        "the host is another build ({}); `box up` replaces it, boxes and turns go on",
        client.welcome.build
    );
    let note = output.err_paint().with(Ink::Dim, &note);
    output.note(&note);
    Ok(client)
}
