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

/// `20260102T030405Z` (ISO 8601, basic), for the name of a file.
pub(crate) fn stamp(at_ms: i64) -> String {
    let seconds = at_ms.div_euclid(1000);
    let (days, second) = (seconds.div_euclid(86_400), seconds.rem_euclid(86_400));
    let (year, month, day) = civil(days);
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    format!("{year:04}{month:02}{day:02}T{hour:02}{minute:02}{second:02}Z")
}

/// Year, month and day of so many days after 1970-01-01: years are counted from March, so that the
/// leap day is the last of one, in eras of 400.
fn civil(days: i64) -> (i64, i64, i64) {
    let shifted = days + 719_468;
    let (era, of_era) = (shifted.div_euclid(146_097), shifted.rem_euclid(146_097));
    let year = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month + 2) / 5 + 1;
    let (month, later) = if month < 10 {
        (month + 3, 0)
    } else {
        (month - 9, 1)
    };
    (year + era * 400 + later, month, day)
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
    fn files_are_stamped_with_the_time_of_everywhere() {
        for (seconds, wanted) in [
            (0, "19700101T000000Z"),
            (951_782_399, "20000228T235959Z"),
            (951_782_400, "20000229T000000Z"),
            (951_868_800, "20000301T000000Z"),
            (1_790_000_000, "20260921T141320Z"),
            (4_107_542_400, "21000301T000000Z"),
        ] {
            assert_eq!(stamp(seconds * 1000 + 999), wanted);
        }
    }

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
