//! Amounts as people write them: CPUs, sizes, lengths of time, counts. The one reading of each, for
//! the options of `new` and `run` and for `box set`.

/// `2` or `0.5` CPUs, in thousandths.
///
/// # Errors
/// What it should look like.
pub(super) fn cpu_milli(text: &str) -> Result<u32, String> {
    let (whole, part) = text.split_once('.').unwrap_or((text, ""));
    let digits = format!("{whole}{part:0<3}");
    let plain = !whole.is_empty() && part.len() <= 3;
    let milli = digits
        .parse::<u32>()
        .ok()
        .filter(|milli| plain && *milli > 0);
    milli.ok_or_else(|| "a number of CPUs such as `2` or `0.5`".to_owned())
}

/// `512M` or `4G`, in bytes.
///
/// # Errors
/// What it should look like.
pub(super) fn size(text: &str) -> Result<u64, String> {
    let digits = text.trim_end_matches(|c: char| !c.is_ascii_digit());
    let unit = match &text[digits.len()..] {
        "" => Some(0),
        "K" | "KiB" | "k" => Some(10),
        "M" | "MiB" | "m" => Some(20),
        "G" | "GiB" | "g" => Some(30),
        "T" | "TiB" | "t" => Some(40),
        _ => None,
    };
    let bytes = digits
        .parse::<u64>()
        .ok()
        .zip(unit)
        .and_then(|(number, shift)| number.checked_mul(1 << shift));
    bytes
        .filter(|bytes| *bytes > 0)
        .ok_or_else(|| "a size such as `512M` or `4G`".to_owned())
}

/// `90s`, `30m`, `4h`, `1h30m` or `2d`, in milliseconds.
///
/// # Errors
/// What it should look like.
pub(super) fn span_ms(text: &str) -> Result<u64, String> {
    let wrong = || "a time such as `90s`, `30m`, `4h` or `1h30m`".to_owned();
    let (mut rest, mut total_ms, mut last_unit_ms) = (text, 0u64, u64::MAX);
    while !rest.is_empty() {
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        let number = rest[..digits].parse::<u64>().map_err(|_| wrong())?;
        let unit_ms: u64 = match rest.as_bytes().get(digits) {
            Some(b's') => 1000,
            Some(b'm') => 60_000,
            Some(b'h') => 3_600_000,
            Some(b'd') => 86_400_000,
            Some(_) | None => return Err(wrong()),
        };
        // Larger units come first, each once.
        if unit_ms >= last_unit_ms {
            return Err(wrong());
        }
        last_unit_ms = unit_ms;
        let part_ms = number.checked_mul(unit_ms).ok_or_else(wrong)?;
        total_ms = total_ms.checked_add(part_ms).ok_or_else(wrong)?;
        rest = &rest[digits + 1..];
    }
    if total_ms == 0 {
        Err(wrong())
    } else {
        Ok(total_ms)
    }
}

/// As [`span_ms`], or `off`, which is 0.
///
/// # Errors
/// What it should look like.
pub(super) fn span_ms_or_off(text: &str) -> Result<u64, String> {
    if text == "off" {
        return Ok(0);
    }
    span_ms(text).map_err(|should| format!("{should}, or `off`"))
}

/// A whole number of things.
///
/// # Errors
/// What it should look like.
pub(super) fn count(text: &str) -> Result<u32, String> {
    let count = text.parse::<u32>().ok().filter(|count| *count > 0);
    count.ok_or_else(|| "a whole number such as `512`".to_owned())
}

/// A length of time the way [`span_ms`] reads it.
pub(super) fn shown_span(ms: u64) -> String {
    let seconds = ms / 1000;
    let parts = [
        (seconds / 86_400, "d"),
        (seconds / 3600 % 24, "h"),
        (seconds / 60 % 60, "m"),
        (seconds % 60, "s"),
    ];
    let parts = parts.iter().filter(|(count, _)| *count > 0);
    let mut text = String::new();
    for (count, unit) in parts {
        text.push_str(&count.to_string());
        text.push_str(unit);
    }
    if text.is_empty() {
        "0s".to_owned()
    } else {
        text
    }
}

/// CPUs the way [`cpu_milli`] reads them.
pub(super) fn shown_cpus(milli: u32) -> String {
    let text = format!("{}.{:03}", milli / 1000, milli % 1000);
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_are_read_as_people_write_them() {
        assert_eq!(size("4G"), Ok(4 << 30));
        assert_eq!(size("512MiB"), Ok(512 << 20));
        assert_eq!(size("1000"), Ok(1000));
        for bad in ["", "G", "4 G", "-1", "0", "4X", "99999999999T"] {
            assert!(size(bad).is_err(), "{bad}");
        }
        assert_eq!(cpu_milli("2"), Ok(2000));
        assert_eq!(cpu_milli("0.5"), Ok(500));
        for bad in ["", ".5", "0", "1.2345", "x", "-1"] {
            assert!(cpu_milli(bad).is_err(), "{bad}");
        }
        assert_eq!(count("512"), Ok(512));
        for bad in ["", "0", "-1", "1.5", "99999999999"] {
            assert!(count(bad).is_err(), "{bad}");
        }
        assert_eq!(span_ms("90s"), Ok(90_000));
        assert_eq!(span_ms("1h30m"), Ok(5_400_000));
        assert_eq!(span_ms("2d"), Ok(172_800_000));
        for bad in [
            "",
            "90",
            "m",
            "0s",
            "30m1h",
            "1h1h",
            "1.5h",
            "-1h",
            "1ü",
            "99999999999999999d",
        ] {
            assert!(span_ms(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn amounts_are_shown_as_they_are_read() {
        for span in ["90s", "1m30s", "4h", "1d1h1m1s"] {
            let ms = span_ms(span).unwrap();
            assert_eq!(span_ms(&shown_span(ms)), Ok(ms));
        }
        assert_eq!(shown_span(5_400_000), "1h30m");
        assert_eq!(
            ["2", "0.5", "1.25"].map(|cpus| shown_cpus(cpu_milli(cpus).unwrap())),
            ["2", "0.5", "1.25"]
        );
    }
}
