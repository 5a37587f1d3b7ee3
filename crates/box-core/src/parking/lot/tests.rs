//! Who goes on, when, and who waits.

use super::*;

const NOW_MS: i64 = 1_000_000_000;

fn entry(number: u8, account: &str, until_ms: Option<i64>) -> Entry {
    Entry {
        thread: ThreadId::from_random([number; 10]),
        why: Parking::Limit,
        until_ms,
        since_ms: i64::from(number),
        account: account.to_owned(),
        rank: 1,
    }
}

fn id(number: u8) -> ThreadId {
    ThreadId::from_random([number; 10])
}

#[test]
fn one_of_an_account_goes_on_at_a_time_the_important_first() {
    let mut lot = Lot::default();
    let mut entries = vec![
        entry(1, "a", Some(NOW_MS)),
        entry(2, "a", Some(NOW_MS - 5)),
        entry(3, "a", Some(NOW_MS - 9)),
        entry(4, "b", Some(NOW_MS)),
    ];
    entries[2].rank = 0;
    entries[0].rank = 2;
    let look = lot.look(&entries, NOW_MS);
    assert_eq!(look.go_on, [id(3), id(4)]);
    assert_eq!(look.wait_ms, STAGGER_MS.min(LOOK_MS));
    entries.retain(|entry| !look.go_on.contains(&entry.thread));
    assert_eq!(lot.look(&entries, NOW_MS + STAGGER_MS - 1).go_on, []);
    assert_eq!(lot.look(&entries, NOW_MS + STAGGER_MS).go_on, [id(2)]);
    entries.remove(1);
    assert_eq!(lot.look(&entries, NOW_MS + 2 * STAGGER_MS).go_on, [id(1)]);
}

#[test]
fn nobody_goes_on_before_the_time_or_without_one() {
    let mut lot = Lot::default();
    let entries = [entry(1, "a", Some(NOW_MS + 700)), entry(2, "b", None)];
    assert_eq!(
        lot.look(&entries, NOW_MS),
        Look {
            go_on: vec![],
            wait_ms: 700
        }
    );
    assert_eq!(lot.look(&entries, NOW_MS + 700).go_on, [id(1)]);
    assert_eq!(lot.look(&[], NOW_MS).wait_ms, LOOK_MS);
}

#[test]
fn a_limit_that_is_not_over_is_not_tried_by_everybody() {
    let mut lot = Lot::default();
    let waiting = entry(2, "a", Some(NOW_MS));
    let first = lot.look(&[entry(1, "a", Some(NOW_MS)), waiting.clone()], NOW_MS);
    assert_eq!(first.go_on, [id(1)]);
    let mut again = entry(1, "a", Some(NOW_MS + 3_600_000));
    again.since_ms = NOW_MS + 2000;
    let parked = [again.clone(), waiting.clone()];
    assert_eq!(lot.look(&parked, NOW_MS + STAGGER_MS).go_on, []);
    assert_eq!(lot.look(&parked, NOW_MS + RETRY_MS - 1).go_on, []);
    assert_eq!(lot.look(&parked, NOW_MS + RETRY_MS).go_on, [id(2)]);
}

#[test]
fn a_clock_that_was_put_back_holds_nobody() {
    let mut lot = Lot::default();
    lot.look(&[entry(1, "a", Some(0))], NOW_MS);
    let back = NOW_MS - 86_400_000;
    assert_eq!(lot.look(&[entry(2, "a", Some(0))], back).go_on, [id(2)]);
}
