//! The sockets of a box, and that there is no other way out.

use crate::harness::Host;
use box_api::control::Profile;
use box_runtime::{BoxSockets, BoxSpec, Runtime as _, Transparent};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::{AsFd, OwnedFd};
use rustix::net::{RecvFlags, SendFlags, SocketAddrAny, SocketFlags};
use std::net::SocketAddr;

crate::claims!(
    every_port_of_the_range_leads_to_the_transparent_listener,
    nothing_else_leads_anywhere,
    dns_and_the_proxy_port_are_served_from_outside,
    nobody_in_the_box_can_take_the_place_of_our_sockets,
    own_servers_of_the_box_keep_their_ports,
    sockets_are_kept_for_the_next_egress,
    sockets_are_opened_anew_for_a_new_host,
);

fn every_port(sockets: &BoxSockets) -> &OwnedFd {
    match &sockets.transparent {
        Transparent::AllPorts(listener) => listener,
        Transparent::Two { .. } => panic!("this kernel has TPROXY, and it was not used"),
    }
}

fn await_readable(fd: impl AsFd) {
    let deadline = Timespec {
        tv_sec: 20,
        tv_nsec: 0,
    };
    assert_eq!(
        poll(&mut [PollFd::new(&fd, PollFlags::IN)], Some(&deadline)),
        Ok(1)
    );
}

fn accept(listener: &OwnedFd) -> (OwnedFd, SocketAddr, SocketAddr) {
    await_readable(listener);
    let (stream, peer) = rustix::net::acceptfrom_with(listener, SocketFlags::CLOEXEC).unwrap();
    let own = rustix::net::getsockname(&stream).unwrap();
    let address = |any: SocketAddrAny| SocketAddr::try_from(any).unwrap();
    (stream, address(own), address(peer.unwrap()))
}

/// Perl that connects, sends `hello` and prints what comes back.
fn talk(to: &str, port: u16) -> String {
    format!(
        "socket(my $s, AF_INET, SOCK_STREAM, 0) or die $!;
         connect($s, sockaddr_in({port}, inet_aton('{to}'))) or die $!;
         syswrite $s, 'hello'; shutdown $s, 1; print <$s>"
    )
}

/// Runs a client in the box while the listener is served by this test.
fn serve_one(
    host: &Host,
    spec: &BoxSpec,
    listener: &OwnedFd,
    client: &str,
) -> (SocketAddr, SocketAddr) {
    let listener = rustix::io::dup(listener).unwrap();
    let server = std::thread::spawn(move || {
        let (stream, own, peer) = accept(&listener);
        let mut bytes = [0; 16];
        await_readable(&stream);
        let (length, _) = rustix::net::recv(&stream, &mut bytes, RecvFlags::empty()).unwrap();
        assert_eq!(&bytes[..length], b"hello");
        rustix::net::send(&stream, b"served", SendFlags::empty()).unwrap();
        (own, peer)
    });
    assert_eq!(host.perl(spec, client), "served");
    server.join().unwrap()
}

fn every_port_of_the_range_leads_to_the_transparent_listener(host: &mut Host) {
    for profile in [Profile::Locked, Profile::Root] {
        let (spec, sockets) = host.running(profile);
        let cases = [
            ("198.18.5.5", 8443),
            ("198.18.0.16", 443),
            ("198.19.255.254", 80),
            ("198.18.7.9", 40000),
        ];
        for (to, port) in cases {
            let (own, peer) = serve_one(host, &spec, every_port(&sockets), &talk(to, port));
            assert_eq!(own, format!("{to}:{port}").parse().unwrap());
            assert_eq!(peer.ip().to_string(), "198.18.0.2");
        }
        let mapped = "socket(my $s, AF_INET6, SOCK_STREAM, 0) or die $!;
            connect($s, sockaddr_in6(443, Socket::inet_pton(AF_INET6, '::ffff:198.18.0.17'))) or die $!;
            syswrite $s, 'hello'; shutdown $s, 1; print <$s>";
        let (own, _) = serve_one(host, &spec, every_port(&sockets), mapped);
        assert_eq!(own, "198.18.0.17:443".parse().unwrap());
    }
}

fn nothing_else_leads_anywhere(host: &mut Host) {
    let (spec, sockets) = host.running(Profile::Root);
    let attempt = |to: &str, port: u16| {
        let program = format!(
            "socket(my $s, AF_INET, SOCK_STREAM, 0) or die $!;
             print connect($s, sockaddr_in({port}, inet_aton('{to}'))) ? 'connected' : $!"
        );
        host.perl(&spec, &program)
    };
    for to in [
        "1.1.1.1",
        "169.254.169.254",
        "172.17.0.1",
        "10.0.0.1",
        "192.168.0.1",
        "198.20.0.1",
    ] {
        assert_eq!(attempt(to, 443), "Network is unreachable", "{to}");
    }
    assert_eq!(attempt("127.0.0.1", 8080), "Connection refused");
    // The first /28 is ours and not redirected: only what we serve there answers.
    assert_eq!(attempt("198.18.0.3", 443), "Connection refused");
    assert_eq!(attempt("198.18.5.5", 443), "connected", "the control");
    drop(sockets);
    let v6 = "socket(my $s, AF_INET6, SOCK_STREAM, 0) or die $!;
        print connect($s, sockaddr_in6(443, Socket::inet_pton(AF_INET6, '2606:4700::1111'))) ? 'connected' : $!";
    assert_eq!(host.perl(&spec, v6), "Network is unreachable");
    let udp = "socket(my $s, AF_INET, SOCK_DGRAM, 0) or die $!;
        connect($s, sockaddr_in(443, inet_aton('198.18.5.5'))) or die $!;
        send $s, 'x', 0; sleep 0; print defined(recv($s, my $x, 1, 64)) ? 'got' : $!";
    assert_eq!(host.perl(&spec, udp), "Connection refused");
    let interfaces = host.ask(&spec, "cat /proc/net/dev");
    let names: Vec<&str> = interfaces
        .lines()
        .filter_map(|line| Some(line.split_once(':')?.0.trim()))
        .collect();
    assert_eq!(names, ["lo"]);
}

fn dns_and_the_proxy_port_are_served_from_outside(host: &mut Host) {
    let (spec, sockets) = host.running(Profile::Locked);
    let (own, _) = serve_one(host, &spec, &sockets.dns_tcp, &talk("198.18.0.1", 53));
    assert_eq!(own, "198.18.0.1:53".parse().unwrap());
    let (own, _) = serve_one(host, &spec, &sockets.proxy, &talk("127.0.0.1", 3128));
    assert_eq!(own, "127.0.0.1:3128".parse().unwrap());

    let socket = rustix::io::dup(&sockets.dns_udp).unwrap();
    let server = std::thread::spawn(move || {
        await_readable(&socket);
        let mut bytes = [0; 16];
        let (length, _, from) =
            rustix::net::recvfrom(&socket, &mut bytes, RecvFlags::empty()).unwrap();
        assert_eq!(&bytes[..length], b"query");
        rustix::net::sendto(&socket, b"answer", SendFlags::empty(), &from.unwrap()).unwrap();
    });
    let ask = "socket(my $s, AF_INET, SOCK_DGRAM, 0) or die $!;
        connect($s, sockaddr_in(53, inet_aton('198.18.0.1'))) or die $!;
        send $s, 'query', 0; recv($s, my $x, 16, 0); print $x";
    assert_eq!(host.perl(&spec, ask), "answer");
    server.join().unwrap();
}

/// Perl that binds with `SO_REUSEADDR` and `SO_REUSEPORT` set, and prints how that went.
fn bind(kind: &str, address: &str, port: u16) -> String {
    format!(
        "socket(my $s, AF_INET, {kind}, 0) or die $!;
         setsockopt($s, SOL_SOCKET, SO_REUSEADDR, 1) or die $!;
         setsockopt($s, SOL_SOCKET, SO_REUSEPORT, 1) or die $!;
         bind($s, sockaddr_in({port}, inet_aton('{address}'))) or do {{ print $!; exit }};
         if ({kind} == SOCK_STREAM) {{ listen($s, 1) or do {{ print $!; exit }} }}
         print 'bound'"
    )
}

fn nobody_in_the_box_can_take_the_place_of_our_sockets(host: &mut Host) {
    let (root, _kept) = host.running(Profile::Root);
    for address in ["198.18.0.1", "0.0.0.0"] {
        for (kind, port) in [
            ("SOCK_DGRAM", 53),
            ("SOCK_STREAM", 53),
            ("SOCK_STREAM", 3443),
        ] {
            let bound = host.perl(&root, &bind(kind, address, port));
            assert_eq!(bound, "Address already in use", "{kind} {address}:{port}");
        }
    }
    for address in ["127.0.0.1", "0.0.0.0"] {
        let bound = host.perl(&root, &bind("SOCK_STREAM", address, 3128));
        assert_eq!(bound, "Address already in use", "{address}:3128");
    }
    assert_eq!(
        host.perl(&root, &bind("SOCK_DGRAM", "198.18.0.2", 53)),
        "bound",
        "the control"
    );

    let (locked, _kept) = host.running(Profile::Locked);
    for port in [53, 80, 443] {
        let bound = host.perl(&locked, &bind("SOCK_STREAM", "127.0.0.1", port));
        assert_eq!(bound, "Permission denied", "{port}");
    }
    assert_eq!(
        host.perl(&locked, &bind("SOCK_STREAM", "127.0.0.1", 8080)),
        "bound",
        "the control"
    );
    // Neither the port limit nor the rules can be changed from inside.
    for spec in [&root, &locked] {
        host.refused(
            spec,
            "echo 0 >/proc/sys/net/ipv4/ip_unprivileged_port_start",
        );
        let transparent = "socket(my $s, AF_INET, SOCK_STREAM, 0) or die $!;
            print setsockopt($s, 0, 19, 1) ? 'set' : $!";
        assert_eq!(host.perl(spec, transparent), "Operation not permitted");
        let nft = "print socket(my $s, 16, 3, 12) ? 'opened' : $!";
        assert_eq!(host.perl(spec, nft), "Protocol not supported");
        let raw = "print socket(my $s, AF_INET, SOCK_RAW, 1) ? 'opened' : $!";
        assert_eq!(host.perl(spec, raw), "Operation not permitted");
        let route = "print socket(my $s, 16, 3, 0) ? 'opened' : $!";
        assert_eq!(
            host.perl(spec, route),
            "opened",
            "the control: getifaddrs(3) needs it"
        );
    }
}

fn own_servers_of_the_box_keep_their_ports(host: &mut Host) {
    let (spec, sockets) = host.running(Profile::Root);
    let own = "socket(my $l, AF_INET, SOCK_STREAM, 0) or die $!;
        bind($l, sockaddr_in(443, INADDR_ANY)) or die $!; listen($l, 5) or die $!;
        socket(my $s, AF_INET, SOCK_STREAM, 0) or die $!;
        connect($s, sockaddr_in(443, inet_aton('127.0.0.1'))) or die $!;
        accept(my $c, $l) or die $!; syswrite $c, 'own'; close $c; print <$s>;
        socket(my $o, AF_INET, SOCK_STREAM, 0) or die $!;
        connect($o, sockaddr_in(443, inet_aton('198.18.0.16'))) or die $!;
        syswrite $o, 'hello'; shutdown $o, 1; print ' ', <$o>";
    let listener = rustix::io::dup(every_port(&sockets)).unwrap();
    let server = std::thread::spawn(move || {
        let (stream, own, _) = accept(&listener);
        rustix::net::send(&stream, b"outside", SendFlags::empty()).unwrap();
        own
    });
    assert_eq!(host.perl(&spec, own), "own outside");
    assert_eq!(server.join().unwrap(), "198.18.0.16:443".parse().unwrap());
}

fn sockets_are_kept_for_the_next_egress(host: &mut Host) {
    let (spec, sockets) = host.running(Profile::Root);
    drop(sockets);
    // Nobody serves it, and still the place is taken and a connection waits.
    assert_eq!(
        host.perl(&spec, &bind("SOCK_DGRAM", "198.18.0.1", 53)),
        "Address already in use"
    );
    let connect = "socket(my $s, AF_INET, SOCK_STREAM, 0) or die $!;
        print connect($s, sockaddr_in(443, inet_aton('198.18.5.5'))) ? 'waits' : $!";
    assert_eq!(host.perl(&spec, connect), "waits");
    let again = host
        .wait(host.engine().sockets().unwrap().reopen(&spec.id))
        .unwrap();
    let (_, own, _) = accept(every_port(&again));
    assert_eq!(
        own,
        "198.18.5.5:443".parse().unwrap(),
        "the one that waited"
    );
}

fn sockets_are_opened_anew_for_a_new_host(host: &mut Host) {
    let (spec, sockets) = host.running(Profile::Root);
    let reopen = |host: &Host| host.wait(host.engine().sockets().unwrap().reopen(&spec.id));
    host.replace();
    let error = reopen(host).unwrap_err();
    let told = crate::harness::told(&error);
    assert!(
        told.contains("listen on 198.18.0.1:53"),
        "the old ones are still served: {told}"
    );
    drop(sockets);
    let again = reopen(host).unwrap();
    let (own, _) = serve_one(host, &spec, every_port(&again), &talk("198.18.5.5", 8443));
    assert_eq!(own, "198.18.5.5:8443".parse().unwrap());
    host.wait(host.engine().stop(&spec.id, crate::harness::GRACE))
        .unwrap();
    await_readable(&again.pidfd);
    let error = reopen(host).unwrap_err();
    assert!(
        matches!(error, box_runtime::RuntimeError::NotRunning(_)),
        "{error:?}"
    );
}
