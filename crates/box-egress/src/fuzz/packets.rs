//! Packets to the resolver: whatever comes, the answer is one to the question, or none.

use super::{Target, corpus};
use crate::dns::Answerer;
use crate::intercept::login::book::BoxLogins;
use crate::policy::Settings;
use crate::testing::{Fixture, configured};
use box_api::egress::{HostPattern, Policy};
use hickory_proto::op::{Message, MessageType};
use hickory_proto::rr::RecordType;
use rustls::RootCertStore;
use std::sync::Arc;

const WORDS: &[&[u8]] = &[
    b"\0",
    b"\xc0\x0c",
    b"\xc0\0",
    b"\x3f",
    b"\x40",
    b"\xff\xff",
    b"\0\x01",
    b"\0\x1c",
    b"\0\x0c",
    b"\x02ok\x04test\0",
    b"\x09localhost\0",
    b"\x07in-addr\x04arpa\0",
    b"\0\0\x29\x10\0\0\0\0\0\0\0",
];
/// Queries one resolver may be asked at once.
const QUERIES: u32 = 1_000;

#[test]
fn answers_are_to_the_question_whatever_the_packet() {
    let settings = Settings {
        policy: Policy {
            allow: vec![HostPattern::parse("ok.test").unwrap()],
            ..Policy::nothing()
        },
        bindings: Vec::new(),
        logins: BoxLogins::default(),
    };
    let trusted = configured(&RootCertStore::empty(), None);
    let fixture = Fixture::new(settings, Some(trusted), Vec::new());
    let fresh = || Answerer::new(Arc::clone(&fixture.ctx), &[]);
    let (mut answerer, mut asked, mut given) = (fresh(), 0, 0);
    let target = Target {
        seeds: corpus("packets"),
        words: WORDS,
    };
    target.run(|input, _| {
        asked += 1;
        if asked % QUERIES == 0 {
            answerer = fresh();
        }
        let Some(answer) = answerer.answer(input) else {
            return;
        };
        let shown = input.escape_ascii();
        let read = Message::from_vec(&answer).unwrap_or_else(|error| panic!("{error} {shown}"));
        assert_eq!(read.metadata.message_type, MessageType::Response, "{shown}");
        assert_eq!(answer[..2], input[..2], "{shown}");
        assert!(
            read.answers.len() <= 1 && read.authorities.is_empty(),
            "{shown}"
        );
        for record in &read.answers {
            let [question] = read.queries.as_slice() else {
                panic!("{shown}")
            };
            let kind = record.data.record_type();
            assert_eq!(
                (kind, &record.name),
                (question.query_type, &question.name),
                "{shown}"
            );
            assert!([RecordType::A, RecordType::PTR].contains(&kind), "{shown}");
            given += 1;
        }
    });
    assert!(given > 0, "nothing was given");
}
