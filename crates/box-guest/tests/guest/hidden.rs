//! What an agent of the guest's own uid sees of pid 1: nothing.

use crate::house::{House, in_time, named, read_all, read_output, spec, terminal};
use box_runtime::guest::{Kill, command_of, kill, spawn};
use std::os::unix::fs::FileExt as _;

const AS_NOBODY: [&str; 5] = [
    "setpriv",
    "--reuid=65534",
    "--regid=65534",
    "--clear-groups",
    "--no-new-privs",
];

#[tokio::test]
async fn pid_1_shows_nothing_to_its_own_uid() {
    let house = House::start_as(&AS_NOBODY, &[]);
    assert_eq!(house.sh("id -u").await.1, "65534\n");
    house.spawn("sibling", "exec sleep 1000").await;
    for (what, read) in [
        ("environment", "cat /proc/PID/environ"),
        ("program", "readlink /proc/PID/exe"),
        ("memory map", "cat /proc/PID/maps"),
        ("memory", "exec 9</proc/PID/mem"),
        ("descriptors", "ls /proc/PID/fd"),
        ("folder", "readlink /proc/PID/cwd"),
    ] {
        let guest = house.sh(&read.replace("PID", "1")).await;
        assert!(guest.0 != 0 && guest.1.is_empty(), "{what}: {guest:?}");
        // The control: a process of the same uid that is not hidden.
        let sibling = house.sh(&read.replace("PID", "$(pgrep -x sleep)")).await;
        assert_eq!(sibling.0, 0, "{what}: {sibling:?}");
    }
}

#[tokio::test]
async fn commands_can_be_another_user_than_the_guest() {
    let house = House::start(&["--user", "65534:65533"]);
    let (code, shown, _) = house
        .sh("id -u; id -G; grep Cap /proc/self/status; kill -9 1")
        .await;
    let lines: Vec<&str> = shown.lines().collect();
    assert_eq!(lines[..2], ["65534", "65533"]);
    for capabilities in lines[2..].iter().filter(|line| !line.starts_with("CapBnd")) {
        assert!(capabilities.ends_with("\t0000000000000000"), "{shown}");
    }
    assert_ne!(code, 0);
    // The terminal belongs to whom it is for.
    let execution = house
        .exec(terminal(&["sh", "-c", "stat -c %u:%g $(tty)"]))
        .await
        .unwrap();
    let [outer]: [std::os::fd::OwnedFd; 1] = execution.streams.try_into().unwrap();
    assert_eq!(in_time(read_all(outer)).await.unwrap(), "65534:65533\r\n");
    // And the guest still rules over it.
    house.spawn("agent", "exec sleep 1000").await;
    kill(house.connect(), &named("agent"), Kill::Everything)
        .await
        .unwrap();
    let mut attachment = house.attach("agent", 0, 0).await;
    assert_eq!(read_output(&mut attachment, 1).await.1, Some(137));
}

#[tokio::test]
async fn a_variable_is_gone_from_the_guest_once_its_process_runs() {
    let house = House::start(&[]);
    // Not a constant in this program or its arguments in one piece; found by any copy.
    let letter = |at: u8| char::from(b'A' + (at * 5 + 3) % 26);
    let secret: String = (0..40).map(letter).collect();
    let mut asked = spec(&["sleep", "1000"]);
    asked.env = vec![("TOKEN".to_owned(), secret.clone())];
    let execution = house.exec(asked.clone()).await.unwrap();
    let command = command_of(asked).unwrap();
    spawn(house.connect(), &named("agent"), command)
        .await
        .unwrap();
    let guest = house.guest_pid().unwrap();
    assert!(
        !holds(guest, secret.as_bytes()),
        "the guest still holds the secret"
    );
    // The control: the process itself has it, and the search finds it.
    let (_, pid, _) = house.sh("pgrep -x sleep | head -1").await;
    let children = std::fs::read_to_string(format!("/proc/{guest}/task/{guest}/children")).unwrap();
    assert!(!pid.is_empty());
    assert!(
        children
            .split_whitespace()
            .any(|pid| holds(pid.parse().unwrap(), secret.as_bytes()))
    );
    drop(execution);
}

/// Whether any writable memory of a process holds these bytes.
fn holds(pid: i32, wanted: &[u8]) -> bool {
    let maps = std::fs::read_to_string(format!("/proc/{pid}/maps")).unwrap();
    let memory = std::fs::File::open(format!("/proc/{pid}/mem")).unwrap();
    maps.lines()
        .filter(|line| line.contains(" rw"))
        .any(|line| {
            let range = line.split(' ').next().unwrap().split_once('-').unwrap();
            let [start, end] = [range.0, range.1].map(|hex| u64::from_str_radix(hex, 16).unwrap());
            let mut bytes = vec![0; usize::try_from(end - start).unwrap()];
            // Some ranges are the kernel's own and cannot be read.
            memory.read_exact_at(&mut bytes, start).is_ok()
                && bytes.windows(wanted.len()).any(|window| window == wanted)
        })
}
