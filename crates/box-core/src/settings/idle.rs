//! `[box] freeze_after` and `[pool]`: what is made of boxes nobody wants anything of, and of those
//! nobody has asked for yet.

use super::read::{count, text};
use toml::Value;

/// More are never of use: each is memory that somebody else could have.
const SPARES_MAX: u32 = 64;
const OFF: &str = "off";
/// As long as anything else that is set in a box may be.
const DAYS_MAX: u64 = 3660;
const UNITS: [(char, u64); 4] = [
    ('d', 86_400_000),
    ('h', 3_600_000),
    ('m', 60_000),
    ('s', 1000),
];

/// `"30m"`, or `"off"` for never, which is 0 milliseconds.
pub(super) fn time(value: &Value) -> Result<u64, String> {
    let should = || format!("it is no time such as `30m`, nor `{OFF}`");
    let typed = text(value)?;
    if typed == OFF {
        return Ok(0);
    }
    let unit = typed.chars().last();
    let found = UNITS.iter().find(|(name, _)| Some(*name) == unit);
    let (_, unit_ms) = found.ok_or_else(should)?;
    let number: u64 = typed[..typed.len() - 1].parse().map_err(|_| should())?;
    let ms = number.checked_mul(*unit_ms).ok_or_else(should)?;
    if (1..=DAYS_MAX * 86_400_000).contains(&ms) {
        Ok(ms)
    } else {
        Err(should())
    }
}

/// As the file has it.
pub(super) fn shown(ms: u64) -> String {
    if ms == 0 {
        return OFF.to_owned();
    }
    let fits = UNITS
        .iter()
        .find(|(_, unit_ms)| ms.is_multiple_of(*unit_ms));
    fits.map_or_else(
        || format!("{ms}"),
        |(name, unit_ms)| format!("{}{name}", ms / unit_ms),
    )
}

/// A number of spares, or `"off"`.
pub(super) fn spares(value: &Value) -> Result<u32, String> {
    if value.as_str() == Some(OFF) {
        return Ok(0);
    }
    let number = count(value, 0)?;
    if number > SPARES_MAX {
        return Err(format!("it is more than {SPARES_MAX}"));
    }
    Ok(number)
}

#[cfg(test)]
mod tests {
    use super::super::Settings;
    use std::path::Path;

    fn parse(text: &str) -> Result<Settings, String> {
        Settings::parse(Path::new("/etc/box/config.toml"), text).map_err(|error| error.to_string())
    }

    #[test]
    fn idle_boxes_are_frozen_after_half_an_hour_unless_the_settings_say_otherwise() {
        assert_eq!(parse("").unwrap().freeze_after_ms.value, 1_800_000);
        for (text, ms) in [
            ("90s", 90_000),
            ("2h", 7_200_000),
            ("1d", 86_400_000),
            ("off", 0),
        ] {
            let settings = parse(&format!("[box]\nfreeze_after = \"{text}\"\n")).unwrap();
            assert_eq!(settings.freeze_after_ms.value, ms);
            assert_eq!(super::shown(ms), text);
        }
        for text in [
            "\"\"",
            "\"30\"",
            "\"0m\"",
            "\"m\"",
            "30",
            "\"99999999d\"",
            "\"5µ\"",
        ] {
            let why = parse(&format!("[box]\nfreeze_after = {text}\n")).unwrap_err();
            assert!(why.contains("`box.freeze_after`"), "{why}");
        }
    }

    #[test]
    fn the_pool_has_a_size_and_can_be_off() {
        assert_eq!(parse("").unwrap().pool_max.value, 4);
        assert_eq!(parse("[pool]\nmax = \"off\"\n").unwrap().pool_max.value, 0);
        assert_eq!(parse("[pool]\nmax = 0\n").unwrap().pool_max.value, 0);
        let set = parse("[pool]\nmax = 9\nreserve = \"2GiB\"\n").unwrap();
        assert_eq!(
            (set.pool_max.value, set.pool_reserve_bytes.value),
            (9, Some(2 << 30))
        );
        for text in ["max = -1", "max = 1000", "max = \"many\"", "reserve = 1"] {
            let why = parse(&format!("[pool]\n{text}\n")).unwrap_err();
            assert!(why.contains("`pool."), "{why}");
        }
    }
}
