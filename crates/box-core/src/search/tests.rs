//! Rows are found as soon as they are there, by their owner alone, and without secrets.

use super::ask::{Question, answer, expression};
use super::*;
use crate::store::schema;
use box_api::search::{Found, Hit, SearchKind, SearchOrder};
use box_api::thread::{Item, ToolContent, ToolStatus};
use box_api::{Owner, ThreadId};
use rusqlite::Connection;

const MINE: u32 = 1000;
const THEIRS: u32 = 1001;

/// A database with a thread of each of two owners.
struct World {
    tables: Connection,
}

fn thread(number: u8) -> Place {
    Place {
        thread: ThreadId::from_random([number; 10]),
        epoch: 1,
    }
}

impl World {
    fn new() -> Self {
        Self::at(schema::STEPS.len())
    }

    /// With the tables of an earlier build.
    fn at(steps: usize) -> Self {
        let mut tables = Connection::open_in_memory().unwrap();
        schema::upgrade(&mut tables, &schema::STEPS[..steps]).unwrap();
        tables.pragma_update(None, "foreign_keys", "on").unwrap();
        for (number, owner) in [(1, MINE), (2, THEIRS)] {
            let (id, place) = (
                format!(
                    "b{}",
                    "a".repeat(14) + &number.to_string().replace('1', "c").replace('2', "d")
                ),
                thread(number),
            );
            tables
                .execute(
                    "INSERT INTO boxes (id, owner, name, state, runtime, image, image_digest, \
                     profile, net, limits, allow, id_offset, created_at_ms, changed_at_ms) VALUES \
                     (?1, ?2, ?3, 'running', 'native', 'i', 'd', 'locked', 'open', '{}', '[]', \
                     ?4, 0, 0)",
                    (
                        &id,
                        format!("uid:{owner}"),
                        format!("box-{number}"),
                        i64::from(number),
                    ),
                )
                .unwrap();
            tables
                .execute(
                    "INSERT INTO threads (id, box_id, owner, agent, title, state, asks, epoch, \
                     commits, saved, created_at_ms, changed_at_ms) VALUES (?, ?, ?, 'demo', 'a \
                     title', 'idle', 'person', 1, 0, '{}', 0, 0)",
                    (place.thread.as_str(), &id, format!("uid:{owner}")),
                )
                .unwrap();
        }
        Self { tables }
    }

    fn write(&mut self, number: u8, seq: u64, item: Item) {
        let row = JournalRow {
            seq,
            at_ms: i64::try_from(seq).unwrap(),
            item,
        };
        let change = self.tables.transaction().unwrap();
        journal::append(&change, thread(number), &row).unwrap();
        change.commit().unwrap();
    }

    fn grow(&mut self, number: u8, seq: u64, text: &str) {
        let change = self.tables.transaction().unwrap();
        journal::grow(&change, thread(number), seq, text).unwrap();
        change.commit().unwrap();
    }

    fn ask(&self, owner: u32, words: &str) -> Found {
        self.ask_about(&Question {
            words: expression(words).unwrap(),
            ..question(owner)
        })
    }

    fn ask_about(&self, question: &Question) -> Found {
        answer(&self.tables, question).unwrap()
    }

    fn seqs(&self, owner: u32, words: &str) -> Vec<u64> {
        self.ask(owner, words)
            .hits
            .iter()
            .map(|hit| hit.seq)
            .collect()
    }

    /// Everything the search keeps, tables of the index included.
    fn everything(&self) -> Vec<u8> {
        let mut all = Vec::new();
        for sql in [
            "SELECT CAST(text AS BLOB) FROM search_docs",
            "SELECT block FROM search_words_data",
        ] {
            let mut statement = self.tables.prepare(sql).unwrap();
            let rows = statement
                .query_map([], |row| row.get::<_, Vec<u8>>(0))
                .unwrap();
            rows.for_each(|row| all.extend(row.unwrap()));
        }
        all
    }
}

fn question(owner: u32) -> Question {
    Question {
        owner: Owner::Uid(owner),
        words: String::new(),
        box_id: None,
        thread: None,
        kind: None,
        order: SearchOrder::Newest,
        limit: 20,
    }
}

fn prompt(text: &str) -> Item {
    Item::Prompt { text: text.into() }
}

fn text(text: &str) -> Item {
    Item::Text { text: text.into() }
}

fn tool(title: &str, output: &str) -> Item {
    Item::ToolCall {
        call: "1".into(),
        title: title.into(),
        tool: "read".into(),
        status: ToolStatus::Completed,
        content: vec![ToolContent::Text {
            text: output.into(),
        }],
    }
}

fn snippet(hit: &Hit) -> String {
    let shown = hit.snippet.iter().map(|part| {
        if part.found {
            format!("[{}]", part.text)
        } else {
            part.text.clone()
        }
    });
    shown.collect()
}

#[test]
fn a_row_is_found_by_its_words_with_where_it_stands() {
    let mut world = World::new();
    world.write(1, 1, prompt("please mend the Gewächshaus door"));
    world.write(1, 2, tool("cat notes", "the door is\ngreen"));
    let found = world.ask(MINE, "door");
    assert_eq!(found.hits.len(), 2);
    let hit = &found.hits[1];
    assert_eq!((hit.seq, hit.kind), (1, SearchKind::Prompt));
    assert_eq!(
        (hit.name.as_str(), hit.title.as_str()),
        ("box-1", "a title")
    );
    assert_eq!(snippet(hit), "please mend the Gewächshaus [door]");
    assert_eq!(snippet(&found.hits[0]), "cat notes the [door] is green");
    assert_eq!(
        world.seqs(MINE, "gewachs"),
        [1],
        "a beginning, without marks"
    );
    assert_eq!(world.seqs(MINE, "door green"), [2], "all of the words");
    assert!(world.seqs(MINE, "window").is_empty());
    let kind = Question {
        words: expression("door").unwrap(),
        kind: Some(SearchKind::Tool),
        ..question(MINE)
    };
    assert_eq!(world.ask_about(&kind).hits[0].seq, 2);
    let few = Question {
        words: expression("door").unwrap(),
        limit: 1,
        ..question(MINE)
    };
    let few = world.ask_about(&few);
    assert_eq!((few.hits.len(), few.more), (1, true));
}

#[test]
fn a_text_that_grows_is_found_by_what_it_grew() {
    let mut world = World::new();
    world.write(1, 1, text("the first half and the sec"));
    world.grow(1, 1, "ond, which speaks of marmalade");
    assert_eq!(world.seqs(MINE, "marmalade second"), [1]);
    assert_eq!(world.seqs(MINE, "first"), [1], "once");
    assert_eq!(world.ask(MINE, "sec ond").hits, []);
    assert_eq!(world.seqs(MINE, "\"first half\" half"), [1], "side by side");
    assert_eq!(world.ask(MINE, "\"half first\"").hits, []);
    let long = "pebble ".repeat(5000);
    world.grow(1, 1, &long);
    world.grow(1, 1, " beyond");
    assert_eq!(world.seqs(MINE, "pebble marmalade"), [1]);
}

#[test]
fn nobody_finds_what_is_anothers() {
    let mut world = World::new();
    world.write(1, 1, prompt("mine about walnuts"));
    world.write(2, 1, prompt("theirs about walnuts"));
    let names = |owner| {
        let found = world.ask(owner, "walnuts").hits.into_iter();
        found.map(|hit| hit.name.to_string()).collect::<Vec<_>>()
    };
    assert_eq!(names(MINE), ["box-1"]);
    assert_eq!(names(THEIRS), ["box-2"]);
    assert!(names(0).is_empty(), "not even root, unless it asks as them");
    let aimed = Question {
        words: expression("walnuts").unwrap(),
        thread: Some(thread(2).thread),
        ..question(MINE)
    };
    assert_eq!(world.ask_about(&aimed).hits, []);
}

#[test]
fn a_secret_in_what_a_tool_printed_is_nowhere_in_the_search() {
    let mut world = World::new();
    let secret = "Zq8RkV2mXw7Jt4Lp9Sd3Hf6Gb1Nc5Ty0Ae";
    let token = format!("sk-ant-oat01-{secret}");
    world.write(1, 1, tool("cat .env", &format!("KEY={token}\nmarmalade\n")));
    // In pieces, as an agent says it.
    world.write(1, 2, text("the key is sk-ant-oat01-"));
    for piece in secret.as_bytes().chunks(5) {
        world.grow(1, 2, std::str::from_utf8(piece).unwrap());
    }
    world.grow(1, 2, " and that is marmalade");
    assert_eq!(world.seqs(MINE, "marmalade"), [2, 1], "both are there");
    let everything = world.everything().to_ascii_lowercase();
    let has = |text: &str| {
        let text = text.to_ascii_lowercase();
        memchr_find(&everything, text.as_bytes())
    };
    assert!(has("marmalade"), "what is looked into has the words");
    for at in 0..secret.len() - 5 {
        assert!(!has(&secret[at..at + 5]), "{}", &secret[at..at + 5]);
    }
    let answers = format!("{:?}", world.ask(MINE, "key"));
    assert!(
        answers.contains("[redacted]") && !answers.contains(secret),
        "{answers}"
    );
    assert_eq!(world.ask(MINE, secret).hits, []);
    // A title begins as the first prompt does.
    world
        .tables
        .execute("UPDATE threads SET title = 'use ' || ?", [&token])
        .unwrap();
    let answers = format!("{:?}", world.ask(MINE, "marmalade"));
    assert!(
        answers.contains("use [redacted]") && !answers.contains(secret),
        "{answers}"
    );
}

fn memchr_find(all: &[u8], wanted: &[u8]) -> bool {
    all.windows(wanted.len()).any(|window| window == wanted)
}

#[test]
fn journals_from_before_are_taken_in_once() {
    let mut world = World::at(4);
    for seq in 1..=1200 {
        let row = format!("{{\"kind\":\"prompt\",\"text\":\"walnut number {seq}\"}}");
        world
            .tables
            .execute(
                "INSERT INTO journal (thread, epoch, seq, at_ms, item) VALUES (?, 1, ?, 0, ?)",
                (thread(1).thread.as_str(), seq, row),
            )
            .unwrap();
    }
    schema::upgrade(&mut world.tables, schema::STEPS).unwrap();
    assert_eq!(
        world.ask(MINE, "walnut").threads_left,
        2,
        "and that is said"
    );
    world.write(1, 1201, prompt("walnut number 1201"));
    let change = world.tables.transaction().unwrap();
    backlog::all(&change).unwrap();
    change.commit().unwrap();
    let found = world.ask(MINE, "walnut number 1200");
    assert_eq!((found.hits.len(), found.threads_left), (1, 0));
    assert_eq!(world.seqs(MINE, "1201"), [1201], "not twice");
    assert_eq!(
        world.seqs(MINE, "number 1"),
        [
            1201, 1200, 1199, 1198, 1197, 1196, 1195, 1194, 1193, 1192, 1191, 1190, 1189, 1188,
            1187, 1186, 1185, 1184, 1183, 1182
        ]
    );
}

#[test]
fn what_is_removed_is_not_found_and_a_copy_is() {
    let mut world = World::new();
    world.write(1, 1, prompt("walnuts"));
    world.write(1, 2, text("and almonds"));
    let change = world.tables.transaction().unwrap();
    journal::copy(&change, thread(1), thread(2), 2).unwrap();
    change.commit().unwrap();
    assert_eq!(world.seqs(THEIRS, "walnuts"), [1]);
    assert!(
        world.seqs(THEIRS, "almonds").is_empty(),
        "what came later is not copied"
    );
    world
        .tables
        .execute("DELETE FROM boxes WHERE name = 'box-1'", [])
        .unwrap();
    assert!(world.seqs(MINE, "walnuts").is_empty());
    world
        .tables
        .execute(
            "INSERT INTO search_words (search_words) VALUES ('integrity-check')",
            [],
        )
        .unwrap();
}

#[test]
fn questions_are_words_and_never_syntax() {
    let mut world = World::new();
    world.write(1, 1, prompt("a-b NEAR c \"quoted\" col:umn"));
    for words in ["a-b", "NEAR", "\"quoted", "col:umn", "c OR", "( c"] {
        let found = expression(words).map(|words| {
            let question = Question {
                words,
                ..question(MINE)
            };
            world.ask_about(&question)
        });
        assert!(found.is_ok(), "{words}");
    }
    assert_eq!(world.seqs(MINE, "( c"), [1]);
    assert!(matches!(expression(" … "), Err(SearchError::NoWord)));
    assert!(matches!(
        expression(&"x ".repeat(40)),
        Err(SearchError::TooLong)
    ));
}
