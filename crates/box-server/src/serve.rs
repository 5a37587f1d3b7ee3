//! The host process: open → listen → make rows and engines agree → serve → end.

use crate::control::{self, Door};
use crate::http;
use crate::listen::listen;
use crate::log::Log;
use crate::problem;
use box_api::{BoxId, Problem};
use box_core::clock::SystemClock;
use box_core::egress::Program;
use box_core::host::{Host, Runtimes};
use box_core::open::{Opening, open};
use box_core::paths::Paths;
use box_core::policy::Machine;
use box_core::random::SystemRandom;
use box_core::settings::Environment;
use box_core::settings::page::Listen;
use box_core::sign_ins::Place;
use box_core::thread::Threads;
use box_core::{boxes, expose, lifecycle, processes, reconcile};
use std::ffi::OsString;
use std::sync::Arc;
use tokio::net::UnixListener;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::{Semaphore, mpsc, watch};
use tokio::task::JoinSet;

/// Clients served at once; further ones wait to be accepted.
const CONNECTIONS_MAX: usize = 256;

/// What the host process is started with.
#[derive(Debug)]
pub struct ServeOptions {
    pub paths: Paths,
    pub runtimes: Runtimes,
    /// How box-egress is started.
    pub egress: Program,
    /// Which build this is, as greetings show it.
    pub build: String,
    /// The user the host runs as, as the machine numbers users.
    pub uid: u32,
    /// What the machine calls a user whom the kernel reports to this process by a number: another
    /// one where the host is in a user namespace of its own.
    pub outside: fn(u32) -> u32,
    /// Where the page listens; absent: where the settings say.
    pub page: Option<Listen>,
}

/// Is the host until somebody stops it: a client with `StopHost`, or SIGTERM, or SIGINT. Boxes,
/// agents and box-egress go on. `ready` is called once clients can connect.
///
/// # Errors
/// A problem as a person reads it: the folders are in use, the settings are wrong, ….
pub async fn run(options: ServeOptions, ready: impl FnOnce(&Place) + Send) -> Result<(), Problem> {
    let ServeOptions {
        paths,
        runtimes,
        egress,
        build,
        uid,
        outside,
        page,
    } = options;
    let control_socket = paths.control_socket();
    let log_dir = paths.log.clone();
    let variable = |name: &str| -> Option<OsString> { std::env::var_os(name) };
    let opening = Opening {
        paths,
        machine: Machine::here(&variable),
        environment: Environment::here(&variable),
        clock: Arc::new(SystemClock),
        random: Arc::new(SystemRandom),
        build,
        uid,
        pid: std::process::id(),
    };
    let opened = tokio::task::spawn_blocking(move || open(opening, runtimes)).await;
    let opened = opened.map_err(problem::ending)?.map_err(problem::open)?;
    // Only now: before, the folder could have been another host's.
    let log = Log::start(&log_dir).map_err(|error| problem::log(&log_dir, &error))?;
    let listener = listen(&control_socket, uid).map_err(problem::listen)?;
    let (host, gone) = opened.with_egress(egress);
    let listening = http::listen(page, host.settings.page.listen.value).await?;
    tracing::info!(place = ?listening.place, "the page");
    host.sign_ins.set_place(listening.place.clone());
    tracing::info!(
        pid = std::process::id(),
        build = host.build,
        "the host listens"
    );
    ready(&listening.place);

    let door = Door::new(Arc::clone(&host), outside);
    let mut tasks = JoinSet::new();
    let web = tokio::spawn(http::serve(door.clone(), listening));
    tasks.spawn(watch_gone(Arc::clone(&host), gone));
    tasks.spawn(settle_in(Arc::clone(&host), door.opener()));
    let ended = serve(&listener, &door, &mut tasks).await;
    // A client that comes now finds nobody and starts the next host.
    drop(listener);
    drop(std::fs::remove_file(&control_socket));
    door.stop.send_replace(true);
    if let Err(error) = web.await {
        tracing::error!(%error, "the page ended badly");
    }
    tasks.shutdown().await;
    tracing::info!(why = ended, "the host ends; boxes go on");
    log.flush();
    Ok(())
}

/// What an earlier host left is put right before anybody's request is carried out.
async fn settle_in(host: Arc<Host>, opener: watch::Sender<control::Settled>) {
    match reconcile::reconcile_once(&host).await {
        Ok(report) => tracing::info!(?report, "rows and engines agree"),
        Err(error) => tracing::error!(why = boxes::reason(&error), "rows and engines may differ"),
    }
    match lifecycle::finish_restores(&host).await {
        Ok(restores) => tracing::info!(restores, "restores are carried through"),
        Err(error) => tracing::error!(why = boxes::reason(&error), "restores are half done"),
    }
    match Threads::resume(&host).await {
        Ok(threads) => tracing::info!(threads, "threads are taken up"),
        Err(error) => tracing::error!(why = boxes::reason(&error), "threads are not taken up"),
    }
    match processes::resume(&host).await {
        Ok(processes) => tracing::info!(processes, "detached processes are taken up"),
        Err(error) => tracing::error!(why = boxes::reason(&error), "processes are not taken up"),
    }
    match expose::resume(&host).await {
        Ok(ports) => tracing::info!(ports, "ports of boxes are shown again"),
        Err(error) => tracing::error!(why = boxes::reason(&error), "ports are not shown again"),
    }
    opener.send_replace(control::Settled::Yes);
    // For as long as the host lives: before, rows and engines may have differed.
    tokio::join!(
        box_core::watch::run(Arc::clone(&host)),
        box_core::watch::disk(Arc::clone(&host)),
        box_core::network::signals::run(Arc::clone(&host)),
        box_core::credentials::run(Arc::clone(&host)),
        box_core::parking::run(Arc::clone(&host)),
        box_core::pool::run(Arc::clone(&host)),
        box_core::budget::run(Arc::clone(&host)),
        box_core::push::run(Arc::clone(&host)),
        box_core::restore_points::watch(Arc::clone(&host)),
        box_core::search::catch_up(&host),
        lifecycle::watch_trash(Arc::clone(&host))
    );
}

/// Boxes that end by themselves are stopped in their rows too.
async fn watch_gone(host: Arc<Host>, mut gone: mpsc::Receiver<BoxId>) {
    while let Some(id) = gone.recv().await {
        if let Err(error) = reconcile::box_ended(&host, id).await {
            tracing::error!(%id, why = boxes::reason(&error), "the end of a box was not noted");
        }
    }
}

/// Accepts until the host is to end; says why it is.
async fn serve(listener: &UnixListener, door: &Door, tasks: &mut JoinSet<()>) -> &'static str {
    let mut stop = door.stop.subscribe();
    let (Ok(mut terminate), Ok(mut interrupt)) = (
        signal(SignalKind::terminate()),
        signal(SignalKind::interrupt()),
    ) else {
        return "signals cannot be heard";
    };
    let room = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    loop {
        while tasks.try_join_next().is_some() {}
        let accepted = async {
            let permit = Arc::clone(&room).acquire_owned().await;
            (listener.accept().await, permit)
        };
        tokio::select! {
            (accepted, permit) = accepted => match accepted {
                Ok((stream, _)) => {
                    let door = door.clone();
                    tasks.spawn(async move {
                        control::serve(&door, stream).await;
                        drop(permit);
                    });
                }
                // Too many open files, mostly: others get in when one has left.
                Err(error) => {
                    tracing::warn!(%error, "a client was not let in");
                    tokio::time::sleep(std::time::Duration::from_millis(50)).await;
                }
            },
            () = control::told_to_stop(&mut stop) => return "a client said so",
            _ = terminate.recv() => return "SIGTERM",
            _ = interrupt.recv() => return "SIGINT",
        }
    }
}
