//! Keeps the tasks of one connection together: when the connection's own task ends, they end.

use hyper::rt::Executor;
use tokio::sync::watch;

/// Held by the connection's task. Dropping it ends everything spawned on the other end.
pub(crate) struct Leash {
    _held: watch::Sender<()>,
    end: LeashEnd,
}

/// Spawns tasks that live no longer than the [`Leash`].
#[derive(Clone)]
pub(crate) struct LeashEnd(watch::Receiver<()>);

impl Leash {
    pub(crate) fn new() -> Self {
        let (held, end) = watch::channel(());
        Self {
            _held: held,
            end: LeashEnd(end),
        }
    }

    pub(crate) fn end(&self) -> LeashEnd {
        self.end.clone()
    }
}

impl LeashEnd {
    pub(crate) fn spawn<F>(&self, task: F)
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        let mut held = self.0.clone();
        tokio::spawn(async move {
            tokio::select! {
                _ = task => {}
                _ = held.changed() => {}
            }
        });
    }
}

impl<F> Executor<F> for LeashEnd
where
    F: Future + Send + 'static,
    F::Output: Send + 'static,
{
    fn execute(&self, task: F) {
        self.spawn(task);
    }
}
