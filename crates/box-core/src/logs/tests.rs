//! Logs of processes: kept, bounded, followed.

use super::*;
use tokio::time::{Duration, timeout};

const PATIENCE: Duration = Duration::from_secs(10);

async fn everything(mut reader: mpsc::Receiver<Vec<u8>>) -> Vec<u8> {
    let mut all = Vec::new();
    while let Some(piece) = timeout(PATIENCE, reader.recv()).await.unwrap() {
        all.extend(piece);
    }
    all
}

async fn until(reader: &mut mpsc::Receiver<Vec<u8>>, bytes: usize) -> Vec<u8> {
    let mut all = Vec::new();
    while all.len() < bytes {
        all.extend(timeout(PATIENCE, reader.recv()).await.unwrap().unwrap());
    }
    all
}

#[tokio::test]
async fn a_log_that_makes_way_for_a_new_one_is_still_read_and_followed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("agent-1.log");
    let long = vec![b'a'; usize::try_from(LOG_BYTES_MAX).unwrap()];
    write(folder.path(), &path, &long).unwrap();
    write(folder.path(), &path, b"second").unwrap();

    let (told, changes) = watch::channel(0);
    let (pieces, mut reader) = mpsc::channel(PIECES_QUEUED_MAX);
    let task = tokio::spawn(copy(path.clone(), pieces, changes, Until::Left));
    let all = until(&mut reader, long.len() + 6).await;
    assert!(all.ends_with(b"asecond"));
    write(folder.path(), &path, b"third").unwrap();
    told.send_modify(|count| *count += 1);
    assert_eq!(until(&mut reader, 5).await, b"third");
    drop(reader);
    timeout(PATIENCE, task).await.unwrap().unwrap().unwrap();
}

#[tokio::test]
async fn a_log_that_is_not_followed_ends() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("agent-1.log");
    write(folder.path(), &path, b"one\n").unwrap();
    write(folder.path(), &path, b"two\n").unwrap();
    let (pieces, reader) = mpsc::channel(PIECES_QUEUED_MAX);
    let (_told, changes) = watch::channel(0);
    let task = tokio::spawn(copy(path, pieces, changes, Until::Now));
    assert_eq!(everything(reader).await, b"one\ntwo\n");
    task.await.unwrap().unwrap();
    assert_eq!(known(folder.path()).unwrap(), ["agent-1"]);
    assert!(known(&folder.path().join("none")).unwrap().is_empty());
}

#[tokio::test]
async fn what_a_dead_host_wrote_without_saying_so_is_written_once() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("server.log");
    let stated = write(folder.path(), &path, b"kept ").unwrap();
    // Written, and the host died before the row said so: the guest gives it again.
    write(folder.path(), &path, b"twice").unwrap();
    forget_unstated(&path, stated).unwrap();
    write(folder.path(), &path, b"twice").unwrap();
    assert_eq!(std::fs::read(&path).unwrap(), b"kept twice");
    // The same over a log that had made way for a new one in between.
    let long = vec![b'a'; usize::try_from(LOG_BYTES_MAX).unwrap()];
    let stated = write(folder.path(), &path, &long).unwrap();
    write(folder.path(), &path, b"new").unwrap();
    forget_unstated(&path, stated).unwrap();
    write(folder.path(), &path, b"new").unwrap();
    assert_eq!(std::fs::read(&path).unwrap(), b"new");
    // And over one that was gone when the next host looked.
    std::fs::remove_file(&path).unwrap();
    forget_unstated(&path, stated).unwrap();
}

#[tokio::test]
async fn what_was_dropped_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("server.log");
    let long = vec![b'a'; usize::try_from(LOG_BYTES_MAX).unwrap()];
    for _ in 0..3 {
        write(folder.path(), &path, &long).unwrap();
    }
    write(folder.path(), &path, b"last").unwrap();
    let (pieces, reader) = mpsc::channel(PIECES_QUEUED_MAX);
    let (_told, changes) = watch::channel(0);
    let task = tokio::spawn(copy(path, pieces, changes, Until::Now));
    let all = everything(reader).await;
    task.await.unwrap().unwrap();
    let mark = format!(
        "[box: {} bytes before this were dropped]\n",
        LOG_BYTES_MAX * 2
    );
    assert!(all.starts_with(mark.as_bytes()));
    assert_eq!(all.len(), mark.len() + long.len() + 4);
}

#[tokio::test]
async fn a_reader_that_is_overtaken_learns_how_much_it_missed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("server.log");
    let long = |byte: u8| vec![byte; usize::try_from(LOG_BYTES_MAX).unwrap()];
    write(folder.path(), &path, b"first").unwrap();
    let (pieces, mut reader) = mpsc::channel(PIECES_QUEUED_MAX);
    let (told, changes) = watch::channel(0);
    let task = tokio::spawn(copy(path.clone(), pieces, changes, Until::Left));
    assert_eq!(until(&mut reader, 5).await, b"first");
    // Three files later the rest of the first is gone, and all of the second.
    for byte in [b'a', b'b', b'c', b'd'] {
        write(folder.path(), &path, &long(byte)).unwrap();
    }
    told.send_modify(|count| *count += 1);
    let (mut all, mut last) = (b"first".to_vec(), 0);
    while last < long(b'd').len() {
        let piece = timeout(PATIENCE, reader.recv()).await.unwrap().unwrap();
        if !piece.starts_with(b"[box") {
            last += String::from_utf8_lossy(&piece).matches('d').count();
        }
        all.extend(piece);
    }
    // It may have read some of what followed before it was overtaken; what it did not is told.
    let text = String::from_utf8(all).unwrap();
    let (before, rest) = text.split_once("[box: ").unwrap();
    let (missed, rest) = rest
        .split_once(" bytes before this were dropped]\n")
        .unwrap();
    let missed: usize = missed.parse().unwrap();
    assert!(missed > 0);
    assert_eq!(before.len() + missed + rest.len(), 5 + long(b'a').len() * 4);
    drop(reader);
    timeout(PATIENCE, task).await.unwrap().unwrap().unwrap();
}

#[test]
fn a_host_that_dies_while_a_log_makes_way_drops_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("server.log");
    let long = vec![b'a'; usize::try_from(LOG_BYTES_MAX).unwrap()];
    for _ in 0..2 {
        write(folder.path(), &path, &long).unwrap();
    }
    // Noted, and not done.
    let which = std::fs::metadata(&path).unwrap().ino();
    let note = format!("{LOG_BYTES_MAX} {which}");
    std::fs::write(path.with_extension(DROPPED), note).unwrap();
    assert_eq!(Files::look(&path).unwrap().dropped, 0);
    write(folder.path(), &path, b"next").unwrap();
    assert_eq!(Files::look(&path).unwrap().dropped, LOG_BYTES_MAX);
}
