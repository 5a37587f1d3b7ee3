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
    let task = tokio::spawn(copy(path.clone(), pieces, changes, Follow::Yes));
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
    let task = tokio::spawn(copy(path, pieces, changes, Follow::No));
    assert_eq!(everything(reader).await, b"one\ntwo\n");
    task.await.unwrap().unwrap();
    assert_eq!(known(folder.path()).unwrap(), ["agent-1"]);
    assert!(known(&folder.path().join("none")).unwrap().is_empty());
}
