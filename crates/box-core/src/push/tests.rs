//! What the tables note by themselves, and what becomes of it.

use super::rows::{self, About, Note};
use super::tell::{Judged, judge};
use crate::store::schema::{STEPS, upgrade};
use box_api::{BoxId, ThreadId};
use rusqlite::Connection;
use serde_json::json;

const SETTLE_MS: i64 = 30_000;

fn thread() -> ThreadId {
    ThreadId::from_random([1; 10])
}

fn id() -> BoxId {
    BoxId::from_random([2; 10])
}

/// A box with a thread at work, and a browser of its owner's that is told.
fn tables() -> Connection {
    let mut tables = Connection::open_in_memory().unwrap();
    upgrade(&mut tables, STEPS).unwrap();
    tables
        .execute(
            "INSERT INTO boxes (id, owner, name, state, runtime, image, image_digest, profile, net, \
             limits, allow, id_offset, created_at_ms, changed_at_ms) VALUES (?, 'uid:7', 'demo', \
             'running', 'native', '', '', '', '', '', '', 65536, 0, 0)",
            [id().as_str()],
        )
        .unwrap();
    tables
        .execute(
            "INSERT INTO threads (id, box_id, owner, agent, title, state, asks, epoch, commits, \
             saved, created_at_ms, changed_at_ms) VALUES (?, ?, 'uid:7', 'demo', 'fix it', \
             'running', 'person', 1, 0, '{}', 0, 0)",
            [thread().as_str(), id().as_str()],
        )
        .unwrap();
    tables
        .execute_batch(
            "INSERT INTO sign_ins (id, key, owner, tier, agent, made_at_ms, seen_at_ms, ends_at_ms) \
             VALUES ('phone', x'00', 'uid:7', 'admin', '', 0, 0, 9);\
             INSERT INTO push_devices (sign_in, endpoint, p256dh, auth, key, origin, names_only, \
             made_at_ms) VALUES ('phone', 'https://push.example.org/1', x'00', x'00', x'00', '', 0, 0);",
        )
        .unwrap();
    tables
}

fn becomes(tables: &Connection, state: &str, at_ms: i64) {
    tables
        .execute(
            "UPDATE threads SET state = ?, changed_at_ms = ?",
            (state, at_ms),
        )
        .unwrap();
}

fn says(tables: &Connection, seq: i64, item: &serde_json::Value, text: Option<&str>) {
    tables
        .execute(
            "INSERT INTO journal (thread, epoch, seq, at_ms, item, text) VALUES (?, 1, ?, 0, ?, ?)",
            (thread().as_str(), seq, item.to_string(), text),
        )
        .unwrap();
}

fn asks(tables: &Connection) {
    tables
        .execute(
            "INSERT INTO decisions (id, box_id, thread, owner, generation, about, title, options, \
             state, opened_at_ms) VALUES (3, ?, ?, 'uid:7', 1, 'permission', 'rm -rf target', '[]', \
             'open', 5)",
            (id().as_str(), thread().as_str()),
        )
        .unwrap();
}

fn only_note(tables: &Connection) -> Note {
    let notes = rows::notes(tables).unwrap();
    assert_eq!(notes.len(), 1, "{notes:?}");
    notes[0]
}

fn judged(tables: &Connection, now_ms: i64) -> Judged {
    judge(tables, &only_note(tables), (now_ms, SETTLE_MS)).unwrap()
}

fn body(judged: &Judged) -> (char, &'static str, String, Option<String>) {
    let Judged::Tell(told) = judged else {
        panic!("{judged:?}");
    };
    let message = &told.message;
    assert_eq!(message.about, "demo · fix it");
    (
        message.sign,
        message.what,
        message.said.clone(),
        message.more.clone(),
    )
}

#[test]
fn what_happens_is_noted_in_its_own_commit_and_only_where_somebody_is_told() {
    let tables = tables();
    asks(&tables);
    let note = only_note(&tables);
    assert_eq!((note.box_id, note.at_ms), (id(), 5));
    let (sign, _, said, _) = body(&judged(&tables, 5));
    assert_eq!((sign, said.as_str()), ('⚠', "rm -rf target"));
    tables
        .execute("UPDATE decisions SET state = 'answered', option = 'a'", [])
        .unwrap();
    assert_eq!(judged(&tables, 5), Judged::Over);

    let nobody = self::tables();
    nobody.execute("DELETE FROM push_devices", []).unwrap();
    asks(&nobody);
    becomes(&nobody, "idle", 9);
    assert_eq!(rows::notes(&nobody).unwrap(), []);
}

#[test]
fn an_end_is_told_once_the_agent_has_been_silent_with_what_still_runs() {
    let tables = tables();
    says(
        &tables,
        1,
        &json!({ "kind": "text", "text": "" }),
        Some("All tests pass."),
    );
    says(
        &tables,
        2,
        &json!({ "kind": "turn_ended", "outcome": "done", "note": null }),
        None,
    );
    becomes(&tables, "background", 1_000);
    tables
        .execute("UPDATE threads SET summary = '{\"background\":2}'", [])
        .unwrap();
    assert_eq!(judged(&tables, 1_000 + SETTLE_MS - 1), Judged::NotYet);
    let told = body(&judged(&tables, 1_000 + SETTLE_MS));
    let expected = (
        '◍',
        "Done",
        "All tests pass.".to_owned(),
        Some("2 still run".to_owned()),
    );
    assert_eq!(told, expected);
    becomes(&tables, "running", 2_000);
    assert_eq!(
        judged(&tables, 90_000),
        Judged::Over,
        "it goes on by itself"
    );
    becomes(&tables, "idle", 3_000);
    let note = only_note(&tables);
    assert_eq!(
        (note.about, note.at_ms),
        (About::Over(thread()), 3_000),
        "the last end counts"
    );
}

#[test]
fn failed_and_parked_are_told_at_once_and_what_a_person_stopped_is_not() {
    let tables = tables();
    says(
        &tables,
        1,
        &json!({ "kind": "turn_ended", "outcome": "failed", "note": "it ran out of memory" }),
        None,
    );
    becomes(&tables, "failed", 1_000);
    let (sign, what, said, _) = body(&judged(&tables, 1_000));
    assert_eq!(
        (sign, what, said.as_str()),
        ('✗', "Failed", "it ran out of memory")
    );
    becomes(&tables, "running", 1_500);
    becomes(&tables, "parked", 2_000);
    let (sign, what, ..) = body(&judged(&tables, 2_000));
    assert_eq!((sign, what), ('⏸', "Parked"));
    becomes(&tables, "running", 2_500);
    says(
        &tables,
        2,
        &json!({ "kind": "turn_ended", "outcome": "cancelled", "note": null }),
        None,
    );
    becomes(&tables, "idle", 3_000);
    assert_eq!(judged(&tables, 99_000), Judged::Over);
}

#[test]
fn a_message_takes_the_place_of_the_one_before_and_the_queue_has_an_end() {
    let mut tables = tables();
    let change = tables.transaction().unwrap();
    for number in 0..100 {
        let topic = format!("t-{number}");
        rows::enqueue(&change, ("phone", &topic), ("old", None), (0, 1_000)).unwrap();
    }
    rows::enqueue(&change, ("phone", "t-99"), ("new", None), (0, 1_000)).unwrap();
    assert_eq!(rows::waiting(&change, "phone").unwrap(), 64);
    let due = rows::due(&change, 0).unwrap();
    assert_eq!(due.len(), 1, "one browser is written to once at a time");
    assert_eq!(due[0].topic, "t-36");
    rows::postpone(&change, due[0].id, 500).unwrap();
    assert_eq!(rows::due(&change, 0).unwrap()[0].topic, "t-37");
    let newest: String = change
        .query_row(
            "SELECT body FROM push_queue WHERE topic = 't-99'",
            [],
            |row| row.get(0),
        )
        .unwrap();
    assert_eq!(newest, "new");
    assert!(!rows::is_stale(&change, 999).unwrap());
    assert!(rows::is_stale(&change, 1_000).unwrap());
    rows::drop_stale(&change, 1_000).unwrap();
    assert_eq!(rows::waiting(&change, "phone").unwrap(), 0);
}
