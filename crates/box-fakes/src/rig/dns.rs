//! The name server: answers what the test set, counts what it was asked.

use super::internet::Internet;
use super::world::Query;
use hickory_proto::op::{Message, MessageType, OpCode, ResponseCode};
use hickory_proto::rr::{Name, RData, Record, RecordType};
use std::net::IpAddr;
use std::rc::Rc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::{TcpListener, UdpSocket};

/// Without EDNS a UDP answer ends here (RFC 1035 4.2.1).
const UDP_BYTES_MAX: usize = 512;
const CNAME_HOPS_MAX: usize = 8;
const IDLE: Duration = Duration::from_secs(10);

/// What a name is answered with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// A takes the IPv4 addresses, AAAA the IPv6 ones; none of the kind: no error, no record.
    Addresses {
        addresses: Vec<IpAddr>,
        ttl_s: u32,
    },
    /// The alias and what stands behind it.
    Cname(String),
    NxDomain,
    ServFail,
    Refused,
    /// No answer at all.
    Silence,
}

impl Answer {
    /// Addresses that may not be cached.
    pub fn addresses(addresses: impl IntoIterator<Item = IpAddr>) -> Self {
        Self::Addresses {
            addresses: addresses.into_iter().collect(),
            ttl_s: 0,
        }
    }
}

pub(crate) async fn serve_udp(internet: Rc<Internet>, socket: UdpSocket) {
    let mut packet = [0; 4096];
    loop {
        let Ok((count, from)) = socket.recv_from(&mut packet).await else {
            continue;
        };
        let Some(query) = packet.get(..count) else {
            continue;
        };
        if let Some(answer) = answer(&internet, query, Wire::Udp) {
            let _sent = socket.send_to(&answer, from).await;
        }
    }
}

pub(crate) async fn serve_tcp(internet: Rc<Internet>, listener: TcpListener) {
    loop {
        let Ok((stream, _)) = listener.accept().await else {
            continue;
        };
        tokio::task::spawn_local(converse(Rc::clone(&internet), stream, Wire::Tcp));
    }
}

/// Messages with two bytes of length in front (RFC 1035 4.2.2).
pub(crate) async fn converse(
    internet: Rc<Internet>,
    mut stream: impl AsyncRead + AsyncWrite + Unpin,
    wire: Wire,
) -> Option<()> {
    loop {
        let length = tokio::time::timeout(IDLE, stream.read_u16())
            .await
            .ok()?
            .ok()?;
        let mut query = vec![0; usize::from(length)];
        stream.read_exact(&mut query).await.ok()?;
        if let Some(answer) = answer(&internet, &query, wire) {
            stream
                .write_u16(u16::try_from(answer.len()).ok()?)
                .await
                .ok()?;
            stream.write_all(&answer).await.ok()?;
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wire {
    Udp,
    Tcp,
    /// Over TLS or HTTPS.
    Tls,
}

pub(crate) fn answer(internet: &Internet, query: &[u8], wire: Wire) -> Option<Vec<u8>> {
    let query = Message::from_vec(query).ok()?;
    let mut reply = Message::new(query.metadata.id, MessageType::Response, OpCode::Query);
    reply.metadata.recursion_desired = query.metadata.recursion_desired;
    reply.metadata.recursion_available = true;
    if let [question] = query.queries.as_slice() {
        reply.add_query(question.clone());
        if wire == Wire::Tls {
            let name = question.name().to_ascii();
            let name = name.trim_end_matches('.').to_ascii_lowercase();
            internet.with(|world| world.asked_secretly.push(name));
        }
        let code = resolve(
            internet,
            question.name(),
            question.query_type(),
            &mut reply.answers,
        )?;
        reply.metadata.response_code = code;
    } else {
        reply.metadata.response_code = ResponseCode::FormErr;
    }
    let bytes = reply.to_vec().ok()?;
    let room = if query.edns.is_some() {
        usize::from(query.max_payload())
    } else {
        UDP_BYTES_MAX
    };
    if wire == Wire::Udp && bytes.len() > room {
        reply.answers.clear();
        reply.metadata.truncation = true;
        return reply.to_vec().ok();
    }
    Some(bytes)
}

/// Follows aliases. None: stay silent.
fn resolve(
    internet: &Internet,
    name: &Name,
    kind: RecordType,
    records: &mut Vec<Record>,
) -> Option<ResponseCode> {
    let mut owner = name.clone();
    for hop in 0..CNAME_HOPS_MAX {
        let text = owner.to_ascii().trim_end_matches('.').to_ascii_lowercase();
        let answer = internet.with(|world| {
            if hop == 0 {
                world.asked(Query {
                    name: text.clone(),
                    kind: kind.to_string(),
                });
            }
            world.answer(&text, &kind.to_string())
        });
        match answer {
            Answer::Addresses { addresses, ttl_s } => {
                let of_kind = addresses
                    .into_iter()
                    .filter_map(|address| match (kind, address) {
                        (RecordType::A, IpAddr::V4(v4)) => Some(RData::A(v4.into())),
                        (RecordType::AAAA, IpAddr::V6(v6)) => Some(RData::AAAA(v6.into())),
                        _ => None,
                    });
                records.extend(of_kind.map(|data| Record::from_rdata(owner.clone(), ttl_s, data)));
                return Some(ResponseCode::NoError);
            }
            Answer::Cname(target) => {
                let target = Name::from_ascii(format!("{target}.")).ok()?;
                let data = RData::CNAME(hickory_proto::rr::rdata::CNAME(target.clone()));
                records.push(Record::from_rdata(owner, 0, data));
                owner = target;
            }
            Answer::NxDomain => return Some(ResponseCode::NXDomain),
            Answer::ServFail => return Some(ResponseCode::ServFail),
            Answer::Refused => return Some(ResponseCode::Refused),
            Answer::Silence => return None,
        }
    }
    Some(ResponseCode::ServFail)
}
