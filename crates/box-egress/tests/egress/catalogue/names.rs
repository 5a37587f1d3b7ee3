//! Group A: which host a text names, and whether the list has it. Allowed are `ok.test`,
//! `*.wild.test`, `github.com`, `xn--bcher-kva.test` and port 8443 of `port.test`; denied are
//! `bad.wild.test` and `denied.test`.

use super::Ends::{Passes, Refused};
use super::Sends::{Connect, Host, ProxyMade};
use super::{Ends, Row, row};
use box_api::egress::Reason;

const MALFORMED: Ends = Refused(400, Reason::Malformed);
const NOT_LISTED: Ends = Refused(403, Reason::NotListed);
const DENIED: Ends = Refused(403, Reason::Denied);
const LOCAL: Ends = Refused(403, Reason::LocalName);

pub(crate) const ROWS: &[Row] = &[
    // Case and the dot at the end mean nothing.
    row("A1", Host("OK.TEST"), Passes),
    row("A1a", Host("oK.tEsT"), Passes),
    row("A2", Host("ok.test."), Passes),
    row("A2a", Host("ok.test.."), MALFORMED),
    row("A2b", Host("ok.test..."), MALFORMED),
    row("A2c", Host("A.WILD.TEST."), Passes),
    // A name that ends or begins like a listed one.
    row("A4", Host("evil-ok.test"), NOT_LISTED),
    row("A4a", Host("notwild.test"), NOT_LISTED),
    row("A4b", Host("evilok.test"), NOT_LISTED),
    row("A4c", Host("ok.test-evil.test"), NOT_LISTED),
    row("A5", Host("ok.test.evil.test"), NOT_LISTED),
    row("A5a", Host("ok.tes"), NOT_LISTED),
    row("A5b", Host("ok.testx"), NOT_LISTED),
    row("A5c", Host("xok.test"), NOT_LISTED),
    row("A5d", Host("www.ok.test"), NOT_LISTED),
    row("A5e", Host("ok_test.test"), NOT_LISTED),
    // A star is one label.
    row("A6", Host("a.wild.test"), Passes),
    row("A6a", Host("wild.test"), NOT_LISTED),
    row("A6b", Host("a.b.wild.test"), NOT_LISTED),
    row("A6c", Host("a.wild.test.evil.test"), NOT_LISTED),
    row("A6d", Host("*.wild.test"), MALFORMED),
    // Empty labels.
    row("A7", Host(".wild.test"), MALFORMED),
    row("A7a", Host("a..wild.test"), MALFORMED),
    row("A7b", Host("."), MALFORMED),
    row("A7c", Connect(":443"), MALFORMED),
    row("A7d", Host(".."), MALFORMED),
    // Bytes at which some other parser stops reading.
    row("A9", Host("evil.test\0.wild.test"), MALFORMED),
    row("A9a", Host("\0.wild.test"), MALFORMED),
    row("A9b", Host("ok.test\0"), MALFORMED),
    row("A9c", Host("ok.test\x7f"), MALFORMED),
    row("A9d", Host("ok.test\x01"), MALFORMED),
    // Nothing is decoded.
    row("A10", Host("evil.test%00.wild.test"), MALFORMED),
    row("A10a", Host("evil.test%2ewild.test"), MALFORMED),
    row("A10b", Host("ok%2etest"), MALFORMED),
    row("A10c", Host("%6fk.test"), MALFORMED),
    row("A10d", Host("ok.test%2f.wild.test"), MALFORMED),
    row("A10e", Host("ok.test%23.wild.test"), MALFORMED),
    row("A10f", Host("ok.test&#46;"), MALFORMED),
    row("A11", Host("ok.test%0d%0aX:1"), MALFORMED),
    row("A11a", Host("ok.test\r\nX"), MALFORMED),
    row("A11b", Host("ok.test\tx"), MALFORMED),
    row("A11c", Host("ok.test x.wild.test"), MALFORMED),
    row("A11d", Host("ok.test\nX"), MALFORMED),
    row("A11e", Host("ok.test\x0b.wild.test"), MALFORMED),
    // Users and other parts of a URL.
    row("A12", Host("ok.test@evil.test"), MALFORMED),
    row("A12a", Host("evil.test@ok.test"), MALFORMED),
    row("A12b", Host("u:p@ok.test"), MALFORMED),
    row("A12c", Host("@ok.test"), MALFORMED),
    row("A12d", Host("ok.test\\.wild.test"), MALFORMED),
    row("A12e", Connect("ok.test/:443"), MALFORMED),
    row("A12f", Connect("ok.test?:443"), MALFORMED),
    row("A12g", Connect("ok.test#:443"), MALFORMED),
    row("A12h", Host("ok.test;.wild.test"), MALFORMED),
    row("A12i", Host("ok.test,evil.test"), MALFORMED),
    row("A12j", Host("[ok.test]"), MALFORMED),
    row("A12k", Host("{ok.test}"), MALFORMED),
    row("A12l", Host("\"ok.test\""), MALFORMED),
    row("A12m", Host("$ok.test"), MALFORMED),
    row("A12n", Host("ok.test|evil.test"), MALFORMED),
    // Names outside ASCII are written in their own spelling only.
    row("A14", Host("b\u{fc}cher.test"), MALFORMED),
    row("A14a", Host("\u{ff4f}k.test"), MALFORMED),
    row("A14b", Host("ok\u{3002}test"), MALFORMED),
    row("A14c", Host("ok\u{ff0e}test"), MALFORMED),
    row("A14d", Host("\u{43e}k.test"), MALFORMED),
    row("A14e", Host("o\u{ad}k.test"), MALFORMED),
    row("A14f", Host("ok.te\u{17f}t"), MALFORMED),
    row("A14g", Host("o\u{212a}.test"), MALFORMED),
    row("A15", Host("xn--bcher-kva.test"), Passes),
    row("A15a", Host("XN--BCHER-KVA.test"), Passes),
    row("A15b", Host("xn--k-tbb.test"), NOT_LISTED),
    // Lengths and letters (RFC 1035 §2.3.4).
    row("A17", ProxyMade(|| connect_to(&"a".repeat(64))), MALFORMED),
    row(
        "A17a",
        ProxyMade(|| connect_to(&format!("{}a", "abc.".repeat(63)))),
        MALFORMED,
    ),
    row("A17b", Host("-a.wild.test"), MALFORMED),
    row("A17c", Host("a-.wild.test"), MALFORMED),
    row(
        "A17d",
        ProxyMade(|| connect_to(&"a".repeat(63))),
        NOT_LISTED,
    ),
    row("A17e", Host("a!.wild.test"), MALFORMED),
    row("A17f", Host("a'.wild.test"), MALFORMED),
    row("A18", Host("a_b.wild.test"), Passes),
    // A name is no address; an address is no name.
    row("A22", Host("127.0.0.1"), Refused(403, Reason::IpLiteral)),
    row(
        "A22a",
        Host("45.33.32.101"),
        Refused(403, Reason::IpLiteral),
    ),
    // Deny wins.
    row("A23", Host("bad.wild.test"), DENIED),
    row("A23a", Host("BAD.wild.test."), DENIED),
    row("A23b", Host("denied.test"), DENIED),
    row("A23c", Connect("denied.test:8443"), DENIED),
    row("A23d", Connect("port.test:443"), Refused(403, Reason::Port)),
    // Names of this machine, its network, its cluster.
    row("A24", Host("intranet"), LOCAL),
    row("A24a", Host("localhost"), LOCAL),
    row("A24b", Host("x.localhost"), LOCAL),
    row("A24c", Host("foo.local"), LOCAL),
    row("A24d", Host("x.internal"), LOCAL),
    row("A24e", Host("metadata.google.internal"), LOCAL),
    row("A24f", Host("METADATA.google.internal."), LOCAL),
    row("A24g", Host("host.docker.internal"), LOCAL),
    row("A24h", Host("gateway.docker.internal"), LOCAL),
    row("A24i", Host("kubernetes.default.svc"), LOCAL),
    row("A24j", Host("kubernetes.default.svc.cluster.local"), LOCAL),
    row("A24k", Host("metadata"), LOCAL),
    row("A24l", Host("router.lan"), LOCAL),
    row("A24m", Host("nas.home.arpa"), LOCAL),
    row("A24n", Host("1.0.0.127.in-addr.arpa"), LOCAL),
    row("A24o", Host("ip6-localhost"), LOCAL),
    row("A24p", Host("localhost.localdomain"), LOCAL),
    row("A25", Host("github.com"), Passes),
    // Characters that are not seen, that turn text round, that a library maps to others.
    row("A14h", Host("ok\u{200b}.test"), MALFORMED),
    row("A14i", Host("ok.te\u{200d}st"), MALFORMED),
    row("A14j", Host("\u{202e}tset.ko"), MALFORMED),
    row("A14k", Host("\u{feff}ok.test"), MALFORMED),
    row("A14l", Host("ok\u{ff61}test"), MALFORMED),
    row("A14m", Host("ok.test\u{2024}evil.test"), MALFORMED),
    row("A14n", Host("ok.test\u{2f}evil.test"), MALFORMED),
    row("A14o", Host("ok.test\u{ff0f}evil.test"), MALFORMED),
    row("A14p", Host("ok%E3%80%82test"), MALFORMED),
    row("A14q", Host("ok.test%E2%80%8B"), MALFORMED),
    row("A15c", Host("xn--.wild.test"), MALFORMED),
    row("A15d", Host("xn--bcher-kva.test.evil.test"), NOT_LISTED),
    row("A15e", Host("bcher-kva.test"), NOT_LISTED),
    // What comes with a name in other programs' files and addresses.
    row("A12o", Host("ok.test`id`"), MALFORMED),
    row("A12p", Host("ok.test$(id)"), MALFORMED),
    row("A12q", Host("ok.test'"), MALFORMED),
    row("A12r", Host("<ok.test>"), MALFORMED),
    row("A12s", Host("ok.test^"), MALFORMED),
    row("A12t", Host("ok.test~"), MALFORMED),
    row("A12u", Host("ok.test="), MALFORMED),
    row("A12v", Host("ok.test*"), MALFORMED),
    row("A12w", Host("//ok.test"), MALFORMED),
    row("A12x", Host("ok.test:80@evil.test"), MALFORMED),
    row("A12y", Connect("ok.test:443#@evil.test:443"), MALFORMED),
    row("A12z", Connect("evil.test:443\\@ok.test:443"), MALFORMED),
    row("A13", Connect("ok.test:443,evil.test:443"), MALFORMED),
    row("A13a", Connect("ok.test:443%20evil.test:443"), MALFORMED),
    row("A13b", Connect("ok.test.:443.:443"), MALFORMED),
    // More names of this machine and its networks.
    row("A24q", Host("wpad"), LOCAL),
    row("A24r", Host("LOCALHOST."), LOCAL),
    row("A24s", Host("ok.test.localhost"), LOCAL),
    row("A24t", Host("ok.test.local"), LOCAL),
    row("A24u", Host("instance-data.ec2.internal"), LOCAL),
    row("A24v", Host("kubernetes.default"), NOT_LISTED),
    row("A24w", Host("0.0.0.0.ip6.arpa"), LOCAL),
];

fn connect_to(label: &str) -> Vec<u8> {
    let authority = format!("{label}.test:443");
    format!("CONNECT {authority} HTTP/1.1\r\nHost: {authority}\r\n\r\n").into_bytes()
}
