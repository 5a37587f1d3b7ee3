//! `ClientHello`s made by hand: TLS 1.2, since what counts is the name (RFC 5246 §7.4.1.2,
//! RFC 6066 §3). A host answers them with its own first flight.

const SERVER_NAME: u16 = 0;
const PADDING: u16 = 21;
const ENCRYPTED_CLIENT_HELLO: u16 = 0xfe0d;

#[derive(Clone)]
pub(crate) struct Extension {
    kind: u16,
    data: Vec<u8>,
}

impl Extension {
    pub(crate) fn empty(kind: u16) -> Self {
        Self {
            kind,
            data: Vec::new(),
        }
    }

    pub(crate) fn name(name: &[u8]) -> Self {
        Self::names(&[(0, name)])
    }

    /// Each with its type; 0 is a host's name.
    pub(crate) fn names(names: &[(u8, &[u8])]) -> Self {
        let entry = |(kind, name): &(u8, &[u8])| [&[*kind], sized(name).as_slice()].concat();
        let list: Vec<u8> = names.iter().flat_map(entry).collect();
        Self {
            kind: SERVER_NAME,
            data: sized(&list),
        }
    }

    /// As a client that greases sends it, or one that means it: nobody on the way can tell.
    pub(crate) fn encrypted() -> Self {
        let mut data = vec![0, 0, 1, 0, 1, 7];
        data.extend(sized(&[5; 32]));
        data.extend(sized(&[6; 144]));
        Self {
            kind: ENCRYPTED_CLIENT_HELLO,
            data,
        }
    }

    /// Without its last bytes.
    pub(crate) fn cut(mut self, bytes: usize) -> Self {
        self.data.truncate(self.data.len() - bytes);
        self
    }

    /// With bytes behind its end.
    pub(crate) fn longer(mut self, bytes: usize) -> Self {
        self.data.resize(self.data.len() + bytes, 0);
        self
    }

    fn bytes(&self) -> Vec<u8> {
        [self.kind.to_be_bytes().to_vec(), sized(&self.data)].concat()
    }
}

fn sized(bytes: &[u8]) -> Vec<u8> {
    let length = u16::try_from(bytes.len()).unwrap().to_be_bytes();
    [length.as_slice(), bytes].concat()
}

pub(crate) fn named(name: &[u8]) -> Vec<u8> {
    with(&[Extension::name(name)])
}

/// With these extensions before those that every client sends.
pub(crate) fn with(own: &[Extension]) -> Vec<u8> {
    handshake(&body(own))
}

/// So long that it fills several records.
pub(crate) fn padded(name: &[u8], bytes: usize) -> Vec<u8> {
    let padding = Extension {
        kind: PADDING,
        data: vec![0; bytes],
    };
    with(&[padding, Extension::name(name)])
}

/// With bytes behind the extensions, inside the message.
pub(crate) fn trailing(name: &[u8], bytes: usize) -> Vec<u8> {
    let mut body = body(&[Extension::name(name)]);
    body.resize(body.len() + bytes, 0);
    handshake(&body)
}

/// The same message in records of so many bytes.
pub(crate) fn in_records(hello: &[u8], bytes: usize) -> Vec<u8> {
    let record = |piece: &[u8]| [&[22, 3, 1], sized(piece).as_slice()].concat();
    hello[5..].chunks(bytes).flat_map(record).collect()
}

fn body(own: &[Extension]) -> Vec<u8> {
    let always = [
        // Groups x25519 and P-256, uncompressed points, ECDSA and RSA with SHA-256.
        Extension {
            kind: 10,
            data: vec![0, 4, 0, 29, 0, 23],
        },
        Extension {
            kind: 11,
            data: vec![1, 0],
        },
        Extension {
            kind: 13,
            data: vec![0, 4, 4, 3, 8, 4],
        },
        // Extended master secret.
        Extension::empty(23),
    ];
    let extensions: Vec<u8> = own
        .iter()
        .chain(&always)
        .flat_map(Extension::bytes)
        .collect();
    let mut body = vec![3, 3];
    body.extend([9; 32]);
    body.push(0);
    body.extend(sized(&[0xc0, 0x2b, 0xc0, 0x2c]));
    body.extend([1, 0]);
    body.extend(sized(&extensions));
    body
}

fn handshake(body: &[u8]) -> Vec<u8> {
    let length = u32::try_from(body.len()).unwrap().to_be_bytes();
    let message = [&[1, length[1], length[2], length[3]], body].concat();
    // A record holds 2¹⁴ bytes.
    let record = |piece: &[u8]| [&[22, 3, 1], sized(piece).as_slice()].concat();
    message.chunks(1 << 14).flat_map(record).collect()
}
