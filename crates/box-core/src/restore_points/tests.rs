//! What is written down beside a snapshot, and what comes back from it.

use super::rows::{self, TurnBegun};
use crate::agents;
use crate::journal::{self, Place};
use crate::store::schema;
use crate::thread::state::{Asks, Settings, ThreadState};
use crate::thread::{Along, bring_along};
use box_api::restore_point::{WayBack, is_live};
use box_api::thread::{Item, JournalRow};
use box_api::{BoxId, Label, Owner, ThreadId};
use rusqlite::{Connection, Transaction};

const OWNER: Owner = Owner::Uid(1000);

struct World {
    tables: Connection,
    box_id: BoxId,
}

fn thread(number: u8) -> ThreadId {
    ThreadId::from_random([number; 10])
}

fn place(number: u8) -> Place {
    Place {
        thread: thread(number),
        epoch: 1,
    }
}

fn label(text: &str) -> Label {
    Label::parse(text).unwrap()
}

impl World {
    fn new() -> Self {
        let mut tables = Connection::open_in_memory().unwrap();
        schema::upgrade(&mut tables, schema::STEPS).unwrap();
        tables.pragma_update(None, "foreign_keys", "on").unwrap();
        let box_id = BoxId::from_random([7; 10]);
        let mut world = Self { tables, box_id };
        world.add_box(box_id, "demo", 0);
        world.add_thread(1, 1, None);
        world
    }

    fn add_box(&mut self, id: BoxId, name: &str, offset: i64) {
        self.tables
            .execute(
                "INSERT INTO boxes (id, owner, name, state, runtime, image, image_digest, \
                 profile, net, limits, allow, id_offset, created_at_ms, changed_at_ms) VALUES \
                 (?1, ?2, ?3, 'running', 'native', 'i', 'd', 'locked', 'open', '{}', '[]', ?4, \
                 0, 0)",
                (id.as_str(), OWNER.to_string(), name, offset),
            )
            .unwrap();
    }

    /// A thread as it is saved by the real state machine, but for two places.
    fn add_thread(&mut self, number: u8, next_seq: u64, known_as: Option<&str>) {
        let profile = agents::find("demo").unwrap();
        let settings = Settings::new(profile, (self.box_id, thread(number)), Asks::Person);
        let mut saved = serde_json::to_value(ThreadState::new(settings)).unwrap();
        for (key, value) in [
            ("next_seq", next_seq.into()),
            ("known_as", known_as.into()),
            ("title", "a title".into()),
        ] {
            assert!(
                saved.get(key).is_some(),
                "a thread is saved without `{key}`"
            );
            saved[key] = value;
        }
        self.tables
            .execute(
                "INSERT OR REPLACE INTO threads (id, box_id, owner, agent, title, state, asks, \
                 epoch, commits, saved, created_at_ms, changed_at_ms) VALUES (?, ?, ?, 'demo', \
                 'a title', 'idle', 'person', 1, 0, ?, ?, 0)",
                (
                    thread(number).as_str(),
                    self.box_id.as_str(),
                    OWNER.to_string(),
                    saved.to_string(),
                    i64::from(number),
                ),
            )
            .unwrap();
    }

    fn change<T>(&mut self, work: impl FnOnce(&Transaction<'_>) -> rusqlite::Result<T>) -> T {
        let change = self.tables.transaction().unwrap();
        let done = work(&change).unwrap();
        change.commit().unwrap();
        done
    }

    fn write(&mut self, number: u8, seq: u64, item: Item) {
        let row = JournalRow {
            seq,
            at_ms: 0,
            item,
        };
        self.change(|tables| journal::append(tables, place(number), &row));
    }

    fn reserve(&mut self, seq: u64) -> Label {
        let (id, begun) = (
            self.box_id,
            TurnBegun {
                place: place(1),
                seq,
                words: "do it".into(),
            },
        );
        self.change(|tables| rows::reserve(tables, &id, &begun, 5))
    }
}

fn prompt(text: &str) -> Item {
    Item::Prompt { text: text.into() }
}

#[test]
fn a_snapshot_knows_where_every_thread_of_its_box_stood() {
    let mut world = World::new();
    world.add_thread(2, 12, Some("conversation-2"));
    let id = world.box_id;
    world.change(|tables| rows::note_moment(tables, &id, &label("good"), 5));
    let stood = rows::stood(&world.tables, &id, &label("good")).unwrap();
    let mut stood = stood.unwrap();
    stood.sort_by_key(|one| one.before);
    let seen: Vec<_> = stood
        .iter()
        .map(|one| (one.thread, one.before, one.known_as.as_deref()))
        .collect();
    assert_eq!(
        seen,
        [
            (thread(1), 1, None),
            (thread(2), 12, Some("conversation-2"))
        ]
    );
    let other = rows::stood(&world.tables, &id, &label("older")).unwrap();
    assert_eq!(other, None, "of one from before nobody knows");
}

#[test]
fn restore_points_are_counted_and_no_number_comes_twice() {
    let mut world = World::new();
    let id = world.box_id;
    assert_eq!(world.reserve(1), label("turn-1"));
    let second = world.reserve(4);
    assert_eq!(second, label("turn-2"));
    assert!(
        rows::of_box(&world.tables, &id).unwrap().is_empty(),
        "none is there before it was taken"
    );
    world.change(|tables| rows::taken(tables, &id, &second, 3200));
    let points = rows::of_box(&world.tables, &id).unwrap();
    assert_eq!((points.len(), points[0].took_us), (1, 3200));
    let stood = rows::stood(&world.tables, &id, &second).unwrap().unwrap();
    assert_eq!(stood[0].before, 4, "before the prompt's own row");
    world.change(|tables| rows::forget(tables, &id, &second));
    assert_eq!(world.reserve(4), label("turn-3"));
}

#[test]
fn a_journal_that_went_back_says_which_rows_count() {
    let mut world = World::new();
    for seq in 1..=4 {
        world.write(1, seq, prompt("x"));
    }
    let back = Item::WentBack {
        before: 3,
        snapshot: "turn-2".into(),
    };
    world.write(1, 5, back);
    let (ways, end) = rows::ways_back(&world.tables, place(1)).unwrap();
    assert_eq!(ways, [WayBack { at: 5, before: 3 }]);
    assert_eq!(end, 6);
    assert!(is_live(2, end, &ways) && !is_live(3, end, &ways));
}

#[test]
fn a_thread_comes_along_as_it_was_and_knows_its_conversation() {
    let mut world = World::new();
    for (seq, text) in [(1, "first"), (2, "second"), (3, "third")] {
        world.write(1, seq, prompt(text));
    }
    world.add_thread(1, 4, Some("conversation-now"));
    for (seq, text) in [(1, "first"), (2, "second"), (3, "third")] {
        world.write(1, seq, prompt(text));
    }
    world.add_thread(2, 1, None);
    let copy = BoxId::from_random([8; 10]);
    world.add_box(copy, "copy", 65_536);
    let stood = |number, before| rows::Stood {
        thread: thread(number),
        epoch: 1,
        before,
        known_as: Some("conversation-then".into()),
    };
    let along = |number| Along {
        box_id: copy,
        owner: OWNER,
        thread: thread(number),
    };
    world.change(|tables| bring_along(tables, &stood(1, 3), &along(11)));
    world.change(|tables| bring_along(tables, &stood(2, 1), &along(12)));
    let rows: Vec<(String, String)> = world
        .tables
        .prepare("SELECT id, saved FROM threads WHERE box_id = ?")
        .unwrap()
        .query_map([copy.as_str()], |row| Ok((row.get(0)?, row.get(1)?)))
        .unwrap()
        .collect::<Result<_, _>>()
        .unwrap();
    assert_eq!(rows.len(), 1, "one without a row is left out: {rows:?}");
    assert_eq!(rows[0].0, thread(11).as_str());
    let state: ThreadState = serde_json::from_str(&rows[0].1).unwrap();
    assert_eq!(
        (state.settings.box_id, state.settings.thread),
        (copy, thread(11))
    );
    assert_eq!((state.title.as_str(), state.last_seq()), ("a title", 2));
    assert!(!state.wants_agent());
    let saved: serde_json::Value = serde_json::from_str(&rows[0].1).unwrap();
    assert_eq!(saved["known_as"], "conversation-then");
    let texts = journal::page(&world.tables, place(11), box_api::thread::Cursor::default());
    assert_eq!(texts.unwrap().len(), 2);
}
