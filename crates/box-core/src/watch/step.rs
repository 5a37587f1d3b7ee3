//! What one look at a running box means. Pure: what was seen comes in, what is to be done goes out.

use super::runs::Counted;
use crate::events::{size, span};
use box_api::control::{BoxSettings, EventKind, Limits};
use box_runtime::Usage;

/// A look may count at most this much running time, in case the clock jumped or the machine slept.
pub(super) const LOOK_MS_MAX: i64 = 10_000;
/// How often the same trouble is told of one box.
const TOLD_AGAIN_MS: i64 = 60_000;
/// A box that takes a larger share of a CPU works, whether or not anybody asked (C13).
const BUSY_CPU_MILLI: u64 = 20;
/// How long a stop may take before it is asked for again.
const STOP_AGAIN_MS: i64 = 60_000;
/// How often the count of a box with a deadline is kept.
const KEPT_EVERY_MS: i64 = 60_000;

/// What is known of one box from the looks before.
#[derive(Debug, Clone)]
pub(super) struct Watched {
    before: Option<(i64, Usage)>,
    run: Counted,
    kept_at_ms: i64,
    stop_asked_ms: Option<i64>,
    memory: Trouble,
    processes: Trouble,
}

/// Something that goes wrong again and again, told once in a while.
#[derive(Debug, Clone, Copy, Default)]
struct Trouble {
    untold: u64,
    told_at_ms: Option<i64>,
}

/// Who started the box.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Since {
    /// A host before this one, which has told what befell it until then.
    Before,
    ThisHost,
}

/// What was seen.
#[derive(Debug, Clone)]
pub(super) struct Look {
    pub(super) now_ms: i64,
    pub(super) usage: Usage,
    /// Somebody has a hold on it.
    pub(super) held: bool,
    /// Bytes went over the network within the last seconds.
    pub(super) moves_bytes: bool,
    pub(super) freeze_after_ms: Option<u64>,
    pub(super) touched_ms: i64,
    pub(super) limits: Limits,
    pub(super) settings: BoxSettings,
}

/// What is to be done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Act {
    Tell(EventKind, String),
    /// It works, so it is not idle.
    Beat,
    Freeze {
        idle_ms: u64,
    },
    Keep(Counted),
    Stop {
        why: String,
    },
}

impl Watched {
    /// Takes a box up. What it ran while no host counted is counted now, unless it is frozen.
    pub(super) fn new(counted: Option<Counted>, look: &Look, since: Since) -> Self {
        let now_ms = look.now_ms;
        let mut run = counted.unwrap_or(Counted {
            ran_ms: 0,
            at_ms: now_ms,
        });
        if !look.usage.frozen {
            run.ran_ms += (now_ms - run.at_ms).max(0);
        }
        run.at_ms = now_ms;
        Self {
            before: match since {
                Since::Before => None,
                Since::ThisHost => Some((now_ms, Usage::default())),
            },
            run,
            kept_at_ms: now_ms,
            stop_asked_ms: None,
            memory: Trouble::default(),
            processes: Trouble::default(),
        }
    }

    pub(super) fn step(&mut self, look: &Look) -> Vec<Act> {
        let mut acts = Vec::new();
        self.count(look);
        acts.extend(self.trouble(look));
        let before = self.before.replace((look.now_ms, look.usage));
        if let Some(deadline_ms) = look.settings.deadline_ms {
            if u64::try_from(self.run.ran_ms).is_ok_and(|ran_ms| ran_ms >= deadline_ms) {
                acts.extend(self.stop(look.now_ms, deadline_ms));
                return acts;
            }
            if look.now_ms - self.kept_at_ms >= KEPT_EVERY_MS {
                self.kept_at_ms = look.now_ms;
                acts.push(Act::Keep(self.run));
            }
        }
        if look.moves_bytes || busy(before, look) {
            acts.push(Act::Beat);
        } else {
            acts.extend(idle(look));
        }
        acts
    }

    /// Asked for once, and again should it run on nevertheless.
    fn stop(&mut self, now_ms: i64, deadline_ms: u64) -> Option<Act> {
        let asked = self.stop_asked_ms;
        if asked.is_some_and(|asked_ms| now_ms - asked_ms < STOP_AGAIN_MS) {
            return None;
        }
        self.stop_asked_ms = Some(now_ms);
        let why = format!("its deadline came: it had run for {}", span(deadline_ms));
        Some(Act::Stop { why })
    }

    /// Time stands still while the box does (D20).
    fn count(&mut self, look: &Look) {
        if !look.usage.frozen {
            self.run.ran_ms += (look.now_ms - self.run.at_ms).clamp(0, LOOK_MS_MAX);
        }
        self.run.at_ms = look.now_ms;
    }

    fn trouble(&mut self, look: &Look) -> Vec<Act> {
        // A first look at a box that ran before tells nothing new.
        let Some((_, before)) = self.before else {
            return Vec::new();
        };
        let killed = look
            .usage
            .out_of_memory
            .saturating_sub(before.out_of_memory);
        let refused = look
            .usage
            .out_of_processes
            .saturating_sub(before.out_of_processes);
        let memory = self.memory.add(killed, look.now_ms).map(|count| {
            let limit = size(look.limits.memory_bytes);
            let text = format!(
                "{} killed: all of its {limit} of memory was in use",
                processes(count)
            );
            Act::Tell(EventKind::OutOfMemory, text)
        });
        let pids = self.processes.add(refused, look.now_ms).map(|count| {
            let limit = look.limits.pids;
            let times = if count == 1 { "once" } else { "many times" };
            let text = format!("a process could not be started, {times}: it has {limit} already");
            Act::Tell(EventKind::OutOfProcesses, text)
        });
        memory.into_iter().chain(pids).collect()
    }
}

fn processes(count: u64) -> String {
    if count == 1 {
        "1 process was".to_owned()
    } else {
        format!("{count} processes were")
    }
}

impl Trouble {
    /// How many times it happened since it was told last, if it is to be told now.
    fn add(&mut self, count: u64, now_ms: i64) -> Option<u64> {
        self.untold += count;
        let lately = self
            .told_at_ms
            .is_some_and(|told_ms| now_ms - told_ms < TOLD_AGAIN_MS);
        if self.untold == 0 || lately {
            return None;
        }
        self.told_at_ms = Some(now_ms);
        Some(std::mem::take(&mut self.untold))
    }
}

fn busy(before: Option<(i64, Usage)>, look: &Look) -> bool {
    let Some((then_ms, before)) = before else {
        return false;
    };
    let Some(elapsed_ms) = u64::try_from(look.now_ms - then_ms)
        .ok()
        .filter(|ms| *ms > 0)
    else {
        return false;
    };
    // Microseconds in milliseconds are thousandths.
    let share = look.usage.cpu_us.saturating_sub(before.cpu_us) / elapsed_ms;
    share >= BUSY_CPU_MILLI
}

fn idle(look: &Look) -> Option<Act> {
    let after_ms = look.freeze_after_ms?;
    let idle_ms = u64::try_from(look.now_ms - look.touched_ms).ok()?;
    let ripe = !look.held && !look.usage.frozen && idle_ms >= after_ms;
    ripe.then_some(Act::Freeze { idle_ms })
}

#[cfg(test)]
mod tests;
