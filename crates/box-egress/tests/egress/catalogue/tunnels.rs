//! Group D: `CONNECT`, and what is said inside. `ok.test` is allowed and has no credential, so its
//! TLS is passed on unread once its name was checked.

use super::Ends::{Closed, Passes, Refused};
use super::Sends::{Connect, Http, Proxy, ProxyMade, Tls};
use super::hello::{self, Extension};
use super::{Ends, Row, row};
use box_api::egress::Reason;

const MALFORMED: Ends = Refused(400, Reason::Malformed);
const PORT: Ends = Refused(403, Reason::Port);
const OTHER_NAME: Ends = Closed(Reason::SniMismatch);
const NO_NAME: Ends = Closed(Reason::NoSni);
const NOT_TLS: Ends = Closed(Reason::NotTls);

pub(crate) const ROWS: &[Row] = &[
    row("D1", Connect("ok.test:22"), PORT),
    row("D1a", Connect("ok.test:25"), PORT),
    row("D1b", Connect("ok.test:3306"), PORT),
    row("D1c", Connect("ok.test:8443"), PORT),
    row("D1d", Connect("ok.test:65535"), PORT),
    row("D1e", Connect("ok.test:53"), PORT),
    row("D1f", Connect("ok.test:853"), PORT),
    row("D1g", Connect("ok.test:443"), Passes),
    row("D1h", Connect("ok.test:80"), Passes),
    // Ports that are none.
    row("D2", Connect("ok.test"), MALFORMED),
    row("D2a", Connect("ok.test:0"), MALFORMED),
    row("D2b", Connect("ok.test:-1"), MALFORMED),
    row("D2c", Connect("ok.test:+443"), MALFORMED),
    row("D2d", Connect("ok.test:0443"), MALFORMED),
    row("D2e", Connect("ok.test:443:80"), MALFORMED),
    row("D2f", Connect("ok.test: 443"), MALFORMED),
    row("D2g", Connect("ok.test:https"), MALFORMED),
    row("D2h", Connect("ok.test:"), MALFORMED),
    row("D2i", Connect("ok.test:65979"), MALFORMED),
    row("D2j", Connect("ok.test:4294967739"), MALFORMED),
    row("D2k", Connect("ok.test:0x1bb"), MALFORMED),
    row("D2l", Connect("ok.test:443 "), MALFORMED),
    row("D2m", Connect("ok.test:44\u{ff13}"), MALFORMED),
    row("D2n", Connect("ok.test:443/"), MALFORMED),
    row("D2o", Connect("ok.test:443?x"), MALFORMED),
    row("D2p", Connect("ok.test:443#x"), MALFORMED),
    row("D2q", Connect("ok.test:443@evil.test"), MALFORMED),
    row("D2r", Connect("ok.test:4.43"), MALFORMED),
    row("D4", Connect("https://ok.test:443/"), MALFORMED),
    row("D4a", Connect("//ok.test:443"), MALFORMED),
    row("D4b", Connect("/"), MALFORMED),
    row("D4c", Connect("*"), MALFORMED),
    row("D5", Proxy(b"connect ok.test:443 HTTP/1.1\r\nHost: ok.test:443\r\n\r\n"), MALFORMED),
    row("D5a", Proxy(b"Connect ok.test:443 HTTP/1.1\r\nHost: ok.test:443\r\n\r\n"), MALFORMED),
    row("D5b", Proxy(b"CONNECT\tok.test:443 HTTP/1.1\r\nHost: ok.test:443\r\n\r\n"), MALFORMED),
    row("D5c", Proxy(b"CONNECT  ok.test:443 HTTP/1.1\r\nHost: ok.test:443\r\n\r\n"), MALFORMED),
    row("D5d", Proxy(b" CONNECT ok.test:443 HTTP/1.1\r\nHost: ok.test:443\r\n\r\n"), MALFORMED),
    row("D5e", Proxy(b"\r\nCONNECT ok.test:443 HTTP/1.1\r\nHost: ok.test:443\r\n\r\n"), MALFORMED),
    row("D5f", Proxy(b"CONNECT ok.test:443\r\n\r\n"), MALFORMED),
    row("D5g", Proxy(b"CONNECT ok.test:443 HTTP/1.1 x\r\nHost: ok.test:443\r\n\r\n"), MALFORMED),
    // Another host beside the first.
    row("D6", Proxy(b"CONNECT ok.test:443 HTTP/1.1\r\nHost: evil.test:443\r\n\r\n"), MALFORMED),
    row("D6a", Proxy(b"CONNECT ok.test:443 HTTP/1.1\r\nHost: ok.test:80\r\n\r\n"), MALFORMED),
    row("D6b", Proxy(b"CONNECT ok.test:443 HTTP/1.1\r\nHost: ok.test:443\r\nHost: ok.test:443\r\n\r\n"), MALFORMED),
    row("D6c", Proxy(b"CONNECT ok.test:443 HTTP/1.1\r\nHost: \r\n\r\n"), MALFORMED),
    row("D6d", Proxy(b"CONNECT evil.test:443 HTTP/1.1\r\nHost: ok.test:443\r\n\r\n"), MALFORMED),
    row("D6e", Proxy(b"CONNECT ok.test:443 HTTP/1.1\r\nHost: ok.test\r\n\r\n"), Passes),
    row("D6f", Proxy(b"CONNECT ok.test:443 HTTP/1.0\r\n\r\n"), Passes),
    row("D6g", Proxy(b"CONNECT ok.test:443 HTTP/1.1\r\nHost: ok.test:443\r\nProxy-Authorization: Basic eDp5\r\nX-Forwarded-For: 127.0.0.1\r\nX-Upstream-Https-Proxy: http://evil.test\r\n\r\n"), Passes),
    // What is no TLS does not pass port 443.
    row("D7", Tls(|| b"SSH-2.0-OpenSSH_9\r\n".to_vec()), NOT_TLS),
    row("D7a", Tls(|| b"EHLO x\r\n".to_vec()), NOT_TLS),
    row("D7b", Tls(|| b"GET / HTTP/1.1\r\nHost: ok.test\r\n\r\n".to_vec()), NOT_TLS),
    row("D7c", Tls(|| b"\x17\x03\x03\x00\x05hello".to_vec()), NOT_TLS),
    row("D7d", Tls(|| b"\x80\x2e\x01\x03\x01\x00\x15\x00\x00\x00\x10".to_vec()), NOT_TLS),
    row("D7e", Tls(|| b"\x15\x03\x03\x00\x02\x01\x00".to_vec()), NOT_TLS),
    row("D7f", Tls(|| b"\x16\x03\x01\x00\x04\x02\x00\x00\x00".to_vec()), NOT_TLS),
    row("D7g", Tls(|| b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec()), NOT_TLS),
    row("D7h", Tls(|| vec![0; 64]), NOT_TLS),
    row("D7i", Tls(|| b"\x16\x03\x01\x00\x00\x16\x03\x01\x00\x00".to_vec()), NOT_TLS),
    // The name in TLS is the one the connection is for.
    row("D10", Tls(|| hello::named(b"evil.test")), OTHER_NAME),
    row("D10a", Tls(|| hello::named(b"a.wild.test")), OTHER_NAME),
    row("D10b", Tls(|| hello::named(b"x.ok.test")), OTHER_NAME),
    row("D10c", Tls(|| hello::named(b"ok.test.evil.test")), OTHER_NAME),
    row("D10d", Tls(|| hello::named(b"cred.test")), OTHER_NAME),
    row("D12", Tls(|| hello::with(&[])), NO_NAME),
    row("D12a", Tls(|| hello::with(&[Extension::empty(0)])), NOT_TLS),
    row("D13", Tls(|| hello::in_records(&hello::named(b"ok.test"), 16)), Passes),
    row("D13a", Tls(|| hello::in_records(&hello::named(b"ok.test"), 1)), Passes),
    row("D13b", Tls(|| hello::padded(b"ok.test", 9_000)), Passes),
    row("D13c", Tls(|| hello::padded(b"ok.test", 17_000)), NOT_TLS),
    row("D13d", Tls(|| hello::in_records(&hello::named(b"evil.test"), 16)), OTHER_NAME),
    row("D13e", Tls(|| hello::padded(b"evil.test", 9_000)), OTHER_NAME),
    row("D13f", Tls(|| hello::named(b"OK.TEST")), Passes),
    // More than one name, or none that is a name.
    row("D14", Tls(|| hello::with(&[Extension::name(b"ok.test"), Extension::name(b"evil.test")])), NOT_TLS),
    row("D14a", Tls(|| hello::with(&[Extension::name(b"evil.test"), Extension::name(b"ok.test")])), NOT_TLS),
    row("D14b", Tls(|| hello::with(&[Extension::names(&[(0, b"ok.test"), (0, b"evil.test")])])), NOT_TLS),
    row("D14c", Tls(|| hello::with(&[Extension::names(&[(0, b"evil.test"), (0, b"ok.test")])])), NOT_TLS),
    row("D14d", Tls(|| hello::named(b"ok.test:443")), NOT_TLS),
    row("D14e", Tls(|| hello::named(b"45.33.32.101")), NO_NAME),
    row("D14f", Tls(|| hello::named(b"ok.test\0")), NOT_TLS),
    row("D14g", Tls(|| hello::named(b"evil.test\0ok.test")), NOT_TLS),
    row("D14h", Tls(|| hello::named(b"")), NOT_TLS),
    row("D14i", Tls(|| hello::named(b"ok..test")), NOT_TLS),
    row("D14j", Tls(|| hello::named(b"*.test")), NOT_TLS),
    row("D14k", Tls(|| hello::named(b"ok.test@evil.test")), NOT_TLS),
    row("D14l", Tls(|| hello::named(b"ok.test ")), NOT_TLS),
    row("D14m", Tls(|| hello::named("b\u{fc}cher.test".as_bytes())), NOT_TLS),
    row("D14n", Tls(|| hello::with(&[Extension::names(&[(1, b"ok.test")])])), NOT_TLS),
    row("D14o", Tls(|| hello::with(&[Extension::names(&[(1, b"evil.test"), (0, b"ok.test")])])), NOT_TLS),
    row("D14p", Tls(|| hello::with(&[Extension::name(b"ok.test").cut(2)])), NOT_TLS),
    row("D14q", Tls(|| hello::with(&[Extension::name(b"ok.test").longer(3)])), NOT_TLS),
    row("D14r", Tls(|| hello::trailing(b"ok.test", 4)), NOT_TLS),
    // Encrypted ClientHello shows another name outside.
    row("D15", Tls(|| hello::with(&[Extension::name(b"cloudflare-ech.com"), Extension::encrypted()])), OTHER_NAME),
    // HTTP inside a tunnel to port 80 is for the host of the tunnel.
    row("D17", Http(b"GET http://evil.test/ HTTP/1.1\r\nHost: evil.test\r\n\r\n"), MALFORMED),
    row("D17a", Http(b"GET http://ok.test/ HTTP/1.1\r\nHost: ok.test\r\n\r\n"), MALFORMED),
    row("D17b", Http(b"GET / HTTP/1.1\r\nHost: evil.test\r\n\r\n"), Refused(421, Reason::HostMismatch)),
    row("D17c", Http(b"GET / HTTP/1.1\r\nHost: a.wild.test\r\n\r\n"), Refused(421, Reason::HostMismatch)),
    row("D17d", Http(b"CONNECT evil.test:443 HTTP/1.1\r\nHost: evil.test:443\r\n\r\n"), MALFORMED),
    row("D17e", Http(b"CONNECT ok.test:80 HTTP/1.1\r\nHost: ok.test\r\n\r\n"), MALFORMED),
    row("D17f", Http(b"GET / HTTP/1.1\r\nHost: ok.test:81\r\n\r\n"), MALFORMED),
    row("D17g", Http(b"\x16\x03\x01\x00\x05\x01\x00\x00\x01\x03"), MALFORMED),
    row("D17h", Http(b"GET / HTTP/1.1\r\nHost: ok.test\r\n\r\n"), Passes),
    row("D17i", Http(b"GET / HTTP/1.1\r\nHost: OK.test.:80\r\n\r\n"), Passes),
    // A body announced for a tunnel.
    row("D22", Proxy(b"CONNECT ok.test:443 HTTP/1.1\r\nHost: ok.test:443\r\nContent-Length: 40\r\n\r\n"), MALFORMED),
    row("D22a", Proxy(b"CONNECT ok.test:443 HTTP/1.1\r\nHost: ok.test:443\r\nContent-Length: 0\r\n\r\n"), MALFORMED),
    row("D22b", Proxy(b"CONNECT ok.test:443 HTTP/1.1\r\nHost: ok.test:443\r\nTransfer-Encoding: chunked\r\n\r\n"), MALFORMED),
    // Early bytes are the first of the tunnel.
    row("D23", ProxyMade(|| early(&hello::named(b"ok.test"))), Passes),

    // Other proxies' protocols, and lines that speak to one behind.
    row("D24", Proxy(b"\x05\x01\x00\x05\x01\x00\x03\x07ok.test\x01\xbb\r\n\r\n"), MALFORMED),
    row("D24a", Proxy(b"\x04\x01\x01\xbb\x2d\x21\x20\x65me\x00\r\n\r\n"), MALFORMED),
    row("D24b", Proxy(b"PROXY TCP4 45.33.32.1 45.33.32.2 1 443\r\nCONNECT ok.test:443 HTTP/1.1\r\nHost: ok.test:443\r\n\r\n"), MALFORMED),
    row("D24c", Proxy(b"\r\n\r\n\x00\r\nQUIT\n\x21\x11\x00\x0c"), MALFORMED),
    row("D24d", Tls(|| b"PROXY TCP4 127.0.0.1 127.0.0.1 1 443\r\n".to_vec()), NOT_TLS),
    row("D24e", Tls(|| b"\r\n\r\n\x00\r\nQUIT\n\x21\x11\x00\x0c".to_vec()), NOT_TLS),
    row("D24f", Http(b"PROXY TCP4 127.0.0.1 127.0.0.1 1 80\r\nGET / HTTP/1.1\r\nHost: ok.test\r\n\r\n"), MALFORMED),
    row("D24g", Tls(|| [b"PROXY TCP4 127.0.0.1 127.0.0.1 1 443\r\n".as_slice(), &hello::named(b"ok.test")].concat()), NOT_TLS),
    // Datagrams' TLS, versions there never were, lengths that are none.
    row("D7j", Tls(|| b"\x16\xfe\xfd\x00\x00\x00\x00\x00\x00\x00\x00\x00\x01\x01".to_vec()), NOT_TLS),
    row("D7k", Tls(|| b"\xc3\x00\x00\x00\x01\x08\x00\x00\x00\x00\x00\x00\x00\x00".to_vec()), NOT_TLS),
    row("D7l", Tls(|| b"\x16\x03\x01\xff\xff\x01\x00\xff\xfb".to_vec()), NOT_TLS),
    row("D7m", Tls(|| b"\x14\x03\x01\x00\x01\x01".to_vec()), NOT_TLS),
    row("D7n", Tls(|| b"CONNECT evil.test:443 HTTP/1.1\r\nHost: evil.test:443\r\n\r\n".to_vec()), NOT_TLS),
    row("D7o", Tls(|| b"\x05\x01\x00".to_vec()), NOT_TLS),
    row("D7p", Tls(|| b"\x00\x1c\x12\x34\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00\x01x\x04evil\x04test\x00\x00\x01\x00\x01".to_vec()), NOT_TLS),
    // The outer name counts: what is encrypted beside it nobody on the way can read.
    row("D15a", Tls(|| hello::with(&[Extension::name(b"ok.test"), Extension::encrypted()])), Passes),
    row("D15b", Tls(|| hello::with(&[Extension::encrypted()])), NO_NAME),
    row("D15c", Tls(|| hello::with(&[Extension::encrypted(), Extension::name(b"evil.test")])), OTHER_NAME),
    row("D14s", Tls(|| hello::named(b"[::1]")), NOT_TLS),
    row("D14t", Tls(|| hello::named(b"ok.test.")), NOT_TLS),
    row("D14u", Tls(|| hello::named(b"localhost")), OTHER_NAME),
    row("D14v", Tls(|| hello::named(b"ok.test%00")), NOT_TLS),
    row("D14w", Tls(|| hello::named(b"ok\ntest")), NOT_TLS),
    row("D14x", Tls(|| hello::named(&[b'a'; 300])), NOT_TLS),
    row("D13g", Tls(|| hello::in_records(&hello::padded(b"evil.test", 3_000), 100)), OTHER_NAME),
    // Another scheme or form inside a tunnel to port 80.
    row("D17j", Http(b"GET https://ok.test/ HTTP/1.1\r\nHost: ok.test\r\n\r\n"), MALFORMED),
    row("D17k", Http(b"GET ok.test/ HTTP/1.1\r\nHost: ok.test\r\n\r\n"), MALFORMED),
    row("D17l", Http(b"GET / HTTP/1.1\r\nHost: ok.test:443\r\n\r\n"), MALFORMED),
    row("D17m", Http(b"GET / HTTP/1.1\r\nHost: ok.test:080\r\n\r\n"), MALFORMED),
    row("D17n", Http(b"GET / HTTP/1.1\r\nHost: 45.33.32.101\r\n\r\n"), Refused(451, Reason::IpLiteral)),
    // Spaces, tabs and lines between the words.
    row("D6h", Proxy(b"CONNECT ok.test:443 HTTP/1.1\r\nHost: ok.test:443 evil.test\r\n\r\n"), MALFORMED),
    row("D6i", Proxy(b"CONNECT ok.test:443 HTTP/1.1\r\nHost: ok.test:443\r\n Host: evil.test\r\n\r\n"), MALFORMED),
    row("D6j", Proxy(b"CONNECT ok.test:443 HTTP/1.1\r\nHost : ok.test:443\r\n\r\n"), MALFORMED),
    row("D5h", Proxy(b"CONNECT ok.test:443 HTTP/2\r\nHost: ok.test:443\r\n\r\n"), MALFORMED),
    row("D5i", Proxy(b"CONNECT ok.test:443 HTTP/1.1\nHost: ok.test:443\n\n"), MALFORMED),
    row("D5j", Proxy(b"CONNECT ok.test:443 HTTP/1.1\r\nHost: ok.test:443\r\nUpgrade: h2c\r\nConnection: Upgrade\r\n\r\n"), Passes),
];

fn early(bytes: &[u8]) -> Vec<u8> {
    let head = b"CONNECT ok.test:443 HTTP/1.1\r\nHost: ok.test:443\r\n\r\n";
    [head.as_slice(), bytes].concat()
}
