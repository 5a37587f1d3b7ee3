//! Commands that live as long as their connection.

use crate::house::{House, NO_SLEEPER, finish, in_time, read_all, spec, terminal};
use box_runtime::ExecSpec;
use box_runtime::guest::{CommandError, GuestError};
use std::io::{Read as _, Write as _};
use std::os::fd::OwnedFd;

#[tokio::test]
async fn codes_are_what_a_shell_would_say() {
    let house = House::start(&[]);
    for (script, code) in [
        ("exit 0", 0),
        ("exit 1", 1),
        ("exit 255", 255),
        ("kill -TERM $$", 143),
    ] {
        assert_eq!(house.sh(script).await.0, code, "{script}");
    }
    let (code, _, stderr) = finish(house.exec(spec(&["no-such-program"])).await.unwrap()).await;
    assert_eq!(
        (code, stderr.as_str()),
        (127, "box: could not run `no-such-program`: not found\n")
    );
    let (code, _, stderr) = finish(house.exec(spec(&["/etc/passwd"])).await.unwrap()).await;
    assert_eq!(
        (code, stderr.as_str()),
        (126, "box: could not run `/etc/passwd`: permission denied\n")
    );
    let nowhere = ExecSpec {
        cwd: Some("/nowhere".to_owned()),
        ..spec(&["true"])
    };
    let (code, _, stderr) = finish(house.exec(nowhere).await.unwrap()).await;
    assert_eq!(code, 126);
    assert!(
        stderr.starts_with("box: could not enter folder `/nowhere`"),
        "{stderr}"
    );
}

#[tokio::test]
async fn a_command_gets_its_streams_its_folder_and_its_variables() {
    let house = House::start(&[]);
    let mut asked = spec(&[
        "sh",
        "-c",
        "cat; pwd; echo $FROM_THE_BOX $OWN >&2; env -0 | wc -c >/dev/null",
    ]);
    asked.cwd = Some("/usr".to_owned());
    asked.env = vec![("OWN".to_owned(), "of this command".to_owned())];
    let execution = house.exec(asked).await.unwrap();
    let [stdin, stdout, stderr]: [OwnedFd; 3] = execution.streams.try_into().unwrap();
    std::fs::File::from(stdin).write_all(b"typed\n").unwrap();
    assert_eq!(in_time(read_all(stdout)).await.unwrap(), "typed\n/usr\n");
    assert_eq!(
        in_time(read_all(stderr)).await.unwrap(),
        "yes of this command\n"
    );
    assert_eq!(in_time(execution.process.wait()).await.unwrap(), 0);
    // A second wait has the same answer.
    assert_eq!(in_time(execution.process.wait()).await.unwrap(), 0);
}

#[tokio::test]
async fn a_path_of_the_request_decides_where_programs_are() {
    let house = House::start(&[]);
    let mut asked = spec(&["true"]);
    asked.env = vec![("PATH".to_owned(), "/nowhere".to_owned())];
    assert_eq!(
        finish(house.exec(asked.clone()).await.unwrap()).await.0,
        127
    );
    asked.env[0].1 = "/nowhere:/usr/bin:/bin".to_owned();
    assert_eq!(finish(house.exec(asked).await.unwrap()).await.0, 0);
}

#[tokio::test]
async fn a_terminal_is_the_commands_own() {
    let house = House::start(&[]);
    let script = "tty; stty size; test -t 0 && test -t 1 && test -t 2 && echo all; ps -o tty= -p $$; echo $TERM";
    let execution = house.exec(terminal(&["sh", "-c", script])).await.unwrap();
    let [outer]: [OwnedFd; 1] = execution.streams.try_into().unwrap();
    let shown = in_time(read_all(outer)).await.unwrap();
    let lines: Vec<&str> = shown.lines().collect();
    assert!(lines[0].starts_with("/dev/pts/"), "{shown}");
    assert_eq!(lines[1..3], ["33 77", "all"]);
    assert_eq!(format!("/dev/{}", lines[3].trim()), lines[0]);
    assert_eq!(lines[4], "xterm-256color");
    assert_eq!(in_time(execution.process.wait()).await.unwrap(), 0);
}

#[tokio::test]
async fn control_c_typed_at_a_terminal_interrupts() {
    let house = House::start(&[]);
    let execution = house.exec(terminal(&["cat"])).await.unwrap();
    let [outer]: [OwnedFd; 1] = execution.streams.try_into().unwrap();
    let mut outer = std::fs::File::from(outer);
    outer.write_all(b"x\n").unwrap();
    let mut echoed_and_answered = [0; 6];
    outer.read_exact(&mut echoed_and_answered).unwrap();
    outer.write_all(b"\x03").unwrap();
    assert_eq!(in_time(execution.process.wait()).await.unwrap(), 130);
}

#[tokio::test]
async fn signals_reach_the_whole_process_group() {
    let house = House::start(&[]);
    let inner = "trap 'exit 8' TERM; sleep 1000 &
        until pgrep -x sleep >/dev/null; do :; done; echo ready; wait";
    let outer = "trap 'exit 7' TERM; sh -c \"$0\" & wait; wait";
    let execution = house.exec(spec(&["sh", "-c", outer, inner])).await.unwrap();
    let [_stdin, stdout, _stderr]: [OwnedFd; 3] = execution.streams.try_into().unwrap();
    let mut ready = [0; 6];
    std::fs::File::from(stdout).read_exact(&mut ready).unwrap();
    execution.process.signal(15).await.unwrap();
    assert_eq!(in_time(execution.process.wait()).await.unwrap(), 7);
    // After its end a signal changes nothing.
    execution.process.signal(15).await.unwrap();
    assert_eq!(in_time(house.sh(NO_SLEEPER)).await.1, "gone\n");
}

#[tokio::test]
async fn a_command_dies_with_its_connection_and_so_does_its_session() {
    let house = House::start(&[]);
    // `set -m` puts the sleeper into a process group of its own within the session.
    let script = "set -m; sleep 1000 &
        until pgrep -x sleep >/dev/null; do :; done; echo ready; wait";
    let execution = house.exec(spec(&["sh", "-c", script])).await.unwrap();
    let [_stdin, stdout, _stderr]: [OwnedFd; 3] = execution.streams.try_into().unwrap();
    let mut stdout = std::fs::File::from(stdout);
    let mut ready = [0; 6];
    stdout.read_exact(&mut ready).unwrap();
    assert_eq!(house.sh("pgrep -x sleep >/dev/null").await.0, 0);
    drop(execution.process);
    // Its pipe ends when the last of the session is gone.
    let rest = in_time(read_all(stdout.into())).await.unwrap();
    assert_eq!(rest, "");
    assert_eq!(in_time(house.sh(NO_SLEEPER)).await.1, "gone\n");
}

#[tokio::test]
async fn no_command_inherits_anything_of_the_guest() {
    let house = House::start(&[]);
    house.spawn("other", "sleep 1000").await;
    let _attached = house.attach("other", 0, 0).await;
    let (_, fds, _) = house
        .sh("ls /proc/self/fd; grep -E '^Sig(Blk|Ign)' /proc/self/status")
        .await;
    // 3 is the folder `ls` itself reads.
    assert_eq!(
        fds,
        "0\n1\n2\n3\nSigBlk:\t0000000000000000\nSigIgn:\t0000000000000000\n"
    );
}

#[tokio::test]
async fn commands_that_break_a_limit_are_refused_before_they_are_sent() {
    let house = House::start(&[]);
    let refused = house.exec(spec(&["true", &"x".repeat(200_000)])).await;
    assert!(matches!(
        refused,
        Err(GuestError::Command(CommandError::Argument))
    ));
}

#[tokio::test]
async fn sixty_commands_at_once_all_end() {
    let house = House::start(&[]);
    let mut all = Vec::new();
    for number in 0..60 {
        all.push(
            house
                .exec(spec(&["sh", "-c", &format!("exit {number}")]))
                .await
                .unwrap(),
        );
    }
    for (number, execution) in all.into_iter().enumerate() {
        let code = in_time(execution.process.wait()).await.unwrap();
        assert_eq!(code, i32::try_from(number).unwrap());
    }
}
