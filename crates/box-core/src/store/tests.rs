//! The database under stress: crashes, newer layouts, groups.

use super::*;
use tokio::time::{Instant, timeout};

const PATIENCE: Duration = Duration::from_secs(30);
/// Set in the process that dies inside a transaction, see [`a_crash_inside_a_transaction_undoes_it`].
const CRASH_IN: &str = "BOX_TEST_CRASH_IN";

async fn count(store: &Store) -> i64 {
    store
        .read(|c| c.query_row("SELECT count(*) FROM credentials", [], |row| row.get(0)))
        .await
        .unwrap()
}

fn insert(number: usize) -> impl FnOnce(&Transaction<'_>) -> rusqlite::Result<usize> + Send {
    move |transaction| {
        transaction.execute(
            "INSERT INTO credentials (owner, kind, name, prefix, chars, added_at_ms) \
             VALUES ('uid:0', 'claude', ?1, 'sk-', 20, 0)",
            [format!("n{number}")],
        )
    }
}

#[tokio::test]
async fn what_is_answered_is_there_whatever_its_durability() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(&folder.path().join("box.db")).unwrap();
    for (number, durability) in [Durability::Grouped, Durability::Prompt, Durability::Full]
        .into_iter()
        .enumerate()
    {
        store.write(durability, insert(number)).await.unwrap();
        assert_eq!(
            count(&store).await,
            i64::try_from(number).unwrap() + 1,
            "{durability:?}"
        );
    }
}

#[tokio::test]
async fn a_change_that_fails_undoes_only_itself() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(&folder.path().join("box.db")).unwrap();
    let failing = |transaction: &Transaction<'_>| {
        insert(1)(transaction)?;
        transaction.execute("INSERT INTO no_such_table VALUES (1)", [])
    };
    // All three are in one group: they are sent before the first is answered.
    let (one, two, three) = tokio::join!(
        store.write(Durability::Grouped, insert(0)),
        store.write(Durability::Grouped, failing),
        store.write(Durability::Grouped, insert(2)),
    );
    assert!(one.is_ok() && three.is_ok());
    assert!(matches!(two, Err(StoreError::Sql(_))), "{two:?}");
    assert_eq!(count(&store).await, 2);
}

#[tokio::test]
async fn a_prompt_change_does_not_wait_for_the_group() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(&folder.path().join("box.db")).unwrap();
    // A thousand groups of their own would take twenty seconds.
    let began = Instant::now();
    for number in 0..200 {
        store
            .write(Durability::Prompt, insert(number))
            .await
            .unwrap();
    }
    assert!(
        began.elapsed() < Duration::from_secs(4),
        "{:?}",
        began.elapsed()
    );
}

#[tokio::test]
async fn many_writers_lose_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(&folder.path().join("box.db")).unwrap();
    let mut writers = tokio::task::JoinSet::new();
    for number in 0..2000 {
        let store = store.clone();
        let durability = match number % 50 {
            0 => Durability::Full,
            1 => Durability::Prompt,
            _ => Durability::Grouped,
        };
        writers.spawn(async move { store.write(durability, insert(number)).await });
    }
    let all = async {
        while let Some(done) = writers.join_next().await {
            done.unwrap().unwrap();
        }
    };
    timeout(PATIENCE, all).await.unwrap();
    assert_eq!(count(&store).await, 2000);
}

#[tokio::test]
async fn a_newer_database_is_refused_and_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("box.db");
    drop(Store::open(&path).unwrap());
    let newer = i64::try_from(schema::STEPS.len()).unwrap() + 1;
    let connection = Connection::open(&path).unwrap();
    connection
        .pragma_update(None, "user_version", newer)
        .unwrap();
    match Store::open(&path) {
        Err(StoreError::Newer { found, known }) => assert_eq!((found, known), (newer, newer - 1)),
        other => panic!("{other:?}"),
    }
    let now: i64 = connection
        .pragma_query_value(None, "user_version", |row| row.get(0))
        .unwrap();
    assert_eq!(now, newer);
}

#[test]
fn steps_are_taken_once_and_in_order() {
    let mut connection = Connection::open_in_memory().unwrap();
    let one = "CREATE TABLE a (n INTEGER); INSERT INTO a VALUES (1);";
    let two = "UPDATE a SET n = n * 10 + 2;";
    let three = "UPDATE a SET n = n * 10 + 3;";
    schema::upgrade(&mut connection, &[one]).unwrap();
    schema::upgrade(&mut connection, &[one, two, three]).unwrap();
    schema::upgrade(&mut connection, &[one, two, three]).unwrap();
    let n: i64 = connection
        .query_row("SELECT n FROM a", [], |row| row.get(0))
        .unwrap();
    assert_eq!(n, 123);
}

#[test]
fn a_step_that_fails_leaves_the_one_before() {
    let mut connection = Connection::open_in_memory().unwrap();
    let broken = "CREATE TABLE b (n INTEGER); INSERT INTO nowhere VALUES (1);";
    let failed = schema::upgrade(&mut connection, &["CREATE TABLE a (n INTEGER);", broken]);
    assert!(
        matches!(failed, Err(StoreError::Step { step: 2, .. })),
        "{failed:?}"
    );
    let at: i64 = connection
        .pragma_query_value(None, "user_version", |row| row.get(0))
        .unwrap();
    assert_eq!(at, 1);
    assert!(connection.prepare("SELECT * FROM b").is_err());
    schema::upgrade(&mut connection, &["", "CREATE TABLE b (n INTEGER);"]).unwrap();
}

/// The part of the test below that dies: one change answered, one inside its transaction.
#[tokio::test]
async fn crash_inside_a_transaction() {
    let Some(path) = std::env::var_os(CRASH_IN) else {
        return;
    };
    let store = Store::open(Path::new(&path)).unwrap();
    store.write(Durability::Prompt, insert(1)).await.unwrap();
    let died = store.write(Durability::Prompt, |transaction| {
        insert(2)(transaction)?;
        std::process::abort();
        #[expect(unreachable_code, reason = "gives the closure its type")]
        Ok(())
    });
    drop(died.await);
}

#[tokio::test]
#[expect(
    clippy::disallowed_methods,
    reason = "this test is about the death of a process"
)]
async fn a_crash_inside_a_transaction_undoes_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("box.db");
    let died = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "store::tests::crash_inside_a_transaction"])
        .env(CRASH_IN, &path)
        .output()
        .unwrap();
    assert!(!died.status.success(), "it was to die: {died:?}");
    let store = Store::open(&path).unwrap();
    assert_eq!(count(&store).await, 1);
    store.write(Durability::Full, insert(3)).await.unwrap();
    assert_eq!(count(&store).await, 2);
}

#[tokio::test]
async fn a_full_disk_is_told_and_what_was_there_stays() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(&folder.path().join("box.db")).unwrap();
    store.write(Durability::Full, insert(1)).await.unwrap();
    // As full as a disk can be without filling one: no page more than there are.
    let limit = |pages: i64| {
        store.write(Durability::Prompt, move |transaction| {
            let pragma = format!("PRAGMA max_page_count = {pages}");
            transaction.query_row(&pragma, [], |row| row.get::<_, i64>(0))
        })
    };
    limit(1).await.unwrap();
    let large = |number: usize| {
        move |transaction: &Transaction<'_>| {
            insert(number)(transaction)?;
            transaction.execute(
                "UPDATE credentials SET kind = ?1 WHERE name = ?2",
                ("x".repeat(1 << 20), format!("n{number}")),
            )
        }
    };
    let (one, two) = tokio::join!(
        store.write(Durability::Grouped, large(2)),
        store.write(Durability::Grouped, large(3)),
    );
    for failed in [one, two] {
        assert!(
            matches!(failed, Err(StoreError::DiskFull(_) | StoreError::Undone)),
            "{failed:?}"
        );
    }
    assert_eq!(count(&store).await, 1);
    limit(1 << 30).await.unwrap();
    store.write(Durability::Grouped, large(4)).await.unwrap();
    assert_eq!(count(&store).await, 2);
}

#[test]
fn boxes_of_the_second_layout_keep_all_that_refers_to_them() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("box.db");
    let mut connection = Connection::open(&path).unwrap();
    prepare(&connection).unwrap();
    schema::upgrade(&mut connection, &schema::STEPS[..2]).unwrap();
    let insert = "INSERT INTO boxes VALUES ('aaaaaaaaaaaaaaaa', 'uid:0', 'demo', NULL, 'running', \
                  'native', 'default', 'sha256:x', 'locked', 'open', '{}', '[]', 2000000000, 1, 1, \
                  NULL); \
                  INSERT INTO placeholders VALUES ('aaaaaaaaaaaaaaaa', 'claude', 'default', 'p', 1);";
    connection.execute_batch(insert).unwrap();
    schema::upgrade(&mut connection, schema::STEPS).unwrap();
    let count = |table: &str| -> i64 {
        let sql = format!("SELECT count(*) FROM {table}");
        connection.query_row(&sql, [], |row| row.get(0)).unwrap()
    };
    assert_eq!((count("boxes"), count("placeholders")), (1, 1));
    connection
        .execute("UPDATE boxes SET state = 'trashed'", [])
        .unwrap();
    // And the reference still holds.
    connection.execute("DELETE FROM boxes", []).unwrap();
    assert_eq!(count("placeholders"), 0);
}
