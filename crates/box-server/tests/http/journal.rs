//! A thread's journal through the page's door: nothing is lost, nothing comes twice, whatever breaks.

use crate::browser::{Browser, Site, Socket};
use box_api::ThreadId;
use box_api::control::ThreadAct;
use box_api::page::{
    ClientFrame, Command, FRAME_BYTES_MAX, LogUpdate, PageRow, ROW_BYTES_MAX, ServerFrame, Start,
    Topic,
};
use box_api::thread::{Cursor, Item};
use hyper::StatusCode;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// Rows that are put into the journal.
const ROWS: u64 = 1200;
/// A row in so many is larger than a page gets it.
const LARGE_EVERY: u64 = 50;

/// A thread with a long journal, and a browser that may see it.
struct Long {
    site: Site,
    browser: Browser,
    thread: ThreadId,
    /// Before the first of the rows.
    begin: Cursor,
    end: u64,
}

/// A box with a thread that waits for its first prompt.
async fn thread(site: &Site, browser: &Browser) -> ThreadId {
    let made = browser.post("/api/boxes", &json!({ "name": "demo" })).await;
    assert_eq!(made.status, StatusCode::CREATED, "{made:?}");
    let opened = browser
        .post("/api/boxes/demo/threads", &json!({ "agent": "demo" }))
        .await;
    assert_eq!(opened.status, StatusCode::CREATED, "{opened:?}");
    let thread = opened.json()["thread"].as_str().unwrap().parse().unwrap();
    assert!(!site.host.task.is_finished());
    thread
}

fn text_of(seq: u64) -> String {
    let bytes = if seq.is_multiple_of(LARGE_EVERY) {
        3 * ROW_BYTES_MAX
    } else {
        3000
    };
    format!("{seq} ").repeat(bytes / 4)
}

impl Long {
    async fn start() -> Self {
        let site = Site::start().await;
        let browser = site.browser().await;
        let thread = thread(&site, &browser).await;
        let database = site.host.paths().database();
        let (epoch, first) = tokio::task::spawn_blocking(move || fill(&database, thread))
            .await
            .unwrap();
        Self {
            site,
            browser,
            thread,
            begin: Cursor {
                epoch,
                seq: first,
                bytes: 0,
            },
            end: first + ROWS,
        }
    }

    async fn follow(&self, socket: &mut Socket, after: Option<Cursor>) {
        let thread = self.thread;
        socket.subscribe(1, Topic::Thread { thread, after }).await;
    }
}

/// As a host that was here before would have left it.
fn fill(database: &std::path::Path, thread: ThreadId) -> (u32, u64) {
    let mut tables = rusqlite::Connection::open(database).unwrap();
    tables.busy_timeout(crate::host::PATIENCE).unwrap();
    // One that reads before it writes is not waited for (https://sqlite.org/lang_transaction.html).
    let at_once = rusqlite::TransactionBehavior::Immediate;
    let tables = tables.transaction_with_behavior(at_once).unwrap();
    let epoch: u32 = tables
        .query_row(
            "SELECT epoch FROM threads WHERE id = ?",
            [thread.as_str()],
            |row| row.get(0),
        )
        .unwrap();
    let first: i64 = tables
        .query_row(
            "SELECT coalesce(max(seq), 0) FROM journal WHERE thread = ?",
            [thread.as_str()],
            |row| row.get(0),
        )
        .unwrap();
    let first = u64::try_from(first).unwrap();
    for seq in first + 1..=first + ROWS {
        let item = serde_json::to_string(&Item::Text {
            text: String::new(),
        });
        tables
            .execute(
                "INSERT INTO journal (thread, epoch, seq, at_ms, item, text) VALUES (?, ?, ?, 1, ?, ?)",
                (
                    thread.as_str(),
                    epoch,
                    i64::try_from(seq).unwrap(),
                    item.unwrap(),
                    text_of(seq),
                ),
            )
            .unwrap();
    }
    tables.commit().unwrap();
    (epoch, first)
}

/// What a page has of a journal.
#[derive(Debug, Default)]
struct Kept {
    rows: BTreeMap<u64, PageRow>,
    to: Option<Cursor>,
}

impl Kept {
    /// Takes a frame in as a page does, and checks what a page relies on.
    fn take(&mut self, start: Start, (from, to): (Cursor, Cursor), updates: Vec<LogUpdate>) {
        match start {
            Start::Cursor => assert_eq!(Some(from), self.to),
            Start::Tail => self.rows.clear(),
        }
        for update in updates {
            let LogUpdate::Row(row) = update else {
                panic!("nothing grew")
            };
            let last = self.rows.keys().next_back().copied();
            assert!(
                last.is_none_or(|last| row.row.seq == last + 1),
                "{last:?} {}",
                row.row.seq
            );
            self.rows.insert(row.row.seq, *row);
        }
        self.to = Some(to);
    }

    fn check(&self, first: u64, last: u64) {
        assert_eq!(
            self.rows.len() as u64,
            last - first,
            "{:?}",
            self.rows.keys().next()
        );
        for (seq, row) in &self.rows {
            let Item::Text { text } = &row.row.item else {
                panic!("{row:?}")
            };
            let whole = text_of(*seq);
            let from = usize::try_from(row.text_from).unwrap();
            assert_eq!(text, &whole[from..]);
            assert_eq!(from > 0, whole.len() > ROW_BYTES_MAX);
        }
    }
}

/// The next frame of the journal, with its size.
async fn log(socket: &mut Socket) -> (Start, (Cursor, Cursor), Vec<LogUpdate>, bool) {
    loop {
        let frame = socket.frame().await.unwrap();
        let size = serde_json::to_string(&frame).unwrap().len();
        if let ServerFrame::Log {
            start,
            from,
            to,
            updates,
            older,
            ..
        } = frame
        {
            assert!(
                size <= FRAME_BYTES_MAX + 2 * ROW_BYTES_MAX,
                "a frame of {size} bytes"
            );
            return (start, (from, to), updates, older);
        }
    }
}

#[tokio::test]
async fn a_reader_whose_socket_breaks_again_and_again_loses_nothing() {
    let long = Long::start().await;
    let mut kept = Kept {
        to: Some(long.begin),
        ..Kept::default()
    };
    let mut sockets = 0;
    while kept.to.unwrap().seq < long.end {
        let mut socket = long.browser.socket().await;
        long.follow(&mut socket, kept.to).await;
        let mut frames = 0;
        while frames < 3 && kept.to.unwrap().seq < long.end {
            let (start, ends, updates, _) = log(&mut socket).await;
            assert_eq!(start, Start::Cursor);
            kept.take(start, ends, updates);
            frames += 1;
        }
        sockets += 1;
    }
    assert!(sockets > 5, "only {sockets} sockets");
    kept.check(long.begin.seq, long.end);
}

#[tokio::test]
async fn a_page_that_reads_nothing_keeps_nobody_else_waiting() {
    let long = Long::start().await;
    let mut slow = long.browser.socket().await;
    long.follow(&mut slow, Some(long.begin)).await;
    let read = async |socket: &mut Socket| {
        let mut kept = Kept {
            to: Some(long.begin),
            ..Kept::default()
        };
        while kept.to.unwrap().seq < long.end {
            let (start, ends, updates, _) = log(socket).await;
            kept.take(start, ends, updates);
        }
        kept.check(long.begin.seq, long.end);
    };
    let mut fast = long.browser.socket().await;
    long.follow(&mut fast, Some(long.begin)).await;
    read(&mut fast).await;
    assert_eq!(
        long.browser.get("/api/me").await.status,
        StatusCode::OK,
        "the rest of the page goes on"
    );
    // It is where it was, and nothing of it was left out.
    read(&mut slow).await;
}

#[tokio::test]
async fn a_page_begins_with_the_end_and_reads_back_page_by_page() {
    let long = Long::start().await;
    let mut socket = long.browser.socket().await;
    long.follow(&mut socket, None).await;
    let (start, ends, updates, older) = log(&mut socket).await;
    assert_eq!((start, older), (Start::Tail, true));
    assert_eq!(ends.1.seq, long.end);
    let mut kept = Kept::default();
    kept.take(start, ends, updates);
    let path = |before: u64| format!("/api/threads/{}/rows?before={before}", long.thread);
    loop {
        let first = *kept.rows.keys().next().unwrap();
        if first == long.begin.seq + 1 {
            break;
        }
        let page: box_api::page::RowsPage =
            serde_json::from_slice(&long.browser.get(&path(first)).await.body).unwrap();
        assert_eq!(page.rows.last().unwrap().row.seq, first - 1);
        let fresh = page.rows.into_iter();
        kept.rows.extend(
            fresh
                .filter(|row| row.row.seq > long.begin.seq)
                .map(|row| (row.row.seq, row)),
        );
    }
    kept.check(long.begin.seq, long.end);
    let large = (long.end / LARGE_EVERY) * LARGE_EVERY;
    let whole = format!("/api/threads/{}/rows/{large}", long.thread);
    let whole = long.browser.get(&whole).await;
    assert_eq!(whole.json()["text"], text_of(large));
    let none = format!("/api/threads/{}/rows/{}", long.thread, long.end + 1);
    assert_eq!(long.browser.get(&none).await.slug(), "row-not-found");
    drop(long.site);
}

#[tokio::test]
async fn without_a_socket_the_same_comes_by_long_poll() {
    let long = Long::start().await;
    let mut kept = Kept {
        to: Some(long.begin),
        ..Kept::default()
    };
    while kept.to.unwrap().seq < long.end {
        let Cursor { epoch, seq, bytes } = kept.to.unwrap();
        let path = format!(
            "/api/threads/{}/log?epoch={epoch}&seq={seq}&bytes={bytes}",
            long.thread
        );
        let got = long.browser.get(&path).await;
        let page: box_api::page::LogPage = serde_json::from_slice(&got.body).unwrap();
        kept.take(page.start, (page.from, page.to), page.updates);
    }
    kept.check(long.begin.seq, long.end);
    let other_epoch = format!("/api/threads/{}/log?epoch=99&seq=1", long.thread);
    let page = long.browser.get(&other_epoch).await.json();
    assert_eq!(page["start"], "tail");
}

#[tokio::test]
async fn a_prompt_that_is_sent_twice_is_asked_once_and_shown_as_it_comes() {
    let site = Site::start().await;
    let browser = site.browser().await;
    let thread = thread(&site, &browser).await;
    let (mut watching, mut asking) = (browser.socket().await, browser.socket().await);
    watching
        .subscribe(
            1,
            Topic::Thread {
                thread,
                after: None,
            },
        )
        .await;
    log(&mut watching).await;
    let act = ThreadAct::Prompt {
        text: "do it".to_owned(),
    };
    let command = Command::Thread { thread, act };
    for _ in 0..2 {
        let cid = "one".to_owned();
        let command = command.clone();
        asking.say(&ClientFrame::Cmd { cid, command }).await;
        let done = asking.frame().await.unwrap();
        let ServerFrame::Result {
            problem: None,
            thread: Some(shown),
            ..
        } = done
        else {
            panic!("{done:?}")
        };
        assert_eq!(shown.info.thread, thread);
    }
    let mut seen = false;
    while !seen {
        let (_, _, updates, _) = log(&mut watching).await;
        seen = updates.iter().any(is_prompt);
    }
    let rows = browser
        .get(&format!("/api/threads/{thread}/rows"))
        .await
        .json();
    let prompts = rows["rows"].as_array().unwrap().iter();
    let prompts: Vec<&Value> = prompts.filter(|row| row["kind"] == "prompt").collect();
    assert_eq!(prompts.len(), 1, "{rows}");
}

fn is_prompt(update: &LogUpdate) -> bool {
    matches!(update, LogUpdate::Row(row) if matches!(row.row.item, Item::Prompt { .. }))
}
