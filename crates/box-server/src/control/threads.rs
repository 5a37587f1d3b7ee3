//! `Threads` and `Thread`: what threads there are, and what is done with one.

use crate::problem;
use box_api::Problem;
use box_api::control::{Outcome, ThreadAct, ThreadAsk, ThreadsAsk};
use box_core::Host;
use box_core::caller::Caller;
use box_core::thread::{self, Archived, Put};
use box_core::watch;
use std::sync::Arc;

pub(super) async fn list(
    host: &Host,
    caller: &Caller,
    asked: ThreadsAsk,
) -> Result<Outcome, Problem> {
    let archived = if asked.archived {
        Archived::Too
    } else {
        Archived::Left
    };
    let threads = match asked.name {
        Some(name) => thread::of_box(host, caller, &name, archived)
            .await
            .map_err(problem::attach)?,
        None => thread::of_owner(host, caller, archived)
            .await
            .map_err(problem::store)?,
    };
    Ok(Outcome::Threads { threads })
}

/// Does it, and answers with the thread as it stands afterwards.
pub(super) async fn handle(
    host: &Arc<Host>,
    caller: &Caller,
    asked: ThreadAsk,
) -> Result<Outcome, Problem> {
    let ThreadAsk { name, thread, act } = asked;
    let about = match act {
        ThreadAct::Show => thread,
        ThreadAct::Fork => {
            let forked = thread::fork(host, caller, &name, thread).await;
            Some(forked.map_err(problem::fork)?.thread())
        }
        ThreadAct::Archive | ThreadAct::Unarchive => {
            let put = if act == ThreadAct::Archive {
                Put::Away
            } else {
                Put::Back
            };
            let put = thread::archive(host, caller, (&name, thread), put).await;
            Some(put.map_err(problem::attach)?)
        }
        ThreadAct::Rename { .. }
        | ThreadAct::Cancel
        | ThreadAct::Set { .. }
        | ThreadAct::Prompt { .. }
        | ThreadAct::Steer { .. }
        | ThreadAct::Edit { .. }
        | ThreadAct::Unqueue { .. }
        | ThreadAct::SendNow { .. }
        | ThreadAct::StopTask { .. } => {
            let handle = thread::attach(host, caller, &name, thread)
                .await
                .map_err(problem::attach)?;
            // What it is told it hears only while its box is awake.
            let _awake = watch::touch(host, handle.box_id())
                .await
                .map_err(problem::engine)?;
            tell(caller, &handle, act).await?;
            Some(handle.thread())
        }
    };
    let shown = thread::show(host, caller, &name, about)
        .await
        .map_err(problem::attach)?;
    Ok(Outcome::ThreadShown(Box::new(shown)))
}

async fn tell(
    caller: &Caller,
    handle: &thread::ThreadHandle,
    act: ThreadAct,
) -> Result<(), Problem> {
    let by = caller.owner.to_string();
    let done = match act {
        ThreadAct::Cancel => return handle.cancel(by).await.map_err(problem::thread),
        ThreadAct::Prompt { text } => return handle.prompt(text).await.map_err(problem::prompt),
        ThreadAct::Rename { title } => handle.rename(&title).await,
        ThreadAct::Set { chosen } => handle.set_options(chosen).await,
        ThreadAct::Steer { text } => handle.steer(text).await,
        ThreadAct::Edit { queued, text } => handle.edit_queued(queued, text).await,
        ThreadAct::Unqueue { queued } => handle.unqueue(queued).await,
        ThreadAct::SendNow { queued } => handle.send_now(queued).await,
        ThreadAct::StopTask { task } => handle.stop_task(task, by).await,
        // Done where no handle is needed.
        ThreadAct::Show | ThreadAct::Fork | ThreadAct::Archive | ThreadAct::Unarchive => Ok(()),
    };
    done.map_err(problem::act)
}
