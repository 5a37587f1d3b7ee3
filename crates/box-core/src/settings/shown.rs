//! Settings as a person sees them: every key, its value as the file would have it, and where the
//! value came from.

use super::budget::shown_prices;
use super::net::shown_sets;
use super::{LimitSettings, Origin, Setting, Settings, idle};
use box_api::control::{NetPreset, Profile};
use box_api::egress::upstream::Told;

/// One setting.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shown {
    /// As it stands in the file: section, point, key.
    pub key: &'static str,
    /// As TOML; empty when nothing is set.
    pub value: String,
    pub origin: Origin,
}

impl Settings {
    /// Every setting there is, in the order of the file's sections.
    pub fn shown(&self) -> Vec<Shown> {
        let Self {
            resolvers,
            extra_roots,
            profile,
            preset,
            net,
            upstream,
            limits,
            budget,
            ..
        } = self;
        let mut all = vec![
            row("egress.resolvers", resolvers, |all| {
                match upstream.secure_resolvers.as_slice() {
                    [] => list(all),
                    secure => list(secure),
                }
            }),
            row("egress.proxy", &upstream.proxy, |proxy| {
                let proxy = proxy.as_ref().map(|proxy| quoted(&proxy.shown()));
                proxy.unwrap_or_default()
            }),
            row("egress.no_proxy", &upstream.no_proxy, |all| list(all)),
            row("egress.proxy_told", &upstream.told, |told| {
                quoted(&match told {
                    Told::Address => "address",
                    Told::Name => "name",
                })
            }),
            row("egress.extra_roots", extra_roots, |path| {
                let path = path.as_ref().map(|path| quoted(&path.display()));
                path.unwrap_or_default()
            }),
            row("box.profile", profile, |profile| {
                quoted(&match profile {
                    Profile::Locked => "locked",
                    Profile::Root => "root",
                })
            }),
            row("net.preset", preset, |preset| {
                quoted(&match preset {
                    NetPreset::Balanced => "balanced",
                    NetPreset::Open => "open",
                    NetPreset::Locked => "locked",
                })
            }),
            row("net.allow", &net.allow, |all| list(all)),
            row("net.deny", &net.deny, |all| list(all)),
            row("net.sets", &net.sets, shown_sets),
        ];
        all.extend(self.shown_page());
        all.extend([
            row("budget.limits", &budget.limits, |limits| {
                if limits.is_off() {
                    String::new()
                } else {
                    quoted(limits)
                }
            }),
            row("budget.prices", &budget.prices, shown_prices),
        ]);
        all.extend(limits.shown());
        all.extend(self.shown_kept());
        all
    }

    /// The page, and whom it tells.
    fn shown_page(&self) -> [Shown; 6] {
        let Self { page, push, .. } = self;
        [
            row("page.listen", &page.listen, |listen| {
                quoted(&listen.shown())
            }),
            row("page.hosts", &page.hosts, |all| list(all)),
            row("page.proxies", &page.proxies, |all| list(all)),
            row("page.metrics", &page.metrics, ToString::to_string),
            row("push.subject", &push.subject, |subject| {
                subject.as_ref().map(quoted).unwrap_or_default()
            }),
            row("push.settle", &push.settle_s, ToString::to_string),
        ]
    }

    /// What is kept and for how long, and what waits.
    fn shown_kept(&self) -> Vec<Shown> {
        let Self {
            pristine,
            bootstrapped,
            undo,
            store_size_bytes,
            store_reserve_bytes,
            seal,
            permission_hold,
            permission_fallback,
            trash_days,
            freeze_after_ms,
            pool_max,
            pool_reserve_bytes,
            ..
        } = self;
        vec![
            row("snapshot.pristine", pristine, ToString::to_string),
            row("snapshot.bootstrapped", bootstrapped, ToString::to_string),
            row("snapshot.undo", undo, |undo| quoted(&undo.word())),
            row("store.size", store_size_bytes, |bytes| {
                bytes.map(size).unwrap_or_default()
            }),
            row("store.reserve", store_reserve_bytes, |bytes| {
                bytes.map(size).unwrap_or_default()
            }),
            row("credentials.seal", seal, |seal| quoted(&seal.word())),
            row(
                "decisions.permission_hold",
                permission_hold,
                ToString::to_string,
            ),
            row(
                "decisions.permission_fallback",
                permission_fallback,
                |fallback| quoted(&fallback.word()),
            ),
            row("trash.days", trash_days, ToString::to_string),
            row("box.freeze_after", freeze_after_ms, |ms| {
                quoted(&idle::shown(*ms))
            }),
            row("pool.max", pool_max, ToString::to_string),
            row("pool.reserve", pool_reserve_bytes, |bytes| {
                bytes.map(size).unwrap_or_default()
            }),
        ]
    }
}

impl LimitSettings {
    fn shown(&self) -> [Shown; 6] {
        let Self {
            cpu_milli,
            memory_bytes,
            pids,
            tmp_bytes,
            disk_bytes,
            open_files,
        } = self;
        [
            row("limits.cpus", cpu_milli, |milli| {
                let places = format!("{}.{:03}", milli / 1000, milli % 1000);
                places
                    .trim_end_matches('0')
                    .trim_end_matches('.')
                    .to_owned()
            }),
            row("limits.memory", memory_bytes, |bytes| size(*bytes)),
            row("limits.pids", pids, ToString::to_string),
            row("limits.tmp", tmp_bytes, |bytes| size(*bytes)),
            row("limits.disk", disk_bytes, |bytes| size(*bytes)),
            row("limits.open_files", open_files, ToString::to_string),
        ]
    }
}

fn row<T>(key: &'static str, setting: &Setting<T>, show: impl FnOnce(&T) -> String) -> Shown {
    Shown {
        key,
        value: show(&setting.value),
        origin: setting.origin.clone(),
    }
}

fn quoted(text: &impl ToString) -> String {
    format!("{:?}", text.to_string())
}

fn list(items: &[impl ToString]) -> String {
    let items: Vec<String> = items.iter().map(quoted).collect();
    format!("[{}]", items.join(", "))
}

/// In the largest unit that leaves a whole number.
fn size(bytes: u64) -> String {
    let units = [(40, "TiB"), (30, "GiB"), (20, "MiB"), (10, "KiB")];
    let fits = units
        .iter()
        .find(|(shift, _)| bytes > 0 && bytes.trailing_zeros() >= *shift);
    match fits {
        Some((shift, unit)) => quoted(&format!("{}{unit}", bytes >> shift)),
        None => bytes.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    #[test]
    fn every_key_that_is_read_is_shown() {
        let shown = Settings::default().shown();
        let keys: Vec<String> = shown.iter().map(|one| format!("`{}`", one.key)).collect();
        let known = super::super::read::known_keys();
        let mut known: Vec<&str> = known.split(", ").collect();
        let mut keys: Vec<&str> = keys.iter().map(String::as_str).collect();
        known.sort_unstable();
        keys.sort_unstable();
        assert_eq!(keys, known);
    }

    #[test]
    fn what_is_shown_can_be_read_again() {
        let path = Path::new("/etc/box/config.toml");
        let text = "[egress]\nresolvers = [\"192.0.2.53\"]\n[limits]\ncpus = 0.5\nmemory = \"3GiB\"\n\
                    tmp = 1048577\n[net]\nallow = [\"a.example\"]\n";
        let read = Settings::parse(path, text).unwrap();
        let set = read.shown().into_iter();
        let again: Vec<String> = set
            .filter(|one| one.origin != Origin::Default)
            .map(|one| format!("{} = {}", one.key, one.value))
            .collect();
        let again = again.join("\n");
        assert!(again.contains("limits.memory = \"3GiB\""), "{again}");
        assert!(again.contains("limits.tmp = 1048577"), "{again}");
        assert_eq!(Settings::parse(path, &again).unwrap(), read);
    }
}
