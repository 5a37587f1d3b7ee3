//! When a usage limit ends, from what an agent says about it.
//!
//! Structured where there is something structured (claude's `rate_limit_event` is read in
//! [`super::extension`]; error data may carry `resetsAt`), else from the text: claude says
//! `resets 2:05pm (UTC)`, codex `try again at 3:05 PM` or `try again in 4 days 20 hours 9 minutes`.
//! Times of day are read as UTC, which is what a box's clock shows.

use super::message::RpcError;
use serde_json::Value;

const SECOND_MS: i64 = 1000;
const MINUTE_MS: i64 = 60 * SECOND_MS;
const HOUR_MS: i64 = 60 * MINUTE_MS;
const DAY_MS: i64 = 24 * HOUR_MS;
/// A time of day that is not longer over than this is today's.
const JUST_PAST_MS: i64 = 10 * MINUTE_MS;
/// Only the beginning of a text is looked at.
const TEXT_BYTES_MAX: usize = 4 << 10;
/// Numbers below this are seconds since 1970, those above milliseconds.
const SECONDS_BELOW: i64 = 100_000_000_000;

/// UTC milliseconds; `None` when nothing in it can be read as a time.
pub fn of_error(error: &RpcError, now_ms: i64) -> Option<i64> {
    of_data(&error.data)
        .or_else(|| of_text(&error.message, now_ms))
        .or_else(|| {
            let inner = error.data["message"].as_str()?;
            of_text(inner, now_ms)
        })
}

fn of_data(data: &Value) -> Option<i64> {
    let at = ["resetsAt", "resets_at", "resetAt"]
        .iter()
        .find_map(|key| data[key].as_i64());
    if let Some(at) = at {
        return if at < SECONDS_BELOW {
            at.checked_mul(SECOND_MS)
        } else {
            Some(at)
        };
    }
    None
}

/// The time a text names, seen from `now_ms`.
pub fn of_text(text: &str, now_ms: i64) -> Option<i64> {
    let text = &text[..text.floor_char_boundary(TEXT_BYTES_MAX)];
    let text = text.to_ascii_lowercase();
    let words: Vec<&str> = text
        .split(|c: char| c.is_whitespace() || matches!(c, ',' | '(' | ')' | ';' | '·' | '|'))
        .map(|word| word.trim_end_matches(['.', '!']))
        .filter(|word| !word.is_empty())
        .collect();
    stamp(&words)
        .or_else(|| {
            after_words(&words, &["in"])
                .and_then(span)
                .and_then(|span| now_ms.checked_add(span))
        })
        .or_else(|| time_of_day(&words, now_ms))
}

/// An RFC 3339 time, or `claude ai usage limit reached|1795962995`.
fn stamp(words: &[&str]) -> Option<i64> {
    words.iter().find_map(|word| {
        let upper = word.to_ascii_uppercase();
        if let Ok(at) = humantime::parse_rfc3339(&upper) {
            let since = at.duration_since(std::time::UNIX_EPOCH).ok()?;
            return i64::try_from(since.as_millis()).ok();
        }
        let number: i64 = word.parse().ok()?;
        (1_500_000_000..4_100_000_000)
            .contains(&number)
            .then(|| number * SECOND_MS)
    })
}

/// What comes behind the first of these words that is followed by a span of time.
fn after_words<'w, 't>(words: &'w [&'t str], heads: &[&str]) -> Option<&'w [&'t str]> {
    words.iter().enumerate().find_map(|(at, word)| {
        let rest = words.get(at + 1..)?;
        (heads.contains(word) && span(rest).is_some()).then_some(rest)
    })
}

/// `4 days 20 hours and 9 minutes`, `2h 5m`.
fn span(words: &[&str]) -> Option<i64> {
    let mut total = 0_i64;
    let mut found = false;
    let mut rest = words.iter().filter(|word| **word != "and").peekable();
    while let Some(word) = rest.next() {
        let digits = word.len() - word.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        let (number, glued) = word.split_at(digits);
        let Ok(number) = number.parse::<i64>() else {
            break;
        };
        let unit = match glued {
            "" => match rest.peek().and_then(|word| unit_ms(word)) {
                Some(unit) => {
                    rest.next();
                    unit
                }
                None => break,
            },
            glued => match unit_ms(glued) {
                Some(unit) => unit,
                None => break,
            },
        };
        total = total.checked_add(number.checked_mul(unit)?)?;
        found = true;
    }
    found.then_some(total)
}

fn unit_ms(word: &str) -> Option<i64> {
    match word {
        "s" | "sec" | "secs" | "second" | "seconds" => Some(SECOND_MS),
        "m" | "min" | "mins" | "minute" | "minutes" => Some(MINUTE_MS),
        "h" | "hr" | "hrs" | "hour" | "hours" => Some(HOUR_MS),
        "d" | "day" | "days" => Some(DAY_MS),
        _ => None,
    }
}

/// `resets 2:05pm`, `try again at 3:05 PM`, `resets at 14:05`: the next such time. A date before it
/// (`Dec 4th, 2026 3:05 PM`) moves it to that day.
fn time_of_day(words: &[&str], now_ms: i64) -> Option<i64> {
    let starts = words
        .iter()
        .position(|word| matches!(*word, "resets" | "reset" | "at"))?;
    let words = words.get(starts..)?;
    let (place, minutes) = words.iter().enumerate().find_map(|(place, word)| {
        let half = words
            .get(place + 1)
            .copied()
            .filter(|half| matches!(*half, "am" | "pm"));
        Some((place, minutes_of_day(word, half)?))
    })?;
    let of_day = minutes * MINUTE_MS;
    if let Some(day) = date(words.get(..place)?, now_ms) {
        return Some(day * DAY_MS + of_day);
    }
    let midnight = now_ms - now_ms.rem_euclid(DAY_MS);
    let today = midnight + of_day;
    // Told to the minute, and read a little later: that is not tomorrow's.
    Some(if today > now_ms - JUST_PAST_MS {
        today
    } else {
        today + DAY_MS
    })
}

/// `2:05pm`, `3:05` before `pm`, `14:05`, `3pm`.
fn minutes_of_day(word: &str, half: Option<&str>) -> Option<i64> {
    let (clock, half) = match word.strip_suffix("am").or_else(|| word.strip_suffix("pm")) {
        Some(clock) => (clock, word.get(clock.len()..)),
        None => (word, half),
    };
    let (hours, minutes) = match clock.split_once(':') {
        Some((hours, minutes)) => (hours, minutes.get(..2)?),
        // A bare number is a time only with its half of the day.
        None if half.is_some() => (clock, "00"),
        None => return None,
    };
    let (hours, minutes): (i64, i64) = (hours.parse().ok()?, minutes.parse().ok()?);
    let hours = match half {
        Some(half) if (1..=12).contains(&hours) => hours % 12 + if half == "pm" { 12 } else { 0 },
        Some(_) => return None,
        None => hours,
    };
    ((0..24).contains(&hours) && (0..60).contains(&minutes)).then_some(hours * 60 + minutes)
}

/// Days since 1970 of `dec 4th 2026`, or `dec 4` of the year that makes it come next.
fn date(words: &[&str], now_ms: i64) -> Option<i64> {
    const MONTHS: [&str; 12] = [
        "jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec",
    ];
    let (at, month) = words.iter().enumerate().find_map(|(at, word)| {
        let head = word.get(..3)?;
        Some((at, MONTHS.iter().position(|month| *month == head)? + 1))
    })?;
    let number = |word: &&str| -> Option<i64> {
        let digits = word.trim_end_matches(|c: char| c.is_ascii_alphabetic());
        digits.parse().ok()
    };
    let day = words
        .get(at + 1)
        .and_then(number)
        .filter(|day| (1..=31).contains(day))?;
    let year = words
        .get(at + 2)
        .and_then(number)
        .filter(|year| *year >= 2000);
    let month = i64::try_from(month).ok()?;
    if let Some(year) = year {
        return Some(days_since_1970(year, month, day));
    }
    let today = now_ms.div_euclid(DAY_MS);
    let this_year = 1970 + today * 400 / 146_097;
    (this_year - 1..=this_year + 1)
        .map(|year| days_since_1970(year, month, day))
        .find(|day| *day >= today)
}

/// The civil calendar (H. Hinnant's algorithm, chrono-compatible low-level date algorithms).
fn days_since_1970(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let of_era = year.rem_euclid(400);
    let from_march = (month + 9) % 12;
    let of_year = (153 * from_march + 2) / 5 + day - 1;
    let days = of_era * 365 + of_era / 4 - of_era / 100 + of_year;
    era * 146_097 + days - 719_468
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// 2026-11-29T12:00:00Z
    const NOW_MS: i64 = 1_795_953_600_000;

    fn shown(text: &str) -> Option<String> {
        of_text(text, NOW_MS).map(crate::clock::shown_ms)
    }

    #[test]
    fn texts_of_agents_are_read() {
        for (text, at) in [
            (
                "You've hit your 5-hour limit · resets 2:05pm (UTC)",
                "2026-11-29T14:05:00Z",
            ),
            (
                "You've hit your limit · resets 9am (UTC)",
                "2026-11-30T09:00:00Z",
            ),
            ("resets Dec 4, 1am (UTC)", "2026-12-04T01:00:00Z"),
            ("resets Jan 2 at 12am", "2027-01-02T00:00:00Z"),
            (
                "You've hit your usage limit. Try again at 3:05 PM.",
                "2026-11-29T15:05:00Z",
            ),
            (
                "Upgrade, or try again at Dec 4th, 2026 3:05 PM.",
                "2026-12-04T15:05:00Z",
            ),
            (
                "try again in 4 days 20 hours 9 minutes.",
                "2026-12-04T08:09:00Z",
            ),
            (
                "Please try again in 1 hour and 30 minutes",
                "2026-11-29T13:30:00Z",
            ),
            ("retry in 2h 5m", "2026-11-29T14:05:00Z"),
            ("resets 11:55am (UTC)", "2026-11-29T11:55:00Z"),
            ("limit resets at 14:05", "2026-11-29T14:05:00Z"),
            (
                "Claude AI usage limit reached|1795962995",
                "2026-11-29T14:36:35Z",
            ),
            ("until 2026-12-01T00:00:00Z", "2026-12-01T00:00:00Z"),
        ] {
            assert_eq!(shown(text).as_deref(), Some(at), "{text}");
        }
    }

    #[test]
    fn texts_that_name_no_time_are_not_guessed_at() {
        for text in [
            "usage limit",
            "rate limited, in short",
            "reset 25:99",
            "resets 13pm",
            "at 7 of 10 requests",
            "error 429 at step 3",
            "in 5 apples",
            "",
        ] {
            assert_eq!(shown(text), None, "{text}");
        }
        assert_eq!(
            of_text(&"in 99999999999999999 days ".repeat(999), NOW_MS),
            None
        );
    }

    #[test]
    fn data_comes_before_text() {
        let error = |data| RpcError {
            code: -32603,
            message: "resets 2:05pm".into(),
            data,
        };
        let data = json!({"resetsAt": 1_795_962_995});
        assert_eq!(of_error(&error(data), NOW_MS), Some(1_795_962_995_000));
        let nested = json!({"message":"try again in 1 hour"});
        assert_eq!(
            of_error(&error(nested), NOW_MS),
            of_text("resets 2:05pm", NOW_MS),
            "the message first"
        );
    }
}
