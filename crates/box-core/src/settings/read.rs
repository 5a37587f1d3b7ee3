//! From TOML to [`Settings`]: one table of keys, so that what is known and what is read cannot
//! differ.

use super::{Origin, SealChoice, Setting, Settings, SettingsError, idle, upstream};
use crate::decisions::Fallback;
use crate::suggest::nearest;
use box_api::control::{NetPreset, Profile};
use box_api::egress::HostPattern;
use box_api::restore_point::TurnUndo;
use std::path::{Path, PathBuf};
use toml::{Table, Value};

const RESOLVERS_MAX: usize = 8;
const MIB: u64 = 1 << 20;

/// Puts a value where it belongs, or says why it cannot be.
type Put = fn(&mut Settings, &Value, Origin) -> Result<(), String>;

/// Every key there is.
const KEYS: &[(&str, Put)] = &[
    ("egress.resolvers", |s, v, from| {
        let (plain, secure) = upstream::servers(list(v, RESOLVERS_MAX, upstream::server)?)?;
        s.upstream.secure_resolvers = secure;
        put(&mut s.resolvers, plain, from)
    }),
    ("egress.extra_roots", |s, v, from| {
        put(&mut s.extra_roots, Some(pem_path(v)?), from)
    }),
    ("box.profile", |s, v, from| {
        put(&mut s.profile, profile(v)?, from)
    }),
    ("net.preset", |s, v, from| {
        put(&mut s.preset, preset(v)?, from)
    }),
    ("egress.proxy", |s, v, from| s.upstream.put_proxy(v, from)),
    ("egress.no_proxy", |s, v, from| {
        s.upstream.put_no_proxy(v, from)
    }),
    ("egress.proxy_told", |s, v, from| {
        s.upstream.put_told(v, from)
    }),
    ("net.allow", |s, v, from| s.net.put_allow(v, from)),
    ("net.deny", |s, v, from| s.net.put_deny(v, from)),
    ("net.sets", |s, v, from| s.net.put_sets(v, from)),
    ("page.listen", |s, v, from| s.page.put_listen(v, from)),
    ("page.hosts", |s, v, from| s.page.put_hosts(v, from)),
    ("page.proxies", |s, v, from| s.page.put_proxies(v, from)),
    ("page.metrics", |s, v, from| s.page.put_metrics(v, from)),
    ("push.subject", |s, v, from| s.push.put_subject(v, from)),
    ("push.settle", |s, v, from| s.push.put_settle(v, from)),
    ("limits.cpus", |s, v, from| {
        put(&mut s.limits.cpu_milli, cpus(v)?, from)
    }),
    ("limits.memory", |s, v, from| {
        put(&mut s.limits.memory_bytes, bytes(v, 16 * MIB)?, from)
    }),
    ("limits.pids", |s, v, from| {
        put(&mut s.limits.pids, count(v, 8)?, from)
    }),
    ("limits.tmp", |s, v, from| {
        put(&mut s.limits.tmp_bytes, bytes(v, MIB)?, from)
    }),
    ("limits.disk", |s, v, from| {
        put(&mut s.limits.disk_bytes, bytes(v, 16 * MIB)?, from)
    }),
    ("limits.open_files", |s, v, from| {
        put(&mut s.limits.open_files, count(v, 64)?, from)
    }),
    ("snapshot.pristine", |s, v, from| {
        put(&mut s.pristine, truth(v)?, from)
    }),
    ("snapshot.bootstrapped", |s, v, from| {
        put(&mut s.bootstrapped, truth(v)?, from)
    }),
    ("snapshot.undo", |s, v, from| {
        let undo = TurnUndo::parse(text(v)?).map_err(|should| format!("it is not {should}"))?;
        put(&mut s.undo, undo, from)
    }),
    ("store.size", |s, v, from| {
        put(&mut s.store_size_bytes, Some(bytes(v, 1 << 30)?), from)
    }),
    ("store.reserve", |s, v, from| {
        put(&mut s.store_reserve_bytes, Some(bytes(v, MIB)?), from)
    }),
    ("credentials.seal", |s, v, from| {
        put(&mut s.seal, seal(v)?, from)
    }),
    ("decisions.permission_hold", |s, v, from| {
        put(&mut s.permission_hold, count(v, 1)?, from)
    }),
    ("decisions.permission_fallback", |s, v, from| {
        put(&mut s.permission_fallback, Fallback::parse(text(v)?)?, from)
    }),
    ("budget.limits", |s, v, from| s.budget.put_limits(v, from)),
    ("budget.prices", |s, v, from| s.budget.put_prices(v, from)),
    ("box.freeze_after", |s, v, from| {
        put(&mut s.freeze_after_ms, idle::time(v)?, from)
    }),
    ("pool.max", |s, v, from| {
        put(&mut s.pool_max, idle::spares(v)?, from)
    }),
    ("pool.reserve", |s, v, from| {
        put(&mut s.pool_reserve_bytes, Some(bytes(v, MIB)?), from)
    }),
    ("trash.days", |s, v, from| {
        put(&mut s.trash_days, count(v, 0)?, from)
    }),
];

pub(super) fn settings(path: &Path, text: &str) -> Result<Settings, SettingsError> {
    let table: Table = text.parse().map_err(|error| SettingsError::Toml {
        path: path.to_owned(),
        source: Box::new(error),
    })?;
    let mut settings = Settings::default();
    for (section, value) in &table {
        for (key, value) in keys_of(section, value) {
            let Some((name, put)) = KEYS.iter().find(|(name, _)| *name == key) else {
                return Err(unknown(path, key));
            };
            put(&mut settings, value, Origin::File(path.to_owned())).map_err(|why| {
                SettingsError::Value {
                    path: path.to_owned(),
                    key: name,
                    why,
                }
            })?;
        }
    }
    Ok(settings)
}

/// The dotted keys below a section. A bare key, or an unknown section without keys, stands for
/// itself and is then refused by its own name.
fn keys_of<'t>(section: &str, value: &'t Value) -> Vec<(String, &'t Value)> {
    let known = KEYS
        .iter()
        .any(|(name, _)| name.split('.').next() == Some(section));
    match value.as_table() {
        Some(keys) if known || !keys.is_empty() => keys
            .iter()
            .map(|(key, value)| (format!("{section}.{key}"), value))
            .collect(),
        Some(_) | None => vec![(section.to_owned(), value)],
    }
}

fn unknown(path: &Path, key: String) -> SettingsError {
    let names: Vec<&str> = KEYS.iter().map(|(name, _)| *name).collect();
    let near = nearest(&key, &names).map(str::to_owned);
    SettingsError::UnknownKey {
        path: path.to_owned(),
        key,
        near,
    }
}

pub(super) fn known_keys() -> String {
    KEYS.iter()
        .map(|(name, _)| format!("`{name}`"))
        .collect::<Vec<_>>()
        .join(", ")
}

#[expect(
    clippy::unnecessary_wraps,
    reason = "the shape every row of the table has"
)]
fn put<T>(slot: &mut Setting<T>, value: T, origin: Origin) -> Result<(), String> {
    *slot = Setting { value, origin };
    Ok(())
}

pub(super) fn text(value: &Value) -> Result<&str, String> {
    value
        .as_str()
        .ok_or_else(|| format!("it is {}, not a text", value.type_str()))
}

fn truth(value: &Value) -> Result<bool, String> {
    value
        .as_bool()
        .ok_or_else(|| format!("it is {}, not `true` or `false`", value.type_str()))
}

pub(super) fn list<T>(
    value: &Value,
    items_max: usize,
    parse: fn(&str) -> Result<T, String>,
) -> Result<Vec<T>, String> {
    let items = value
        .as_array()
        .ok_or_else(|| format!("it is {}, not a list", value.type_str()))?;
    if items.len() > items_max {
        return Err(format!("it has more than {items_max} entries"));
    }
    items.iter().map(|item| parse(text(item)?)).collect()
}

pub(super) fn pattern(text: &str) -> Result<HostPattern, String> {
    HostPattern::parse(text).map_err(|error| error.to_string())
}

fn pem_path(value: &Value) -> Result<PathBuf, String> {
    let path = PathBuf::from(text(value)?);
    if path.is_absolute() {
        Ok(path)
    } else {
        Err("the path is not absolute".to_owned())
    }
}

fn profile(value: &Value) -> Result<Profile, String> {
    match text(value)? {
        "locked" => Ok(Profile::Locked),
        "root" => Ok(Profile::Root),
        other => Err(format!("`{other}` is neither `locked` nor `root`")),
    }
}

fn seal(value: &Value) -> Result<SealChoice, String> {
    let all = [
        SealChoice::Auto,
        SealChoice::Keyring,
        SealChoice::SystemdCreds,
        SealChoice::Passphrase,
        SealChoice::Memory,
    ];
    let word = text(value)?;
    let found = all.into_iter().find(|choice| choice.word() == word);
    found.ok_or_else(|| {
        let words = all.map(SealChoice::word).join("`, `");
        format!("`{word}` is none of `{words}`")
    })
}

fn preset(value: &Value) -> Result<NetPreset, String> {
    match text(value)? {
        "balanced" => Ok(NetPreset::Balanced),
        "open" => Ok(NetPreset::Open),
        "locked" => Ok(NetPreset::Locked),
        other => Err(format!("`{other}` is none of `balanced`, `open`, `locked`")),
    }
}

/// `2`, `0.5`: CPUs, with three places behind the point.
fn cpus(value: &Value) -> Result<u32, String> {
    let whole = value
        .as_integer()
        .map(|whole| f64::from(i32::try_from(whole).unwrap_or(-1)));
    let Some(cpus) = whole.or(value.as_float()) else {
        return Err(format!("it is {}, not a number", value.type_str()));
    };
    if !(0.01..=4096.0).contains(&cpus) {
        return Err("it is not between 0.01 and 4096".to_owned());
    }
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "checked above: between 10 and 4,096,000"
    )]
    Ok((cpus * 1000.0).round() as u32)
}

pub(super) fn count(value: &Value, least: u32) -> Result<u32, String> {
    let number = value
        .as_integer()
        .ok_or_else(|| format!("it is {}, not a whole number", value.type_str()))?;
    let number = u32::try_from(number).ok().filter(|number| *number >= least);
    number.ok_or_else(|| format!("it is not a number from {least} on"))
}

/// `"4GiB"`, `"512MiB"`, or a number of bytes.
fn bytes(value: &Value, least: u64) -> Result<u64, String> {
    let plain = value
        .as_integer()
        .and_then(|bytes| u64::try_from(bytes).ok());
    plain
        .or_else(|| value.as_str().and_then(size))
        .filter(|bytes| *bytes >= least && i64::try_from(*bytes).is_ok())
        .ok_or_else(|| format!("it is not a size of at least {least} bytes, such as `4GiB`"))
}

fn size(text: &str) -> Option<u64> {
    let unit_at = text
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(text.len());
    let (digits, unit) = text.split_at(unit_at);
    let shift = match unit.trim() {
        "" | "B" => 0,
        "KiB" | "K" => 10,
        "MiB" | "M" => 20,
        "GiB" | "G" => 30,
        "TiB" | "T" => 40,
        _ => return None,
    };
    digits.parse::<u64>().ok()?.checked_mul(1 << shift)
}
