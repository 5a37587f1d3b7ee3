//! Followers that start late, stop, lag behind, all end with the same journal.

mod long;

use super::*;
use crate::store::Durability;
use box_api::thread::TurnOutcome;

fn place() -> Place {
    Place {
        thread: ThreadId::from_random([2; 10]),
        epoch: 1,
    }
}

fn text(seq: u64, text: &str) -> JournalRow {
    JournalRow {
        seq,
        at_ms: 5,
        item: Item::Text {
            text: text.to_owned(),
        },
    }
}

fn notice(seq: u64) -> JournalRow {
    JournalRow {
        seq,
        at_ms: 5,
        item: Item::Notice {
            text: format!("row {seq}"),
        },
    }
}

fn store() -> (tempfile::TempDir, Store) {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(&folder.path().join("box.db")).unwrap();
    (folder, store)
}

async fn with_thread(store: &Store) {
    store
        .write(Durability::Prompt, |tables| {
            tables.execute_batch(&format!(
                "INSERT INTO boxes (id, owner, name, state, runtime, image, image_digest, profile, \
                 net, limits, allow, id_offset, created_at_ms, changed_at_ms) VALUES ('b', \
                 'uid:0', 'b', 'running', 'n', 'i', 'd', 'locked', 'open', '{{}}', '[]', 1, 0, 0); \
                 INSERT INTO threads (id, box_id, owner, agent, title, state, asks, epoch, commits, \
                 saved, created_at_ms, changed_at_ms) VALUES ('{}', 'b', 'uid:0', 'demo', '', \
                 'idle', 'person', 1, 0, '', 0, 0)",
                place().thread
            ))
        })
        .await
        .unwrap();
}

/// A journal as somebody sees it, put together from updates.
fn put_together(seen: &mut Vec<Item>, update: ThreadUpdate) {
    match update {
        ThreadUpdate::Row(row) => {
            assert_eq!(row.seq, seen.len() as u64 + 1, "rows come in order");
            seen.push(row.item);
        }
        ThreadUpdate::Grew {
            seq,
            from_byte,
            text,
        } => {
            assert_eq!(seq, seen.len() as u64);
            let Some(Item::Text { text: whole }) = seen.last_mut() else {
                panic!("not of text")
            };
            assert_eq!(
                from_byte,
                whole.len() as u64,
                "no byte is missing or doubled"
            );
            whole.push_str(&text);
        }
        ThreadUpdate::CaughtUp { .. } => {}
    }
}

/// Writes a change and announces it, as the driver does.
async fn write(store: &Store, feed: &Feed, update: ThreadUpdate) {
    let change = update.clone();
    store
        .write(Durability::Prompt, move |tables| match &change {
            ThreadUpdate::Row(row) => append(tables, place(), row),
            ThreadUpdate::Grew { seq, text, .. } => grow(tables, place(), *seq, text),
            ThreadUpdate::CaughtUp { .. } => Ok(()),
        })
        .await
        .unwrap();
    feed.announce(vec![update]);
}

#[tokio::test]
async fn followers_of_any_pace_see_the_same() {
    let (_folder, store) = store();
    with_thread(&store).await;
    let feed = Feed::default();
    let mut eager = feed.follow(store.clone(), place(), Cursor::default());
    let mut lazy = feed.follow(store.clone(), place(), Cursor::default());
    let mut seen = Vec::new();
    let mut seq = 0;
    for round in 0..200 {
        seq += 1;
        write(&store, &feed, ThreadUpdate::Row(text(seq, "ä"))).await;
        let grown = ThreadUpdate::Grew {
            seq,
            from_byte: 2,
            text: format!("{round}"),
        };
        write(&store, &feed, grown).await;
        if round % 3 == 0 {
            seq += 1;
            write(&store, &feed, ThreadUpdate::Row(notice(seq))).await;
        }
        // Now and then it is all read.
        while round % 5 == 0 && (seen.len() as u64) < seq {
            put_together(&mut seen, eager.next().await.unwrap().unwrap());
        }
    }
    feed.end();
    for follower in [&mut eager, &mut lazy] {
        let mut seen = if follower.cursor().seq == 0 {
            Vec::new()
        } else {
            seen.clone()
        };
        while let Some(update) = follower.next().await.unwrap() {
            put_together(&mut seen, update);
        }
        assert_eq!(seen.len() as u64, seq);
        let Some(Item::Text { text }) = seen.iter().rev().find(|i| matches!(i, Item::Text { .. }))
        else {
            panic!("text")
        };
        assert_eq!(text, "ä199");
    }
}

/// What a follower is told until it has caught up, and where that is.
async fn caught_up(mut follower: Subscription) -> (Vec<ThreadUpdate>, Cursor) {
    let mut updates = Vec::new();
    loop {
        let update = follower.next().await.unwrap().unwrap();
        if let ThreadUpdate::CaughtUp { cursor } = update {
            return (updates, cursor);
        }
        updates.push(update);
    }
}

#[tokio::test]
async fn a_cursor_in_the_middle_of_a_text_gets_the_rest() {
    let (_folder, store) = store();
    with_thread(&store).await;
    let feed = Feed::default();
    write(&store, &feed, ThreadUpdate::Row(notice(1))).await;
    write(&store, &feed, ThreadUpdate::Row(text(2, "hällo"))).await;
    let follow = |seq, bytes, epoch| {
        let after = Cursor { epoch, seq, bytes };
        caught_up(feed.follow(store.clone(), place(), after))
    };
    let end = Cursor {
        epoch: 1,
        seq: 2,
        bytes: 6,
    };
    let grew = |from_byte, text: &str| ThreadUpdate::Grew {
        seq: 2,
        from_byte,
        text: text.into(),
    };
    assert_eq!(follow(2, 3, 1).await, (vec![grew(3, "llo")], end));
    assert_eq!(
        follow(2, 2, 1).await,
        (vec![grew(1, "ällo")], end),
        "characters come whole"
    );
    assert_eq!(follow(2, 6, 1).await, (vec![], end));
    let rows = vec![
        ThreadUpdate::Row(notice(1)),
        ThreadUpdate::Row(text(2, "hällo")),
    ];
    assert_eq!(
        follow(9, 9, 0).await,
        (rows, end),
        "a cursor of another epoch means nothing"
    );
}

#[tokio::test]
async fn a_row_is_read_as_it_was_written() {
    let (_folder, store) = store();
    with_thread(&store).await;
    let ended = Item::TurnEnded {
        outcome: TurnOutcome::Done,
        note: None,
    };
    let rows = [
        text(1, "a"),
        JournalRow {
            seq: 2,
            at_ms: 6,
            item: Item::Thought { text: "t".into() },
        },
        JournalRow {
            seq: 3,
            at_ms: 7,
            item: ended,
        },
    ];
    let written = rows.clone();
    store
        .write(Durability::Full, move |tables| {
            written
                .iter()
                .try_for_each(|row| append(tables, place(), row))?;
            grow(tables, place(), 2, "u")?;
            keep_line(tables, place(), 2, "{}")
        })
        .await
        .unwrap();
    let read = store
        .read(|tables| page(tables, place(), Cursor::default()))
        .await
        .unwrap();
    let thought = Item::Thought { text: "tu".into() };
    let mut expected = rows.to_vec();
    expected[1].item = thought;
    assert_eq!(
        read,
        expected
            .into_iter()
            .map(ThreadUpdate::Row)
            .collect::<Vec<_>>()
    );
    assert_eq!(
        store
            .read(|tables| lines(tables, place(), 2))
            .await
            .unwrap(),
        ["{}"]
    );
    let grown = store
        .write(Durability::Prompt, |tables| grow(tables, place(), 3, "x"))
        .await;
    assert!(grown.is_err(), "only text grows");
}
