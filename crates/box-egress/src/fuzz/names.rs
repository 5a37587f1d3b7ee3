//! Hosts and addresses: a name is what URL parsers take for a name, and public is what no table
//! of special ranges holds.

use super::{Chance, Target};
use crate::address::{Class, classify};
use crate::http::head::{Authority, Host};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use url::{Host as UrlHost, Url};

const SEEDS: &[&str] = &[
    "ok.test",
    "OK.TEST.",
    "a_b.wild.test",
    "xn--bcher-kva.test",
    "127.0.0.1",
    "[::1]",
    "0x7f.1",
    "127.1",
    "2130706433",
    "[::ffff:127.0.0.1]",
    "[fe80::1%25eth0]",
    "a.b.c.d.example",
    "1.2.3.4.",
    "foo.0x1",
    "a-b.test",
    "ok.test:443",
    "ok.test@evil.test",
    "0",
    "09.1",
    "1e3.test",
];

const WORDS: &[&[u8]] = &[
    b".",
    b"..",
    b"0x",
    b"0",
    b"127.0.0.1",
    b"::",
    b"[",
    b"]",
    b"%",
    b"%2e",
    b"%00",
    b"@",
    b"/",
    b"\\",
    b"xn--",
    b"-",
    b"_",
    "\u{3002}".as_bytes(),
    "\u{ff0e}".as_bytes(),
    "\u{2460}".as_bytes(),
    "\u{df}".as_bytes(),
    b"\t",
    b"\n",
    b" ",
    b"#",
    b"?",
    b":",
    b":80",
    b"ffff:",
    b"4294967295",
];

#[test]
fn url_parsers_take_the_same_host_out_of_what_we_take() {
    let target = Target {
        seeds: SEEDS.iter().map(|seed| seed.as_bytes().to_vec()).collect(),
        words: WORDS,
    };
    let mut agreed = 0;
    target.run(|input, _| {
        let Ok(text) = std::str::from_utf8(input) else {
            return;
        };
        let Some(authority) = Authority::parse(text) else {
            return;
        };
        let Ok(url) = Url::parse(&format!("http://{text}/")) else {
            // URL parsers also want `xn--` to be what it says.
            assert!(text.to_ascii_lowercase().contains("xn--"), "{text:?}");
            return;
        };
        let port = authority.port.unwrap_or(80);
        assert_eq!(url.port_or_known_default(), Some(port), "{text:?}");
        assert_eq!(
            (url.username(), url.password(), url.path()),
            ("", None, "/"),
            "{text:?}"
        );
        let same = match (&authority.host, url.host()) {
            (Host::Name(name), Some(UrlHost::Domain(theirs))) => {
                theirs.strip_suffix('.').unwrap_or(theirs) == name.as_str()
            }
            (Host::Literal(IpAddr::V4(own)), Some(UrlHost::Ipv4(theirs))) => *own == theirs,
            (Host::Literal(IpAddr::V6(own)), Some(UrlHost::Ipv6(theirs))) => *own == theirs,
            _ => false,
        };
        assert!(same, "{text:?}: {:?} {:?}", authority.host, url.host());
        agreed += 1;
    });
    assert!(agreed > 0, "no host was taken by both");
}

/// Written down apart from the table in `address`, from the IANA registries: first address and
/// how many bits of it count.
const SPECIAL_V4: &[(&str, u32)] = &[
    ("0.0.0.0", 8),
    ("10.0.0.0", 8),
    ("100.64.0.0", 10),
    ("127.0.0.0", 8),
    ("168.63.129.16", 32),
    ("169.254.0.0", 16),
    ("172.16.0.0", 12),
    ("192.0.0.0", 24),
    ("192.0.2.0", 24),
    ("192.88.99.0", 24),
    ("192.168.0.0", 16),
    ("198.18.0.0", 15),
    ("198.51.100.0", 24),
    ("203.0.113.0", 24),
    ("224.0.0.0", 3),
];
const SPECIAL_V6: &[(&str, u32)] = &[
    ("::", 3),
    ("2001::", 23),
    ("2001:db8::", 32),
    ("2002::", 16),
    ("3fff::", 20),
    ("4000::", 2),
    ("8000::", 1),
];

fn is_in(addr: IpAddr, base: &str, prefix: u32) -> bool {
    match (addr, base.parse().unwrap()) {
        (IpAddr::V4(addr), IpAddr::V4(base)) => {
            (addr.to_bits() ^ base.to_bits()).leading_zeros() >= prefix
        }
        (IpAddr::V6(addr), IpAddr::V6(base)) => {
            (addr.to_bits() ^ base.to_bits()).leading_zeros() >= prefix
        }
        _ => false,
    }
}

fn is_special(addr: IpAddr) -> bool {
    let by_library = match addr {
        IpAddr::V4(addr) => {
            addr.is_loopback()
                || addr.is_private()
                || addr.is_link_local()
                || addr.is_broadcast()
                || addr.is_documentation()
                || addr.is_multicast()
                || addr.is_unspecified()
        }
        IpAddr::V6(addr) => {
            let [_, _, _, _, a, b, _, _] = addr.segments();
            let is_isatap = (a == 0 || a == 0x200) && b == 0x5efe;
            addr.is_loopback()
                || addr.is_unspecified()
                || addr.is_multicast()
                || addr.is_unique_local()
                || addr.is_unicast_link_local()
                || addr.to_ipv4().is_some()
                || is_isatap
        }
    };
    let all = SPECIAL_V4.iter().chain(SPECIAL_V6);
    by_library
        || all
            .into_iter()
            .any(|(base, prefix)| is_in(addr, base, *prefix))
}

/// Anywhere, or beside the edge of a range.
fn some_address(chance: &mut Chance) -> IpAddr {
    let near = chance.below(3) > 0;
    let step = u32::try_from(chance.below(5)).unwrap();
    if chance.below(2) == 0 {
        let (base, prefix) = SPECIAL_V4[chance.below(SPECIAL_V4.len())];
        let base: Ipv4Addr = base.parse().unwrap();
        let last = base.to_bits() | (u32::MAX.checked_shr(prefix).unwrap_or(0));
        let edge = if chance.below(2) == 0 {
            base.to_bits()
        } else {
            last
        };
        let low = u32::try_from(chance.next() >> 32).unwrap();
        Ipv4Addr::from(if near {
            edge.wrapping_add(step).wrapping_sub(2)
        } else {
            low
        })
        .into()
    } else {
        let (base, prefix) = SPECIAL_V6[chance.below(SPECIAL_V6.len())];
        let base: Ipv6Addr = base.parse().unwrap();
        let last = base.to_bits() | (u128::MAX >> prefix);
        let edge = if chance.below(2) == 0 {
            base.to_bits()
        } else {
            last
        };
        let any = u128::from(chance.next()) << 64 | u128::from(chance.next());
        let bits = if near {
            edge.wrapping_add(step.into()).wrapping_sub(2)
        } else {
            any
        };
        // Half of them with an interface identifier that stands for an IPv4 address.
        let isatap = (bits >> 64 << 64) | 0x5efe_7f00_0001;
        Ipv6Addr::from(if chance.below(4) == 0 { isatap } else { bits }).into()
    }
}

#[test]
fn public_is_what_no_table_holds() {
    let target = Target {
        seeds: vec![Vec::new()],
        words: &[],
    };
    let mut public = 0;
    target.run(|_, chance| {
        let addr = some_address(chance);
        let class = classify(addr);
        assert_eq!(
            class != Class::Public,
            is_special(addr),
            "{addr}: {class:?}"
        );
        public += u32::from(class == Class::Public);
    });
    assert!(public > 0, "no address was public");
}
