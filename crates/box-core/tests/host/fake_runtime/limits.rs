//! Limits and use of the engine that is not there: what a test says a box uses, it uses.

use super::FakeRuntime;
use async_trait::async_trait;
use box_api::BoxId;
use box_api::control::Limits;
use box_runtime::{Ended, LimitName, Limiter, RuntimeError, Usage};

impl FakeRuntime {
    /// From now on the box uses this; whether it is frozen is not for the test to say.
    pub(crate) async fn uses(&self, id: &BoxId, usage: Usage) {
        let mut world = self.world.lock().await;
        world.machines.get_mut(id).unwrap().usage = usage;
    }

    /// The box ends by itself, and this is what the engine saw of it.
    pub(crate) async fn die_of(&self, id: &BoxId, ended: Ended) {
        let mut world = self.world.lock().await;
        let machine = world.machines.get_mut(id).unwrap();
        (machine.running, machine.frozen) = (false, false);
        machine.ended = Some(ended);
    }

    /// The limits the box runs with.
    pub(crate) async fn limits(&self, id: &BoxId) -> Limits {
        self.world.lock().await.machines[id].spec.limits
    }
}

#[async_trait]
impl Limiter for FakeRuntime {
    fn live(&self) -> &'static [LimitName] {
        &[LimitName::Memory, LimitName::Pids]
    }

    async fn set(&self, id: &BoxId, limits: &Limits) -> Result<(), RuntimeError> {
        let mut world = self.world.lock().await;
        let machine = world.machines.get_mut(id);
        let machine = machine.ok_or(RuntimeError::NotFound(*id))?;
        if !machine.running {
            return Err(RuntimeError::NotRunning(*id));
        }
        if machine.usage.memory_bytes > limits.memory_bytes {
            return Err(RuntimeError::Refused {
                why: "the box uses more".to_owned(),
                hint: None,
            });
        }
        machine.spec.limits = Limits {
            memory_bytes: limits.memory_bytes,
            pids: limits.pids,
            ..machine.spec.limits
        };
        Ok(())
    }

    async fn usage(&self, id: &BoxId) -> Result<Usage, RuntimeError> {
        let world = self.world.lock().await;
        let machine = world.machines.get(id).ok_or(RuntimeError::NotFound(*id))?;
        if !machine.running {
            return Err(RuntimeError::NotRunning(*id));
        }
        Ok(Usage {
            frozen: machine.frozen,
            ..machine.usage
        })
    }

    async fn ended(&self, id: &BoxId) -> Option<Ended> {
        self.world.lock().await.machines.get(id)?.ended
    }
}
