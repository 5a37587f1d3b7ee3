//! Builds netlink messages and reads the kernel's answers (netlink(7)).

use rustix::buffer::spare_capacity;
use rustix::io::Errno;
use rustix::net::{self, AddressFamily, Protocol, RecvFlags, SendFlags, SocketFlags, SocketType};

const HEADER_BYTES: usize = 16;
const ANSWER_BYTES_MAX: usize = 8 << 10;
const REQUEST: u16 = 0x1;
const ACK: u16 = 0x4;
const EXCL: u16 = 0x200;
const NLM_CREATE: u16 = 0x400;
const NLMSG_ERROR: u16 = 0x2;

/// `NETLINK_ROUTE` is protocol 0, which `rustix` writes as none.
pub(super) const ROUTE: Option<Protocol> = None;
pub(super) const NETFILTER: Option<Protocol> = Some(net::netlink::NETFILTER);

/// Flags of a message that changes something.
pub(super) const CHANGE: u16 = REQUEST | ACK;
/// … that makes something that must not be there yet.
pub(super) const CREATE: u16 = CHANGE | NLM_CREATE | EXCL;
/// … that frames others and is not answered.
pub(super) const FRAME: u16 = REQUEST;

/// Attributes: length, type, value, each padded to four bytes.
#[derive(Debug, Default, Clone)]
pub(super) struct Attributes(Vec<u8>);

impl Attributes {
    pub(super) fn new() -> Self {
        Self::default()
    }

    #[must_use]
    pub(super) fn with(mut self, kind: u16, value: &[u8]) -> Self {
        let length = u16::try_from(4 + value.len()).unwrap_or(u16::MAX);
        self.0.extend(length.to_ne_bytes());
        self.0.extend(kind.to_ne_bytes());
        self.0.extend(value);
        self.0.resize(self.0.len().next_multiple_of(4), 0);
        self
    }

    /// A number in network order, as `nf_tables` has them all.
    #[must_use]
    pub(super) fn with_number(self, kind: u16, value: u32) -> Self {
        self.with(kind, &value.to_be_bytes())
    }

    #[must_use]
    pub(super) fn with_text(self, kind: u16, value: &str) -> Self {
        self.with(kind, &[value.as_bytes(), &[0]].concat())
    }

    #[must_use]
    pub(super) fn with_nested(self, kind: u16, inside: &Self) -> Self {
        const NLA_F_NESTED: u16 = 1 << 15;
        self.with(kind | NLA_F_NESTED, &inside.0)
    }
}

/// One message: type, flags, the family's own header, attributes.
#[derive(Debug)]
pub(super) struct Message {
    kind: u16,
    flags: u16,
    body: Vec<u8>,
}

impl Message {
    pub(super) fn new(kind: u16, flags: u16, header: &[u8], attributes: &Attributes) -> Self {
        Self {
            kind,
            flags,
            body: [header, &attributes.0].concat(),
        }
    }

    fn is_answered(&self) -> bool {
        self.flags & ACK != 0
    }
}

/// Sends the messages in one go and waits for every answer; the first error counts.
pub(super) fn exchange(protocol: Option<Protocol>, messages: &[Message]) -> Result<(), Errno> {
    let socket = net::socket_with(
        AddressFamily::NETLINK,
        SocketType::RAW,
        SocketFlags::CLOEXEC,
        protocol,
    )?;
    let mut bytes = Vec::with_capacity(1024);
    for (number, message) in (1u32..).zip(messages) {
        let length =
            u32::try_from(HEADER_BYTES + message.body.len()).map_err(|_| Errno::MSGSIZE)?;
        bytes.extend(length.to_ne_bytes());
        bytes.extend(message.kind.to_ne_bytes());
        bytes.extend(message.flags.to_ne_bytes());
        bytes.extend(number.to_ne_bytes());
        bytes.extend([0; 4]);
        bytes.extend(&message.body);
        bytes.resize(bytes.len().next_multiple_of(4), 0);
    }
    net::send(&socket, &bytes, SendFlags::empty())?;
    let mut wanted = messages
        .iter()
        .filter(|message| message.is_answered())
        .count();
    let mut answer = Vec::with_capacity(ANSWER_BYTES_MAX);
    while wanted > 0 {
        answer.clear();
        // The kernel works a message off before send(2) returns: no answer now means none comes.
        net::recv(&socket, spare_capacity(&mut answer), RecvFlags::DONTWAIT)?;
        wanted = wanted.saturating_sub(acknowledgements(&answer)?);
    }
    Ok(())
}

/// How many messages the kernel says went well; the first error it tells of.
fn acknowledgements(mut bytes: &[u8]) -> Result<usize, Errno> {
    let mut count = 0;
    while bytes.len() >= HEADER_BYTES + 4 {
        let length = u32::from_ne_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]) as usize;
        let kind = u16::from_ne_bytes([bytes[4], bytes[5]]);
        if kind != NLMSG_ERROR || length < HEADER_BYTES + 4 {
            return Err(Errno::PROTO);
        }
        let code = i32::from_ne_bytes([bytes[16], bytes[17], bytes[18], bytes[19]]);
        if code != 0 {
            return Err(Errno::from_raw_os_error(-code));
        }
        count += 1;
        bytes = bytes.get(length.next_multiple_of(4)..).unwrap_or_default();
    }
    if count == 0 {
        Err(Errno::PROTO)
    } else {
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(code: i32) -> Vec<u8> {
        let mut bytes = vec![0; 36];
        bytes[..4].copy_from_slice(&36u32.to_ne_bytes());
        bytes[4..6].copy_from_slice(&NLMSG_ERROR.to_ne_bytes());
        bytes[16..20].copy_from_slice(&code.to_ne_bytes());
        bytes
    }

    #[test]
    fn attributes_are_padded_and_nested() {
        let inner = Attributes::new().with_text(1, "ab");
        assert_eq!(inner.0, [7, 0, 1, 0, b'a', b'b', 0, 0]);
        let outer = Attributes::new().with_nested(4, &inner);
        assert_eq!(outer.0[..4], [12, 0, 4, 0x80]);
        assert_eq!(outer.0[4..], inner.0);
    }

    #[test]
    fn the_first_error_counts() {
        assert_eq!(acknowledgements(&[answer(0), answer(0)].concat()), Ok(2));
        assert_eq!(
            acknowledgements(&[answer(0), answer(-17)].concat()),
            Err(Errno::EXIST)
        );
        assert_eq!(acknowledgements(&[]), Err(Errno::PROTO));
    }
}
