//! Which addresses are public. Everything that is not is never dialled (catalogue §2.2).
//!
//! The ranges are those of the IANA IPv4 and IPv6 Special-Purpose Address Registries, multicast,
//! and one cloud's metadata address that lies in public space. An IPv6 address that carries an
//! IPv4 address inside (mapped, compatible, NAT64, 6to4, Teredo, ISATAP) is never public: no
//! server on the internet is reached only that way, and what is inside may be anything.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// A range: its first address, how many bits count, and what it is.
struct Range<Bits> {
    base: Bits,
    prefix: u32,
    what: &'static str,
}

const fn v4(octets: [u8; 4], prefix: u32, what: &'static str) -> Range<u32> {
    Range {
        base: u32::from_be_bytes(octets),
        prefix,
        what,
    }
}

const fn v6(first: [u16; 3], prefix: u32, what: &'static str) -> Range<u128> {
    let base =
        ((first[0] as u128) << 112) | ((first[1] as u128) << 96) | ((first[2] as u128) << 80);
    Range { base, prefix, what }
}

const SPECIAL_V4: [Range<u32>; 16] = [
    v4([0, 0, 0, 0], 8, "this network"),
    v4([10, 0, 0, 0], 8, "private"),
    v4([100, 64, 0, 0], 10, "carrier-grade NAT"),
    v4([127, 0, 0, 0], 8, "loopback"),
    v4([168, 63, 129, 16], 32, "cloud metadata"),
    v4([169, 254, 0, 0], 16, "link-local"),
    v4([172, 16, 0, 0], 12, "private"),
    v4([192, 0, 0, 0], 24, "protocol assignments"),
    v4([192, 0, 2, 0], 24, "documentation"),
    v4([192, 88, 99, 0], 24, "6to4 relay"),
    v4([192, 168, 0, 0], 16, "private"),
    v4([198, 18, 0, 0], 15, "benchmarking"),
    v4([198, 51, 100, 0], 24, "documentation"),
    v4([203, 0, 113, 0], 24, "documentation"),
    v4([224, 0, 0, 0], 4, "multicast"),
    v4([240, 0, 0, 0], 4, "reserved"),
];

/// Outside `2000::/3` nothing is global unicast (RFC 4291 §2.4); these only name what it is.
const NAMED_V6: [Range<u128>; 9] = [
    v6([0, 0, 0], 80, "embedded IPv4"),
    v6([0x64, 0xff9b, 0], 96, "NAT64"),
    v6([0x64, 0xff9b, 1], 48, "NAT64"),
    v6([0x100, 0, 0], 64, "discard"),
    v6([0x5f00, 0, 0], 16, "segment routing"),
    v6([0xfc00, 0, 0], 7, "unique local"),
    v6([0xfe80, 0, 0], 10, "link-local"),
    v6([0xfec0, 0, 0], 10, "site-local"),
    v6([0xff00, 0, 0], 8, "multicast"),
];

/// Inside `2000::/3`.
const SPECIAL_V6: [Range<u128>; 5] = [
    v6([0x2001, 0, 0], 32, "Teredo"),
    v6([0x2001, 0, 0], 23, "protocol assignments"),
    v6([0x2001, 0xdb8, 0], 32, "documentation"),
    v6([0x2002, 0, 0], 16, "6to4"),
    v6([0x3fff, 0, 0], 20, "documentation"),
];

const GLOBAL_UNICAST_V6: Range<u128> = v6([0x2000, 0, 0], 3, "global unicast");

/// The upper half of an ISATAP interface identifier, without the universal/local bit
/// (RFC 5214 §6.1).
const ISATAP_ID: u32 = 0x0000_5efe;
const UNIVERSAL_BIT: u32 = 0x0200_0000;

/// What an address is good for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Class {
    Public,
    /// Not reachable for everybody; the word says which range it lies in.
    Special(&'static str),
}

/// Where owners have machines of their own (RFC 1918, RFC 6598).
const PRIVATE_V4: [Range<u32>; 4] = [
    v4([10, 0, 0, 0], 8, "private"),
    v4([100, 64, 0, 0], 10, "carrier-grade NAT"),
    v4([172, 16, 0, 0], 12, "private"),
    v4([192, 168, 0, 0], 16, "private"),
];
/// RFC 4193.
const PRIVATE_V6: Range<u128> = v6([0xfc00, 0, 0], 7, "unique local");
/// Where clouds keep the credentials of a machine, inside private networks: Alibaba, Amazon, Google,
/// Oracle, each as its own documentation of the metadata service has it.
const METADATA: [IpAddr; 4] = [
    IpAddr::V4(Ipv4Addr::new(100, 100, 100, 200)),
    IpAddr::V6(Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254)),
    IpAddr::V6(Ipv6Addr::new(0xfd20, 0xce, 0, 0, 0, 0, 0, 0x254)),
    IpAddr::V6(Ipv6Addr::new(0xfd00, 0xc1, 0, 0, 0, 0, 0xa9fe, 0xa9fe)),
];

/// Whether an address belongs to a private network, and is not where a cloud answers about the
/// machine. The only special addresses an owner can make an exception for (decision D10).
pub(crate) fn is_private_network(addr: IpAddr) -> bool {
    let is_private = match addr {
        IpAddr::V4(addr) => {
            let bits = u32::from(addr);
            let inside = |range: &Range<u32>| (bits ^ range.base) >> (32 - range.prefix) == 0;
            PRIVATE_V4.iter().any(inside)
        }
        IpAddr::V6(addr) => (u128::from(addr) ^ PRIVATE_V6.base) >> (128 - PRIVATE_V6.prefix) == 0,
    };
    is_private && !METADATA.contains(&addr)
}

/// Judges an address by its number alone.
pub(crate) fn classify(addr: IpAddr) -> Class {
    match addr {
        IpAddr::V4(addr) => classify_v4(addr),
        IpAddr::V6(addr) => classify_v6(addr),
    }
}

fn classify_v4(addr: Ipv4Addr) -> Class {
    let bits = u32::from(addr);
    let inside = |range: &&Range<u32>| (bits ^ range.base) >> (32 - range.prefix) == 0;
    SPECIAL_V4
        .iter()
        .find(inside)
        .map_or(Class::Public, |range| Class::Special(range.what))
}

fn classify_v6(addr: Ipv6Addr) -> Class {
    let bits = u128::from(addr);
    let inside = |range: &&Range<u128>| (bits ^ range.base) >> (128 - range.prefix) == 0;
    if !inside(&&GLOBAL_UNICAST_V6) {
        let named = NAMED_V6.iter().find(inside);
        return Class::Special(named.map_or("not global unicast", |range| range.what));
    }
    if let Some(range) = SPECIAL_V6.iter().find(inside) {
        return Class::Special(range.what);
    }
    let [_, _, _, _, a, b, _, _] = addr.segments();
    let identifier = (u32::from(a) << 16) | u32::from(b);
    if identifier & !UNIVERSAL_BIT == ISATAP_ID {
        return Class::Special("ISATAP");
    }
    Class::Public
}

#[cfg(test)]
mod tests {
    use super::*;

    fn class(text: &str) -> Class {
        classify(text.parse().unwrap())
    }

    #[test]
    fn special_ranges_are_not_public() {
        for text in [
            // B1, B12, B14, B15, B17
            "127.0.0.1",
            "127.255.255.254",
            "0.0.0.0",
            "0.1.2.3",
            "10.0.0.1",
            "172.16.0.1",
            "172.31.255.255",
            "192.168.1.1",
            "100.64.0.1",
            "100.127.255.254",
            "169.254.169.254",
            "169.254.170.2",
            "169.254.0.1",
            "168.63.129.16",
            "192.0.0.1",
            "192.0.2.1",
            "198.51.100.1",
            "203.0.113.1",
            "198.18.0.1",
            "198.19.255.254",
            "192.88.99.1",
            "240.0.0.1",
            "255.255.255.255",
            "224.0.0.1",
            "239.255.255.255",
            // B1, B4, B5, B7, B9, B11
            "::1",
            "::",
            "::ffff:127.0.0.1",
            "::ffff:7f00:1",
            "0:0:0:0:0:ffff:a9fe:a9fe",
            "::ffff:8.8.8.8",
            "::127.0.0.1",
            "::7f00:1",
            "::ffff:0:127.0.0.1",
            "64:ff9b::7f00:1",
            "64:ff9b::808:808",
            "64:ff9b:1::808:808",
            "2002:7f00:1::1",
            "2001:0:4136:e378:8000:63bf:3fff:fdd2",
            "2001:10::1",
            "2001:20::1",
            "2001:2::1",
            "fe80::1",
            "fc00::1",
            "fd00:ec2::254",
            "fec0::1",
            "ff02::1",
            "100::1",
            "2001:db8::1",
            "3fff::1",
            "5f00::1",
            "4000::1",
            "2606:4700::5efe:7f00:1",
            "2606:4700::200:5efe:a00:1",
        ] {
            assert_ne!(class(text), Class::Public, "{text}");
        }
    }

    #[test]
    fn no_exception_reaches_where_a_cloud_answers_about_the_machine() {
        let is_private = |text: &str| is_private_network(text.parse().unwrap());
        for text in [
            "100.100.100.200",
            "fd00:ec2::254",
            "fd20:ce::254",
            "fd00:c1::a9fe:a9fe",
        ] {
            assert!(!is_private(text), "{text}");
        }
        for text in ["100.100.100.201", "fd20:ce::253", "fd00:c1::1"] {
            assert!(is_private(text), "{text}");
        }
    }

    #[test]
    fn neighbours_of_special_ranges_are_public() {
        for text in [
            // B13 and both sides of each range that has a public neighbour.
            "1.0.0.0",
            "9.255.255.255",
            "11.0.0.0",
            "100.63.255.254",
            "100.63.255.255",
            "100.128.0.0",
            "100.128.0.1",
            "126.255.255.255",
            "128.0.0.0",
            "168.63.129.15",
            "168.63.129.17",
            "169.253.255.255",
            "169.255.0.0",
            "172.15.255.255",
            "172.32.0.0",
            "172.32.0.1",
            "191.255.255.255",
            "192.0.1.0",
            "192.0.3.0",
            "192.88.98.255",
            "192.88.100.0",
            "192.167.255.255",
            "192.169.0.0",
            "198.17.255.255",
            "198.20.0.0",
            "198.51.99.255",
            "198.51.101.0",
            "203.0.112.255",
            "203.0.114.0",
            "223.255.255.255",
            "8.8.8.8",
            "45.33.32.156",
            "2606:4700::1111",
            "2001:200::1",
            "2001:db7:ffff::1",
            "2001:db9::1",
            "2001:4860:4860::8888",
            "2003::1",
            "3ffe:ffff::1",
            "2a00::5eff:7f00:1",
        ] {
            assert_eq!(class(text), Class::Public, "{text}");
        }
    }
}
