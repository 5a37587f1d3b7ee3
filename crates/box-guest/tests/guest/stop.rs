//! How a box ends.

use crate::house::command;
use crate::house::{House, in_time, read_output};

fn terminate(pid: i32) {
    let pid = rustix::process::Pid::from_raw(pid).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
}

#[tokio::test]
async fn a_stop_gives_processes_time_and_tells_their_end() {
    let mut house = House::start(&["--grace-ms", "20000"]);
    let script = "trap 'echo bye; exit 4' TERM; echo ready; while :; do :; done";
    house.spawn("agent", script).await;
    let mut attachment = house.attach("agent", 0, 0).await;
    read_output(&mut attachment, 6).await;
    terminate(house.guest_pid().unwrap());
    assert_eq!(
        read_output(&mut attachment, 100).await,
        (b"bye\n".to_vec(), Some(4))
    );
    assert_eq!(house.wait_for_end().await, 0);
}

#[tokio::test]
async fn a_stop_does_not_wait_longer_than_the_grace() {
    let mut house = House::start(&["--grace-ms", "100"]);
    house
        .spawn(
            "deaf",
            "trap '' TERM; echo ready; while :; do sleep 1000; done",
        )
        .await;
    read_output(&mut house.attach("deaf", 0, 0).await, 6).await;
    terminate(house.guest_pid().unwrap());
    assert_eq!(house.wait_for_end().await, 0);
}

#[tokio::test]
async fn nobody_inside_can_stop_the_box() {
    let house = House::start(&["--grace-ms", "1"]);
    assert_eq!(
        house
            .sh("kill -TERM 1; kill -KILL 1; kill -INT 1; kill -SEGV 1; true")
            .await
            .0,
        0
    );
    // The control is the test above: the same signal from outside stops it.
    assert_eq!(house.sh("echo still here").await.1, "still here\n");
}

#[tokio::test]
async fn without_a_listening_socket_it_says_so_and_ends() {
    let output = command(env!("CARGO_BIN_EXE_box-guest")).output();
    let output = in_time(async { output }).await.unwrap();
    assert_eq!(output.status.code(), Some(1));
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(said, "box-guest: descriptor 3 is not a listening socket\n");
}
