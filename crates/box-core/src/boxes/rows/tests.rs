//! Rows of boxes: names, ranges, states.

use super::*;
use crate::store::schema;
use box_api::control::{Limits, Profile};

fn database() -> Connection {
    let mut connection = Connection::open_in_memory().unwrap();
    schema::upgrade(&mut connection, schema::STEPS).unwrap();
    connection
}

fn record(number: u8, owner: u32, name: &str) -> BoxRecord {
    BoxRecord {
        id: BoxId::from_random([number; 10]),
        owner: Owner::Uid(owner),
        name: BoxName::parse(name).unwrap(),
        title: Some(BoxTitle::parse("Web shop, zwölf").unwrap()),
        state: BoxState::Creating,
        runtime: "native".to_owned(),
        image: "debian:trixie".to_owned(),
        image_digest: "sha256:abc".to_owned(),
        profile: Profile::Root,
        net: NetPreset::Open,
        limits: Limits {
            pids: 7,
            ..Limits::default()
        },
        allow: vec!["example.com".to_owned()],
        id_offset: 0,
        created_at_ms: 12,
        problem: None,
        settings: box_api::control::BoxSettings::default(),
        origin: None,
        trashed_at_ms: None,
    }
}

const STOPPED: StateChange<'static> = StateChange {
    state: BoxState::Stopped,
    problem: None,
    at_ms: 13,
};

#[test]
fn a_row_comes_back_as_it_was_written() {
    let connection = database();
    let mut wanted = record(1, 1000, "demo");
    assert_eq!(
        reserve(&connection, &wanted).unwrap(),
        Reserved::Offset(ID_OFFSET_FIRST)
    );
    wanted.id_offset = ID_OFFSET_FIRST;
    assert_eq!(get(&connection, &wanted.id).unwrap(), Some(wanted.clone()));
    assert_eq!(all(&connection).unwrap(), [wanted]);
}

#[test]
fn a_name_is_unique_per_owner_among_live_boxes() {
    let connection = database();
    let first = record(1, 1000, "demo");
    reserve(&connection, &first).unwrap();
    assert_eq!(
        reserve(&connection, &record(2, 1000, "demo")).unwrap(),
        Reserved::NameTaken
    );
    assert!(matches!(
        reserve(&connection, &record(3, 1001, "demo")).unwrap(),
        Reserved::Offset(_)
    ));
    let removing = StateChange {
        state: BoxState::Removing,
        ..STOPPED
    };
    set_state(&connection, &first.id, removing).unwrap();
    assert!(matches!(
        reserve(&connection, &record(4, 1000, "demo")).unwrap(),
        Reserved::Offset(_)
    ));
}

#[test]
fn ranges_never_overlap_and_gaps_are_filled() {
    let connection = database();
    for number in 0..4 {
        let expected = Reserved::Offset(ID_OFFSET_FIRST + u32::from(number) * ID_RANGE);
        let made = reserve(&connection, &record(number, 0, &format!("b{number}"))).unwrap();
        assert_eq!(made, expected);
    }
    remove(&connection, &record(1, 0, "b1").id).unwrap();
    let filled = reserve(&connection, &record(9, 0, "b9")).unwrap();
    assert_eq!(filled, Reserved::Offset(ID_OFFSET_FIRST + ID_RANGE));
    let last = u64::from(ID_OFFSET_FIRST) + u64::from(BOXES_MAX) * u64::from(ID_RANGE);
    assert!(
        u32::try_from(last).is_ok(),
        "the last range ends before the invalid id"
    );
}

#[test]
fn a_state_moves_only_from_where_it_is_expected() {
    let connection = database();
    let made = record(1, 0, "demo");
    reserve(&connection, &made).unwrap();
    assert!(!move_state(&connection, &made.id, &[BoxState::Running], STOPPED).unwrap());
    assert!(move_state(&connection, &made.id, &[BoxState::Creating], STOPPED).unwrap());
    assert!(!move_state(&connection, &made.id, &[BoxState::Creating], STOPPED).unwrap());
    let nobody = BoxId::from_random([77; 10]);
    assert!(!move_state(&connection, &nobody, &[BoxState::Creating], STOPPED).unwrap());
}
