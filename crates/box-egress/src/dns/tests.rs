//! What each query is answered with.

use super::*;
use crate::policy::Settings;
use crate::testing::{Fixture, configured};
use box_api::control::NetPreset;
use box_api::egress::{HostPattern, Policy};
use rustls::RootCertStore;

const OK: &str = "ok.test.";
const FIRST: Ipv4Addr = Ipv4Addr::new(198, 18, 0, 16);

struct Resolving {
    answerer: Answerer,
    fixture: Fixture,
}

fn resolving(configured: Option<crate::context::Configured>) -> Resolving {
    let pattern = |text| HostPattern::parse(text).unwrap();
    let policy = Policy {
        allow: vec![pattern("ok.test"), pattern("*.wild.test")],
        preset: NetPreset::Locked,
        ..Policy::nothing()
    };
    let settings = Settings {
        policy,
        bindings: Vec::new(),
        logins: crate::intercept::login::book::BoxLogins::default(),
    };
    let fixture = Fixture::new(settings, configured, Vec::new());
    Resolving {
        answerer: Answerer::new(Arc::clone(&fixture.ctx), &[]),
        fixture,
    }
}

fn query(name: &str, record_type: RecordType) -> Message {
    let mut message = Message::query();
    message.add_query(Query::query(Name::from_ascii(name).unwrap(), record_type));
    message
}

impl Resolving {
    fn new() -> Self {
        resolving(Some(configured(&RootCertStore::empty(), None)))
    }

    fn asked(&mut self, query: &Message) -> Message {
        let answer = self.answerer.answer(&query.to_vec().unwrap()).unwrap();
        let answer = Message::from_vec(&answer).unwrap();
        assert_eq!(answer.metadata.id, query.metadata.id);
        assert_eq!(answer.metadata.message_type, MessageType::Response);
        answer
    }

    fn outcome(&mut self, name: &str, record_type: RecordType) -> (ResponseCode, Vec<RData>) {
        let answer = self.asked(&query(name, record_type));
        (
            answer.metadata.response_code,
            answer.answers.into_iter().map(|r| r.data).collect(),
        )
    }
}

fn a(addr: Ipv4Addr) -> (ResponseCode, Vec<RData>) {
    (ResponseCode::NoError, vec![RData::A(A(addr))])
}

const EMPTY: (ResponseCode, Vec<RData>) = (ResponseCode::NoError, Vec::new());

#[tokio::test]
async fn allowed_name_gets_an_address_that_stays() {
    let mut dns = Resolving::new();
    assert_eq!(dns.outcome(OK, RecordType::A), a(FIRST));
    assert_eq!(
        dns.outcome("a.wild.test.", RecordType::A),
        a(Ipv4Addr::new(198, 18, 0, 17))
    );
    assert_eq!(dns.outcome("OK.Test.", RecordType::A), a(FIRST));
    assert_eq!(dns.answerer.name_of(FIRST).unwrap().as_str(), "ok.test");
    let mapped = dns.fixture.queue.next().await.unwrap();
    assert!(
        matches!(mapped, Event::Mapped { addr: FIRST, .. }),
        "{mapped:?}"
    );
}

#[tokio::test]
async fn allowed_name_has_no_ipv6_and_no_https_record_and_says_so() {
    let mut dns = Resolving::new();
    for record_type in [RecordType::AAAA, RecordType::HTTPS, RecordType::SVCB] {
        assert_eq!(dns.outcome(OK, record_type), EMPTY);
        assert_eq!(dns.outcome("evil.test.", record_type), EMPTY);
    }
}

#[tokio::test]
async fn refused_name_leads_to_the_refusal_address_and_is_told() {
    let mut dns = Resolving::new();
    assert_eq!(
        dns.outcome("c2VjcmV0.evil.test.", RecordType::A),
        a(REFUSAL_ADDRESS)
    );
    let event = dns.fixture.queue.next().await.unwrap();
    let Event::Refused(refusal) = event else {
        panic!("{event:?}")
    };
    assert_eq!(
        (refusal.host.as_str(), refusal.port),
        ("c2vjcmv0.evil.test", 0)
    );
    assert_eq!(refusal.reason, Reason::NotListed);
}

#[tokio::test]
async fn local_and_impossible_names_do_not_exist() {
    let mut dns = Resolving::new();
    let gone = (ResponseCode::NXDomain, Vec::new());
    for name in [
        "localhost.",
        "intranet.",
        "x.internal.",
        "foo.local.",
        "127.0.0.1.",
    ] {
        assert_eq!(dns.outcome(name, RecordType::A), gone, "{name}");
    }
    assert_eq!(dns.outcome("localhost.", RecordType::AAAA), gone);
    let dotted = Name::from_labels([b"evil.ok".as_slice(), b"test"]).unwrap();
    let mut message = Message::query();
    message.add_query(Query::query(dotted, RecordType::A));
    assert_eq!(
        dns.asked(&message).metadata.response_code,
        ResponseCode::NXDomain
    );
}

#[tokio::test]
async fn every_other_type_is_refused() {
    // C9, C11
    let mut dns = Resolving::new();
    for record_type in [
        RecordType::TXT,
        RecordType::ANY,
        RecordType::CNAME,
        RecordType::MX,
        RecordType::NS,
        RecordType::SOA,
        RecordType::SRV,
        RecordType::NULL,
    ] {
        let outcome = dns.outcome(OK, record_type);
        assert_eq!(
            outcome,
            (ResponseCode::Refused, Vec::new()),
            "{record_type}"
        );
    }
}

#[tokio::test]
async fn fake_address_can_be_asked_for_its_name() {
    let mut dns = Resolving::new();
    assert_eq!(dns.outcome(OK, RecordType::A), a(FIRST));
    let (code, answers) = dns.outcome("16.0.18.198.in-addr.arpa.", RecordType::PTR);
    assert_eq!(code, ResponseCode::NoError);
    assert_eq!(answers, [RData::PTR(PTR(Name::from_ascii(OK).unwrap()))]);
    let (code, _) = dns.outcome("8.8.8.8.in-addr.arpa.", RecordType::PTR);
    assert_eq!(code, ResponseCode::NXDomain);
}

#[tokio::test]
async fn odd_messages_are_not_answered_with_an_address() {
    let mut dns = Resolving::new();
    let mut two = query(OK, RecordType::A);
    two.add_query(Query::query(Name::from_ascii(OK).unwrap(), RecordType::A));
    assert_eq!(
        dns.asked(&two).metadata.response_code,
        ResponseCode::FormErr
    );
    let mut chaos = query(OK, RecordType::A);
    chaos.queries[0].query_class = DNSClass::CH;
    assert_eq!(
        dns.asked(&chaos).metadata.response_code,
        ResponseCode::Refused
    );
    let mut notify = query(OK, RecordType::A);
    notify.metadata.op_code = OpCode::Notify;
    assert_eq!(
        dns.asked(&notify).metadata.response_code,
        ResponseCode::NotImp
    );
    let mut response = query(OK, RecordType::A);
    response.metadata.message_type = MessageType::Response;
    assert!(dns.answerer.answer(&response.to_vec().unwrap()).is_none());
    assert!(dns.answerer.answer(b"short").is_none());
    let cut = &query(OK, RecordType::A).to_vec().unwrap()[..20];
    let error = Message::from_vec(&dns.answerer.answer(cut).unwrap()).unwrap();
    assert_eq!(error.metadata.response_code, ResponseCode::FormErr);
    // A name that points at itself.
    let mut looped = vec![0, 7, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0xc0, 12];
    looped.extend_from_slice(&[0, 1, 0, 1]);
    let error = Message::from_vec(&dns.answerer.answer(&looped).unwrap()).unwrap();
    assert_eq!(error.metadata.response_code, ResponseCode::FormErr);
}

#[tokio::test]
async fn without_configuration_no_name_gets_an_address() {
    let mut dns = resolving(None);
    assert_eq!(dns.outcome(OK, RecordType::A), a(REFUSAL_ADDRESS));
}

#[tokio::test]
async fn flood_of_queries_is_met_with_silence() {
    let mut dns = Resolving::new();
    let query = query(OK, RecordType::A).to_vec().unwrap();
    let asked = 3 * limits::QUERIES_BURST;
    let answered = (0..asked)
        .filter(|_| dns.answerer.answer(&query).is_some())
        .count();
    assert!(answered >= limits::QUERIES_BURST as usize, "{answered}");
    assert!(answered < asked as usize, "{answered}");
}
