//! Reads a TLS `ClientHello` without answering it, for the name the client asks for.

mod named;

use crate::limits::HEAD_WAIT;
use bytes::{Bytes, BytesMut};
use rustls::server::Acceptor;
use std::io::Cursor;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::time::timeout;

/// Longest `ClientHello`, with the records around it.
const HELLO_BYTES_MAX: usize = 16 << 10;
const HANDSHAKE_RECORD: u8 = 22;
/// A record with the fatal alert `unrecognized_name` (RFC 6066 §3).
const UNRECOGNIZED_NAME: [u8; 7] = [21, 3, 3, 0, 2, 2, 112];

/// Why there is no name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum HelloError {
    Closed,
    NotTls,
    NoName,
    TooSlow,
}

/// What was read, and the name in it.
#[derive(Debug)]
pub(crate) struct Hello {
    /// As sent, in lower case.
    pub(crate) name: String,
    pub(crate) bytes: Bytes,
}

/// Reads until the `ClientHello` is whole.
pub(crate) async fn peek(
    stream: &mut (impl AsyncRead + Unpin),
    early: Bytes,
) -> Result<Hello, HelloError> {
    timeout(HEAD_WAIT, read(stream, early))
        .await
        .map_err(|_| HelloError::TooSlow)?
}

async fn read(stream: &mut (impl AsyncRead + Unpin), early: Bytes) -> Result<Hello, HelloError> {
    let mut acceptor = Acceptor::default();
    let mut bytes = BytesMut::from(early);
    let mut given = 0;
    loop {
        if bytes
            .first()
            .is_some_and(|first| *first != HANDSHAKE_RECORD)
        {
            return Err(HelloError::NotTls);
        }
        let mut fresh = Cursor::new(&bytes[given..]);
        while fresh.position() < fresh.get_ref().len() as u64 {
            acceptor
                .read_tls(&mut fresh)
                .map_err(|_| HelloError::NotTls)?;
            let accepted = acceptor.accept().map_err(|_| HelloError::NotTls)?;
            let Some(accepted) = accepted else { continue };
            let name = accepted
                .client_hello()
                .server_name()
                .map(str::to_ascii_lowercase);
            let name = name.ok_or(HelloError::NoName)?;
            if !named::is_only(&name, &bytes) {
                return Err(HelloError::NotTls);
            }
            return Ok(Hello {
                name,
                bytes: bytes.freeze(),
            });
        }
        given = bytes.len();
        if given >= HELLO_BYTES_MAX {
            return Err(HelloError::NotTls);
        }
        bytes.reserve(4096);
        match stream.read_buf(&mut bytes).await {
            Ok(0) | Err(_) => return Err(HelloError::Closed),
            Ok(_) => {}
        }
    }
}

/// Tells a TLS client that this name is not served here, and closes.
pub(crate) async fn alert(mut stream: impl AsyncWrite + Unpin) {
    // A client that does not listen is gone all the same.
    drop(stream.write_all(&UNRECOGNIZED_NAME).await);
    drop(stream.shutdown().await);
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustls::pki_types::ServerName;
    use rustls::{ClientConfig, ClientConnection, RootCertStore};
    use std::sync::Arc;

    fn client_hello(name: &'static str) -> Vec<u8> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(RootCertStore::empty())
            .with_no_client_auth();
        let name = ServerName::try_from(name).unwrap();
        let mut client = ClientConnection::new(Arc::new(config), name).unwrap();
        let mut bytes = Vec::new();
        client.write_tls(&mut bytes).unwrap();
        bytes
    }

    /// The same handshake message, cut into records of `size` bytes.
    fn in_records(hello: &[u8], size: usize) -> Vec<u8> {
        let body = &hello[5..];
        let record = |piece: &[u8]| {
            let length = u16::try_from(piece.len()).unwrap().to_be_bytes();
            [&[22, 3, 1], length.as_slice(), piece].concat()
        };
        body.chunks(size).flat_map(record).collect()
    }

    async fn name_in(bytes: &[u8]) -> Result<String, HelloError> {
        let mut stream = bytes;
        peek(&mut stream, Bytes::new()).await.map(|hello| {
            assert!(bytes.starts_with(&hello.bytes));
            hello.name
        })
    }

    #[tokio::test]
    async fn name_is_found_however_the_hello_is_cut() {
        // D13
        let hello = client_hello("OK.test");
        assert_eq!(name_in(&hello).await, Ok("ok.test".into()));
        assert_eq!(
            name_in(&in_records(&hello, 100)).await,
            Ok("ok.test".into())
        );
        let (mut near, mut far) = tokio::io::duplex(1);
        let feed = tokio::spawn(async move { far.write_all(&hello).await });
        let name = peek(&mut near, Bytes::new()).await.map(|hello| hello.name);
        assert_eq!(name, Ok("ok.test".into()));
        feed.await.unwrap().unwrap();
    }

    /// A hello whose one extension is a server name with this as its data.
    fn hello_with(names: &[u8]) -> Vec<u8> {
        let length = |bytes: usize| u16::try_from(bytes).unwrap().to_be_bytes();
        let real = client_hello("ok.test");
        let at = memchr::memmem::find(&real, b"\0\0\0\x0c\0\x0a\0\0\x07ok.test").unwrap();
        let mut hello = real[..at + 2].to_vec();
        hello.extend(length(names.len()));
        hello.extend(names);
        hello.extend(&real[at + 16..]);
        let grown = names.len().cast_signed() - 12;
        let grow = |bytes: &mut [u8]| {
            let old = u16::from_be_bytes([bytes[0], bytes[1]]);
            bytes.copy_from_slice(&length(usize::from(old).checked_add_signed(grown).unwrap()));
        };
        grow(&mut hello[3..5]);
        grow(&mut hello[7..9]);
        // Behind the session's id, the suites and the compression.
        let suites = 44 + usize::from(real[43]);
        let compression =
            suites + 2 + usize::from(u16::from_be_bytes([real[suites], real[suites + 1]]));
        let extensions = compression + 1 + usize::from(real[compression]);
        grow(&mut hello[extensions..extensions + 2]);
        hello
    }

    #[tokio::test]
    async fn a_name_with_anything_beside_it_is_none() {
        let one = b"\0\x0a\0\0\x07ok.test".as_slice();
        assert_eq!(
            name_in(&hello_with(one)).await,
            Ok("ok.test".into()),
            "the control"
        );
        for names in [
            b"\0\x0b\0\0\x07ok.test\0".as_slice(),
            b"\0\x0a\0\0\x07ok.test\0",
            b"\0\x0e\0\0\x07ok.test\0\0\x01a",
            b"\0\x0e\x01\0\x01a\0\0\x07ok.test",
        ] {
            let shown = names.escape_ascii();
            assert!(name_in(&hello_with(names)).await.is_err(), "{shown}");
        }
    }

    #[tokio::test]
    async fn hello_without_a_name_has_none() {
        assert_eq!(
            name_in(&client_hello("45.33.32.156")).await,
            Err(HelloError::NoName)
        );
    }

    #[tokio::test]
    async fn what_is_not_tls_is_seen_at_once() {
        // D7
        for bytes in [
            b"SSH-2.0-x\r\n".as_slice(),
            b"GET / HTTP/1.1\r\n",
            b"\x17\x03\x03\0\x01x",
        ] {
            assert_eq!(name_in(bytes).await, Err(HelloError::NotTls));
        }
        let endless = [&[22, 3, 1, 0x40, 0], vec![0u8; 20_000].as_slice()].concat();
        assert_eq!(name_in(&endless).await, Err(HelloError::NotTls));
    }

    #[tokio::test]
    async fn hello_that_breaks_off_is_none() {
        let hello = client_hello("ok.test");
        assert_eq!(
            name_in(&hello[..hello.len() - 1]).await,
            Err(HelloError::Closed)
        );
    }

    #[tokio::test]
    async fn odd_names_are_not_taken_for_hosts() {
        // D14: a name with a port, a name with a NUL, a name with a dot at its end.
        let hello = client_hello("ok.test");
        let at = hello
            .windows(7)
            .position(|window| window == b"ok.test")
            .unwrap();
        for odd in [b"ok:test", b"ok\0test", b"ok.tst."] {
            let mut changed = hello.clone();
            changed[at..at + 7].copy_from_slice(odd);
            assert!(name_in(&changed).await.is_err(), "{odd:?}");
        }
    }
}
