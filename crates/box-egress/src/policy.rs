//! The one decision: may this box connect to this host and port. Pure; nothing is asked.

pub(crate) mod addresses;
mod reached;
pub(crate) mod requests;

use crate::intercept::login::book::BoxLogins;
use crate::intercept::login::desk;
use crate::refuse::Refused;
use crate::tally::Tally;
use box_api::control::NetPreset;
use box_api::egress::name::{PatternMatch, WEB_PORTS};
use box_api::egress::policy::Rule;
use box_api::egress::{Binding, HostName, HostPattern, Policy, Reason, Verdict};
use reached::Reached;
use std::net::IpAddr;

/// Credentials travel over TLS on its own port and nowhere else.
const INTERCEPTED_PORT: u16 = 443;

/// What holds for one box.
pub(crate) struct Settings {
    pub(crate) policy: Policy,
    pub(crate) bindings: Vec<Binding>,
    /// Made inside the box.
    pub(crate) logins: BoxLogins,
}

/// Which way an allowed connection takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Way {
    /// Port 80: HTTP, every request read.
    Http,
    /// Port 443: TLS whose name is checked, passed on as it is.
    Tls,
    /// Port 443 of a host that a placeholder of this box is for: TLS opened up.
    Intercept,
    /// A port the policy lists by number: passed on as it is.
    Opaque,
}

/// A connection the policy lets through. Only [`admit`] makes one.
#[derive(Debug, Clone)]
pub(crate) struct Allowed {
    host: HostName,
    port: u16,
    way: Way,
    basis: Basis,
    tally: Tally,
    reached: Reached,
}

/// What lets a connection through.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Basis {
    Policy(Rule),
    /// A person was asked and let it through, once.
    Once,
}

impl std::fmt::Display for Basis {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Policy(rule) => rule.fmt(f),
            Self::Once => f.write_str("once"),
        }
    }
}

impl Allowed {
    pub(crate) fn host(&self) -> &HostName {
        &self.host
    }

    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    pub(crate) fn way(&self) -> Way {
        self.way
    }

    pub(crate) fn basis(&self) -> &Basis {
        &self.basis
    }

    pub(crate) fn reached(&self) -> &Reached {
        &self.reached
    }

    /// Whether the owner made an exception for this name and port, wherever it leads.
    pub(crate) fn is_excepted(&self) -> bool {
        matches!(self.basis, Basis::Policy(Rule::Private { .. }))
    }

    pub(crate) fn refuse(&self, reason: Reason) -> Refused {
        Refused::new(self.host.as_str(), self.port, reason)
    }

    /// What the connection amounts to.
    pub(crate) fn tally(&self) -> &Tally {
        &self.tally
    }
}

/// Whether this host is opened up for the box.
pub(crate) fn is_intercepted(settings: &Settings, host: &HostName) -> bool {
    desk::is_bound(settings, host) || desk::is_opened(settings, host)
}

/// Decides, and says which way the connection takes.
pub(crate) fn admit(settings: &Settings, host: &HostName, port: u16) -> Result<Allowed, Refused> {
    match decide(settings, host, port) {
        Verdict::Allowed { rule } => way_of(settings, host, port, Basis::Policy(rule)),
        Verdict::Refused { reason, rule } => Err(Refused {
            rule: rule.map(|rule| rule.to_string()),
            ..Refused::new(host.as_str(), port, reason)
        }),
    }
}

/// Admits what a person let through once, if all that stands against it is that it is not listed.
pub(crate) fn admit_once(
    settings: &Settings,
    host: &HostName,
    port: u16,
) -> Result<Allowed, Refused> {
    match admit(settings, host, port) {
        Err(refused) if refused.reason == Reason::NotListed => {
            way_of(settings, host, port, Basis::Once)
        }
        other => other,
    }
}

/// Whether a connection that was let through still would be, and to where it leads.
pub(crate) fn admit_again(settings: &Settings, allowed: &Allowed) -> Result<Allowed, Refused> {
    let now = match allowed.basis {
        Basis::Policy(_) => admit(settings, &allowed.host, allowed.port),
        Basis::Once => admit_once(settings, &allowed.host, allowed.port),
    }?;
    for addr in allowed.reached.all() {
        may_lead_to(settings, &now, addr)?;
    }
    Ok(now)
}

/// Whether a connection may lead to an address, see [`addresses::judge`].
pub(crate) fn may_lead_to(
    settings: &Settings,
    allowed: &Allowed,
    addr: IpAddr,
) -> Result<(), Refused> {
    addresses::judge(settings, allowed, addr).map_err(|(reason, rule)| Refused {
        rule: rule.map(|rule| rule.to_string()),
        ..allowed.refuse(reason)
    })
}

fn way_of(
    settings: &Settings,
    host: &HostName,
    port: u16,
    basis: Basis,
) -> Result<Allowed, Refused> {
    let way = match (desk::is_bound(settings, host), port) {
        (_, INTERCEPTED_PORT) if is_intercepted(settings, host) => Way::Intercept,
        (true, 80) => return Err(Refused::new(host.as_str(), port, Reason::PlainHttp)),
        (true, _) => return Err(Refused::new(host.as_str(), port, Reason::Port)),
        (false, 443) => Way::Tls,
        (false, 80) => Way::Http,
        (false, _) => Way::Opaque,
    };
    Ok(Allowed {
        host: host.clone(),
        port,
        way,
        basis,
        tally: Tally::default(),
        reached: Reached::none(),
    })
}

/// What holds for a host and port, and which entry said so. Deny wins, in any order; the hosts of a
/// credential the box has a placeholder for are always reachable (C131).
pub(crate) fn decide(settings: &Settings, host: &HostName, port: u16) -> Verdict {
    let policy = &settings.policy;
    let mut private = policy.private.iter();
    let private = private.find(|entry| entry.host == *host && entry.port == port);
    if host.is_local() && private.is_none() {
        return Verdict::Refused {
            reason: Reason::LocalName,
            rule: None,
        };
    }
    if let Some(entry) = policy.deny.iter().find(|entry| denies(entry, host, port)) {
        let rule = Some(Rule::Deny {
            entry: entry.clone(),
        });
        return Verdict::Refused {
            reason: Reason::Denied,
            rule,
        };
    }
    // What cannot be read cannot be judged.
    let is_read = desk::is_bound(settings, host)
        || (port == INTERCEPTED_PORT && is_intercepted(settings, host));
    if let Some(rule) = requests::first_rule(policy, host).filter(|_| !is_read) {
        return Verdict::Refused {
            reason: Reason::NotOpened,
            rule: Some(rule),
        };
    }
    if let Some(entry) = private {
        let entry = entry.clone();
        return Verdict::Allowed {
            rule: Rule::Private { entry },
        };
    }
    if port == INTERCEPTED_PORT && desk::is_bound(settings, host) {
        return Verdict::Allowed {
            rule: Rule::Credential,
        };
    }
    let mut nearest = None;
    for (entry, rule) in listed(policy) {
        match entry.matches(host, port) {
            PatternMatch::Yes => {
                return Verdict::Allowed {
                    rule: rule(entry.clone()),
                };
            }
            PatternMatch::HostOnly => nearest = Some(rule(entry.clone())),
            PatternMatch::No => {}
        }
    }
    match (policy.preset, nearest) {
        (NetPreset::Open, _) if WEB_PORTS.contains(&port) => Verdict::Allowed { rule: Rule::Open },
        (NetPreset::Open, None) => Verdict::Refused {
            reason: Reason::Port,
            rule: Some(Rule::Open),
        },
        (_, Some(rule)) => Verdict::Refused {
            reason: Reason::Port,
            rule: Some(rule),
        },
        (_, None) => Verdict::Refused {
            reason: Reason::NotListed,
            rule: None,
        },
    }
}

/// Whether a name may be looked up: whether any port of it could be reached.
pub(crate) fn decide_name(settings: &Settings, host: &HostName) -> Verdict {
    let own_ports = listed(&settings.policy).filter(|(entry, _)| entry.matches_host(host));
    let own_ports = own_ports.filter_map(|(entry, _)| entry.port());
    let private = settings.policy.private.iter();
    let private = private.filter(|entry| entry.host == *host);
    let own_ports = own_ports.chain(private.map(|entry| entry.port));
    let mut ports = WEB_PORTS.into_iter().rev().chain(own_ports);
    let first = decide(settings, host, ports.next().unwrap_or(WEB_PORTS[1]));
    let mut rest = ports.map(|port| decide(settings, host, port));
    match first {
        Verdict::Allowed { .. } => first,
        Verdict::Refused { .. } => rest
            .find(|verdict| matches!(verdict, Verdict::Allowed { .. }))
            .unwrap_or(first),
    }
}

type MakeRule = fn(HostPattern) -> Rule;

fn listed(policy: &Policy) -> impl Iterator<Item = (&HostPattern, MakeRule)> {
    let preset = match policy.preset {
        NetPreset::Balanced => policy.preset_hosts.as_slice(),
        NetPreset::Open | NetPreset::Locked => &[],
    };
    let allow = policy
        .allow
        .iter()
        .map(|entry| (entry, (|entry| Rule::Allow { entry }) as MakeRule));
    allow.chain(
        preset
            .iter()
            .map(|entry| (entry, (|entry| Rule::Preset { entry }) as MakeRule)),
    )
}

/// An entry without a port denies every port of the host.
fn denies(entry: &HostPattern, host: &HostName, port: u16) -> bool {
    match entry.port() {
        None => entry.matches_host(host),
        Some(_) => entry.matches(host, port) == PatternMatch::Yes,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn patterns(texts: &[&str]) -> Vec<HostPattern> {
        texts
            .iter()
            .map(|text| HostPattern::parse(text).unwrap())
            .collect()
    }

    fn policy(preset: NetPreset, allow: &[&str], deny: &[&str]) -> Policy {
        let preset_hosts = patterns(&["registry.test"]);
        Policy {
            preset,
            preset_hosts,
            allow: patterns(allow),
            deny: patterns(deny),
            ..Policy::nothing()
        }
    }

    fn outcome(policy: &Policy, host: &str, port: u16) -> Result<String, Reason> {
        let settings = Settings {
            policy: policy.clone(),
            bindings: Vec::new(),
            logins: BoxLogins::default(),
        };
        verdict(&settings, host, port)
    }

    fn verdict(settings: &Settings, host: &str, port: u16) -> Result<String, Reason> {
        match decide(settings, &HostName::parse(host).unwrap(), port) {
            Verdict::Allowed { rule } => Ok(rule.to_string()),
            Verdict::Refused { reason, .. } => Err(reason),
        }
    }

    #[test]
    fn allow_list_lets_through_what_it_names_and_nothing_like_it() {
        let policy = policy(
            NetPreset::Locked,
            &["ok.test", "*.wild.test", "git.test:22"],
            &[],
        );
        assert_eq!(outcome(&policy, "OK.TEST", 443), Ok("allow ok.test".into()));
        assert_eq!(outcome(&policy, "ok.test.", 80), Ok("allow ok.test".into()));
        assert_eq!(
            outcome(&policy, "a.wild.test", 443),
            Ok("allow *.wild.test".into())
        );
        assert_eq!(
            outcome(&policy, "git.test", 22),
            Ok("allow git.test:22".into())
        );
        for host in [
            "evil-ok.test",
            "ok.test.evil.test",
            "wild.test",
            "a.b.wild.test",
        ] {
            assert_eq!(
                outcome(&policy, host, 443),
                Err(Reason::NotListed),
                "{host}"
            );
        }
        assert_eq!(outcome(&policy, "ok.test", 22), Err(Reason::Port));
        assert_eq!(outcome(&policy, "git.test", 443), Err(Reason::Port));
        assert_eq!(
            outcome(&policy, "registry.test", 443),
            Err(Reason::NotListed)
        );
    }

    #[test]
    fn hosts_of_a_credential_are_reachable_unless_denied() {
        let bound = |deny: &[&str]| Settings {
            policy: policy(NetPreset::Locked, &[], deny),
            bindings: vec![Binding {
                placeholder: "a-placeholder-that-is-long-enough".to_owned(),
                credential: "c".to_owned(),
                hosts: vec![HostName::parse("cred.test").unwrap()],
                github: None,
            }],
            logins: BoxLogins::default(),
        };
        let open = bound(&[]);
        assert_eq!(verdict(&open, "cred.test", 443), Ok("credential".into()));
        assert_eq!(verdict(&open, "cred.test", 80), Err(Reason::NotListed));
        assert_eq!(verdict(&open, "other.test", 443), Err(Reason::NotListed));
        let denied = bound(&["cred.test"]);
        assert_eq!(verdict(&denied, "cred.test", 443), Err(Reason::Denied));
    }

    #[test]
    fn deny_wins_over_everything() {
        let deny = ["bad.wild.test", "half.test:80"];
        let open = policy(NetPreset::Open, &["bad.wild.test:22", "*.wild.test"], &deny);
        assert_eq!(outcome(&open, "bad.wild.test", 443), Err(Reason::Denied));
        assert_eq!(outcome(&open, "bad.wild.test", 22), Err(Reason::Denied));
        assert_eq!(outcome(&open, "half.test", 80), Err(Reason::Denied));
        assert_eq!(outcome(&open, "half.test", 443), Ok("preset open".into()));
        assert_eq!(
            outcome(&open, "good.wild.test", 443),
            Ok("allow *.wild.test".into())
        );
    }

    #[test]
    fn presets_differ_in_what_is_not_listed() {
        let balanced = policy(NetPreset::Balanced, &[], &[]);
        assert_eq!(
            outcome(&balanced, "registry.test", 443),
            Ok("preset registry.test".into())
        );
        assert_eq!(
            outcome(&balanced, "other.test", 443),
            Err(Reason::NotListed)
        );
        let open = policy(NetPreset::Open, &[], &[]);
        assert_eq!(outcome(&open, "other.test", 443), Ok("preset open".into()));
        assert_eq!(outcome(&open, "other.test", 8443), Err(Reason::Port));
    }

    #[test]
    fn local_names_are_refused_whatever_the_policy_lists() {
        let policy = policy(NetPreset::Open, &["intranet", "x.internal"], &[]);
        for host in ["intranet", "x.internal", "localhost", "foo.local"] {
            assert_eq!(
                outcome(&policy, host, 443),
                Err(Reason::LocalName),
                "{host}"
            );
        }
    }

    #[test]
    fn name_with_one_reachable_port_may_be_looked_up() {
        let policy = policy(NetPreset::Locked, &["git.test:22"], &["sub.git.test"]);
        let settings = Settings {
            policy,
            bindings: Vec::new(),
            logins: BoxLogins::default(),
        };
        let verdict = |host| decide_name(&settings, &HostName::parse(host).unwrap());
        assert!(matches!(verdict("git.test"), Verdict::Allowed { .. }));
        assert!(matches!(verdict("sub.git.test"), Verdict::Refused { .. }));
    }

    #[test]
    fn host_of_a_placeholder_is_intercepted_on_443_and_closed_elsewhere() {
        let cred = HostName::parse("cred.test").unwrap();
        let settings = Settings {
            policy: policy(
                NetPreset::Locked,
                &["cred.test", "cred.test:8443", "ok.test"],
                &[],
            ),
            bindings: vec![Binding {
                placeholder: "placeholder-of-twenty-characters".into(),
                credential: "c".into(),
                hosts: vec![cred.clone()],
                github: None,
            }],
            logins: BoxLogins::default(),
        };
        assert_eq!(admit(&settings, &cred, 443).unwrap().way(), Way::Intercept);
        assert_eq!(
            admit(&settings, &cred, 80).unwrap_err().reason,
            Reason::PlainHttp
        );
        assert_eq!(
            admit(&settings, &cred, 8443).unwrap_err().reason,
            Reason::Port
        );
        let ok = HostName::parse("ok.test").unwrap();
        assert_eq!(admit(&settings, &ok, 443).unwrap().way(), Way::Tls);
        assert_eq!(admit(&settings, &ok, 80).unwrap().way(), Way::Http);
    }
}
