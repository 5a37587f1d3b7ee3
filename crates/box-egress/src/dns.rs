//! Answers a box's name queries. Nothing is asked upstream: an allowed name gets a fake address
//! of its own, a refused one the refusal address, so no query carries anything out
//! (catalogue §2.3).

use crate::context::BoxContext;
use crate::limits::{self, Bucket};
use crate::names::{Given, NameMap, REFUSAL_ADDRESS};
use crate::policy::decide_name;
use crate::refuse::Refused;
use box_api::egress::{Event, HostName, MappedName, Reason, Verdict};
use hickory_proto::op::{Message, MessageType, OpCode, Query, ResponseCode};
use hickory_proto::rr::rdata::{A, PTR};
use hickory_proto::rr::{DNSClass, Name, RData, Record, RecordType};
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

/// Short, so that a policy that changed is seen soon. The mapping itself never changes.
const TTL_SECONDS: u32 = 5;
/// Longest query looked at; real ones have a few hundred bytes at most.
pub(crate) const QUERY_BYTES_MAX: usize = 4096;
const HEADER_BYTES: usize = 12;

/// The resolver of one box.
pub(crate) struct Answerer {
    ctx: Arc<BoxContext>,
    names: NameMap,
    bucket: Bucket,
}

/// What an answer says, before it is put into a message.
enum Say {
    Code(ResponseCode),
    Record(RData),
    /// The name is there, this type of it is not.
    Nothing,
}

impl Answerer {
    pub(crate) fn new(ctx: Arc<BoxContext>, known: &[MappedName]) -> Self {
        let names = NameMap::restore(known);
        let answerer = Self {
            ctx,
            names,
            bucket: Bucket::new(limits::QUERIES_PER_SECOND, limits::QUERIES_BURST),
        };
        answerer.count();
        answerer
    }

    pub(crate) fn name_of(&self, addr: Ipv4Addr) -> Option<&HostName> {
        self.names.name_of(addr)
    }

    pub(crate) fn map(&self) -> Vec<MappedName> {
        self.names.all()
    }

    /// The answer to a query as it came from the wire; `None` when there is nobody to answer.
    pub(crate) fn answer(&mut self, query: &[u8]) -> Option<Vec<u8>> {
        if !self.bucket.take(Instant::now()) {
            // Silence slows a flood down; an error would only be asked again.
            self.ctx.note(&Refused::nameless(Reason::TooManyQueries));
            return None;
        }
        let Ok(query) = Message::from_vec(query) else {
            return format_error(query);
        };
        if query.metadata.message_type != MessageType::Query {
            return None;
        }
        let (code, answers) = match self.say(&query) {
            Say::Code(code) => (code, None),
            Say::Nothing => (ResponseCode::NoError, None),
            Say::Record(data) => (ResponseCode::NoError, Some(data)),
        };
        let mut reply = Message::response(query.metadata.id, query.metadata.op_code);
        reply.metadata.recursion_desired = query.metadata.recursion_desired;
        reply.metadata.recursion_available = true;
        reply.metadata.response_code = code;
        for (question, data) in query.queries.iter().zip(answers) {
            reply.add_answer(Record::from_rdata(question.name.clone(), TTL_SECONDS, data));
        }
        reply.add_queries(query.queries);
        reply.to_vec().ok()
    }

    fn say(&mut self, query: &Message) -> Say {
        if query.metadata.op_code != OpCode::Query {
            return Say::Code(ResponseCode::NotImp);
        }
        let [question] = query.queries.as_slice() else {
            return Say::Code(ResponseCode::FormErr);
        };
        if question.query_class != DNSClass::IN {
            return Say::Code(ResponseCode::Refused);
        }
        if question.query_type == RecordType::PTR {
            return self.say_name(question);
        }
        #[expect(
            clippy::wildcard_enum_match_arm,
            reason = "all other types are alike here"
        )]
        match question.query_type {
            RecordType::A => self.say_address(question),
            // An allowed name has no IPv6 address and no HTTPS record, and says so: anything else
            // than an empty answer makes clients with musl give up on the name.
            RecordType::AAAA | RecordType::HTTPS | RecordType::SVCB => {
                match host_name(&question.name) {
                    Some(name) if !name.is_local() => Say::Nothing,
                    _ => Say::Code(ResponseCode::NXDomain),
                }
            }
            _ => Say::Code(ResponseCode::Refused),
        }
    }

    fn say_address(&mut self, question: &Query) -> Say {
        let Some(name) = host_name(&question.name) else {
            self.ctx.note(&Refused::new(
                &question.name.to_ascii(),
                0,
                Reason::Malformed,
            ));
            return Say::Code(ResponseCode::NXDomain);
        };
        self.ctx.sees_name(&name);
        if self.ctx.configured().is_none() {
            self.ctx
                .note(&Refused::new(name.as_str(), 0, Reason::NoPolicy));
            return Say::Record(RData::A(A(REFUSAL_ADDRESS)));
        }
        match self
            .ctx
            .with_settings(|settings| decide_name(settings, &name))
        {
            Verdict::Allowed { .. } => self.give(&name),
            Verdict::Refused { reason, rule } => {
                let refused = Refused::new(name.as_str(), 0, reason);
                let rule = rule.map(|rule| rule.to_string());
                self.ctx.note(&Refused { rule, ..refused });
                if reason == Reason::LocalName {
                    // There is no such host here, and nothing to be told about it.
                    Say::Code(ResponseCode::NXDomain)
                } else {
                    Say::Record(RData::A(A(REFUSAL_ADDRESS)))
                }
            }
        }
    }

    fn give(&mut self, name: &HostName) -> Say {
        let addr = match self.names.give(name) {
            Ok(Given::Before(addr)) => addr,
            Ok(Given::Now(addr)) => {
                let (box_id, name) = (self.ctx.id, name.clone());
                self.ctx.tell_to_keep(Event::Mapped { box_id, name, addr });
                self.count();
                addr
            }
            Err(_) => {
                self.ctx
                    .note(&Refused::new(name.as_str(), 0, Reason::MapFull));
                REFUSAL_ADDRESS
            }
        };
        Say::Record(RData::A(A(addr)))
    }

    /// The name a fake address stands for.
    fn say_name(&self, question: &Query) -> Say {
        let name = fake_address(&question.name).and_then(|addr| self.names.name_of(addr));
        let name = name.and_then(|name| Name::from_ascii(format!("{name}.")).ok());
        name.map_or(Say::Code(ResponseCode::NXDomain), |name| {
            Say::Record(RData::PTR(PTR(name)))
        })
    }

    fn count(&self) {
        let names = u32::try_from(self.names.len()).unwrap_or(u32::MAX);
        self.ctx.counters.names.store(names, Ordering::Relaxed);
    }
}

/// A query we cannot read, but whose sender we can answer.
fn format_error(query: &[u8]) -> Option<Vec<u8>> {
    let (id, rest) = query.split_first_chunk::<2>()?;
    let is_query = rest.first().is_some_and(|flags| flags & 0x80 == 0);
    if query.len() < HEADER_BYTES || !is_query {
        return None;
    }
    let id = u16::from_be_bytes(*id);
    Message::error_msg(id, OpCode::Query, ResponseCode::FormErr)
        .to_vec()
        .ok()
}

/// Labels with anything but a host name's characters are no host.
fn host_name(name: &Name) -> Option<HostName> {
    let mut text = String::new();
    for label in name {
        // A dot inside a label would be read as two labels.
        let label = std::str::from_utf8(label)
            .ok()
            .filter(|label| !label.contains('.'))?;
        if !text.is_empty() {
            text.push('.');
        }
        text.push_str(label);
    }
    HostName::parse(&text).ok()
}

/// The address in `d.c.b.a.in-addr.arpa.`.
fn fake_address(name: &Name) -> Option<Ipv4Addr> {
    let text = name.to_ascii();
    let octets = text.strip_suffix(".in-addr.arpa.")?;
    let reversed: Vec<&str> = octets.rsplit('.').collect();
    reversed.join(".").parse().ok()
}

#[cfg(test)]
mod tests;
