//! Decides when a box is measured, and what follows from what was found. Pure: time and sizes come
//! in as arguments.

use box_runtime::DISK_MEASURED_EVERY;
use std::time::{Duration, Instant};

/// A measurement takes at most one part in so many of the time.
const SHARE: u32 = 20;
/// Between two measurements of a box while its file system changes, but not by enough to matter.
const UNEVENTFUL: Duration = Duration::from_mins(1);
/// And while it does not change at all.
const QUIET: Duration = Duration::from_mins(10);
/// What a box may grow by between two measurements when the machine's disk is short.
const GROWTH_BYTES_MAX: u64 = 16 << 20;
/// What a box above its limit that a person has thawed may write before it is frozen again: a part
/// of its limit, or this if that is less. Tidying up needs a little.
const SLACK_SHARE: u64 = 16;

/// Space on the file systems that matter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Left {
    Enough,
    /// Less than is to be kept free.
    Short,
    /// Less than a quarter of that.
    Critical,
}

impl Left {
    /// `free` and `kept` in the same unit.
    pub(super) fn of(free: u64, kept: u64) -> Self {
        if free < kept / 4 {
            Self::Critical
        } else if free < kept {
            Self::Short
        } else {
            Self::Enough
        }
    }

    pub(super) fn worse(self, other: Self) -> Self {
        match (self, other) {
            (Self::Critical, _) | (_, Self::Critical) => Self::Critical,
            (Self::Short, _) | (_, Self::Short) => Self::Short,
            (Self::Enough, Self::Enough) => Self::Enough,
        }
    }
}

/// Why a box was frozen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Cause {
    Limit,
    Machine,
}

/// A box that runs.
#[derive(Debug, Clone)]
pub(super) struct Watched {
    pub(super) limit: u64,
    pub(super) used: u64,
    /// Absent: not yet.
    measured: Option<Measured>,
    /// What was written to its file system since, by whomever.
    pub(super) grown: u64,
    /// Whether that changed at all since.
    pub(super) changed: bool,
    /// Absent: it goes its way. Else what it may use before it is frozen again.
    pub(super) frozen: Option<(Cause, u64)>,
}

#[derive(Debug, Clone, Copy)]
struct Measured {
    at: Instant,
    took: Duration,
}

/// How soon a box is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Due {
    Not,
    /// When there is time.
    WhenIdle,
    Now,
}

/// What is done with a box.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    Nothing,
    Freeze(Cause),
    Thaw(Cause),
}

impl Watched {
    pub(super) fn new(limit: u64) -> Self {
        Self {
            limit,
            used: 0,
            measured: None,
            grown: 0,
            changed: true,
            frozen: None,
        }
    }

    /// Another limit; judged by it as soon as may be.
    pub(super) fn limit(&mut self, bytes: u64) {
        if self.limit != bytes {
            self.limit = bytes;
            self.measured = None;
        }
    }

    pub(super) fn due(&self, now: Instant, left: Left) -> Due {
        let Some(measured) = self.measured else {
            return Due::Now;
        };
        let since = now.saturating_duration_since(measured.at);
        if since < DISK_MEASURED_EVERY.max(measured.took * SHARE) {
            return Due::Not;
        }
        let room = self.limit.saturating_sub(self.used);
        let near = self.grown >= room / 2 && self.grown > 0;
        let waits = self.frozen.is_some() && self.changed;
        if near || waits || left != Left::Enough {
            Due::Now
        } else if since >= QUIET || (since >= UNEVENTFUL && self.changed) {
            Due::WhenIdle
        } else {
            Due::Not
        }
    }

    /// Takes a measurement, and says what is done.
    pub(super) fn measured(
        &mut self,
        used: u64,
        now: Instant,
        took: Duration,
        left: Left,
    ) -> Verdict {
        let first = self.measured.is_none();
        let growth = used.saturating_sub(self.used);
        self.measured = Some(Measured { at: now, took });
        (self.used, self.grown, self.changed) = (used, 0, false);
        let verdict = self.judge(if first { 0 } else { growth }, left);
        match verdict {
            Verdict::Freeze(cause) => self.freeze(cause),
            Verdict::Thaw(_) => self.frozen = None,
            Verdict::Nothing => {}
        }
        verdict
    }

    /// Frozen without a look at it.
    pub(super) fn freeze(&mut self, cause: Cause) {
        let slack = (self.limit / SLACK_SHARE).min(GROWTH_BYTES_MAX);
        self.frozen = Some((cause, self.used.saturating_add(slack)));
    }

    fn judge(&self, growth: u64, left: Left) -> Verdict {
        let over = self.used > self.limit;
        let Some((cause, ceiling)) = self.frozen else {
            let wrote =
                left == Left::Critical || (left == Left::Short && growth > GROWTH_BYTES_MAX);
            return match (over, wrote) {
                (true, _) => Verdict::Freeze(Cause::Limit),
                (false, true) => Verdict::Freeze(Cause::Machine),
                (false, false) => Verdict::Nothing,
            };
        };
        let goes_on = match cause {
            Cause::Limit => !over,
            Cause::Machine => left == Left::Enough && !over,
        };
        if goes_on {
            Verdict::Thaw(cause)
        } else if self.used > ceiling {
            Verdict::Freeze(cause)
        } else {
            Verdict::Nothing
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;
    const LIMIT: u64 = 1024 * MIB;
    const TOOK: Duration = Duration::from_millis(5);

    fn at(used: u64) -> (Watched, Instant) {
        let (mut watched, now) = (Watched::new(LIMIT), Instant::now());
        assert_eq!(watched.due(now, Left::Enough), Due::Now);
        let verdict = watched.measured(used, now, TOOK, Left::Enough);
        let over = used > LIMIT;
        let expected = [Verdict::Nothing, Verdict::Freeze(Cause::Limit)][usize::from(over)];
        assert_eq!(verdict, expected);
        (watched, now)
    }

    #[test]
    fn a_box_is_measured_often_only_while_what_is_written_could_fill_it() {
        let (mut watched, start) = at(24 * MIB);
        let after = |seconds| start + Duration::from_secs(seconds);
        assert_eq!(watched.due(after(59), Left::Enough), Due::Not);
        watched.changed = true;
        assert_eq!(watched.due(after(61), Left::Enough), Due::WhenIdle);
        watched.grown = 501 * MIB;
        assert_eq!(watched.due(after(0), Left::Enough), Due::Not, "each second");
        assert_eq!(watched.due(after(1), Left::Enough), Due::Now);
        let (watched, _) = at(24 * MIB);
        assert_eq!(watched.due(after(2), Left::Short), Due::Now);
    }

    #[test]
    fn measuring_takes_a_twentieth_of_the_time_at_most() {
        let (mut watched, start) = (Watched::new(LIMIT), Instant::now());
        watched.measured(0, start, Duration::from_secs(3), Left::Enough);
        watched.grown = LIMIT;
        let after = |seconds| start + Duration::from_secs(seconds);
        assert_eq!(watched.due(after(59), Left::Enough), Due::Not);
        assert_eq!(watched.due(after(60), Left::Enough), Due::Now);
    }

    #[test]
    fn a_full_box_may_be_tidied_up_but_not_filled_further() {
        let (mut watched, now) = at(LIMIT + MIB);
        let mut look = |used, limit| {
            watched.limit(limit);
            watched.measured(used, now, TOOK, Left::Enough)
        };
        let slack = 16 * MIB;
        assert_eq!(look(LIMIT + MIB + slack, LIMIT), Verdict::Nothing);
        let again = LIMIT + 2 * MIB + slack;
        assert_eq!(look(again, LIMIT), Verdict::Freeze(Cause::Limit));
        assert_eq!(look(LIMIT, LIMIT), Verdict::Thaw(Cause::Limit));
        assert_eq!(look(LIMIT + 1, LIMIT), Verdict::Freeze(Cause::Limit));
        assert_eq!(
            look(LIMIT + 1, 2 * LIMIT),
            Verdict::Thaw(Cause::Limit),
            "more room"
        );
    }

    #[test]
    fn on_a_short_disk_only_who_writes_is_stopped_and_on_a_critical_one_everybody() {
        let (mut writer, now) = at(100 * MIB);
        let mut other = writer.clone();
        let look = |watched: &mut Watched, used, left| watched.measured(used, now, TOOK, left);
        let stopped = Verdict::Freeze(Cause::Machine);
        assert_eq!(look(&mut writer, 150 * MIB, Left::Short), stopped);
        assert_eq!(look(&mut other, 101 * MIB, Left::Short), Verdict::Nothing);
        assert_eq!(look(&mut other, 101 * MIB, Left::Critical), stopped);
        let goes_on = Verdict::Thaw(Cause::Machine);
        assert_eq!(look(&mut writer, 150 * MIB, Left::Short), Verdict::Nothing);
        assert_eq!(look(&mut writer, 150 * MIB, Left::Enough), goes_on);
        // The first look at a box is at what it had before.
        let mut late = Watched::new(LIMIT);
        assert_eq!(look(&mut late, 500 * MIB, Left::Short), Verdict::Nothing);
    }
}
