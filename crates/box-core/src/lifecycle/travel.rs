//! What the host adds to an archive, and what it takes from one: everything that makes a box the
//! same box elsewhere, and nothing that makes it somebody (B25–B30, D34).

use crate::boxes::{BoxRecord, rows};
use crate::network::rules::{Rule, Ruling};
use box_api::BoxTitle;
use box_api::control::{BoxSettings, Limits, NetPreset, Origin, Profile};
use box_api::egress::HostName;
use box_runtime::Manifest;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::net::Ipv4Addr;

/// Most names a box takes along; those it learned first.
pub(super) const NAMES_MAX: usize = 32_768;
/// Longest name of an image, characters.
const IMAGE_CHARS_MAX: usize = 512;
/// Where fake addresses lie (RFC 2544).
const RANGE: (Ipv4Addr, Ipv4Addr) = (
    Ipv4Addr::new(198, 18, 0, 0),
    Ipv4Addr::new(198, 19, 255, 255),
);

/// The host's part of a manifest. Fields are only ever added.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Carried {
    pub(super) title: Option<BoxTitle>,
    pub(super) profile: Profile,
    pub(super) net: NetPreset,
    pub(super) limits: Limits,
    #[serde(default)]
    pub(super) settings: BoxSettings,
    /// Entries of the box's own, its owner's for it included.
    #[serde(default)]
    pub(super) allow: Vec<String>,
    #[serde(default)]
    pub(super) deny: Vec<String>,
    /// As it was written: a record that went wrong must not keep a box from coming home (B29).
    #[serde(default)]
    pub(super) origin: Value,
    #[serde(default)]
    pub(super) created_at_ms: i64,
    /// The fake address of every name it has asked for: what it runs may still hold one.
    #[serde(default)]
    pub(super) names: Vec<(HostName, Ipv4Addr)>,
}

impl Carried {
    pub(super) fn of(record: &BoxRecord, names: Vec<(HostName, Ipv4Addr)>, rules: &[Rule]) -> Self {
        let own = |ruling: Ruling| {
            let own = rules.iter().filter(move |rule| rule.box_id.is_some());
            own.filter(move |rule| rule.ruling == ruling)
                .map(|rule| rule.entry.clone())
        };
        let mut allow = record.allow.clone();
        allow.extend(own(Ruling::Allow).filter(|entry| !record.allow.contains(entry)));
        Self {
            title: record.title.clone(),
            profile: record.profile,
            net: record.net,
            limits: record.limits,
            settings: record.settings.clone(),
            allow,
            deny: own(Ruling::Deny).collect(),
            // An enum of plain fields is always JSON.
            origin: serde_json::to_value(&record.origin).unwrap_or_default(),
            created_at_ms: record.created_at_ms,
            names,
        }
    }

    /// What an archive says, as far as it can be said of a box at all.
    pub(super) fn read(manifest: &Manifest) -> Result<Self, String> {
        let carried: Self = serde_json::from_value(manifest.host.clone())
            .map_err(|error| format!("its manifest is unreadable: {error}"))?;
        let plain = |c: char| !c.is_control();
        if manifest.image.chars().count() > IMAGE_CHARS_MAX || !manifest.image.chars().all(plain) {
            return Err("its manifest names an image no image can be called".to_owned());
        }
        if carried.names.len() > NAMES_MAX {
            return Err(format!("its manifest knows more than {NAMES_MAX} names"));
        }
        let (first, last) = RANGE;
        if carried
            .names
            .iter()
            .any(|(_, address)| !(first..=last).contains(address))
        {
            return Err("its manifest has a name with an address no box gives".to_owned());
        }
        Ok(carried)
    }
}

/// Names and fake addresses of a box, by address: as it learned them.
pub(super) fn names_of(
    connection: &rusqlite::Connection,
    id: &box_api::BoxId,
) -> rusqlite::Result<Vec<(HostName, Ipv4Addr)>> {
    let all = rows::names(connection, id, NAMES_MAX)?;
    let known = all.into_iter().filter_map(|(name, address)| {
        let name = HostName::parse(&name).ok()?;
        Some((name, Ipv4Addr::from(address)))
    });
    Ok(known.collect())
}

/// The record of a journey: when it travelled first is pinned, when last is new, how often is
/// counted (B29). Whatever the archive's own record is like, there is one.
pub(super) fn origin(manifest: &Manifest, carried: &Carried, now_ms: i64) -> Origin {
    let before = &carried.origin;
    let travelled = before.get("from").and_then(Value::as_str) == Some("import");
    let number = |key: &str| before.get(key).filter(|_| travelled);
    let first = number("first_imported_at_ms").and_then(Value::as_i64);
    let times = number("times").and_then(Value::as_u64).unwrap_or(0);
    let at_home = if travelled {
        before.get("before").cloned().unwrap_or_default()
    } else {
        before.clone()
    };
    let lineage: Option<Origin> = serde_json::from_value(at_home).unwrap_or_default();
    Origin::Import {
        id: manifest.id,
        name: manifest.name.clone(),
        exported_at_ms: manifest.exported_at_ms,
        first_imported_at_ms: first.unwrap_or(now_ms),
        last_imported_at_ms: now_ms,
        times: u32::try_from(times).unwrap_or(u32::MAX).saturating_add(1),
        before: lineage
            .filter(|origin| matches!(origin, Origin::Clone { .. }))
            .map(Box::new),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use box_api::{BoxId, BoxName};
    use serde_json::json;

    fn carried(origin: Value) -> Carried {
        Carried {
            title: None,
            profile: Profile::Locked,
            net: NetPreset::Balanced,
            limits: Limits::default(),
            settings: BoxSettings::default(),
            allow: Vec::new(),
            deny: Vec::new(),
            origin,
            created_at_ms: 5,
            names: Vec::new(),
        }
    }

    fn manifest(carried: &Carried) -> Manifest {
        Manifest {
            format: 1,
            id: BoxId::from_random([3; 10]),
            name: BoxName::parse("demo").unwrap(),
            exported_at_ms: 70,
            runtime: "native".to_owned(),
            image: "default".to_owned(),
            image_digest: "0".repeat(64),
            with_image: true,
            image_env: Vec::new(),
            snapshots: Vec::new(),
            host: serde_json::to_value(carried).unwrap(),
        }
    }

    /// The record after one more journey.
    fn journey(origin: Value, now_ms: i64) -> Value {
        let carried = carried(origin);
        serde_json::to_value(super::origin(&manifest(&carried), &carried, now_ms)).unwrap()
    }

    #[test]
    fn the_first_journey_is_pinned_the_last_is_new_and_all_are_counted() {
        let clone =
            json!({"from": "clone", "id": "aaaaaaaaaaaaaaaa", "name": "old", "label": null});
        let once = journey(clone.clone(), 100);
        assert_eq!(once["from"], "import");
        assert_eq!(
            (&once["first_imported_at_ms"], &once["times"]),
            (&json!(100), &json!(1))
        );
        let twice = journey(once, 200);
        assert_eq!(twice["first_imported_at_ms"], 100);
        assert_eq!(twice["last_imported_at_ms"], 200);
        assert_eq!(
            (&twice["times"], &twice["exported_at_ms"]),
            (&json!(2), &json!(70))
        );
        assert_eq!(
            twice["before"], clone,
            "what it was before it travelled stays"
        );
    }

    #[test]
    fn a_record_that_went_wrong_keeps_no_box_from_coming_home() {
        let imported = |times: Value| json!({"from": "import", "id": "x", "first_imported_at_ms": 3, "times": times});
        for bad in [
            json!("07"),
            json!(-1),
            json!(1.5),
            json!("many"),
            json!(null),
            json!([]),
        ] {
            assert_eq!(journey(imported(bad.clone()), 9)["times"], 1, "{bad}");
        }
        assert_eq!(journey(imported(json!(41)), 9)["times"], 42);
        assert_eq!(journey(imported(json!(u64::MAX)), 9)["times"], u32::MAX);
        for nonsense in [
            json!(null),
            json!(7),
            json!({"from": "mars"}),
            json!({"from": 3}),
        ] {
            let record = journey(nonsense.clone(), 9);
            assert_eq!(
                (&record["times"], &record["before"]),
                (&json!(1), &json!(null)),
                "{nonsense}"
            );
        }
    }

    #[test]
    fn what_no_box_can_have_is_refused() {
        let said = |change: fn(&mut Manifest)| {
            let mut manifest = manifest(&carried(Value::Null));
            change(&mut manifest);
            Carried::read(&manifest).map(drop)
        };
        assert_eq!(said(|_| {}), Ok(()));
        for (change, wanted) in [
            (
                (|m| m.host["profile"] = json!("god")) as fn(&mut Manifest),
                "unreadable",
            ),
            (|m| m.host["title"] = json!("a\u{1b}[2J"), "unreadable"),
            (|m| m.host["limits"] = json!({}), "unreadable"),
            (
                |m| m.host["names"] = json!([["a b", "198.18.0.20"]]),
                "unreadable",
            ),
            (
                |m| m.host["names"] = json!([["a.test", "10.0.0.1"]]),
                "an address no box gives",
            ),
            (|m| m.image = "x\u{7}".to_owned(), "no image can be called"),
            (|m| m.image = "x".repeat(513), "no image can be called"),
            (|m| m.host = json!(null), "unreadable"),
        ] {
            let error = said(change).unwrap_err();
            assert!(error.contains(wanted), "{wanted}: {error}");
        }
    }

    #[test]
    fn what_a_newer_host_adds_is_passed_over() {
        let mut manifest = manifest(&carried(Value::Null));
        manifest.host["unheard_of"] = json!({"a": 1});
        Carried::read(&manifest).unwrap();
    }
}
