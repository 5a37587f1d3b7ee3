//! The host's side of box-egress: starts it, tells it about boxes and credentials, notices its
//! death and brings it back up to date.
//!
//! One task (`supervise`) owns the connection; an [`Egress`] is a handle on it. Whatever cannot be
//! told now because box-egress is away is told when it is back: the task compares what box-egress
//! says it holds with the rows of the store. Until then a box simply has no way out.

pub mod ca;
mod configuration;
mod link;
mod logins;
mod notice;
pub mod process;
mod replace;
pub(crate) mod roots;
mod stores;
mod supervise;
mod wanted;

pub use process::Program;

use crate::boxes::BoxRecord;
use crate::clock::Clock;
use crate::credentials::Vault;
use crate::host::Runtimes;
use crate::network::live::Live;
use crate::paths::Paths;
use crate::people::People;
use crate::policy::Machine;
use crate::random::Random;
use crate::settings::{Current, Settings};
use crate::store::Store;
use crate::thread::Threads;
use box_api::BoxId;
use box_api::egress::{
    Answer, AskedRequest, Binding, Checked, CredentialSpec, CredentialState, HostName, Request,
};
use box_runtime::BoxSockets;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{mpsc, oneshot, watch};
use zeroize::Zeroizing;

/// Orders that may wait while box-egress is being reached.
const ORDERS_QUEUED_MAX: usize = 1024;
/// Longest a caller waits for an order: a new box-egress is up and has answered by then.
const ORDER_DEADLINE: Duration = Duration::from_secs(20);
/// Boxes that ended and nobody was told of yet.
const GONE_QUEUED_MAX: usize = 1024;

/// Why an order was not carried out.
#[derive(Debug, Clone, thiserror::Error)]
pub enum EgressError {
    #[error("box-egress does not answer: {why}")]
    Away { why: String },
    #[error("box-egress refused: {why}")]
    Refused { why: String },
}

/// What the supervising task needs of the host.
#[derive(Debug, Clone)]
pub struct Surroundings {
    pub paths: Paths,
    pub settings: Current,
    pub store: Store,
    /// Opens what is sealed, for a box-egress that is new.
    pub vault: Arc<Vault>,
    pub clock: Arc<dyn Clock>,
    pub runtimes: Runtimes,
    pub random: Arc<dyn Random>,
    pub machine: Machine,
    pub threads: Threads,
    pub people: People,
    /// Connections that are open.
    pub live: Live,
    pub build: String,
    /// How box-egress is started.
    pub program: Program,
}

/// Makes what boxes trust: the deployment's CA and the bundle. Blocks; called before the host
/// serves, as a box cannot start without it.
///
/// # Errors
/// [`PrepareError`]
pub fn prepare(
    paths: &Paths,
    settings: &Settings,
    random: &dyn Random,
) -> Result<(), PrepareError> {
    let roots = roots::read(settings)?;
    let authority = ca::ensure(paths, random)?;
    Ok(stores::write(paths, &roots, &authority)?)
}

/// Another CA in the place of the deployment's, and everything boxes are given made from it (C139).
/// Blocks. Boxes that run trust the old one until they are started again.
///
/// # Errors
/// [`PrepareError`]
pub fn replace_ca(
    paths: &Paths,
    settings: &Settings,
    random: &dyn Random,
) -> Result<(), PrepareError> {
    let roots = roots::read(settings)?;
    ca::replace(paths, random)?;
    let authority = ca::ensure(paths, random)?;
    Ok(stores::write(paths, &roots, &authority)?)
}

/// Why boxes would trust nothing.
#[derive(Debug, thiserror::Error)]
pub enum PrepareError {
    #[error(transparent)]
    Roots(#[from] roots::RootsError),
    #[error(transparent)]
    Ca(#[from] ca::CaError),
}

/// A handle on the task that speaks with box-egress. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Egress {
    orders: mpsc::Sender<Order>,
    state: watch::Receiver<LinkState>,
}

/// Whether box-egress can be reached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LinkState {
    Connecting,
    Up {
        pid: u32,
        /// Its build; another than the host's is told, not replaced.
        build: String,
    },
    Down {
        why: String,
    },
}

/// What [`Egress::check`] is asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Question {
    pub host: String,
    pub port: u16,
    /// A request on it, judged as well.
    pub asked: Option<AskedRequest>,
    /// Judged as if the name led there.
    pub address: Option<IpAddr>,
}

/// Whether box-egress could work with these settings: that the files they name can be read. Blocks.
///
/// # Errors
/// [`PrepareError`]
pub fn check_settings(settings: &Settings) -> Result<(), PrepareError> {
    roots::read(settings)?;
    Ok(())
}

/// One thing for the supervising task to do.
pub(crate) enum Order {
    /// A box runs. Its sockets, or none when they are to be opened anew should they be missing.
    Admit {
        record: Box<BoxRecord>,
        sockets: Option<BoxSockets>,
    },
    /// What the rows say of boxes that run has changed: box-egress is told what now holds.
    Retell {
        boxes: Vec<BoxId>,
        answer: oneshot::Sender<Result<(), EgressError>>,
    },
    /// The settings were read again: box-egress and every box are told what now holds.
    Reload {
        answer: oneshot::Sender<Result<(), EgressError>>,
    },
    /// A request as it stands, with its secret; the answer goes to whoever asked.
    Ask {
        request: Box<Request>,
        secret: Zeroizing<Vec<u8>>,
        answer: oneshot::Sender<Result<Answer, EgressError>>,
    },
}

impl Egress {
    /// Starts the supervising task. The second half yields the boxes that ended by themselves, as
    /// box-egress notices them first: it holds their pidfds.
    pub fn start(surroundings: Surroundings) -> (Self, mpsc::Receiver<BoxId>) {
        let (orders, queued) = mpsc::channel(ORDERS_QUEUED_MAX);
        let (told, state) = watch::channel(LinkState::Connecting);
        let (gone, gone_boxes) = mpsc::channel(GONE_QUEUED_MAX);
        tokio::spawn(supervise::run(surroundings, queued, told, gone));
        (Self { orders, state }, gone_boxes)
    }

    /// A handle that nothing listens to, for tests of what does not need box-egress.
    pub fn absent() -> Self {
        let (orders, _) = mpsc::channel(1);
        let (_, state) = watch::channel(LinkState::Down {
            why: "there is none here".to_owned(),
        });
        Self { orders, state }
    }

    pub fn state(&self) -> LinkState {
        self.state.borrow().clone()
    }

    /// A receiver that sees every change of the state.
    pub fn watch(&self) -> watch::Receiver<LinkState> {
        self.state.clone()
    }

    /// Hands a running box over. Does not wait for box-egress: the sockets listen already, the
    /// kernel queues what arrives, and a box that is not known there has no way out.
    pub async fn admit(&self, record: &BoxRecord, sockets: Option<BoxSockets>) {
        let order = Order::Admit {
            record: Box::new(record.clone()),
            sockets,
        };
        if self.orders.send(order).await.is_err() {
            tracing::error!(id = %record.id, "nobody tells box-egress about a box");
        }
    }

    /// Tells box-egress what the rows say now of boxes that run. Returns once it holds there, so that
    /// whoever changed a box's network can rely on the change.
    ///
    /// # Errors
    /// [`EgressError`]; a box-egress that is away lets nothing through, and is told when it is back.
    pub async fn retell(&self, boxes: Vec<BoxId>) -> Result<(), EgressError> {
        self.order(|answer| Order::Retell { boxes, answer }).await
    }

    /// Ends a box's way out. A box-egress that is away forgets the box when it is back.
    ///
    /// # Errors
    /// [`EgressError`]
    pub async fn release(&self, box_id: BoxId) -> Result<(), EgressError> {
        self.ask(Request::Unregister { box_id }).await.map(drop)
    }

    /// # Errors
    /// [`EgressError`]
    pub async fn bind(&self, box_id: BoxId, binding: Binding) -> Result<(), EgressError> {
        self.ask(Request::Bind { box_id, binding }).await.map(drop)
    }

    /// A person lets a box through to a host and port, once.
    ///
    /// # Errors
    /// [`EgressError`]
    pub async fn allow_once(
        &self,
        box_id: BoxId,
        host: HostName,
        port: u16,
    ) -> Result<(), EgressError> {
        let request = Request::AllowOnce { box_id, host, port };
        self.ask(request).await.map(drop)
    }

    /// # Errors
    /// [`EgressError`]
    pub async fn unbind(&self, box_id: BoxId, placeholder: String) -> Result<(), EgressError> {
        self.ask(Request::Unbind {
            box_id,
            placeholder,
        })
        .await
        .map(drop)
    }

    /// Adds a credential or replaces the one of the same id. The secret is wiped here afterwards.
    ///
    /// # Errors
    /// [`EgressError`]
    pub async fn add_credential(
        &self,
        spec: CredentialSpec,
        secret: Zeroizing<Vec<u8>>,
    ) -> Result<(), EgressError> {
        self.ask_with(Request::AddCredential(spec), secret)
            .await
            .map(drop)
    }

    /// # Errors
    /// [`EgressError`]
    pub async fn remove_credential(&self, credential: String) -> Result<(), EgressError> {
        self.ask(Request::RemoveCredential { credential })
            .await
            .map(drop)
    }

    /// The credentials box-egress knows of, and whether their secrets are there.
    ///
    /// # Errors
    /// [`EgressError`]
    pub async fn credentials(&self) -> Result<Vec<CredentialState>, EgressError> {
        let answer = self.ask(Request::ListCredentials).await?;
        let Answer::Credentials { credentials } = answer else {
            return Err(unexpected(&answer));
        };
        Ok(credentials)
    }

    /// What would happen to a connection of a box.
    ///
    /// # Errors
    /// [`EgressError`]
    pub async fn check(&self, box_id: BoxId, question: Question) -> Result<Checked, EgressError> {
        let request = Request::Check {
            box_id,
            host: question.host,
            port: question.port,
            asked: question.asked,
            address: question.address,
        };
        let answer = self.ask(request).await?;
        let Answer::Checked(checked) = answer else {
            return Err(unexpected(&answer));
        };
        Ok(checked)
    }

    /// Tells box-egress, and every box there, what now holds after the settings were read again.
    ///
    /// # Errors
    /// [`EgressError`]; what could not be told now is told when box-egress is back.
    pub async fn reload(&self) -> Result<(), EgressError> {
        self.order(|answer| Order::Reload { answer }).await
    }

    async fn ask(&self, request: Request) -> Result<Answer, EgressError> {
        self.ask_with(request, Zeroizing::default()).await
    }

    async fn ask_with(
        &self,
        request: Request,
        secret: Zeroizing<Vec<u8>>,
    ) -> Result<Answer, EgressError> {
        let order = |answer| Order::Ask {
            request: Box::new(request),
            secret,
            answer,
        };
        let answer = self.order(order).await?;
        if let Answer::Refused { why } = answer {
            return Err(EgressError::Refused { why });
        }
        Ok(answer)
    }

    /// Gives an order and waits for what came of it.
    async fn order<T>(
        &self,
        order: impl FnOnce(oneshot::Sender<Result<T, EgressError>>) -> Order,
    ) -> Result<T, EgressError> {
        let (answer, answered) = oneshot::channel();
        let order = order(answer);
        let away = |why: &str| EgressError::Away {
            why: why.to_owned(),
        };
        let exchange = async {
            let sent = self.orders.send(order).await;
            sent.map_err(|_| away("the host is ending"))?;
            answered.await.map_err(|_| away("the host is ending"))?
        };
        let answer = tokio::time::timeout(ORDER_DEADLINE, exchange).await;
        answer.map_err(|_| away("it took too long"))?
    }
}

fn unexpected(answer: &Answer) -> EgressError {
    tracing::error!(?answer, "box-egress answered another question");
    EgressError::Refused {
        why: "it answered another question".to_owned(),
    }
}
