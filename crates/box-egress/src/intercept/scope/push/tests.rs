//! Lists of commands: what is read, what is not, and that nothing makes the reader trip.

use super::*;
use crate::intercept::scope::testing::Dice;

const A: &str = "1111111111111111111111111111111111111111";
const B: &str = "2222222222222222222222222222222222222222";
const NONE: &str = "0000000000000000000000000000000000000000";

fn list(lines: &[&[u8]]) -> Vec<u8> {
    let mut bytes: Vec<u8> = lines.iter().flat_map(|data| line(data)).collect();
    bytes.extend_from_slice(FLUSH);
    bytes
}

fn text(old: &str, new: &str, name: &str) -> String {
    format!("{old} {new} {name}")
}

#[test]
fn commands_are_read_with_what_the_client_can() {
    let first = text(A, B, "refs/heads/x") + "\0 report-status side-band-64k agent=git/2";
    let second = text(NONE, B, "refs/tags/v1") + "\n";
    let mut bytes = list(&[first.as_bytes(), second.as_bytes()]);
    let end = bytes.len();
    bytes.extend_from_slice(b"PACK");
    let push = read(&bytes).unwrap().unwrap();
    assert_eq!(push.pack_at, end);
    let names: Vec<&str> = push.commands.iter().map(|one| one.name.as_str()).collect();
    assert_eq!(names, ["refs/heads/x", "refs/tags/v1"]);
    assert_eq!(push.commands[1].old, Oid::ZERO);
    assert!(push.report.is_wanted && push.report.in_bands);
    // However the bytes are cut, it is the same list.
    for cut in 0..end {
        assert_eq!(read(&bytes[..cut]), Ok(None), "{cut}");
    }
}

#[test]
fn probe_options_and_shallow_lines_are_understood() {
    let probe = read(FLUSH).unwrap().unwrap();
    assert_eq!((probe.commands.len(), probe.pack_at), (0, 4));
    let first = text(A, B, "refs/heads/x") + "\0push-options";
    let shallow = format!("shallow {A}");
    let mut bytes = list(&[shallow.as_bytes(), first.as_bytes()]);
    assert_eq!(read(&bytes), Ok(None), "the options are missing");
    bytes.extend(list(&[b"ci.skip"]));
    assert_eq!(read(&bytes).unwrap().unwrap().pack_at, bytes.len());
}

#[test]
fn what_could_be_read_in_two_ways_is_no_push() {
    let command = |name: &str| text(A, B, name);
    let once = command("refs/heads/x");
    let bad: [Vec<u8>; 12] = [
        list(&[once.as_bytes(), once.as_bytes()]),
        list(&[format!("push-cert\0{once}").as_bytes()]),
        list(&[b"push-cert"]),
        list(&[
            once.as_bytes(),
            (command("refs/heads/y") + "\0atomic").as_bytes(),
        ]),
        list(&[(once.clone() + "\0object-format=sha256").as_bytes()]),
        list(&[text(NONE, NONE, "refs/heads/x").as_bytes()]),
        list(&[text(&A[1..], B, "refs/heads/x").as_bytes()]),
        list(&[format!("{A}  {B} refs/heads/x").as_bytes()]),
        list(&[b"hello"]),
        b"0001".to_vec(),
        b"0004".to_vec(),
        b"zzzz".to_vec(),
    ];
    for bytes in bad {
        let shown = String::from_utf8_lossy(&bytes).into_owned();
        assert!(matches!(read(&bytes), Err(Why::Unclear(_))), "{shown}");
    }
}

#[test]
fn list_without_end_is_given_up() {
    let lines: Vec<Vec<u8>> = (0..=COMMANDS_MAX)
        .map(|n| text(A, B, &format!("refs/heads/{n}")).into_bytes())
        .collect();
    let lines: Vec<&[u8]> = lines.iter().map(Vec::as_slice).collect();
    assert!(read(&list(&lines)).is_err());
    let first = text(A, B, "refs/heads/x") + "\0push-options";
    let mut bytes = list(&[first.as_bytes()]);
    while bytes.len() <= COMMANDS_BYTES_MAX {
        bytes.extend(line(&vec![b'x'; 60_000]));
    }
    assert!(read(&bytes).is_err());
}

#[test]
fn random_bytes_never_trip_the_reader() {
    let mut dice = Dice::new(1);
    let first = text(A, B, "refs/heads/x") + "\0report-status push-options";
    let whole = [list(&[first.as_bytes()]), list(&[b"option"])].concat();
    for _ in 0..20_000 {
        let mut bytes = whole.clone();
        for _ in 0..dice.below(6) {
            let at = dice.below(bytes.len());
            bytes[at] = dice.byte();
        }
        bytes.truncate(dice.below(bytes.len() + 1));
        if let Ok(Some(push)) = read(&bytes) {
            assert!(push.pack_at <= bytes.len());
        }
        let noise: Vec<u8> = (0..dice.below(80)).map(|_| dice.byte()).collect();
        drop(read(&noise));
    }
}
