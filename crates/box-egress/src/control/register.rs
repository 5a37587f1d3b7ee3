//! `Register`: a box's sockets come, its task begins.

use super::Keeper;
use super::boxes::{Held, check_policy};
use super::credentials::check_binding;
use crate::context::{BoxContext, Counters, Views};
use crate::grants::Grants;
use crate::intercept::login::desk::Desk;
use crate::listen::{BoxListeners, BoxTask, Gone, mailbox};
use crate::policy::Settings;
use crate::socket::watched;
use box_api::BoxId;
use box_api::egress::{Answer, BINDINGS_MAX, Binding, Listeners, Registration};
use rustix::net::{SocketType, sockopt};
use std::io;
use std::net::{TcpListener as StdTcpListener, UdpSocket as StdUdpSocket};
use std::os::fd::OwnedFd;
use std::sync::Arc;
use tokio::io::Interest;
use tokio::net::{TcpListener, UdpSocket};
use tokio::sync::watch;
use tokio::task::JoinHandle;

fn check_count(bindings: &[Binding]) -> Result<(), String> {
    if bindings.len() > BINDINGS_MAX {
        return Err(format!(
            "a box has no more than {BINDINGS_MAX} placeholders"
        ));
    }
    Ok(())
}

impl Keeper {
    pub(super) async fn register(
        &mut self,
        registration: Registration,
        descriptors: Vec<OwnedFd>,
    ) -> Result<Answer, String> {
        let Registration {
            box_id,
            policy,
            bindings,
            map,
            logins,
            listeners,
        } = registration;
        check_descriptors(listeners, descriptors.len())?;
        check_policy(&policy)?;
        check_count(&bindings)?;
        let listeners = take_over(descriptors)
            .map_err(|error| format!("could not take over the sockets of box {box_id}: {error}"))?;
        for (at, binding) in bindings.iter().enumerate() {
            self.check_placeholder_is_free(&box_id, binding)?;
            check_binding(binding, &bindings[..at])?;
        }
        if self.boxes.contains_key(&box_id) {
            self.unregister(&box_id).await?;
        }
        self.holdings.send_modify(|holdings| {
            let placeholders = bindings
                .iter()
                .map(|binding| (binding.placeholder.clone(), box_id));
            holdings.placeholders.extend(placeholders);
        });
        let logins = self.logins_for(box_id, policy.logins, &logins);
        self.own_placeholders(box_id, &logins);
        let (settings, settings_seen) = watch::channel(Settings {
            policy,
            bindings,
            logins,
        });
        let settings = Arc::new(settings);
        let counters = Arc::new(Counters::default());
        let grants = Arc::new(Grants::default());
        let views = Views {
            settings: settings_seen,
            holdings: self.holdings.subscribe(),
            events: self.events.clone(),
            counters: Arc::clone(&counters),
            grants: Arc::clone(&grants),
            room: Arc::clone(&self.room),
            logins: Desk {
                box_id,
                settings: Arc::downgrade(&settings),
                holdings: Arc::downgrade(&self.holdings),
            },
        };
        let context = Arc::new(BoxContext::new(box_id, views));
        let (mail, mailbox) = mailbox();
        let (generation, task) =
            self.begin(box_id, BoxTask::new(context, listeners, &map, mailbox));
        self.boxes.insert(
            box_id,
            Held {
                generation,
                settings,
                counters,
                grants,
                mail,
                task,
            },
        );
        Ok(Answer::Done)
    }

    /// Runs what serves a box; its end is told, with which of the box's tasks it was.
    fn begin(&mut self, box_id: BoxId, task: BoxTask) -> (u64, JoinHandle<()>) {
        self.generations += 1;
        let generation = self.generations;
        let gone = self.gone.0.clone();
        let task = tokio::spawn(async move {
            task.run().await;
            // Fails only when nobody keeps boxes any more.
            drop(gone.send(Gone { box_id, generation }).await);
        });
        (generation, task)
    }
}

fn check_descriptors(listeners: Listeners, brought: usize) -> Result<(), String> {
    let wanted = listeners.descriptors();
    if brought == wanted {
        return Ok(());
    }
    Err(format!(
        "a box with these listeners brings {wanted} descriptors, not {brought}"
    ))
}

/// Makes of descriptors what they are said to be, after asking the kernel whether they are.
fn take_over(descriptors: Vec<OwnedFd>) -> io::Result<BoxListeners> {
    let mut descriptors = descriptors.into_iter();
    let mut next = || descriptors.next().ok_or(io::ErrorKind::InvalidInput);
    let dns_udp = datagrams(next()?)?;
    let dns_tcp = listener(next()?)?;
    let proxy = listener(next()?)?;
    let first = listener(next()?)?;
    let fifth = next()?;
    let (second, pidfd) = match next() {
        Ok(pidfd) => (Some(listener(fifth)?), pidfd),
        Err(_) => (None, fifth),
    };
    let pidfd = watched(pidfd, Interest::READABLE)?;
    Ok(BoxListeners {
        dns_udp,
        dns_tcp,
        proxy,
        first,
        second,
        pidfd,
    })
}

fn datagrams(socket: OwnedFd) -> io::Result<UdpSocket> {
    if sockopt::socket_type(&socket)? != SocketType::DGRAM {
        return Err(io::Error::other("a datagram socket was expected"));
    }
    let socket = StdUdpSocket::from(socket);
    socket.set_nonblocking(true)?;
    UdpSocket::from_std(socket)
}

fn listener(socket: OwnedFd) -> io::Result<TcpListener> {
    let is_stream = sockopt::socket_type(&socket)? == SocketType::STREAM;
    if !is_stream || !sockopt::socket_acceptconn(&socket)? {
        return Err(io::Error::other("a listening socket was expected"));
    }
    let socket = StdTcpListener::from(socket);
    socket.set_nonblocking(true)?;
    TcpListener::from_std(socket)
}
