//! What is odd about the entries of a policy: what is never meant is an error, what is perhaps not
//! meant a warning. Pure; the entry is named each time.

use crate::network::rules::Ruling;
use crate::policy::{FORGES, Levelled, of_deployment};
use crate::settings::Settings;
use box_api::control::NetPreset;
use box_api::egress::{Entry, HostName, HostPattern};
use box_api::network::{Finding, Weight};

/// Findings shown of one policy.
const FINDINGS_MAX: usize = 100;
/// Levels whose order a person knows; what a later one repeats is said of the later one.
const NOTHING: &str = "";

/// What is odd about the settings.
pub fn of_settings(settings: &Settings) -> Vec<Finding> {
    let mut findings = of_entries(&of_deployment(settings));
    for (name, set) in &settings.net.sets.value {
        let from = format!("set {name}");
        let entries = [(Ruling::Allow, &set.allow), (Ruling::Deny, &set.deny)];
        let levelled: Vec<Levelled> = entries
            .into_iter()
            .flat_map(|(ruling, entries)| entries.iter().map(move |entry| (ruling, entry.clone())))
            .map(|(ruling, entry)| Levelled {
                entry,
                ruling,
                from: from.clone(),
            })
            .collect();
        findings.extend(of_entries(&levelled));
    }
    findings.truncate(FINDINGS_MAX);
    findings
}

/// What is odd about a box's policy as a whole, beside its entries.
pub fn of_whole(
    entries: &[Levelled],
    preset: NetPreset,
    credential_hosts: &[HostName],
) -> Vec<Finding> {
    let mut findings = of_entries(entries);
    for levelled in entries {
        let Entry::Request(request) = &levelled.entry else {
            continue;
        };
        if !credential_hosts.contains(request.host()) {
            let text = "is about a host that is not opened up for this box, as it has no \
                        credential for it: the host is refused altogether";
            findings.push(finding(levelled, Weight::Warning, text));
        } else if let Some(whole) = entries.iter().find(|other| lets_all(other, request.host())) {
            let text = format!(
                "leaves nothing more of `{}` ({}): a host with a rule takes only what rules let \
                 through",
                whole.entry, whole.from
            );
            if levelled.ruling == Ruling::Allow {
                findings.push(finding(levelled, Weight::Warning, &text));
            }
        }
    }
    let reachable = entries.iter().any(|levelled| {
        levelled.ruling == Ruling::Allow && covering_deny(levelled, entries).is_none()
    });
    if preset == NetPreset::Locked && !reachable && credential_hosts.is_empty() {
        findings.push(Finding {
            entry: "locked".to_owned(),
            from: NOTHING.to_owned(),
            weight: Weight::Warning,
            text: "lets nothing through: no entry allows anything that is not denied".to_owned(),
        });
    }
    findings.truncate(FINDINGS_MAX);
    findings
}

/// What is odd about entries, each by itself and beside the others.
pub fn of_entries(entries: &[Levelled]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (at, levelled) in entries.iter().enumerate() {
        if let Some((weight, text)) = of_entry(levelled) {
            findings.push(finding(levelled, weight, &text));
        }
        let same = |other: &&Levelled| other.entry == levelled.entry;
        if let Some(before) = entries[..at].iter().find(same) {
            let (weight, text) = if before.ruling == levelled.ruling {
                (
                    Weight::Warning,
                    format!("stands at `{}` already", before.from),
                )
            } else {
                let deny = "is allowed and denied, and deny wins";
                (
                    Weight::Warning,
                    format!("{deny}; the other is at `{}`", before.from),
                )
            };
            findings.push(finding(levelled, weight, &text));
        } else if let Some(deny) = covering_deny(levelled, entries) {
            let text = format!(
                "lets nothing through: `{}` ({}) denies it",
                deny.entry, deny.from
            );
            findings.push(finding(levelled, Weight::Warning, &text));
        }
        if findings.len() >= FINDINGS_MAX {
            break;
        }
    }
    findings
}

fn finding(levelled: &Levelled, weight: Weight, text: &str) -> Finding {
    Finding {
        entry: levelled.entry.to_string(),
        from: levelled.from.clone(),
        weight,
        text: text.to_owned(),
    }
}

/// The deny entry that leaves nothing of an allow entry.
fn covering_deny<'e>(levelled: &Levelled, entries: &'e [Levelled]) -> Option<&'e Levelled> {
    let mut denying = entries.iter().filter(|other| other.ruling == Ruling::Deny);
    match (&levelled.entry, levelled.ruling) {
        (_, Ruling::Deny) | (Entry::Network(_), _) => None,
        (Entry::Host(allow), Ruling::Allow) => denying.find(|other| match &other.entry {
            Entry::Host(deny) => deny.covers(allow),
            Entry::Network(_) | Entry::Request(_) => false,
        }),
        (Entry::Request(allow), Ruling::Allow) => denying.find(|other| match &other.entry {
            Entry::Host(deny) => deny.matches_host(allow.host()) && deny.port().is_none(),
            Entry::Request(deny) => deny == allow,
            Entry::Network(_) => false,
        }),
    }
}

fn lets_all(levelled: &Levelled, host: &HostName) -> bool {
    let is_host = matches!(&levelled.entry, Entry::Host(pattern) if pattern.matches_host(host));
    is_host && levelled.ruling == Ruling::Allow
}

fn of_entry(levelled: &Levelled) -> Option<(Weight, String)> {
    let name = match &levelled.entry {
        Entry::Network(_) if levelled.ruling == Ruling::Allow => {
            let text = "is an address; names are allowed, addresses only denied";
            return Some((Weight::Error, text.to_owned()));
        }
        Entry::Network(_) => return None,
        Entry::Host(pattern) => pattern.name(),
        Entry::Request(request) => request.host(),
    };
    if let Some(odd) = of_letters(name) {
        return Some(odd);
    }
    if levelled.ruling == Ruling::Deny {
        return None;
    }
    if name.is_local() {
        let text = "names this machine or its network, which no such entry reaches; one name and \
                    port can be let through with `--allow-private`";
        return Some((Weight::Error, text.to_owned()));
    }
    let is_wide = matches!(&levelled.entry, Entry::Host(pattern) if pattern.is_wildcard());
    if is_wide && let Some(odd) = of_public_suffix(name) {
        return Some(odd);
    }
    let twin = looks_like(name)?;
    Some((
        Weight::Warning,
        format!("looks like `{twin}` and is another host"),
    ))
}

/// `*.<suffix>` where anybody can have a name below the suffix (<https://publicsuffix.org>).
fn of_public_suffix(name: &HostName) -> Option<(Weight, String)> {
    let suffix = psl::suffix(name.as_str().as_bytes())?;
    if suffix.as_bytes() != name.as_str().as_bytes() {
        return None;
    }
    match suffix.typ()? {
        psl::Type::Icann => {
            let text = "would let through every site below a public suffix";
            Some((Weight::Error, text.to_owned()))
        }
        psl::Type::Private => {
            let text = "lets through the sites of everybody, as anybody can have a name there";
            Some((Weight::Warning, text.to_owned()))
        }
    }
}

/// Names in other letters (RFC 5891) read like names they are not.
fn of_letters(name: &HostName) -> Option<(Weight, String)> {
    let mut shown: Vec<String> = Vec::new();
    let mut is_foreign = false;
    for label in name.as_str().split('.') {
        let Some(code) = label.strip_prefix("xn--") else {
            shown.push(label.to_owned());
            continue;
        };
        is_foreign = true;
        let Some(label) = idna::punycode::decode_to_string(code) else {
            let text = "has a part that begins with `xn--` and stands for no letters";
            return Some((Weight::Error, text.to_owned()));
        };
        if label.is_ascii() || scripts(&label) > 1 {
            let text = format!("reads `{label}`, which mixes letters of different scripts");
            return Some((Weight::Error, text));
        }
        shown.push(label);
    }
    let shown = shown.join(".");
    is_foreign.then(|| {
        (
            Weight::Warning,
            format!("reads `{shown}`; look twice at its letters"),
        )
    })
}

/// How many scripts the letters of a label are of, as far as they are taken for one another.
/// Chinese, Japanese and Korean ones belong together (UTS 39 §5.1).
fn scripts(label: &str) -> usize {
    let script = |letter: char| match u32::from(letter) {
        0x41..=0x5a | 0x61..=0x7a | 0xc0..=0x24f | 0x1e00..=0x1eff => Some("Latin"),
        0x370..=0x3ff | 0x1f00..=0x1fff => Some("Greek"),
        0x400..=0x52f | 0x1c80..=0x1c8f | 0x2de0..=0x2dff | 0xa640..=0xa69f => Some("Cyrillic"),
        0x530..=0x58f => Some("Armenian"),
        0x590..=0x5ff => Some("Hebrew"),
        0x600..=0x6ff | 0x750..=0x77f => Some("Arabic"),
        0x13a0..=0x13ff | 0xab70..=0xabbf => Some("Cherokee"),
        0x0e00..=0x0e7f => Some("Thai"),
        0x900..=0x97f => Some("Devanagari"),
        0x1100..=0x11ff | 0x3040..=0x30ff | 0x3400..=0x9fff | 0xac00..=0xd7af => Some("East Asian"),
        0x30..=0x39 | 0x2d => None,
        _ => Some("other"),
    };
    let mut found: Vec<&str> = label.chars().filter_map(script).collect();
    found.sort_unstable();
    found.dedup();
    // Latin letters are common among East Asian ones.
    if found == ["East Asian", "Latin"] {
        1
    } else {
        found.len()
    }
}

/// A forge the name could be taken for.
fn looks_like(name: &HostName) -> Option<HostName> {
    let forges = FORGES
        .iter()
        .filter_map(|entry| HostPattern::parse(entry).ok());
    let mut forges = forges.map(|pattern| pattern.name().clone());
    forges.find(|forge| forge != name && skeleton(forge) == skeleton(name))
}

/// Letters that look alike, as one of them.
fn skeleton(name: &HostName) -> String {
    let alike = name.as_str().replace("rn", "m").replace("vv", "w");
    alike.replace(['1', 'i', 'j'], "l").replace('0', "o")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn levelled(ruling: Ruling, texts: &[&str]) -> Vec<Levelled> {
        let parsed = texts.iter().map(|text| Levelled {
            entry: Entry::parse(text).unwrap(),
            ruling,
            from: "box".to_owned(),
        });
        parsed.collect()
    }

    fn weight(ruling: Ruling, text: &str) -> Option<Weight> {
        let findings = of_entries(&levelled(ruling, &[text]));
        assert!(
            findings
                .iter()
                .all(|found| found.entry == text.to_ascii_lowercase())
        );
        findings.first().map(|found| found.weight)
    }

    #[test]
    fn what_is_never_meant_is_an_error_and_what_may_not_be_a_warning() {
        let cases = [
            ("*.co.uk", Some(Weight::Error)),
            ("*.github.io", Some(Weight::Warning)),
            ("me.github.io", None),
            ("*.example.co.uk", None),
            ("db.internal", Some(Weight::Error)),
            ("203.0.113.0/24", Some(Weight::Error)),
            // `раypal` with Cyrillic `ра`, `аррle` likewise.
            ("xn--ypal-43d9g.com", Some(Weight::Error)),
            // All Cyrillic, and a German name.
            ("xn--80ak6aa92e.com", Some(Weight::Warning)),
            ("xn--bcher-kva.example", Some(Weight::Warning)),
            ("xn--999999999.com", Some(Weight::Error)),
            ("g1thub.com", Some(Weight::Warning)),
            ("raw.githubusercontent.com", None),
            ("example.org", None),
        ];
        for (text, expected) in cases {
            assert_eq!(weight(Ruling::Allow, text), expected, "{text}");
        }
        for text in ["*.co.uk", "203.0.113.0/24", "db.internal"] {
            assert_eq!(weight(Ruling::Deny, text), None, "{text}");
        }
    }

    #[test]
    fn entries_that_do_nothing_are_named() {
        let mut entries = levelled(
            Ruling::Allow,
            &["a.example.org", "b.org", "b.org", "c.org:22"],
        );
        entries.extend(levelled(Ruling::Deny, &["*.example.org", "c.org"]));
        let named: Vec<String> = of_entries(&entries)
            .into_iter()
            .map(|found| format!("{} {}", found.entry, found.text))
            .collect();
        assert_eq!(
            named,
            [
                "a.example.org lets nothing through: `*.example.org` (box) denies it",
                "b.org stands at `box` already",
                "c.org:22 lets nothing through: `c.org` (box) denies it",
            ]
        );
    }

    #[test]
    fn a_list_that_lets_nothing_through_is_told() {
        let tell = |entries: &[Levelled], preset| {
            let findings = of_whole(entries, preset, &[]);
            findings.iter().any(|found| found.entry == "locked")
        };
        let mut entries = levelled(Ruling::Allow, &["a.org"]);
        assert!(!tell(&entries, NetPreset::Locked));
        entries.extend(levelled(Ruling::Deny, &["a.org"]));
        assert!(tell(&entries, NetPreset::Locked));
        assert!(!tell(&entries, NetPreset::Open));
        assert!(tell(&[], NetPreset::Locked));
    }

    #[test]
    fn rule_about_requests_is_told_where_it_cannot_hold() {
        let entries = levelled(Ruling::Allow, &["GET https://api.test.org/*"]);
        let host = HostName::parse("api.test.org").unwrap();
        let without = of_whole(&entries, NetPreset::Balanced, &[]);
        assert!(without[0].text.contains("not opened up"), "{without:?}");
        assert_eq!(of_whole(&entries, NetPreset::Balanced, &[host]), []);
    }
}
