//! What the host is told of one connection: that it is open, how it goes on, what it amounted to.

use crate::clock;
use crate::context::BoxContext;
use crate::policy::Allowed;
use crate::refuse::Refused;
use crate::spent::Spent;
use box_api::egress::traffic::{Ends, Entrance, Open, SignalKind};
use box_api::egress::{Event, Passed, Reason};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::net::TcpStream;
use tokio::time::{MissedTickBehavior, interval_at};

/// How often a connection is told of while bytes flow.
const TOLD_EVERY: Duration = Duration::from_secs(3);
/// How many of those times a silent one is left out before it is told of again, so that the host
/// knows it is there still.
const SILENT_TIMES_MAX: u32 = 20;

/// A connection that is passed on.
pub(crate) struct Account {
    ctx: Arc<BoxContext>,
    allowed: Allowed,
    spent: Arc<Spent>,
    connection: u64,
    ends: Option<Ends>,
    began: Instant,
    began_at_ms: i64,
}

impl Account {
    /// Begins to count. `stream` is the box's side.
    pub(crate) fn new(ctx: &Arc<BoxContext>, allowed: &Allowed, stream: &TcpStream) -> Self {
        let spent = ctx.ledger.of(allowed.host());
        allowed.tally().count_for(Arc::clone(&spent));
        Self {
            ctx: Arc::clone(ctx),
            allowed: allowed.clone(),
            spent,
            connection: ctx.next_connection(),
            ends: ends(stream),
            began: Instant::now(),
            began_at_ms: clock::now_ms(),
        }
    }

    /// Tells of the connection as long as it is open; returns when it must not go on.
    pub(crate) async fn watch(&self) -> Refused {
        let mut settings = self.ctx.settings();
        let mut ticks = interval_at(tokio::time::Instant::now() + TOLD_EVERY, TOLD_EVERY);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let first = self.as_it_is();
        // What was told, not what has come since: that would pass for silence.
        let (mut told, mut silent_times) = ((first.sent_bytes, first.received_bytes), 0);
        self.ctx.tell_open(Event::Open(first));
        loop {
            let budget = settings.borrow_and_update().policy.limits.budget_bytes;
            tokio::select! {
                () = self.spent.used_up(budget) => return self.over_budget(),
                changed = settings.changed() => if changed.is_err() {
                    // The box is forgotten; whoever watches its policy ends the connection.
                    return std::future::pending().await;
                },
                _ = ticks.tick() => {
                    self.alarm();
                    let now = self.allowed.tally().so_far();
                    silent_times = if now == told { silent_times + 1 } else { SILENT_TIMES_MAX };
                    if silent_times >= SILENT_TIMES_MAX {
                        (told, silent_times) = (now, 0);
                        self.ctx.tell_open(Event::Open(self.as_it_is()));
                    }
                }
            }
        }
    }

    fn over_budget(&self) -> Refused {
        let host = self.allowed.host();
        self.ctx
            .signal(SignalKind::MuchTraffic, host.as_str(), self.spent.total());
        Refused::new(host.as_str(), self.allowed.port(), Reason::Budget)
    }

    fn alarm(&self) {
        if let Some(sent) = self.spent.alarm() {
            let host = self.allowed.host().as_str();
            self.ctx.signal(SignalKind::MuchTraffic, host, sent);
        }
    }

    fn as_it_is(&self) -> Open {
        let (sent_bytes, received_bytes) = self.allowed.tally().so_far();
        Open {
            box_id: self.ctx.id,
            connection: self.connection,
            host: self.allowed.host().clone(),
            port: self.allowed.port(),
            rule: self.allowed.basis().to_string(),
            entrance: self.entrance(),
            ends: self.ends,
            address: self.allowed.tally().address(),
            credential: self.credential(),
            sent_bytes,
            received_bytes,
            began_at_ms: self.began_at_ms,
            at_ms: clock::now_ms(),
        }
    }

    /// The address a name stands for is none of `lo`'s own; the proxy's is.
    fn entrance(&self) -> Entrance {
        match self.ends {
            Some(ends) if ends.way_out.ip().is_loopback() => Entrance::Proxy,
            Some(_) | None => Entrance::Transparent,
        }
    }

    fn credential(&self) -> Option<String> {
        let used = self.allowed.tally().has_used_credential();
        used.then(|| self.ctx.credential_for(self.allowed.host()))
            .flatten()
    }

    /// The connection is over. One that carried nothing was refused further on, and is told of there:
    /// here only that it is not open any more.
    pub(crate) fn close(self) {
        self.alarm();
        let tally = self.allowed.tally();
        let (sent_bytes, received_bytes) = tally.so_far();
        let open_ms = u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.ctx.tell(Event::Passed(Passed {
            box_id: self.ctx.id,
            host: self.allowed.host().clone(),
            port: self.allowed.port(),
            rule: self.allowed.basis().to_string(),
            credential: self.credential(),
            sent_bytes,
            received_bytes,
            began_at_ms: self.began_at_ms,
            ended_at_ms: clock::now_ms(),
            connections: vec![self.connection],
            times: u64::from((sent_bytes, received_bytes) != (0, 0)),
            entrance: Some(self.entrance()),
            address: tally.address(),
            open_ms,
            exchanges: tally.exchanges(),
        }));
    }
}

fn ends(stream: &TcpStream) -> Option<Ends> {
    Some(Ends {
        program: stream.peer_addr().ok()?,
        way_out: stream.local_addr().ok()?,
    })
}
