//! Boxes begun ahead, as ids.

use super::FakeRuntime;
use async_trait::async_trait;
use box_api::BoxId;
use box_runtime::{Pool, RuntimeError};
use std::collections::BTreeSet;

#[async_trait]
impl Pool for FakeRuntime {
    async fn begin(&self, id: &BoxId) -> Result<(), RuntimeError> {
        let mut world = self.world.lock().await;
        assert!(world.begun.insert(*id), "an id is used twice");
        assert!(!world.machines.contains_key(id), "an id of a box is used");
        world.spares.insert(*id);
        Ok(())
    }

    async fn let_go(&self, id: &BoxId) -> Result<(), RuntimeError> {
        self.world.lock().await.spares.remove(id);
        Ok(())
    }

    fn spares(&self) -> Vec<BoxId> {
        Vec::new()
    }
}

impl FakeRuntime {
    /// Those nobody has taken.
    pub(crate) async fn left(&self) -> BTreeSet<BoxId> {
        self.world.lock().await.spares.clone()
    }

    /// Every id that ever was begun ahead.
    pub(crate) async fn begun(&self) -> BTreeSet<BoxId> {
        self.world.lock().await.begun.clone()
    }
}
