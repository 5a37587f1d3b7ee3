//! One verb at a time for each box.

use box_api::BoxId;
use std::collections::HashMap;
use std::sync::Arc;
use tokio::sync::{Mutex, OwnedMutexGuard};

/// Whose turn it is, box by box. Boxes nobody works on are not in it.
#[derive(Debug, Default)]
pub(crate) struct Turns(Mutex<HashMap<BoxId, Arc<Mutex<()>>>>);

impl Turns {
    /// Waits until every verb on this box that came before is done.
    pub(crate) async fn take(&self, id: &BoxId) -> OwnedMutexGuard<()> {
        let turn = {
            let mut turns = self.0.lock().await;
            // A turn only the table knows is nobody's.
            turns.retain(|_, turn| Arc::strong_count(turn) > 1);
            Arc::clone(turns.entry(*id).or_default())
        };
        turn.lock_owned().await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn verbs_on_one_box_wait_for_each_other_and_leave_nothing_behind() {
        let (turns, one, other) = (
            Turns::default(),
            BoxId::from_random([1; 10]),
            BoxId::from_random([2; 10]),
        );
        let held = turns.take(&one).await;
        drop(turns.take(&other).await);
        let mut second = Box::pin(turns.take(&one));
        assert!(
            futures_poll(&mut second).await.is_none(),
            "the first still has its turn"
        );
        drop(held);
        drop(second.await);
        drop(turns.take(&other).await);
        assert_eq!(turns.0.lock().await.len(), 1);
    }

    /// What one poll gives.
    async fn futures_poll<T>(future: &mut (impl Future<Output = T> + Unpin)) -> Option<T> {
        std::future::poll_fn(|context| {
            std::task::Poll::Ready(match std::pin::Pin::new(&mut *future).poll(context) {
                std::task::Poll::Ready(value) => Some(value),
                std::task::Poll::Pending => None,
            })
        })
        .await
    }
}
