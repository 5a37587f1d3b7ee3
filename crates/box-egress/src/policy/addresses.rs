//! Whether a connection may lead to an address: asked of every address a name was found at, and
//! again of those already reached when the policy changes.

use super::{Allowed, Basis, Settings};
use crate::address::{Class, classify, is_private_network};
use crate::own_address::{Route, route_to};
use box_api::egress::Reason;
use box_api::egress::policy::Rule;
use std::net::IpAddr;

/// Why an address is not dialled, and the entry that said so.
pub(crate) type Unfit = (Reason, Option<Rule>);

/// Judges an address. A network the owner denies wins over everything; else the address is public,
/// or the box has an exception for this name and port (decision D10) and it lies in a private
/// network. In no case is it one of this machine's own; when the kernel cannot be asked, it is.
pub(crate) fn judge(settings: &Settings, allowed: &Allowed, addr: IpAddr) -> Result<(), Unfit> {
    denied_network(settings, addr).map_or(Ok(()), Err)?;
    let is_excepted = matches!(allowed.basis, Basis::Policy(Rule::Private { .. }));
    let fits = classify(addr) == Class::Public || (is_excepted && is_private_network(addr));
    if fits && route_to(addr).is_ok_and(|route| route == Route::Away) {
        Ok(())
    } else {
        Err((Reason::PrivateAddress, None))
    }
}

/// The denied network an address lies in.
pub(crate) fn denied_network(settings: &Settings, addr: IpAddr) -> Option<Unfit> {
    let mut networks = settings.policy.deny_networks.iter();
    let network = *networks.find(|network| network.contains(addr))?;
    Some((Reason::DeniedNetwork, Some(Rule::DenyNetwork { network })))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::admit;
    use box_api::egress::{HostName, HostPattern, Network, Policy, PrivateEntry};

    fn outcome(settings: &Settings, port: u16, addr: &str) -> Result<(), Reason> {
        let host = HostName::parse("db.corp.test").unwrap();
        let allowed = admit(settings, &host, port).unwrap();
        judge(settings, &allowed, addr.parse().unwrap()).map_err(|(reason, _)| reason)
    }

    fn settings(deny_networks: &[&str]) -> Settings {
        let networks = deny_networks
            .iter()
            .map(|text| Network::parse(text).unwrap());
        let policy = Policy {
            allow: vec![HostPattern::parse("db.corp.test").unwrap()],
            deny_networks: networks.collect(),
            private: vec![PrivateEntry::parse("db.corp.test:5432").unwrap()],
            ..Policy::nothing()
        };
        Settings {
            policy,
            bindings: Vec::new(),
            logins: crate::intercept::login::book::BoxLogins::default(),
        }
    }

    #[test]
    fn exception_reaches_private_networks_at_its_port_and_nothing_else() {
        crate::testing::enter_own_network();
        let settings = settings(&[]);
        for addr in [
            "10.1.2.3",
            "172.16.0.1",
            "192.168.1.1",
            "100.64.0.1",
            "fd12::1",
            "45.33.32.1",
        ] {
            assert_eq!(outcome(&settings, 5432, addr), Ok(()), "{addr}");
        }
        for addr in [
            "127.0.0.1",
            "::1",
            "169.254.169.254",
            "169.254.170.2",
            "168.63.129.16",
            "fd00:ec2::254",
            "100.100.100.200",
            "192.0.0.192",
            "fe80::1",
            "0.0.0.0",
            "198.18.0.1",
            "224.0.0.1",
            "::ffff:10.1.2.3",
            "64:ff9b::a01:203",
            "2002:a01:203::1",
        ] {
            assert_eq!(
                outcome(&settings, 5432, addr),
                Err(Reason::PrivateAddress),
                "{addr}"
            );
        }
        assert_eq!(
            outcome(&settings, 443, "10.1.2.3"),
            Err(Reason::PrivateAddress)
        );
        assert_eq!(outcome(&settings, 443, "45.33.32.1"), Ok(()));
    }

    #[test]
    fn denied_network_wins_over_public_addresses_and_exceptions() {
        crate::testing::enter_own_network();
        let settings = settings(&["45.33.32.0/24", "10.0.0.0/8", "2606:4700::/32"]);
        for (port, addr) in [
            (443, "45.33.32.7"),
            (443, "2606:4700::1"),
            (5432, "10.1.2.3"),
        ] {
            assert_eq!(
                outcome(&settings, port, addr),
                Err(Reason::DeniedNetwork),
                "{addr}"
            );
        }
        assert_eq!(outcome(&settings, 443, "45.33.33.7"), Ok(()));
        assert_eq!(outcome(&settings, 5432, "192.168.1.1"), Ok(()));
    }
}
