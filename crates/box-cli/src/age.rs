//! How long ago something was, and how long something took, in words.

use std::time::Duration;

/// UTC, milliseconds since 1970.
#[expect(
    clippy::disallowed_methods,
    reason = "this is the clock's one home in this crate"
)]
pub(crate) fn now_ms() -> i64 {
    let now = std::time::SystemTime::now();
    let since = now.duration_since(std::time::UNIX_EPOCH);
    since.map_or(0, |since| {
        i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
    })
}

/// `3m` or `2d`, for a column.
pub(crate) fn short(then_ms: i64, now_ms: i64) -> String {
    let seconds = now_ms.saturating_sub(then_ms).max(0) / 1000;
    let steps = [(86_400, "d"), (3_600, "h"), (60, "m")];
    let step = steps.into_iter().find(|(unit, _)| seconds >= *unit);
    step.map_or_else(
        || format!("{seconds}s"),
        |(unit, name)| format!("{}{name}", seconds / unit),
    )
}

/// `0.2 s` or `2 min 5 s`, for a step that is done.
pub(crate) fn took(duration: Duration) -> String {
    let seconds = duration.as_secs();
    if seconds >= 60 {
        return format!("{} min {} s", seconds / 60, seconds % 60);
    }
    format!("{}.{} s", seconds, duration.subsec_millis() / 100)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_are_told_in_their_largest_unit() {
        let ages = [0, 59_999, 60_000, 7_200_000, 172_800_000].map(|ms| short(0, ms));
        assert_eq!(ages, ["0s", "59s", "1m", "2h", "2d"]);
        assert_eq!(short(5_000, 0), "0s", "a clock that was set back");
    }

    #[test]
    fn times_are_told_as_people_say_them() {
        assert_eq!(took(Duration::from_millis(1_250)), "1.2 s");
        assert_eq!(took(Duration::from_secs(125)), "2 min 5 s");
    }
}
