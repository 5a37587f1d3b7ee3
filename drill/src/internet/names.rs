//! The name server of the drill's internet, and what answers on its other UDP ports.

use super::{ALLOWED_NAME, CREDENTIAL_NAME, REFUSED_NAME};
use crate::network::{INTERNET_V4, INTERNET_V6};
use hickory_proto::op::{Message, MessageType, OpCode, ResponseCode};
use hickory_proto::rr::rdata::{A, AAAA};
use hickory_proto::rr::{RData, Record, RecordType};
use std::fs::File;
use std::io::Write as _;
use std::net::{Ipv4Addr, Ipv6Addr, UdpSocket};

const TTL_S: u32 = 60;
const PACKET_BYTES_MAX: usize = 4096;

/// Answers A and AAAA of the three names; every other name does not exist.
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
    if [ALLOWED_NAME, REFUSED_NAME, CREDENTIAL_NAME].contains(&name.as_str()) {
        let kind = question.query_type();
        let data = if kind == RecordType::A {
            INTERNET_V4
                .parse::<Ipv4Addr>()
                .ok()
                .map(|v4| RData::A(A(v4)))
        } else if kind == RecordType::AAAA {
            INTERNET_V6
                .parse::<Ipv6Addr>()
                .ok()
                .map(|v6| RData::AAAA(AAAA(v6)))
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
