//! Processes that outlive every connection.

use crate::house::{House, NO_SLEEPER, in_time, named, read_output};
use box_api::guest::SPOOL_BYTES_MAX;
use box_runtime::guest::{
    Command, Event, GuestError, Kill, Offsets, Refusal, Stream, attach, forget, kill, list, spawn,
};

#[tokio::test]
async fn output_survives_lost_connections_with_no_byte_lost_or_doubled() {
    let house = House::start(&[]);
    house.spawn("agent", "seq 1 200000; echo done >&2").await;
    let wanted: Vec<u8> = (1..=200_000)
        .flat_map(|number: u32| format!("{number}\n").into_bytes())
        .collect();
    let mut got: Vec<u8> = Vec::new();
    let mut ended = None;
    let mut round = 0;
    while ended.is_none() {
        // What was received is kept here; only part of it was acknowledged when the line is cut.
        let mut attachment = house.attach("agent", got.len() as u64, 0).await;
        assert_eq!(attachment.state.stdout_from, got.len() as u64);
        let (bytes, code) = read_output(&mut attachment, 200_000).await;
        got.extend(bytes);
        attachment
            .acks
            .ack(Stream::Stdout, got.len() as u64 - round % 3);
        ended = code;
        round += 1;
    }
    assert!(round > 3);
    assert_eq!(ended, Some(0));
    assert!(got == wanted, "the output is not the same");
}

#[tokio::test]
async fn a_full_spool_makes_the_process_wait_and_an_ack_lets_it_go_on() {
    let house = House::start(&[]);
    let total = 20 << 20;
    house
        .spawn(
            "flood",
            &format!("head -c {total} /dev/zero; echo over >&2"),
        )
        .await;
    let mut attachment = house.attach("flood", 0, 0).await;
    let (first, _) = read_output(&mut attachment, SPOOL_BYTES_MAX).await;
    assert_eq!(first.len(), SPOOL_BYTES_MAX);
    let info = list(house.connect()).await.unwrap().remove(0);
    assert_eq!(
        (info.stdout.start, info.stdout.end),
        (0, SPOOL_BYTES_MAX as u64)
    );
    assert_eq!((info.code, info.stderr.end), (None, 0));
    let mut got = SPOOL_BYTES_MAX as u64;
    let code = loop {
        attachment.acks.ack(Stream::Stdout, got);
        match in_time(attachment.events.next()).await.unwrap() {
            Event::Output {
                stream: Stream::Stdout,
                bytes,
                ..
            } => got += bytes.len() as u64,
            Event::Ended { code } => break code,
            Event::Output { .. } | Event::Input(_) | Event::Displaced => {}
        }
    };
    assert_eq!((got, code), (total, 0));
}

#[tokio::test]
async fn input_is_taken_once_however_often_it_is_sent() {
    let house = House::start(&[]);
    house.spawn("cat", "cat").await;
    let mut first = house.attach("cat", 0, 0).await;
    first.input.send(0, b"hello ".to_vec()).await.unwrap();
    let (got, _) = read_output(&mut first, 6).await;
    assert_eq!(got, b"hello ");
    drop(first);
    // A new host sends its message again, and goes on.
    let mut second = house.attach("cat", 6, 0).await;
    assert_eq!(second.state.input.taken, 6);
    second.input.send(0, b"hello ".to_vec()).await.unwrap();
    second.input.send(3, b"lo box\n".to_vec()).await.unwrap();
    let gap = second.input.send(100, b"x".to_vec()).await;
    assert!(matches!(
        gap,
        Err(GuestError::InputGap {
            wanted: 10,
            got: 100
        })
    ));
    let (got, _) = read_output(&mut second, 4).await;
    assert_eq!(got, b"box\n");
    second.input.close().await.unwrap();
    assert_eq!(
        read_output(&mut house.attach("cat", 10, 0).await, 1).await,
        (Vec::new(), Some(0))
    );
}

#[tokio::test]
async fn input_waits_for_a_process_that_does_not_read_and_all_of_it_arrives() {
    let house = House::start(&[]);
    let total = 5 << 20;
    house
        .spawn("slow", &format!("read go; head -c {total} | cksum"))
        .await;
    let mut attachment = house.attach("slow", 0, 0).await;
    let mut bytes = b"go\n".to_vec();
    bytes.extend((0..total).map(|at| u8::try_from(at % 251).unwrap()));
    let (mut expected_in, expected_out) = (bytes[3..].to_vec(), attachment.input.send(0, bytes));
    in_time(expected_out).await.unwrap();
    let (got, _) = read_output(&mut attachment, 1).await;
    let expected = checksum(&mut expected_in);
    assert_eq!(String::from_utf8(got).unwrap(), expected);
}

fn checksum(bytes: &mut [u8]) -> String {
    use std::io::Write as _;
    let mut child = crate::house::command("cksum")
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(bytes).unwrap();
    String::from_utf8(child.wait_with_output().unwrap().stdout).unwrap()
}

#[tokio::test]
async fn acks_pass_input_that_waits() {
    let house = House::start(&[]);
    // Writes more than a spool before it reads: without acknowledgements nobody would get on.
    house
        .spawn("talker", "head -c 12000000 /dev/zero; wc -c")
        .await;
    let mut attachment = house.attach("talker", 0, 0).await;
    attachment.input.send(0, vec![b'x'; 4 << 20]).await.unwrap();
    attachment.input.close().await.unwrap();
    let mut got = Vec::new();
    let code = loop {
        match in_time(attachment.events.next()).await.unwrap() {
            Event::Output {
                stream: Stream::Stdout,
                offset,
                bytes,
            } => {
                attachment
                    .acks
                    .ack(Stream::Stdout, offset + bytes.len() as u64);
                got.extend(bytes);
            }
            Event::Ended { code } => break code,
            Event::Output { .. } | Event::Input(_) | Event::Displaced => {}
        }
    };
    assert_eq!(code, 0);
    assert_eq!(&got[12_000_000..], b"4194304\n");
}

#[tokio::test]
async fn a_new_attachment_displaces_the_one_before() {
    let house = House::start(&[]);
    house.spawn("cat", "cat").await;
    let mut first = house.attach("cat", 0, 0).await;
    let mut second = house.attach("cat", 0, 0).await;
    assert_eq!(
        in_time(first.events.next()).await.unwrap(),
        Event::Displaced
    );
    second.input.send(0, b"x".to_vec()).await.unwrap();
    assert_eq!(read_output(&mut second, 1).await.0, b"x");
}

#[tokio::test]
async fn the_end_is_told_although_a_leftover_holds_the_pipe() {
    let house = House::start(&[]);
    house
        .spawn("agent", "sleep 1000 & echo last words; exit 3")
        .await;
    let mut attachment = house.attach("agent", 0, 0).await;
    assert_eq!(
        read_output(&mut attachment, 100).await,
        (b"last words\n".to_vec(), Some(3))
    );
}

#[tokio::test]
async fn killing_everything_finds_what_left_the_session_and_its_parent() {
    let house = House::start(&[]);
    let script = "setsid sh -c 'sleep 1000 & exec sleep 1000' & (setsid sleep 1000 &)
        until [ $(pgrep -c -x sleep) = 3 ]; do :; done; echo ready; wait";
    house.spawn("agent", script).await;
    let mut attachment = house.attach("agent", 0, 0).await;
    read_output(&mut attachment, 6).await;
    // The positive control: a signal to the session alone leaves them.
    kill(house.connect(), &named("agent"), Kill::Signal(9))
        .await
        .unwrap();
    assert_eq!(read_output(&mut attachment, 1).await.1, Some(137));
    assert_eq!(house.sh("pgrep -c -x sleep").await.1, "3\n");
    kill(house.connect(), &named("agent"), Kill::Everything)
        .await
        .unwrap();
    assert_eq!(in_time(house.sh(NO_SLEEPER)).await.1, "gone\n");
}

#[tokio::test]
async fn names_are_kept_until_forgotten() {
    let house = House::start(&[]);
    house.spawn("one", "read line; exit 5").await;
    let again = spawn(house.connect(), &named("one"), sleeper()).await;
    assert_eq!(refusal(again), Refusal::Exists);
    assert_eq!(
        refusal(forget(house.connect(), &named("one")).await),
        Refusal::Running
    );
    assert_eq!(
        refusal(forget(house.connect(), &named("two")).await),
        Refusal::NotFound
    );
    let mut attachment = house.attach("one", 0, 0).await;
    attachment.input.send(0, b"\n".to_vec()).await.unwrap();
    assert_eq!(read_output(&mut attachment, 1).await.1, Some(5));
    let listed = list(house.connect()).await.unwrap();
    assert_eq!((listed.len(), listed[0].code), (1, Some(5)));
    forget(house.connect(), &named("one")).await.unwrap();
    assert_eq!(list(house.connect()).await.unwrap(), []);
    // Whoever was attached to it is let go.
    assert!(matches!(
        in_time(attachment.events.next()).await,
        Err(GuestError::Gone)
    ));
    let gone = attach(house.connect(), &named("one"), Offsets::default()).await;
    assert_eq!(refusal(gone), Refusal::NotFound);
}

#[tokio::test]
async fn a_process_that_cannot_start_leaves_no_record() {
    let house = House::start(&[]);
    let mut command = sleeper();
    command.arguments[0] = "no-such-program".to_owned();
    let refused = spawn(house.connect(), &named("one"), command.clone()).await;
    assert_eq!(refusal(refused), Refusal::NoProgram);
    command.arguments[0] = "/etc/passwd".to_owned();
    let refused = spawn(house.connect(), &named("one"), command).await;
    assert_eq!(refusal(refused), Refusal::CannotRun);
    assert_eq!(list(house.connect()).await.unwrap(), []);
}

#[tokio::test]
async fn output_that_does_not_exist_yet_cannot_be_asked_for() {
    let house = House::start(&[]);
    house.spawn("cat", "cat").await;
    let refused = attach(
        house.connect(),
        &named("cat"),
        Offsets {
            stdout: 1,
            stderr: 0,
        },
    )
    .await;
    assert_eq!(refusal(refused), Refusal::Offset);
}

fn sleeper() -> Command {
    Command {
        arguments: vec!["sleep".to_owned(), "1000".to_owned()],
        folder: "/".to_owned(),
        variables: Vec::new(),
    }
}

fn refusal<T>(result: Result<T, GuestError>) -> Refusal {
    match result {
        Err(GuestError::Refused { why, .. }) => why,
        Err(other) => panic!("{other}"),
        Ok(_) => panic!("was not refused"),
    }
}
