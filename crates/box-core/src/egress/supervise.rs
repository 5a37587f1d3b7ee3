//! The task that keeps box-egress alive and up to date.
//!
//! `connect or start → greet → configure → catch up → carry out orders and take events`, and again
//! from the start when the connection breaks.

mod one_box;

use super::configuration::configure;
use super::link::{Link, LinkError};
use super::replace::{self, Found, ReplaceError};
use super::wanted::{self, Rows};
use super::{
    EgressError, LinkState, ORDERS_QUEUED_MAX, Order, Surroundings, ca, logins, notice, process,
    roots,
};
use crate::boxes::{self, BoxRecord};
use crate::credentials::{self, Restored};
use crate::people::Looking;
use crate::store::StoreError;
use box_api::BoxId;
use box_api::egress::{Answer, PROTOCOL, Request, Status};
use box_runtime::BoxSockets;
use std::collections::{HashMap, VecDeque};
use std::time::Duration;
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, MissedTickBehavior, interval, timeout_at};

const PAUSE_MIN: Duration = Duration::from_millis(50);
const PAUSE_MAX: Duration = Duration::from_secs(10);
/// A connection that held so long starts the pauses anew.
const PROVEN: Duration = Duration::from_secs(30);
/// How often the machine's name servers are looked at.
const RESOLVERS_EVERY: Duration = Duration::from_secs(5);
/// Longest an engine may take to open a box's sockets anew.
const REOPEN_DEADLINE: Duration = Duration::from_secs(10);

/// Why a connection came to its end.
#[derive(Debug, thiserror::Error)]
pub(super) enum End {
    #[error("the host is ending")]
    HostEnds,
    #[error("box-egress could not be started")]
    Start(#[source] std::io::Error),
    #[error("box-egress: {0}")]
    Link(#[from] LinkError),
    #[error("box-egress did not take its configuration: {0}")]
    Configure(String),
    #[error(transparent)]
    Ca(#[from] ca::CaError),
    #[error(transparent)]
    Roots(#[from] roots::RootsError),
    #[error(transparent)]
    Replace(#[from] ReplaceError),
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Works until the host ends.
pub(super) async fn run(
    around: Surroundings,
    orders: mpsc::Receiver<Order>,
    told: watch::Sender<LinkState>,
    gone: mpsc::Sender<BoxId>,
) {
    let (waiting, backlog) = (HashMap::new(), VecDeque::new());
    let mut task = Supervisor {
        around,
        orders,
        told,
        gone,
        waiting,
        backlog,
        looked: Looking::default(),
    };
    let mut pause = PAUSE_MIN;
    loop {
        task.told.send_replace(LinkState::Connecting);
        let began = Instant::now();
        let Err(end) = task.session().await;
        if let End::HostEnds = end {
            return;
        }
        let why = boxes::reason(&end);
        tracing::warn!(why, "box-egress is away");
        task.told.send_replace(LinkState::Down { why: why.clone() });
        pause = if began.elapsed() > PROVEN {
            PAUSE_MIN
        } else {
            (pause * 2).min(PAUSE_MAX)
        };
        if task.refuse_for(pause, &why).await.is_none() {
            return;
        }
    }
}

/// A session only ever ends for a reason.
enum Never {}

struct Supervisor {
    around: Surroundings,
    orders: mpsc::Receiver<Order>,
    told: watch::Sender<LinkState>,
    gone: mpsc::Sender<BoxId>,
    /// Sockets of boxes that were admitted while box-egress was away. They listen; what arrives
    /// waits in the kernel.
    waiting: HashMap<BoxId, (BoxRecord, BoxSockets)>,
    /// Orders taken out of the queue before their turn.
    backlog: VecDeque<Order>,
    /// Who looks, as every policy told so far has it.
    looked: Looking,
}

impl Supervisor {
    async fn session(&mut self) -> Result<Never, End> {
        let mut link = self.reach().await?;
        // Before any policy is told, so that whoever comes to look meanwhile is noticed below.
        let mut looking = self.around.people.looking();
        self.looked = looking.borrow_and_update().clone();
        let mut resolvers = roots::resolvers(&self.around.settings.now());
        configure(&self.around, &mut link, &resolvers).await?;
        logins::give_key_if_kept(&self.around, &mut link).await?;
        self.catch_up(&mut link).await?;
        let (pid, build) = (link.welcome.pid, link.welcome.build.clone());
        if build != self.around.build {
            tracing::info!(
                theirs = build,
                ours = self.around.build,
                "box-egress is of another build"
            );
        }
        tracing::info!(pid, "box-egress is up");
        self.told.send_replace(LinkState::Up { pid, build });
        let mut look = interval(RESOLVERS_EVERY);
        look.set_missed_tick_behavior(MissedTickBehavior::Delay);

        loop {
            if let Some(order) = self.backlog.pop_front() {
                self.carry_out(&mut link, order).await?;
                continue;
            }
            tokio::select! {
                order = self.orders.recv() => {
                    let Some(order) = order else { return Err(End::HostEnds) };
                    self.carry_out(&mut link, order).await?;
                }
                event = link.event() => {
                    let event = event?;
                    let wants_key = logins::wants_key(&event);
                    notice::take(&self.around, &self.gone, event).await?;
                    if wants_key {
                        logins::give_key(&self.around, &mut link).await?;
                    }
                }
                // The sender is the host's, which lives longer.
                _ = looking.changed() => {
                    let now = looking.borrow_and_update().clone();
                    self.tell_who_looks(&mut link, now).await?;
                }
                _ = look.tick() => {
                    let now = roots::resolvers(&self.around.settings.now());
                    if now != resolvers {
                        resolvers = now;
                        configure(&self.around, &mut link, &resolvers).await?;
                    }
                }
            }
        }
    }

    /// The box-egress that is there, else a new one.
    async fn reach(&self) -> Result<Link, End> {
        let socket = self.around.paths.egress_socket();
        match Link::open(&socket, &self.around.build).await {
            Ok(link) => match replace::judge(&self.around, link).await? {
                Found::Kept(link) => return Ok(link),
                Found::Ended => {}
            },
            Err(LinkError::Connect(_)) => {}
            Err(error) => return Err(error.into()),
        }
        process::start(&self.around.program, &self.around.paths).map_err(End::Start)?;
        let link = Link::open(&socket, &self.around.build).await?;
        if link.welcome.protocol == PROTOCOL {
            return Ok(link);
        }
        // It is of this very build: nothing would come of starting it again.
        let theirs = link.welcome.protocol;
        Err(LinkError::Protocol { theirs }.into())
    }

    /// Makes what box-egress holds equal to what the rows say, and touches nothing that is equal.
    async fn catch_up(&mut self, link: &mut Link) -> Result<(), End> {
        let Answer::Status(status) = link.call(Request::Status).await? else {
            return Err(LinkError::Confused.into());
        };
        let rows = wanted::rows(&self.around).await?;
        // After the rows were read: a box that runs by its row was handed over before.
        self.take_sockets_first();
        self.forget_strangers(link, &status, &rows).await?;
        // Before the boxes: their first request finds the secret there.
        self.restore(link, &status).await?;
        logins::keep_held(&self.around, &status).await?;
        for box_id in logins::strangers(&self.around, &status).await? {
            let request = Request::ForgetLogins { box_id, kind: None };
            told(link.call(request).await?, "logins of a box that is gone");
        }
        for record in &rows.running {
            match status.boxes.iter().find(|held| held.box_id == record.id) {
                Some(held) if !self.waiting.contains_key(&record.id) => {
                    self.adjust(link, record, held).await?;
                }
                _ => self.admit(link, record, None).await?,
            }
        }
        let left: Vec<BoxId> = self.waiting.keys().copied().collect();
        for id in left {
            let Some((_, sockets)) = self.waiting.remove(&id) else {
                continue;
            };
            // As it is now: it may have begun to start after the rows were read above.
            if let Some(record) = wanted::current(&self.around, id).await? {
                self.admit(link, &record, Some(sockets)).await?;
            }
        }
        Ok(())
    }

    /// Hands over the sealed secrets that box-egress lacks.
    async fn restore(&self, link: &mut Link, status: &Status) -> Result<(), End> {
        let (store, vault) = (&self.around.store, &self.around.vault);
        let now_ms = self.around.clock.now_ms();
        let lacking = credentials::restored(store, vault, &status.credentials, now_ms);
        for Restored { spec, secret } in lacking.await? {
            let request = Request::AddCredential(spec);
            told(link.call_with(request, secret, &[]).await?, "a credential");
        }
        Ok(())
    }

    /// Somebody came to look at boxes, or left: from now on their hosts are asked about, or not.
    async fn tell_who_looks(&mut self, link: &mut Link, now: Looking) -> Result<(), End> {
        let before = std::mem::replace(&mut self.looked, now);
        for record in wanted::rows(&self.around).await?.running {
            let box_id = record.id;
            if before.at(&box_id) == self.looked.at(&box_id) {
                continue;
            }
            let policy = wanted::of_box(&self.around, &record, &self.looked)
                .await?
                .policy;
            told(
                link.call(Request::SetPolicy { box_id, policy }).await?,
                "a policy",
            );
        }
        Ok(())
    }

    /// Sockets that lie in the queue are used before any are opened anew: both cannot listen.
    fn take_sockets_first(&mut self) {
        for _ in 0..ORDERS_QUEUED_MAX {
            match self.orders.try_recv() {
                Ok(Order::Admit {
                    record,
                    sockets: Some(sockets),
                }) => {
                    self.waiting.insert(record.id, (*record, sockets));
                }
                // Whoever gave it was told that it took too long; carried out behind what is new,
                // it could end the way out of a box that has been started since.
                Ok(Order::Ask { answer, .. }) if answer.is_closed() => {}
                Ok(other) => self.backlog.push_back(other),
                Err(_) => break,
            }
        }
    }

    async fn forget_strangers(
        &self,
        link: &mut Link,
        status: &Status,
        rows: &Rows,
    ) -> Result<(), End> {
        for held in &status.boxes {
            let box_id = held.box_id;
            let runs = rows.running.iter().any(|record| record.id == box_id);
            if !runs && !rows.starting.contains(&box_id) {
                told(
                    link.call(Request::Unregister { box_id }).await?,
                    "a box that is gone",
                );
            }
        }
        for state in &status.credentials {
            if !rows.credentials.contains(&state.spec.id) {
                let credential = state.spec.id.clone();
                told(
                    link.call(Request::RemoveCredential { credential }).await?,
                    "a credential",
                );
            }
        }
        Ok(())
    }

    async fn carry_out(&mut self, link: &mut Link, order: Order) -> Result<(), End> {
        match order {
            Order::Admit {
                record,
                sockets: Some(sockets),
            } => self.admit(link, &record, Some(sockets)).await,
            // The box ran already: whether box-egress has it decides what is missing.
            Order::Admit {
                record,
                sockets: None,
            } => self.retell(link, &[record.id]).await,
            Order::Retell { boxes, answer } => {
                let told = self.retell(link, &boxes).await;
                drop(answer.send(said(&told)));
                told
            }
            Order::Reload { answer } => {
                let resolvers = roots::resolvers(&self.around.settings.now());
                let told = match configure(&self.around, link, &resolvers).await {
                    Ok(()) => self.catch_up(link).await,
                    failed => failed,
                };
                drop(answer.send(said(&told)));
                told
            }
            Order::Ask {
                request,
                secret,
                answer,
            } => {
                let outcome = link.call_with(*request, secret, &[]).await;
                let said = match &outcome {
                    Ok(answer) => Ok(answer.clone()),
                    Err(error) => Err(EgressError::Away {
                        why: boxes::reason(error),
                    }),
                };
                // Whoever asked may have gone away.
                drop(answer.send(said));
                outcome.map(drop).map_err(End::from)
            }
        }
    }

    /// Box-egress is away: boxes are kept for later, questions answered with the reason. `None`
    /// when the host ends.
    async fn refuse_for(&mut self, pause: Duration, why: &str) -> Option<()> {
        let until = Instant::now() + pause;
        loop {
            match timeout_at(until, self.orders.recv()).await {
                Err(_) => return Some(()),
                Ok(None) => return None,
                Ok(Some(Order::Admit {
                    record,
                    sockets: Some(sockets),
                })) => {
                    self.waiting.insert(record.id, (*record, sockets));
                }
                // Caught up with by its row.
                Ok(Some(Order::Admit { sockets: None, .. })) => {}
                Ok(Some(Order::Reload { answer } | Order::Retell { answer, .. })) => {
                    drop(answer.send(Err(EgressError::Away {
                        why: why.to_owned(),
                    })));
                }
                Ok(Some(Order::Ask { answer, .. })) => {
                    drop(answer.send(Err(EgressError::Away {
                        why: why.to_owned(),
                    })));
                }
            }
        }
    }
}

/// What whoever gave an order is told; they may have gone away.
fn said(told: &Result<(), End>) -> Result<(), EgressError> {
    told.as_ref().copied().map_err(|end| EgressError::Away {
        why: boxes::reason(end),
    })
}

/// Box-egress' refusal of one thing concerns that thing alone.
pub(super) fn told(answer: Answer, what: &str) {
    if let Answer::Refused { why } = answer {
        tracing::warn!(what, why, "box-egress refused");
    }
}
