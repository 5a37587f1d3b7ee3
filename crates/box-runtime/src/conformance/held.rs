//! What an engine that freezes and limits running boxes promises. One that cannot holds both claims
//! by saying so: the ability is absent.

use super::Held;
use super::session::{Bench, Broken};
use crate::{LimitName, Runtime, RuntimeError};
use box_api::control::{Limits, Profile};

/// Nothing of a frozen box runs, its neighbour does, and it goes on where it was.
pub async fn a_frozen_box_stands_still(runtime: &dyn Runtime, image: &str) -> Held {
    let (Some(freezer), Some(limiter)) = (runtime.freezer(), runtime.limiter()) else {
        return Ok(());
    };
    let mut bench = Bench::new(runtime, image)?;
    let result = async {
        let stopped = bench.spec(Profile::Locked);
        runtime.create(&stopped).await?;
        let frozen = freezer.freeze(&stopped.id).await;
        claim!(
            matches!(frozen, Err(RuntimeError::NotRunning(_))),
            "freezing a stopped box gave {frozen:?}"
        );
        let spec = bench.running(Profile::Locked).await?;
        let neighbour = bench.running(Profile::Locked).await?;
        let works = bench
            .begin(&spec, &["sh", "-c", "echo up; while :; do :; done"])
            .await?;
        claim!(works.first_line().await? == "up", "the work did not begin");
        let before = limiter.usage(&spec.id).await?;
        claim!(!before.frozen, "a box that runs is told to be frozen");
        for _ in 0..2 {
            freezer.freeze(&spec.id).await?;
        }
        let frozen = limiter.usage(&spec.id).await?;
        claim!(frozen.frozen, "a frozen box is not told to be");
        bench.expect(&neighbour, "echo here", "here\n").await?;
        let later = limiter.usage(&spec.id).await?;
        claim!(
            later.cpu_us == frozen.cpu_us,
            "a frozen box took {} µs of CPU time",
            later.cpu_us - frozen.cpu_us
        );
        for _ in 0..2 {
            freezer.thaw(&spec.id).await?;
        }
        bench.expect(&spec, "echo here", "here\n").await?;
        let thawed = limiter.usage(&spec.id).await?;
        claim!(!thawed.frozen, "a thawed box is told to be frozen");
        drop(works);
        // One that is frozen is stopped as any other.
        freezer.freeze(&spec.id).await?;
        runtime.stop(&spec.id, super::GRACE).await?;
        runtime.start(&spec).await?;
        bench.expect(&spec, "echo here", "here\n").await
    };
    let result = result.await;
    bench.clear(result).await
}

/// What is [`LimitName`]d as live changes while a box runs, and what the box uses is told.
pub async fn limits_change_and_use_is_told(runtime: &dyn Runtime, image: &str) -> Held {
    const FEW: u32 = 30;
    let Some(limiter) = runtime.limiter() else {
        return Ok(());
    };
    let mut bench = Bench::new(runtime, image)?;
    let result = async {
        let mut spec = bench.spec(Profile::Locked);
        spec.limits.pids = FEW;
        bench.start(&spec).await?;
        let usage = limiter.usage(&spec.id).await?;
        claim!(
            usage.processes >= 1 && usage.processes < FEW && usage.memory_bytes > 0,
            "a box that was just started uses {usage:?}"
        );
        let fork = "i=0; while [ $i -lt 60 ]; do sleep 0 & i=$((i+1)); done; wait; echo all";
        let keep =
            "i=0; while [ $i -lt 60 ]; do sleep 60 >/dev/null 2>&1 & i=$((i+1)); done; echo all";
        let kept = bench.exec(&spec, &["sh", "-c", keep]).await?;
        claim!(kept.stdout != "all\n", "60 processes of {FEW}: {kept:?}");
        if limiter.live().contains(&LimitName::Pids) {
            let more = Limits {
                pids: 300,
                ..spec.limits
            };
            limiter.set(&spec.id, &more).await?;
            bench.expect(&spec, fork, "all\n").await?;
        }
        runtime.stop(&spec.id, super::GRACE).await?;
        let stopped = limiter.usage(&spec.id).await;
        claim!(
            matches!(stopped, Err(RuntimeError::NotRunning(_))),
            "the use of a stopped box is {stopped:?}"
        );
        Ok::<(), Broken>(())
    };
    let result = result.await;
    bench.clear(result).await
}
