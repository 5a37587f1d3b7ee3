//! One `nf_tables` rule, sent as one batch; the `nft` program would cost fifty times as much.
//!
//! ```text
//! table ip box { chain c { type filter hook prerouting priority mangle;
//!   ip daddr & 255.254.0.0 == 198.18.0.0  ip daddr & 255.255.255.240 != 198.18.0.0
//!   meta l4proto tcp  tproxy to 198.18.0.1:3443 } }
//! ```
//! TPROXY applies to what the box itself sends, because traffic over `lo` passes prerouting and the
//! range is local. Numbers: `linux/netfilter/nf_tables.h`.

use super::netlink::{self, Attributes, Message};
use rustix::io::Errno;
use std::net::Ipv4Addr;

const SUBSYSTEM: u16 = 10;
const NEW_TABLE: u16 = SUBSYSTEM << 8;
const NEW_CHAIN: u16 = (SUBSYSTEM << 8) | 3;
const NEW_RULE: u16 = (SUBSYSTEM << 8) | 6;
const BATCH_BEGIN: u16 = 0x10;
const BATCH_END: u16 = 0x11;
const FAMILY_IPV4: u8 = 2;
const HOOK_PREROUTING: u32 = 0;
const PRIORITY_MANGLE: i32 = -150;
/// The first 16-byte register, and the second.
const REGISTER: u32 = 1;
const SECOND_REGISTER: u32 = 2;
const TABLE: &str = "box";
const CHAIN: &str = "c";

/// Sends every TCP connection to the range, its first /28 excepted, to the listener at `to`.
///
/// # Errors
/// `EEXIST` when the rule is there already; `ENOENT`, `EOPNOTSUPP` or `EPROTONOSUPPORT` when the
/// kernel lacks `nf_tables` or TPROXY.
pub(super) fn redirect_range(to: Ipv4Addr, port: u16) -> Result<(), Errno> {
    let hook = Attributes::new()
        .with_number(1, HOOK_PREROUTING)
        .with_number(2, PRIORITY_MANGLE.cast_unsigned());
    let chain = Attributes::new()
        .with_text(1, TABLE)
        .with_text(3, CHAIN)
        .with_nested(4, &hook)
        .with_text(7, "filter");
    let rule = Attributes::new()
        .with_text(1, TABLE)
        .with_text(2, CHAIN)
        .with_nested(4, &expressions(to, port));
    netlink::exchange(
        netlink::NETFILTER,
        &[
            Message::new(
                BATCH_BEGIN,
                netlink::FRAME,
                &header(0, SUBSYSTEM),
                &Attributes::new(),
            ),
            message(NEW_TABLE, &Attributes::new().with_text(1, TABLE)),
            message(NEW_CHAIN, &chain),
            message(NEW_RULE, &rule),
            Message::new(
                BATCH_END,
                netlink::FRAME,
                &header(0, SUBSYSTEM),
                &Attributes::new(),
            ),
        ],
    )
}

fn message(kind: u16, attributes: &Attributes) -> Message {
    Message::new(kind, netlink::CREATE, &header(FAMILY_IPV4, 0), attributes)
}

/// `struct nfgenmsg`: family, version, resource id in network order.
fn header(family: u8, resource: u16) -> [u8; 4] {
    let [high, low] = resource.to_be_bytes();
    [family, 0, high, low]
}

fn expressions(to: Ipv4Addr, port: u16) -> Attributes {
    let list = [
        load_destination(),
        mask([255, 254, 0, 0]),
        compare(Comparison::Equal, &[198, 18, 0, 0]),
        load_destination(),
        mask([255, 255, 255, 240]),
        compare(Comparison::NotEqual, &[198, 18, 0, 0]),
        // meta l4proto
        expression(
            "meta",
            &Attributes::new()
                .with_number(1, REGISTER)
                .with_number(2, 16),
        ),
        compare(Comparison::Equal, &[6]),
        set(REGISTER, &to.octets()),
        set(SECOND_REGISTER, &port.to_be_bytes()),
        expression(
            "tproxy",
            &Attributes::new()
                .with_number(1, u32::from(FAMILY_IPV4))
                .with_number(2, REGISTER)
                .with_number(3, SECOND_REGISTER),
        ),
    ];
    list.iter()
        .fold(Attributes::new(), |all, one| all.with_nested(1, one))
}

fn expression(name: &str, data: &Attributes) -> Attributes {
    Attributes::new().with_text(1, name).with_nested(2, data)
}

/// The four bytes at offset 16 of the network header.
fn load_destination() -> Attributes {
    const NETWORK_HEADER: u32 = 1;
    expression(
        "payload",
        &Attributes::new()
            .with_number(1, REGISTER)
            .with_number(2, NETWORK_HEADER)
            .with_number(3, 16)
            .with_number(4, 4),
    )
}

fn mask(bits: [u8; 4]) -> Attributes {
    expression(
        "bitwise",
        &Attributes::new()
            .with_number(1, REGISTER)
            .with_number(2, REGISTER)
            .with_number(3, 4)
            .with_nested(4, &value(&bits))
            .with_nested(5, &value(&[0; 4])),
    )
}

#[derive(Clone, Copy)]
enum Comparison {
    Equal = 0,
    NotEqual = 1,
}

fn compare(how: Comparison, with: &[u8]) -> Attributes {
    expression(
        "cmp",
        &Attributes::new()
            .with_number(1, REGISTER)
            .with_number(2, how as u32)
            .with_nested(3, &value(with)),
    )
}

fn set(register: u32, to: &[u8]) -> Attributes {
    expression(
        "immediate",
        &Attributes::new()
            .with_number(1, register)
            .with_nested(2, &value(to)),
    )
}

fn value(bytes: &[u8]) -> Attributes {
    Attributes::new().with(1, bytes)
}
