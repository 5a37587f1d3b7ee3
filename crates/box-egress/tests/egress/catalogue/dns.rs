//! Group C: packets to the resolver. Nothing of them is ever asked upstream. What names lead to is
//! with the addresses (group B).

use super::Ends::{Says, SaysAndTells, Silence};
use super::Sends::Packet;
use super::{Row, row};
use box_api::egress::Reason;

const FORMAT_ERROR: u8 = 1;
const NO_SUCH_NAME: u8 = 3;
const NOT_IMPLEMENTED: u8 = 4;
const REFUSED: u8 = 5;

const A: u16 = 1;
const NS: u16 = 2;
const CNAME: u16 = 5;
const SOA: u16 = 6;
const NULL: u16 = 10;
const PTR: u16 = 12;
const MX: u16 = 15;
const TXT: u16 = 16;
const AAAA: u16 = 28;
const SRV: u16 = 33;
const NAPTR: u16 = 35;
const DS: u16 = 43;
const SSHFP: u16 = 44;
const DNSKEY: u16 = 48;
const TLSA: u16 = 52;
const SVCB: u16 = 64;
const HTTPS: u16 = 65;
const IXFR: u16 = 251;
const AXFR: u16 = 252;
const ANY: u16 = 255;
const CAA: u16 = 257;
const UNKNOWN: u16 = 65_399;

const IN: u16 = 1;
const CHAOS: u16 = 3;

pub(crate) const ROWS: &[Row] = &[
    row("C0", Packet(|| query("ok.test", A)), Says(0, 1)),
    row("C0a", Packet(|| query("oK.TeSt", A)), Says(0, 1)),
    row("C0b", Packet(|| padded(query("ok.test", A))), Says(0, 1)),
    // A name that carries something out gets the refusal address, whatever stands in it.
    row(
        "C9",
        Packet(|| query("c2VjcmV0.evil.test", A)),
        SaysAndTells(0, 1, Reason::NotListed),
    ),
    row(
        "C9a",
        Packet(|| query("c2VjcmV0.evil.test", TXT)),
        Says(REFUSED, 0),
    ),
    row(
        "C9b",
        Packet(|| query("c2VjcmV0.ok.test", A)),
        SaysAndTells(0, 1, Reason::NotListed),
    ),
    row(
        "C9c",
        Packet(|| query("a.b.wild.test", A)),
        SaysAndTells(0, 1, Reason::NotListed),
    ),
    row(
        "C9d",
        Packet(|| query("c2VjcmV0.evil.test", AAAA)),
        Says(0, 0),
    ),
    row(
        "C9e",
        Packet(|| query("c2VjcmV0.evil.test", HTTPS)),
        Says(0, 0),
    ),
    row(
        "C9f",
        Packet(|| query("c2VjcmV0.evil.test", NULL)),
        Says(REFUSED, 0),
    ),
    row(
        "C9g",
        Packet(|| query("c2VjcmV0.evil.test", CNAME)),
        Says(REFUSED, 0),
    ),
    row(
        "C9h",
        Packet(|| query("denied.test", A)),
        SaysAndTells(0, 1, Reason::Denied),
    ),
    row(
        "C9i",
        Packet(|| query("metadata.google.internal", A)),
        SaysAndTells(NO_SUCH_NAME, 0, Reason::LocalName),
    ),
    row(
        "C9j",
        Packet(|| query("localhost", A)),
        SaysAndTells(NO_SUCH_NAME, 0, Reason::LocalName),
    ),
    row(
        "C9k",
        Packet(|| query("metadata.google.internal", AAAA)),
        Says(NO_SUCH_NAME, 0),
    ),
    row(
        "C9l",
        Packet(|| query("127.0.0.1", A)),
        SaysAndTells(NO_SUCH_NAME, 0, Reason::Malformed),
    ),
    // Types: no other address, no key, no alias, no zone.
    row("C11", Packet(|| query("ok.test", TXT)), Says(REFUSED, 0)),
    row("C11a", Packet(|| query("ok.test", ANY)), Says(REFUSED, 0)),
    row("C11b", Packet(|| query("ok.test", SVCB)), Says(0, 0)),
    row("C11c", Packet(|| query("ok.test", HTTPS)), Says(0, 0)),
    row("C11d", Packet(|| query("ok.test", CNAME)), Says(REFUSED, 0)),
    row("C11e", Packet(|| query("ok.test", AXFR)), Says(REFUSED, 0)),
    row("C11f", Packet(|| query("ok.test", IXFR)), Says(REFUSED, 0)),
    row("C11g", Packet(|| query("ok.test", NS)), Says(REFUSED, 0)),
    row(
        "C11h",
        Packet(|| query("_http._tcp.ok.test", SRV)),
        Says(REFUSED, 0),
    ),
    row(
        "C11i",
        Packet(|| query("ok.test", UNKNOWN)),
        Says(REFUSED, 0),
    ),
    row("C11j", Packet(|| query("ok.test", AAAA)), Says(0, 0)),
    row(
        "C11k",
        Packet(|| query("9.9.18.198.in-addr.arpa", PTR)),
        Says(NO_SUCH_NAME, 0),
    ),
    row(
        "C11l",
        Packet(|| query("1.0.0.10.in-addr.arpa", PTR)),
        Says(NO_SUCH_NAME, 0),
    ),
    row(
        "C11m",
        Packet(|| message(0x0100, &[question("version.bind", TXT, CHAOS)])),
        Says(REFUSED, 0),
    ),
    row(
        "C11n",
        Packet(|| message(0x0100, &[question("ok.test", A, CHAOS)])),
        Says(REFUSED, 0),
    ),
    row(
        "C11o",
        Packet(|| message(0x0100, &[question("ok.test", A, ANY)])),
        Says(REFUSED, 0),
    ),
    // Messages that are no single question.
    row(
        "C11p",
        Packet(|| {
            message(
                0x0100,
                &[question("ok.test", A, IN), question("evil.test", A, IN)],
            )
        }),
        Says(FORMAT_ERROR, 0),
    ),
    row(
        "C11q",
        Packet(|| message(0x0100, &[])),
        Says(FORMAT_ERROR, 0),
    ),
    row(
        "C11r",
        Packet(|| message(0x1100, &[question("ok.test", A, IN)])),
        Says(NOT_IMPLEMENTED, 0),
    ),
    row(
        "C11s",
        Packet(|| message(0x2100, &[question("ok.test", A, IN)])),
        Says(NOT_IMPLEMENTED, 0),
    ),
    row(
        "C11t",
        Packet(|| message(0x8180, &[question("ok.test", A, IN)])),
        Silence,
    ),
    // Packets that are broken.
    row("C13", Packet(|| header(0x0100, 1)), Says(FORMAT_ERROR, 0)),
    row(
        "C13a",
        Packet(|| [header(0x0100, 1).as_slice(), &[0xc0, 12, 0, 1, 0, 1]].concat()),
        Says(FORMAT_ERROR, 0),
    ),
    row(
        "C13b",
        Packet(|| [header(0x0100, 1).as_slice(), &[0xc0, 0xff, 0, 1, 0, 1]].concat()),
        Says(FORMAT_ERROR, 0),
    ),
    row(
        "C13c",
        Packet(|| [header(0x0100, 1).as_slice(), &[63, b'a', 0, 0, 1, 0, 1]].concat()),
        Says(FORMAT_ERROR, 0),
    ),
    row(
        "C13d",
        Packet(|| [header(0x0100, 1).as_slice(), &[0x41, b'a', 0, 0, 1, 0, 1]].concat()),
        Says(FORMAT_ERROR, 0),
    ),
    row(
        "C13e",
        Packet(|| header(0x0100, 65_535)),
        Says(FORMAT_ERROR, 0),
    ),
    row("C13f", Packet(|| vec![0x12, 0x34, 1]), Silence),
    row("C13g", Packet(Vec::new), Silence),
    row(
        "C13h",
        Packet(|| [query("ok.test", A)[..20].to_vec()].concat()),
        Says(FORMAT_ERROR, 0),
    ),
    // Labels that would read as another name.
    row(
        "C13i",
        Packet(|| labelled(&[b"evil.test\0", b"wild", b"test"])),
        SaysAndTells(NO_SUCH_NAME, 0, Reason::Malformed),
    ),
    row(
        "C13j",
        Packet(|| labelled(&[b"ok.test"])),
        SaysAndTells(NO_SUCH_NAME, 0, Reason::Malformed),
    ),
    row(
        "C13k",
        Packet(|| labelled(&[b"a b", b"wild", b"test"])),
        SaysAndTells(NO_SUCH_NAME, 0, Reason::Malformed),
    ),
    row(
        "C13l",
        Packet(|| labelled(&[b"\xffk", b"test"])),
        SaysAndTells(NO_SUCH_NAME, 0, Reason::Malformed),
    ),
    row(
        "C13m",
        Packet(|| labelled(&[b"*", b"wild", b"test"])),
        SaysAndTells(NO_SUCH_NAME, 0, Reason::Malformed),
    ),
    row(
        "C13n",
        Packet(|| labelled(&[])),
        SaysAndTells(NO_SUCH_NAME, 0, Reason::Malformed),
    ),
    // More types, none of which leads anywhere.
    row(
        "C11.0",
        Packet(|| query("c2VjcmV0.ok.test", SOA)),
        Says(REFUSED, 0),
    ),
    row(
        "C11.1",
        Packet(|| query("c2VjcmV0.ok.test", MX)),
        Says(REFUSED, 0),
    ),
    row(
        "C11.2",
        Packet(|| query("ok.test", NAPTR)),
        Says(REFUSED, 0),
    ),
    row("C11.3", Packet(|| query("ok.test", DS)), Says(REFUSED, 0)),
    row(
        "C11.4",
        Packet(|| query("ok.test", SSHFP)),
        Says(REFUSED, 0),
    ),
    row(
        "C11.5",
        Packet(|| query("ok.test", DNSKEY)),
        Says(REFUSED, 0),
    ),
    row(
        "C11.6",
        Packet(|| query("_443._tcp.ok.test", TLSA)),
        Says(REFUSED, 0),
    ),
    row("C11.7", Packet(|| query("ok.test", CAA)), Says(REFUSED, 0)),
    row("C11.8", Packet(|| query("_ech.ok.test", HTTPS)), Says(0, 0)),
    row(
        "C11.9",
        Packet(|| query("1.0.0.0.ip6.arpa", PTR)),
        Says(NO_SUCH_NAME, 0),
    ),
    row(
        "C11.10",
        Packet(|| query("c2VjcmV0.evil.test", PTR)),
        Says(NO_SUCH_NAME, 0),
    ),
    // Update, notify; data where an answer would stand.
    row(
        "C11.11",
        Packet(|| message(0x2800, &[question("ok.test", SOA, IN)])),
        Says(NOT_IMPLEMENTED, 0),
    ),
    // A name as long as one can be, and one label longer.
    row(
        "C9m",
        Packet(|| query(&["a".repeat(63).as_str(); 3].join("."), A)),
        SaysAndTells(0, 1, Reason::NotListed),
    ),
    row(
        "C13o",
        Packet(|| labelled(&[&[b'a'; 63], &[b'a'; 63], &[b'a'; 63], &[b'a'; 63], b"test"])),
        Says(FORMAT_ERROR, 0),
    ),
    row(
        "C13p",
        Packet(|| labelled(&[b"ok", b"test\xe3\x80\x82evil"])),
        SaysAndTells(NO_SUCH_NAME, 0, Reason::Malformed),
    ),
];

/// A query that is always answered, with an id of its own.
pub(crate) fn probe() -> Vec<u8> {
    let mut probe = query("ok.test", A);
    probe[..2].copy_from_slice(&[0xbe, 0xef]);
    probe
}

fn query(name: &str, kind: u16) -> Vec<u8> {
    message(0x0100, &[question(name, kind, IN)])
}

fn header(flags: u16, questions: u16) -> Vec<u8> {
    let words = [0x1234, flags, questions, 0, 0, 0];
    words
        .iter()
        .flat_map(|word: &u16| word.to_be_bytes())
        .collect()
}

fn message(flags: u16, questions: &[Vec<u8>]) -> Vec<u8> {
    let count = u16::try_from(questions.len()).unwrap();
    [header(flags, count), questions.concat()].concat()
}

fn question(name: &str, kind: u16, class: u16) -> Vec<u8> {
    let labels: Vec<&[u8]> = name.split('.').map(str::as_bytes).collect();
    [
        name_of(&labels),
        kind.to_be_bytes().into(),
        class.to_be_bytes().into(),
    ]
    .concat()
}

fn labelled(labels: &[&[u8]]) -> Vec<u8> {
    let question = [name_of(labels).as_slice(), &[0, 1, 0, 1]].concat();
    message(0x0100, &[question])
}

fn name_of(labels: &[&[u8]]) -> Vec<u8> {
    let mut name = Vec::new();
    for label in labels {
        name.push(u8::try_from(label.len()).unwrap());
        name.extend_from_slice(label);
    }
    name.push(0);
    name
}

/// With EDNS and its padding option (RFC 7830).
fn padded(mut message: Vec<u8>) -> Vec<u8> {
    message[11] = 1;
    let option = [&[0, 12, 0, 40], [0; 40].as_slice()].concat();
    let length = u16::try_from(option.len()).unwrap().to_be_bytes();
    let record = [&[0, 0, 41, 16, 0, 0, 0, 0, 0], length.as_slice(), &option].concat();
    message.extend_from_slice(&record);
    message
}
