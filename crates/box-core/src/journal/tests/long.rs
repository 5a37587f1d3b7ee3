//! A journal that is long: rows that are appended, many followers of them, and a page opened at its
//! end. As a test it is short and holds that nobody misses a row and a page stays a page;
//! `cargo xtask bench thread` runs it with more rows (`BOX_BENCH_ROWS`) and prints what it took.

use super::*;
use std::time::{Duration, Instant};

/// Clients that follow at once: pages, phones, terminals.
const FOLLOWERS: usize = 53;
/// Rows of one commit, as those of a busy agent are grouped.
const COMMIT_ROWS: u64 = 50;
/// Rows that are followed as they come.
const LIVE_ROWS: u64 = 1000;
const OPENED: u32 = 20;
const PATIENCE: Duration = Duration::from_mins(10);

fn sentence(seq: u64) -> JournalRow {
    let words = "the agent says a sentence or two about what it has just done";
    text(seq, &format!("row {seq}: {words}"))
}

async fn commit(store: &Store, rows: std::ops::Range<u64>) {
    let write = move |tables: &Transaction<'_>| {
        let mut rows = rows.clone();
        rows.try_for_each(|seq| append(tables, place(), &sentence(seq)))
    };
    store.write(Durability::Grouped, write).await.unwrap();
}

/// Appends rows; gives how long that took.
async fn fill(store: &Store, rows: std::ops::Range<u64>, feed: Option<&Feed>) -> Duration {
    let began = Instant::now();
    let mut next = rows.start;
    while next < rows.end {
        let end = (next + COMMIT_ROWS).min(rows.end);
        commit(store, next..end).await;
        if let Some(feed) = feed {
            feed.announce(
                (next..end)
                    .map(|seq| ThreadUpdate::Row(sentence(seq)))
                    .collect(),
            );
        }
        next = end;
    }
    began.elapsed()
}

/// Reads to row `last`, every row once and in order.
async fn follows(mut of: Subscription, from: u64, last: u64) -> u64 {
    let mut next = from;
    while next <= last {
        match of.next().await.unwrap().unwrap() {
            ThreadUpdate::Row(row) => {
                assert_eq!(row.seq, next);
                next += 1;
            }
            ThreadUpdate::Grew { .. } => panic!("nothing grows here"),
            ThreadUpdate::CaughtUp { .. } => {}
        }
    }
    next - from
}

/// Opens the end of the journal as a page does, some times; gives how long one took.
async fn opened(store: &Store) -> Duration {
    let measure = Measure {
        rows_max: 200,
        bytes_max: 256 << 10,
        row_bytes_max: 64 << 10,
    };
    let began = Instant::now();
    for _ in 0..OPENED {
        let page = store.read(move |tables| tail(tables, place(), None, measure));
        let page = page.await.unwrap();
        assert_eq!((page.rows.len(), page.older), (200, true));
    }
    began.elapsed() / OPENED
}

/// Memory of this process, kB; 0 where the kernel does not say.
fn resident_kb() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with("VmRSS:"));
    let number = line.and_then(|line| line.split_whitespace().nth(1)?.parse().ok());
    number.unwrap_or_default()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_long_journal_is_followed_by_many_and_opened_at_its_end_by_the_page() {
    let asked = std::env::var("BOX_BENCH_ROWS").ok();
    let rows: u64 = asked.as_deref().map_or(1000, |rows| rows.parse().unwrap());
    let (_folder, store) = store();
    with_thread(&store).await;
    let append = fill(&store, 1..rows + 1, None).await;
    let (filled_kb, open) = (resident_kb(), opened(&store).await);

    let feed = Feed::default();
    let last = rows + LIVE_ROWS;
    let here = Cursor {
        epoch: 1,
        seq: rows,
        bytes: growing_text(&sentence(rows).item).map_or(0, |text| text.len() as u64),
    };
    let began = Instant::now();
    let followers: Vec<_> = (0..FOLLOWERS)
        .map(|_| {
            tokio::spawn(follows(
                feed.follow(store.clone(), place(), here),
                rows + 1,
                last,
            ))
        })
        .collect();
    fill(&store, rows + 1..last + 1, Some(&feed)).await;
    for follower in followers {
        let seen = tokio::time::timeout(PATIENCE, follower).await.unwrap();
        assert_eq!(seen.unwrap(), LIVE_ROWS);
    }
    let fan_out = began.elapsed();
    // One that begins at the beginning reads page by page.
    let began = Instant::now();
    let start = Cursor {
        seq: 0,
        bytes: 0,
        ..here
    };
    let whole = follows(feed.follow(store.clone(), place(), start), 1, last);
    assert_eq!(whole.await, last);
    let reopen = began.elapsed();
    if asked.is_some() {
        let per_row = append.as_micros() / u128::from(rows.max(1));
        eprintln!(
            "{rows} rows: append {per_row} µs a row; {FOLLOWERS} followers of {LIVE_ROWS} more {} ms; \
             open at the end {} µs; read whole {} ms; memory {filled_kb} kB when filled, {} kB at the end",
            fan_out.as_millis(),
            open.as_micros(),
            reopen.as_millis(),
            resident_kb()
        );
    }
}
