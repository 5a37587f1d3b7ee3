//! The name server of the drill's internet, and what answers on its other UDP ports.

use super::{ALLOWED_NAME, CREDENTIAL_NAME, INWARD_NAMES, REFUSED_NAME};
use crate::network::{HOST_V4, INTERNET_V4, INTERNET_V6};
use hickory_proto::op::{Message, MessageType, OpCode, ResponseCode};
use hickory_proto::rr::rdata::{A, AAAA};
use hickory_proto::rr::{RData, Record, RecordType};
use std::fs::File;
use std::io::Write as _;
use std::net::{Ipv4Addr, Ipv6Addr, UdpSocket};

const TTL_S: u32 = 60;
const PACKET_BYTES_MAX: usize = 4096;

/// Answers A and AAAA of the names there are; every other one does not exist.
pub(super) fn serve(socket: &UdpSocket, asked: &File) {
    let mut packet = [0; PACKET_BYTES_MAX];
    while let Ok((count, from)) = socket.recv_from(&mut packet) {
        if let Some(reply) = packet.get(..count).and_then(|query| answer(query, asked)) {
            drop(socket.send_to(&reply, from));
        }
    }
}

/// Sends back what came, so that whoever sent it knows that it arrived.
pub(super) fn echo(socket: &UdpSocket) {
    let mut packet = [0; PACKET_BYTES_MAX];
    while let Ok((count, from)) = socket.recv_from(&mut packet) {
        drop(socket.send_to(packet.get(..count).unwrap_or_default(), from));
    }
}

fn answer(query: &[u8], mut asked: &File) -> Option<Vec<u8>> {
    let query = Message::from_vec(query).ok()?;
    let question = query.queries.first()?.clone();
    let mut reply = Message::new(query.metadata.id, MessageType::Response, OpCode::Query);
    reply.metadata.recursion_desired = query.metadata.recursion_desired;
    reply.metadata.recursion_available = true;
    let name = question
        .name()
        .to_ascii()
        .trim_end_matches('.')
        .to_ascii_lowercase();
    writeln!(asked, "{name}").ok()?;
    if let Some((v4, v6)) = addresses(&name) {
        let kind = question.query_type();
        let data = if kind == RecordType::A {
            v4.map(|v4| RData::A(A(v4)))
        } else if kind == RecordType::AAAA {
            v6.map(|v6| RData::AAAA(AAAA(v6)))
        } else {
            None
        };
        if let Some(data) = data {
            reply
                .answers
                .push(Record::from_rdata(question.name().clone(), TTL_S, data));
        }
    } else {
        reply.metadata.response_code = ResponseCode::NXDomain;
    }
    reply.add_query(question);
    reply.to_vec().ok()
}

/// The addresses of a name that exists.
fn addresses(name: &str) -> Option<(Option<Ipv4Addr>, Option<Ipv6Addr>)> {
    let [machine, loopback, metadata, mapped] = INWARD_NAMES;
    let host: Option<Ipv4Addr> = HOST_V4.parse().ok();
    if [ALLOWED_NAME, REFUSED_NAME, CREDENTIAL_NAME].contains(&name) {
        Some((INTERNET_V4.parse().ok(), INTERNET_V6.parse().ok()))
    } else if name == machine {
        Some((host, None))
    } else if name == loopback {
        Some((Some(Ipv4Addr::LOCALHOST), Some(Ipv6Addr::LOCALHOST)))
    } else if name == metadata {
        Some((Some(Ipv4Addr::new(169, 254, 169, 254)), None))
    } else if name == mapped {
        Some((None, host.map(|host| host.to_ipv6_mapped())))
    } else {
        None
    }
}
